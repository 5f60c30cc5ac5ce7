//! The words of the language, and when two spellings are the same name.
//!
//! It handles spellings only, not what a name stands for.

use crate::prelude::PRELUDE;
use alloc::string::{String, ToString};
use stackline_core::distribution::TABLE;
use stackline_core::procedure::OPERATIONS;
use stackline_core::units::{SIZE_UNITS, TIME_UNITS};

/// Words that begin an item.
pub(crate) const ITEMS: &[&str] = &["factor", "host", "network", "procedure", "seed", "template"];
/// Words that begin a clause of a part or a composer.
pub(crate) const CLAUSES: &[&str] = &["over", "in", "across", "on", "expect"];
/// Words between the number of runs and the measurement.
pub(crate) const HEADS: &[&str] = &["timelimit", "until", "warmup"];
/// The words that say how parts are combined.
pub(crate) const COMPOSERS: &[&str] = &["parallel", "background", "priority background", "total"];
/// Short names of application types, with the names they stand for.
pub(crate) const ALIASES: &[(&str, &str)] = &[
    ("rr", "request_response"),
    ("conn_disc", "connect_disconnect"),
];
/// Words before a rate of operations, which is for the timing that paces them.
pub(crate) const PACES: &[&str] = &["rate", "poisson"];
const OTHERS: &[&str] = &[
    "from",
    "to",
    "bytes",
    "file",
    "memory",
    "virtual",
    "priority",
    "virtual_memory",
    "priority_background",
];

/// The common form of all spellings of a name: lower case, with `_` for `-`.
pub(crate) fn fold(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c == '-' {
                '_'
            } else {
                c.to_ascii_lowercase()
            }
        })
        .collect()
}

/// The names of the predefined application types: each procedure of the prelude begins a line.
pub(crate) fn prelude() -> impl Iterator<Item = &'static str> {
    PRELUDE
        .lines()
        .filter_map(|line| line.strip_prefix("procedure ")?.split(['(', ' ']).next())
}

/// The names of the timings of the predefined application types.
pub(crate) fn prelude_timings() -> impl Iterator<Item = &'static str> {
    let heads = PRELUDE
        .lines()
        .filter_map(|line| line.strip_prefix("procedure "));
    heads
        .filter_map(|head| head.split_once('(')?.1.split(')').next())
        .flat_map(|names| names.split(','))
        .map(str::trim)
}

/// The key of an application type's name: in the common form, with short names replaced.
pub(crate) fn application_key(name: &str) -> String {
    let folded = fold(name);
    ALIASES
        .iter()
        .find(|(short, _)| *short == folded)
        .map_or(folded, |(_, long)| (*long).to_string())
}

/// An application type's name as it is printed: with `_` for `-`, predefined ones in lower case.
pub(crate) fn application_text(name: &str) -> String {
    let folded = fold(name);
    let ours =
        prelude().any(|name| name == folded) || ALIASES.iter().any(|(short, _)| *short == folded);
    if ours { folded } else { name.replace('-', "_") }
}

/// The operation of which `name` is a spelling, as in the table of operations.
pub(crate) fn operation(name: &str) -> Option<&'static str> {
    let bare = |text: &str| -> String {
        text.chars()
            .filter(|c| !matches!(c, '-' | '_'))
            .map(|c| c.to_ascii_lowercase())
            .collect()
    };
    let key = match bare(name).as_str() {
        "awaitconnectind" => "awaitconnectindication".to_string(),
        "awaitdisconnectind" => "awaitdisconnectindication".to_string(),
        "awaitdataind" => "awaitdataindication".to_string(),
        "startmeasurements" => "startmeasurement".to_string(),
        "stopmeasurements" => "stopmeasurement".to_string(),
        other => other.to_string(),
    };
    OPERATIONS
        .iter()
        .map(|(name, ..)| *name)
        .find(|name| bare(name) == key)
}

/// Whether there is a distribution with that name.
pub(crate) fn is_distribution(name: &str) -> bool {
    let folded = fold(name);
    folded == "empirical" || TABLE.iter().any(|(name, ..)| *name == folded)
}

/// Whether a word has a meaning of its own, so that nothing declared may have it as its name.
pub(crate) fn is_reserved(name: &str) -> bool {
    let folded = fold(name);
    let word = folded.as_str();
    [ITEMS, CLAUSES, HEADS, COMPOSERS, OTHERS]
        .iter()
        .any(|list| list.contains(&word))
        || is_distribution(word)
        || is_unit(name)
}

/// Whether the word is a unit, which cannot be the name of a variable.
pub(crate) fn is_unit(name: &str) -> bool {
    SIZE_UNITS
        .iter()
        .chain(TIME_UNITS)
        .any(|(unit, _)| *unit == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        assert_eq!(application_key("RR"), "request_response");
        assert_eq!(application_key("Request-Response"), "request_response");
        assert_eq!(application_text("BULK-GET"), "bulk_get");
        assert_eq!(application_text("My-App"), "My_App");
        assert_eq!(
            operation("await_connect_ind"),
            Some("AwaitConnectIndication")
        );
        assert_eq!(operation("StartMeasurements"), Some("StartMeasurement"));
        assert_eq!(operation("rpc-call"), Some("RPCCall"));
        assert_eq!(operation("nothing"), None);
    }

    #[test]
    fn every_procedure_of_the_prelude_is_known_by_name() {
        assert_eq!(prelude().count(), PRELUDE.matches("initiator {").count());
        for name in prelude() {
            assert_eq!(application_text(&name.to_ascii_uppercase()), name);
        }
    }
}
