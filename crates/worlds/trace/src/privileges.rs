//! The capabilities that observing needs (capabilities(7)): whether this process has them, and what to do if not, in words.

use std::fs;

/// Needed to capture packets.
pub(crate) const PACKETS: Privilege = Privilege {
    name: "CAP_NET_RAW",
    number: 13,
};
/// Needed for the kernel's trace events, and to enter namespaces.
pub(crate) const ADMINISTRATION: Privilege = Privilege {
    name: "CAP_SYS_ADMIN",
    number: 21,
};

/// A capability, by its name and its bit number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Privilege {
    pub(crate) name: &'static str,
    number: u32,
}

impl Privilege {
    /// Whether this thread has it.
    pub(crate) fn is_there(self) -> bool {
        self.is_in(&status(), "CapEff:")
    }

    /// What to do if it is lacking.
    pub(crate) fn advice(self) -> String {
        self.advice_by(&status())
    }

    fn advice_by(self, status: &str) -> String {
        let name = self.name;
        match (self.is_in(status, "CapEff:"), self.is_in(status, "CapBnd:")) {
            (true, _) => format!(
                "{name} is held, but something else denies access (a security module or a user namespace)"
            ),
            (false, true) => format!("run stackline as root, or with {name}"),
            // A capability outside of the bounding set cannot be gained within the container.
            (false, false) => format!(
                "this container lacks {name}: start it with `--privileged`, or trace it from outside with `--container`"
            ),
        }
    }

    /// Whether it is in a set of capabilities (`CapEff:` or `CapBnd:`) of `/proc/PID/status`.
    fn is_in(self, status: &str, set: &str) -> bool {
        status
            .lines()
            .find_map(|line| line.strip_prefix(set))
            .and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok())
            .is_some_and(|set| set >> self.number & 1 == 1)
    }
}

fn status() -> String {
    fs::read_to_string("/proc/thread-self/status").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_fits_what_can_be_had() {
        let status = |effective: u64, bounding: u64| {
            format!("Name:\ta\nCapEff:\t{effective:016x}\nCapBnd:\t{bounding:016x}\n")
        };
        let all = 0x1ff_ffff_ffff;
        let advice = |status: String| PACKETS.advice_by(&status);
        assert!(advice(status(0, all)).contains("run stackline as root"));
        assert!(advice(status(0, all & !(1 << 13))).contains("--privileged"));
        assert!(advice(status(1 << 13, all)).contains("something else"));
        assert!(advice(String::new()).contains("CAP_NET_RAW"));
    }
}
