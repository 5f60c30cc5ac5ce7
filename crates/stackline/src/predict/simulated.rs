//! What no form covers, simulated at once: a few runs of different seeds, kept nowhere.

use crate::exit::Result;
use crate::flags::Text;
use crate::source::Source;
use stackline_analyze::predicted::{Outcome, Prediction, by_simulation};
use stackline_core::error::{Blame, Error};
use stackline_core::plan::{Plan, Warmup, World};
use stackline_runner::simulate;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// So many runs that the next one lies between the least and the greatest of them in nine of ten cases.
const RUNS: u64 = 19;
/// A measurement that is not over by then stays open, or has fewer runs.
const AT_MOST: Duration = Duration::from_secs(20);

/// Puts what simulated runs say in the place of what is not covered.
pub(super) fn fill(source: &Source, flags: &Text, predictions: &mut [Prediction]) -> Result<()> {
    let open = |prediction: &&Prediction| prediction.answer().is_none() && prediction.network.is_some();
    let mut indices: Vec<usize> = predictions.iter().filter(open).map(|prediction| prediction.measurement).collect();
    indices.dedup();
    if indices.is_empty() {
        return Ok(());
    }
    let plan = source.simulated(flags)?;
    for index in indices {
        let one = alone(&plan, index);
        let (records, failed) = runs(&one);
        let summaries = stackline_analyze::summarise(&one, &records);
        let of_it = predictions.iter_mut().filter(|prediction| prediction.measurement == index);
        for prediction in of_it {
            let Outcome::NotCovered(reason) = &prediction.outcome else { continue };
            let summary = summaries.iter().find(|summary| summary.part_index == prediction.part_index);
            let outcome = summary.filter(|_| !records.is_empty()).and_then(|summary| by_simulation(reason, summary));
            prediction.outcome = outcome.unwrap_or_else(|| Outcome::NotCovered(unknown(reason, failed.as_ref())));
        }
    }
    Ok(())
}

fn unknown(reason: &str, failed: Option<&Error>) -> String {
    let why = failed.map_or("its runs have no such figure", |error| &error.message);
    format!("{reason}; simulated: {why}")
}

/// One measurement of a plan, one run for each seed.
fn alone(plan: &Plan, index: usize) -> Plan {
    let mut one = plan.clone();
    one.measurements = plan.measurements.get(index).cloned().into_iter().collect();
    for measurement in &mut one.measurements {
        (measurement.runs, measurement.until, measurement.warmup) = (1, None, Warmup::Runs(0));
        measurement.world = World::Simulated;
    }
    one
}

/// As many runs as there is time for, and why there are no more.
fn runs(plan: &Plan) -> (Vec<stackline_core::record::RunRecord>, Option<Error>) {
    let (enough, mut records) = (AtomicBool::new(false), Vec::new());
    let failed = thread::scope(|scope| {
        let (done, over) = channel::<()>();
        let enough = &enough;
        scope.spawn(move || {
            // Disconnected when all is done, which comes first for most.
            let _ = over.recv_timeout(AT_MOST);
            enough.store(true, Ordering::Relaxed);
        });
        let made = simulate(plan, plan.seed..=plan.seed.saturating_add(RUNS - 1), enough, |some| records.extend(some));
        drop(done);
        made.err()
    });
    let late = |error: Error| match error.blame {
        Blame::Interrupted => Error::new(Blame::Measurement, format!("no run was over within {} s", AT_MOST.as_secs())),
        _ => error,
    };
    (records, failed.map(late))
}
