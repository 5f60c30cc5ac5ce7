//! Writes lines of the text form directly from an event's parts, without allocating a text for each field.

use super::{NANOS, escape_field};
use crate::value::EventValue;

/// The line of an event, without a line break.
#[must_use]
pub fn line(keyword: &str, host: &str, at_ns: u64, values: &[EventValue<'_>]) -> String {
    let mut bytes = Vec::with_capacity(64);
    write_line(&mut bytes, keyword, host, at_ns, values);
    bytes.pop();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Appends the line of an event with its line break. Keyword and host must not be empty.
pub fn write_line(
    to: &mut Vec<u8>,
    keyword: &str,
    host: &str,
    at_ns: u64,
    values: &[EventValue<'_>],
) {
    Lines::default().write(to, keyword, host, at_ns, values);
}

/// Writes a series of lines: the parts that a line has in common with the one before are reused.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    keyword: String,
    host: String,
    second: u64,
    /// The beginning of the last line up to the nanoseconds: keyword, host and second.
    lead: Vec<u8>,
    /// The part of `lead` after the keyword: host and second.
    middle: Vec<u8>,
}

impl Lines {
    /// Appends the line of an event with its line break. Keyword and host must not be empty.
    pub fn write(
        &mut self,
        to: &mut Vec<u8>,
        keyword: &str,
        host: &str,
        at_ns: u64,
        values: &[EventValue<'_>],
    ) {
        let second = at_ns / NANOS;
        if self.second != second || self.host != host || self.middle.is_empty() {
            self.place(host, second);
            self.begin(keyword);
        } else if self.keyword != keyword {
            self.begin(keyword);
        }
        to.extend_from_slice(&self.lead);
        digits(to, at_ns % NANOS);
        fields(to, values);
    }

    /// Sets the keyword.
    fn begin(&mut self, keyword: &str) {
        self.keyword.clear();
        self.keyword.push_str(keyword);
        self.lead.clear();
        begin(&mut self.lead, keyword);
        self.lead.extend_from_slice(&self.middle);
    }

    /// Sets host and second.
    #[cold]
    fn place(&mut self, host: &str, second: u64) {
        self.host.clear();
        self.host.push_str(host);
        self.second = second;
        self.middle.clear();
        separate(&mut self.middle);
        text(&mut self.middle, host);
        separate(&mut self.middle);
        digits(&mut self.middle, second);
        separate(&mut self.middle);
    }
}

/// Writes the keyword. A `#` at its beginning is escaped, because it would begin a comment.
fn begin(to: &mut Vec<u8>, keyword: &str) {
    match keyword.strip_prefix('#') {
        Some(rest) => {
            to.extend_from_slice(b"%23");
            text(to, rest);
        }
        None => text(to, keyword),
    }
}

/// Writes the data and the line break.
fn fields(to: &mut Vec<u8>, values: &[EventValue<'_>]) {
    for value in values {
        match value {
            EventValue::Absent => separate(to),
            EventValue::Number(number @ 0..) => led(to, b"; ", *number as u64),
            EventValue::Number(number) => led(to, b"; -", number.unsigned_abs()),
            EventValue::Text(field) => {
                separate(to);
                text(to, field);
            }
        }
    }
    // An empty last field needs a semicolon behind it, otherwise it would not be read.
    if matches!(
        values.last(),
        Some(EventValue::Absent | EventValue::Text(""))
    ) {
        to.push(b';');
    }
    to.push(b'\n');
}

#[inline]
fn separate(to: &mut Vec<u8>) {
    to.extend_from_slice(b"; ");
}

/// Whether each byte is written as it is wherever it stands; a lookup is faster than comparisons.
static PLAIN: [bool; 256] = {
    let (mut plain, mut byte) = ([false; 256], 0);
    while byte < 256 {
        plain[byte] = (byte as u8).is_ascii_graphic() && !matches!(byte as u8, b';' | b'%');
        byte += 1;
    }
    plain
};

#[inline]
fn text(to: &mut Vec<u8>, field: &str) {
    if field.bytes().all(|byte| PLAIN[usize::from(byte)]) {
        to.extend_from_slice(field.as_bytes());
    } else {
        to.extend_from_slice(escape_field(field).as_bytes());
    }
}

/// Numbers from here on have more than eight digits.
const NINE_DIGITS: u64 = 100_000_000;
/// Eight ASCII zeros.
const ZEROES: u64 = u64::from_le_bytes(*b"00000000");

fn digits(to: &mut Vec<u8>, number: u64) {
    led(to, b"", number);
}

/// Writes `lead` and a number.
#[inline]
fn led<const LEAD: usize>(to: &mut Vec<u8>, lead: &[u8; LEAD], number: u64) {
    to.extend_from_slice(lead);
    if number >= NINE_DIGITS {
        digits(to, number / NINE_DIGITS);
        to.extend_from_slice(&(eight(number % NINE_DIGITS) | ZEROES).to_le_bytes());
        return;
    }
    let word = eight(number);
    let leading = (word.trailing_zeros() / 8).min(7);
    to.extend_from_slice(&((word | ZEROES) >> (8 * leading)).to_le_bytes());
    to.truncate(to.len() - leading as usize);
}

/// The eight digits of a number below 10^8, one in each byte, the highest digit in the lowest byte. They are computed
/// in parallel by halving.
#[inline]
const fn eight(number: u64) -> u64 {
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((fours * 5243) >> 19) & 0x7f_0000_007f;
    let twos = hundreds | ((fours - 100 * hundreds) << 16);
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((twos - 10 * tens) << 8)
}

#[cfg(test)]
mod tests {
    use super::super::TextEvent;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_line_of_the_event(
            keyword in "#?\\PC{1,8}", host in "\\PC{1,8}", at_ns: u64,
            data in proptest::collection::vec("-?[0-9]{0,21}|\\PC{0,8}|[;% \t]{0,3}", 0..8),
        ) {
            let values: Vec<EventValue<'_>> = data.iter().map(|field| EventValue::parse(field)).collect();
            let line = line(&keyword, &host, at_ns, &values);
            let (mut lines, mut again) = (Lines::default(), Vec::new());
            lines.write(&mut again, "A", "other", at_ns, &[]);
            again.clear();
            for _ in 0..2 {
                lines.write(&mut again, &keyword, &host, at_ns, &values);
            }
            prop_assert_eq!(String::from_utf8(again).unwrap(), format!("{line}\n{line}\n"));
            prop_assert_eq!(&line, &TextEvent { keyword, host, at_ns, data: data.clone() }.to_string());
        }

        #[test]
        fn digits_are_those_of_the_number(number: u64, shift in 0_u32..64) {
            let mut bytes = Vec::new();
            digits(&mut bytes, number >> shift);
            fields(&mut bytes, &[EventValue::Number((number as i64) >> shift)]);
            let expected = format!("{}; {}\n", number >> shift, (number as i64) >> shift);
            prop_assert_eq!(String::from_utf8(bytes).unwrap(), expected);
        }
    }
}
