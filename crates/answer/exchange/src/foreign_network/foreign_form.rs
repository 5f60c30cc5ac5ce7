//! What each form of other tools' networks says of itself.

use super::network_text::NetworkText;
use stackline_core::error::Result;

/// A form in which another tool writes networks.
pub(super) struct ForeignForm {
    pub(super) name: &'static str,
    /// What it is, for lists.
    pub(super) what: &'static str,
    pub(super) recognises: fn(&str) -> bool,
    pub(super) read: fn(&str) -> Result<NetworkText>,
}
