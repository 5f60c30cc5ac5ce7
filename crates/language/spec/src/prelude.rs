//! The standard application types, as text of the language that is parsed before every specification.

/// The standard application types, in the language.
pub const PRELUDE: &str = include_str!("prelude.stackline");
