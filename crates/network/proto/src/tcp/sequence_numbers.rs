//! Sequence numbers as places in a stream: 64 bits inside the machine, so that nothing wraps, and 32 bits on the wire.

/// The initial sequence number of a direction. Place 0 is the SYN, place 1 the first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TcpSequenceOrigin(pub(super) u32);

impl TcpSequenceOrigin {
    /// The 32-bit sequence number of a place.
    pub(super) const fn wire(self, place: u64) -> u32 {
        self.0.wrapping_add(place as u32)
    }

    /// The place nearest to `near` with that 32-bit sequence number; `None` before the beginning.
    pub(super) const fn place(self, wire: u32, near: u64) -> Option<u64> {
        let ahead = wire.wrapping_sub(self.wire(near)) as i32;
        near.checked_add_signed(ahead as i64)
    }
}

/// A range of places, its end excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TcpStreamRange {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl TcpStreamRange {
    pub(super) const fn len(self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_again_across_a_wrap() {
        let origin = TcpSequenceOrigin(u32::MAX - 5);
        for near in [0, 1, 6, 10, 1 << 31, (1 << 32) + 3, 10 << 32] {
            for step in [0, 1, 100, 1 << 30] {
                assert_eq!(
                    origin.place(origin.wire(near + step), near),
                    Some(near + step)
                );
            }
        }
        assert_eq!(origin.place(u32::MAX - 6, 0), None);
    }
}
