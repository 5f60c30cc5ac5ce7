//! Parses records: a short head announces the length of a body. How much of a body is held is limited by the reader, not by the announced
//! length, and parts that were not captured are skipped.

/// Bytes of one side that are not consumed yet.
#[derive(Debug)]
pub(super) struct RecordInput<'b> {
    /// The offset of the first byte in the side's stream.
    pub(super) at: u64,
    pub(super) bytes: &'b [u8],
}

impl<'b> RecordInput<'b> {
    /// Consumes up to `most` bytes.
    pub(super) fn take(&mut self, most: u64) -> &'b [u8] {
        let count = usize::try_from(most)
            .unwrap_or(usize::MAX)
            .min(self.bytes.len());
        let (taken, left) = self.bytes.split_at(count);
        self.at += count as u64;
        self.bytes = left;
        taken
    }
}

/// The memory, in bytes, that the parser keeps allocated between records.
const SMALL: usize = 256;

/// What the head of a record says about its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// The head is not complete.
    More,
    /// The record has `length` bytes with its head, of which the first `keep` are to be held.
    Record { length: u64, keep: usize },
    /// The bytes are not a head of the protocol.
    Wrong,
}

/// The result of feeding bytes to the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordProgress {
    /// The head of a record is complete.
    Head,
    /// A record is complete.
    Whole,
    /// The bytes are not of the protocol.
    Wrong,
}

/// The effect of bytes that were not captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Skipped {
    /// They all belong to the body of the current record, which goes on.
    Within,
    /// They all belong to the body of the current record, which ends with them.
    Whole,
    /// They begin in the body of the current record and extend beyond its end; the position of the next record is lost.
    Beyond,
    /// They contain a part of a head: the position of records is lost.
    Lost,
}

/// The parser of one side.
#[derive(Debug, Default)]
pub(super) struct RecordParser {
    stage: RecordParserStage,
    /// The first bytes of the record.
    held: Vec<u8>,
    /// The offset of the record's first byte.
    at: u64,
    /// The number of the record's bytes so far, captured or not.
    taken: u64,
    /// Whether bytes of the body were not captured; later ones are not held then.
    gap: bool,
}

/// What the parser reads next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RecordParserStage {
    /// No record has begun.
    #[default]
    Between,
    /// The head of a record.
    Head,
    /// The body of a record.
    Body {
        /// The record's length in bytes, with its head.
        length: u64,
        /// How many of its first bytes are to be held.
        keep: usize,
    },
}

impl RecordParser {
    /// The offset of the first byte of the current record, or of the last one until another begins.
    pub(super) const fn at(&self) -> u64 {
        self.at
    }

    /// The offset behind the last byte taken of the record.
    pub(super) const fn end(&self) -> u64 {
        self.at + self.taken
    }

    /// The first bytes of the record, as far as they are to be held and were captured.
    pub(super) fn held(&self) -> &[u8] {
        &self.held
    }

    /// Whether everything taken of the record is held.
    pub(super) fn is_held_whole(&self) -> bool {
        self.held.len() as u64 == self.taken
    }

    /// Whether the input is between two records.
    pub(super) fn is_between(&self) -> bool {
        self.stage == RecordParserStage::Between
    }

    /// Takes bytes until a head or a record is complete; `None` when all bytes are consumed.
    pub(super) fn next(
        &mut self,
        input: &mut RecordInput<'_>,
        extent: impl Fn(&[u8]) -> Extent,
    ) -> Option<RecordProgress> {
        let RecordParserStage::Body { length, keep } = self.stage else {
            return self.head(input, extent);
        };
        let bytes = input.take(length - self.taken);
        self.taken += bytes.len() as u64;
        if !self.gap {
            let room = keep.saturating_sub(self.held.len());
            self.held.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        (self.taken == length).then(|| self.is_whole())
    }

    /// Takes bytes of a head, one at a time, until `extent` knows the length of the record.
    fn head(
        &mut self,
        input: &mut RecordInput<'_>,
        extent: impl Fn(&[u8]) -> Extent,
    ) -> Option<RecordProgress> {
        loop {
            let at = input.at;
            let byte = *input.take(1).first()?;
            if self.stage == RecordParserStage::Between {
                self.held.clear();
                self.held.shrink_to(SMALL);
                (self.stage, self.at, self.taken, self.gap) =
                    (RecordParserStage::Head, at, 0, false);
            }
            self.held.push(byte);
            self.taken += 1;
            match extent(&self.held) {
                Extent::More => {}
                Extent::Record { length, keep } => {
                    self.stage = RecordParserStage::Body {
                        length: length.max(self.taken),
                        keep,
                    };
                    return Some(RecordProgress::Head);
                }
                Extent::Wrong => {
                    self.stage = RecordParserStage::Between;
                    return Some(RecordProgress::Wrong);
                }
            }
        }
    }

    /// Ends the current record.
    fn is_whole(&mut self) -> RecordProgress {
        self.stage = RecordParserStage::Between;
        RecordProgress::Whole
    }

    /// Skips bytes that were not captured.
    pub(super) fn unseen(&mut self, count: u64) -> Skipped {
        let RecordParserStage::Body { length, .. } = self.stage else {
            self.stage = RecordParserStage::Between;
            return Skipped::Lost;
        };
        let left = length - self.taken;
        (self.gap, self.taken) = (true, self.taken + count.min(left));
        if count < left {
            return Skipped::Within;
        }
        self.is_whole();
        if count == left {
            Skipped::Whole
        } else {
            Skipped::Beyond
        }
    }

    /// Forgets the current record: a new one begins with the next byte.
    pub(super) fn begin_anew(&mut self) {
        self.stage = RecordParserStage::Between;
    }
}

/// Reads the fields of a record from its beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordFieldReader<'b>(pub(super) &'b [u8]);

impl<'b> RecordFieldReader<'b> {
    /// The next `count` bytes, if there are as many.
    pub(super) fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, left) = self.0.split_at_checked(count)?;
        self.0 = left;
        Some(taken)
    }

    /// An unsigned integer of up to eight bytes, big-endian.
    pub(super) fn number(&mut self, width: usize) -> Option<usize> {
        Some(
            self.take(width)?
                .iter()
                .fold(0, |number, byte| number << 8 | usize::from(*byte)),
        )
    }

    /// An unsigned integer of up to eight bytes, little-endian.
    pub(super) fn little(&mut self, width: usize) -> Option<u64> {
        Some(
            self.take(width)?
                .iter()
                .rev()
                .fold(0, |number, byte| number << 8 | u64::from(*byte)),
        )
    }

    /// Bytes that follow their length, which is a big-endian integer of `width` bytes; fewer if the record ends before.
    pub(super) fn vector(&mut self, width: usize) -> Option<&'b [u8]> {
        let length = self.number(width)?;
        self.take(length.min(self.0.len()))
    }

    /// The text up to a zero byte or the end.
    pub(super) fn text(&mut self) -> &'b [u8] {
        let end = self.0.iter().position(|byte| *byte == 0);
        let text = &self.0[..end.unwrap_or(self.0.len())];
        self.0 = &self.0[end.map_or(self.0.len(), |end| end + 1)..];
        text
    }
}
