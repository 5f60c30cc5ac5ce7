//! A level of a factor: what the specification says, a multiple of it, or a text in its place.

use alloc::string::String;

/// One level.
#[derive(Clone, Debug, PartialEq)]
pub enum FactorLevel {
    /// The written value.
    AsWritten,
    /// This multiple of the written value.
    Times(f64),
    /// This text in the place of the written value.
    Text(String),
}

impl core::fmt::Display for FactorLevel {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::AsWritten => f.write_str("as it is"),
            Self::Times(times) => write!(f, "x {times}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}
