//! Section 2.1 and Tables 1 to 3: transfers without an error.

use super::case::{BlastCase, BlastRow, BlastSheet, Hosts, Method, NUMBERS};
use super::formulas::elapsed::{sliding_window_printed, utilisation, utilisation_limit};
use super::formulas::{BlastCostModel, BlastFigureProtocol, BlastResendStrategy, naive};
use super::printed::printed;
use super::profile::BlastHostProfile;
use stackline_report::paper::PaperRow;

/// The last row of Table 2.
pub(super) const OBSERVED: &str = "Observed elapsed time";

/// All of them, in the order of the paper.
pub(super) fn sheets(hosts: &Hosts) -> Vec<BlastSheet> {
    vec![alone(), table_1(hosts), table_2(hosts), table_3(hosts)]
}

/// What moves the packets of a protocol without an error, and on which host.
pub(super) const fn method(protocol: BlastFigureProtocol) -> (Method, BlastHostProfile) {
    match protocol {
        BlastFigureProtocol::StopAndWait => (Method::StopAndWait, BlastHostProfile::Standalone),
        BlastFigureProtocol::SlidingWindow => (Method::SlidingWindow, BlastHostProfile::Standalone),
        BlastFigureProtocol::Blast => (
            Method::Blast(BlastResendStrategy::Full),
            BlastHostProfile::Standalone,
        ),
        BlastFigureProtocol::DoubleBuffered => (
            Method::Blast(BlastResendStrategy::Full),
            BlastHostProfile::StandaloneDouble,
        ),
    }
}

/// Section 2.1: 64 kilobytes when only the network takes time.
fn alone() -> BlastSheet {
    let costs = &BlastCostModel::NETWORK;
    let row = |subject: &str, formula: fn(&BlastCostModel, u32) -> f64| BlastRow {
        row: PaperRow {
            subject: subject.into(),
            packets: Some(64),
            printed: Some(printed("Section 2.1", subject, Some(64))),
            formula: Some(formula(costs, 64)),
            ..PaperRow::default()
        },
        case: None,
    };
    BlastSheet {
        name: "Section 2.1",
        title: "64 kilobytes, were the network all that takes time",
        subject: "protocol",
        digits: 3,
        lines: vec![
            row(
                BlastFigureProtocol::StopAndWait.name(),
                naive::stop_and_wait,
            ),
            row(
                BlastFigureProtocol::SlidingWindow.name(),
                naive::sliding_window,
            ),
            row(BlastFigureProtocol::Blast.name(), naive::blast),
        ],
        notes: Vec::new(),
    }
}

/// Table 1: elapsed times of the programs without an operating system.
fn table_1(hosts: &Hosts) -> BlastSheet {
    let protocols = [
        BlastFigureProtocol::StopAndWait,
        BlastFigureProtocol::SlidingWindow,
        BlastFigureProtocol::Blast,
    ];
    let line = |(protocol, packets): (BlastFigureProtocol, u32)| {
        let (method, host) = method(protocol);
        let formula = protocol.elapsed(&BlastCostModel::STANDALONE, packets);
        let as_printed = sliding_window_printed(&BlastCostModel::STANDALONE, packets);
        let short = protocol == BlastFigureProtocol::SlidingWindow && packets == 1;
        let row = PaperRow {
            subject: protocol.name().into(),
            packets: Some(packets),
            printed: Some(printed("Table 1", protocol.name(), Some(packets))),
            as_printed: short.then_some(as_printed),
            formula: Some(formula),
            profile: Some(protocol.elapsed(&hosts.standalone, packets)),
            ..PaperRow::default()
        };
        BlastRow {
            row,
            case: Some(BlastCase::error_free(method, host, packets)),
        }
    };
    let cases = protocols
        .into_iter()
        .flat_map(|protocol| NUMBERS.map(|packets| (protocol, packets)));
    BlastSheet {
        name: "Table 1",
        title: "elapsed times between programs without an operating system",
        subject: "protocol",
        digits: 2,
        lines: cases.map(line).collect(),
        notes: vec![ratios(), utilisations()],
    }
}

