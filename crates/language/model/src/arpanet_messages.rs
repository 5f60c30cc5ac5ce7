//! Formulas for messages of several packets in a store-and-forward network (BBN Report 2499, 1973): how many must be
//! in flight to keep a path full, how much a line carries, how many buffers it needs, and what a terminal needs. Input
//! and output are times and bits.

use stackline_core::time::Duration;

/// Data bits of a full packet of the ARPANET (2.1.2).
pub const PACKET_DATA_BITS: f64 = 1008.0;
/// All bits of a full packet of the ARPANET, with its overhead.
pub const PACKET_BITS: f64 = 1160.0;
/// Packets of a full message of the ARPANET.
pub const PACKETS: f64 = 8.0;
/// Propagation delay in seconds per mile; the value that reproduces all 192 entries of Table 1.
pub const SECONDS_A_MILE: f64 = 5.4e-6;
/// Length of a satellite link, in miles.
pub const SATELLITE_MILES: f64 = 45_000.0;

/// A line of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MessageHop {
    /// Rate of the line, bit/s.
    pub bit_s: f64,
    /// Propagation delay in one direction, s.
    pub delay_s: f64,
    /// Whether whole messages are stored before this line, as if it were a path of its own (the satellite of Table 1).
    pub apart: bool,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MessageShape {
    /// Number of packets.
    pub packets: f64,
    /// Bits of each packet on a line, with overhead.
    pub packet_bits: f64,
}

impl MessageShape {
    /// A full message of the ARPANET.
    pub const FULL: Self = Self {
        packets: PACKETS,
        packet_bits: PACKET_BITS,
    };
}

/// Seconds for which a line between IMPs is occupied by `packets` packets with `bytes` bytes of data in all: each
/// packet has overhead, and a routing message is sent every 640 ms (2.1.2).
#[must_use]
pub fn line_s(bytes: f64, packets: f64, bit_s: f64) -> f64 {
    let routing = PACKET_BITS / 0.64;
    (8.0 * bytes + packets * (PACKET_BITS - PACKET_DATA_BITS)) / (bit_s - routing).max(1.0)
}

/// Messages that must be in flight so that a path carries the most it can: round trip / time of one message on the
/// slowest line (2.1.3, `F = (H(T + 2L) + 7T) / 8T` where all lines are alike). A hop that is `apart` counts as a path
/// of its own (Table 1, lower half).
#[must_use]
pub fn in_flight(path: &[MessageHop], shape: MessageShape) -> f64 {
    let whole = path.iter().filter(|hop| !hop.apart);
    let packet = |hop: &MessageHop| shape.packet_bits / hop.bit_s;
    let slowest = whole.clone().map(packet).fold(0.0, f64::max);
    let trip: f64 = whole.map(|hop| packet(hop) + 2.0 * hop.delay_s).sum();
    let joined = if slowest > 0.0 {
        (trip + (shape.packets - 1.0) * slowest) / (shape.packets * slowest)
    } else {
        0.0
    };
    let apart = path.iter().filter(|hop| hop.apart);
    joined
        + apart
            .map(|hop| 1.0 + 2.0 * hop.delay_s / (shape.packets * packet(hop)))
            .sum::<f64>()
}

/// The share of a path's full rate that `in_flight` messages achieve, at most 1 (2.1.3; the rule of 50 % is one
/// message where two are needed).
#[must_use]
pub fn full_rate_share(in_flight: f64, needed: f64) -> f64 {
    (in_flight / needed).min(1.0)
}

/// Messages in flight that keep several independent paths full at once: the sum over the paths (2.2.1.5).
#[must_use]
pub fn of_paths(needed: &[f64]) -> f64 {
    needed.iter().sum()
}

/// The data of hosts that a line carries, bit/s: 16 % are overhead, 2 kbit/s routing (2.1.2). Printed as 40 and 191
/// kbit/s for lines of 50 and 230.4 kbit/s.
#[must_use]
pub fn useful(bit_s: f64) -> f64 {
    0.84 * bit_s - 2000.0
}

/// The parts of the time until a packet is acknowledged (2.1.2), s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Acknowledgement {
    /// Propagation of the packet.
    pub propagation: f64,
    /// Transmission of the packet onto the line.
    pub transmission: f64,
    /// Processing of the packet at the other end.
    pub processing: f64,
    /// Waiting of the acknowledgement for the packet being sent, and for those with precedence.
    pub latency: f64,
    /// Propagation of the acknowledgement.
    pub back: f64,
    /// Transmission of the packet that carries the acknowledgement.
    pub carrier: f64,
    /// Processing of the acknowledgement at this end.
    pub release: f64,
}

impl Acknowledgement {
    /// For a line with the same packets in both directions: an acknowledgement waits for half a packet on average, and
    /// is carried in another.
    #[must_use]
    pub fn over(bit_s: f64, delay_s: f64, packet_bits: f64, processing: f64) -> Self {
        let transmission = packet_bits / bit_s;
        Self {
            propagation: delay_s,
            transmission,
            processing,
            latency: transmission / 2.0,
            back: delay_s,
            carrier: transmission,
            release: processing,
        }
    }

