//! Makes the runs of two plans in pairs: a pair has a run of every measurement of both plans. Which plan comes first is drawn for each
//! pair, so that neither profits from the order, and what changes slowly meets both alike.

use crate::backend::RunContext;
use crate::run_writer::{RunWriter, is_look};
use crate::worlds::Worlds;
use stackline_core::error::{Blame, Error};
use stackline_core::plan::Plan;
use stackline_core::random::Seed;
use stackline_core::run_record::RunRecord;
use stackline_core::run_schedule::PlanSchedule;

/// One of the two plans, and where its runs are kept.
pub struct PairedSide<'s, 'p> {
    /// What is needed to make its runs. It may neither go on after a failure nor make runs twice.
    pub context: &'s RunContext<'p>,
    /// Its writer.
    pub writer: &'s mut RunWriter<'p>,
}

/// How pairs ended.
#[derive(Clone, Debug, Default)]
pub struct PairsOutcome {
    /// How many whole pairs were made.
    pub pairs: u32,
    /// Why they ended early, if they did.
    pub failed: Option<Error>,
    /// Notes about the worlds, for people.
    pub notes: Vec<String>,
}

/// Makes pairs until `enough` says so of the records of both sides, or `most` were made. The order
/// within pairs is drawn from `seed`. How often the plans repeat their measurements does not matter; warm-up runs belong to the first
/// pair.
pub fn make_pairs(
    sides: [PairedSide<'_, '_>; 2],
    seed: u64,
    most: u32,
    enough: impl FnMut(&[RunRecord], &[RunRecord]) -> bool,
) -> PairsOutcome {
    let plans = sides
        .each_ref()
        .map(|side| repeated(side.context.plan, most));
    let [a, b] = sides;
    let opened = OpenPairedSide::open(a, &plans[0])
        .and_then(|a| Ok([a, OpenPairedSide::open(b, &plans[1])?]));
    let mut open = match opened {
        Ok(open) => open,
        Err(fault) => {
            return PairsOutcome {
                failed: Some(fault),
                ..PairsOutcome::default()
            };
        }
    };
    let mut pairs = 0;
    let mut failed = make_all(&mut open, seed, most, enough, &mut pairs).err();
    let mut notes: Vec<String> = Vec::new();
    for side in &mut open {
        if let Err(fault) = side.worlds.finish() {
            failed = failed.or(Some(fault));
        }
        let is_over = |fault: &Error| fault.blame != Blame::Interrupted;
        if failed.as_ref().is_none_or(is_over) {
            side.writer.environment(side.worlds.environment(true));
        }
        for note in side.worlds.notes() {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    PairsOutcome {
        pairs,
        failed,
        notes,
    }
}

/// The plan with so many runs of each measurement.
fn repeated(plan: &Plan, runs: u32) -> Plan {
    let mut plan = plan.clone();
    for measurement in &mut plan.measurements {
        (measurement.runs, measurement.until) = (runs, None);
    }
    plan
}

/// A plan whose worlds are open.
struct OpenPairedSide<'s, 'p> {
    worlds: Worlds<'p>,
    writer: &'s mut RunWriter<'p>,
    /// Of each measurement, which run comes next.
    schedules: Vec<PlanSchedule<'s>>,
}

impl<'s, 'p> OpenPairedSide<'s, 'p> {
    fn open(side: PairedSide<'s, 'p>, repeated: &'s Plan) -> Result<Self, Error> {
        let mut worlds = Worlds::open(side.context)?;
        side.writer.environment(worlds.environment(false));
        let at = |index: usize| {
            let mut schedule = PlanSchedule::new(repeated, repeated.seed);
            (0..index).for_each(|_| schedule.give_up());
            schedule
        };
        Ok(Self {
            worlds,
            writer: side.writer,
            schedules: (0..repeated.measurements.len()).map(at).collect(),
        })
    }

    /// Makes one counted run of each measurement, before the first of them the warm-up runs.
    fn make_each(&mut self) -> Result<(), Error> {
        for schedule in &mut self.schedules {
            while let Some(scheduled) = schedule.next(|_| false) {
                let took = self.worlds.make_kept_run(&scheduled, self.writer)?;
                schedule.record_time(took);
                if scheduled.counted {
                    break;
                }
            }
        }
        Ok(())
    }
}

fn make_all(
    open: &mut [OpenPairedSide<'_, '_>; 2],
    seed: u64,
    most: u32,
    mut enough: impl FnMut(&[RunRecord], &[RunRecord]) -> bool,
    pairs: &mut u32,
) -> Result<(), Error> {
    let orders = Seed::root(seed).child("pair");
    while *pairs < most {
        let order = match orders.index(u64::from(*pairs)).0.is_multiple_of(2) {
            true => [0, 1],
            false => [1, 0],
        };
        for at in order {
            open[at].make_each()?;
        }
        *pairs += 1;
        let [a, b] = &*open;
        if is_look(*pairs as usize) && enough(a.writer.records(), b.writer.records()) {
            break;
        }
    }
    Ok(())
}