fn ratios() -> String {
    let [saw, window, blast, _] =
        BlastFigureProtocol::ALL.map(|protocol| protocol.elapsed(&BlastCostModel::STANDALONE, 64));
    format!(
        "Printed: stop-and-wait takes about twice the time of the others. Formulas, 64 packets: {:.2} times the \
         sliding window, {:.2} times the blast.",
        saw / window,
        saw / blast
    )
}

fn utilisations() -> String {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let costs = &BlastCostModel::STANDALONE;
    format!(
        "Utilisation of the network by a blast of 64 packets: printed 38 %; formula {}, which tends to {} with more \
         packets; with two buffers {}.",
        percent(utilisation(BlastFigureProtocol::Blast, costs, 64)),
        percent(utilisation_limit(costs)),
        percent(utilisation(BlastFigureProtocol::DoubleBuffered, costs, 64))
    )
}

/// Table 2: what one reliable exchange is made of.
fn table_2(hosts: &Hosts) -> BlastSheet {
    let paper = BlastCostModel::STANDALONE.breakdown();
    let steps = paper.iter().zip(hosts.standalone.breakdown());
    let mut lines: Vec<BlastRow> = steps
        .map(|(paper, profile)| BlastRow {
            row: PaperRow {
                subject: paper.what.into(),
                printed: Some(printed("Table 2", paper.what, None)),
                profile: Some(profile.time_s),
                ..PaperRow::default()
            },
            case: None,
        })
        .collect();
    let sum = BlastFigureProtocol::StopAndWait.elapsed(&BlastCostModel::STANDALONE, 1);
    let total = PaperRow {
        subject: "Total".into(),
        printed: Some(printed("Table 2", "Total", None)),
        formula: Some(sum),
        profile: Some(
            hosts
                .standalone
                .breakdown()
                .iter()
                .map(|step| step.time_s)
                .sum(),
        ),
        ..PaperRow::default()
    };
    let observed = PaperRow {
        subject: OBSERVED.into(),
        printed: Some(printed("Table 2", OBSERVED, None)),
        formula: Some(sum),
        profile: Some(BlastFigureProtocol::StopAndWait.elapsed(&hosts.standalone, 1)),
        ..PaperRow::default()
    };
    lines.push(BlastRow {
        row: total,
        case: None,
    });
    lines.push(BlastRow {
        row: observed,
        case: Some(BlastCase::error_free(
            Method::StopAndWait,
            BlastHostProfile::Standalone,
            1,
        )),
    });
    let copying: f64 = paper
        .iter()
        .filter(|step| step.copying)
        .map(|step| step.time_s)
        .sum();
    let share = |part: f64| format!("{:.0} %", 100.0 * part / 4.08e-3);
    BlastSheet {
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
fn table_3(hosts: &Hosts) -> BlastSheet {
    let line = |packets| {
        let row = PaperRow {
            subject: "MoveTo".into(),
            packets: Some(packets),
            printed: Some(printed("Table 3", "MoveTo", Some(packets))),
            formula: Some(BlastFigureProtocol::Blast.elapsed(&BlastCostModel::V_KERNEL, packets)),
            profile: Some(BlastFigureProtocol::Blast.elapsed(&hosts.kernel, packets)),
            ..PaperRow::default()
        };
        BlastRow {
            row,
            case: Some(BlastCase::error_free(
                Method::Blast(BlastResendStrategy::Full),
                BlastHostProfile::Kernel,
                packets,
            )),
        }
    };
    BlastSheet {
        name: "Table 3",
        title: "elapsed times of MoveTo between V kernels",
        subject: "operation",
        digits: 2,
        lines: NUMBERS.into_iter().map(line).collect(),
        notes: vec![
            "To(1) = 5.9 ms and To(64) = 173 ms are what Figure 5 quotes of this table.".into(),
        ],
    }
}
