//! A receiver whose memory is packet buffers instead of bytes (Lantz, Nowicki and Theimer 1985, section 7.1): each
//! packet that arrives occupies a buffer, however small it is, until the application has read it.
//!
//! [`TcpReceiveBuffers`] knows which part of the stream occupies which buffers, and computes a window from the free
//! ones. It holds no bytes, sends nothing and never decides when to acknowledge. Moving packets together takes no time
//! here.

use super::options::PacketBuffers;
use super::sequence_numbers::TcpStreamRange;
use alloc::vec::Vec;

/// The size of a small buffer in bytes.
const SMALL: u64 = PacketBuffers::SMALL as u64;

/// A part of the stream, and the number of buffers that it occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TcpBufferedRange {
    range: TcpStreamRange,
    large: u32,
    small: u32,
}

/// The buffers of a receiver.
#[derive(Clone, Debug)]
pub(super) struct TcpReceiveBuffers {
    plan: PacketBuffers,
    /// Bytes that a large buffer holds: those of the largest packet.
    size: u64,
    /// Bytes that a packet is expected to carry.
    expected: u64,
    /// The parts of the stream in the buffers, ascending; they do not overlap.
    held: Vec<TcpBufferedRange>,
    /// Packets dropped because no buffer was free.
    dropped: u64,
}

impl TcpReceiveBuffers {
    /// Buffers that are all free; a packet has at most `size` bytes.
    pub(super) fn new(plan: PacketBuffers, size: u32) -> Self {
        let size = size.max(1);
        let expected = plan.expected.unwrap_or(size).clamp(1, size);
        Self {
            plan,
            size: size.into(),
            expected: expected.into(),
            held: Vec::new(),
            dropped: 0,
        }
    }

    /// The numbers of large and small buffers in use.
    fn used(&self) -> (u32, u32) {
        self.held.iter().fold((0, 0), |(large, small), held| {
            (large + held.large, small + held.small)
        })
    }

    /// The window that this many free buffers offer, in bytes.
    fn offer(&self, large: u32, small: u32) -> u64 {
        u64::from(large) * self.expected + u64::from(small) * self.expected.min(SMALL)
    }

    /// The window when all buffers are free, in bytes.
    pub(super) fn most(&self) -> u64 {
        self.offer(self.plan.packets, self.plan.small)
    }

    /// The window that the free buffers offer, in bytes.
    pub(super) fn window(&self) -> u64 {
        let (large, small) = self.used();
        self.offer(
            self.plan.packets.saturating_sub(large),
            self.plan.small.saturating_sub(small),
        )
    }

    /// The number of packets dropped because no buffer was free.
    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Takes a packet with a part of the stream, where `next` is expected. Returns true when it is kept or contains
    /// nothing new. A packet behind a gap must leave a buffer for the packet that fills the gap; otherwise both ends
    /// would wait for ever.
    pub(super) fn keep(&mut self, packet: TcpStreamRange, next: u64) -> bool {
        let packet = TcpStreamRange {
            start: packet.start.max(next),
            ..packet
        };
        let Some(range) = self.missing(packet) else {
            return true;
        };
        let spare = u32::from(packet.start > next);
        if let Some((large, small)) = self.free_buffer(range, spare) {
            self.insert(TcpBufferedRange {
                range,
                large,
                small,
            });
            return true;
        }
        self.dropped += 1;
        false
    }

    /// Frees buffers: the application has read everything before that place.
    pub(super) fn read(&mut self, upto: u64) {
        let size = self.size;
        self.held.retain_mut(|held| {
            held.range.start = held.range.start.max(upto).min(held.range.end);
            held.large = held.large.min(held.range.len().div_ceil(size) as u32);
            held.range.len() > 0
        });
    }

    /// The part of a packet that is not kept yet, without what other packets cover at its ends.
    fn missing(&self, packet: TcpStreamRange) -> Option<TcpStreamRange> {
        let mut range = packet;
        for held in &self.held {
            if held.range.start <= range.start {
                range.start = range.start.max(held.range.end);
            } else if held.range.end >= range.end {
                range.end = range.end.min(held.range.start);
            }
        }
        (range.len() > 0).then_some(range)
    }

