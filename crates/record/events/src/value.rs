//! The value of one data field of an event: a number, a text, or none.
//!
//! There are no fractions: times are in ns, sizes in bytes, shares in parts per million, so a value reads back equal
//! from every form.

/// An event on its way to a receiver. Only this crate makes one: of a row of [`crate::catalogue`] or of a line of the
/// text form.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct EmittedEvent<'e> {
    /// The host.
    pub host: &'e str,
    /// The keyword.
    pub keyword: &'e str,
    /// The time, ns.
    pub at_ns: u64,
    /// The data.
    pub values: &'e [EventValue<'e>],
}

/// Receives events.
pub type EventEmitter<'e> = dyn FnMut(&EmittedEvent<'_>) + 'e;

/// The value of a data field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventValue<'t> {
    /// Unknown, or not applicable; an empty field in the text form.
    #[default]
    Absent,
    /// A whole number.
    Number(i64),
    /// Any other text. A text that is a whole number in the sense of [`EventValue::parse`] is kept as
    /// [`EventValue::Number`].
    Text(&'t str),
}

impl<'t> EventValue<'t> {
    /// The value of a field of the text form: a number if the field is exactly the number's usual decimal form,
    /// otherwise a text.
    #[must_use]
    pub fn parse(field: &'t str) -> Self {
        if field.is_empty() {
            return Self::Absent;
        }
        match canonical(field.as_bytes()) {
            Some(number) => Self::Number(number),
            None => Self::Text(field),
        }
    }

    /// The number, if the value is one.
    #[must_use]
    pub const fn number(self) -> Option<i64> {
        if let Self::Number(number) = self {
            Some(number)
        } else {
            None
        }
    }

    /// The text, if the value is one.
    #[must_use]
    pub const fn text(self) -> Option<&'t str> {
        if let Self::Text(text) = self {
            Some(text)
        } else {
            None
        }
    }
}

/// The whole number of which the field is the exact decimal form: without `+` or leading zeros, within 64 bits.
#[must_use]
pub fn canonical(field: &[u8]) -> Option<i64> {
    let (negative, digits) = match field {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let plain = match digits {
        [b'0'] => !negative,
        [b'1'..=b'9', ..] => digits.len() <= 19,
        _ => false,
    };
    if !plain {
        return None;
    }
    let mut value: i64 = 0;
    for digit in digits {
        let digit = i64::from(digit.wrapping_sub(b'0'));
        if !(0..=9).contains(&digit) {
            return None;
        }
        let signed = if negative { -digit } else { digit };
        value = value.checked_mul(10)?.checked_add(signed)?;
    }
    Some(value)
}

macro_rules! numbers {
    ($($kind:ty),*) => { $(
        impl From<$kind> for EventValue<'_> {
            #[inline]
            fn from(number: $kind) -> Self {
                Self::Number(i64::from(number))
            }
        }
    )* };
}

numbers!(i8, i16, i32, i64, u8, u16, u32, bool);

impl From<u64> for EventValue<'_> {
    /// A number above 2^63 - 1 becomes 2^63 - 1.
    #[inline]
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<usize> for EventValue<'_> {
    #[inline]
    fn from(number: usize) -> Self {
        Self::from(number as u64)
    }
}

impl<'t> From<&'t str> for EventValue<'t> {
    #[inline]
    fn from(text: &'t str) -> Self {
        Self::parse(text)
    }
}

impl<'t> From<&'t String> for EventValue<'t> {
    #[inline]
    fn from(text: &'t String) -> Self {
        Self::parse(text)
    }
}

impl<'t, V: Into<Self>> From<Option<V>> for EventValue<'t> {
    #[inline]
    fn from(value: Option<V>) -> Self {
        value.map_or(Self::Absent, Into::into)
    }
}

impl std::fmt::Display for EventValue<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Absent => Ok(()),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_the_usual_digits_are_a_number() {
        for (field, number) in [
            ("0", 0),
            ("-7", -7),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(EventValue::parse(field), EventValue::Number(number));
        }
        for field in [
            "-0",
            "007",
            "+1",
            "1.5",
            "1e3",
            "9223372036854775808",
            "0x1f",
            "-",
            " 1",
        ] {
            assert_eq!(EventValue::parse(field), EventValue::Text(field));
        }
    }

    proptest! {
        #[test]
        fn a_field_is_written_as_it_was_read(field in "-?[0-9]{0,21}|\\PC{0,8}") {
            prop_assert_eq!(EventValue::parse(&field).to_string(), field);
        }
    }
}
