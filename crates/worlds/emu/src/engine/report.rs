//! The quality of the emulation: what passed, what was lost and why, how late frames left, and whether the machine was
//! too slow for the network.

use serde::{Deserialize, Serialize};
use stackline_core::time::Duration;
use std::fmt::Write;

/// Fewer late frames are no sign of overload: any wake-up may take long once.
const LEAST_LATE_FRAMES: u64 = 10;

/// Lateness that is normal, in ns: the cost of waking a processor.
const WAKEUP_NS: u64 = 100_000;

/// Why a frame went nowhere: multicast, broadcast, an address that no host has.
pub(crate) const FOR_NO_HOST: &str = "addressed to no host of this network";

/// Everything since the last restart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EmulatorReport {
    /// Time since then.
    pub elapsed: Duration,
    /// Share of one processor that the data path took, 0 to 1.
    pub cpu: f64,
    /// What the hosts sent into the network.
    pub received: EmulatedTrafficCount,
    /// What left the network for hosts.
    pub sent: EmulatedTrafficCount,
    /// Frames that do not belong to this network, by reason; without zeros.
    pub foreign: Vec<(String, u64)>,
    /// Each direction of each link.
    pub ports: Vec<EmulatedPortReport>,
    /// How late frames were handed to the kernel.
    pub lateness: EmulatorTimeSpread,
    /// How long frames had waited when they were read; absent without timestamps from the kernel.
    pub waited: Option<EmulatorTimeSpread>,
    /// Frames lost because the machine could not keep up.
    pub lost: LostFrameCounts,
    /// Why the results depend on the machine and not only on the network, if so.
    pub overload: Option<String>,
    /// The round trip through a host's kernel with nothing emulated between; absent when it was not measured.
    pub round_trip: Option<RoundTrip>,
    /// The mechanisms used on this machine.
    pub mechanisms: Vec<String>,
}

impl EmulatorReport {
    /// What has to be said of a network of that name in the end: that the machine was too slow for it, that packets were for nobody.
    #[must_use]
    pub fn notes(&self, network: &str) -> Vec<String> {
        let overload = self
            .overload
            .as_ref()
            .map(|overload| format!("network {network}: {overload}"));
        let for_no_host = (self.for_no_host() > 0).then(|| {
            let packets = match self.for_no_host() {
                1 => "1 packet was".to_owned(),
                many => format!("{many} packets were"),
            };
            format!(
                "network {network}: {packets} addressed to none of its hosts; multicast, broadcast and traffic to other networks are not carried"
            )
        });
        overload.into_iter().chain(for_no_host).collect()
    }

    /// Frames to multicast and broadcast addresses, and to addresses that no host has.
    #[must_use]
    pub fn for_no_host(&self) -> u64 {
        self.foreign
            .iter()
            .filter(|(why, _)| why == FOR_NO_HOST)
            .map(|(_, count)| count)
            .sum()
    }
}

/// Frames in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmulatedTrafficCount {
    /// Frames; a train of segments is one.
    pub frames: u64,
    /// Packets; each segment is one.
    pub packets: u64,
    /// Bytes of the network layer, as if every segment had its own headers.
    pub bytes: u64,
}

/// One direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmulatedPortReport {
    /// From which node to which.
    pub ends: (String, String),
    /// Packets that left.
    pub packets: u64,
    /// Their bytes, network layer.
    pub bytes: u64,
    /// Time that its rate was spent for them.
    pub busy: Duration,
    /// Frames of which the first cell that was lost or dropped was so here.
    pub spoilt: u64,
    /// Packets marked.
    pub marked: u64,
    /// Packets duplicated.
    pub duplicated: u64,
    /// Packets dropped or lost, by reason; without zeros.
    pub drops: Vec<(String, u64)>,
}

/// A distribution of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmulatorTimeSpread {
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
pub struct LostFrameCounts {
    /// The socket's buffer was full before they were read.
    pub unread: u64,
    /// The memory limit was reached.
    pub memory: u64,
    /// The kernel refused them on the way out.
    pub refused: u64,
}

