//! The column `simulated`: the protocol machines on the hosts of a profile, in virtual time.
//!
//! Each different transfer is simulated once, however many lines ask for it, and several at a time. Random numbers depend on
//! the seed and on the transfer alone, so neither the order nor the number of cores changes a figure.

use super::case::{BlastCase, BlastQuantity, BlastRow, Method};
use super::formulas::BlastResendStrategy;
use super::profile::Profiles;
use super::transfers::{BlastExperiment, Enough, TransferStatistics};
use crate::paper::ReproductionSettings;
use stackline_core::error::{Error, Result};
use stackline_core::random::Seed;
use stackline_core::time::Duration;
use stackline_proto::blast::{self as machine, BlastOptions};
use stackline_report::paper::SimulatedTransfers;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Simulates the cases of all rows, and fills in the results.
pub(super) fn fill<'l>(
    lines: impl Iterator<Item = &'l mut BlastRow>,
    profiles: &Profiles,
    settings: &ReproductionSettings<'_>,
) -> Result<()> {
    let mut lines: Vec<&mut BlastRow> = lines.filter(|line| line.case.is_some()).collect();
    let mut transfers: Vec<BlastCase> = Vec::new();
    for case in lines.iter().filter_map(|line| line.case) {
        if !transfers.iter().any(|other| other.same_transfers(&case)) {
            transfers.push(case);
        }
    }
    // Lossy transfers take longest to simulate: they go first, so that no core has a long one to do alone at the end.
    transfers.sort_by(|a, b| b.loss.total_cmp(&a.loss));
    let found = all(&transfers, profiles, settings)?;
    for line in &mut lines {
        let Some(case) = line.case else { continue };
        let statistics = transfers
            .iter()
            .zip(&found)
            .find(|(other, _)| other.same_transfers(&case));
        line.row.simulated = statistics.map(|(_, statistics)| figure(&case, statistics));
    }
    Ok(())
}

impl BlastCase {
    /// Whether both need the same transfers; they may show different statistics of them.
    fn same_transfers(&self, other: &Self) -> bool {
        Self {
            quantity: other.quantity,
            ..*self
        } == *other
    }

    /// The machines' options: packets of the paper's size, all of them in one blast or in flight.
    fn options(&self) -> BlastOptions {
        let (packet, _) = BlastExperiment::PAPER;
        let strategy = match self.method {
            Method::StopAndWait => return BlastOptions::saw(packet),
            Method::SlidingWindow => return BlastOptions::window(packet, self.packets),
            Method::Blast(BlastResendStrategy::Full) => machine::BlastStrategy::Full,
            Method::Blast(BlastResendStrategy::FullNak) => machine::BlastStrategy::FullNak,
            Method::Blast(BlastResendStrategy::Partial) => machine::BlastStrategy::Partial,
            Method::Blast(BlastResendStrategy::Selective) => machine::BlastStrategy::Selective,
        };
        let size = self.packets * packet;
        BlastOptions {
            buffer: u64::from(size),
            ..BlastOptions::blast(strategy, packet, size)
        }
    }

    /// The seed of its random numbers, which depends on the transfer and not on its place in a table.
    fn seed(&self, root: u64) -> Seed {
        let method = match self.method {
            Method::StopAndWait => "saw",
            Method::SlidingWindow => "window",
            Method::Blast(strategy) => strategy.name(),
        };
        Seed::root(root)
            .child(method)
            .index(u64::from(self.packets))
            .index(self.loss.to_bits())
            .index(self.interval.to_bits())
    }
}

/// The statistic that a case shows, with its standard error if losses were random.
fn figure(case: &BlastCase, found: &TransferStatistics) -> SimulatedTransfers {
    let drawn = case.loss > 0.0;
    let (seconds, error) = match case.quantity {
        BlastQuantity::Mean => (found.mean_s, found.mean_error_s),
        BlastQuantity::Deviation => (found.sd_s, found.sd_error_s),
    };
    SimulatedTransfers {
        seconds,
        error: drawn.then_some(error),
        transfers: if drawn { found.transfers } else { 1 },
    }
}

/// Simulates all cases on all cores; the results are in the same order.
fn all(
    cases: &[BlastCase],
    profiles: &Profiles,
    settings: &ReproductionSettings<'_>,
) -> Result<Vec<TransferStatistics>> {
    let found: Mutex<Vec<Option<Result<TransferStatistics>>>> =
        Mutex::new(cases.iter().map(|_| None).collect());
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    (settings.progress)(0, cases.len());
    let work = || {
        while let Some((at, case)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, cases.get(at)?)))
        {
            let one = simulate(case, profiles, settings);
            if let Ok(mut found) = found.lock() {
                found[at] = Some(one);
            }
            (settings.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, cases.len());
        }
    };
    thread::scope(|scope| {
        let others = thread::available_parallelism()
            .map_or(1, usize::from)
            .min(cases.len())
            .saturating_sub(1);
        (0..others).for_each(|_| {
            scope.spawn(work);
        });
        work();
    });
    let lost = || Error::measurement("a simulation ended without a result");
    let found = found.into_inner().map_err(|_| lost())?;
    found.into_iter().map(|one| one.ok_or_else(lost)?).collect()
}

fn simulate(
    case: &BlastCase,
    profiles: &Profiles,
    settings: &ReproductionSettings<'_>,
) -> Result<TransferStatistics> {
    let (_, answer) = BlastExperiment::PAPER;
    let network = profiles.network(case.host)?;
    let enough = Enough {
        least: if case.loss > 0.0 {
            settings.transfers
        } else {
            1
        },
        precision: settings.precision,
        ..Enough::default()
    };
    BlastExperiment::new(network, &case.options(), case.packets, answer)
        .and_then(|experiment| experiment.waiting(Duration::from_seconds(case.interval)))
        .and_then(|experiment| experiment.under_loss(case.loss, case.seed(settings.seed), enough))
}
