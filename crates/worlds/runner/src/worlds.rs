//! The worlds that a plan needs, and the loop over its runs. Each world is opened before the first run, so that what it
//! cannot do is an error at once.

mod clocks;
mod emulated;
mod live;
pub(crate) mod simulated;

use crate::backend::{Backend, RunContext, RunOutput};
use crate::run_writer::RunWriter;
use crate::tracing::{COORDINATOR, RunTracer};
use emulated::Emulated;
pub use emulated::{record_all, recorders};
use live::LiveAgentsWorld;
use serde_json::Value;
use simulated::SimulatedWorld;
use stackline_core::error::{Blame, Error};
use stackline_core::plan::{Plan, World};
use stackline_core::run_record::WakeUp;
use stackline_core::run_schedule::{PlanSchedule, ScheduledRun};
use stackline_core::time::Duration;
use stackline_runs::events::SortStopSignal;

/// What came of a run.
struct MadeRun {
    output: Result<RunOutput, Error>,
    /// Whether its trace was kept.
    traced: Result<(), Error>,
}

/// The worlds that a plan needs; `None` where no measurement is in that world.
pub(crate) struct Worlds<'p> {
    plan: &'p Plan,
    /// Ends the sorting of traced events when the user wants the end.
    stop: SortStopSignal,
    /// Collects traced events; `None` without `--trace`.
    tracer: Option<RunTracer>,
    live: Option<LiveAgentsWorld<'p>>,
    emulated: Option<Emulated<'p>>,
    simulated: Option<SimulatedWorld<'p>>,
}

impl<'p> Worlds<'p> {
    /// Opens all worlds that the plan needs.
    ///
    /// # Errors
    /// An [`Error`] that says which world cannot be opened and why.
    pub(crate) fn open(context: &RunContext<'p>) -> Result<Self, Error> {
        let wants = |world| {
            context
                .plan
                .measurements
                .iter()
                .any(|measurement| measurement.world == world)
        };
        let live = wants(World::Live)
            .then(|| LiveAgentsWorld::open(context))
            .transpose()?;
        let emulated = wants(World::Emulated)
            .then(|| Emulated::open(context))
            .transpose()?;
        let simulated = wants(World::Simulated).then(|| SimulatedWorld::new(context));
        let tracer = context
            .traces
            .trace
            .then(|| RunTracer::new(&context.traces.directory));
        let tracer = tracer.transpose()?;
        let stop = SortStopSignal::by(context.signalled);
        Ok(Self {
            plan: context.plan,
            stop,
            tracer,
            live,
            emulated,
            simulated,
        })
    }

    /// Makes all runs that no earlier process made and hands each to the writer. A measurement whose run fails while others go on
    /// goes to `given_up`, by index.
    ///
    /// # Errors
    /// The first [`Error`]; runs made before it have been kept.
    pub(crate) fn make_runs(
        &mut self,
        context: &RunContext<'p>,
        writer: &mut RunWriter<'_>,
        given_up: &mut Vec<(usize, Error)>,
    ) -> Result<(), Error> {
        let mut broken = None;
        let mut schedule = PlanSchedule::new(self.plan, self.plan.seed, context.order);
        while let Some(scheduled) = schedule.next(|measurement| writer.enough(measurement)) {
            if let Some(took) = writer.take_over(&scheduled) {
                schedule.record_time(took);
                continue;
            }
            if let Some(world) = broken.take() {
                self.reopen(context, world)?;
            }
            let made = self.make_run(&scheduled, writer)?;
            let output = match made.output {
                Err(fault) if goes_on(context, &scheduled, &fault) => {
                    given_up.push((scheduled.index, fault));
                    schedule.give_up();
                    broken = Some(scheduled.measurement.world);
                    continue;
                }
                output => output?,
            };
            made.traced?;
            schedule.record_time(output.took);
            writer.done(&output.records);
        }
        Ok(())
    }

