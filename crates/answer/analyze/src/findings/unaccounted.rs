//! The time of calls, or of turns of data units, that is left after all known uses of it are subtracted: propagation, data on links,
//! service, opening connections, and the states that senders report. The `unexplained` finding is about this rest.

use crate::findings::bulk::{application_limited, network_limited, slow_start, socket_buffer};
use crate::findings::bulk::{link_loss, queue_drop, retransmission_stall, window_below_bdp};
use crate::findings::bulk::{synchronised_loss, undersized_buffer};
use crate::findings::calls::{connection_per_call, nagle_delayed_ack, serial_round_trips};
use crate::findings::finding::Finding;
use crate::findings::measured::answered_time;
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::measurement::FindingMeasurement;
use crate::findings::measured::part::MeasuredPart;
use stackline_core::network::NetworkHost;
use stackline_core::procedure::PairSide;

/// The share of a part's time that neither propagation, data on links, service, opening connections nor its senders' states take, 0 to 1.
/// It is 0 if it cannot be known: with several parts, IMPs, hosts whose processors take time, or without a modelled network.
pub(super) fn unaccounted(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> f64 {
    let measurement = &context.measurement;
    if !is_plain(measurement) || part.paths.is_none() || measurement.plan.parts.len() > 1 {
        return 0.0;
    }
    let away = |side| context.outside_seconds(part.index, side) / part.basis_s();
    let data = measurement.own_use(part) + answered_time::other_links(measurement, part);
    let held = context.account(part).map_or(0.0, |account| {
        account.explained(account.states.waiting()) + account.states.congestion_window
    });
    let own = away(PairSide::Initiator) + away(PairSide::Responder);
    let known =
        answered_time::distance(part) + part.set_up().0 / part.basis_s() + data + own + held;
    (1.0 - known).clamp(0.0, 1.0)
}

/// Whether a network is modelled in which neither IMPs nor hosts' processors take time.
pub(super) fn is_plain(measurement: &FindingMeasurement<'_>) -> bool {
    let works = |host: &NetworkHost| {
        let interface = &host.interface;
        let copies = interface.copy_ns_per_byte > 0.0 || interface.copy_per_packet.seconds() > 0.0;
        copies || !host.work.is_nothing()
    };
    measurement
        .network
        .is_some_and(|network| !network.has_imps() && !network.hosts.iter().any(works))
}

/// Whether [`unaccounted`] has already subtracted the time of such a finding, so that it must not be subtracted again.
pub(super) fn has(context: &FindingContext<'_>, finding: &Finding) -> bool {
    let always = [
        serial_round_trips::KIND.name,
        connection_per_call::KIND.name,
        application_limited::KIND.name,
        network_limited::KIND.name,
    ];
    let states = [
        slow_start::KIND.name,
        socket_buffer::KIND.name,
        window_below_bdp::KIND.name,
        link_loss::KIND.name,
        queue_drop::KIND.name,
        retransmission_stall::KIND.name,
        synchronised_loss::KIND.name,
        undersized_buffer::KIND.name,
    ];
    let reported = context
        .measurement
        .parts
        .iter()
        .all(|part| context.account(part).is_some());
    // Estimated accounts do not contain the time of Nagle's algorithm; reported ones do.
    let nagle = |part: &MeasuredPart<'_>| {
        context
            .account(part)
            .is_some_and(|account| !account.is_estimated)
    };
    let is_nagle = finding.kind == nagle_delayed_ack::KIND.name;
    always.contains(&finding.kind)
        || (reported && states.contains(&finding.kind))
        || (is_nagle && context.measurement.parts.iter().all(nagle))
}
