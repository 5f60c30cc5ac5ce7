//! The quality of the emulation: what passed, what was lost and why, how late frames left, and whether the machine was
//! too slow for the network.

use serde::{Deserialize, Serialize};
use stackline_core::time::Duration;
use std::fmt::Write;

/// Fewer late frames than this are not taken as overload: any wake-up may take long once.
const LEAST_LATE_FRAMES: u64 = 10;

/// Lateness that is normal, in ns: the cost of waking a processor.
const WAKEUP_NS: u64 = 100_000;

/// The reason given for frames that were not forwarded because no host has their destination: multicast, broadcast, unknown addresses.
pub(crate) const FOR_NO_HOST: &str = "addressed to no host of this network";

/// What the emulator forwarded, lost and delayed since the last restart of the network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EmulatorReport {
    /// Time since the last restart.
    pub elapsed: Duration,
    /// Share of one processor that the data path used, 0 to 1.
    pub cpu: f64,
    /// What the hosts sent into the network.
    pub received: EmulatedTrafficCount,
    /// What left the network for hosts.
    pub sent: EmulatedTrafficCount,
    /// Frames that do not belong to this network, by reason; without zeros.
    pub foreign: Vec<(String, u64)>,
    /// Each direction of each link.
    pub ports: Vec<EmulatedPortReport>,
    /// How long after they were due frames were handed to the kernel.
    pub lateness: EmulatorTimeSpread,
    /// How long frames had waited in the socket or ring when they were read; absent without timestamps from the kernel.
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
    /// Sentences for the user at the end of a run: that the machine was too slow for the network of that name, that packets were
    /// addressed to none of its hosts. Empty if all went well.
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

    /// Number of frames to multicast and broadcast addresses, and to addresses that no host has.
    #[must_use]
    pub fn for_no_host(&self) -> u64 {
        self.foreign
            .iter()
            .filter(|(why, _)| why == FOR_NO_HOST)
            .map(|(_, count)| count)
            .sum()
    }
}

/// Traffic in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmulatedTrafficCount {
    /// Number of frames; a train of segments is one frame.
    pub frames: u64,
    /// Number of packets; each segment is one packet.
    pub packets: u64,
    /// Bytes of the network layer, counted as if every segment had its own headers.
    pub bytes: u64,
}

/// One direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmulatedPortReport {
    /// The names of the sending and the receiving node.
    pub ends: (String, String),
    /// Packets that were transmitted.
    pub packets: u64,
    /// Bytes of these packets, network layer.
    pub bytes: u64,
    /// How long the link was transmitting them.
    pub busy: Duration,
    /// Frames, sent as cells, whose first lost or dropped cell was lost or dropped here; 0 on links without cells.
    pub spoilt: u64,
    /// Packets marked with congestion experienced (ECN).
    pub marked: u64,
    /// Packets that the link duplicated.
    pub duplicated: u64,
    /// Packets dropped or lost, by reason; without zeros.
    pub drops: Vec<(String, u64)>,
}

/// A distribution of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmulatorTimeSpread {
    /// Number of times.
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
    /// Frames dropped by the kernel because the socket's buffer or ring was full before they were read.
    pub unread: u64,
    /// Frames dropped because the emulator's memory limit was reached.
    pub memory: u64,
    /// Frames dropped because the kernel had no room for them when they were sent.
    pub refused: u64,
}

impl LostFrameCounts {
    /// The number of lost frames, all causes together.
    #[must_use]
    pub const fn all(&self) -> u64 {
        self.unread + self.memory + self.refused
    }
}

/// Measured round trips between the emulator and a host's kernel, with nothing emulated between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTrip {
    /// Number of round trips measured.
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

/// The number of frames that left later than tolerable, and what it is compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LateFrames {
    /// Number of late frames.
    pub(crate) frames: u64,
    /// The lateness of all frames that left.
    pub(crate) of: EmulatorTimeSpread,
    /// The tolerable lateness.
    pub(crate) tolerable: Duration,
}

impl LateFrames {
    /// Whether the late frames are a sign of overload: at least ten, and at least one in a hundred of all.
    const fn is_significant(self) -> bool {
        self.frames >= LEAST_LATE_FRAMES && self.frames.saturating_mul(100) >= self.of.count
    }
}

/// A sentence about why the machine was too slow for the network; `None` if it was not.
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
