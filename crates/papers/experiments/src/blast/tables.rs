//! Section 2.1 and Tables 1 to 3: transfers without an error.

use super::case::{BlastCase, BlastRow, BlastSheet, Hosts, Method, NUMBERS};
use super::formulas::elapsed::{sliding_window_printed, utilisation, utilisation_limit};
use super::formulas::{BlastCostModel, BlastFigureProtocol, BlastResendStrategy, naive};
use super::printed::printed;
use super::profile::BlastHostProfile;
use crate::printed_and_here::{self, PrintedFigure, PrintedValue};
use stackline_report::paper::PaperRow;
use stackline_report::sheet::{Sheet, SheetCell};

/// The name of the last row of Table 2.
pub(super) const OBSERVED: &str = "Observed elapsed time";
/// The value that the paper prints in that row, s.
const OBSERVED_S: f64 = 4.08e-3;

/// Section 2.1 and Tables 1 to 3.
pub(super) fn sheets(hosts: &Hosts) -> Vec<BlastSheet> {
    vec![alone(), table_1(hosts), table_2(hosts), table_3(hosts)]
}

/// The simulated method and host profile for a protocol of Figure 4, without errors.
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

/// Section 2.1: 64 kilobytes if only the network takes time.
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
        title: "64 kilobytes, if only the network took time",
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
        notes: Vec::new(),
    }
}

/// The ratios that the paper's text states about Tables 1 and 2, beside those that its formulas give.
pub(super) fn ratios() -> Sheet {
    let [saw, window, blast, _] =
        BlastFigureProtocol::ALL.map(|protocol| protocol.elapsed(&BlastCostModel::STANDALONE, 64));
    let costs = &BlastCostModel::STANDALONE;
    let percent = |printed: PrintedFigure, share: f64| PrintedValue::new(printed, 100.0 * share, 1);
    let about = |ratio: f64| {
        PrintedValue::new(2.0, ratio, 2)
            .because("the paper says \"about twice\"; the value here follows from its formulas")
    };
    let copying: f64 = costs
        .breakdown()
        .iter()
        .filter(|step| step.copying)
        .map(|step| step.time_s)
        .sum();
    let network = BlastFigureProtocol::StopAndWait.elapsed(costs, 1) - copying;
    let mut sheet = printed_and_here::sheet(
        "Ratios",
        "the paper's statements about Tables 1 and 2, and the values that its formulas give",
        &[("value", "value")],
    );
    sheet.rows = [
        (
            "ratio of stop-and-wait to the sliding window, 64 packets",
            about(saw / window),
        ),
        (
            "ratio of stop-and-wait to the blast, 64 packets",
            about(saw / blast),
        ),
        (
            "network utilisation of a blast of 64 packets, %",
            percent(
                PrintedFigure::Figure(38.0),
                utilisation(BlastFigureProtocol::Blast, costs, 64),
            ),
        ),
        (
            "the same, maximum over all packet counts, %",
            percent(PrintedFigure::Nothing, utilisation_limit(costs)),
        ),
        (
            "the same for 64 packets with two buffers, %",
            percent(
                PrintedFigure::Nothing,
                utilisation(BlastFigureProtocol::DoubleBuffered, costs, 64),
            ),
        ),
        (
            "network share of an exchange, % of the observed time",
            percent(PrintedFigure::Figure(21.0), network / OBSERVED_S),
        ),
        (
            "copying share of an exchange, % of the observed time",
            percent(PrintedFigure::Figure(75.0), copying / OBSERVED_S),
        ),
    ]
    .map(|(what, value)| value.row([SheetCell::text(what)]))
    .into();
    sheet
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
    BlastSheet {
        name: "Table 2",
        title: "components of a reliable one-kilobyte exchange",
        subject: "operation",
        digits: 2,
        lines,
        notes: Vec::new(),
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
        notes: vec!["Figure 5 quotes To(1) = 5.9 ms and To(64) = 173 ms from this table.".into()],
    }
}
