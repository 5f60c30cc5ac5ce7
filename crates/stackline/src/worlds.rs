//! Which world makes which run of a plan. Each is opened before the first run, so that what it cannot do is told at once.

mod clocks;
mod emulated;
mod live;
pub(crate) mod seeds;
pub(crate) mod simulated;
mod traces;
mod tracing;

use crate::exit::Error;
use crate::observer::Keeper;
use emulated::Emulated;
pub(crate) use emulated::recorders;
use live::Live;
use serde_json::Value;
use simulated::Simulated;
use stackline_core::plan::{Plan, World};
use stackline_core::record::{NetworkRecord, RunRecord, WakeUp};
use stackline_core::schedule::{Schedule, ScheduledRun};
use stackline_core::time::Duration;
use stackline_live::launch::Launcher;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
pub(crate) use traces::Traces;
use tracing::{Traced, Tracer, Tracing};

/// What a run yielded.
pub(crate) struct Made {
    /// One a part.
    pub(crate) records: Vec<RunRecord>,
    /// How long it took, in the time of its world.
    pub(crate) took: Duration,
}

impl Made {
    /// Of records that all get what the network did.
    fn across(mut self, network: &NetworkRecord) -> Self {
        for record in &mut self.records {
            record.network = Some(network.clone());
        }
        self
    }
}

/// A place where runs are made.
trait Place {
    /// Makes one run, traced when it is told how.
    fn make(&mut self, turn: &ScheduledRun<'_>, tracing: Option<&mut Tracing>) -> Result<Made, Error>;
    /// The host in whose time traced runs are.
    fn reference(&self) -> Option<String> {
        None
    }
    /// What is known of it for `environment.json`: once before the first run, once after the last.
    fn environment(&mut self, done: bool) -> Value;
    /// What waking a core costs there.
    fn wake_up(&self) -> Option<WakeUp> {
        None
    }
}

/// What worlds are opened with.
pub(crate) struct Ground<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) launcher: Launcher,
    pub(crate) interrupted: &'p Arc<AtomicBool>,
    /// What is recorded.
    pub(crate) traces: Traces,
    /// Every simulated run is made twice.
    pub(crate) twice: bool,
}

/// Every world that a plan needs.
pub(crate) struct Worlds<'p> {
    plan: &'p Plan,
    tracer: Option<Tracer>,
    live: Option<Live<'p>>,
    emulated: Option<Emulated<'p>>,
    simulated: Option<Simulated<'p>>,
}

impl<'p> Worlds<'p> {
    /// Opens them.
    ///
    /// # Errors
    /// An [`Error`] that says which cannot be had and why.
    pub(crate) fn open(ground: &Ground<'p>) -> Result<Self, Error> {
        let wants = |world| ground.plan.measurements.iter().any(|measurement| measurement.world == world);
        let live = wants(World::Live).then(|| Live::open(ground)).transpose()?;
        let emulated = wants(World::Emulated).then(|| Emulated::open(ground)).transpose()?;
        let simulated = wants(World::Simulated);
        let simulated = simulated.then(|| Simulated::new(ground.plan, ground.traces.clone(), ground.twice));
        let tracer = ground.traces.trace.then(|| Tracer::new(&ground.traces.directory));
        let tracer = tracer.transpose()?;
        Ok(Self { plan: ground.plan, tracer, live, emulated, simulated })
    }

    /// Makes all runs, each told to the keeper.
    ///
    /// # Errors
    /// The first [`Error`]; what was done before has been kept.
    pub(crate) fn carry_out(&mut self, keeper: &mut Keeper<'_>) -> Result<(), Error> {
        let mut schedule = Schedule::new(self.plan, self.plan.seed);
        while let Some(turn) = schedule.next(|measurement| keeper.enough(measurement)) {
            keeper.begins(&turn);
            let mut tracing = self.tracer.as_mut().map(|tracer| tracer.begin(&turn));
            let made = self.place(turn.measurement.world)?.make(&turn, tracing.as_mut());
            let kept = match (&mut self.tracer, tracing) {
                (Some(tracer), Some(tracing)) => tracer.done(&turn, tracing.traced),
                _ => Ok(()),
            };
            let made = made?;
            kept?;
            schedule.took(made.took);
            keeper.done(&made.records);
        }
        Ok(())
    }

    /// Keeps what was traced, however the runs ended; what that cost, for people.
    ///
    /// # Errors
    /// An [`Error`] when it cannot be written.
    pub(crate) fn finish(&mut self) -> Result<Option<String>, Error> {
        let Some(tracer) = self.tracer.take() else { return Ok(None) };
        let worlds = [World::Live, World::Emulated, World::Simulated];
        let reference = worlds.into_iter().find_map(|world| self.place(world).ok()?.reference());
        let note = tracer.note();
        tracer.finish(reference.as_deref().unwrap_or(tracing::COORDINATOR))?;
        Ok(note)
    }

    fn place(&mut self, world: World) -> Result<&mut dyn Place, Error> {
        let place: Option<&mut dyn Place> = match world {
            World::Live => self.live.as_mut().map(|place| place as &mut dyn Place),
            World::Simulated => self.simulated.as_mut().map(|place| place as &mut dyn Place),
            World::Emulated => self.emulated.as_mut().map(|place| place as &mut dyn Place),
        };
        place.ok_or_else(|| Error::environment(format!("the {world} world is not open")))
    }

    /// What is known of each world.
    pub(crate) fn environment(&mut self, done: bool) -> Vec<(World, Value)> {
        let worlds = [World::Live, World::Emulated, World::Simulated];
        worlds.into_iter().filter_map(|world| Some((world, self.place(world).ok()?.environment(done)))).collect()
    }

    /// How many simulated runs there were, and the digest of all their events.
    pub(crate) fn digest(&self) -> Option<(u64, u64)> {
        self.simulated.as_ref().map(Simulated::digest)
    }

    /// What waking a core costs where programs really run.
    pub(crate) fn wake_up(&self) -> Option<WakeUp> {
        let live = self.live.as_ref().and_then(Place::wake_up);
        live.or_else(|| self.emulated.as_ref().and_then(Place::wake_up))
    }
}
