//! Reno (RFC 5681): one segment more a window, half of it after a loss.

/// The threshold after a loss, in segments.
pub(super) const fn threshold(window: u32) -> u32 {
    if window / 2 > 2 { window / 2 } else { 2 }
}
