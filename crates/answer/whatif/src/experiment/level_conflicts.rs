//! Whether factors change different things: two that change the same thing cannot both have a level. It runs nothing.

use stackline_core::error::{Error, Result};
use stackline_core::network::Network;
use stackline_spec::{Factor, FactorLevel};

/// Factors at levels of theirs.
pub type LevelChanges<'c> = [(&'c Factor, &'c FactorLevel)];

/// Refuses two factors that change the same thing. `made` is what a combination comes to, `same` whether two of those do the same.
///
/// # Errors
/// When they do.
pub fn are_apart<T>(
    one: &Factor,
    other: &Factor,
    made: impl Fn(&LevelChanges<'_>) -> Result<T>,
    same: impl Fn(&T, &T) -> bool,
) -> Result<()> {
    let written = made(&[]);
    let (first, second) = (
        (one, changing(one, &made, &same, &written)),
        (other, changing(other, &made, &same, &written)),
    );
    // What cannot be together at all is refused, with its reason, where the combination is.
    let (Ok(both), Ok(turned)) = (made(&[first, second]), made(&[second, first])) else {
        return Ok(());
    };
    let part_of = match (one.of_link(), other.of_link()) {
        (Some((first, ends)), Some((second, others))) => {
            let turned = others.map(|(from, to)| (to, from));
            first == second
                && (ends.is_none() || others.is_none() || ends == others || ends == turned)
        }
        _ => false,
    };
    let hides = |alone: Result<T>| alone.is_ok_and(|alone| same(&alone, &both));
    if part_of
        || !same(&both, &turned)
        || [first, second]
            .into_iter()
            .any(|change| hides(made(&[change])))
    {
        let message = format!(
            "the factors `{}` and `{}` change the same thing",
            one.name, other.name
        );
        return Err(Error::input(message).hint("omit one, or give each its own link or host"));
    }
    Ok(())
}

/// The last level that changes something: one that is what is written anyway would look as if the other factor hid it.
fn changing<'f, T>(
    factor: &'f Factor,
    made: &impl Fn(&LevelChanges<'_>) -> Result<T>,
    same: &impl Fn(&T, &T) -> bool,
    written: &Result<T>,
) -> &'f FactorLevel {
    let changes = |level: &&FactorLevel| match (made(&[(factor, level)]), written) {
        (Ok(alone), Ok(written)) => !same(&alone, written),
        _ => false,
    };
    let last = &factor.levels[factor.levels.len() - 1];
    factor.levels.iter().rev().find(changes).unwrap_or(last)
}

/// An error of a combination, with the levels that make it.
#[must_use]
pub fn with_levels(changes: &LevelChanges<'_>, error: Error) -> Error {
    let levels = changes
        .iter()
        .filter(|(_, level)| **level != FactorLevel::AsWritten);
    let words: Vec<String> = levels
        .map(|(factor, level)| format!("`{}` at {level}", factor.name))
        .collect();
    match words[..] {
        [] => error,
        _ => Error {
            message: format!("with {}: {}", words.join(", "), error.message),
            ..error
        },
    }
}

/// What is declared together is taken apart where one of it is varied, in the order in which that is done: here in the order of names.
pub fn in_order(network: &mut Network) {
    network
        .hosts
        .sort_by(|one, other| one.name.cmp(&other.name));
    network
        .switches
        .sort_by(|one, other| one.name.cmp(&other.name));
}
