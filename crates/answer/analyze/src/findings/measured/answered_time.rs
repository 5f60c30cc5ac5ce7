//! The time of calls, turns of data units and transfers that propagation and links take, computed from the plan and the records alone.

use crate::findings::measured::measurement::FindingMeasurement;
use crate::findings::measured::part::MeasuredPart;
use crate::statistics::to_f64;
use stackline_core::procedure::PairSide;
use stackline_model::PathModel;

/// The share of a part's time that calls or turns spend in round trips, one each, 0 to 1.
pub(crate) fn distance(part: &MeasuredPart<'_>) -> f64 {
    let trip = part.round_trip_s().unwrap_or(0.0);
    (to_f64(part.exchanges()) * trip / part.basis_s()).min(1.0)
}

/// The share of a part's time that transfers spend in round trips, 0 to 1: one for each transfer (the first data is requested, or the last
/// acknowledged) or for each connection, whichever are more.
pub(crate) fn trips(part: &MeasuredPart<'_>) -> f64 {
    let trip = part.round_trip_s().filter(|_| part.paths.is_some());
    let trip = trip.unwrap_or(0.0);
    let transfers = part.records.len() as u64 * u64::from(part.plan.replicas.max(1));
    let (_, connections) = part.set_up();
    (to_f64(transfers.max(connections)) * trip / part.pairs_s()).min(1.0)
}

/// The share of a part's time that one packet of each message takes to be transmitted on all links but the slowest, which is counted apart.
pub(crate) fn other_links(measurement: &FindingMeasurement<'_>, part: &MeasuredPart<'_>) -> f64 {
    let Some((there, back)) = &part.paths else {
        return 0.0;
    };
    let each = |(path, side): (&PathModel, PairSide)| {
        let Some(port) = measurement.fullest() else {
            return 0.0;
        };
        let bytes = measurement.own_bytes(part, side, port) / part.exchanges().max(1);
        let packet = bytes.min(path.mtu_bytes());
        let times = path
            .hops
            .iter()
            .map(|hop| hop.serialisation_s(packet).unwrap_or(0.0));
        let (sum, most) = times.fold((0.0, 0.0_f64), |(sum, most), time| {
            (sum + time, most.max(time))
        });
        sum - most
    };
    let seconds = each((there, PairSide::Initiator)) + each((back, PairSide::Responder));
    to_f64(part.exchanges()) * seconds / part.basis_s()
}
