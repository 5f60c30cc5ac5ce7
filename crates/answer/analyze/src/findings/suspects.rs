//! Suspects: things in the specification that could cost time, as findings without proof. Each has one change of the plan that removes it;
//! a caller that simulates the plan with and without the change learns what it costs. Events are not looked at, only plan and records.

use crate::findings::bulk::application_limited;
use crate::findings::bulk::link_loss;
use crate::findings::bulk::network_limited;
use crate::findings::bulk::outage;
use crate::findings::bulk::queue_drop;
use crate::findings::bulk::receiver_limited;
use crate::findings::bulk::reordering;
use crate::findings::bulk::socket_buffer;
use crate::findings::bulk::window_below_bdp;
use crate::findings::calls::nagle_delayed_ack;
use crate::findings::change::PlanChange;
use crate::findings::environment::cpu_limit;
use crate::findings::finding::{Advice, Finding};
use crate::findings::kind::FindingKind;
use crate::findings::measured::measurement::FindingMeasurement;
use crate::findings::measured::needless_resends::NeedlessResends;
use crate::findings::measured::part::{MeasuredPart, PartWorkload};
use crate::findings::measured::path::PathPort;
use stackline_core::catalogue::FlowControl;
use stackline_core::network::LossModel;
use stackline_core::procedure::{self, OperationCall, PairSide};
use stackline_core::time::Duration;

/// Something in the specification that may cost time.
#[derive(Clone, Debug, PartialEq)]
pub struct Suspect {
    /// The finding it would be, without figures and with share and confidence 0.
    pub finding: Finding,
    /// Words that identify the place: a finding of the same kind is about the same place if its text contains one of them.
    pub places: Vec<String>,
}

/// The most ports (directions of links) that are looked at.
const MOST_LINKS: usize = 8;
/// A port that is busy for at least this share of the time is a suspect: a faster link may help.
const USED: f64 = 0.6;

/// All suspects of a measurement.
pub(super) fn find_suspects(measurement: &FindingMeasurement<'_>) -> Vec<Suspect> {
    let mut found = Vec::new();
    for part in &measurement.parts {
        found.extend(delays(measurement, part));
        found.extend(options(measurement, part));
    }
    found.extend(links(measurement));
    found.extend(hosts(measurement));
    found.extend(load(measurement));
    found
}

/// A suspect of that kind: `what` may cost time, and `change` removes it.
fn suspect(
    measurement: &FindingMeasurement<'_>,
    kind: &FindingKind,
    places: Vec<String>,
    what: String,
    change: PlanChange,
) -> Suspect {
    let cure = match &change {
        PlanChange::Faster(_) => "a faster link, or fewer bytes",
        _ => "remove this cause",
    };
    let advice = Advice {
        change: Some(change),
        ..Advice::new(cure)
    };
    let finding = Finding {
        measurement: Some(measurement.index),
        tries: vec![advice],
        ..kind.of_run(0.0, 0.0, what)
    };
    Suspect { finding, places }
}

/// Delays (`Delay`) that either application makes between its operations, unless it has a pace.
fn delays(measurement: &FindingMeasurement<'_>, part: &MeasuredPart<'_>) -> Vec<Suspect> {
    let waits = |side: &PairSide| {
        procedure::contains_call(part.plan.procedure.side(*side), &|call| {
            matches!(call, OperationCall::Delay(_))
        }) && !part.paces(*side)
    };
    let sides = [PairSide::Initiator, PairSide::Responder]
        .into_iter()
        .filter(waits);
    sides
        .map(|side| {
            let (host, change) = (part.host(side), PlanChange::NoDelays(part.index, side));
            let reads = matches!(part.work, PartWorkload::Bulk(sender) if sender != side);
            let (kind, what) = if reads {
                (
                    &receiver_limited::KIND,
                    format!(
                        "the receiver is the limit: the application on {host} pauses between its reads"
                    ),
                )
            } else {
                let what =
                    format!("the application on {host} is the limit: it pauses between its operations");
                (&application_limited::KIND, what)
            };
            suspect(measurement, kind, vec![format!("on {host} ")], what, change)
        })
        .collect()
}

/// Socket buffers whose size the specification requests, and Nagle's algorithm.
fn options(measurement: &FindingMeasurement<'_>, part: &MeasuredPart<'_>) -> Vec<Suspect> {
    let stack = &part.plan.stack;
    let mut found = Vec::new();
    let buffers = [
        (
            "receive_buffer",
            &window_below_bdp::KIND,
            "the receive buffer",
        ),
        ("send_buffer", &socket_buffer::KIND, "the send buffer"),
    ];
    for (name, kind, words) in buffers {
        // A buffer that holds all that is sent before anything is waited for limits nothing.
        let small = |bytes: &u64| *bytes < 2 * part.longest_message();
        if let Some(bytes) = stack.number(name).filter(small) {
            let what = format!("the size requested for {words} is the limit: `{name} = {bytes}`");
            found.push(suspect(
                measurement,
                kind,
                vec![String::new()],
                what,
                PlanChange::Unset(part.index, name),
            ));
        }
    }
    // In a one-way transfer Nagle's algorithm delays only the very end: nothing waits for the ends of other messages.
    let answered = part.work.is_answered();
    if answered && stack.facts.flow_control == FlowControl::KernelBuffers && !stack.flag("nodelay")
    {
        let change = PlanChange::nodelay(part.index);
        let what = "Nagle's algorithm holds back the end of messages".to_owned();
        found.push(suspect(
            measurement,
            &nagle_delayed_ack::KIND,
            vec![String::new()],
            what,
            change,
        ));
    }
    found
}

