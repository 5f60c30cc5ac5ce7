//! Cuts a stream into pieces of whole lines, in one buffer of fixed size, however long the stream and its lines are.

use memchr::{memchr, memrchr};
use std::io::{ErrorKind, Read, Result};

/// Size of the buffer, in bytes; larger than the longest line that is accepted (1 MiB).
const BUFFER: usize = 2 << 20;

/// Reads a stream in pieces of whole lines.
pub(super) struct Chunks<R> {
    from: R,
    buffer: Vec<u8>,
    /// Bytes of the buffer that hold data.
    filled: usize,
    /// Bytes at the beginning of the buffer that the last piece covered; they are dropped at the next call.
    given: usize,
    /// Whether the next bytes are the rest of a line that is too long.
    skipping: bool,
    /// Whether the stream has ended.
    ended: bool,
}

/// A piece of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Chunk<'b> {
    /// Whole lines; only the stream's last line may lack its line break.
    Lines(&'b [u8]),
    /// A line that is longer than the buffer; it is skipped.
    TooLong,
}

impl<R: Read> Chunks<R> {
    /// Reads from that stream.
    pub(super) fn new(from: R) -> Self {
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

    /// The next piece; `None` after the last.
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

    /// Reads until the buffer is full or the stream ends.
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
