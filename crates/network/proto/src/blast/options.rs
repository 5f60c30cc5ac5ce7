//! The options of a connection: strategy, sizes, intervals; and how a blast is cut into packets.

use super::bitmap;
use stackline_core::time::Duration;

/// The strategy of retransmission: what is sent again when not everything has arrived (Zwaenepoel 1985, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlastStrategy {
    /// The whole blast, after the interval; the receiver answers only when everything has arrived.
    Full,
    /// The whole blast, as soon as the receiver reports missing packets.
    FullNak,
    /// Everything from the first missing packet on.
    Partial,
    /// Exactly the missing packets.
    Selective,
}

/// How long a sender waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlastTimeout {
    /// A constant time, as in the paper, counted from the instant at which the requesting packet is given to the
    /// carrier.
    Fixed(Duration),
    /// By the measured round trips (RFC 6298), doubled after each wait that was too short.
    Adaptive,
}

/// Whether and how a sender paces its packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BlastPacing {
    /// Blasts leave as fast as the carrier takes them.
    Off,
    /// By measured delay and loss, once the path proves longer than that of a local network.
    Auto,
    /// At most this many bit/s.
    Ceiling(f64),
}

/// The options of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlastOptions {
    /// The strategy of retransmission.
    pub strategy: BlastStrategy,
    /// Bytes of data in a packet.
    pub packet: u32,
    /// The most bytes of a blast; rounded down to whole packets, at least one.
    pub size: u32,
    /// Blasts that may be in flight at once.
    pub flight: u32,
    /// How long a sender waits for an answer.
    pub interval: BlastTimeout,
    /// How long a receiver of a part of a blast waits for more before it reports missing packets without a request;
    /// `None`: for ever.
    pub nak_delay: Option<Duration>,
    /// Bytes that the receiver grants beyond what its application has taken.
    pub buffer: u64,
    /// A peer that is silent for this long counts as dead.
    pub patience: Duration,
    /// Whether to pace.
    pub pacing: BlastPacing,
    /// Whether a checksum is computed over each whole blast: the driver computes it, and the machine waits for its
    /// verdict.
    pub checked: bool,
}

/// The default of [`BlastOptions::nak_delay`].
const UNSOLICITED: Duration = Duration(10_000_000);
/// The shortest interval between repetitions.
const SHORTEST: Duration = Duration(1_000);
/// The default of [`BlastOptions::patience`].
const PATIENCE: Duration = Duration(10_000_000_000);
/// The default of [`BlastOptions::buffer`], in bytes.
const BUFFER: u64 = 1 << 20;
/// The default size of a blast in bytes, for selective retransmission.
const SIZE: u32 = 512 << 10;
/// The default size of a blast in bytes for the other strategies: they send more than what is missing again, so a blast
/// has to be small.
const SIZE_WHOLE: u32 = 64 << 10;
/// The default number of blasts in flight.
const FLIGHT: u32 = 8;

impl BlastOptions {
    /// Blasts of `size` bytes in packets of `packet` bytes, one after the other, with adaptive intervals.
    #[must_use]
    pub const fn blast(strategy: BlastStrategy, packet: u32, size: u32) -> Self {
        Self {
            strategy,
            packet,
            size,
            flight: 1,
            interval: BlastTimeout::Adaptive,
            nak_delay: Some(UNSOLICITED),
            buffer: BUFFER,
            patience: PATIENCE,
            pacing: BlastPacing::Off,
            checked: false,
        }
    }

    /// The defaults where only the strategy is chosen, in packets of `packet` bytes: blasts of 512 KiB for
    /// [`BlastStrategy::Selective`], of 64 KiB for the others; 8 in flight, but one for [`BlastStrategy::Full`] and
    /// [`BlastStrategy::FullNak`], as in the paper (Zwaenepoel 1985, section 3.2). Everything else is as in
    /// [`BlastOptions::blast`].
    #[must_use]
    pub const fn usual(strategy: BlastStrategy, packet: u32) -> Self {
        let size = if matches!(strategy, BlastStrategy::Selective) {
            SIZE
        } else {
            SIZE_WHOLE
        };
        let flight = if matches!(strategy, BlastStrategy::Full | BlastStrategy::FullNak) {
            1
        } else {
            FLIGHT
        };
        Self {
            flight,
            ..Self::blast(strategy, packet, size)
        }
    }