impl LostFrameCounts {
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

/// Tolerable lateness in a network whose shortest path has that delay: 100 us, or 1 % of the delay.
pub(crate) const fn tolerable(shortest: Duration) -> Duration {
    let share = shortest.0 / 100;
    Duration(if share > WAKEUP_NS { share } else { WAKEUP_NS })
}

/// Frames that left later than tolerable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LateFrames {
    /// How many.
    pub(crate) frames: u64,
    /// All frames that left.
    pub(crate) of: EmulatorTimeSpread,
    /// The tolerable lateness.
    pub(crate) tolerable: Duration,
}

impl LateFrames {
    /// Whether it is a sign of overload: at least ten frames and one in a hundred.
    const fn is_significant(self) -> bool {
        self.frames >= LEAST_LATE_FRAMES && self.frames.saturating_mul(100) >= self.of.count
    }
}

/// Why the machine was too slow, if it was.
pub(crate) fn overload(lost: LostFrameCounts, late: LateFrames) -> Option<String> {
    let mut text = String::new();
    if lost.all() > 0 {
        let _ = write!(
            text,
            "the emulator lost {} frame{}",
            lost.all(),
            if lost.all() == 1 { "" } else { "s" }
        );
        let parts = [
            (lost.unread, "not read because the socket buffer was full"),
            (lost.memory, "for lack of memory"),
            (lost.refused, "refused by the kernel when sent"),
        ];
        let mut open = " (";
        for (count, what) in parts.into_iter().filter(|(count, _)| *count > 0) {
            let _ = write!(text, "{open}{count} {what}");
            open = ", ";
        }
        text.push(')');
    }
    if late.is_significant() {
        let joint = if text.is_empty() { "" } else { ", and " };
        let LateFrames {
            frames,
            of: EmulatorTimeSpread { count, max, .. },
            tolerable,
        } = late;
        let _ = write!(
            text,
            "{joint}{frames} of {count} frames were sent more than {tolerable} late (up to {max})"
        );
    }
    if text.is_empty() {
        return None;
    }
    text.push_str(
        ": this machine was busy, or is too slow for this network; results may reflect the machine's limits",
    );
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many of so many frames were late.
    fn late(frames: u64, count: u64) -> LateFrames {
        let of = EmulatorTimeSpread {
            count,
            max: Duration(400_000),
            ..EmulatorTimeSpread::default()
        };
        LateFrames {
            frames,
            of,
            tolerable: tolerable(Duration(1_000_000)),
        }
    }

    #[test]
    fn a_long_path_tolerates_more_lateness() {
        assert_eq!(tolerable(Duration(1_000_000)), Duration(100_000));
        assert_eq!(tolerable(Duration(50_000_000)), Duration(500_000));
    }

    #[test]
    fn few_late_frames_are_no_overload() {
        for (frames, count) in [
            (0, 0),
            (1, 22),
            (9, 9),
            (9, 900),
            (10, 1001),
            (999, 100_000),
        ] {
            assert_eq!(
                overload(LostFrameCounts::default(), late(frames, count)),
                None,
                "{frames} of {count}"
            );
        }
        for (frames, count) in [(10, 10), (10, 22), (10, 1000), (1000, 100_000)] {
            let text = overload(LostFrameCounts::default(), late(frames, count)).unwrap();
            let expected = format!(
                "{frames} of {count} frames were sent more than 100 us late (up to 400 us): "
            );
            assert!(text.starts_with(&expected), "{text}");
        }
    }

    #[test]
    fn one_lost_frame_is_overload() {
        let lost = LostFrameCounts {
            unread: 1,
            ..LostFrameCounts::default()
        };
        let text = overload(lost, late(1, 22)).unwrap();
        assert!(
            text.starts_with(
                "the emulator lost 1 frame (1 not read because the socket buffer was full): "
            ),
            "{text}"
        );
    }

    #[test]
    fn the_overload_message_has_the_reason() {
        let lost = LostFrameCounts {
            unread: 3,
            refused: 1,
            ..LostFrameCounts::default()
        };
        let text = overload(lost, late(31, 1000)).unwrap();
        assert_eq!(
            text,
            "the emulator lost 4 frames (3 not read because the socket buffer was full, 1 refused by the kernel when sent), and 31 of \
             1000 frames were sent more than 100 us late (up to 400 us): this machine was busy, or is too slow for this network; results may reflect the machine's limits"
        );
    }
}
