//! Runs of a plan in the simulated world within a given time, kept nowhere: what answers are tried with.

use stackline_analyze::Summary;
use stackline_core::error::Blame;
use stackline_core::plan::{Plan, Warmup, World};
use stackline_core::run_record::RunRecord;
use stackline_runner::simulate;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

/// One measurement of a plan, one simulated run for each seed.
#[must_use]
pub fn single_group_plan(plan: &Plan, index: usize) -> Plan {
    let mut one = plan.clone();
    one.measurements = plan.measurements.get(index).cloned().into_iter().collect();
    for measurement in &mut one.measurements {
        (measurement.runs, measurement.until, measurement.warmup) = (1, None, Warmup::Runs(0));
        measurement.world = World::Simulated;
    }
    one
}

/// What so many runs come to, or as many of them as there is time for; else why there is none.
///
/// # Errors
/// Why there is none.
pub fn simulate_summaries(plan: &Plan, most: u64, until: Instant) -> Result<Vec<Summary>, String> {
    simulate_records(plan, most, until).map(|records| stackline_analyze::summarise(plan, &records))
}

/// The same, each run's records.
///
/// # Errors
/// Why there is none.
pub fn simulate_records(plan: &Plan, most: u64, until: Instant) -> Result<Vec<RunRecord>, String> {
    let (enough, mut records) = (AtomicBool::new(false), Vec::<RunRecord>::new());
    let failed = thread::scope(|scope| {
        let (done, over) = channel::<()>();
        let enough = &enough;
        scope.spawn(move || {
            // Disconnected when all is done, which comes first for most.
            let _ = over.recv_timeout(until.saturating_duration_since(Instant::now()));
            enough.store(true, Ordering::Relaxed);
        });
        let seeds = plan.seed..=plan.seed.saturating_add(most - 1);
        let made = simulate(plan, seeds, enough, |some| records.extend(some));
        drop(done);
        made.err()
    });
    match failed {
        Some(error) if error.blame != Blame::Interrupted => Err(error.message),
        _ if records.is_empty() => Err("no run was over in time".to_owned()),
        _ => Ok(records),
    }
}
