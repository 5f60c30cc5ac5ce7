//! Reads values as QUIC stacks write them: numbers as numbers or texts, times in the unit of the trace, fields under different names.

use serde_json::Value as Json;

/// A number, which may be written as a text.
pub(super) fn number_of(value: &Json) -> Option<f64> {
    value
        .as_f64()
        .or_else(|| value.as_str()?.trim().parse().ok())
        .filter(|number: &f64| number.is_finite())
}

/// A non-negative integer, which may be written as a text or with a fraction of zero.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be whole and in range"
)]
pub(super) fn count_of(value: &Json) -> Option<u64> {
    let whole = || {
        value
            .as_f64()
            .filter(|number| number.fract() == 0.0 && (0.0..9e15).contains(number))
            .map(|number| number as u64)
    };
    value
        .as_u64()
        .or_else(whole)
        .or_else(|| value.as_str()?.trim().parse().ok())
}

/// The value of the first of these fields that exists.
pub(super) fn first_of<'j>(object: &'j Json, names: &[&str]) -> Option<&'j Json> {
    names
        .iter()
        .find_map(|name| object.get(name))
        .filter(|value| !value.is_null())
}

/// The same for a text.
pub(super) fn first_text<'j>(object: &'j Json, names: &[&str]) -> Option<&'j str> {
    names
        .iter()
        .find_map(|name| object.get(name).and_then(Json::as_str))
}

/// Converts a time in units of `unit_ns` ns to ns. The integer part is exact.
#[expect(clippy::cast_possible_truncation, reason = "checked to be in range")]
pub(super) fn nanoseconds(time: f64, unit_ns: i64) -> Option<i128> {
    let in_range = time.is_finite() && time.abs() < 1e19 / unit_ns as f64;
    in_range.then(|| {
        (time.trunc() as i128) * i128::from(unit_ns)
            + (time.fract() * unit_ns as f64).round() as i128
    })
}
