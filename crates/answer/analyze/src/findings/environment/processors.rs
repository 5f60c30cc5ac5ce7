//! Processors at their limit: by their CPU time (live, emulated), by the cost of copying packets (simulated), or because a control group
//! throttles them.

use crate::findings::change::PlanChange;
use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Advice, Evidence, LEAST, percent};
use crate::findings::imps;
use crate::findings::measured::measurement::FindingMeasurement;
use crate::findings::measured::part::{MeasuredPart, PartWorkload, interface_packet_s, side_of};
use crate::statistics::to_f64;
use stackline_core::network::{NetworkHost, NetworkInterface};
use stackline_core::procedure::PairSide;
use stackline_core::run_record::RunRecord;
use stackline_core::units;

/// A processor that is busy for at least this share of the time is at its limit; the rest is lost when a transfer begins and ends.
pub(crate) const FULL: f64 = 0.85;
/// The least share of response times that copying packets must take to be a limit of calls.
const MOST_OF_A_CALL: f64 = 0.15;

/// Ends that use at least this many cores together may be held up by a machine whose cores are all busy.
const COMPUTING: f64 = 0.2;

/// The reason in a `PROCESS_PAUSED` event when the process was ready to run and others had its core: then the processor is the limit.
pub(crate) const NO_CORE: &str = "waited for a core";

/// A processor that is at its limit.
#[derive(Clone, Debug)]
pub(crate) struct SaturatedProcessor {
    /// The share of the time that it explains, 0 to 1.
    pub(crate) share: f64,
    /// The host (or IMP) whose processor it is.
    pub(crate) host: String,
    pub(crate) sentence: String,
    pub(crate) evidence: Evidence,
    pub(crate) tries: Vec<Advice>,
    pub(crate) confidence: f64,
}

/// All processors at their limit.
pub(crate) fn at_their_limit(measurement: &FindingMeasurement<'_>) -> Vec<SaturatedProcessor> {
    let mut found = Vec::new();
    if let Some(network) = measurement.network {
        found.extend(
            network
                .hosts
                .iter()
                .filter_map(|host| copying(measurement, host)),
        );
        found.extend(
            network
                .hosts
                .iter()
                .filter_map(|host| working(measurement, host)),
        );
        found.extend(imps::processors::processor(measurement, network));
    }
    for part in &measurement.parts {
        found.extend(threads(measurement, part));
        found.extend(shared_core(measurement, part));
        found.extend(held_back(measurement, part));
        found.extend(crowded(measurement, part));
        found.extend(all_cores(measurement, part));
    }
    found
}

/// The time that the interface of a host spent on copying packets.
struct PacketCopies {
    packets: u64,
    /// The time, s, including the time on the wire if the processor waits for that.
    busy_s: f64,
}

impl PacketCopies {
    fn from_measurement(measurement: &FindingMeasurement<'_>, host: &NetworkHost) -> Self {
        let interface = &host.interface;
        let mut copies = Self {
            packets: 0,
            busy_s: 0.0,
        };
        let ports = measurement.ports.iter().filter(|port| {
            port.packets > 0 && (port.hop.ends.0 == host.name || port.hop.ends.1 == host.name)
        });
        for port in ports {
            let mean = port.bytes / port.packets;
            let wire = if holds_the_wire(interface) && port.hop.ends.0 == host.name {
                port.hop.serialisation_s(mean).unwrap_or(0.0)
            } else {
                0.0
            };
            copies.busy_s += to_f64(port.packets) * (interface_packet_s(interface, mean) + wire);
            copies.packets += port.packets;
        }
        copies
    }

    /// The time to which copying is compared, s, and the least share of it that counts as a limit.
    fn basis(&self, measurement: &FindingMeasurement<'_>) -> (f64, f64) {
        let span_s = measurement.span_s;
        if !measurement.has_calls_or_connects() {
            return (span_s - measurement.opening_s().min(span_s / 2.0), FULL);
        }
        // If the processor is busy all the time, all calls wait for it at once; else each call waits for its own copies.
        let all_wait = self.busy_s >= FULL * span_s;
        let calls_s = calls_s(measurement);
        let basis_s = if all_wait {
            calls_s.min(span_s)
        } else {
            calls_s
        };
        (basis_s, MOST_OF_A_CALL)
    }
}

