//! Evaluates the figures of a network: numbers, delays, shares and rates within their bounds.

use crate::check::evaluate::Bindings;
use crate::diagnostic::Diagnostic;
use crate::tree::SpecValue;
use alloc::format;
use alloc::string::String;
use stackline_core::time::Duration;

/// Largest buffer of a switch or a queue, in bytes.
pub(super) const LARGEST_BUFFER: u64 = 1 << 40;
/// Largest packet of IP, in bytes.
pub(super) const LARGEST_PACKET: u64 = 65_535;
/// Header of a cell, in bytes.
pub(super) const CELL_HEADER: u64 = 5;
/// Longest delay, in seconds.
const LONGEST_DELAY: f64 = 3600.0;

/// The value in its base unit.
pub(super) fn number(value: &SpecValue) -> f64 {
    Bindings(&[]).number(value)
}

/// A time from 0 to one hour.
pub(super) fn delay(value: &SpecValue, what: &str) -> Result<Duration, Diagnostic> {
    let seconds = number(value);
    if seconds <= LONGEST_DELAY {
        return Ok(Duration::from_seconds(seconds));
    }
    let message = format!("{what} must be at most 1 hour");
    Err(Diagnostic::error(value.span, message, "too long")
        .hint("a number without a unit means seconds"))
}

/// A percentage as a probability.
pub(super) fn share(value: &SpecValue, what: impl Into<String>) -> Result<f64, Diagnostic> {
    let percent = number(value);
    if percent <= 100.0 {
        return Ok(percent / 100.0);
    }
    Err(
        Diagnostic::error(value.span, what, "expected 0 to 100 per cent")
            .hint("`1%` is one in a hundred"),
    )
}

/// A rate above zero, bit/s.
pub(super) fn positive_rate(
    value: &SpecValue,
    what: &str,
    label: &str,
    hint: &str,
) -> Result<f64, Diagnostic> {
    let rate = number(value);
    if rate > 0.0 {
        return Ok(rate);
    }
    Err(Diagnostic::error(value.span, format!("{what} must be above zero"), label).hint(hint))
}
