//! The context of one endpoint: its job, its host's clock, its trace, and how it waits.

use crate::clock::SimHostClock;
use crate::error::{Error, Result};
use crate::job::SimJob;
use crate::program_costs::HostWorkCosts;
use crate::run_state::SimRunState;
use crate::run_trace::SimEndpointTrace;
use stackline_core::network::WorkKind;
use stackline_core::time::{Duration, Instant};
use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// The context of one endpoint.
#[derive(Debug)]
pub(crate) struct SimEndpointContext {
    pub(crate) shared: Rc<SimRunState>,
    pub(crate) job: Rc<SimJob>,
    pub(crate) clock: Rc<SimHostClock>,
    /// The index of its host.
    host: usize,
    /// The processor time that programs of its host take; `None` if none.
    pub(crate) costs: Option<HostWorkCosts>,
    /// The number of the endpoint, which is also that of its task.
    id: u32,
    /// How long after the barrier the endpoint begins.
    pub(crate) begins_after: Duration,
    /// Its part of the trace, when the run is traced.
    line: Option<SimEndpointTrace>,
    /// Words for what the endpoint waits for, for error messages.
    waiting: Cell<&'static str>,
}

/// The host of an endpoint.
#[derive(Debug)]
pub(crate) struct SimEndpointHost {
    pub(crate) index: usize,
    pub(crate) clock: Rc<SimHostClock>,
    /// What programs take of its processor.
    pub(crate) costs: Option<HostWorkCosts>,
}

impl SimEndpointContext {
    pub(crate) fn new(
        shared: &Rc<SimRunState>,
        job: &Rc<SimJob>,
        host: SimEndpointHost,
        id: u32,
        begins_after: Duration,
        line: Option<SimEndpointTrace>,
    ) -> Rc<Self> {
        let (shared, job) = (Rc::clone(shared), Rc::clone(job));
        let SimEndpointHost {
            index: host,
            clock,
            costs,
        } = host;
        let waiting = Cell::new("its turn");
        Rc::new(Self {
            shared,
            job,
            clock,
            host,
            costs,
            id,
            begins_after,
            line,
            waiting,
        })
    }

    pub(crate) fn now(&self) -> Instant {
        self.shared.now()
    }

    /// The time between two instants as this host's clock measures it.
    pub(crate) fn between(&self, from: Instant, to: Instant) -> Duration {
        self.clock.between(from, to)
    }

    /// Whether the endpoint has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.shared.tasks.is_over(self.id)
    }

    pub(crate) const fn waits_for(&self) -> &'static str {
        self.waiting.get()
    }

    /// Sets a timer that polls the endpoint at `moment`.
    pub(crate) fn wake_at(&self, moment: Instant) {
        self.shared.set_alarm(self.id, moment);
    }

    /// Waits until `poll` returns a value; `what` names that for error messages.
    pub(crate) async fn until<R>(
        &self,
        what: &'static str,
        mut poll: impl FnMut() -> Option<R>,
    ) -> Result<R> {
        poll_fn(|_| {
            if let Some(found) = poll() {
                return Poll::Ready(Ok(found));
            }
            self.stand(what)
        })
        .await
    }

    /// Waits until `poll` returns a value, at most until `moment`: then the result is `None`.
    pub(crate) async fn until_or<R>(
        &self,
        what: &'static str,
        moment: Instant,
        mut poll: impl FnMut() -> Option<R>,
    ) -> Result<Option<R>> {
        poll_fn(|_| {
            if let Some(found) = poll() {
                return Poll::Ready(Ok(Some(found)));
            }
            if self.now() >= moment {
                return Poll::Ready(Ok(None));
            }
            self.wake_at(moment);
            self.stand(what)
        })
        .await
    }

    /// Waits until `moment`. Returns false when the time limit came first.
    pub(crate) async fn sleep(&self, moment: Instant) -> Result<bool> {
        let early = self
            .until_or("a moment", moment, || self.job.flags.limit().then_some(()))
            .await?;
        Ok(early.is_none())
    }

    /// Has the host's processor work for that time, and waits for the end of the work.
    pub(crate) async fn work(&self, kind: WorkKind, takes: Duration) -> Result<()> {
        if takes == Duration::ZERO {
            return Ok(());
        }
        let ticket = self.shared.want(self.host, self.id, kind, takes, self.id);
        self.until("its host's processor", || ticket.done.get().then_some(()))
            .await
    }

    /// Whether the run is traced.
    pub(crate) const fn is_traced(&self) -> bool {
        self.line.is_some()
    }

    /// Records events of this endpoint now, when the run is traced.
    #[inline]
    pub(crate) fn trace<R>(
        &self,
        record: impl FnOnce(&SimEndpointTrace, Instant) -> R,
    ) -> Option<R> {
        self.line.as_ref().map(|line| record(line, self.now()))
    }

    /// Goes on waiting for `what`, or fails when the endpoint was stopped at once.
    fn stand<R>(&self, what: &'static str) -> Poll<Result<R>> {
        if self.job.flags.ended() {
            return Poll::Ready(Err(Error::interrupted()));
        }
        self.waiting.set(what);
        Poll::Pending
    }
}
