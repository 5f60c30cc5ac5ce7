//! What is chosen for a connection: strategy, sizes, intervals. And how a blast is cut into packets.

use super::bitmap;
use stackline_core::time::Duration;

/// What is sent again when not everything has arrived (Zwaenepoel 1985, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlastStrategy {
    /// The whole blast, after the interval; the receiver answers only when everything has arrived.
    Full,
    /// The whole blast, as soon as the receiver reports missing packets.
    FullNak,
    /// From the first packet that is missing.
    Partial,
    /// What is missing.
    Selective,
}

/// How long a sender waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlastTimeout {
    /// Always so long, as in the paper, counted from the instant at which the requesting packet goes to the carrier.
    Fixed(Duration),
    /// By the round trips measured (RFC 6298), twice as long after each one that was too short.
    Adaptive,
}

/// Whether a sender paces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BlastPacing {
    /// Blasts leave as fast as the carrier takes them.
    Off,
    /// By rate and loss, once the path proves longer than a local network's.
    Auto,
    /// At most so many bit/s.
    Ceiling(f64),
}

/// What is chosen for a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlastOptions {
    /// What is sent again.
    pub strategy: BlastStrategy,
    /// Bytes of data in a packet.
    pub packet: u32,
    /// Bytes of a blast, at most; rounded down to whole packets, at least one.
    pub size: u32,
    /// Blasts that may be in flight at once.
    pub flight: u32,
    /// How long a sender waits for an answer.
    pub interval: BlastTimeout,
    /// How long a receiver with a part of a blast waits for more before it reports missing packets; `None`: for ever.
    pub nak_delay: Option<Duration>,
    /// Bytes the receiver grants beyond what its application has taken.
    pub buffer: u64,
    /// A peer that is silent for so long counts as dead.
    pub patience: Duration,
    /// Whether to pace.
    pub pacing: BlastPacing,
    /// Whether blasts are checked as a whole: the driver computes, the machine waits for its verdict.
    pub checked: bool,
}

/// How long a receiver waits for the rest of a blast at least.
const UNSOLICITED: Duration = Duration(10_000_000);
/// Shortest interval.
const SHORTEST: Duration = Duration(1_000);
/// How long a peer may be silent.
const PATIENCE: Duration = Duration(10_000_000_000);
/// What a receiver grants.
const BUFFER: u64 = 1 << 20;
/// Bytes of a blast where nothing is chosen; where more than what is missing comes again it has to be small.
const SIZE: u32 = 512 << 10;
const SIZE_WHOLE: u32 = 64 << 10;
/// Blasts in flight where nothing is chosen.
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

    /// Blasts as they are where nothing but the strategy is chosen, in packets of `packet` bytes: of 512 KiB for
    /// [`BlastStrategy::Selective`], of 64 KiB for the others; 8 in flight, but for [`BlastStrategy::Full`] and [`BlastStrategy::FullNak`]
    /// one, as in the paper (Zwaenepoel 1985, section 3.2). Everything else is as [`BlastOptions::blast`] has it.
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

    /// The same within the bounds of the protocol: whole packets, not more of them than one answer can name or the buffer
    /// holds, at least one of everything.
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
        // Nothing may repeat without end at one instant.
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
    /// Its number in its direction; wraps.
    pub number: u32,
    /// Position of its first byte.
    pub start: u64,
    /// Its bytes.
    pub length: u32,
    /// Whether the stream ends with it; then it is empty.
    pub last: bool,
}

impl BlastExtent {
    /// How many packets of `packet` bytes it takes: at least one.
    #[must_use]
    pub const fn packets(&self, packet: u32) -> u32 {
        if self.length == 0 {
            1
        } else {
            self.length.div_ceil(packet)
        }
    }

    /// Position and bytes of one of its packets.
    #[must_use]
    pub fn span(&self, index: u32, packet: u32) -> (u64, u32) {
        let from = u64::from(index) * u64::from(packet);
        let bytes = u64::from(self.length)
            .saturating_sub(from)
            .min(u64::from(packet));
        (self.start.saturating_add(from), bytes as u32)
    }

    /// Where the next one begins.
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
