//! A stream cut into pieces of whole lines, in one buffer, however long it and its lines are.

use memchr::{memchr, memrchr};
use std::io::{ErrorKind, Read, Result};

/// Bytes that are read at once; more than the longest line.
const BUFFER: usize = 2 << 20;

/// Pieces of a stream.
pub(super) struct Chunks<R> {
    from: R,
    buffer: Vec<u8>,
    filled: usize,
    /// How much of it was given last.
    given: usize,
    /// Within a line that is too long.
    skipping: bool,
    ended: bool,
}

/// A piece.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Chunk<'b> {
    /// Whole lines; only the last of the stream may lack its end.
    Lines(&'b [u8]),
    /// A line that is longer than the buffer.
    TooLong,
}

impl<R: Read> Chunks<R> {
    /// Of that.
    pub(super) fn of(from: R) -> Self {
        Self::with_buffer(from, BUFFER)
    }

    fn with_buffer(from: R, length: usize) -> Self {
        Self {
            from,
            buffer: vec![0; length],
            filled: 0,
            given: 0,
            skipping: false,
            ended: false,
        }
    }

    /// The next piece; `None` behind the last.
    pub(super) fn next(&mut self) -> Result<Option<Chunk<'_>>> {
        loop {
            self.buffer.copy_within(self.given..self.filled, 0);
            self.filled -= std::mem::take(&mut self.given);
            self.fill()?;
            let filled = &self.buffer[..self.filled];
            if self.skipping {
                let end = memchr(b'\n', filled);
                self.given = end.map_or(self.filled, |end| end + 1);
                self.skipping = end.is_none() && !self.ended;
                if self.ended && end.is_none() {
                    return Ok(None);
                }
                continue;
            }
            self.given = match memrchr(b'\n', filled) {
                Some(end) => end + 1,
                None if self.ended => self.filled,
                None => {
                    self.skipping = true;
                    self.given = self.filled;
                    return Ok(Some(Chunk::TooLong));
                }
            };
            return Ok((self.given > 0).then_some(Chunk::Lines(&self.buffer[..self.given])));
        }
    }

    fn fill(&mut self) -> Result<()> {
        while !self.ended && self.filled < self.buffer.len() {
            match self.from.read(&mut self.buffer[self.filled..]) {
                Ok(0) => self.ended = true,
                Ok(length) => self.filled += length,
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
                Err(cause) => return Err(cause),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces(text: &str, length: usize) -> (Vec<String>, usize) {
        let mut chunks = Chunks::with_buffer(text.as_bytes(), length);
        let (mut lines, mut too_long) = (Vec::new(), 0);
        while let Some(chunk) = chunks.next().unwrap() {
            match chunk {
                Chunk::Lines(bytes) => lines.extend(
                    std::str::from_utf8(bytes)
                        .unwrap()
                        .lines()
                        .map(str::to_owned),
                ),
                Chunk::TooLong => too_long += 1,
            }
        }
        (lines, too_long)
    }

    proptest! {
        #[test]
        fn every_line_comes_whole_and_only_those_that_do_not_fit_are_left_out(text in "[ab\n]{0,60}", length in 1_usize..12) {
            let (short, long): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.len() < length);
            let (lines, too_long) = pieces(&text, length);
            // The last one may fill the buffer without an end.
            let last = usize::from(lines.len() > short.len());
            prop_assert!(last == 0 || text.lines().last().is_some_and(|line| line.len() == length));
            prop_assert_eq!(&lines[..short.len()], &short[..]);
            prop_assert_eq!(too_long + last, long.len());
        }
    }
}
