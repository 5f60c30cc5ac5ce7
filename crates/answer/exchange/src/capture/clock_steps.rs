//! Detects that the clock of a capture's interface was set back: a packet then has an earlier time stamp than packets before it.

use stackline_core::units;
use std::collections::BTreeMap;

/// A packet earlier than a previous one by this much (ns) shows a clock that was set back; smaller differences are reordering.
const SET_BACK_NS: u64 = 500_000_000;

/// The latest time stamp of each interface.
#[derive(Debug, Default)]
pub(super) struct InterfaceClocks {
    latest_ns: BTreeMap<String, u64>,
}

impl InterfaceClocks {
    /// Takes the time stamp of a packet. Returns by how much the clock was set back before it, if it was.
    pub(super) fn take(&mut self, interface: &str, at_ns: u64) -> Option<ClockSetBack> {
        let Some(latest_ns) = self.latest_ns.get_mut(interface) else {
            self.latest_ns.insert(interface.to_owned(), at_ns);
            return None;
        };
        let back_ns = latest_ns.saturating_sub(at_ns);
        let is_set_back = back_ns >= SET_BACK_NS;
        // Later packets are compared with the clock as it is after being set back.
        if is_set_back || at_ns > *latest_ns {
            *latest_ns = at_ns;
        }
        is_set_back.then_some(ClockSetBack { back_ns })
    }
}

/// A clock was set back by this much, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockSetBack {
    back_ns: u64,
}

impl ClockSetBack {
    /// The message about it; `packet` is the number of the first packet after it.
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
