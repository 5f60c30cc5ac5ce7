//! A network in a plan: one line for each node and link, with its rate, its delay and every property that is not a default.

use crate::phrases::Phrases;
use crate::topology::{heading, path_facts};
use stackline_core::network::{
    Charge, ClockModel, Discipline, LinkQueue, LinkRate, LossModel, Network, NetworkHost,
    NetworkInterface, NetworkLink, NetworkSwitch, ProgramCosts, QueueClass, StepSchedule, WorkKind,
};
use stackline_core::time::Duration;
use stackline_core::units;
use stackline_core::units::counted;

/// Most values of a list that are printed; the others are counted.
const MOST: usize = 8;

pub(super) fn lines(network: &Network) -> Vec<String> {
    let mut lines = vec![heading(network)];
    let mut add = |what: String, said: Vec<String>| {
        let colon = if said.is_empty() { "" } else { ": " };
        lines.push(format!("  {what}{colon}{}", said.join(", ")));
    };
    for host in &network.hosts {
        add(format!("host {}", host.name), self::host(host));
    }
    for switch in &network.switches {
        add(format!("switch {}", switch.name), self::switch(switch));
    }
    for link in &network.links {
        let (from, to) = (&link.ends.0, &link.ends.1);
        add(
            format!("link {from} {} {to}", if link.one_way { "->" } else { "-" }),
            self::link(link),
        );
    }
    lines
}

fn host(host: &NetworkHost) -> Vec<String> {
    let mut said = interface(&host.interface);
    said.extend(work(&host.work));
    said.extend(clock(&host.clock));
    said
}

fn work(work: &ProgramCosts) -> Vec<String> {
    let mut said = Vec::new();
    let taken = |time: Duration| (time > Duration::ZERO).then(|| self::time(time));
    said.with(taken(work.per_operation), |time| {
        format!("programs take {time} per operation")
    });
    let per_byte = (work.ns_per_byte > 0.0).then(|| exact(work.ns_per_byte));
    said.with(per_byte, |ns| format!("programs take {ns} ns per byte"));
    said.with(taken(work.per_message), |time| {
        format!("a message takes {time}")
    });
    said.with(taken(work.per_switch), |time| {
        format!("switching from one program to another takes {time}")
    });
    said.with(work.polls, |every| {
        format!("programs poll every {}", time(every))
    });
    let name = |first: WorkKind| {
        WorkKind::ALL
            .into_iter()
            .find(|(_, kind)| *kind == first)
            .map(|(name, _)| name)
    };
    said.with(work.first.and_then(name), |name| format!("{name} go first"));
    said
}

fn interface(interface: &NetworkInterface) -> Vec<String> {
    let mut said = Vec::new();
    said.with(interface.buffer_frames, |frames| {
        format!("buffer of {}", counted(u64::from(frames), "frame"))
    });
    said.when(interface.single_buffered, "single-buffered");
    said.when(interface.busy_waiting, "busy-waiting");
    said.when(interface.interface_copies, "copies by itself");
    let per_packet =
        (interface.copy_per_packet > Duration::ZERO).then(|| time(interface.copy_per_packet));
    said.with(per_packet, |time| format!("copies a packet in {time}"));
    let per_byte = (interface.copy_ns_per_byte > 0.0).then(|| exact(interface.copy_ns_per_byte));
    said.with(per_byte, |ns| format!("copies a byte in {ns} ns"));
    said.with(interface.cpu_speed, |speed| {
        format!("processor {} times as fast", exact(speed))
    });
    said.with(interface.pace_bit_s, |pace| {
        format!("sends at most {}", rate(pace))
    });
    said
}

fn clock(clock: &ClockModel) -> Vec<String> {
    let mut said = Vec::new();
    let signed = |ns: i64| {
        format!(
            "{} {}",
            time(Duration(ns.unsigned_abs())),
            if ns < 0 { "behind" } else { "ahead" }
        )
    };
    said.extend((clock.offset_ns != 0).then(|| format!("clock {}", signed(clock.offset_ns))));
    let drift = if clock.drift_ppm < 0.0 {
        "slow"
    } else {
        "fast"
    };
    said.extend(
        (clock.drift_ppm != 0.0)
            .then(|| format!("clock {} ppm {drift}", exact(clock.drift_ppm.abs()))),
    );
    said.extend(list(&clock.steps, |(at, by)| {
        format!("clock stepped {} at {}", signed(*by), time(*at))
    }));
    said
}