/// A simulated host whose interface has a cost of copying packets.
fn copying(measurement: &FindingMeasurement<'_>, host: &NetworkHost) -> Option<SaturatedProcessor> {
    let interface = &host.interface;
    if interface_packet_s(interface, 1) <= 0.0 {
        return None;
    }
    let copies = PacketCopies::from_measurement(measurement, host);
    let PacketCopies { packets, busy_s } = copies;
    let (basis_s, least) = copies.basis(measurement);
    let share = (busy_s / basis_s).min(1.0);
    // Of a link and a processor one after the other, the busier one is the limit.
    let faster = measurement
        .fullest()
        .is_some_and(|port| measurement.busy(port) >= share);
    if share < least || (faster && !measurement.has_calls_or_connects()) {
        return None;
    }
    let each = units::format_time(busy_s / to_f64(packets.max(1)));
    let sentence = format!(
        "the {} of {}{} spends {} of the time copying {packets} packets, {each} each",
        if interface.interface_copies {
            "interface"
        } else {
            "processor"
        },
        host.name,
        if share >= FULL {
            " is at its limit: it"
        } else {
            ""
        },
        percent(share)
    );
    let figure = format!(
        "{}: {packets} packets x {each} = {}",
        host.name,
        units::format_time(busy_s)
    );
    Some(SaturatedProcessor {
        share,
        host: host.name.clone(),
        sentence,
        evidence: measurement.figure(figure),
        tries: vec![
            faster_copies(host),
            Advice::new("fewer copies: larger units, or a stack that copies less"),
        ],
        confidence: 0.95,
    })
}

/// The advice for a host that spends its time copying packets.
fn faster_copies(host: &NetworkHost) -> Advice {
    let larger = "fewer and larger packets (`mtu 9180` on its links)";
    if host.interface.interface_copies {
        return Advice::new(format!(
            "an interface in {} that copies faster (`copy`), or {larger}",
            host.name
        ));
    }
    Advice {
        change: Some(PlanChange::Processor(host.name.clone())),
        ..Advice::new(format!(
            "a faster processor in {} (`cpu 2`), or {larger}",
            host.name
        ))
    }
}

/// A simulated host whose programs take its processor's time, according to its `CPU_USE` events.
fn working(measurement: &FindingMeasurement<'_>, host: &NetworkHost) -> Option<SaturatedProcessor> {
    let (busy, rows) = cores(measurement, &host.name).filter(|_| !host.work.is_nothing())?;
    let least = if measurement.has_calls_or_connects() {
        MOST_OF_A_CALL
    } else {
        FULL
    };
    (busy >= least).then(|| SaturatedProcessor {
        share: busy,
        host: host.name.clone(),
        sentence: format!(
            "the processor of {}{} is busy {} of the time with programs and packets",
            host.name,
            if busy >= FULL {
                " is at its limit: it"
            } else {
                ""
            },
            percent(busy)
        ),
        evidence: measurement.log.evidence(
            format!(
                "the processor of {} was busy {} of the time",
                host.name,
                percent(busy)
            ),
            &rows,
        ),
        tries: vec![
            Advice {
                change: Some(PlanChange::Processor(host.name.clone())),
                ..Advice::new(format!("a faster processor in {} (`cpu 2`)", host.name))
            },
            Advice::new("fewer operations and messages: several units in each, calls that do more"),
        ],
        confidence: 0.95,
    })
}

/// Whether the processor waits while a packet that it has copied is transmitted.
const fn holds_the_wire(interface: &NetworkInterface) -> bool {
    interface.busy_waiting || interface.single_buffered
}

/// The time of all parts with calls or turns, s; of all runs if there are none.
fn calls_s(measurement: &FindingMeasurement<'_>) -> f64 {
    let calling = |part: &&MeasuredPart<'_>| part.exchanges() > 0;
    let calls: f64 = measurement
        .parts
        .iter()
        .filter(calling)
        .map(MeasuredPart::basis_s)
        .sum();
    if calls > 0.0 {
        calls
    } else {
        measurement.span_s
    }
}