    /// Stop-and-wait: each packet is a blast, acknowledged before the next leaves.
    #[must_use]
    pub const fn saw(packet: u32) -> Self {
        Self::blast(BlastStrategy::Selective, packet, packet)
    }

    /// A sliding window of `n` packets, each acknowledged by itself.
    #[must_use]
    pub const fn window(packet: u32, n: u32) -> Self {
        Self {
            flight: n,
            ..Self::blast(BlastStrategy::Selective, packet, packet)
        }
    }

    /// These options within the bounds of the protocol: whole packets, at least one of everything, and no more packets
    /// in a blast than one answer can name or the buffer holds.
    #[must_use]
    pub fn fitted(mut self) -> Self {
        self.packet = self.packet.clamp(1, 1 << 16);
        let most = bitmap::MOST
            .min(self.packet.saturating_mul(8).max(1))
            .max(1);
        self.buffer = self.buffer.max(u64::from(self.packet));
        let size = u64::from(self.size).min(self.buffer) as u32;
        self.size = (size / self.packet).clamp(1, most) * self.packet;
        self.flight = self.flight.clamp(1, 1 << 15);
        // A zero interval would repeat without end at one instant.
        self.nak_delay = self.nak_delay.map(|nak_delay| nak_delay.max(SHORTEST));
        if let BlastTimeout::Fixed(interval) = self.interval {
            self.interval = BlastTimeout::Fixed(interval.max(SHORTEST));
        }
        self
    }
}

/// A blast: its number, where in the stream it is, and whether it is the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlastExtent {
    /// The number of the blast in its direction; wraps.
    pub number: u32,
    /// The stream position of its first byte.
    pub start: u64,
    /// Its bytes.
    pub length: u32,
    /// Whether the stream ends with this blast; the blast is then empty.
    pub last: bool,
}

impl BlastExtent {
    /// The number of packets of `packet` bytes that it takes: at least one.
    #[must_use]
    pub const fn packets(&self, packet: u32) -> u32 {
        if self.length == 0 {
            1
        } else {
            self.length.div_ceil(packet)
        }
    }

    /// The stream position and the bytes of one of its packets.
    #[must_use]
    pub fn span(&self, index: u32, packet: u32) -> (u64, u32) {
        let from = u64::from(index) * u64::from(packet);
        let bytes = u64::from(self.length)
            .saturating_sub(from)
            .min(u64::from(packet));
        (self.start.saturating_add(from), bytes as u32)
    }

    /// The stream position at which the next blast begins.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.start.saturating_add(self.length as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blast_is_cut_into_packets() {
        let blast = BlastExtent {
            number: 0,
            start: 1000,
            length: 2500,
            last: false,
        };
        assert_eq!(blast.packets(1000), 3);
        assert_eq!(blast.span(0, 1000), (1000, 1000));
        assert_eq!(blast.span(2, 1000), (3000, 500));
        let empty = BlastExtent { length: 0, ..blast };
        assert_eq!((empty.packets(1000), empty.span(0, 1000)), (1, (1000, 0)));
    }

    #[test]
    fn sizes_are_whole_packets_that_one_answer_can_name() {
        assert_eq!(
            BlastOptions::blast(BlastStrategy::Selective, 1440, 512 << 10)
                .fitted()
                .size,
            364 * 1440
        );
        assert_eq!(
            BlastOptions::blast(BlastStrategy::Full, 1440, 0)
                .fitted()
                .size,
            1440
        );
        assert_eq!(
            BlastOptions::blast(BlastStrategy::Full, 1, 4096)
                .fitted()
                .size,
            8
        );
        let little = BlastOptions {
            buffer: 3000,
            ..BlastOptions::blast(BlastStrategy::Full, 1000, 64_000)
        };
        assert_eq!(little.fitted().size, 3000);
        assert_eq!(
            BlastOptions {
                buffer: 10,
                ..BlastOptions::saw(1024)
            }
            .fitted()
            .buffer,
            1024
        );
        let none = BlastTimeout::Fixed(Duration::ZERO);
        let fitted = BlastOptions {
            interval: none,
            nak_delay: Some(Duration::ZERO),
            ..BlastOptions::saw(1024)
        }
        .fitted();
        assert_eq!(
            (fitted.interval, fitted.nak_delay),
            (BlastTimeout::Fixed(SHORTEST), Some(SHORTEST))
        );
    }
}
