//! The communication operations over a connection of `saw`, `window` or `blast`: sending data units waits until the peer has
//! acknowledged them; receiving takes bytes out of the stream.

use super::super::byte_stream::Got;
use super::{PacketPair, SimBlastEnd, SimBlastMachine, SimBlastStack};
use crate::context::SimEndpointContext;
use crate::error::{Error, Result, connection_vanished};
use crate::run_state::SimRunState;
use crate::run_trace::{Coming, SimDepartureKind};
use crate::stream_units::Units;
use stackline_core::run_record::TransportRecord;
use stackline_core::time::Instant;
use stackline_endpoint::{BulkDirection, EndpointService};
use stackline_proto::blast::BlastConnection;
use std::collections::BTreeMap;
use std::rc::Rc;

/// An open connection.
#[derive(Debug)]
pub(super) struct Transfers {
    pair: Rc<PacketPair<SimBlastStack>>,
    end: Rc<SimBlastEnd>,
    context: Rc<SimEndpointContext>,
}

impl Drop for Transfers {
    fn drop(&mut self) {
        self.end.abandon(&self.context.shared);
    }
}

impl Transfers {
    pub(super) fn new(
        pair: &Rc<PacketPair<SimBlastStack>>,
        end: Rc<SimBlastEnd>,
        context: &Rc<SimEndpointContext>,
    ) -> Self {
        context.trace(|line, _| line.carries_streams());
        Self {
            pair: Rc::clone(pair),
            end,
            context: Rc::clone(context),
        }
    }

    /// Opens a connection and waits until it is accepted.
    pub(super) async fn connect(
        pair: &Rc<PacketPair<SimBlastStack>>,
        context: &Rc<SimEndpointContext>,
    ) -> Result<Self> {
        let SimBlastStack { options, token, .. } = &pair.protocol;
        let connect =
            |number| BlastConnection::connect(context.now(), options, *token, [0; 16], number);
        let connection = Self::new(
            pair,
            pair.open(|number| SimBlastMachine::new(connect(number))),
            context,
        );
        connection.end.touch(&context.shared);
        match context
            .until("a reply to its connection request", || {
                connection.end.answered()
            })
            .await?
        {
            true => Ok(connection),
            false => Err(connection.lost("before it was open")),
        }
    }

    fn shared(&self) -> &SimRunState {
        &self.context.shared
    }

    /// The error of a connection that was lost; `when` says during what, where the machine gives no reason.
    fn lost(&self, when: &str) -> Error {
        self.end
            .broken()
            .unwrap_or_else(|| connection_vanished(when))
    }

    /// Waits until the peer has acknowledged everything.
    async fn acknowledged(&self) -> Result<()> {
        match self
            .context
            .until("its data to be acknowledged", || self.end.is_sent())
            .await?
        {
            true => Ok(()),
            false => Err(self.lost("while data was in flight")),
        }
    }

    /// Takes at most `most` bytes; 0 at the end of the stream.
    async fn take(&self, most: u64, what: &'static str) -> Result<u64> {
        let step = || match self.end.take(most, self.shared()) {
            Got::Nothing => None,
            got => Some(got),
        };
        match self.context.until(what, step).await? {
            Got::Bytes(n) => Ok(n as u64),
            Got::Broken => Err(self.lost("while data was in flight")),
            Got::Nothing | Got::End => Ok(0),
        }
    }

    /// Receives `times` data units of `bytes` bytes each; fewer at the end of the stream. Returns how many.
    async fn receive_units(&self, bytes: u64, times: u64, what: Coming) -> Result<u64> {
        let wanted = bytes.saturating_mul(times);
        let mut have = 0;
        let mut coming = Units::new(&self.context, bytes, times, what);
        while have < wanted {
            coming.are(have);
            let got = self.take(wanted - have, "data units").await?;
            if got == 0 {
                return if have.is_multiple_of(bytes) {
                    Ok(have / bytes)
                } else {
                    Err(connection_vanished("in the middle of a data unit"))
                };
            }
            have += got;
        }
        coming.are(have);
        Ok(times)
    }

