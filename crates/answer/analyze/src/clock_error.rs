//! How wrong the clocks of two hosts may be together.

use stackline_core::trace_index::{ClockCorrection, Index};

/// Errors of two clocks together, ns; `None` when one of them is not known.
pub(crate) fn clock_error(index: Option<&Index>, a: &str, b: &str) -> Option<u64> {
    if a == b {
        return Some(0);
    }
    let index = index?;
    let error = |host: &str| {
        // All zeroes is the reference's own clock.
        let clock = &index.hosts.get(host)?.clock;
        if host == index.reference || *clock == ClockCorrection::default() {
            Some(0)
        } else {
            clock.error_ns
        }
    };
    Some(error(a)?.saturating_add(error(b)?))
}
