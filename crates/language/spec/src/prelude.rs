//! The standard application types and the predefined templates of networks, as texts of the language.

/// The standard application types, in the language.
pub const PRELUDE: &str = include_str!("prelude.stackline");
/// The predefined templates of networks, in the language.
pub const TEMPLATES: &str = include_str!("templates.stackline");