/// Losses and queues of the links that data goes over.
fn links(measurement: &FindingMeasurement<'_>) -> Vec<Suspect> {
    let crossed = || {
        measurement
            .ports
            .iter()
            .filter(|port| measurement.is_crossed(port) && port.packets > 0)
    };
    let mut found = Vec::new();
    for port in crossed().take(MOST_LINKS) {
        let (name, ends) = (&port.name, port.hop.ends.clone());
        let places = vec![name.clone(), format!("{}>{}", ends.1, ends.0)];
        found.extend(interruptions(measurement, port, &places));
        if port.link_drops() > 0 && port.hop.losses != LossModel::None {
            let what = format!("the link {name} loses packets");
            found.push(suspect(
                measurement,
                &link_loss::KIND,
                places.clone(),
                what,
                PlanChange::NoLoss(ends.clone()),
            ));
        }
        if port.queue_drops() > 0 && (port.hop.queue_bytes.is_some() || port.hop.drops_early) {
            let what = format!("the queue before {name} drops packets");
            found.push(suspect(
                measurement,
                &queue_drop::KIND,
                places.clone(),
                what,
                PlanChange::DropTail(ends.clone(), ROOM),
            ));
        }
        if measurement.busy(port) >= USED {
            let what = format!("the link {name} ({}) is the limit", port.rate());
            found.push(suspect(
                measurement,
                &network_limited::KIND,
                places,
                what,
                PlanChange::Faster(vec![ends]),
            ));
        }
    }
    found
}

/// Times in which a link carries nothing, and packets that overtake one another on it.
fn interruptions(
    measurement: &FindingMeasurement<'_>,
    port: &PathPort,
    places: &[String],
) -> Vec<Suspect> {
    let (name, ends) = (&port.name, &port.hop.ends);
    let mut found = Vec::new();
    let mut outages = measurement.outages.iter();
    if let Some(outage) = outages.find(|one| one.place == *name) {
        found.push(suspect(
            measurement,
            &outage::KIND,
            places.to_vec(),
            format!("the link {name} {}", outage.words(longest_run(measurement))),
            PlanChange::NoOutage(ends.clone()),
        ));
    }
    let resends = NeedlessResends::from_measurement(measurement);
    if resends.is_some_and(|resends| measurement.ports[resends.port].name == *name) {
        found.push(suspect(
            measurement,
            &reordering::KIND,
            places.to_vec(),
            format!("packets overtake one another on the link {name}"),
            PlanChange::InOrder(ends.clone()),
        ));
    }
    found
}

/// The elapsed time of the longest run.
fn longest_run(measurement: &FindingMeasurement<'_>) -> Duration {
    let records = measurement.parts.iter().flat_map(|part| &part.records);
    Duration(records.map(|record| record.elapsed_ns).max().unwrap_or(0))
}

/// A queue size that no data exceeds, bytes: 4 GiB.
const ROOM: u64 = 1 << 32;

/// Measured hosts whose processors take time to copy packets.
fn hosts(measurement: &FindingMeasurement<'_>) -> Vec<Suspect> {
    let ends = |part: &MeasuredPart<'_>| [part.hosts.0.clone(), part.hosts.1.clone()];
    let measured: Vec<String> = measurement.parts.iter().flat_map(ends).collect();
    let hosts = measurement
        .network
        .map_or(&[][..], |network| &network.hosts)
        .iter();
    let copies = |host: &&stackline_core::network::NetworkHost| {
        host.interface.copy_ns_per_byte > 0.0 || host.interface.copy_per_packet.seconds() > 0.0
    };
    hosts
        .filter(|host| measured.contains(&host.name))
        .filter(copies)
        .map(|host| {
            let what = format!(
                "the processor of {} is the limit: it copies each packet",
                host.name
            );
            let place = format!("of {}", host.name);
            suspect(
                measurement,
                &cpu_limit::KIND,
                vec![place],
                what,
                PlanChange::Processor(host.name.clone()),
            )
        })
        .collect()
}

/// Other traffic: background parts of the measurement, if the fullest link is in use.
fn load(measurement: &FindingMeasurement<'_>) -> Option<Suspect> {
    measurement.plan.parts.iter().find(|part| part.background)?;
    let shared = |port: &&PathPort| port.queue_drops() > 0 || measurement.busy(port) > 0.0;
    let port = measurement.fullest().filter(shared)?;
    let what = format!("other traffic competes for the link {}", port.name);
    let places = vec!["other traffic".to_owned()];
    Some(suspect(
        measurement,
        &network_limited::KIND,
        places,
        what,
        PlanChange::NoLoad,
    ))
}
