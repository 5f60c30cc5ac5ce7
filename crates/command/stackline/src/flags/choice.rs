//! A flag whose value is one of a library's enumeration: the names and what they are stand there.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use stackline_core::named::{NamedValue, UnknownName};

/// Reads one of the names of an enumeration.
pub(crate) fn choice<V: NamedValue + Send + Sync>() -> impl TypedValueParser<Value = V> {
    let value = |(_, name, words): &(V, &'static str, &'static str)| {
        let value = PossibleValue::new(*name);
        match words.is_empty() {
            true => value,
            false => value.help(*words),
        }
    };
    let values: Vec<PossibleValue> = V::NAMED.iter().map(value).collect();
    PossibleValuesParser::new(values)
        .try_map(|name| V::named(&name).ok_or_else(|| UnknownName(V::names())))
}
