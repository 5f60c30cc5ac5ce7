//! Trains: packets that leave in one call. A train is made of runs that follow each other in the stream, of one or several blasts. Also
//! computes how many packets can go or come as one.

use stackline_proto::blast::BlastPacketRun;

/// Bytes of the longest UDP payload over IPv4, which is shorter than over IPv6 (RFC 768, RFC 791): no kernel takes or brings
/// more as one.
pub(crate) const LONGEST: usize = 65_507;
/// Most packets of a train, and most places for those that come.
pub(crate) const PACKETS: usize = 128;
/// With fewer packets than this, all go as one train.
const TWO: u32 = 16;

/// Packets that leave as one.
#[derive(Default)]
pub(crate) struct Train {
    /// Stream position of the first byte.
    pub(crate) from: u64,
    /// Stream position behind the last byte.
    pub(crate) to: u64,
    /// How many packets.
    pub(crate) packets: u32,
    /// Bytes of data in each packet but the last.
    pub(crate) each: u32,
}

impl Train {
    /// Whether a run can be added: it follows in the stream, and all packets so far are full.
    pub(crate) fn continues_with(&self, run: &BlastPacketRun) -> bool {
        let full = self.from + u64::from(self.packets) * u64::from(self.each);
        self.packets > 0 && run.span(0).0 == self.to && self.to == full
    }

    pub(crate) fn add(&mut self, run: &BlastPacketRun) {
        let (last, bytes) = run.span(run.count - 1);
        if self.packets == 0 {
            (self.from, self.each) = (run.span(0).0, run.packet);
        }
        self.to = last + u64::from(bytes);
        self.packets += run.count;
    }
}

/// How many packets of so many bytes, head and payload, can go or come as one: at most `most`, at least one.
pub(crate) fn joined_packets(bytes: usize, most: usize) -> usize {
    (LONGEST / bytes.max(1)).min(most).max(1)
}

/// Packets of a train where `bytes` are sent to an end that sleeps: two halves rather than one train and a rest, so that it
/// wakes and takes the first half while the second is copied.
pub(crate) fn first_train(bytes: u64, packet: u32, long: u32) -> u32 {
    match u32::try_from(bytes.div_ceil(u64::from(packet))) {
        Ok(packets) if packets >= TWO && packets < 2 * long => packets.div_ceil(2).min(long),
        _ => long,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_go_as_one_as_the_longest_payload_holds() {
        assert_eq!(
            [
                joined_packets(1472, PACKETS),
                joined_packets(100, PACKETS),
                joined_packets(1472, 10)
            ],
            [44, 128, 10]
        );
        assert_eq!(
            [
                joined_packets(LONGEST, PACKETS),
                joined_packets(LONGEST + 1, PACKETS),
                joined_packets(0, 0)
            ],
            [1; 3]
        );
    }

    #[test]
    fn between_one_and_two_trains_are_sent_in_halves() {
        assert_eq!(first_train(65_536, 1440, 44), 23);
        assert_eq!(first_train(20_000, 1440, 44), 44, "few packets go at once");
        assert_eq!(first_train(40_000, 1440, 44), 14);
        assert_eq!(first_train(1 << 30, 1440, 44), 44);
        assert_eq!(first_train(u64::MAX, 1, 128), 128);
        assert_eq!(first_train(3, 65_475, 1), 1);
    }
}
