//! Columns of numbers in few bytes: each is written as its difference from the one before, in LEB128 (7 bits a byte, the
//! highest says that more follow). `page/pack.js` reads them.

use stackline_events::EventValue;

/// Numbers up to this, and the differences of two of them as they are written, are exact in JavaScript.
pub(super) const EXACT: i64 = (1 << 51) - 1;

/// A column that grows.
#[derive(Debug, Default)]
pub(super) struct PageColumn {
    pub(super) bytes: Vec<u8>,
    pub(super) count: usize,
    last: i64,
}

/// Codes of a data field: this, or a text, or a number's difference behind them.
const ABSENT: u64 = 0;
const TEXT: u64 = 1;
const NUMBER: u64 = 2;

impl PageColumn {
    /// A number as it is.
    pub(super) fn plain(&mut self, number: u64) {
        self.varint(number);
        self.count += 1;
    }

    /// A number as its difference from the last.
    pub(super) fn difference(&mut self, number: i64) {
        let difference = zigzag(number.wrapping_sub(self.last));
        self.last = number;
        self.plain(difference);
    }

    /// A data field; `text` gives a text its number. Numbers that JavaScript cannot hold become texts.
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

/// Small numbers of either sign as small numbers.
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
