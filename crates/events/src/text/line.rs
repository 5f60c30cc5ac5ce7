//! Lines of the text form straight from an event's parts, without a text of each field in between: for many events.

use super::{NANOS, escaped};
use crate::value::Value;

/// The line of an event at hand in parts.
#[must_use]
pub fn line(keyword: &str, host: &str, at_ns: u64, values: &[Value<'_>]) -> String {
    let mut bytes = Vec::with_capacity(64);
    write_line(&mut bytes, keyword, host, at_ns, values);
    bytes.pop();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Adds the line of an event with its end. Keyword and host are not empty.
pub fn write_line(to: &mut Vec<u8>, keyword: &str, host: &str, at_ns: u64, values: &[Value<'_>]) {
    Lines::default().write(to, keyword, host, at_ns, values);
}

/// Writes lines one after the other: what most have in common with the one before is not made again.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    host: String,
    second: u64,
    /// Both, as they stand between keyword and nanoseconds.
    middle: Vec<u8>,
}

impl Lines {
    /// Adds the line of an event with its end. Keyword and host are not empty.
    pub fn write(&mut self, to: &mut Vec<u8>, keyword: &str, host: &str, at_ns: u64, values: &[Value<'_>]) {
        let second = at_ns / NANOS;
        if self.second != second || self.host != host || self.middle.is_empty() {
            self.remember(host, second);
        }
        begin(to, keyword);
        to.extend_from_slice(&self.middle);
        digits(to, at_ns % NANOS);
        fields(to, values);
    }

    fn remember(&mut self, host: &str, second: u64) {
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
fn fields(to: &mut Vec<u8>, values: &[Value<'_>]) {
    for value in values {
        match value {
            Value::Absent => separate(to),
            Value::Number(number @ 0..) => led(to, b"; ", *number as u64),
            Value::Number(number) => led(to, b"; -", number.unsigned_abs()),
            Value::Text(field) => {
                separate(to);
                text(to, field);
            }
        }
    }
    // An empty last field would be taken for the end of the one before.
    if matches!(values.last(), Some(Value::Absent | Value::Text(""))) {
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
        to.extend_from_slice(escaped(field).as_bytes());
    }
}

/// Two digits of every number below 100.
const PAIRS: [[u8; 2]; 100] = {
    let (mut pairs, mut number) = ([[0; 2]; 100], 0);
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

fn digits(to: &mut Vec<u8>, number: u64) {
    led(to, b"", number);
}

/// A number and what stands before it.
#[inline]
fn led<const LEAD: usize>(to: &mut Vec<u8>, lead: &[u8; LEAD], mut number: u64) {
    let (begin, count) = (to.len(), number.checked_ilog10().map_or(1, |log| log as usize + 1));
    // As many as there can be, which is cheaper than as many as there are.
    to.extend_from_slice(&[b'0'; 24]);
    to[begin..begin + LEAD].copy_from_slice(lead);
    let place = &mut to[begin + LEAD..begin + LEAD + count];
    let mut at = count;
    while number >= 10 {
        at -= 2;
        place[at..at + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    if at > 0 {
        place[0] = b'0' + number as u8;
    }
    to.truncate(begin + LEAD + count);
}

#[cfg(test)]
mod tests {
    use super::super::Event;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_line_of_the_event(
            keyword in "#?\\PC{1,8}", host in "\\PC{1,8}", at_ns: u64,
            data in proptest::collection::vec("-?[0-9]{0,21}|\\PC{0,8}|[;% \t]{0,3}", 0..8),
        ) {
            let values: Vec<Value<'_>> = data.iter().map(|field| Value::of(field)).collect();
            let line = line(&keyword, &host, at_ns, &values);
            let (mut lines, mut again) = (Lines::default(), Vec::new());
            lines.write(&mut again, "A", "other", at_ns, &[]);
            again.clear();
            for _ in 0..2 {
                lines.write(&mut again, &keyword, &host, at_ns, &values);
            }
            prop_assert_eq!(String::from_utf8(again).unwrap(), format!("{line}\n{line}\n"));
            prop_assert_eq!(&line, &Event { keyword, host, at_ns, data: data.clone() }.to_string());
        }

        #[test]
        fn digits_are_those_of_the_number(number: u64, shift in 0_u32..64) {
            let mut bytes = Vec::new();
            digits(&mut bytes, number >> shift);
            fields(&mut bytes, &[Value::Number((number as i64) >> shift)]);
            let expected = format!("{}; {}\n", number >> shift, (number as i64) >> shift);
            prop_assert_eq!(String::from_utf8(bytes).unwrap(), expected);
        }
    }
}
