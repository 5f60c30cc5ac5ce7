//! Errors: the cause, who is to blame, what to try. They pass unchanged from the emulator's process to its client.
//!
//! It lists the kernel settings that forbid namespaces, so that an error names the one in force.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::io;

/// Whose fault it is; decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// The network or the command line asks for something impossible.
    Input,
    /// This machine cannot do it.
    Environment,
    /// It failed while running.
    Emulation,
}

/// One sentence, its blame, perhaps a hint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Whose fault.
    pub blame: Blame,
    /// One sentence with the cause.
    pub message: String,
    /// What to try.
    pub hint: Option<String>,
}

/// The result of most functions here.
pub type Result<T> = std::result::Result<T, Refusal>;

impl Refusal {
    /// An error of the network or the command line.
    pub fn input(message: impl Into<String>) -> Self {
        Self { blame: Blame::Input, message: message.into(), hint: None }
    }

    /// An error of the machine; the simulated world needs nothing of it.
    pub fn environment(message: impl Into<String>) -> Self {
        let hint = Some("`--in simulated` needs nothing of the machine".into());
        Self { blame: Blame::Environment, message: message.into(), hint }
    }

    /// A failure while running.
    pub fn emulation(message: impl Into<String>) -> Self {
        Self { blame: Blame::Emulation, message: message.into(), hint: None }
    }

    /// A failed system call.
    pub fn call(what: &str, error: impl Into<io::Error>) -> Self {
        Self::environment(format!("{what} failed: {}", error.into()))
    }

    /// Namespaces that cannot be made, with the setting that forbids them if one is found.
    pub fn namespaces(what: &str, error: impl Into<io::Error>) -> Self {
        let error = error.into();
        let Some(setting) = SETTINGS.iter().find(|setting| setting.forbids()) else {
            let reason = "perhaps a container or a security policy forbids it";
            return Self::environment(format!("an emulated network needs {what}, which failed: {error} ({reason})"));
        };
        let message = format!("an emulated network needs {what}, which {} forbids", setting.assignment());
        let hint = format!("`--in simulated` needs nothing of the machine; or allow it: sysctl -w {}", setting.remedy);
        Self { hint: Some(hint), ..Self::environment(message) }
    }

    /// The same error with that hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\nhint: {hint}"))
    }
}

impl std::error::Error for Refusal {}

/// A setting of the kernel that forbids namespaces when it has that value.
struct Setting {
    name: &'static str,
    forbidding: &'static str,
    remedy: &'static str,
}

const SETTINGS: [Setting; 4] = [
    Setting { name: "kernel.unprivileged_userns_clone", forbidding: "0", remedy: "kernel.unprivileged_userns_clone=1" },
    Setting {
        name: "kernel.apparmor_restrict_unprivileged_userns",
        forbidding: "1",
        remedy: "kernel.apparmor_restrict_unprivileged_userns=0",
    },
    Setting { name: "user.max_user_namespaces", forbidding: "0", remedy: "user.max_user_namespaces=10000" },
    Setting { name: "user.max_net_namespaces", forbidding: "0", remedy: "user.max_net_namespaces=10000" },
];

impl Setting {
    fn forbids(&self) -> bool {
        let value = fs::read_to_string(format!("/proc/sys/{}", self.name.replace('.', "/")));
        value.is_ok_and(|value| value.trim() == self.forbidding)
    }

    fn assignment(&self) -> String {
        format!("sysctl {}={}", self.name, self.forbidding)
    }
}
