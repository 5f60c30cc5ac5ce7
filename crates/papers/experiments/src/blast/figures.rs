//! Figures 4 to 6 as rows: elapsed time against N, expected time and standard deviation against the loss probability.

use super::case::{BlastCase, BlastQuantity, BlastRow, BlastSheet, Hosts, Method, PACKETS};
use super::formulas::expected::{self, BlastCurve as Mean};
use super::formulas::{BlastCostModel, BlastFigureProtocol, BlastResendStrategy, Lossy, deviation};
use super::profile::BlastHostProfile;
use super::tables::method;
use stackline_report::paper::{PaperFigure, PaperRow};

/// N of Figure 4.
const NUMBERS: [u32; 6] = [1, 8, 16, 32, 48, 64];
/// pn of Figures 5 and 6.
const LOSSES: [f64; 4] = [1e-5, 1e-4, 1e-3, 1e-2];

/// Figures 4, 5 and 6.
pub(super) fn sheets(hosts: &Hosts) -> Vec<BlastSheet> {
    vec![figure_4(hosts), figure_5(hosts), figure_6(hosts)]
}

fn figure_4(hosts: &Hosts) -> BlastSheet {
    let line = |(protocol, packets): (BlastFigureProtocol, u32)| {
        let (method, host) = method(protocol);
        let costs = match host {
            BlastHostProfile::StandaloneDouble => &hosts.standalone_double,
            BlastHostProfile::Standalone | BlastHostProfile::Kernel => &hosts.standalone,
        };
        let row = PaperRow {
            subject: protocol.name().into(),
            packets: Some(packets),
            printed: Some(PaperFigure::Lost),
            formula: Some(protocol.elapsed(&BlastCostModel::STANDALONE, packets)),
            profile: Some(protocol.elapsed(costs, packets)),
            ..PaperRow::default()
        };
        BlastRow {
            row,
            case: Some(BlastCase::error_free(method, host, packets)),
        }
    };
    let cases = BlastFigureProtocol::ALL
        .into_iter()
        .flat_map(|protocol| NUMBERS.map(|packets| (protocol, packets)));
    BlastSheet {
        name: "Figure 4",
        title: "elapsed time against the number of packets",
        subject: "protocol",
        digits: 2,
        lines: cases.map(line).collect(),
        notes: Vec::new(),
    }
}

/// A curve of Figure 5: the protocol, and Tr as a multiple of To(1) or To(D).
#[derive(Clone, Copy)]
pub(super) struct ExpectedCurve {
    pub(super) protocol: BlastFigureProtocol,
    /// Tr divided by To(1) for stop-and-wait, by To(D) for a blast.
    multiple: f64,
}

impl ExpectedCurve {
    pub(super) const ALL: [Self; 4] = [
        Self {
            protocol: BlastFigureProtocol::StopAndWait,
            multiple: 100.0,
        },
        Self {
            protocol: BlastFigureProtocol::StopAndWait,
            multiple: 10.0,
        },
        Self {
            protocol: BlastFigureProtocol::Blast,
            multiple: 10.0,
        },
        Self {
            protocol: BlastFigureProtocol::Blast,
            multiple: 1.0,
        },
    ];

    /// Tr as the paper writes it, for example `10 To(1)`.
    pub(super) fn interval(self) -> String {
        multiple(
            self.multiple,
            if self.protocol == BlastFigureProtocol::StopAndWait {
                "To(1)"
            } else {
                "To(D)"
            },
        )
    }

    /// To and Tr in seconds.
    fn mean_at(self, costs: &BlastCostModel) -> Mean {
        let packets = if self.protocol == BlastFigureProtocol::StopAndWait {
            1
        } else {
            PACKETS
        };
        let error_free = self.protocol.elapsed(costs, packets);
        Mean {
            error_free,
            interval: self.multiple * error_free,
        }
    }

    /// The expected time with these costs.
    pub(super) fn time(self, costs: &BlastCostModel, loss: f64) -> Option<f64> {
        let Mean {
            error_free,
            interval,
        } = self.mean_at(costs);
        match self.protocol {
            BlastFigureProtocol::StopAndWait => {
                expected::stop_and_wait(PACKETS, error_free, interval, loss)
            }
            _ => expected::blast(PACKETS, error_free, interval, loss),
        }
    }
}

/// A multiple as the paper writes it, without a factor of 1.
pub(super) fn multiple(factor: f64, of: &str) -> String {
    if factor == 1.0 {
        of.to_owned()
    } else {
        format!("{factor} {of}")
    }
}

fn figure_5(hosts: &Hosts) -> BlastSheet {
    let line = |(curve, loss): (ExpectedCurve, f64)| {
        let interval = curve.mean_at(&hosts.kernel).interval;
        let row = PaperRow {
            subject: curve.protocol.name().into(),
            loss: Some(loss),
            interval: Some((curve.interval(), interval)),
            printed: Some(PaperFigure::Lost),
            formula: curve.time(&BlastCostModel::V_KERNEL, loss),
            profile: curve.time(&hosts.kernel, loss),
            ..PaperRow::default()
        };
        let method = match curve.protocol {
            BlastFigureProtocol::StopAndWait => Method::StopAndWait,
            _ => Method::Blast(BlastResendStrategy::Full),
        };
        let case = BlastCase {
            host: BlastHostProfile::Kernel,
            method,
            packets: PACKETS,
            loss,
            interval,
            quantity: BlastQuantity::Mean,
        };
        BlastRow {
            row,
            case: Some(case),
        }
    };
    let cases = ExpectedCurve::ALL
        .into_iter()
        .flat_map(|curve| LOSSES.map(|loss| (curve, loss)));
    BlastSheet {
        name: "Figure 5",
        title: "expected time for 64 packets between V kernels against the loss probability",
        subject: "protocol",
        digits: 2,
        lines: cases.map(line).collect(),
        notes: vec![crossings(), APART.into()],
    }
}

