//! Thresholds, timers and texts that the reasons share.

use crate::HopModel;
use alloc::format;
use alloc::string::String;

/// Effects below this share of a figure are ignored.
pub(super) const LITTLE: f64 = 0.04;
/// With a probability of a loss up to this, a run is assumed to have none.
pub(super) const SELDOM: f64 = 0.05;
/// Linux's minimum retransmission timeout, s: the least cost of a loss at the end of a window.
pub(super) const LEAST_TIMEOUT_S: f64 = 0.2;
/// The first retransmission timeout, s (RFC 6298, section 2.1).
pub(super) const FIRST_TIMEOUT_S: f64 = 1.0;

/// The name of a hop: `a -> b`.
pub(super) fn name(hop: &HopModel) -> String {
    format!("{} -> {}", hop.ends.0, hop.ends.1)
}

/// The reason for a host whose processor also copies for other traffic.
pub(super) fn busy(host: &str) -> String {
    format!(
        "no closed-form formula describes how copying and other traffic share the processor of {host}"
    )
}