    /// A free buffer for a packet, as (1 large, 0 small) or (0, 1), if need be after moving packets together. `spare`
    /// large buffers have to stay free.
    fn free_buffer(&mut self, range: TcpStreamRange, spare: u32) -> Option<(u32, u32)> {
        let free = |buffers: &Self| {
            let (large, small) = buffers.used();
            let free = buffers.plan.packets.saturating_sub(large);
            if range.len() <= SMALL && small < buffers.plan.small && free >= spare {
                return Some((0, 1));
            }
            (free > spare).then_some((1, 0))
        };
        free(self).or_else(|| {
            if self.plan.compaction {
                self.compact();
            }
            free(self)
        })
    }

    /// Adds a packet, and frees the buffers of packets that it covers wholly.
    fn insert(&mut self, new: TcpBufferedRange) {
        self.held
            .retain(|held| held.range.end <= new.range.start || held.range.start >= new.range.end);
        let place = self
            .held
            .partition_point(|held| held.range.start < new.range.start);
        self.held.insert(place, new);
    }

    /// Moves packets together that follow each other in the stream, where this frees a buffer.
    fn compact(&mut self) {
        let mut joined: Vec<TcpBufferedRange> = Vec::new();
        for next in &self.held {
            match joined.last_mut() {
                Some(last) if last.range.end == next.range.start => {
                    last.range.end = next.range.end;
                    last.large += next.large;
                    last.small += next.small;
                }
                _ => joined.push(*next),
            }
        }
        let size = self.size;
        let fewer = |run: &TcpBufferedRange| {
            let large = run.range.len().div_ceil(size) as u32;
            // Small buffers do not hold a part of more: all of it goes into large ones that the run has already.
            (large <= run.large && large < run.large + run.small).then_some(TcpBufferedRange {
                large,
                small: 0,
                ..*run
            })
        };
        let held = core::mem::take(&mut self.held);
        for run in joined {
            match fewer(&run) {
                Some(run) => self.held.push(run),
                None => {
                    let inside = |one: &&TcpBufferedRange| {
                        one.range.start >= run.range.start && one.range.end <= run.range.end
                    };
                    self.held.extend(held.iter().filter(inside));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(packets: u32) -> PacketBuffers {
        PacketBuffers {
            packets,
            small: 0,
            expected: None,
            compaction: false,
        }
    }

    /// A packet that is next in order.
    fn keeps(buffers: &mut TcpReceiveBuffers, start: u64, end: u64) -> bool {
        buffers.keep(TcpStreamRange { start, end }, start)
    }

    #[test]
    fn what_lies_behind_a_gap_leaves_a_buffer_for_what_fills_it() {
        let mut buffers = TcpReceiveBuffers::new(
            PacketBuffers {
                small: 1,
                ..plan(2)
            },
            1000,
        );
        assert!(buffers.keep(
            TcpStreamRange {
                start: 2001,
                end: 3001
            },
            1
        ));
        assert!(!buffers.keep(
            TcpStreamRange {
                start: 1001,
                end: 2001
            },
            1
        ));
        assert!(buffers.keep(
            TcpStreamRange {
                start: 3001,
                end: 3002
            },
            1
        ));
        assert!(buffers.keep(
            TcpStreamRange {
                start: 1,
                end: 1001
            },
            1
        ));
        buffers.read(1001);
        assert!(buffers.keep(
            TcpStreamRange {
                start: 1001,
                end: 2001
            },
            1001
        ));
    }

    #[test]
    fn a_packet_takes_a_buffer_however_small_and_a_read_gives_it_back() {
        let mut buffers = TcpReceiveBuffers::new(plan(2), 1000);
        assert_eq!((buffers.most(), buffers.window()), (2000, 2000));
        assert!(keeps(&mut buffers, 1, 11) && keeps(&mut buffers, 11, 1011));
        assert!(!keeps(&mut buffers, 1011, 1021));
        assert_eq!((buffers.window(), buffers.dropped()), (0, 1));
        // A part of a packet that was read frees nothing.
        buffers.read(500);
        assert_eq!(buffers.window(), 1000);
        assert!(keeps(&mut buffers, 1011, 1021) && !keeps(&mut buffers, 1021, 1022));
        buffers.read(1021);
        assert_eq!(buffers.window(), 2000);
    }

    #[test]
    fn the_window_is_what_is_expected_of_packets() {
        let hint = PacketBuffers {
            expected: Some(20),
            small: 3,
            ..plan(4)
        };
        assert_eq!(TcpReceiveBuffers::new(hint, 1000).window(), 140);
        assert_eq!(
            TcpReceiveBuffers::new(
                PacketBuffers {
                    expected: None,
                    ..hint
                },
                1000
            )
            .window(),
            4000 + 3 * 128
        );
        assert_eq!(
            TcpReceiveBuffers::new(
                PacketBuffers {
                    expected: Some(5000),
                    ..plan(4)
                },
                1000
            )
            .window(),
            4000
        );
    }

    #[test]
    fn small_packets_take_small_buffers_first() {
        let mut buffers = TcpReceiveBuffers::new(
            PacketBuffers {
                small: 1,
                ..plan(1)
            },
            1000,
        );
        assert!(keeps(&mut buffers, 1, 129) && keeps(&mut buffers, 129, 150));
        assert!(!keeps(&mut buffers, 150, 151));
        buffers.read(129);
        assert!(!keeps(&mut buffers, 150, 300) && keeps(&mut buffers, 150, 278));
    }

    #[test]
    fn packets_in_order_are_moved_together_and_gaps_stay() {
        let mut buffers = TcpReceiveBuffers::new(
            PacketBuffers {
                compaction: true,
                ..plan(3)
            },
            100,
        );
        for start in [1, 11, 31] {
            assert!(keeps(&mut buffers, start, start + 10));
        }
        // The first two are one, the third lies behind a gap.
        assert!(keeps(&mut buffers, 41, 51) && keeps(&mut buffers, 21, 31));
        assert_eq!(buffers.held.len(), 3);
        assert!(keeps(&mut buffers, 51, 151));
        assert_eq!((buffers.window(), buffers.dropped()), (100, 0));
        assert!(keeps(&mut buffers, 151, 251));
        // 250 bytes fill what there is.
        assert!(!keeps(&mut buffers, 251, 252), "{:?}", buffers.held);
        buffers.read(151);
        assert_eq!(buffers.window(), 200);
    }

    #[test]
    fn what_is_kept_already_takes_nothing() {
        let mut buffers = TcpReceiveBuffers::new(plan(2), 1000);
        assert!(
            keeps(&mut buffers, 100, 200)
                && keeps(&mut buffers, 100, 200)
                && keeps(&mut buffers, 120, 180)
        );
        assert_eq!(buffers.window(), 1000);
        // A larger packet takes the place of what it covers.
        assert!(keeps(&mut buffers, 50, 250));
        assert_eq!((buffers.held.len(), buffers.window()), (1, 1000));
    }

    #[test]
    fn no_order_of_packets_takes_more_buffers_than_there_are() {
        let plan = PacketBuffers {
            packets: 3,
            small: 2,
            expected: None,
            compaction: true,
        };
        let mut buffers = TcpReceiveBuffers::new(plan, 200);
        let (mut state, mut read) = (7_u64, 1);
        for _ in 0..20_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let (start, length) = (read + (state >> 33) % 900, 1 + (state >> 45) % 200);
            buffers.keep(
                TcpStreamRange {
                    start,
                    end: start + length,
                },
                read,
            );
            if state.is_multiple_of(3) {
                read += (state >> 50) % 60;
                buffers.read(read);
            }
            let (large, small) = buffers.used();
            assert!(large <= 3 && small <= 2, "{:?}", buffers.held);
            assert!(
                buffers
                    .held
                    .windows(2)
                    .all(|two| two[0].range.end <= two[1].range.start),
                "{:?}",
                buffers.held
            );
            assert!(buffers.held.iter().all(|held| held.range.len()
                <= u64::from(held.large) * 200 + u64::from(held.small) * 128));
        }
    }
}
