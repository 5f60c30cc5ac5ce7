//! Finds networks that are up by name, joins them and describes their state.

use crate::declared_networks::quoted;
use stackline_core::error::{Error, Result};
use stackline_core::network::Network;
use stackline_emu::Description;
use stackline_emu::client::{self, Emulation, UpNetwork};
use stackline_emu::engine::EmulatorOptions;
use std::path::Path;

/// The networks that the specification in a file declares.
pub type DeclaredIn = fn(&Path) -> Result<Vec<Network>>;

/// Joins the network of that name, or one that the specification in the file `word` declares; returns its current
/// state too.
///
/// # Errors
/// If there is none, or several, or it cannot be joined.
pub fn join_network(word: &str, declared_in: DeclaredIn) -> Result<(Emulation, Description)> {
    let mut found = Vec::new();
    for network in find_named(&client::up_networks()?, word, declared_in)? {
        found.extend(describe_network(&network)?);
    }
    let several = found.len();
    match found.pop() {
        Some(found) if several == 1 => Ok(found),
        Some((_, description)) => {
            let message = format!(
                "{several} networks named {} are up, built from different specifications",
                description.network.name
            );
            Err(Error::input(message).hint(
                "take one of them down; `stackline net list` shows which have programs running",
            ))
        }
        None => Err(Error::input(format!("no network named {word} is up"))
            .hint("`stackline net up SPEC` creates one")),
    }
}

/// Joins a network that is up, if the word in place of a specification is not a file but the name of a network.
///
/// # Errors
/// If the word is neither, or the network cannot be joined.
pub fn join_by_name(
    word: Option<&Path>,
    declared_in: DeclaredIn,
) -> Result<Option<(Emulation, Description)>> {
    let Some(word) = word.filter(|path| *path != Path::new("-") && !path.exists()) else {
        return Ok(None);
    };
    let word = word.to_string_lossy();
    let up = client::up_networks()?;
    if up.iter().any(|network| network.is_named(&word)) {
        return join_network(&word, declared_in).map(Some);
    }
    if word.contains(['/', '.', '*', ';', ' ']) {
        return Ok(None); // It is a file's name, or a text: who reads it says what is wrong.
    }
    let near = stackline_spec::nearest(&word, up.iter().map(|network| network.name.as_str()));
    let hint = near.map_or_else(
        || "`stackline net list` lists the networks that are up; `stackline net up SPEC` creates one".to_string(),
        |near| format!("did you mean `{near}`?"),
    );
    Err(Error::input(format!(
        "{word} is neither a file nor the name of a network that is up"
    ))
    .hint(hint))
}

/// The networks that are up and have this name, or whose names the specification in the file `word` declares.
///
/// # Errors
/// If that specification has mistakes.
pub fn find_named(up: &[UpNetwork], word: &str, declared_in: DeclaredIn) -> Result<Vec<UpNetwork>> {
    let by = |names: &[&str]| -> Vec<UpNetwork> {
        up.iter()
            .filter(|network| names.iter().any(|name| network.is_named(name)))
            .cloned()
            .collect()
    };
    let found = by(&[word]);
    if !found.is_empty() || !Path::new(word).is_file() {
        return Ok(found);
    }
    let networks = declared_in(Path::new(word))?;
    Ok(by(&networks
        .iter()
        .map(|network| network.name.as_str())
        .collect::<Vec<_>>()))
}

/// Joins a network that is up and describes it; `None` when it has just ended.
///
/// # Errors
/// If it cannot be joined.
pub fn describe_network(network: &UpNetwork) -> Result<Option<(Emulation, Description)>> {
    let Some(mut emulation) = Emulation::join(network)? else {
        return Ok(None);
    };
    let description = emulation.describe()?;
    Ok(Some((emulation, description)))
}

/// A note that this network is the second one of its name; `None` for the first.
///
/// # Errors
/// If the networks that are up cannot be listed.
pub fn note_second_network(network: &Network, options: &EmulatorOptions) -> Result<Option<String>> {
    let up = client::up_networks()?;
    let same_name: Vec<&UpNetwork> = up.iter().filter(|up| up.is_named(&network.name)).collect();
    if same_name.is_empty()
        || same_name
            .iter()
            .any(|up| up.is(&network.name, network, options))
    {
        return Ok(None);
    }
    let name = quoted(&network.name);
    Ok(Some(format!(
        "note: a network named {} is already up, built from another specification, so this is a second one; `net exec {name} HOST` joins the first, which is taken down by `stackline net down {name}` or when its last program exits",
        network.name
    )))
}
