//! Parses a RESP value byte by byte: how deeply it is nested and where it ends, with its first words.

use super::super::records::RecordInput;
use super::super::{LONGEST_NAME, RedactedName};
use crate::left_out::Bound;
use stackline_redact::redis;

/// The most bytes of a line that are held.
const LONGEST_LINE: usize = Bound::Line.most();
/// The most words that are held, with at most [`LONGEST_NAME`] bytes each.
const MOST_WORDS: usize = 10;
/// The deepest nesting of values that is followed.
const DEEPEST: usize = Bound::Depth.most();
/// The longest string in bytes, and the most elements of an array; larger numbers are not taken as RESP.
const MOST: i64 = 1 << 40;

/// The result of feeding bytes to the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RespProgress {
    /// A part of the value is complete.
    More,
    /// The value is complete.
    Whole,
    /// The bytes are not RESP.
    Wrong,
    /// Values are nested deeper than is followed.
    Deep,
}

/// The value being read.
#[derive(Debug, Default)]
pub(super) struct RespValueParser {
    /// The offset of its first byte.
    at: u64,
    /// The bytes of an incomplete line.
    line: Vec<u8>,
    /// How many bytes of a string are still to come, with the line end behind it.
    string: Option<u64>,
    /// How many elements are still to come, on each level; the first level is the value itself.
    left: Vec<u64>,
    /// The mark of the value's type.
    kind: u8,
    /// The number behind the mark: of elements or bytes, -1 for a null, 0 for other values.
    number: i64,
    /// Its first elements, or its text.
    words: Vec<Vec<u8>>,
    /// Whether the string being read is the last of the words.
    is_word: bool,
    /// Whether bytes of the string being read were not captured.
    gap: bool,
    /// Whether a line was longer than is held.
    cut: bool,
}

impl RespValueParser {
    /// The offset of the value's first byte.
    pub(super) const fn at(&self) -> u64 {
        self.at
    }

    /// The mark of the value's type; 0 before it is known.
    pub(super) const fn kind(&self) -> u8 {
        self.kind
    }

    /// The value's first elements, or its text.
    pub(super) fn words(&self) -> &[Vec<u8>] {
        &self.words
    }

    /// The first word, once it is complete.
    pub(super) fn first_word(&self) -> Option<&[u8]> {
        let goes_on = self.words.len() == 1 && self.string.is_some();
        self.words.first().filter(|_| !goes_on).map(Vec::as_slice)
    }

    /// The number of the value's elements.
    pub(super) fn count(&self) -> usize {
        usize::try_from(self.number).unwrap_or(0)
    }

    /// Whether a line was cut since the last call.
    pub(super) const fn take_cut(&mut self) -> bool {
        std::mem::replace(&mut self.cut, false)
    }

    /// Whether the input is between two values.
    pub(super) fn is_between(&self) -> bool {
        self.left.is_empty() && self.line.is_empty()
    }

    /// Takes bytes until something is complete; `None` when all bytes are consumed. With `commands`, a value may also be a line of words.
    pub(super) fn next(
        &mut self,
        input: &mut RecordInput<'_>,
        commands: bool,
    ) -> Option<RespProgress> {
        if let Some(left) = self.string {
            return self.text(left, input);
        }
        if self.is_between() {
            // Empty lines between commands are skipped.
            while commands && matches!(input.bytes.first(), Some(b'\r' | b'\n')) {
                input.take(1);
            }
            (self.at, self.kind, self.number, self.gap) = (input.at, 0, 0, false);
            self.words.clear();
        }
        let end = input.bytes.iter().position(|byte| *byte == b'\n');
        let bytes = input.take(end.map_or(u64::MAX, |end| end as u64 + 1));
        let room = LONGEST_LINE.saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
        // The end of a line takes no room.
        self.cut |= bytes.trim_ascii_end().len() > room;
        end?;
        let line = std::mem::take(&mut self.line);
        let token = self.line(line.trim_ascii_end(), commands);
        self.line = line;
        self.line.clear();
        Some(token)
    }

    /// Skips bytes that were not captured. Returns false if they are not all inside one string: the position is then lost.
    pub(super) fn unseen(&mut self, count: u64) -> bool {
        match self.string {
            // The line end behind a string completes it, so that must have been captured.
            Some(left) if count < left => {
                (self.string, self.gap) = (Some(left - count), true);
                true
            }
            _ => false,
        }
    }