/// The threads of one side of a part that use their cores nearly all the time.
fn threads(
    measurement: &FindingMeasurement<'_>,
    part: &MeasuredPart<'_>,
) -> Option<SaturatedProcessor> {
    let (side, share) = greatest(|side| part.computed(side))?;
    let (host, share) = (part.host(side), share.min(1.0));
    let what = if side == PairSide::Initiator {
        "initiator"
    } else {
        "responder"
    };
    let computes = part.of_its_time(share);
    let (pairs, drive) = (part.plan.replicas, part.threads(side));
    let sentence = match pairs {
        _ if drive < pairs => {
            let whose = if drive == 1 {
                "the one thread".into()
            } else {
                format!("each of the {drive} threads")
            };
            format!(
                "{whose} of the {pairs} {what}s on {host} is at the limit of its core: it is on the CPU {computes}"
            )
        }
        0 | 1 => {
            format!("the {what} on {host} is at the limit of its core: it is on the CPU {computes}")
        }
        n => format!(
            "the {n} {what}s on {host} are at the limit of their cores: on average, each is on the CPU {computes}"
        ),
    };
    (share >= FULL).then(|| SaturatedProcessor {
        share: share * part.weight,
        host: host.to_owned(),
        sentence,
        evidence: measurement
            .figure(format!("CPU time of one {what}'s thread on {host}: {} of the measured time", percent(share))),
        tries: vec![
            if drive < pairs {
                "more threads, each on its own core (`threads` of the stack)".into()
            } else {
                "spread the work over several connections and cores (write a number of pairs before the part)".into()
            },
            "larger data units, so that fewer system calls are made; offload to the interface (`ethtool -K`)".into(),
        ],
        confidence: 0.9,
    })
}

/// A core that both sides of a part are pinned to and use nearly all the time together.
fn shared_core(
    measurement: &FindingMeasurement<'_>,
    part: &MeasuredPart<'_>,
) -> Option<SaturatedProcessor> {
    let (Some(own), Some(other)) = part.plan.cpu else {
        return None;
    };
    let of = |side| part.computed(side) * f64::from(part.threads(side));
    let (initiators, responders) = (of(PairSide::Initiator), of(PairSide::Responder));
    let share = (initiators + responders).min(1.0);
    let one_machine = part.paths.is_none() && part.plan.from == part.plan.to;
    (own == other && one_machine && share >= FULL).then(|| SaturatedProcessor {
        share: share * part.weight,
        host: part.hosts.0.clone(),
        sentence: format!(
            "core {own}, which both sides share, is at its limit: initiators use it {} and responders {} of the time",
            percent(initiators),
            percent(responders)
        ),
        evidence: measurement.figure(format!("CPU time of both sides: {} of the measured time", percent(share))),
        tries: vec!["a core for each side: `on cpu 0 to 1`".into(), "fewer, larger messages".into()],
        confidence: 0.9,
    })
}

/// A control group that was throttled by its CPU quota.
fn held_back(
    measurement: &FindingMeasurement<'_>,
    part: &MeasuredPart<'_>,
) -> Option<SaturatedProcessor> {
    let throttled_s = |record: &&RunRecord, side| {
        side_of(record, side)
            .host
            .as_ref()
            .and_then(|host| host.throttled_s)
            .unwrap_or(0.0)
    };
    let of = |side| {
        part.records
            .iter()
            .map(|record| throttled_s(record, side))
            .sum::<f64>()
            / part.elapsed_s
    };
    let (side, share) = greatest(of)?;
    let (host, share) = (part.host(side), share.min(1.0));
    let rows: Vec<u32> = measurement
        .log
        .rows("THROTTLED")
        .iter()
        .copied()
        .filter(|row| measurement.log.host(*row) == host)
        .collect();
    (share >= LEAST).then(|| SaturatedProcessor {
        share: share * part.weight,
        host: host.to_owned(),
        sentence: format!(
            "the control group on {host} is held back by its CPU limit {}",
            part.of_its_time(share)
        ),
        evidence: Evidence {
            what: format!("throttled {} of the measured time", percent(share)),
            ..measurement.log.evidence(String::new(), &rows)
        },
        tries: vec!["a larger quota: cpu.max of the control group".into()],
        confidence: 0.95,
    })
}

