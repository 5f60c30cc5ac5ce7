//! Makes the simulated runs of a plan under many seeds, spread over the cores of this machine.
//!
//! One thread makes all runs of a seed, in order; so the results do not depend on the number of threads.

use crate::run_writer::RunWriter;
use crate::worlds::simulated::{network_of, run_output, scene};
use stackline_core::error::{Blame, Error};
use stackline_core::plan::Plan;
use stackline_core::run_record::RunRecord;
use stackline_core::run_schedule::{PlanSchedule, RunOrder};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;

/// What a thread yields for one seed.
type Yield = Result<SeedRuns, Error>;

/// All runs under one seed.
struct SeedRuns {
    /// By run: its records, one for each part.
    records: Vec<Vec<RunRecord>>,
    /// Simulated events of all of them.
    events: u64,
}

/// Makes all runs under all seeds and hands them to the writer in the order of the seeds. Run numbers continue from
/// seed to seed. Seeds that an earlier process has done are left out.
///
/// # Errors
/// The first [`Error`] in the order of the seeds.
pub fn make_runs_of_seeds(
    plan: &Plan,
    seeds: RangeInclusive<u64>,
    interrupted: &AtomicBool,
    writer: &mut RunWriter<'_>,
) -> Result<(), Error> {
    let (first, last) = (*seeds.start(), *seeds.end());
    let next = first.checked_add(writer.seeds_before());
    let Some(next) = next.filter(|next| *next <= last) else {
        return Ok(());
    };
    of_seeds(plan, next..=last, u64::MAX, interrupted, |seed, made| {
        keep(seed - first, made.records, writer)
    })
}

/// Makes all runs under all seeds without a run directory: `take` gets the records of each seed, in order. Run numbers
/// continue from seed to seed.
///
/// # Errors
/// The first [`Error`] in the order of the seeds; seeds before it were taken.
pub fn simulate(
    plan: &Plan,
    seeds: RangeInclusive<u64>,
    interrupted: &AtomicBool,
    mut take: impl FnMut(Vec<RunRecord>),
) -> Result<(), Error> {
    simulate_within(plan, seeds, u64::MAX, interrupted, |records, _| {
        take(records)
    })
}

/// Like [`simulate`], with at most `most_events` simulated events for each seed; `take` also gets how many they were.
/// The limit is in events, not in time, so that the result does not depend on the speed of this machine.
///
/// # Errors
/// The first [`Error`] in the order of the seeds; a seed that needs more events fails as if it were interrupted. Seeds
/// before it were taken.
pub fn simulate_within(
    plan: &Plan,
    seeds: RangeInclusive<u64>,
    most_events: u64,
    interrupted: &AtomicBool,
    mut take: impl FnMut(Vec<RunRecord>, u64),
) -> Result<(), Error> {
    let mut before = 0;
    of_seeds(plan, seeds, most_events, interrupted, |_, made| {
        let runs = u32::try_from(made.records.len()).unwrap_or(u32::MAX);
        let mut records: Vec<RunRecord> = made.records.into_iter().flatten().collect();
        records.iter_mut().for_each(|record| record.run += before);
        before += runs;
        take(records, made.events);
    })
}

/// Makes the runs of all seeds on all cores, and calls `take` for each seed in order.
fn of_seeds(
    plan: &Plan,
    seeds: RangeInclusive<u64>,
    most_events: u64,
    interrupted: &AtomicBool,
    take: impl FnMut(u64, SeedRuns),
) -> Result<(), Error> {
    let (first, last) = (*seeds.start(), *seeds.end());
    // How many seeds were taken by threads. It is added with a check, since the last seed may be the largest number
    // there is.
    let taken = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let stop = AtomicBool::new(false);
    let (sender, receiver) = channel::<(u64, Yield)>();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, taken, stop) = (sender.clone(), &taken, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) && !interrupted.load(Ordering::Relaxed) {
                    let seed = first
                        .checked_add(taken.fetch_add(1, Ordering::Relaxed))
                        .filter(|seed| *seed <= last);
                    let Some(seed) = seed else { return };
                    if sender
                        .send((seed, one_seed(plan, seed, most_events, interrupted)))
                        .is_err()
                    {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let result = in_order(first, receiver.iter(), take);
        stop.store(true, Ordering::Relaxed);
        result?;
        if interrupted.load(Ordering::Relaxed) {
            return Err(Error::new(Blame::Interrupted, "interrupted"));
        }
        Ok(())
    })
}

/// Receives seeds in any order and passes them to `keep` in ascending order.
fn in_order(
    mut next: u64,
    yields: impl Iterator<Item = (u64, Yield)>,
    mut keep: impl FnMut(u64, SeedRuns),
) -> Result<(), Error> {
    let mut early = std::collections::BTreeMap::new();
    for (seed, made) in yields {
        early.insert(seed, made);
        while let Some(made) = early.remove(&next) {
            keep(
                next,
                made.map_err(|fault| fault.within(&format!("seed {next}")))?,
            );
            next = next.wrapping_add(1);
        }
    }
    Ok(())
}

/// Makes all runs of one seed.
fn one_seed(plan: &Plan, seed: u64, most_events: u64, interrupted: &AtomicBool) -> Yield {
    let mut schedule = PlanSchedule::new(plan, seed, RunOrder::Declared);
    let (mut all, mut events) = (Vec::new(), 0_u64);
    while let Some(scheduled) = schedule.next(|_| true) {
        let network = network_of(plan, &scheduled)?;
        let mut scene = scene(network, &scheduled, interrupted);
        scene.limits.events = most_events.saturating_sub(events);
        let (outcome, ()) = stackline_sim::carry_out(&scene, ())?;
        events = events.saturating_add(outcome.events);
        let output = run_output(network, outcome);
        schedule.record_time(output.took);
        all.push(output.records);
    }
    Ok(SeedRuns {
        records: all,
        events,
    })
}

/// Hands the records of one seed to the writer, with run numbers after those of the `seeds_before`.
fn keep(seeds_before: u64, made: Vec<Vec<RunRecord>>, writer: &mut RunWriter<'_>) {
    for mut records in made {
        for record in &mut records {
            let runs = writer.runs_of(record.measurement, record.warmup);
            let before = u64::from(runs) * seeds_before;
            record.run = record
                .run
                .saturating_add(u32::try_from(before).unwrap_or(u32::MAX));
        }
        writer.done(&records);
    }
}
