//! The simulated world of one endpoint ([`EndpointWorld`]): virtual time, and connections of its pair's stack.

use crate::context::SimEndpointContext;
use crate::error::{Error, Result, connection_vanished};
use crate::host_work::Working;
use crate::tasks::Task;
use stackline_core::procedure::PairSide;
use stackline_core::time::{Duration, Instant};
use stackline_endpoint::{
    DurationSamples, Endpoint, EndpointProcessor, EndpointService, EndpointStep, EndpointWorld,
};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// How the two endpoints of a pair get their connections; each stack implements it.
pub(crate) trait Connect {
    /// An open connection.
    type Service: EndpointService;

    /// `ConnectRequest`.
    async fn connect(self: &Rc<Self>, context: &Rc<SimEndpointContext>) -> Result<Self::Service>;
    /// `AwaitConnectIndication`; `first` is true for the first connection that the endpoint accepts.
    async fn accept(
        self: &Rc<Self>,
        context: &Rc<SimEndpointContext>,
        first: bool,
    ) -> Result<Self::Service>;
    /// How often the stack did what it counts at that side, over all connections, by name (`stackline_core::connection_count`).
    fn counts(&self, _side: PairSide) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
    /// Called when the endpoint of that side is done: nobody listens there any more.
    fn close(&self, _side: PairSide) {}
}

/// A task in which an endpoint of a pair walks its program. Its job keeps what it observes.
pub(crate) fn spawn_endpoint<P: Connect + 'static>(
    pair: Rc<P>,
    context: Rc<SimEndpointContext>,
    replica: u32,
) -> Task {
    let (job, shared) = (Rc::clone(&context.job), Rc::clone(&context.shared));
    let world = Virtual {
        side: job.task.side,
        pair,
        context,
        accepted: false,
    };
    Box::pin(async move {
        let endpoint = Endpoint::new(Arc::clone(&job.task), world);
        job.keep(endpoint.run(replica).await, &shared)
    })
}

/// The world of one endpoint of a pair.
struct Virtual<P: Connect> {
    pair: Rc<P>,
    context: Rc<SimEndpointContext>,
    side: PairSide,
    /// Whether the endpoint has accepted a connection before.
    accepted: bool,
}

impl<P: Connect> Drop for Virtual<P> {
    fn drop(&mut self) {
        self.pair.close(self.side);
    }
}

impl<P: Connect> EndpointWorld for Virtual<P> {
    type Service = Working<P::Service>;

    fn now(&self) -> Instant {
        self.context.now()
    }

    fn between(&self, from: Instant, to: Instant) -> Duration {
        self.context.between(from, to)
    }

    fn reading(&self, at: Instant) -> Instant {
        self.context.clock.reading(at)
    }

    /// Thousands of endpoints are made at once, so no memory is allocated before it is needed.
    fn times(&self, _expected: u64) -> DurationSamples {
        DurationSamples::new(0)
    }

    async fn connect(&mut self) -> Result<Self::Service> {
        Ok(Working::new(
            self.pair.connect(&self.context).await?,
            &self.context,
        ))
    }

    async fn accept(&mut self) -> Result<Self::Service> {
        let first = !std::mem::replace(&mut self.accepted, true);
        Ok(Working::new(
            self.pair.accept(&self.context, first).await?,
            &self.context,
        ))
    }

    async fn sleep_until(&mut self, moment: Instant) -> Result<bool> {
        self.context.sleep(moment).await
    }

    async fn barrier(&mut self) -> Result<()> {
        let job = &self.context.job;
        job.waiting.set(job.waiting.get() + 1);
        self.context.shared.signal_news();
        self.context
            .until("the other pairs to connect", || {
                job.open.get().then_some(())
            })
            .await?;
        if job.flags.ended() {
            return Err(Error::interrupted());
        }
        if self.context.begins_after > Duration::ZERO {
            self.context
                .sleep(self.context.now() + self.context.begins_after)
                .await?;
        }
        Ok(())
    }

    async fn read_file(&mut self, _bytes: u64) -> Result<()> {
        Err(Error::input("files are not simulated"))
    }

    async fn write_file(&mut self, _bytes: u64) -> Result<()> {
        Err(Error::input("files are not simulated"))
    }

    fn limit_reached(&self) -> bool {
        self.context.job.flags.limit()
    }

    fn start_time_limit(&self) {
        self.context.job.arm(&self.context.shared);
    }

    fn processor(&self, _: EndpointStep) -> Option<EndpointProcessor> {
        None
    }

    fn emit(&self, step: EndpointStep) {
        self.context.trace(|line, at| line.step(at, step));
    }

    fn counts(&self) -> BTreeMap<String, u64> {
        self.pair.counts(self.side)
    }

    fn vanished(&self, when: &str) -> Error {
        connection_vanished(when)
    }
}
