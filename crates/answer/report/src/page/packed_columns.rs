//! Compact columns of numbers: LEB128 (7 bits per byte; the highest bit says that more bytes follow), mostly of the difference from
//! the number before. `page/pack.js` reads them.

use stackline_events::EventValue;

/// Numbers up to this, and the encoded difference of any two of them, are exact in JavaScript (below 2^53).
pub(super) const EXACT: i64 = (1 << 51) - 1;

/// A column to which values are appended.
#[derive(Debug, Default)]
pub(super) struct PageColumn {
    pub(super) bytes: Vec<u8>,
    pub(super) count: usize,
    /// The last number that was written as a difference.
    last: i64,
}

/// First number of an encoded data field: there is no value.
const ABSENT: u64 = 0;
/// First number of an encoded data field: the number of a text follows.
const TEXT: u64 = 1;
/// Encoded data fields from here on: `NUMBER` plus the encoded difference of a number.
const NUMBER: u64 = 2;

impl PageColumn {
    /// Appends a number as it is.
    pub(super) fn plain(&mut self, number: u64) {
        self.varint(number);
        self.count += 1;
    }

    /// Appends a number as its difference from the last.
    pub(super) fn difference(&mut self, number: i64) {
        let difference = zigzag(number.wrapping_sub(self.last));
        self.last = number;
        self.plain(difference);
    }

    /// Appends a data field. `text` gives the number of a text. Numbers that JavaScript cannot hold exactly become texts.
    pub(super) fn field(&mut self, value: EventValue<'_>, text: impl FnOnce(&str) -> u32) {
        self.count += 1;
        match value {
            EventValue::Absent => self.varint(ABSENT),
            EventValue::Number(number) if (-EXACT..=EXACT).contains(&number) => {
                // Both are within 2^51, so what is written is within 2^53.
                self.varint(NUMBER + zigzag(number - self.last));
                self.last = number;
            }
            EventValue::Number(number) => self.text(text(&number.to_string())),
            EventValue::Text(value) => self.text(text(value)),
        }
    }

    fn text(&mut self, number: u32) {
        self.varint(TEXT);
        self.varint(u64::from(number));
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }
}

/// ZigZag encoding: maps small numbers of either sign to small unsigned numbers.
const fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_small() {
        let mut column = PageColumn::default();
        for number in [1000, 1001, 999, -1] {
            column.difference(number);
        }
        assert_eq!(column.bytes, [0xd0, 0x0f, 2, 3, 0xcf, 0x0f]);
        assert_eq!(column.count, 4);
    }

    #[test]
    fn a_field_is_absent_a_text_or_a_number() {
        let mut column = PageColumn::default();
        let mut texts = Vec::new();
        for value in [
            EventValue::Absent,
            EventValue::Number(5),
            EventValue::Text("x"),
            EventValue::Number(6),
            EventValue::Number(i64::MAX),
            EventValue::Absent,
        ] {
            column.field(value, |text| {
                texts.push(text.to_owned());
                texts.len() as u32 - 1
            });
        }
        assert_eq!(column.bytes, [0, 12, 1, 0, 4, 1, 1, 0]);
        assert_eq!(texts, ["x", "9223372036854775807"]);
    }

    #[test]
    fn the_largest_differences_fit() {
        let mut column = PageColumn::default();
        column.field(EventValue::Number(-EXACT), |_| 0);
        column.field(EventValue::Number(EXACT), |_| 0);
        assert_eq!(column.bytes.len(), 16);
        column.difference(i64::MIN);
        column.difference(i64::MAX);
        assert_eq!(column.count, 4);
    }
}