fn switch(switch: &NetworkSwitch) -> Vec<String> {
    let mut said = Vec::new();
    let place = if switch.buffer_per_port {
        "for each port"
    } else {
        "for all ports"
    };
    said.with(switch.buffer_bytes, |bytes| {
        format!("buffer {} {place}", size(bytes))
    });
    said.with(switch.cell_bytes, |bytes| {
        format!("cells of {}", size(bytes))
    });
    said.when(switch.early_packet_discard, "early packet discard");
    said.when(switch.abr, "tells hosts their permitted rates");
    said.with(switch.queue.as_ref(), |queue| {
        format!("each queue {}", self::queue(queue))
    });
    said
}

fn link(link: &NetworkLink) -> Vec<String> {
    let delay = |delays| format!("delay {}", steps(delays, |delay| time(*delay)));
    let constant = || format!("delay {}", time(link.delay));
    let mut said = vec![
        link_rate(&link.rate),
        link.delays.as_ref().map_or_else(constant, delay),
    ];
    said.with(link.mtu_bytes, |bytes| format!("MTU {}", size(bytes)));
    said.extend(loss(&link.loss));
    said.with(link.jitter.as_ref(), |jitter| {
        let order = if jitter.reorder {
            " that may reorder"
        } else {
            ""
        };
        format!("{}{order}", path_facts::jitter(jitter))
    });
    said.extend(path_facts::traffic_control(link));
    said.extend(
        (link.duplicate > 0.0)
            .then(|| format!("duplicates {}", path_facts::percent(link.duplicate))),
    );
    match link.charge {
        Charge::Packet => {}
        Charge::Frame => said.push("counts frames against the rate".to_owned()),
        Charge::Wire => said.push("counts frames, preamble and gap against the rate".to_owned()),
    }
    said.with(link.queue.as_ref(), |queue| {
        format!("queue {}", self::queue(queue))
    });
    said
}

fn link_rate(rate: &LinkRate) -> String {
    match rate {
        LinkRate::Unlimited => "unlimited rate".to_owned(),
        LinkRate::Constant(bit_s) => self::rate(*bit_s),
        LinkRate::Schedule(schedule) => steps(schedule, |bit_s| self::rate(*bit_s)),
        LinkRate::Trace(trace) => {
            let moments = counted(trace.opportunities_ms.len() as u64, "packet");
            let period = trace.opportunities_ms.last().copied().unwrap_or_default();
            let period = time(Duration(u64::from(period) * 1_000_000));
            format!(
                "trace {}: {moments} of up to 1504 B every {period}",
                trace.file
            )
        }
    }
}

fn steps<T>(schedule: &StepSchedule<T>, text: impl Fn(&T) -> String) -> String {
    let steps = list(&schedule.steps, |(from, value)| {
        format!("{} from {} on", text(value), time(*from))
    });
    let again = schedule.period.map_or_else(String::new, |period| {
        format!(", repeating every {}", time(period))
    });
    format!("{}{again}", steps.join(", "))
}

fn loss(loss: &LossModel) -> Option<String> {
    Some(match loss {
        LossModel::None => return None,
        LossModel::Independent(share) => format!("loses {}", path_facts::percent(*share)),
        LossModel::BitErrors(share) => format!("corrupts one bit in {}", exact(1.0 / share)),
        LossModel::GilbertElliott {
            to_bad,
            to_good,
            loss_good,
            loss_bad,
        } => format!(
            "good to bad {}, bad to good {}, loses {} when good and {} when bad",
            path_facts::percent(*to_bad),
            path_facts::percent(*to_good),
            path_facts::percent(*loss_good),
            path_facts::percent(*loss_bad)
        ),
        LossModel::FourStates(chain) => {
            let shares = [chain.p13, chain.p31, chain.p32, chain.p23, chain.p14];
            format!(
                "loses by four states (p13, p31, p32, p23, p14: {})",
                shares.map(path_facts::percent).join(", ")
            )
        }
        LossModel::List(numbers) => {
            format!("loses packets {}", list(numbers, u64::to_string).join(", "))
        }
        LossModel::Every(1) => "loses every packet".to_owned(),
        LossModel::Every(n) => format!("loses 1 packet in every {n}"),
        LossModel::Schedule(schedule) => steps(schedule, |step| {
            self::loss(step).unwrap_or_else(|| "loses nothing".to_owned())
        }),
    })
}

