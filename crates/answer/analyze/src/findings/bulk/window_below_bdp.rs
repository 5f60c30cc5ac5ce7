//! Window below the bandwidth-delay product: the sender waits for acknowledgements, as the window allows no more data in flight.

use crate::findings::bulk::flow_control_window;
use crate::findings::bulk::shared::buffer_request::SocketBufferSide;
use crate::findings::change::PlanChange;
use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, LEAST, percent};
use crate::findings::followed_units::network;
use crate::findings::imps::waits;
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::part::{LEAST_TRIP_S, MeasuredPart, opposite_side, side_of};
use crate::statistics::to_f64;
use stackline_core::catalogue::PacketsInFlight;
use stackline_core::plan::Size;
use stackline_core::units;
use stackline_model::pipe;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "window_below_bdp",
    meaning: "the sender waits for the receiver's window, which is smaller than the bandwidth-delay product",
    find: &[Find::Run(in_session), Find::Part(find)],
};

/// Finding of a session: a run without measurements, whose units are followed through events.
fn in_session(log: &FindingEventLog<'_>) -> Option<Finding> {
    network::window_below_bdp(&KIND, log)
}

/// Confidence if the window is not smaller than the bandwidth-delay product, but the sender waits for it.
const BARELY: f64 = 0.6;

fn find(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    if flow_control_window::is_full_first(part) {
        return None;
    }
    let in_packets = || {
        if part.work.is_answered() {
            turns_of_calls(context, part)
        } else {
            stop_and_wait(context, part)
        }
    };
    of_calls(context, part)
        .or_else(|| offered(context, part))
        .or_else(in_packets)
}

/// The finding about calls whose messages are longer than the receiver's window.
fn of_calls(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    let account = context.account(part)?;
    let held = account.most(|states| states.receive_window)?;
    let (side, own) = (held.side, held.share);
    let share = own * part.weight;
    if !part.work.is_answered() || share < LEAST {
        return None;
    }
    let (reader, sender) = (part.host(opposite_side(side)), part.host(side));
    let (window, trip) = (
        part.offered_of(part.setting_of(opposite_side(side), "receive_buffer")?),
        part.round_trip_s()?,
    );
    let beside = match held.is_of_both {
        true => format!(", together with {reader}, which waits for that of {sender}"),
        false => String::new(),
    };
    let sentence = format!(
        "messages are longer than the window of {reader}: with {} per round trip of {}, {sender} waits for it {}{beside}",
        units::format_size(window),
        units::format_time(trip),
        part.of_its_time(own)
    );
    let figure = format!(
        "the window of {reader} held {sender} back {} of the time",
        percent(own)
    );
    let finding = KIND
        .finding(context, share, account.confidence(0.95), sentence)
        .because(context.measurement.figure(figure));
    let needed = part
        .bandwidth_delay_bytes()
        .map(|needed| (2.0 * needed) as u64);
    let advice = format!(
        "a larger receive buffer ({})",
        SocketBufferSide::Receive.option(part, needed)
    );
    Some(match needed {
        Some(needed) => finding.attempt_by(advice, SocketBufferSide::Receive.change(part, needed)),
        None => finding.attempt(advice),
    })
}