    /// Takes bytes of a string.
    fn text(&mut self, left: u64, input: &mut RecordInput<'_>) -> Option<RespProgress> {
        let bytes = input.take(left);
        let left = left - bytes.len() as u64;
        let of_text = bytes
            .len()
            // The last two bytes are the line end: what has come of them is not text.
            .saturating_sub(2_u64.saturating_sub(left) as usize);
        if let Some(word) = self.words.last_mut().filter(|_| self.is_word && !self.gap) {
            let room = LONGEST_NAME.saturating_sub(word.len());
            word.extend_from_slice(&bytes[..of_text.min(room)]);
        }
        self.string = Some(left).filter(|left| *left > 0);
        (left == 0).then(|| self.settle())
    }

    /// Takes a complete line.
    fn line(&mut self, line: &[u8], commands: bool) -> RespProgress {
        let Some((&mark, rest)) = line.split_first() else {
            return RespProgress::Wrong;
        };
        if commands && self.left.is_empty() && mark.is_ascii_alphabetic() {
            return self.words_of(line);
        }
        if commands && self.left.is_empty() && mark != b'*' {
            return RespProgress::Wrong;
        }
        let number = || {
            std::str::from_utf8(rest)
                .ok()
                .and_then(|text| text.parse::<i64>().ok())
        };
        match mark {
            b'*' | b'>' | b'~' | b'%' | b'|' => match number() {
                Some(number @ -1..=MOST) => self.elements(mark, number),
                _ => RespProgress::Wrong,
            },
            b'$' | b'!' | b'=' => match number() {
                Some(-1) => self.scalar(mark, -1, b""),
                Some(number @ 0..=MOST) => {
                    self.begins(mark, number);
                    self.is_word = self.word(b"");
                    (self.string, self.gap) = (Some(number as u64 + 2), false);
                    RespProgress::More
                }
                _ => RespProgress::Wrong,
            },
            b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => self.scalar(mark, 0, rest),
            _ => RespProgress::Wrong,
        }
    }

    /// Takes a command that is a line of words.
    fn words_of(&mut self, line: &[u8]) -> RespProgress {
        let words = line
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        self.words = words
            .take(MOST_WORDS)
            .map(|word| word[..word.len().min(LONGEST_NAME)].to_vec())
            .collect();
        self.number = self.words.len() as i64;
        RespProgress::Whole
    }

    /// A value or an element begins.
    fn begins(&mut self, mark: u8, number: i64) {
        if self.left.is_empty() {
            self.left.push(1);
        }
        if self.left.len() == 1 {
            (self.kind, self.number) = (mark, number);
            self.words.clear();
        }
        if let Some(left) = self.left.last_mut() {
            // `settle` has taken off all levels where nothing is left.
            *left -= 1;
        }
    }

    /// Holds a word if it is the value itself or one of its first elements; returns whether it does.
    fn word(&mut self, text: &[u8]) -> bool {
        let is_word = self.left.len() <= 2 && self.words.len() < MOST_WORDS;
        if is_word {
            self.words
                .push(text[..text.len().min(LONGEST_NAME)].to_vec());
        }
        is_word
    }

    /// Takes a value that is complete with its line.
    fn scalar(&mut self, mark: u8, number: i64, text: &[u8]) -> RespProgress {
        self.begins(mark, number);
        self.word(text);
        self.settle()
    }

    /// Takes the head of an array or another aggregate.
    fn elements(&mut self, mark: u8, number: i64) -> RespProgress {
        self.begins(mark, number);
        // Maps and attributes count pairs.
        let count = number.max(0) as u64 * if matches!(mark, b'%' | b'|') { 2 } else { 1 };
        if mark == b'|' {
            // Attributes precede the value that they belong to, so another value follows.
            let left = self.left.last_mut();
            left.into_iter()
                .for_each(|left| *left = left.saturating_add(1));
        }
        match (count, self.left.len()) {
            (0, _) => self.settle(),
            (_, DEEPEST..) => RespProgress::Deep,
            _ => {
                self.left.push(count);
                RespProgress::More
            }
        }
    }

    /// A value is complete, and perhaps the aggregates around it.
    fn settle(&mut self) -> RespProgress {
        while self.left.last() == Some(&0) {
            self.left.pop();
        }
        if self.left.is_empty() {
            RespProgress::Whole
        } else {
            RespProgress::More
        }
    }

    /// The status of a response: its text, the first word of an error, or the type of the value.
    pub(super) fn status(&self) -> RedactedName {
        let text = self.words.first().map(Vec::as_slice).unwrap_or_default();
        RedactedName::fixed(match self.kind {
            b'+' => return redis::redact_status(text),
            b'-' | b'!' => return redis::redact_error(text),
            _ if self.number < 0 => "nil",
            b'_' => "nil",
            b':' | b'(' => "integer",
            b'$' | b'=' => "string",
            b'*' => "array",
            b'%' => "map",
            b'~' => "set",
            b'#' => "boolean",
            b',' => "double",
            _ => "value",
        })
    }
}
