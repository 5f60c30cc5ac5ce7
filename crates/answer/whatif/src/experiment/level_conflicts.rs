//! Checks that two factors change different things: if both changed the same thing, their effects could not be separated. It runs
//! nothing.

use stackline_core::error::{Error, Result};
use stackline_core::network::Network;
use stackline_spec::{Factor, FactorLevel};

/// Factors with the level of each, in the order in which they are applied.
pub type LevelChanges<'c> = [(&'c Factor, &'c FactorLevel)];

/// Refuses two factors that change the same thing. `made` applies changes; `same` says whether two results are equivalent.
///
/// # Errors
/// If they change the same thing.
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
    // Levels that cannot be combined at all are refused later, with their reason, when the combination is made.
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

/// The last level of a factor that changes something: a level equal to what is written would look as if the other factor hid it.
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

/// Adds to an error the levels of the combination that caused it.
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

/// Sorts hosts and switches by name, so that networks can be compared: varying one of several nodes that are declared together
/// splits the declaration and changes their order.
pub fn in_order(network: &mut Network) {
    network
        .hosts
        .sort_by(|one, other| one.name.cmp(&other.name));
    network
        .switches
        .sort_by(|one, other| one.name.cmp(&other.name));
}
