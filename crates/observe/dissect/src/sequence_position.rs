//! Converts TCP sequence numbers to stream offsets: offset 0 is the byte after the SYN. A sequence number is resolved to the offset
//! nearest to the farthest byte so far, so that offsets continue beyond 2^32 and go back for a retransmission.

/// How far one direction of a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The sequence number of offset 0.
    first: u32,
    /// The farthest offset seen so far.
    farthest: u64,
}

impl Position {
    /// The start of a stream whose first byte has the sequence number `first`.
    #[must_use]
    pub const fn new(first: u32) -> Self {
        Self { first, farthest: 0 }
    }

    /// Whether the stream's first byte has this sequence number.
    #[must_use]
    pub const fn begins_at(&self, first: u32) -> bool {
        self.first == first
    }

    /// The farthest offset so far.
    #[must_use]
    pub const fn farthest(&self) -> u64 {
        self.farthest
    }

    /// The offset of a sequence number; `None` if it lies before the start of the stream.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "sequence numbers wrap around"
    )]
    #[must_use]
    pub fn offset(&self, sequence: u32) -> Option<u64> {
        let expected = self.first.wrapping_add(self.farthest as u32);
        self.farthest
            .checked_add_signed(i64::from(sequence.wrapping_sub(expected).cast_signed()))
    }

    /// Notes that bytes up to the offset `to` were seen.
    pub fn advance(&mut self, to: u64) {
        self.farthest = self.farthest.max(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_go_on_beyond_the_wrap_and_back_but_not_before_the_stream() {
        let first = u32::MAX - 9;
        let mut position = Position::new(first);
        assert_eq!(position.offset(first), Some(0));
        assert_eq!(position.offset(first.wrapping_sub(1)), None);
        for round in 0..20_u64 {
            let offset = round << 30;
            position.advance(offset);
            assert_eq!(
                position.offset(first.wrapping_add(offset as u32)),
                Some(offset)
            );
            assert_eq!(
                position.offset(first.wrapping_add(offset as u32).wrapping_add(100)),
                Some(offset + 100)
            );
        }
        position.advance(5);
        assert_eq!(
            (position.farthest(), position.begins_at(first)),
            (19 << 30, true)
        );
    }
}
