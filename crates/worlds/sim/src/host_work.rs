//! Wraps a stack's connection so that its operations also take time of the host's processor: before data is handed over
//! and after it has arrived. Where programs take no time, calls go straight to the stack.

use crate::context::SimEndpointContext;
use crate::error::Result;
use crate::program_costs::HostWorkCosts;
use stackline_core::network::WorkKind;
use stackline_core::run_record::TransportRecord;
use stackline_core::time::{Duration, Instant};
use stackline_endpoint::{BulkDirection, ConnectionFacts, EndpointService, SequenceProgress};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A stack's connection, and the host's costs where it has any.
pub(crate) struct Working<S> {
    service: S,
    context: Rc<SimEndpointContext>,
    costs: Option<HostWorkCosts>,
}

impl<S> Working<S> {
    pub(crate) fn new(service: S, context: &Rc<SimEndpointContext>) -> Self {
        Self {
            service,
            context: Rc::clone(context),
            costs: context.costs.clone(),
        }
    }

    /// The program computes, then hands over what it has computed.
    async fn hand(&self, of: impl FnOnce(&HostWorkCosts) -> Duration) -> Result<()> {
        if let Some(costs) = &self.costs {
            self.context.work(WorkKind::Operations, of(costs)).await?;
            self.context
                .work(WorkKind::Messages, costs.message())
                .await?;
        }
        Ok(())
    }

    /// The program sees what has come, takes it, and computes.
    async fn take(&self, of: impl FnOnce(&HostWorkCosts) -> Duration) -> Result<()> {
        if let Some(costs) = &self.costs {
            let seen = costs.seen(self.context.now());
            if seen > self.context.now() {
                self.context.sleep(seen).await?;
            }
            self.context
                .work(WorkKind::Messages, costs.message())
                .await?;
            self.context.work(WorkKind::Operations, of(costs)).await?;
        }
        Ok(())
    }
}

impl<S: EndpointService> EndpointService for Working<S> {
    async fn send(&mut self, bytes: u64, times: u64) -> Result<u64> {
        if self.costs.is_none() {
            return self.service.send(bytes, times).await;
        }
        for sent in 0..times {
            self.hand(|costs| costs.operation(bytes)).await?;
            if self.service.send(bytes, 1).await? == 0 {
                return Ok(sent);
            }
        }
        Ok(times)
    }

    async fn receive(&mut self, bytes: u64, times: u64) -> Result<u64> {
        if self.costs.is_none() {
            return self.service.receive(bytes, times).await;
        }
        for received in 0..times {
            if self.service.receive(bytes, 1).await? == 0 {
                return Ok(received);
            }
            self.take(|costs| costs.operation(bytes)).await?;
        }
        Ok(times)
    }

    async fn call(&mut self, request: u64, response: u64, since: Instant) -> Result<bool> {
        self.hand(|costs| costs.operation(request)).await?;
        let came = self.service.call(request, response, since).await?;
        if came {
            self.take(|costs| costs.bytes(response)).await?;
        }
        Ok(came)
    }

    async fn await_call(&mut self, bytes: u64) -> Result<bool> {
        let came = self.service.await_call(bytes).await?;
        if came {
            self.take(|costs| costs.operation(bytes)).await?;
        }
        Ok(came)
    }

    async fn reply(&mut self, bytes: u64) -> Result<()> {
        self.hand(|costs| costs.bytes(bytes)).await?;
        self.service.reply(bytes).await
    }

    async fn start_bulk(&mut self, direction: BulkDirection) -> Result<()> {
        self.service.start_bulk(direction).await
    }

    async fn await_start_bulk(&mut self, direction: BulkDirection) -> Result<bool> {
        self.service.await_start_bulk(direction).await
    }

    async fn stop_bulk(&mut self, direction: BulkDirection) -> Result<()> {
        self.service.stop_bulk(direction).await
    }

    async fn await_stop_bulk(&mut self, direction: BulkDirection) -> Result<()> {
        self.service.await_stop_bulk(direction).await
    }

    async fn end_stream(&mut self) -> Result<()> {
        self.service.end_stream().await
    }

    async fn disconnect(self) -> Result<()> {
        self.service.disconnect().await
    }

    async fn await_disconnect(&mut self) -> Result<()> {
        self.service.await_disconnect().await
    }

    async fn settle(&mut self) -> Result<()> {
        self.service.settle().await
    }

    fn confirms(&self) -> bool {
        self.service.confirms()
    }

    fn is_closed(&self) -> bool {
        self.service.is_closed()
    }

    fn transport(&self) -> Option<TransportRecord> {
        self.service.transport()
    }

    fn settings(&self) -> BTreeMap<String, String> {
        self.service.settings()
    }

    fn progress(&self) -> Option<SequenceProgress> {
        self.service.progress()
    }

    fn facts(&self) -> ConnectionFacts {
        self.service.facts()
    }
}
