//! What no form covers, simulated at once: a few runs of different seeds, kept nowhere.

use crate::flags::Text;
use crate::source::Source;
use stackline_analyze::predicted::{Outcome, Prediction, RUNS, by_simulation};
use stackline_core::error::Blame;
use stackline_core::plan::{Plan, Warmup};
use stackline_core::record::RunRecord;
use stackline_runner::simulate;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// Puts what simulated runs say in the place of what is not covered, as far as there is time. Where they say nothing, why.
pub(super) fn fill(source: &Source, flags: &Text, predictions: &mut [Prediction], time: Duration) {
    let open = |prediction: &&Prediction| prediction.answer().is_none() && prediction.network.is_some();
    let mut indices: Vec<usize> = predictions.iter().filter(open).map(|prediction| prediction.measurement).collect();
    indices.dedup();
    let plan = if indices.is_empty() { None } else { Some(source.simulated_as(flags)) };
    let until = Instant::now() + time;
    for index in indices {
        let found = match &plan {
            Some(Ok(plan)) => runs(&alone(plan, index), until),
            Some(Err(error)) => Err(error.message.clone()),
            None => return,
        };
        for prediction in predictions.iter_mut().filter(|prediction| prediction.measurement == index) {
            let Outcome::NotCovered(reason) = &prediction.outcome else { continue };
            prediction.outcome = match &found {
                Ok(summaries) => {
                    let summary = summaries.iter().find(|summary| summary.part_index == prediction.part_index);
                    let outcome = summary.and_then(|summary| by_simulation(reason, summary, RUNS));
                    outcome.unwrap_or_else(|| unknown(reason, "too few runs are over, and they differ"))
                }
                Err(why) => unknown(reason, why),
            };
        }
    }
}

fn unknown(reason: &str, why: &str) -> Outcome {
    Outcome::NotCovered(format!("{reason}; simulated: {why}"))
}

/// One measurement of a plan, one run for each seed.
fn alone(plan: &Plan, index: usize) -> Plan {
    let mut one = plan.clone();
    one.measurements = plan.measurements.get(index).cloned().into_iter().collect();
    for measurement in &mut one.measurements {
        (measurement.runs, measurement.until, measurement.warmup) = (1, None, Warmup::Runs(0));
    }
    one
}

/// What as many runs come to as there is time for; else why there is none.
fn runs(plan: &Plan, until: Instant) -> Result<Vec<stackline_analyze::Summary>, String> {
    let (enough, mut records) = (AtomicBool::new(false), Vec::<RunRecord>::new());
    let failed = thread::scope(|scope| {
        let (done, over) = channel::<()>();
        let enough = &enough;
        scope.spawn(move || {
            // Disconnected when all is done, which comes first for most.
            let _ = over.recv_timeout(until.saturating_duration_since(Instant::now()));
            enough.store(true, Ordering::Relaxed);
        });
        let made = simulate(plan, plan.seed..=plan.seed.saturating_add(RUNS - 1), enough, |some| records.extend(some));
        drop(done);
        made.err()
    });
    match failed {
        Some(error) if error.blame != Blame::Interrupted => Err(error.message),
        _ if records.is_empty() => Err("no run was over in time".to_owned()),
        _ => Ok(stackline_analyze::summarise(plan, &records)),
    }
}
