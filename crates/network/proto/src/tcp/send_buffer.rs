//! How much data a send buffer accepts when its size, or its unsent bytes, are bounded, as in Linux. Memory and unsent
//! bytes are compared with their limits only where a new block of data begins; a block that is not full yet takes more
//! without a check. So an end may have far more in flight than was asked for, until a whole block waits.
//!
//! The functions only compute. Source: Linux 6.18, `tcp_sendmsg_locked`, `tcp_tso_autosize`, `sk_stream_write_space`,
//! `tcp_stream_memory_free`.

use stackline_core::time::Duration;

/// The most bytes of a block.
// 65,536 less one and less Linux's room for headers (`MAX_TCP_HEADER`, 320).
const BLOCK: u64 = 65_215;
/// Bytes of memory that the description of a block takes (Linux's socket buffer structures).
pub(super) const DESCRIPTION: u64 = 1536;
/// A piece (the data handed to the interface at once) is what leaves in 2^-10 s at the pace of the sender.
const PIECE_SHIFT: u32 = 10;
/// The least number of segments in a piece.
const LEAST_SEGMENTS: u64 = 2;
/// On short paths pieces are longer: the bytes added are halved for every 2^9 us of the least round trip.
const ROUND_TRIP_SHIFT: u32 = 9;

/// The state of a sender that matters to its send buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendBuffer {
    /// The limit of memory, in bytes.
    pub(super) limit: u64,
    /// Bytes of memory that the description of each piece takes.
    pub(super) description: u64,
    /// No block begins while this many bytes have not been sent.
    pub(super) lowat: u64,
    /// Bytes of data in a full segment.
    pub(super) segment: u64,
    /// Bytes that are sent at once.
    pub(super) piece: u64,
    /// Bytes that the windows let the sender send now.
    pub(super) may_leave: u64,
    /// Bytes that are not acknowledged, sent or not.
    pub(super) held: u64,
    /// Bytes that have not been sent.
    pub(super) unsent: u64,
    /// Unsent bytes in the last block.
    pub(super) last: u64,
}

impl SendBuffer {
    /// Bytes of a whole block.
    const fn block(&self) -> u64 {
        let blocks = BLOCK / self.segment;
        if blocks == 0 {
            self.segment
        } else {
            blocks * self.segment
        }
    }

    /// The memory in use, in bytes.
    pub(super) const fn memory(&self) -> u64 {
        self.held + self.held.div_ceil(self.piece) * self.description
    }

    /// Whether enough is free to wake a writer: a third of the memory, and half of the bytes that may wait to be sent.
    pub(super) const fn has_room(&self) -> bool {
        self.memory() <= self.limit / 3 * 2 && self.unsent.saturating_mul(2) < self.lowat
    }

    /// How many of `wanted` bytes are accepted, and the unsent bytes in the last block then.
    pub(super) fn take(mut self, wanted: u64) -> (u64, u64) {
        let (block, mut taken) = (self.block(), 0);
        self.last = self.last.min(self.unsent);
        while taken < wanted {
            if self.last == 0 || self.last >= block {
                if self.memory() >= self.limit || self.unsent >= self.lowat {
                    break;
                }
                self.last = 0;
            }
            let more = (block - self.last).min(wanted - taken);
            (self.last, self.held, self.unsent) =
                (self.last + more, self.held + more, self.unsent + more);
            taken += more;
            if self.last == block {
                let leaves =
                    self.piece.min(self.may_leave).min(self.last) / self.segment * self.segment;
                (self.last, self.may_leave) = (self.last - leaves, self.may_leave - leaves);
                self.unsent -= leaves;
            }
        }
        (taken, self.last)
    }
}

/// The bytes that a sender sends at once, for a window in segments of `segment` bytes. Its pace is a window each round
/// trip, times 2 in slow start and 1.2 otherwise.
pub(super) fn piece(
    window: u64,
    segment: u64,
    slow_start: bool,
    smoothed: Duration,
    least: Duration,
) -> u64 {
    let parts = if slow_start { 200 } else { 120 };
    // Parts are hundredths, and 10^9 ns are a second.
    let a_second =
        u128::from(window * segment) * parts * 10_000_000 / u128::from(smoothed.0.max(1));
    let shift = u32::try_from((least.0 / 1000) >> ROUND_TRIP_SHIFT).unwrap_or(u32::MAX);
    let near = BLOCK.checked_shr(shift).unwrap_or(0);
    let bytes = (a_second >> PIECE_SHIFT).min(u128::from(BLOCK)) as u64 + near;
    let segments = (bytes.min(BLOCK) / segment).max(LEAST_SEGMENTS);
    segments * segment
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: u64 = 65_160;

    fn buffer(limit: u64, held: u64, unsent: u64, last: u64) -> SendBuffer {
        let (description, lowat) = (DESCRIPTION, u64::MAX);
        SendBuffer {
            limit,
            description,
            lowat,
            segment: 1448,
            piece: 7 * 1448,
            may_leave: 0,
            held,
            unsent,
            last,
        }
    }

    #[test]
    fn no_block_begins_while_too_much_has_not_left() {
        let at = |unsent, last| SendBuffer {
            lowat: 32_768,
            ..buffer(4 << 20, 500_000, unsent, last)
        };
        assert_eq!(at(32_767, 0).take(100_000), (FULL, FULL));
        assert_eq!(at(32_768, 0).take(100_000), (0, 0));
        // What has begun is filled.
        assert_eq!(at(60_000, 60_000).take(100_000), (FULL - 60_000, FULL));
        assert_eq!(
            [16_383, 16_384].map(|unsent| at(unsent, 0).has_room()),
            [true, false]
        );
    }

    #[test]
    fn a_block_begins_only_where_memory_is_free() {
        assert_eq!(buffer(32_768, 0, 0, 0).take(100_000), (FULL, FULL));
        assert_eq!(buffer(131_072, 0, 0, 0).take(300_000), (2 * FULL, FULL));
        assert_eq!(buffer(32_768, 40_000, 0, 0).take(100_000), (0, 0));
    }

    #[test]
    fn a_block_that_has_begun_is_filled_without_a_look() {
        assert_eq!(buffer(32_768, 90_000, 500, 500).take(1000), (1000, 1500));
        assert_eq!(
            buffer(32_768, 90_000, 500, 500).take(100_000),
            (FULL - 500, FULL)
        );
    }

    #[test]
    fn what_leaves_meanwhile_makes_room_in_the_block() {
        let open = SendBuffer {
            may_leave: 100 * 1448,
            ..buffer(32_768, 0, 0, 0)
        };
        let (taken, last) = open.take(1_000_000);
        assert_eq!((taken, last), (FULL + 100 * 1448, FULL));
        // At rates at which a whole block leaves at once it is looked at again.
        assert_eq!(
            SendBuffer {
                piece: FULL,
                ..open
            }
            .take(1_000_000),
            (FULL, 0)
        );
    }

    #[test]
    fn a_writer_is_woken_when_a_third_is_free() {
        let woken = [18_000, 19_000].map(|held| buffer(32_768, held, 0, 0).has_room());
        assert_eq!(woken, [true, false]);
    }

    #[test]
    fn a_piece_is_a_thousandth_of_a_second() {
        let ms = |n: u64| Duration(n * 1_000_000);
        assert_eq!(piece(317, 1448, false, ms(48), ms(40)), 7 * 1448);
        assert_eq!(piece(10, 1448, true, ms(40), ms(40)), 2 * 1448);
        assert_eq!(
            piece(100, 1448, false, Duration(50_000), Duration(50_000)),
            FULL
        );
    }
}