    /// Hands over bytes without waiting for their acknowledgement.
    fn hand_over(&self, bytes: u64) {
        self.end.hand_over(bytes, self.shared());
        self.context.trace(|line, _| line.moved(bytes, 0));
    }

    /// Waits until the connection is closed.
    async fn closed(&self) -> Result<()> {
        self.context
            .until("the connection to be closed", || {
                self.end.is_closed().then_some(())
            })
            .await?;
        self.end.broken().map_or(Ok(()), Err)
    }
}

impl EndpointService for Transfers {
    async fn send(&mut self, bytes: u64, times: u64) -> Result<u64> {
        self.end.begin(bytes, times, self.shared());
        let mut left = 0;
        let sent = || {
            if times > 1 && self.context.job.flags.limit() {
                left += self.end.stop_short();
            }
            self.end.is_sent()
        };
        let done = self
            .context
            .until("its data to be acknowledged", sent)
            .await;
        let units = self
            .context
            .trace(|line, _| line.handed(&self.end.handed(), bytes))
            .unwrap_or_default();
        match done? {
            true => {
                self.context
                    .trace(|line, at| line.all_left(at, &units, bytes));
                Ok(times - left)
            }
            false => Err(self.lost("while data was in flight")),
        }
    }

    async fn receive(&mut self, bytes: u64, times: u64) -> Result<u64> {
        self.receive_units(bytes, times, Coming::Unit).await
    }

    async fn call(&mut self, request: u64, response: u64, _since: Instant) -> Result<bool> {
        self.context
            .trace(|line, at| line.leaves(at, SimDepartureKind::Call, request));
        self.hand_over(request);
        if self.receive_units(response, 1, Coming::Response).await? == 1 {
            Ok(true)
        } else {
            Err(connection_vanished("before the response arrived"))
        }
    }

    async fn await_call(&mut self, bytes: u64) -> Result<bool> {
        Ok(self.receive_units(bytes, 1, Coming::Call).await? == 1)
    }

    async fn reply(&mut self, bytes: u64) -> Result<()> {
        self.context
            .trace(|line, at| line.leaves(at, SimDepartureKind::Reply, bytes));
        self.hand_over(bytes);
        self.context
            .trace(|line, at| line.left(at, SimDepartureKind::Reply, bytes));
        Ok(())
    }

    async fn start_bulk(&mut self, direction: BulkDirection) -> Result<()> {
        if direction == BulkDirection::Get {
            self.hand_over(1);
        }
        Ok(())
    }

    async fn await_start_bulk(&mut self, direction: BulkDirection) -> Result<bool> {
        let what = "a bulk transfer to start";
        match direction {
            BulkDirection::Get => {
                let got = self.take(1, what).await?;
                self.context.trace(|line, _| line.moved(0, got));
                Ok(got == 1)
            }
            BulkDirection::Put => self.context.until(what, || self.end.has_come()).await,
        }
    }

    /// Sends nothing: the data was acknowledged.
    async fn stop_bulk(&mut self, _direction: BulkDirection) -> Result<()> {
        Ok(())
    }

    async fn await_stop_bulk(&mut self, _direction: BulkDirection) -> Result<()> {
        Ok(())
    }

    async fn end_stream(&mut self) -> Result<()> {
        self.end.finish(self.shared());
        if self.end.is_closed() {
            Ok(())
        } else {
            self.acknowledged().await
        }
    }

    async fn disconnect(self) -> Result<()> {
        self.end.close(self.shared());
        self.closed().await
    }

    async fn await_disconnect(&mut self) -> Result<()> {
        self.closed().await?;
        match self.end.has_come() {
            Some(true) => Err(Error::measurement(
                "the peer sent data after the last data unit",
            )),
            _ => Ok(()),
        }
    }

    fn confirms(&self) -> bool {
        true
    }

    fn transport(&self) -> Option<TransportRecord> {
        Some(self.end.transport(self.shared().now()))
    }

    fn settings(&self) -> BTreeMap<String, String> {
        self.pair.protocol.settings(&self.end.options())
    }
}
