//! Lines of the text form straight from an event's parts, without a text of each field in between: for many events.

use super::{NANOS, escape_field};
use crate::value::EventValue;

/// The line of an event at hand in parts.
#[must_use]
pub fn line(keyword: &str, host: &str, at_ns: u64, values: &[EventValue<'_>]) -> String {
    let mut bytes = Vec::with_capacity(64);
    write_line(&mut bytes, keyword, host, at_ns, values);
    bytes.pop();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Adds the line of an event with its end. Keyword and host are not empty.
pub fn write_line(
    to: &mut Vec<u8>,
    keyword: &str,
    host: &str,
    at_ns: u64,
    values: &[EventValue<'_>],
) {
    Lines::default().write(to, keyword, host, at_ns, values);
}

/// Writes lines one after the other: what most have in common with the one before is not made again.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    keyword: String,
    host: String,
    second: u64,
    /// All three, as they stand before the nanoseconds; host and second again, behind another keyword.
    lead: Vec<u8>,
    middle: Vec<u8>,
}

impl Lines {
    /// Adds the line of an event with its end. Keyword and host are not empty.
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

    fn begin(&mut self, keyword: &str) {
        self.keyword.clear();
        self.keyword.push_str(keyword);
        self.lead.clear();
        begin(&mut self.lead, keyword);
        self.lead.extend_from_slice(&self.middle);
    }

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

fn begin(to: &mut Vec<u8>, keyword: &str) {
    match keyword.strip_prefix('#') {
        Some(rest) => {
            to.extend_from_slice(b"%23");
            text(to, rest);
        }
        None => text(to, keyword),
    }
}

/// The data, and the end of the line.
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
    // An empty last field would be taken for the end of the one before.
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

/// Bytes that never have to be written as their code: looking one up is cheaper than comparing it.
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
const ZEROES: u64 = u64::from_le_bytes(*b"00000000");

fn digits(to: &mut Vec<u8>, number: u64) {
    led(to, b"", number);
}

/// A number and what stands before it.
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

/// The eight digits of a number, one a byte, the highest in the lowest byte: all of them at once, by halves.
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
            let values: Vec<EventValue<'_>> = data.iter().map(|field| EventValue::of(field)).collect();
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
