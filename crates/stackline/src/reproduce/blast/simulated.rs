//! The column `simulated`: the protocol machines on the hosts of a profile, in virtual time.
//!
//! Each different transfer is simulated once, however many lines ask for it, and several at a time. What is drawn hangs on
//! the seed and on the transfer alone, so neither the order nor the number of cores changes a figure.

use super::{Case, Line, Quantity, Way};
use crate::exit::{Error, Result};
use crate::reproduce::profile::Profiles;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use stackline_core::random::Seed;
use stackline_core::time::Duration;
use stackline_papers::blast::formulas::Strategy;
use stackline_papers::blast::transfers::{Enough, Experiment, Statistics};
use stackline_proto::blast::{self as machine, Options};
use stackline_report::paper::Simulated;
use std::io::{IsTerminal, stderr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How it is simulated.
#[derive(Clone, Copy)]
pub(super) struct How {
    /// Root of what is drawn.
    pub(super) seed: u64,
    /// Transfers under loss are at least so many.
    pub(super) transfers: u64,
    /// The largest standard error of a standard deviation, as a share of it.
    pub(super) precision: f64,
}

/// Simulates what the lines ask for, and fills it in.
pub(super) fn fill<'l>(lines: impl Iterator<Item = &'l mut Line>, profiles: &Profiles, how: How) -> Result<()> {
    let mut lines: Vec<&mut Line> = lines.filter(|line| line.case.is_some()).collect();
    let mut transfers: Vec<Case> = Vec::new();
    for case in lines.iter().filter_map(|line| line.case) {
        if !transfers.iter().any(|other| other.same_transfers(&case)) {
            transfers.push(case);
        }
    }
    // The lossy ones take longest: with them first, no core is left with one at the end.
    transfers.sort_by(|a, b| b.loss.total_cmp(&a.loss));
    let found = all(&transfers, profiles, how)?;
    for line in &mut lines {
        let Some(case) = line.case else { continue };
        let statistics = transfers.iter().zip(&found).find(|(other, _)| other.same_transfers(&case));
        line.row.simulated = statistics.map(|(_, statistics)| figure(&case, statistics));
    }
    Ok(())
}

impl Case {
    /// Whether both are about the same transfers, whatever figure of them is asked for.
    fn same_transfers(&self, other: &Self) -> bool {
        Self { quantity: other.quantity, ..*self } == *other
    }

    /// The machines' options: packets of the paper's size, all of them in one blast or in flight.
    fn options(&self) -> Options {
        let (packet, _) = Experiment::PAPER;
        let strategy = match self.way {
            Way::StopAndWait => return Options::saw(packet),
            Way::SlidingWindow => return Options::window(packet, self.packets),
            Way::Blast(Strategy::Full) => machine::Strategy::Full,
            Way::Blast(Strategy::FullNak) => machine::Strategy::FullNak,
            Way::Blast(Strategy::Partial) => machine::Strategy::Partial,
            Way::Blast(Strategy::Selective) => machine::Strategy::Selective,
        };
        let size = self.packets * packet;
        Options { buffer: u64::from(size), ..Options::blast(strategy, packet, size) }
    }

    /// Where its randomness hangs: by what it is, not by its place in a table.
    fn seed(&self, root: u64) -> Seed {
        let way = match self.way {
            Way::StopAndWait => "saw",
            Way::SlidingWindow => "window",
            Way::Blast(strategy) => strategy.name(),
        };
        Seed::root(root)
            .child(way)
            .index(u64::from(self.packets))
            .index(self.loss.to_bits())
            .index(self.interval.to_bits())
    }
}

/// The figure that is asked for.
fn figure(case: &Case, found: &Statistics) -> Simulated {
    let drawn = case.loss > 0.0;
    let (seconds, error) = match case.quantity {
        Quantity::Mean => (found.mean_s, found.mean_error_s),
        Quantity::Deviation => (found.sd_s, found.sd_error_s),
    };
    Simulated { seconds, error: drawn.then_some(error), transfers: if drawn { found.transfers } else { 1 } }
}

/// All of them, on all cores.
fn all(cases: &[Case], profiles: &Profiles, how: How) -> Result<Vec<Statistics>> {
    let found: Mutex<Vec<Option<Result<Statistics>>>> = Mutex::new(cases.iter().map(|_| None).collect());
    let (next, bar) = (AtomicUsize::new(0), bar(cases.len()));
    let work = || {
        while let Some((at, case)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, cases.get(at)?)))
        {
            let one = simulate(case, profiles, how);
            if let Ok(mut found) = found.lock() {
                found[at] = Some(one);
            }
            bar.inc(1);
        }
    };
    thread::scope(|scope| {
        let others = thread::available_parallelism().map_or(1, usize::from).min(cases.len()).saturating_sub(1);
        (0..others).for_each(|_| {
            scope.spawn(work);
        });
        work();
    });
    bar.finish_and_clear();
    let lost = || Error::measurement("a simulation ended without a result");
    let found = found.into_inner().map_err(|_| lost())?;
    found.into_iter().map(|one| one.ok_or_else(lost)?).collect()
}

fn bar(cases: usize) -> ProgressBar {
    let target = if stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(cases as u64), target);
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} simulations") {
        bar.set_style(style);
    }
    bar
}

fn simulate(case: &Case, profiles: &Profiles, how: How) -> Result<Statistics> {
    let (_, answer) = Experiment::PAPER;
    let network = profiles.network(case.host)?;
    let enough = Enough {
        least: if case.loss > 0.0 { how.transfers } else { 1 },
        precision: how.precision,
        ..Enough::default()
    };
    let found = Experiment::new(network, &case.options(), case.packets, answer)
        .and_then(|experiment| experiment.waiting(Duration::from_seconds(case.interval)))
        .and_then(|experiment| experiment.under_loss(case.loss, case.seed(how.seed), enough));
    found.map_err(Error::from)
}
