//! One side of one part: what its endpoints do, the flags that end them, the barrier before their clocks.

use crate::error::Result;
use crate::run_state::{SimRunState, Timer};
use stackline_core::error::Blame;
use stackline_core::procedure::PairSide;
use stackline_endpoint::{EndpointObservation, EndpointTask};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// What stops endpoints.
#[derive(Debug, Default)]
pub(crate) struct SimStopFlags {
    limit: Cell<bool>,
    ended: Cell<bool>,
}

impl SimStopFlags {
    /// Whether the limit was reached, or a load is no longer wanted: end cleanly.
    pub(crate) const fn limit(&self) -> bool {
        self.limit.get()
    }

    /// Whether to end at once.
    pub(crate) const fn ended(&self) -> bool {
        self.ended.get()
    }
}

/// One side of one part.
#[derive(Debug)]
pub(crate) struct SimJob {
    pub(crate) number: u32,
    pub(crate) part: usize,
    pub(crate) task: Arc<EndpointTask>,
    pub(crate) host: String,
    pub(crate) flags: SimStopFlags,
    /// Its endpoints: the first one's number; they follow one another.
    pub(crate) first: u32,
    /// Endpoints that have come to the barrier.
    pub(crate) waiting: Cell<u32>,
    pub(crate) open: Cell<bool>,
    /// Endpoints that are done.
    pub(crate) done: Cell<u32>,
    /// What goes wrong from now on in a load is no failure.
    pub(crate) ending: Cell<bool>,
    armed: Cell<bool>,
    /// What its endpoints observed, as they ended.
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

    /// Starts counting the time limit; a second time does nothing. A side that only awaits follows the other's limit.
    pub(crate) fn arm(&self, shared: &SimRunState) {
        if let Some(limit) = self.task.own_time_limit()
            && !self.armed.replace(true)
        {
            shared.set_timer(shared.now() + limit, Timer::Alarm(self.number));
        }
    }

    /// Ends it: cleanly where it loops; at once when `now`.
    pub(crate) fn end(&self, now: bool, shared: &SimRunState) {
        self.flags.limit.set(true);
        if now {
            self.flags.ended.set(true);
            self.open.set(true);
        }
        self.wake_all(shared);
    }

    /// Lets its endpoints through the barrier.
    pub(crate) fn go(&self, shared: &SimRunState) {
        self.open.set(true);
        self.wake_all(shared);
    }

    fn wake_all(&self, shared: &SimRunState) {
        (self.first..self.first + self.task.replicas).for_each(|endpoint| shared.wake(endpoint));
    }

    /// Keeps what an endpoint observed, which is done.
    ///
    /// # Errors
    /// Why the endpoint failed, but for a load that is ending (its peer may have ended a moment earlier) and what is interrupted.
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

    /// All its endpoints wait at the barrier, or are done already.
    pub(crate) fn is_ready(&self) -> bool {
        self.waiting.get().max(self.done.get()) >= self.task.replicas
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done.get() == self.task.replicas
    }

    /// In words: `initiator on khons`.
    pub(crate) fn name(&self) -> String {
        let side = if self.task.side == PairSide::Initiator {
            "initiator"
        } else {
            "responder"
        };
        format!("{side} on {}", self.host)
    }
}
