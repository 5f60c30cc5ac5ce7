//! Records: a short head that announces how long its body is. What is held of a body is bounded by its reader, not by what is
//! announced, and what was not seen of it is skipped.

/// Bytes of one side that are to be looked at, and where they stand in its stream.
#[derive(Debug)]
pub(super) struct RecordInput<'b> {
    pub(super) at: u64,
    pub(super) bytes: &'b [u8],
}

impl<'b> RecordInput<'b> {
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

/// Bytes that are kept ready for the next record.
const SMALL: usize = 256;

/// What a head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// It is not whole.
    More,
    /// The record has so many bytes with its head, of which the first few are wanted.
    Record { length: u64, keep: usize },
    /// It is not a head of the protocol.
    Wrong,
}

/// What bytes complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordProgress {
    /// A head.
    Head,
    /// A record.
    Whole,
    /// Nothing: the bytes are not of the protocol.
    Wrong,
}

/// What it means that bytes were not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Skipped {
    /// They are of the body of the record that goes on.
    Within,
    /// So they are, and it is whole with them.
    Whole,
    /// So are some, and it is whole; what follows it is unknown.
    Beyond,
    /// They are of a head.
    Lost,
}

/// One side of a protocol of records.
#[derive(Debug, Default)]
pub(super) struct RecordParser {
    stage: RecordParserStage,
    held: Vec<u8>,
    at: u64,
    taken: u64,
    /// Bytes that were wanted were not seen.
    gap: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RecordParserStage {
    #[default]
    Between,
    Head,
    Body {
        length: u64,
        keep: usize,
    },
}

impl RecordParser {
    /// The offset of the record's first byte; of the last record until another one begins.
    pub(super) const fn at(&self) -> u64 {
        self.at
    }

    /// Behind the last byte of it that was taken.
    pub(super) const fn end(&self) -> u64 {
        self.at + self.taken
    }

    /// Its first bytes, as far as they are wanted and were seen.
    pub(super) fn held(&self) -> &[u8] {
        &self.held
    }

    /// Whether all that was taken of it is held.
    pub(super) fn is_held_whole(&self) -> bool {
        self.held.len() as u64 == self.taken
    }

    /// Whether no record has begun that is not whole.
    pub(super) fn is_between(&self) -> bool {
        self.stage == RecordParserStage::Between
    }

    /// Takes bytes until something is whole; `None`: they are used up.
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

    fn is_whole(&mut self) -> RecordProgress {
        self.stage = RecordParserStage::Between;
        RecordProgress::Whole
    }

    /// So many bytes follow that were not seen.
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

    /// Whatever went on is forgotten: a record begins with the next byte.
    pub(super) fn begin_anew(&mut self) {
        self.stage = RecordParserStage::Between;
    }
}

/// Fields of a record, read from its beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordFieldReader<'b>(pub(super) &'b [u8]);

impl<'b> RecordFieldReader<'b> {
    /// The next bytes, if there are so many.
    pub(super) fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, left) = self.0.split_at_checked(count)?;
        self.0 = left;
        Some(taken)
    }

    /// A number of up to eight bytes, the first of which weighs most.
    pub(super) fn number(&mut self, width: usize) -> Option<usize> {
        Some(
            self.take(width)?
                .iter()
                .fold(0, |number, byte| number << 8 | usize::from(*byte)),
        )
    }

    /// A number of up to eight bytes, the last of which weighs most.
    pub(super) fn little(&mut self, width: usize) -> Option<u64> {
        Some(
            self.take(width)?
                .iter()
                .rev()
                .fold(0, |number, byte| number << 8 | u64::from(*byte)),
        )
    }

    /// What a number before it says how long it is; less, where the bytes end before.
    pub(super) fn vector(&mut self, width: usize) -> Option<&'b [u8]> {
        let length = self.number(width)?;
        self.take(length.min(self.0.len()))
    }

    /// Text up to a zero byte, or to the end.
    pub(super) fn text(&mut self) -> &'b [u8] {
        let end = self.0.iter().position(|byte| *byte == 0);
        let text = &self.0[..end.unwrap_or(self.0.len())];
        self.0 = &self.0[end.map_or(self.0.len(), |end| end + 1)..];
        text
    }
}
