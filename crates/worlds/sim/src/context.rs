//! What one endpoint has around it: its job, its host's clock, its trace, and how it waits.

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

/// What one endpoint has around it.
#[derive(Debug)]
pub(crate) struct SimEndpointContext {
    pub(crate) shared: Rc<SimRunState>,
    pub(crate) job: Rc<SimJob>,
    pub(crate) clock: Rc<SimHostClock>,
    /// Its host, and what programs take of that one's processor.
    host: usize,
    pub(crate) costs: Option<HostWorkCosts>,
    id: u32,
    /// How long after the barrier it begins.
    pub(crate) begins_after: Duration,
    /// Its trace, when there is one.
    line: Option<SimEndpointTrace>,
    /// Words for what it waits for.
    waiting: Cell<&'static str>,
}

/// The host an endpoint works at.
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

    /// The time between two moments as this host reads it.
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

    /// Polls the endpoint not later than `moment`.
    pub(crate) fn wake_at(&self, moment: Instant) {
        self.shared.set_alarm(self.id, moment);
    }

    /// Waits until `poll` finds something.
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

    /// Waits until `poll` finds something, at most until `moment`.
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

    /// Waits until `moment` or until the limit comes: then it is false.
    pub(crate) async fn sleep(&self, moment: Instant) -> Result<bool> {
        let early = self
            .until_or("a moment", moment, || self.job.flags.limit().then_some(()))
            .await?;
        Ok(early.is_none())
    }

    /// Has the host's processor work for so long.
    pub(crate) async fn work(&self, kind: WorkKind, takes: Duration) -> Result<()> {
        if takes == Duration::ZERO {
            return Ok(());
        }
        let ticket = self.shared.want(self.host, self.id, kind, takes, self.id);
        self.until("its host's processor", || ticket.done.get().then_some(()))
            .await
    }

    /// Whether events are kept at all.
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

    fn stand<R>(&self, what: &'static str) -> Poll<Result<R>> {
        if self.job.flags.ended() {
            return Poll::Ready(Err(Error::interrupted()));
        }
        self.waiting.set(what);
        Poll::Pending
    }
}
