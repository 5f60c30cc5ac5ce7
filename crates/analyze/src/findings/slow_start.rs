//! A transfer that is over before its window fills the path.

use super::context::Context;
use super::finding::{Finding, LEAST, percent};
use super::kind::{Find, Kind};
use super::part::Part;
use super::path::FULL;
use crate::statistics::real;
use stackline_core::units;

pub(super) const KIND: Kind = Kind {
    name: "slow_start",
    meaning: "the transfer is over before its window fills the path",
    find: &[Find::Part(find)],
};

/// Beyond this times the closed form, something else is in the way.
const SLACK: f64 = 1.5;

fn find(context: &Context<'_>, part: &Part<'_>) -> Option<Finding> {
    let limits = part.limits()?;
    let (fullness, runs) = (context.measurement.fullness(part)?, real(part.records.len() as u64));
    let expected = part.without_loss_s()?;
    let takes = part.elapsed_s / runs;
    // The closed form has to account for the time that the path was not used.
    let at_rate = 8.0 * real(part.bytes()) / runs / part.replicas() / context.measurement.fair_bit_s(part)?;
    let opening = (expected - at_rate).max(0.0) + 2.0 * part.round_trip_s()?;
    let accounts = takes * (1.0 - fullness) <= SLACK * opening;
    let others = limits.receive_window + limits.send_buffer + context.losses.share;
    let share = (1.0 - fullness - others).max(0.0) * part.weight;
    if fullness >= FULL || share < LEAST || !accounts || !context.processors.is_empty() {
        return None;
    }
    let sentence = format!(
        "the transfer is too short for its path: its window grows from {} segments, and in {} it fills {} of it",
        stackline_model::start::INITIAL_SEGMENTS,
        units::time(takes),
        percent(fullness)
    );
    let figure = format!(
        "a transfer that doubles its window each round trip takes {}, this one {}",
        units::time(expected),
        units::time(takes)
    );
    let finding = KIND.finding(context, share, 0.85, sentence).because(context.measurement.figure(figure));
    Some(finding.attempt("keep the connection and use it again, so that its window is open already; larger transfers"))
}
