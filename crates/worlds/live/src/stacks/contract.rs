//! What a stack is to an endpoint: how it listens, connects, and carries out the operations of the language.
//!
//! A stack is called straight from a thread. Nothing of ours stands between an operation and its system call: no executor,
//! queue, allocation or copy.

use crate::buffers::LiveThreadBuffers;
use crate::error::{Error, Result};
use stackline_core::catalogue::StackTable;
use stackline_core::plan::Stack;
use stackline_core::run_record::{TransportRecord, UnitLosses};
use stackline_core::time::Instant;
use stackline_endpoint::BulkDirection;
use stackline_proto::datagram::DatagramToken;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// What a side needs to know to open its end.
#[derive(Clone, Debug)]
pub struct LiveConnectParameters {
    /// The stack and its options as written.
    pub stack: Stack,
    /// Proof of belonging.
    pub token: DatagramToken,
    /// Whether connections carry data units: then each one begins with the token, else only the first.
    pub carries_data: bool,
    /// Which pair of the part this is.
    pub replica: u32,
    /// Where a responder listens.
    pub bind: IpAddr,
}

/// A protocol stack.
pub trait LiveStack: Sync {
    /// Its table.
    fn table(&self) -> &'static StackTable;
    /// Opens the responder's end.
    ///
    /// # Errors
    /// An [`Error`] when the system refuses.
    fn listen(&self, parameters: &LiveConnectParameters) -> Result<Box<dyn LiveListener>>;
    /// Prepares the initiator's end; `address` is the listener's.
    ///
    /// # Errors
    /// An [`Error`] when the address makes no sense.
    fn connector(
        &self,
        parameters: &LiveConnectParameters,
        address: &str,
    ) -> Result<Box<dyn Connector>>;
}

/// The responder before a connection.
pub trait LiveListener: Send {
    /// A port number, or the path of a socket.
    fn address(&self) -> String;
    /// `AwaitConnectIndication`.
    ///
    /// # Errors
    /// An [`Error`]; strangers are turned away and are no error.
    fn accept(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>>;
}

/// The initiator before a connection.
pub trait Connector: Send {
    /// `ConnectRequest`.
    ///
    /// # Errors
    /// An [`Error`] when nobody answers or the peer refuses.
    fn connect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>>;
}

/// An open connection; every operation blocks until it is done (or spins, when the option says so).
pub trait LiveConnection: Send {
    /// `DataRequest`, `times` times. Returns how many were sent: fewer when the limit flag came up in between.
    ///
    /// # Errors
    /// An [`Error`] when the peer is gone or the job was ended.
    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64>;
    /// `AwaitDataIndication`, `times` times. Returns how many arrived: fewer when the peer ended its stream.
    ///
    /// # Errors
    /// As for `send`; also when the stream ends inside a data unit.
    fn receive(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers)
    -> Result<u64>;
    /// `RPCCall`, begun at `since`: true when the response came, false when it counts as lost.
    ///
    /// # Errors
    /// As for `send`.
    fn call(
        &mut self,
        request: usize,
        response: usize,
        since: Instant,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        // A reliable stack answers or fails; only one that can lose a call has to know how long it waits.
        let _ = since;
        self.send(request, 1, buffers)?;
        if self.receive(response, 1, buffers)? == 1 {
            Ok(true)
        } else {
            Err(connection_vanished("before the response arrived"))
        }
    }
    /// Waits until nothing that connecting sent is in transit, so that the clock starts on a quiet connection.
    ///
    /// # Errors
    /// As for `send`.
    fn settle(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let _ = buffers;
        Ok(())
    }
    /// Whether `send` returns only when the peer has everything.
    fn confirms(&self) -> bool {
        false
    }
    /// Whether the peer has closed the connection, or its half of it.
    fn closed(&self) -> bool {
        true
    }
    /// `RPCAwaitCallInd`: false when the peer ended its stream.
    ///
    /// # Errors
    /// As for `receive`.
    fn await_call(&mut self, bytes: usize, buffers: &mut LiveThreadBuffers) -> Result<bool> {
        Ok(self.receive(bytes, 1, buffers)? == 1)
    }
    /// `RPCReturn`.
    ///
    /// # Errors
    /// As for `send`.
    fn reply(&mut self, bytes: usize, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.send(bytes, 1, buffers).map(drop)
    }
    /// `StartBulkGet` and `StartBulkPut`.
    ///
    /// # Errors
    /// As for `send`.
    fn start_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()>;
    /// `AwaitStartBulkGet` and `AwaitStartBulkPut`: false when the peer ended its stream.
    ///
    /// # Errors
    /// As for `receive`.
    fn await_start_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool>;
    /// `StopBulkGet` and `StopBulkPut`: returns when nothing is in transit.
    ///
    /// # Errors
    /// As for `receive`.
    fn stop_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()>;
    /// `AwaitStopBulkGet` and `AwaitStopBulkPut`.
    ///
    /// # Errors
    /// As for `send`.
    fn await_stop_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()>;
    /// Informs the peer that no more data units come, because the limit was reached.
    ///
    /// # Errors
    /// As for `send`.
    fn end_stream(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()>;
    /// `DisconnectRequest`.
    ///
    /// # Errors
    /// As for `send`.
    fn disconnect(self: Box<Self>, buffers: &mut LiveThreadBuffers) -> Result<()>;
    /// `AwaitDisconnectIndication`.
    ///
    /// # Errors
    /// As for `receive`; also when data comes instead.
    fn await_disconnect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()>;
    /// What the transport says of itself now.
    fn transport(&self) -> Option<TransportRecord> {
        None
    }
    /// What is really in force, by option name.
    fn settings(&self) -> BTreeMap<String, String>;
    /// What did not arrive in order, where that can happen.
    fn losses(&self) -> Option<UnitLosses> {
        None
    }
    /// Bytes of data units that really arrived, where the cursor cannot know because some were lost.
    fn received_bytes(&self) -> Option<u64> {
        None
    }
    /// Where in the streams the next data unit goes and comes from, `(sent, taken)`, in bytes; called only while a run is traced.
    fn places(&self) -> Option<(u64, u64)> {
        None
    }
    /// How many data units of that size leave together when there are as many.
    fn together(&self, bytes: usize) -> u64 {
        let _ = bytes;
        1
    }
    /// The number that the data unit or request taken last carried, from 0 on this connection, and how many bits of it are
    /// known; kept only while a run is traced.
    fn number(&self) -> Option<(u64, u32)> {
        None
    }
    /// How many data units or requests the peer says it has sent on this connection.
    fn peer_sent(&self) -> Option<u64> {
        None
    }
    /// The two ends' addresses, own first.
    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        None
    }
    /// Things worth a flag.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The peer closed or reset the connection at a wrong moment.
pub(crate) fn connection_vanished(when: &str) -> Error {
    Error::measurement(format!("the peer closed the connection {when}")).hint(
        "the process at the other end exited early; its own error message, if any, gives the cause",
    )
}