/// The finding about bulk data that waits for the window that the receiver offers.
fn offered(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    let limits = part.limits()?;
    let reader = opposite_side(part.work.sender()?);
    // Time in which the reader is outside its operations is left out: that is the finding `receiver_limited`.
    let counted = context.at_most(part, limits.receive_window, |states| states.receive_window);
    let own = counted.max(paced_by_window(context, part, counted).unwrap_or(0.0));
    // While a link carries nothing, a kernel counts the time for a window that is full.
    let carried = 1.0 - context.outages.of_part_share(part.index);
    let own = own.min(carried);
    let share = own * (1.0 - context.outside_share(part.index, reader)) * part.weight;
    let window = part.receive_buffer()?;
    let trip = part.round_trip_s()?;
    // On one machine a closed window means that the reader's processor does not keep up.
    if part.paths.is_none() && trip < LEAST_TRIP_S {
        return None;
    }
    let lets = pipe::window_limited_bit_s(to_f64(window), trip)?;
    // Not a finding if the window is enough for the stream's share of the path, or if the rate shows that the window was larger. A sender
    // that reports its states knows better: transmission on each link and delayed acknowledgements lengthen the round trip.
    let enough = context.account(part).is_none()
        && context
            .measurement
            .fair_bit_s(part)
            .is_some_and(|fair| lets >= fair);
    let larger = part.pair_bit_s() > SLACK * lets;
    let by_reader =
        part.window_is_closed_by_reader(limits, lets) && context.account(part).is_none();
    let unfilled = context.account(part).is_none() && !fills(part, window);
    if share < LEAST || enough || larger || by_reader || unfilled {
        return None;
    }
    let waits = part.of_its_time(own.max(limits.receive_window.min(carried)));
    let (sentence, confidence, least) = match part.bottleneck_bit_s() {
        // Full packets take longer to transmit than the small one of which the round trip is.
        Some(rate) if lets >= rate => (
            format!(
                "the window is hardly larger than the bandwidth-delay product: with {} per round trip of {}, the sender waits for it {waits}",
                units::format_size(window),
                units::format_time(trip),
            ),
            BARELY,
            to_f64(window),
        ),
        path => (below_words(window, trip, lets, path, &waits), 0.95, 0.0),
    };
    let figure = format!(
        "sent at {} while the receiver's window held the sender back {} of the time",
        units::format_rate(part.rate_bit_s()),
        percent(limits.receive_window)
    );
    let finding = KIND
        .finding(context, share, confidence, sentence)
        .because(context.measurement.figure(figure));
    let needed = part.bandwidth_delay_bytes().map(|needed| needed.max(least));
    let option = SocketBufferSide::Receive.option(part, needed.map(|needed| (2.0 * needed) as u64));
    Some(match needed {
        Some(needed) => {
            let advice = format!(
                "a receive buffer of at least {} ({option})",
                units::format_size(needed as u64)
            );
            finding.attempt_by(
                advice,
                SocketBufferSide::Receive.change(part, (2.0 * needed) as u64),
            )
        }
        None => finding.attempt(format!("a larger receive buffer ({option})")),
    })
}

/// The sentence that a window is too small, with the rate that it allows.
fn below_words(window: u64, trip: f64, lets: f64, path: Option<f64>, waits: &str) -> String {
    let path = path.map_or_else(String::new, |rate| {
        format!(
            " of the {} that the path can carry",
            units::format_rate(rate)
        )
    });
    format!(
        "the window is smaller than the bandwidth-delay product: with {} per round trip of {}, it allows {}{path}, and the sender waits for it {waits}",
        units::format_size(window),
        units::format_time(trip),
        units::format_rate(lets),
    )
}

/// The share of the time that a window costs a sender with BBR: that in which the path could have carried more. BBR takes the rate that the
/// window allows for the rate of the path and spreads its packets over the round trip, so its kernel counts little time as limited by the
/// window.
fn paced_by_window(
    context: &FindingContext<'_>,
    part: &MeasuredPart<'_>,
    counted: f64,
) -> Option<f64> {
    let sender = part.work.sender()?;
    let (record, trip) = (part.records.first()?, part.round_trip_s()?);
    let congestion = side_of(record, sender).settings.get("congestion")?;
    let paces = congestion.starts_with("bbr") && context.account(part).is_none();
    let lets = pipe::window_limited_bit_s(to_f64(part.receive_buffer()?), trip)?;
    let is_filled = part.pair_bit_s() >= FILLED * lets;
    let opening = context.measurement.opening_s() / context.measurement.basis_s();
    (paces && is_filled && counted >= LEAST)
        .then(|| context.measurement.fullness(part))?
        .map(|full| (1.0 - full - opening).max(0.0))
}

/// Whether a transfer is long enough to fill a window of that many bytes: slow start sends about as many bytes before its congestion window
/// is that large, and a kernel's receiver enlarges its own window meanwhile.
fn fills(part: &MeasuredPart<'_>, window: u64) -> bool {
    part.paths.is_none() || part.longest_message() >= 2 * window
}