/// The note on why simulation and formula differ.
const APART: &str = "At high loss, simulation and model diverge slightly. One reason: a receiver that has everything answers a retransmitted blast even if only part of it arrives.";

/// The note on the loss probability at which the blast becomes slower than stop-and-wait, for each pair of intervals.
fn crossings() -> String {
    let [slow_saw, quick_saw, slow_blast, quick_blast] =
        ExpectedCurve::ALL.map(|curve| (curve, curve.mean_at(&BlastCostModel::V_KERNEL)));
    let pairs = [
        (quick_blast, quick_saw),
        (quick_blast, slow_saw),
        (slow_blast, quick_saw),
        (slow_blast, slow_saw),
    ];
    let each = pairs.into_iter().filter_map(|((blast, b), (saw, s))| {
        let loss = expected::crossing(PACKETS, s, b)?;
        Some(format!(
            "{loss:.5} (blast Tr = {}, stop-and-wait Tr = {})",
            blast.interval(),
            saw.interval()
        ))
    });
    format!(
        "Published: between 1e-5 and 1e-4, the operating region of the Ethernet, the blast is better. According to the formulas, it is better up to a loss probability of {}.",
        each.collect::<Vec<_>>().join(", ")
    )
}

/// Tr of Figure 6 as multiples of To(D).
pub(super) const INTERVALS: [f64; 2] = [1.0, 10.0];

/// The lossy transfer of Figure 6, with Tr as a multiple of To(D).
fn lossy(costs: &BlastCostModel, factor: f64, loss: f64) -> Lossy {
    let error_free = BlastFigureProtocol::Blast.elapsed(costs, PACKETS);
    Lossy {
        costs: *costs,
        double_buffered: false,
        packets: PACKETS,
        interval: factor * error_free,
        loss,
    }
}

/// The exact standard deviation, with Tr as a multiple of To(D).
pub(super) fn deviation(
    strategy: BlastResendStrategy,
    costs: &BlastCostModel,
    factor: f64,
    loss: f64,
) -> Option<f64> {
    lossy(costs, factor, loss)
        .moments(strategy)
        .map(|moments| moments.sd)
}

/// The standard deviation by the formula that the paper prints; it has one for two of the four strategies.
fn printed(strategy: BlastResendStrategy, factor: f64, loss: f64) -> Option<f64> {
    let error_free = BlastFigureProtocol::Blast.elapsed(&BlastCostModel::V_KERNEL, PACKETS);
    match strategy {
        BlastResendStrategy::Full => {
            deviation::full_printed(PACKETS, error_free, factor * error_free, loss)
        }
        BlastResendStrategy::FullNak => deviation::full_nak_printed(PACKETS, error_free, loss),
        BlastResendStrategy::Partial | BlastResendStrategy::Selective => None,
    }
}

fn figure_6(hosts: &Hosts) -> BlastSheet {
    let line = |(factor, strategy, loss): (f64, BlastResendStrategy, f64)| {
        let interval = lossy(&hosts.kernel, factor, loss).interval;
        let row = PaperRow {
            subject: strategy.name().into(),
            loss: Some(loss),
            interval: Some((multiple(factor, "To(D)"), interval)),
            printed: Some(PaperFigure::Lost),
            as_printed: printed(strategy, factor, loss),
            formula: deviation(strategy, &BlastCostModel::V_KERNEL, factor, loss),
            profile: deviation(strategy, &hosts.kernel, factor, loss),
            ..PaperRow::default()
        };
        let method = Method::Blast(strategy);
        let case = BlastCase {
            host: BlastHostProfile::Kernel,
            method,
            packets: PACKETS,
            loss,
            interval,
            quantity: BlastQuantity::Deviation,
        };
        BlastRow {
            row,
            case: Some(case),
        }
    };
    let cases = INTERVALS.into_iter().flat_map(|factor| {
        BlastResendStrategy::ALL
            .into_iter()
            .flat_map(move |strategy| LOSSES.map(|loss| (factor, strategy, loss)))
    });
    BlastSheet {
        name: "Figure 6",
        title: "standard deviation of the time for 64 packets between V kernels against the loss probability",
        subject: "strategy",
        digits: 2,
        lines: cases.map(line).collect(),
        notes: vec![
            "As published, full is the root mean square about To(D) instead of about the mean, and full_nak ignores that losing the last packet or the answer still costs Tr."
                .into(),
            "In the paper, the curves for partial and selective come from simulations; the formula is the exact solution of their recursion."
                .into(),
            APART.into(),
        ],
    }
}
