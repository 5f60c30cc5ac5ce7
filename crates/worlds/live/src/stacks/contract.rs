//! The traits that every protocol stack implements: how an endpoint listens, connects, and carries out the operations of the
//! specification language (`DataRequest`, `RPCCall` and so on).
//!
//! An endpoint's thread calls a stack directly. Stackline puts nothing between an operation and its system call: no executor, queue,
//! allocation or copy.

use crate::buffers::LiveThreadBuffers;
use crate::error::{Error, Result};
pub use crate::foreign_call::ForeignCall;
use crate::stacks::connection_group::GroupMember;
use stackline_core::catalogue::StackTable;
use stackline_core::plan::Stack;
use stackline_core::run_record::{TransportRecord, UnitLosses};
use stackline_core::time::Instant;
use stackline_endpoint::{BulkDirection, ConnectionOpening};
use stackline_proto::datagram::DatagramToken;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// What an endpoint needs to open its end of a pair.
#[derive(Clone, Debug)]
pub struct LiveConnectParameters {
    /// The stack and its options as written.
    pub stack: Stack,
    /// Random bytes, the same for all endpoints of a part, by which a peer proves that it belongs to this run.
    pub token: DatagramToken,
    /// Whether connections carry data units: then each connection begins with the token, else only the first.
    pub carries_data: bool,
    /// Index of this pair in the part.
    pub replica: u32,
    /// The local address at which a responder listens.
    pub bind: IpAddr,
    /// Its place among the pairs that share a connection; `None` where each has its own.
    pub member: Option<GroupMember>,
    /// Where a plug-in's endpoint writes which function it is in.
    pub foreign: Arc<ForeignCall>,
}

impl LiveConnectParameters {
    /// How far the port of this pair is from the first of its part: pairs, or groups of them, use consecutive ones.
    pub(crate) fn port_offset(&self) -> u64 {
        let group = self.member.as_ref().map(GroupMember::group_number);
        u64::from(group.unwrap_or(self.replica))
    }
}

/// What of the user's own runs as a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnCode {
    /// What it is, as errors name it: `the plug-in ./x.so`.
    pub name: String,
    /// Whether it runs in the agent's own process, so that it can end or hold up the agent.
    pub in_agent: bool,
}

/// A protocol stack.
pub trait LiveStack: Sync {
    /// The stack's name, options and limits.
    fn table(&self) -> &'static StackTable;
    /// Whether this machine's kernel has what the stack needs.
    ///
    /// # Errors
    /// An [`Error`] that says what it lacks.
    fn probe(&self) -> Result<()> {
        Ok(())
    }
    /// The user's own code that it runs with these options; `None` for a stack of ours.
    fn own_code(&self, stack: &Stack) -> Option<OwnCode> {
        let _ = stack;
        None
    }
    /// The option with these options that names a file which the agent reads beside those of its directory; `None` if there is none.
    fn file_option(&self, stack: &Stack) -> Option<&'static str> {
        let _ = stack;
        None
    }
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
    /// Where it listens: a port number, or the name of a Unix socket.
    fn address(&self) -> String;
    /// `AwaitConnectIndication`.
    ///
    /// # Errors
    /// An [`Error`] when the system refuses or the job was ended. Connections without the token are closed and are not an error.
    fn accept(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>>;
    /// How often the stack did what it counts, over all connections so far, by name (`stackline_core::connection_count`).
    fn counts(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
}

/// The initiator before a connection.
pub trait Connector: Send {
    /// `ConnectRequest`.
    ///
    /// # Errors
    /// An [`Error`] when nobody answers or the peer refuses.
    fn connect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>>;
    /// How often the stack did what it counts, over all connections so far, by name (`stackline_core::connection_count`).
    fn counts(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
}

/// An open connection; every operation blocks until it is done (or spins, when the option says so).
pub trait LiveConnection: Send {
    /// `DataRequest`, `times` times, of `bytes` bytes each. Returns how many data units were sent: fewer if the limit flag was set in
    /// between.
    ///
    /// # Errors
    /// An [`Error`] when the peer is gone or the job was ended.
    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64>;
    /// `AwaitDataIndication`, `times` times, of `bytes` bytes each. Returns how many data units arrived: fewer if the peer ended its
    /// stream.
    ///
    /// # Errors
    /// As for `send`; also when the stream ends inside a data unit.
    fn receive(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers)
    -> Result<u64>;
    /// `RPCCall`, begun at `since`, with a request and a response of so many bytes. Returns true if the response came, false if the call
    /// counts as lost.
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
        // A call over a reliable stack succeeds or fails; only a stack that can lose calls needs `since`, for its timeout.
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
    /// Whether `send` returns only when the peer has received everything.
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
    /// `RPCReturn`, with a response of `bytes` bytes.
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
    /// What a bulk transfer needs before it starts, where the clock starts with it.
    ///
    /// # Errors
    /// As for `send`.
    fn prepare_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        let _ = (direction, buffers);
        Ok(())
    }
    /// What a protocol says of bulk transfers behind their end, when the clock has stopped.
    ///
    /// # Errors
    /// As for `send`.
    fn conclude_bulk(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let _ = buffers;
        Ok(())
    }
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
    /// The transport's present state (for TCP, the kernel's `TCP_INFO`), if it reports one.
    fn transport(&self) -> Option<TransportRecord> {
        None
    }
    /// What opening it took; `None` where the stack does not report it.
    fn opening(&self) -> Option<ConnectionOpening> {
        None
    }
    /// The settings that are in force, which may differ from those asked for, by option name.
    fn settings(&self) -> BTreeMap<String, String>;
    /// How many data units were lost, duplicated or reordered; `None` for a stack where that cannot happen.
    fn losses(&self) -> Option<UnitLosses> {
        None
    }
    /// One more than the highest number of a data unit that arrived, and how many different ones have; `None` for a stack that loses none.
    fn progress(&self) -> Option<(u64, u64)> {
        None
    }
    /// Bytes of data units that arrived; `None` if none can be lost, so that the endpoint's program knows the number itself.
    fn received_bytes(&self) -> Option<u64> {
        None
    }
    /// How many bytes of the two byte streams were sent and received, `(sent, taken)`: the places where the next data units begin.
    /// `None` for a stack without byte streams. Called only while a run is traced.
    fn places(&self) -> Option<(u64, u64)> {
        None
    }
    /// How many data units of this size leave together (in one system call) if so many are to be sent.
    fn together(&self, bytes: usize) -> u64 {
        let _ = bytes;
        1
    }
    /// The sequence number (from 0 on this connection) in the data unit or request received last, and how many low bits of it are known.
    /// Kept only while a run is traced.
    fn number(&self) -> Option<(u64, u32)> {
        None
    }
    /// How many data units or requests the peer says it has sent on this connection.
    fn peer_sent(&self) -> Option<u64> {
        None
    }
    /// The addresses of the two ends, the local one first.
    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        None
    }
    /// Remarks on this connection for the run's record.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The error when the peer closed or reset the connection at a wrong moment; `when` completes the sentence.
pub(crate) fn connection_vanished(when: &str) -> Error {
    Error::measurement(format!("the peer closed the connection {when}")).hint(
        "the process at the other end exited early; its own error message, if any, gives the cause",
    )
}