fn queue(queue: &LinkQueue) -> String {
    let mut said = Vec::new();
    said.extend(queue.limit_bytes.map(size));
    said.with(queue.limit_packets, |packets| counted(packets, "packet"));
    if said.is_empty() {
        said.push("unlimited".to_owned());
    }
    said.push(discipline(&queue.discipline));
    said.extend(list(&queue.classes, class));
    said.when(queue.ecn, "marks (ECN)");
    said.join(" ")
}

/// A class of a queue, such as `[ef strict 20 packets]`.
fn class(class: &QueueClass) -> String {
    let mut said = vec![class.name(), class.service.text()];
    said.extend(class.limit_bytes.map(size));
    said.with(class.limit_packets, |packets| counted(packets, "packet"));
    said.with(class.codel, |(target, interval)| {
        discipline(&Discipline::CoDel { target, interval })
    });
    format!("[{}]", said.join(" "))
}

fn discipline(discipline: &Discipline) -> String {
    match discipline {
        Discipline::DropTail => "drop-tail".to_owned(),
        Discipline::DropHead => "drop-head".to_owned(),
        Discipline::Red {
            min_bytes,
            max_bytes,
            most,
            weight,
        } => {
            let (min, max, most) = (
                size(*min_bytes),
                size(*max_bytes),
                path_facts::percent(*most),
            );
            format!(
                "RED ({min} to {max}, max probability {most}, weight {})",
                exact(*weight)
            )
        }
        Discipline::CoDel { target, interval } => {
            format!(
                "CoDel (target {}, interval {})",
                time(*target),
                time(*interval)
            )
        }
        Discipline::Pie { target, update } => {
            format!("PIE (target {}, update {})", time(*target), time(*update))
        }
        Discipline::FqCoDel {
            target,
            interval,
            flows,
            quantum,
        } => {
            let (target, interval, quantum) =
                (time(*target), time(*interval), size(u64::from(*quantum)));
            format!(
                "FQ-CoDel (target {target}, interval {interval}, {flows} queues, quantum {quantum})"
            )
        }
        Discipline::Classes => "classes".to_owned(),
        Discipline::DualPi2(settings) => format!(
            "DualPI2 (target {}, update {}, alpha {}, beta {}, coupling {}, step {}, classic {})",
            time(settings.target),
            time(settings.update),
            exact(settings.alpha),
            exact(settings.beta),
            exact(settings.coupling),
            time(settings.step),
            path_facts::percent(settings.classic_share)
        ),
    }
}

/// The first values, and how many more there are.
fn list<T>(values: &[T], show: impl Fn(&T) -> String) -> Vec<String> {
    let more = values.len().saturating_sub(MOST);
    let mut shown: Vec<String> = values.iter().take(MOST).map(show).collect();
    shown.extend((more > 0).then(|| format!("and {more} more")));
    shown
}

/// A size without rounding: in bytes if it is large and no multiple of 1 KiB.
fn size(bytes: u64) -> String {
    let rounded = !bytes.is_multiple_of(1024) && bytes >= 10_000;
    if rounded {
        format!("{bytes} B")
    } else {
        units::format_size(bytes)
    }
}

/// A time without rounding, in the largest unit of which it is at least one.
fn time(time: Duration) -> String {
    let (factor, unit) = match time.0 {
        0 => (1_000_000_000, "s"),
        ns if ns < 1_000 => (1, "ns"),
        ns if ns < 1_000_000 => (1_000, "us"),
        ns if ns < 1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let (whole, rest) = (time.0 / factor, time.0 % factor);
    let digits = factor.ilog10() as usize;
    let text = if digits == 0 {
        whole.to_string()
    } else {
        format!("{whole}.{rest:0digits$}")
    };
    format!("{} {unit}", trimmed(&text))
}

fn rate(bit_s: f64) -> String {
    let prefixes = [("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)];
    let (prefix, factor) = prefixes
        .into_iter()
        .find(|(_, factor)| bit_s >= *factor)
        .unwrap_or(("", 1.0));
    format!("{} {prefix}bit/s", exact(bit_s / factor))
}

/// A number with all digits that were written, at most nine after the point, without rounding errors of arithmetic.
fn exact(value: f64) -> String {
    let text = format!("{value:.9}");
    if value.abs() < 1e-3 && value != 0.0 {
        format!("{value:e}")
    } else {
        trimmed(&text).to_owned()
    }
}

fn trimmed(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}
