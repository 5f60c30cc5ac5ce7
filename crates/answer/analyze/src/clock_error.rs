//! The error that the difference of two hosts' clocks may have.

use stackline_core::trace_index::{ClockCorrection, Index};

/// The sum of the errors of two hosts' clocks, ns; 0 for one host; `None` if one of the errors is not known.
pub(crate) fn clock_error(index: Option<&Index>, a: &str, b: &str) -> Option<u64> {
    if a == b {
        return Some(0);
    }
    let index = index?;
    let error = |host: &str| {
        // A correction of all zeroes is that of the reference host's own clock, or of a host that shares it.
        let clock = &index.hosts.get(host)?.clock;
        if host == index.reference || *clock == ClockCorrection::default() {
            Some(0)
        } else {
            clock.error_ns
        }
    };
    Some(error(a)?.saturating_add(error(b)?))
}
