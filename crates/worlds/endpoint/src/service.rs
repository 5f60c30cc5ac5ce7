//! What a stack gives an endpoint: the operations of the language on one open connection, and the connection's facts.
//!
//! The trait is the same in every world. In a world whose calls block, a future is ready at its first poll.

use crate::interval_series::SequenceProgress;
use stackline_core::error::Result;
use stackline_core::run_record::{TransportRecord, UnitLosses};
use stackline_core::time::{Duration, Instant};
use std::collections::BTreeMap;

/// The direction of bulk data, from the initiator's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkDirection {
    /// Responder to initiator.
    Get,
    /// Initiator to responder.
    Put,
}

/// What a connection reports of itself; unknown facts are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionFacts {
    /// Data units lost, duplicated or reordered, where the stack allows that.
    pub losses: Option<UnitLosses>,
    /// Bytes of data units that really arrived, where the cursor cannot know because some were lost.
    pub received_bytes: Option<u64>,
    /// Notes that are shown as flags of the result.
    pub notes: Vec<String>,
}

impl ConnectionFacts {
    /// Whether data units were lost.
    #[must_use]
    pub fn lost_any(&self) -> bool {
        self.losses.is_some_and(|losses| losses.lost > 0)
    }
}

/// What opening a connection took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionOpening {
    /// The transport's part, such as TCP's handshake.
    pub transport: Duration,
    /// The TLS handshake, divided by the round trips that it takes.
    pub tls_round_trip: Option<Duration>,
}

/// An open connection of one stack.
///
/// # Errors
/// Every operation fails when the peer is gone, breaks the protocol, or the endpoint was stopped at once.
#[expect(
    async_fn_in_trait,
    reason = "endpoints are generic over it; each world decides whether futures move between threads"
)]
pub trait EndpointService {
    /// `DataRequest`, `times` times. Returns how many units were sent: fewer when the limit was reached in between.
    async fn send(&mut self, bytes: u64, times: u64) -> Result<u64>;
    /// `AwaitDataIndication`, `times` times. Returns how many units arrived: fewer when the peer ended its stream.
    async fn receive(&mut self, bytes: u64, times: u64) -> Result<u64>;
    /// `RPCCall`, begun at `since`. Returns true when the response came, false when the call counts as lost.
    async fn call(&mut self, request: u64, response: u64, since: Instant) -> Result<bool>;
    /// `RPCAwaitCallInd`. Returns false when the peer ended its stream.
    async fn await_call(&mut self, bytes: u64) -> Result<bool>;
    /// `RPCReturn`.
    async fn reply(&mut self, bytes: u64) -> Result<()>;
    /// `StartBulkGet` and `StartBulkPut`.
    async fn start_bulk(&mut self, direction: BulkDirection) -> Result<()>;
    /// What a bulk transfer needs before it starts, where the clock starts with it: a protocol's own preparations are not part of it.
    async fn prepare_bulk(&mut self, direction: BulkDirection) -> Result<()> {
        let _ = direction;
        Ok(())
    }
    /// What a protocol says of bulk transfers behind their end, when the clock has stopped.
    async fn conclude_bulk(&mut self) -> Result<()> {
        Ok(())
    }
    /// `AwaitStartBulkGet` and `AwaitStartBulkPut`. Returns false when the peer ended its stream.
    async fn await_start_bulk(&mut self, direction: BulkDirection) -> Result<bool>;
    /// `StopBulkGet` and `StopBulkPut`: returns when nothing is in transit.
    async fn stop_bulk(&mut self, direction: BulkDirection) -> Result<()>;
    /// `AwaitStopBulkGet` and `AwaitStopBulkPut`.
    async fn await_stop_bulk(&mut self, direction: BulkDirection) -> Result<()>;
    /// Ends the own stream of data units, because the limit was reached.
    async fn end_stream(&mut self) -> Result<()>;
    /// `DisconnectRequest`.
    async fn disconnect(self) -> Result<()>;
    /// `AwaitDisconnectIndication`.
    async fn await_disconnect(&mut self) -> Result<()>;
    /// Waits until nothing that connecting sent is in transit, so that the clock starts on a quiet connection.
    async fn settle(&mut self) -> Result<()> {
        Ok(())
    }
    /// Whether `send` returns only when the peer has everything.
    fn confirms(&self) -> bool {
        false
    }
    /// Whether the peer has closed the connection, or its half of it, once its stream has ended.
    fn is_closed(&self) -> bool {
        true
    }
    /// The present statistics of the transport; `None` where the stack has none.
    fn transport(&self) -> Option<TransportRecord> {
        None
    }
    /// What opening it took; `None` where the stack does not report it.
    fn opening(&self) -> Option<ConnectionOpening> {
        None
    }
    /// How far a stream of numbered data units has come; `None` where none can be lost.
    fn progress(&self) -> Option<SequenceProgress> {
        None
    }
    /// The settings really in force, by option name.
    fn settings(&self) -> BTreeMap<String, String>;
    /// The facts about the connection until now.
    fn facts(&self) -> ConnectionFacts {
        ConnectionFacts::default()
    }
}
