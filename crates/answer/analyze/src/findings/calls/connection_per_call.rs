//! Connection per call: each call or transfer opens and closes a connection of its own while the clock runs, and each begins with a small
//! congestion window again.

use crate::findings::change::PlanChange;
use crate::findings::finding::{Finding, LEAST};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::part::{LEAST_TRIP_S, MeasuredPart};
use crate::statistics::to_f64;
use stackline_core::procedure;
use stackline_core::units;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "connection_per_call",
    meaning: "connections are opened and closed while the clock runs, which takes time; the effect of their initial windows is reported as `slow_start`",
    find: &[Find::Part(find)],
};

/// The advice to keep connections.
pub(crate) const KEEP: &str = "keep the connection and reuse it: connect once, before the `repeat`";

fn find(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    let (seconds, connections) = part.set_up();
    let own = (seconds / part.basis_s()).min(1.0);
    let share = own * part.weight;
    let near = part.round_trip_s().is_some_and(|trip| trip < LEAST_TRIP_S);
    if share < LEAST || near || !comes_and_goes(part) {
        return None;
    }
    let each = units::format_time(seconds / to_f64(connections.max(1)));
    let of = match part.exchanges() {
        0 => String::new(),
        exchanges if exchanges <= connections => ", one per call".to_owned(),
        exchanges => format!(" for {exchanges} calls"),
    };
    let sentence = format!(
        "{connections} connections are opened and closed{of}, {each} each: {}",
        part.of_its_time(own)
    );
    let rows = context.measurement.rows("APP_CONNECTED");
    let figure = format!(
        "{connections} connections x {each} = {} of {}",
        units::format_time(seconds),
        units::format_time(part.basis_s())
    );
    let finding = KIND
        .finding(context, share, 0.9, sentence)
        .because(context.measurement.evidence(figure, &rows));
    Some(finding.attempt_by(KEEP, PlanChange::KeepConnection(part.index)))
}

/// Whether the procedure opens and closes connections within a repeat.
pub(crate) fn comes_and_goes(part: &MeasuredPart<'_>) -> bool {
    procedure::repeats_connections(&part.plan.procedure.initiator)
}