    /// The whole time, s.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.propagation
            + self.transmission
            + self.processing
            + self.latency
            + self.back
            + self.carrier
            + self.release
    }

    /// Packets that must be buffered to keep a line busy whose packets have `packet_bits` bits on average. Linear in
    /// the line's rate and length (2.1.2, Figure 2).
    #[must_use]
    pub fn buffers(&self, bit_s: f64, packet_bits: f64) -> f64 {
        self.total() * bit_s / packet_bits
    }
}

/// The rate that a processor would achieve alone, from its rate when it has only a share of the time (2.2.1.1, Table
/// 3B; 2.2.2.1, Table 6A).
#[must_use]
pub fn unshared_rate(rate: f64, share: f64) -> f64 {
    rate / share
}

/// A terminal at the end of a path, and what a message and its allocate cost on the way (2.1.4).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TerminalModel {
    /// Rate of the terminal, bit/s; ten bits a character.
    pub baud: f64,
    /// The data that a line of the path carries, bit/s.
    pub line_bit_s: f64,
    /// Time until the host sends again, s.
    pub host_s: f64,
}

/// Smallest and largest number of characters of a message.
pub const CHARACTERS: (u32, u32) = (2, 990);

impl TerminalModel {
    /// A terminal on lines of 50 kbit/s, with a host that takes 100 ms.
    #[must_use]
    pub const fn at(baud: f64) -> Self {
        Self {
            baud,
            line_bit_s: 40_000.0,
            host_s: 0.1,
        }
    }

    /// Time to print this number of characters, s.
    #[must_use]
    pub fn prints(&self, characters: f64) -> f64 {
        10.0 * characters / self.baud
    }

    /// Time from the allocate for a number of characters until the last of them is at the terminal's IMP, over `hops`
    /// hops and `miles` miles, s. Where the paper prints no formula this is reconstructed: 72 bits of leaders, packets
    /// stored at each hop, an allocate of 232 bits.
    #[must_use]
    pub fn round_trip(&self, characters: f64, hops: f64, miles: f64) -> f64 {
        let bits = 8.0 * characters + 72.0;
        let packets = libm::ceil(bits / PACKET_DATA_BITS);
        let first = bits.min(PACKET_DATA_BITS) + 152.0;
        let sent = bits + 152.0 * packets + (hops - 1.0) * first + hops * 232.0;
        self.host_s + sent / self.line_bit_s + 2.0 * miles * SECONDS_A_MILE
    }

    /// The smallest buffer, in characters, with which the terminal prints without a pause; `None` where more than a
    /// message would be needed. A double buffer has two of these.
    #[must_use]
    pub fn buffer(&self, hops: f64, miles: f64) -> Option<u32> {
        let suffices = |characters: &u32| {
            let characters = f64::from(*characters);
            self.prints(characters) >= self.round_trip(characters, hops, miles)
        };
        (CHARACTERS.0..=CHARACTERS.1).find(suffices)
    }
}

/// The gain of a line if a second one drains its queue while routing prefers the second: a queue of `queue_packets`
/// packets in each period of routing (2.2.1.5: 25 %).
#[must_use]
pub fn split_gain(queue_packets: f64, packet_bits: f64, bit_s: f64, period: Duration) -> f64 {
    queue_packets * packet_bits / bit_s / period.seconds()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    fn land(hops: usize, miles: f64, bit_s: f64) -> Vec<MessageHop> {
        vec![
            MessageHop {
                bit_s,
                delay_s: miles * SECONDS_A_MILE,
                apart: false
            };
            hops
        ]
    }

    #[test]
    fn entries_of_table_1() {
        let round = |value: f64| libm::round(value * 10.0) / 10.0;
        assert_eq!(
            round(in_flight(&land(8, 100.0, 50e3), MessageShape::FULL)),
            1.9
        );
        assert_eq!(
            round(in_flight(&land(32, 3000.0, 1.4e6), MessageShape::FULL)),
            161.3
        );
        let mut path = land(4, 1000.0, 230.4e3);
        path.push(MessageHop {
            bit_s: 230.4e3,
            delay_s: SATELLITE_MILES * SECONDS_A_MILE,
            apart: true,
        });
        assert_eq!(round(in_flight(&path, MessageShape::FULL)), 15.5);
    }

    #[test]
    fn what_is_useful_and_what_is_kept() {
        assert_eq!(
            (useful(50e3), libm::floor(useful(230.4e3) / 1e3)),
            (40_000.0, 191.0)
        );
        let ack = Acknowledgement::over(50e3, 0.243, PACKET_BITS, 0.001);
        let buffers = ack.buffers(50e3, PACKET_BITS);
        assert!(
            (22.0..24.0).contains(&buffers),
            "one satellite link needs {buffers} of its 32"
        );
        assert_eq!(
            libm::round(
                100.0 * split_gain(8.0, PACKET_BITS, 50e3, Duration::from_seconds(2.0 / 3.0))
            ),
            28.0
        );
        assert_eq!(libm::floor(unshared_rate(505.0, 0.2)), 2525.0);
    }

    #[test]
    fn a_terminal_of_2400_baud_needs_fifty_characters_on_land() {
        let at = TerminalModel::at(2400.0);
        assert!(
            at.buffer(5.0, 425.0)
                .is_some_and(|characters| characters.abs_diff(56) <= 6)
        );
        assert_eq!(
            TerminalModel::at(19_200.0).buffer(8.0, 48_425.0),
            None,
            "no message is long enough"
        );
    }
}
