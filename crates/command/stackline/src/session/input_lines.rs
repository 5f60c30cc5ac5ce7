//! Lines of bounded length from a stream of bytes.

use std::io::{self, BufRead};

/// A line of the input, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputLine {
    Whole(Vec<u8>),
    /// It is longer than permitted, and was skipped.
    TooLong,
}

/// Reads the next line, of at most `most` bytes; `None` at the end of the input.
pub(super) fn next_line(from: &mut impl BufRead, most: usize) -> io::Result<Option<InputLine>> {
    let (mut line, mut length, mut is_any) = (Vec::new(), 0_usize, false);
    loop {
        let there = from.fill_buf()?;
        if there.is_empty() {
            break;
        }
        is_any = true;
        let end = there.iter().position(|byte| *byte == b'\n');
        let part = &there[..end.unwrap_or(there.len())];
        length = length.saturating_add(part.len());
        if length <= most {
            line.extend_from_slice(part);
        } else {
            line = Vec::new();
        }
        let taken = part.len() + usize::from(end.is_some());
        from.consume(taken);
        if end.is_some() {
            break;
        }
    }
    let read = if length <= most {
        InputLine::Whole(line)
    } else {
        InputLine::TooLong
    };
    Ok(is_any.then_some(read))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn lines(text: &str, buffer: usize) -> Vec<InputLine> {
        let mut from = BufReader::with_capacity(buffer, text.as_bytes());
        std::iter::from_fn(|| next_line(&mut from, 4).unwrap()).collect()
    }

    #[test]
    fn a_longer_line_is_skipped_and_the_next_one_is_read() {
        let whole = |text: &str| InputLine::Whole(text.as_bytes().to_vec());
        for buffer in [1, 2, 3, 100] {
            assert_eq!(
                lines("abcd\nabcde\n\nabcdefghijkl\nx", buffer),
                [
                    whole("abcd"),
                    InputLine::TooLong,
                    whole(""),
                    InputLine::TooLong,
                    whole("x")
                ]
            );
            assert_eq!(lines("", buffer), []);
            assert_eq!(lines("abcdefg", buffer), [InputLine::TooLong]);
        }
    }
}
