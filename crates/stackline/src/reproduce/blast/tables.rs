//! Section 2.1 and Tables 1 to 3: transfers without an error.

use super::{Case, Hosts, Line, Quantity, Sheet, Way};
use crate::reproduce::here::NUMBERS;
use crate::reproduce::profile::Host;
use stackline_papers::blast::formulas::elapsed::{sliding_window_printed, utilisation, utilisation_limit};
use stackline_papers::blast::formulas::{Costs, Protocol, Strategy, naive};
use stackline_report::paper::{Printed, Row};

/// The last row of Table 2.
pub(super) const OBSERVED: &str = "Observed elapsed time";

/// All of them, in the order of the paper.
pub(super) fn sheets(hosts: &Hosts) -> Vec<Sheet> {
    vec![alone(), table_1(hosts), table_2(hosts), table_3(hosts)]
}

/// What moves the packets of a protocol without an error, and on which host.
pub(super) const fn way(protocol: Protocol) -> (Way, Host) {
    match protocol {
        Protocol::StopAndWait => (Way::StopAndWait, Host::Standalone),
        Protocol::SlidingWindow => (Way::SlidingWindow, Host::Standalone),
        Protocol::Blast => (Way::Blast(Strategy::Full), Host::Standalone),
        Protocol::DoubleBuffered => (Way::Blast(Strategy::Full), Host::StandaloneDouble),
    }
}

/// A transfer without an error.
pub(super) const fn error_free(way: Way, host: Host, packets: u32) -> Case {
    // An answer that is never late needs no interval; one second is beyond all of these.
    Case { host, way, packets, loss: 0.0, interval: 1.0, quantity: Quantity::Mean }
}

/// Section 2.1: 64 kilobytes when only the network takes time.
fn alone() -> Sheet {
    let costs = &Costs::NETWORK;
    let row = |subject: &str, text, formula: fn(&Costs, u32) -> f64, printed| Line {
        row: Row {
            subject: subject.into(),
            packets: Some(64),
            printed: Some(Printed::Here(text, printed)),
            formula: Some(formula(costs, 64)),
            ..Row::default()
        },
        case: None,
    };
    Sheet {
        name: "Section 2.1",
        title: "64 kilobytes, were the network all that takes time",
        subject: "protocol",
        digits: 3,
        lines: vec![
            row(Protocol::StopAndWait.name(), "57.024", naive::stop_and_wait, 57.024e-3),
            row(Protocol::SlidingWindow.name(), "55.764", naive::sliding_window, 55.764e-3),
            row(Protocol::Blast.name(), "52.551", naive::blast, 52.551e-3),
        ],
        notes: Vec::new(),
    }
}

/// Table 1: elapsed times of the programs without an operating system.
fn table_1(hosts: &Hosts) -> Sheet {
    let protocols = [Protocol::StopAndWait, Protocol::SlidingWindow, Protocol::Blast];
    let line = |(protocol, packets): (Protocol, u32)| {
        let (way, host) = way(protocol);
        let formula = protocol.elapsed(&Costs::STANDALONE, packets);
        let printed = sliding_window_printed(&Costs::STANDALONE, packets);
        let short = protocol == Protocol::SlidingWindow && packets == 1;
        let row = Row {
            subject: protocol.name().into(),
            packets: Some(packets),
            printed: Some(match (protocol, packets) {
                (Protocol::StopAndWait, 1) => Printed::Here("4.08", 4.08e-3),
                _ => Printed::Lost,
            }),
            as_printed: short.then_some(printed),
            formula: Some(formula),
            profile: Some(protocol.elapsed(&hosts.standalone, packets)),
            ..Row::default()
        };
        Line { row, case: Some(error_free(way, host, packets)) }
    };
    let cases = protocols.into_iter().flat_map(|protocol| NUMBERS.map(|packets| (protocol, packets)));
    Sheet {
        name: "Table 1",
        title: "elapsed times between programs without an operating system",
        subject: "protocol",
        digits: 2,
        lines: cases.map(line).collect(),
        notes: vec![ratios(), utilisations()],
    }
}

