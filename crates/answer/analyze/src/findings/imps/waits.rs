//! What delays messages between hosts of IMPs (packet switches of the ARPANET), from the IMPs' own reports: all channels of a line in use,
//! no reassembly buffers, the window, links with their one message in flight until its RFNM ("ready for next message") arrives (BBN 2499,
//! 2.1 to 2.3). Processors of IMPs are in `processors`.

use crate::findings::change::PlanChange;
use crate::findings::environment::processors::SaturatedProcessor;
use crate::findings::finding::{Finding, LEAST, percent};
use crate::findings::kind::FindingKind;
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::measurement::FindingMeasurement;
use crate::findings::measured::part::{MeasuredPart, opposite_side};
use crate::imps::ImpAnalysis;
use crate::statistics::to_f64;
use stackline_core::catalogue::OptionValue;
use stackline_core::network::{ImpSettings, Network, NetworkLink};
use stackline_core::run_record::{SideRecord, TransportRecord};
use stackline_core::units;
use stackline_model::arpanet_messages::{PACKET_BITS, PACKET_DATA_BITS};
use stackline_model::pipe;

/// The finding about messages that wait for one another: the first cause that applies. `message` is the size of a message, bytes.
pub(crate) fn messages_wait(
    kind: &FindingKind,
    context: &FindingContext<'_>,
    part: &MeasuredPart<'_>,
    message: u64,
) -> Option<Finding> {
    // If an IMP's processor is at its limit, everything waits for it, and that is a finding of its own.
    let network = context.measurement.network?;
    let is_imp = |processor: &SaturatedProcessor| {
        network
            .switches
            .iter()
            .any(|switch| switch.name == processor.host)
    };
    if context.processors.iter().any(is_imp) {
        return None;
    }
    waits_for_channels(kind, context, part)
        .or_else(|| waits_for_allocation(kind, context, part, message))
        .or_else(|| waits_for_room(kind, context, part))
        .or_else(|| waits_for_rfnms(kind, context, part, message))
}

/// The reports of the IMPs in a measurement's runs.
fn reports(measurement: &FindingMeasurement<'_>) -> ImpAnalysis {
    crate::imps::reports(measurement.log.input.events)
}

/// All channels of a line have a packet in flight: the next one waits for an acknowledgement (2.1.2).
fn waits_for_channels(
    kind: &FindingKind,
    context: &FindingContext<'_>,
    part: &MeasuredPart<'_>,
) -> Option<Finding> {
    let network = context.measurement.network?;
    let reports = reports(&context.measurement);
    let line_of = |link: &NetworkLink| {
        let names = [
            format!("{}>{}", link.ends.0, link.ends.1),
            format!("{}>{}", link.ends.1, link.ends.0),
        ];
        let lines = names
            .into_iter()
            .filter_map(|name| Some((reports.lines.get(&name)?, name)));
        lines.max_by_key(|(line, _)| line.bits)
    };
    let limited = network.links.iter().filter_map(|link| {
        let (line, name) = line_of(link)?;
        let rate = link.rate.mean_bit_s()?;
        let channels = channels(network, link)?;
        // The packet itself, half a packet on average that the acknowledgement waits for, and the packet that carries it.
        let trip = 2.0 * PACKET_BITS / rate + 0.5 * PACKET_BITS / rate + 2.0 * link.delay.seconds();
        let lets = f64::from(channels) * PACKET_DATA_BITS / trip;
        let is_so = line.busy.0 < NOT_FULL && line.bit_s() >= NEAR * lets;
        is_so.then_some((1.0 - line.busy.0, name, channels, trip, lets, link))
    });
    let (idle, name, channels, trip, lets, link) =
        limited.max_by(|one, other| one.0.total_cmp(&other.0))?;
    let share = idle * part.weight;
    if share < LEAST {
        return None;
    }
    let sentence = format!(
        "the line {name} has {}: with one packet on each, acknowledged after {}, it carries at most {}",
        units::counted(u64::from(channels), "channel"),
        units::format_time(trip),
        units::format_rate(lets)
    );
    let figure = format!("the line was busy {} of the time", percent(1.0 - idle));
    let finding = kind
        .finding(context, share, 0.8, sentence)
        .because(context.measurement.figure(figure));
    let more = channels.saturating_mul(4);
    let change = PlanChange::Channels(link.ends.clone(), more);
    Some(finding.attempt_by(
        format!("more channels at both ends: `channels {more}`"),
        change,
    ))
}

