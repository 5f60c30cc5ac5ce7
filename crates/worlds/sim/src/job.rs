//! A job: one side of one part, with what its endpoints do, the flags that end them, and the barrier before their
//! clocks start.

use crate::error::Result;
use crate::run_state::{SimRunState, Timer};
use stackline_core::error::Blame;
use stackline_core::procedure::PairSide;
use stackline_endpoint::{EndpointObservation, EndpointTask};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// The flags that stop endpoints.
#[derive(Debug, Default)]
pub(crate) struct SimStopFlags {
    limit: Cell<bool>,
    ended: Cell<bool>,
}

impl SimStopFlags {
    /// Whether the time limit was reached, or a load is no longer wanted: endpoints are to end cleanly.
    pub(crate) const fn limit(&self) -> bool {
        self.limit.get()
    }

    /// Whether endpoints are to end at once.
    pub(crate) const fn ended(&self) -> bool {
        self.ended.get()
    }
}

/// One side of one part.
#[derive(Debug)]
pub(crate) struct SimJob {
    pub(crate) number: u32,
    /// The index of the part in the measurement.
    pub(crate) part: usize,
    pub(crate) task: Arc<EndpointTask>,
    /// The name of the host of its endpoints.
    pub(crate) host: String,
    pub(crate) flags: SimStopFlags,
    /// The number of its first endpoint; the others follow.
    pub(crate) first: u32,
    /// The number of endpoints that have come to the barrier.
    pub(crate) waiting: Cell<u32>,
    /// The barrier is open.
    pub(crate) open: Cell<bool>,
    /// The number of endpoints that are done.
    pub(crate) done: Cell<u32>,
    /// The run is ending: from now on an error in a load is not a failure of the run.
    pub(crate) ending: Cell<bool>,
    /// The time limit is being counted.
    armed: Cell<bool>,
    /// What its endpoints observed, in the order in which they ended.
    pub(crate) observed: RefCell<Vec<EndpointObservation>>,
}

impl SimJob {
    pub(crate) fn new(
        number: u32,
        part: usize,
        task: EndpointTask,
        host: &str,
        first: u32,
    ) -> Self {
        Self {
            number,
            part,
            task: Arc::new(task),
            host: host.to_string(),
            flags: SimStopFlags::default(),
            first,
            waiting: Cell::new(0),
            open: Cell::new(false),
            done: Cell::new(0),
            ending: Cell::new(false),
            armed: Cell::new(false),
            observed: RefCell::default(),
        }
    }

    /// Starts counting the time limit; later calls do nothing. A side that only awaits follows the other side's limit.
    pub(crate) fn arm(&self, shared: &SimRunState) {
        if let Some(limit) = self.task.own_time_limit()
            && !self.armed.replace(true)
        {
            shared.set_timer(shared.now() + limit, Timer::Alarm(self.number));
        }
    }

    /// Ends the endpoints: cleanly, or at once when `now`.
    pub(crate) fn end(&self, now: bool, shared: &SimRunState) {
        self.flags.limit.set(true);
        if now {
            self.flags.ended.set(true);
            self.open.set(true);
        }
        self.wake_all(shared);
    }

    /// Opens the barrier for its endpoints.
    pub(crate) fn go(&self, shared: &SimRunState) {
        self.open.set(true);
        self.wake_all(shared);
    }

    fn wake_all(&self, shared: &SimRunState) {
        (self.first..self.first + self.task.replicas).for_each(|endpoint| shared.wake(endpoint));
    }

    /// Counts an endpoint as done and keeps what it observed.
    ///
    /// # Errors
    /// The endpoint's error, except in a load that is ending (its peer may have ended a moment earlier) and when it was
    /// interrupted.
    pub(crate) fn keep(
        &self,
        result: Result<EndpointObservation>,
        shared: &SimRunState,
    ) -> Result<()> {
        self.done.set(self.done.get() + 1);
        shared.signal_news();
        let observation = match result {
            Ok(observation) => observation,
            Err(_) if self.ending.get() && self.task.background => EndpointObservation::default(),
            Err(error) if error.blame == Blame::Interrupted => EndpointObservation::default(),
            Err(error) => return Err(error.within(&self.name())),
        };
        self.observed.borrow_mut().push(observation);
        Ok(())
    }

    /// Whether all its endpoints wait at the barrier, or are done.
    pub(crate) fn is_ready(&self) -> bool {
        self.waiting.get().max(self.done.get()) >= self.task.replicas
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done.get() == self.task.replicas
    }

    /// The job in words: `initiator on khons`.
    pub(crate) fn name(&self) -> String {
        let side = if self.task.side == PairSide::Initiator {
            "initiator"
        } else {
            "responder"
        };
        format!("{side} on {}", self.host)
    }
}