fn ratios() -> String {
    let [saw, window, blast, _] = Protocol::ALL.map(|protocol| protocol.elapsed(&Costs::STANDALONE, 64));
    format!(
        "Printed: stop-and-wait takes about twice the time of the others. Formulas, 64 packets: {:.2} times the \
         sliding window, {:.2} times the blast.",
        saw / window,
        saw / blast
    )
}

fn utilisations() -> String {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let costs = &Costs::STANDALONE;
    format!(
        "Utilisation of the network by a blast of 64 packets: printed 38 %; formula {}, which tends to {} with more \
         packets; with two buffers {}.",
        percent(utilisation(Protocol::Blast, costs, 64)),
        percent(utilisation_limit(costs)),
        percent(utilisation(Protocol::DoubleBuffered, costs, 64))
    )
}

/// Table 2: what one reliable exchange is made of.
fn table_2(hosts: &Hosts) -> Sheet {
    let printed = ["1.35", "0.82", "1.35", "0.17", "0.05", "0.17"];
    let paper = Costs::STANDALONE.breakdown();
    let steps = paper.iter().zip(hosts.standalone.breakdown()).zip(printed);
    let mut lines: Vec<Line> = steps
        .map(|((paper, profile), printed)| Line {
            row: Row {
                subject: paper.what.into(),
                printed: Some(Printed::Here(printed, paper.time_s)),
                profile: Some(profile.time_s),
                ..Row::default()
            },
            case: None,
        })
        .collect();
    let sum = Protocol::StopAndWait.elapsed(&Costs::STANDALONE, 1);
    let total = Row {
        subject: "Total".into(),
        printed: Some(Printed::Here("3.91", 3.91e-3)),
        formula: Some(sum),
        profile: Some(hosts.standalone.breakdown().iter().map(|step| step.time_s).sum()),
        ..Row::default()
    };
    let observed = Row {
        subject: OBSERVED.into(),
        printed: Some(Printed::Here("4.08", 4.08e-3)),
        formula: Some(sum),
        profile: Some(Protocol::StopAndWait.elapsed(&hosts.standalone, 1)),
        ..Row::default()
    };
    lines.push(Line { row: total, case: None });
    lines.push(Line { row: observed, case: Some(error_free(Way::StopAndWait, Host::Standalone, 1)) });
    let copying: f64 = paper.iter().filter(|step| step.copying).map(|step| step.time_s).sum();
    let share = |part: f64| format!("{:.0} %", 100.0 * part / 4.08e-3);
    Sheet {
        name: "Table 2",
        title: "what a reliable exchange of one kilobyte is made of",
        subject: "operation",
        digits: 2,
        lines,
        notes: vec![format!(
            "Of the time observed: printed 21 % network, 75 % copying; formula {} and {}.",
            share(sum - copying),
            share(copying)
        )],
    }
}

/// Table 3: MoveTo between two V kernels.
fn table_3(hosts: &Hosts) -> Sheet {
    let line = |packets| {
        let row = Row {
            subject: "MoveTo".into(),
            packets: Some(packets),
            printed: Some(match packets {
                1 => Printed::Here("5.9", 5.9e-3),
                64 => Printed::Here("173", 173e-3),
                _ => Printed::Lost,
            }),
            formula: Some(Protocol::Blast.elapsed(&Costs::V_KERNEL, packets)),
            profile: Some(Protocol::Blast.elapsed(&hosts.kernel, packets)),
            ..Row::default()
        };
        Line { row, case: Some(error_free(Way::Blast(Strategy::Full), Host::Kernel, packets)) }
    };
    Sheet {
        name: "Table 3",
        title: "elapsed times of MoveTo between V kernels",
        subject: "operation",
        digits: 2,
        lines: NUMBERS.into_iter().map(line).collect(),
        notes: vec!["To(1) = 5.9 ms and To(64) = 173 ms are what Figure 5 quotes of this table.".into()],
    }
}
