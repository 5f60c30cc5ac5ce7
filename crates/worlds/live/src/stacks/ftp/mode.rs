//! What the options of the stack say: who opens the connections for files, and by which commands.

use super::control::FtpControl;
use crate::error::Error;
use stackline_core::catalogue::{OptionKind, OptionTable};
use stackline_core::plan::Stack;
use std::collections::BTreeMap;

pub(super) const OPTIONS: [OptionTable; 2] = [
    OptionTable::new(
        "mode",
        OptionKind::Word(&["passive", "active"]),
        "passive",
        "passive: the initiator opens the connections for files (EPSV); active: the responder does (EPRT)",
    ),
    OptionTable::flag(
        "classic",
        "PASV and PORT (RFC 959) in place of EPSV and EPRT (RFC 2428); over IPv4 alone",
    ),
];

#[derive(Clone, Copy, Debug)]
pub(super) struct FtpMode {
    /// Whether the responder opens the connections for files.
    pub(super) is_active: bool,
    /// Whether the commands are those of RFC 959 alone.
    pub(super) is_classic: bool,
}

impl FtpMode {
    pub(super) fn new(stack: &Stack) -> Self {
        Self {
            is_active: stack.word("mode") == Some("active"),
            is_classic: stack.flag("classic"),
        }
    }

    /// The settings in force, by option name.
    pub(super) fn settings(self, control: &FtpControl) -> BTreeMap<String, String> {
        let mode = match (self.is_active, self.is_classic) {
            (false, false) => "passive (EPSV)",
            (false, true) => "passive (PASV)",
            (true, false) => "active (EPRT)",
            (true, true) => "active (PORT)",
        };
        let mut settings = control.settings();
        settings.insert("mode".into(), mode.into());
        settings
    }
}

/// The error of a call; `check` has refused it before.
pub(super) fn no_calls() -> Error {
    Error::input("FTP moves files and has nothing for a call")
        .hint("use `bulk_get`, `bulk_put` or `connect_disconnect`")
}
