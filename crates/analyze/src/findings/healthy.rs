//! Nothing limits but the work itself.

use super::context::Context;
use super::finding::{Finding, HEALTHY};
use super::kind::Kind;

pub(super) const KIND: Kind = Kind {
    name: HEALTHY,
    meaning: "nothing that can be changed takes 5 % of the time, and the time is accounted for; it stands alone for its measurement",
    find: &[],
};

/// The finding of a measurement in which no other kind was found.
pub(super) fn nothing_found(context: &Context<'_>) -> Finding {
    // Records alone do not show everything.
    let confidence = if context.measurement.log.is_empty() { 0.7 } else { 0.95 };
    let sentence = "nothing that can be changed takes a noticeable share of the time".to_owned();
    KIND.finding(context, 0.0, confidence, sentence)
}
