//! The error type of this crate (that of `stackline_core`), and the conversion of the machine's refusals into it.
//!
//! It lists the kernel settings that forbid namespaces, so that an error can name the one in force.

use std::fs;
use std::io;

pub use stackline_core::error::{Blame, Error, Result};

/// The error for something that the machine cannot do; the hint names the simulated world as an alternative.
pub(crate) fn environment(message: impl Into<String>) -> Error {
    Error::environment(message).hint("use `--in simulated`, which needs nothing from the machine")
}

/// The error for a failed system call; `what` names the call.
pub(crate) fn call_failed(what: &str, error: impl Into<io::Error>) -> Error {
    environment(format!("{what} failed: {}", error.into()))
}

/// The error for namespaces that cannot be created, with the setting that forbids them if one is found.
pub(crate) fn namespaces_failed(what: &str, error: impl Into<io::Error>) -> Error {
    let error = error.into();
    let Some(setting) = SETTINGS.iter().find(|setting| setting.forbids()) else {
        let reason = "perhaps a container or a security policy forbids this";
        return environment(format!(
            "an emulated network needs {what}, which cannot be created: {error} ({reason})"
        ));
    };
    let message = format!(
        "an emulated network needs {what}, which {} forbids",
        setting.assignment()
    );
    let hint = format!(
        "use `--in simulated`, which needs nothing from the machine, or lift the restriction: sysctl -w {}",
        setting.remedy
    );
    Error::environment(message).hint(hint)
}

/// A setting of the kernel that forbids namespaces if it has a certain value.
struct NamespaceSetting {
    /// Its name for sysctl.
    name: &'static str,
    /// The value that forbids namespaces.
    forbidding: &'static str,
    /// The assignment that permits them.
    remedy: &'static str,
}

/// All settings that are checked.
const SETTINGS: [NamespaceSetting; 4] = [
    NamespaceSetting {
        name: "kernel.unprivileged_userns_clone",
        forbidding: "0",
        remedy: "kernel.unprivileged_userns_clone=1",
    },
    NamespaceSetting {
        name: "kernel.apparmor_restrict_unprivileged_userns",
        forbidding: "1",
        remedy: "kernel.apparmor_restrict_unprivileged_userns=0",
    },
    NamespaceSetting {
        name: "user.max_user_namespaces",
        forbidding: "0",
        remedy: "user.max_user_namespaces=10000",
    },
    NamespaceSetting {
        name: "user.max_net_namespaces",
        forbidding: "0",
        remedy: "user.max_net_namespaces=10000",
    },
];

impl NamespaceSetting {
    fn forbids(&self) -> bool {
        let value = fs::read_to_string(format!("/proc/sys/{}", self.name.replace('.', "/")));
        value.is_ok_and(|value| value.trim() == self.forbidding)
    }

    fn assignment(&self) -> String {
        format!("sysctl {}={}", self.name, self.forbidding)
    }
}