/// A line that carries at least this fraction of the rate that its channels allow is limited by them.
const NEAR: f64 = 0.8;
/// A line that is busy for at least this share of the time is limited by its own rate, and not by its channels.
const NOT_FULL: f64 = 0.8;

/// The number of channels of a line: the lesser of what its two IMPs have.
fn channels(network: &Network, link: &NetworkLink) -> Option<u16> {
    let usual = ImpSettings::channels(link.delay);
    let of = |name: &str| {
        network
            .switches
            .iter()
            .find(|switch| switch.name == name)?
            .imp
            .as_ref()
    };
    let (one, other) = (of(&link.ends.0)?, of(&link.ends.1)?);
    Some(
        one.channels
            .unwrap_or(usual)
            .min(other.channels.unwrap_or(usual)),
    )
}

/// Data waits because the receiver has allocated no more (NCP's flow control).
fn waits_for_allocation(
    kind: &FindingKind,
    context: &FindingContext<'_>,
    part: &MeasuredPart<'_>,
    message: u64,
) -> Option<Finding> {
    let waited = |(start, stop): (TransportRecord, TransportRecord)| {
        Some(stop.receive_window_limited_s? - start.receive_window_limited_s.unwrap_or(0.0))
    };
    let waited: f64 = sides(part).filter_map(|side| waited(side.transport?)).sum();
    let own = (waited / part.basis_s()).min(1.0);
    let share = own * part.weight;
    if share < LEAST {
        return None;
    }
    // The default allocation is eight messages.
    let allocate = part.plan.stack.number("allocate").unwrap_or(8 * message);
    let size = units::format_size(allocate);
    let sentence = format!(
        "data waits {} for the receiver's allocation of {size}",
        part.of_its_time(own)
    );
    let figure = format!(
        "waited {} of {} for allocations",
        units::format_time(waited),
        units::format_time(part.basis_s())
    );
    let finding = kind
        .finding(context, share, 0.9, sentence)
        .because(context.measurement.figure(figure));
    let more = 4 * allocate;
    let advice = format!(
        "a larger allocation: `ncp(allocate = {})`",
        units::format_size(more)
    );
    let change = PlanChange::Option(part.index, "allocate", OptionValue::Number(more));
    Some(finding.attempt_by(advice, change))
}

/// The records of both sides of a part, over all runs.
fn sides<'p>(part: &'p MeasuredPart<'_>) -> impl Iterator<Item = &'p SideRecord> {
    part.records
        .iter()
        .flat_map(|record| [&record.initiator, &record.responder])
}

/// The IMP that a host is connected to: name and settings.
fn imp_of<'c>(context: &FindingContext<'c>, host: &str) -> Option<(&'c str, &'c ImpSettings)> {
    let network = context.measurement.network?;
    let link = network
        .links
        .iter()
        .find(|link| link.ends.0 == host || link.ends.1 == host)?;
    let other = if link.ends.0 == host {
        &link.ends.1
    } else {
        &link.ends.0
    };
    let switch = network
        .switches
        .iter()
        .find(|switch| switch.name == *other)?;
    Some((&switch.name, switch.imp.as_ref()?))
}

/// The number of messages that the sender's IMP lets be in flight to another IMP, and the name of that IMP.
fn window_of_imps<'c>(
    context: &FindingContext<'c>,
    part: &MeasuredPart<'_>,
) -> Option<(u64, &'c str)> {
    let (name, imp) = imp_of(context, part.host(part.work.sender()?))?;
    Some((
        imp.window.map_or(u64::from(ImpSettings::WINDOW), u64::from),
        name,
    ))
}

