//! What is little, what timers are, and words that reasons share.

use crate::HopModel;
use alloc::format;
use alloc::string::String;

/// Losses that go with less than this share of a figure are left out of it.
pub(super) const LITTLE: f64 = 0.04;
/// A run that meets a loss with so little chance seldom meets one.
pub(super) const SELDOM: f64 = 0.05;
/// What a loss at the end of a flight costs at least: Linux' least time-out.
pub(super) const LEAST_TIMEOUT_S: f64 = 0.2;
/// How long the first packets are waited for (RFC 6298, section 2.1).
pub(super) const FIRST_TIMEOUT_S: f64 = 1.0;

/// A hop in words.
pub(super) fn name(hop: &HopModel) -> String {
    format!("{} -> {}", hop.ends.0, hop.ends.1)
}

/// Why a host whose processor copies for others too has no form.
pub(super) fn busy(host: &str) -> String {
    format!(
        "no closed-form formula describes how copying and other traffic share the processor of {host}"
    )
}
