//! Figures of a network: numbers, delays, shares and rates within the bounds they have there.

use crate::check::evaluate::Bindings;
use crate::diagnostic::Diagnostic;
use crate::tree::SpecValue;
use alloc::format;
use alloc::string::String;
use stackline_core::time::Duration;

/// Of a switch or a queue.
pub(super) const LARGEST_BUFFER: u64 = 1 << 40;
/// Of IP.
pub(super) const LARGEST_PACKET: u64 = 65_535;
/// Of a cell's bytes.
pub(super) const CELL_HEADER: u64 = 5;
/// Longest delay, in seconds.
const LONGEST_DELAY: f64 = 3600.0;

/// In its base unit; nothing varies in a network.
pub(super) fn number(value: &SpecValue) -> f64 {
    Bindings(&[]).number(value)
}

/// A time of at most an hour, perhaps none.
pub(super) fn delay(value: &SpecValue, what: &str) -> Result<Duration, Diagnostic> {
    let seconds = number(value);
    if seconds <= LONGEST_DELAY {
        return Ok(Duration::from_seconds(seconds));
    }
    let message = format!("{what} must be at most 1 hour");
    Err(Diagnostic::error(value.span, message, "too long")
        .hint("a number without a unit means seconds"))
}

/// Per cent to a probability.
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

/// bit/s above zero.
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