/// Messages of several packets wait for reassembly buffers at the receiver's IMP, according to its reports.
fn waits_for_room(
    kind: &FindingKind,
    context: &FindingContext<'_>,
    part: &MeasuredPart<'_>,
) -> Option<Finding> {
    let reader = part.host(opposite_side(part.work.sender()?));
    let (name, imp) = imp_of(context, reader)?;
    let reports = reports(&context.measurement);
    let reported = reports.imps.get(name).filter(|imp| imp.seconds > 0.0)?;
    let full = reported.full_seconds / reported.seconds;
    let share = (1.0 - context.measurement.fullness(part)?) * full * part.weight;
    if full < MOSTLY || share < LEAST {
        return None;
    }
    let room = imp.reassembly.unwrap_or(ImpSettings::ROOM);
    let sentence = format!(
        "messages wait for reassembly buffers at {name}: it can reassemble {room} at a time, and no buffer was free in {} of its reports",
        percent(full)
    );
    let figure = describe_free_path(part, share);
    let finding = kind
        .finding(context, share, 0.7, sentence)
        .because(context.measurement.figure(figure));
    let more = 4 * room;
    let change = PlanChange::Reassembly(name.to_owned(), more);
    Some(finding.attempt_by(
        format!("more memory at {name}: `reassembly {more}`"),
        change,
    ))
}

/// An IMP delays messages if it had no free reassembly buffer in at least this share of its reports' time.
const MOSTLY: f64 = 0.5;

/// The rate of a part and the share of the time in which the path was not full, in words.
fn describe_free_path(part: &MeasuredPart<'_>, share: f64) -> String {
    format!(
        "sent at {}; the path has spare capacity {} of the time",
        units::format_rate(part.rate_bit_s()),
        percent(share)
    )
}

/// Links (of NCP) have their one message in flight, and each waits for its RFNM; the transport measured how long that takes.
fn waits_for_rfnms(
    kind: &FindingKind,
    context: &FindingContext<'_>,
    part: &MeasuredPart<'_>,
    message: u64,
) -> Option<Finding> {
    let links = part.plan.stack.number("links").unwrap_or(1);
    let trips = sides(part)
        .filter_map(|side| side.transport)
        .map(|(_, stop)| stop)
        .filter(|stop| stop.bytes_acked > Some(message));
    let trip = trips
        .map(|stop| stop.rtt_s)
        .filter(|trip| *trip > 0.0)
        .reduce(f64::max)?;
    let lets = pipe::window_limited_bit_s(to_f64(links * message), trip)?;
    let share = (1.0 - context.measurement.fullness(part)?) * part.weight;
    let near = (0.5..2.0).contains(&(part.rate_bit_s() / lets));
    if share < LEAST || !near {
        return None;
    }
    let (most, imp) = window_of_imps(context, part).unwrap_or((u64::from(ImpSettings::WINDOW), ""));
    let under_way = links.min(most);
    // The sender measures from when the message is at its host's interface, where it waits for others if the IMP's window is full: only a
    // part of the time is the round trip itself.
    let trip = trip * to_f64(under_way) / to_f64(links);
    let (messages, allow) = match under_way {
        1 => ("message", "allows"),
        _ => ("messages", "allow"),
    };
    let sentence = format!(
        "{under_way} {messages} of {} per round trip of {} {allow} {}: {}",
        units::format_size(message),
        units::format_time(trip),
        units::format_rate(lets),
        if links > most {
            format!("IMP {imp} allows {most} in flight (its `window`), and the other links wait")
        } else {
            "a link may have only one message in flight until its RFNM arrives".to_owned()
        }
    );
    let figure = describe_free_path(part, share);
    let finding = kind
        .finding(context, share, 0.9, sentence)
        .because(context.measurement.figure(figure));
    let window = 2 * most;
    if links > most {
        let change =
            PlanChange::ImpWindow(imp.to_owned(), u32::try_from(window).unwrap_or(u32::MAX));
        let advice = format!("a larger window at the IMP: `window {window}`");
        return Some(finding.attempt_by(advice, change));
    }
    if links == most {
        return Some(finding.attempt(format!(
            "a larger window at the IMP and more links: `window {window}`, `ncp(links = {window})`"
        )));
    }
    let more = (2 * links).min(most);
    let advice = format!("more messages at once: `ncp(links = {more})`");
    let change = PlanChange::Option(part.index, "links", OptionValue::Number(more));
    Some(finding.attempt_by(advice, change))
}