/// A process that was ready to run while others had its core.
fn crowded(
    measurement: &FindingMeasurement<'_>,
    part: &MeasuredPart<'_>,
) -> Option<SaturatedProcessor> {
    let log = measurement.log;
    let waited = |host: &str| -> Vec<u32> {
        let here = |row: &u32| log.host(*row) == host && log.text(*row, "reason") == Some(NO_CORE);
        measurement
            .rows_within("PROCESS_PAUSED")
            .filter(here)
            .collect()
    };
    let seconds = |rows: &[u32]| {
        rows.iter()
            .filter_map(|row| waited_ns(log, *row))
            .map(|ns| ns as f64 / 1e9)
            .sum::<f64>()
    };
    let hosts = [&part.hosts.0, &part.hosts.1].map(|host| (host, waited(host)));
    let (host, rows) = hosts
        .into_iter()
        .max_by(|a, b| seconds(&a.1).total_cmp(&seconds(&b.1)))?;
    let share = (seconds(&rows) / measurement.span_s).min(1.0);
    (share >= LEAST).then(|| SaturatedProcessor {
        share: share * part.weight,
        host: host.to_owned(),
        sentence: format!("the measured process's core on {host} is at its limit: other work occupies it {} of the time while the process is ready to run", percent(share)),
        evidence: log.evidence(format!("ready to run but without a core for {}", units::format_time(seconds(&rows))), &rows),
        tries: vec!["a dedicated core: `on cpu`, isolcpus, fewer other processes".into()],
        confidence: 0.9,
    })
}

/// Both ends run on one machine whose cores are all busy, with whatever processes.
fn all_cores(
    measurement: &FindingMeasurement<'_>,
    part: &MeasuredPart<'_>,
) -> Option<SaturatedProcessor> {
    let host = &part.hosts.0;
    let (busy, rows) = cores(measurement, host).filter(|_| {
        part.in_one_machine() && matches!(part.work, PartWorkload::Bulk(_) | PartWorkload::Turns)
    })?;
    let of = |side| part.computed(side) * f64::from(part.threads(side));
    let ends = of(PairSide::Initiator) + of(PairSide::Responder);
    let whose = if part.plan.replicas > 1 {
        format!("the ends of all {} pairs together", part.plan.replicas)
    } else {
        "the two ends together".to_owned()
    };
    // Ends that hardly compute wait for something else than cores.
    (busy >= FULL && ends >= COMPUTING).then(|| SaturatedProcessor {
        share: busy * part.weight,
        host: host.to_owned(),
        sentence: format!(
            "the cores of {host}, where both ends run, are at their limit: all of them are busy {} of the time; {whose} use {} of one core",
            percent(busy),
            percent(ends)
        ),
        evidence: measurement.log.evidence(format!("the cores of {host} were busy {} of the time", percent(busy)), &rows),
        tries: vec!["run the measurement when nothing else is running there, or put the ends on separate machines".into()],
        confidence: 0.7,
    })
}

/// The mean share of the time in which the cores of a host were busy during the counted runs, and the rows of the events that show it.
fn cores(measurement: &FindingMeasurement<'_>, host: &str) -> Option<(f64, Vec<u32>)> {
    let log = measurement.log;
    let figure = |row: u32, field: &str| log.number(row, field).map_or(0.0, |figure| figure as f64);
    let rows: Vec<u32> = measurement
        .rows_within("CPU_USE")
        .filter(|row| log.host(*row) == host)
        .collect();
    let all: f64 = rows.iter().map(|row| figure(*row, "interval_ns")).sum();
    let idle = |row: &u32| {
        figure(*row, "interval_ns") * (figure(*row, "idle_ppm") + figure(*row, "iowait_ppm")) / 1e6
    };
    (all > 0.0).then(|| {
        (
            (1.0 - rows.iter().map(idle).sum::<f64>() / all).clamp(0.0, 1.0),
            rows,
        )
    })
}

/// The side with the greater figure; with equal figures the responder.
fn greatest(of: impl Fn(PairSide) -> f64) -> Option<(PairSide, f64)> {
    let sides = [PairSide::Initiator, PairSide::Responder].map(|side| (side, of(side)));
    sides.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))
}

/// How long a process could not run according to a `PROCESS_PAUSED` event, ns: its field `waited_ns`, or else the whole interval.
pub(crate) fn waited_ns(log: &FindingEventLog<'_>, row: u32) -> Option<i64> {
    log.number(row, "waited_ns")
        .or(log.number(row, "interval_ns"))
}