/// The finding about calls over a stack with a fixed number of packets in flight: longer messages take several round trips.
fn turns_of_calls(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    let InFlight {
        packets, packet, ..
    } = in_flight(part)?;
    let trip = part.round_trip_s()?;
    let each = |size: &Size| match size {
        Size::Bytes(bytes) => Some(bytes.div_ceil(packet).div_ceil(packets.max(1))),
        Size::Drawn(_) => None,
    };
    let turns = each(&part.plan.data.unit)? + each(&part.plan.data.reply)?;
    // The last round trip of each message is not a wait: what follows does not need its acknowledgement.
    let waits = to_f64(turns.saturating_sub(2)) * trip * to_f64(part.exchanges());
    let own = (waits / part.basis_s()).min(1.0);
    let share = own * part.weight;
    if share < LEAST {
        return None;
    }
    let sentence = format!(
        "a call takes {turns} round trips of {}: its messages are sent {packets} {} of {} at a time, which costs {}",
        units::format_time(trip),
        if packets == 1 { "packet" } else { "packets" },
        units::format_size(packet),
        part.of_its_time(own)
    );
    let figure = format!(
        "{} calls x {} x {}",
        part.exchanges(),
        turns.saturating_sub(2),
        units::format_time(trip)
    );
    let finding = KIND
        .finding(context, share, 0.9, sentence)
        .because(context.measurement.figure(figure));
    let most = each(&part.plan.data.unit)?.max(each(&part.plan.data.reply)?) * packets;
    Some(finding.attempt_by(
        format!("`window(n = {most})`, or `blast`"),
        PlanChange::Window(part.index, most),
    ))
}

/// The finding about bulk data over a stack with a fixed number of packets in flight, such as stop-and-wait.
fn stop_and_wait(context: &FindingContext<'_>, part: &MeasuredPart<'_>) -> Option<Finding> {
    if let PacketsInFlight::Links(message) = part.plan.stack.facts.in_flight? {
        return waits::messages_wait(&KIND, context, part, message);
    }
    let InFlight { packets, packet } = in_flight(part)?;
    let trip = part.round_trip_s()?;
    let window = to_f64(packets * packet);
    let needed = part.bandwidth_delay_bytes()?;
    let lets = pipe::window_limited_bit_s(window, trip)?;
    let share = (1.0 - context.measurement.fullness(part)?) * part.weight;
    // Only where the window accounts for the measured rate.
    let near = (0.5..2.0).contains(&(part.rate_bit_s() / lets));
    if share < LEAST || window >= needed || !near {
        return None;
    }
    let sentence = format!(
        "the window is smaller than the bandwidth-delay product: with {packets} {} of {} per round trip of {}, it allows {} of the path's {}",
        if packets == 1 { "packet" } else { "packets" },
        units::format_size(packet),
        units::format_time(trip),
        units::format_rate(lets),
        units::format_rate(part.bottleneck_bit_s()?)
    );
    let figure = format!("sent at {}", units::format_rate(part.rate_bit_s()));
    let finding = KIND
        .finding(context, share, 0.9, sentence)
        .because(context.measurement.figure(figure));
    let most = (needed / to_f64(packet.max(1))).ceil();
    let advice = format!("`window(n = {most})`, or `blast`: the path holds {most} packets");
    Some(finding.attempt_by(advice, PlanChange::Window(part.index, most as u64)))
}

/// How much a stack may have in flight.
struct InFlight {
    /// The number of packets.
    packets: u64,
    /// The size of each, bytes.
    packet: u64,
}

fn in_flight(part: &MeasuredPart<'_>) -> Option<InFlight> {
    let stack = &part.plan.stack;
    let of_path = || {
        part.data_path()
            .map(|path| path.mtu_bytes().saturating_sub(HEADERS))
    };
    let packets = match stack.facts.in_flight? {
        PacketsInFlight::Fixed(packets) => packets,
        PacketsInFlight::OptionN => stack.number("n")?,
        PacketsInFlight::Links(_) => return None,
    };
    Some(InFlight {
        packets,
        packet: stack.number("packet").or_else(of_path)?.max(1),
    })
}

/// A sender with BBR whose rate is at least this share of what the window allows is limited by the window: BBR probes the path below that
/// rate.
const FILLED: f64 = 0.6;

/// If the rate is more than this many times what the window allows, the window was really larger.
const SLACK: f64 = 1.2;

/// Headers of a packet of stackline's own protocols over UDP, bytes: 28 of IPv4 and UDP, the rest of the protocol.
const HEADERS: u64 = 60;
