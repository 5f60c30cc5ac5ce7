//! The error of this crate, which is `core`'s, and what the machine's refusals become.
//!
//! It also knows the settings by which systems forbid namespaces, so that an error names the one that did.

use std::fs;
use std::io;

pub use stackline_core::error::{Blame, Error as Refusal, Result};

/// The machine cannot do it; the simulated world needs nothing of it.
pub(crate) fn environment(message: impl Into<String>) -> Refusal {
    Refusal::environment(message).hint("`--in simulated` needs nothing of the machine")
}

/// A call of the system that failed.
pub(crate) fn call(what: &str, error: impl Into<io::Error>) -> Refusal {
    environment(format!("{what} failed: {}", error.into()))
}

/// Namespaces that the system would not make, with the setting that forbids them where one is known.
pub(crate) fn namespaces(what: &str, error: impl Into<io::Error>) -> Refusal {
    let error = error.into();
    let Some(setting) = SETTINGS.iter().find(|setting| setting.forbids()) else {
        let reason = "perhaps a container or a security policy forbids it";
        return environment(format!("an emulated network needs {what}, which failed: {error} ({reason})"));
    };
    let message = format!("an emulated network needs {what}, which {} forbids", setting.said());
    let hint = format!("`--in simulated` needs nothing of the machine; or allow it: sysctl -w {}", setting.cure);
    Refusal::environment(message).hint(hint)
}

/// A setting of the kernel that forbids namespaces when it has that value.
struct Setting {
    name: &'static str,
    forbidding: &'static str,
    cure: &'static str,
}

const SETTINGS: [Setting; 4] = [
    Setting { name: "kernel.unprivileged_userns_clone", forbidding: "0", cure: "kernel.unprivileged_userns_clone=1" },
    Setting {
        name: "kernel.apparmor_restrict_unprivileged_userns",
        forbidding: "1",
        cure: "kernel.apparmor_restrict_unprivileged_userns=0",
    },
    Setting { name: "user.max_user_namespaces", forbidding: "0", cure: "user.max_user_namespaces=10000" },
    Setting { name: "user.max_net_namespaces", forbidding: "0", cure: "user.max_net_namespaces=10000" },
];

impl Setting {
    fn forbids(&self) -> bool {
        let value = fs::read_to_string(format!("/proc/sys/{}", self.name.replace('.', "/")));
        value.is_ok_and(|value| value.trim() == self.forbidding)
    }

    fn said(&self) -> String {
        format!("sysctl {}={}", self.name, self.forbidding)
    }
}
