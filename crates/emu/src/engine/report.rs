//! How well the emulation went: what passed, what was lost and why, how late frames left, and whether the machine was too
//! slow for the network it played.

use serde::{Deserialize, Serialize};
use stackline_core::time::Duration;
use std::fmt::Write;

/// Lateness that is nothing to speak of, in ns: what waking a processor costs.
const USUAL: u64 = 100_000;

/// Everything since the network was set going last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// How long that is.
    pub elapsed: Duration,
    /// Share of one processor that the data path took, 0 to 1.
    pub cpu: f64,
    /// What the hosts sent into the network.
    pub received: Traffic,
    /// What left the network for hosts.
    pub sent: Traffic,
    /// Frames that were not for this network, by reason; only what there was.
    pub foreign: Vec<(String, u64)>,
    /// Each direction of each link.
    pub ports: Vec<Port>,
    /// How long after they were due frames were handed to the kernel.
    pub lateness: Spread,
    /// How long frames had waited when they were read; absent where the kernel stamps none.
    pub waited: Option<Spread>,
    /// Frames lost because the machine could not keep up.
    pub lost: Lost,
    /// Why the result is not the network's but the machine's, when it is not.
    pub overload: Option<String>,
    /// What it costs to go from here through a host's kernel and back, with nothing emulated between; absent when it was
    /// not measured.
    pub round_trip: Option<RoundTrip>,
    /// How it is done on this machine.
    pub mechanisms: Vec<String>,
}

/// Frames one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Frames; a train of segments is one.
    pub frames: u64,
    /// Packets; each segment is one.
    pub packets: u64,
    /// Bytes of the network layer, as if every segment had its own headers.
    pub bytes: u64,
}

/// One direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// From which node to which.
    pub ends: (String, String),
    /// Packets that left.
    pub packets: u64,
    /// Their bytes, network layer.
    pub bytes: u64,
    /// Packets marked.
    pub marked: u64,
    /// Packets doubled.
    pub duplicated: u64,
    /// Packets dropped or lost, by reason; only what there was.
    pub drops: Vec<(String, u64)>,
}

/// A distribution of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// Median.
    pub p50: Duration,
    /// 99 of 100 are at most this.
    pub p99: Duration,
    /// 999 of 1000 are at most this.
    pub p999: Duration,
    /// The largest.
    pub max: Duration,
}

/// Frames lost because the machine could not keep up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// The socket had no room for them before they were read.
    pub unread: u64,
    /// There was no memory allowed for them.
    pub memory: u64,
    /// The kernel did not take them on the way out.
    pub refused: u64,
}

impl Lost {
    /// All of them.
    #[must_use]
    pub const fn all(&self) -> u64 {
        self.unread + self.memory + self.refused
    }
}

/// A round trip with nothing emulated in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTrip {
    /// How many were measured.
    pub count: u64,
    /// The shortest.
    pub min: Duration,
    /// The median.
    pub p50: Duration,
}

/// Most lateness at the 99th percentile that a network whose shortest path has that delay bears: 100 us, or 1 % of the delay.
pub(crate) const fn bearable(shortest: Duration) -> Duration {
    let share = shortest.0 / 100;
    Duration(if share > USUAL { share } else { USUAL })
}

/// Says why the machine was too slow, if it was.
pub(crate) fn overload(lost: Lost, lateness: Spread, bearable: Duration) -> Option<String> {
    let mut text = String::new();
    if lost.all() > 0 {
        let _ = write!(text, "the emulator lost {} frames", lost.all());
        let parts = [
            (lost.unread, "unread: the socket was full"),
            (lost.memory, "for want of memory"),
            (lost.refused, "refused by the kernel on the way out"),
        ];
        let mut open = " (";
        for (count, what) in parts.into_iter().filter(|(count, _)| *count > 0) {
            let _ = write!(text, "{open}{count} {what}");
            open = ", ";
        }
        text.push(')');
    }
    if lateness.p99 > bearable {
        let joint = if text.is_empty() { "" } else { ", and " };
        let (p99, max) = (lateness.p99, lateness.max);
        let _ = write!(
            text,
            "{joint}one frame in a hundred left more than {p99} late (at most {max}; {bearable} is bearable)"
        );
    }
    if text.is_empty() {
        return None;
    }
    text.push_str(": this machine is too slow for this network, so the figures are the machine's");
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(p99: u64) -> Spread {
        Spread { count: 1000, p99: Duration(p99), max: Duration(2 * p99), ..Spread::default() }
    }

    #[test]
    fn a_long_path_bears_more_lateness() {
        assert_eq!(bearable(Duration(1_000_000)), Duration(100_000));
        assert_eq!(bearable(Duration(50_000_000)), Duration(500_000));
        assert_eq!(overload(Lost::default(), late(400_000), bearable(Duration(50_000_000))), None);
    }

    #[test]
    fn overload_says_why() {
        let lost = Lost { unread: 3, refused: 1, ..Lost::default() };
        let text = overload(lost, late(200_000), Duration(USUAL)).unwrap();
        assert_eq!(
            text,
            "the emulator lost 4 frames (3 unread: the socket was full, 1 refused by the kernel on the way out), and one \
             frame in a hundred left more than 200 us late (at most 400 us; 100 us is bearable): this machine is too slow for \
             this network, so the figures are the machine's"
        );
    }
}