    /// Makes one run, and adds what was traced of it to the trace. The writer is not yet given its records.
    ///
    /// # Errors
    /// When its world is not open.
    fn make_run(
        &mut self,
        scheduled: &ScheduledRun<'_>,
        writer: &mut RunWriter<'_>,
    ) -> Result<MadeRun, Error> {
        writer.begin(scheduled);
        let mut tracing = self.tracer.as_mut().map(|tracer| tracer.begin(scheduled));
        let output = self
            .backend(scheduled.measurement.world)?
            .make(scheduled, tracing.as_mut());
        let traced = match (&mut self.tracer, tracing) {
            (Some(tracer), Some(tracing)) => tracer.done(scheduled, tracing.traced),
            _ => Ok(()),
        };
        Ok(MadeRun { output, traced })
    }

    /// Makes one run and hands it to the writer. Returns how long it took, in the time of its world.
    ///
    /// # Errors
    /// When it fails, or its trace cannot be kept.
    pub(crate) fn make_kept_run(
        &mut self,
        scheduled: &ScheduledRun<'_>,
        writer: &mut RunWriter<'_>,
    ) -> Result<Duration, Error> {
        let made = self.make_run(scheduled, writer)?;
        let output = made.output?;
        made.traced?;
        writer.done(&output.records);
        Ok(output.took)
    }

    /// Opens a world again after a run in it has failed: its agents may be in the middle of that run.
    fn reopen(&mut self, context: &RunContext<'p>, world: World) -> Result<(), Error> {
        match world {
            World::Live => {
                self.live = None;
                self.live = Some(LiveAgentsWorld::open(context)?);
            }
            World::Emulated => {
                self.emulated = None;
                self.emulated = Some(Emulated::open(context)?);
            }
            World::Simulated => {}
        }
        Ok(())
    }

    /// Completes the trace, however the runs ended. Returns what tracing cost, for people.
    ///
    /// # Errors
    /// An [`Error`] when it cannot be written.
    pub(crate) fn finish(&mut self) -> Result<Option<String>, Error> {
        let Some(tracer) = self.tracer.take() else {
            return Ok(None);
        };
        let reference = World::ALL
            .into_iter()
            .find_map(|world| self.backend(world).ok()?.reference());
        let note = tracer.note();
        tracer.finish(reference.as_deref().unwrap_or(COORDINATOR), &self.stop)?;
        Ok(note)
    }

    fn backend(&mut self, world: World) -> Result<&mut dyn Backend, Error> {
        let backend: Option<&mut dyn Backend> = match world {
            World::Live => self.live.as_mut().map(|world| world as &mut dyn Backend),
            World::Simulated => self
                .simulated
                .as_mut()
                .map(|world| world as &mut dyn Backend),
            World::Emulated => self
                .emulated
                .as_mut()
                .map(|world| world as &mut dyn Backend),
        };
        backend.ok_or_else(|| Error::environment(format!("the {world} world is not open")))
    }

    /// What is known of each world, for `environment.json`; `done` after the last run.
    pub(crate) fn environment(&mut self, done: bool) -> Vec<(World, Value)> {
        World::ALL
            .into_iter()
            .filter_map(|world| Some((world, self.backend(world).ok()?.environment(done))))
            .collect()
    }

    /// The number of simulated runs, and the digest of all their events.
    pub(crate) fn digest(&self) -> Option<(u64, u64)> {
        self.simulated.as_ref().map(SimulatedWorld::digest)
    }

    /// Notes for people about the worlds, shown beside the results.
    pub(crate) fn notes(&self) -> Vec<String> {
        let live = self.live.iter().flat_map(Backend::notes);
        live.chain(self.emulated.iter().flat_map(Backend::notes))
            .collect()
    }

    /// What it costs to wake a processor core where programs really run.
    pub(crate) fn wake_up(&self) -> Option<WakeUp> {
        let live = self.live.as_ref().and_then(Backend::wake_up);
        live.or_else(|| self.emulated.as_ref().and_then(Backend::wake_up))
    }
}

/// Whether the other measurements go on after a run failed. On a full disk none could be recorded either.
fn goes_on(context: &RunContext<'_>, failed: &ScheduledRun<'_>, fault: &Error) -> bool {
    let records = context.traces.trace || !context.traces.capture.is_empty();
    fault.blame != Blame::Interrupted
        && context
            .after_failure
            .goes_on(context.plan, failed.measurement)
        && (!records || stackline_runs::has_room(&context.traces.directory))
}
