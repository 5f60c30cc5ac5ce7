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
    match keyword.strip_prefix('#') {
        Some(rest) => {
            to.extend_from_slice(b"%23");
            text(to, rest);
        }
        None => text(to, keyword),
    }
    separate(to);
    text(to, host);
    separate(to);
    digits(to, at_ns / NANOS);
    separate(to);
    digits(to, at_ns % NANOS);
    for value in values {
        separate(to);
        match value {
            Value::Absent => {}
            Value::Number(number) => {
                if *number < 0 {
                    to.push(b'-');
                }
                digits(to, number.unsigned_abs());
            }
            Value::Text(field) => text(to, field),
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

#[inline]
fn text(to: &mut Vec<u8>, field: &str) {
    // Nothing of this has ever to be written as its code.
    if field.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b';' | b'%')) {
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

fn digits(to: &mut Vec<u8>, mut number: u64) {
    if number < 10 {
        to.push(b'0' + number as u8);
        return;
    }
    let (mut text, mut at) = ([0; 20], 20);
    while number >= 10 {
        at -= 2;
        text[at..at + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    if number > 0 {
        at -= 1;
        text[at] = b'0' + number as u8;
    }
    // A pair may have begun with a zero that is not written.
    let leading = usize::from(text[at] == b'0');
    to.extend_from_slice(&text[at + leading..]);
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
            prop_assert_eq!(&line, &Event { keyword, host, at_ns, data: data.clone() }.to_string());
        }

        #[test]
        fn digits_are_those_of_the_number(number: u64, shift in 0_u32..64) {
            let mut bytes = Vec::new();
            digits(&mut bytes, number >> shift);
            prop_assert_eq!(String::from_utf8(bytes).unwrap(), (number >> shift).to_string());
        }
    }
}
