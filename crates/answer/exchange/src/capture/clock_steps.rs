//! Clocks of a capture's interfaces, as its packets show them: one that is set back makes packets earlier than those before them.

use stackline_core::units;
use std::collections::BTreeMap;

/// A packet that is so much earlier than one before it was not just captured beside it, ns.
const SET_BACK_NS: u64 = 500_000_000;

/// The latest moment of each interface.
#[derive(Debug, Default)]
pub(super) struct InterfaceClocks {
    latest_ns: BTreeMap<String, u64>,
}

impl InterfaceClocks {
    /// A packet is of that moment. Returns by how much the clock was set back before it, if it was.
    pub(super) fn take(&mut self, interface: &str, at_ns: u64) -> Option<ClockSetBack> {
        let Some(latest_ns) = self.latest_ns.get_mut(interface) else {
            self.latest_ns.insert(interface.to_owned(), at_ns);
            return None;
        };
        let back_ns = latest_ns.saturating_sub(at_ns);
        let is_set_back = back_ns >= SET_BACK_NS;
        // From there on the clock is another one.
        if is_set_back || at_ns > *latest_ns {
            *latest_ns = at_ns;
        }
        is_set_back.then_some(ClockSetBack { back_ns })
    }
}

/// A clock was set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockSetBack {
    back_ns: u64,
}

impl ClockSetBack {
    /// What is to be said of it, before the packet of that number.
    pub(super) fn describe(self, packet: u64) -> String {
        format!(
            "packet {packet} is {} earlier than a preceding one: the capture clock was set back, or files were merged; intervals across this point are unknown",
            units::format_time(self.back_ns as f64 / 1e9)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_is_reported_once_and_disorder_is_none() {
        const MS: u64 = 1_000_000;
        let mut clocks = InterfaceClocks::default();
        let mut take = |interface: &str, ms: u64| {
            let set_back = clocks.take(interface, ms * MS);
            set_back.map(|set_back| set_back.back_ns / MS)
        };
        assert_eq!(
            [take("eth0", 5000), take("eth0", 4990), take("eth0", 5100)],
            [None; 3]
        );
        assert_eq!(take("eth1", 100), None);
        assert_eq!([take("eth0", 3100), take("eth0", 3101)], [Some(2000), None]);
        assert_eq!([take("eth0", 5200), take("eth1", 101)], [None; 2]);
    }
}
