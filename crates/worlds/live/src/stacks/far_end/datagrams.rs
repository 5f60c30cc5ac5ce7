//! Far ends in datagrams: a call is a datagram to a server and one back. What does not come back in time is lost, and counted.
//!
//! A protocol is a file beside this one: its table, and a [`DatagramProtocol`], which says what a request is and which answer is to which.

use super::datagram_socket::{FarEndDatagramSocket, never_answered};
use super::{FAMILY, TABLE, outgoing, unmapped};
use crate::buffers::LiveThreadBuffers;
use crate::clock;
use crate::error::{self, Blame, Error, Result};
use crate::stacks::contract::{
    Connector, LiveConnectParameters, LiveConnection, LiveListener, LiveStack,
};
use crate::stacks::ip;
use crate::stacks::ip_options::{self, IP_OPTIONS};
use crate::stacks::server_patience::{LATE, SLICE};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use socket2::{Domain, Protocol, Socket, Type};
use stackline_core::catalogue::{OptionTable, PacketContent, StackFacts, StackTable};
use stackline_core::far_end::FarEndAddress;
use stackline_core::plan::Stack;
use stackline_core::run_record::UnitLosses;
use stackline_core::time::Instant;
use stackline_core::units;
use stackline_endpoint::BulkDirection;
use stackline_proto::datagram::{TIMEOUT, call_timeout};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// The base of the tables of protocols in datagrams.
pub(super) const DATAGRAM_TABLE: StackTable = StackTable {
    reliable: false,
    options: &DATAGRAM_OPTIONS,
    facts: StackFacts {
        packets: PacketContent::Unknown,
        ..TABLE.facts
    },
    ..TABLE
};

/// The options of all of them.
pub(super) const DATAGRAM_OPTIONS: [OptionTable; 7] =
    StackTable::joined(&[TIMEOUT, FAMILY], &IP_OPTIONS);

/// The least and the longest `timeout`.
const TIMEOUTS: (Duration, Duration) = (Duration::from_micros(100), Duration::from_secs(86_400));
/// From so many calls on it is an error that none was answered.
const SILENT_CALLS: u64 = 3;

/// Whose answer a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DatagramAnswer {
    /// That to the present call.
    Present,
    /// That to the call so many before the present one.
    Earlier(u64),
    /// The server's, but an answer to none of its calls.
    Stray,
    /// Somebody else's, which the socket receives too.
    Foreign,
}

/// The client of a protocol on one socket.
pub(super) trait DatagramProtocol: Send {
    /// The socket for that server, not yet connected.
    fn socket(&mut self, server: SocketAddr) -> Result<Socket> {
        Socket::new(
            Domain::for_address(server),
            Type::DGRAM,
            Some(Protocol::UDP),
        )
        .map_err(|e| ip::socket_unavailable("udp", &e))
    }
    /// Writes the datagram of the next call, which carries `data`, into `datagram`, which is empty.
    fn request(&mut self, data: &[u8], datagram: &mut Vec<u8>) -> Result<()>;
    /// Whose answer a datagram is. An answer that says that the call failed is an error, as is what cannot be the protocol's.
    fn answer(&mut self, datagram: &[u8]) -> Result<DatagramAnswer>;
    /// Whether an error of ICMP, which quotes the beginning of a datagram, is of one that this client sent.
    fn has_sent(&self, quoted: &[u8]) -> bool {
        let _ = quoted;
        true
    }
    /// What is worth knowing of the answers, by name.
    fn settings(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }
    /// Remarks for the record.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// How the client of a protocol begins: from the server's address and the options.
type DatagramClient = fn(&FarEndAddress, &Stack) -> Result<Box<dyn DatagramProtocol>>;

/// A protocol of far ends in datagrams: its table, its port (0 if it has none), and how its client begins.
pub(crate) struct FarEndDatagramStack {
    pub(super) table: &'static StackTable,
    pub(super) port: u16,
    pub(super) client: DatagramClient,
}

impl LiveStack for FarEndDatagramStack {
    fn table(&self) -> &'static StackTable {
        self.table
    }

    fn listen(&self, _: &LiveConnectParameters) -> Result<Box<dyn LiveListener>> {
        Err(super::no_responder(self.table))
    }

    fn connector(
        &self,
        parameters: &LiveConnectParameters,
        address: &str,
    ) -> Result<Box<dyn Connector>> {
        let address = FarEndAddress::parse(address)?;
        if let (0, Some(port)) = (self.port, address.port) {
            let message = format!(
                "`{}` has no ports, but the address says {port}",
                self.table.name
            );
            return Err(Error::input(message).hint(format!("omit `:{port}`")));
        }
        // What is wrong with the address is reported before anything is measured.
        (self.client)(&address, &parameters.stack)?;
        Ok(Box::new(FarEndDatagramConnector {
            servers: super::socket::resolve(&address.socket(self.port), &parameters.stack)?,
            address,
            client: self.client,
            parameters: parameters.clone(),
        }))
    }
}

struct FarEndDatagramConnector {
    address: FarEndAddress,
    /// The addresses of the server: the first to which there is a way is kept.
    servers: Vec<SocketAddr>,
    client: DatagramClient,
    parameters: LiveConnectParameters,
}

impl Connector for FarEndDatagramConnector {
    fn connect(&mut self, _: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let stack = &self.parameters.stack;
        let timeout = Duration::from_nanos(call_timeout(stack).0);
        let timeout = timeout.clamp(TIMEOUTS.0, TIMEOUTS.1);
        let mut failed = None;
        for server in self.servers.clone() {
            let mut protocol = (self.client)(&self.address, stack)?;
            let socket = protocol.socket(server)?;
            ip_options::mark(&socket, stack)?;
            ip_options::bind_initiator(&socket, &self.parameters, server.ip())?;
            match FarEndDatagramSocket::connect(socket, server, timeout.min(SLICE)) {
                Ok(socket) => {
                    self.servers = vec![server];
                    return Ok(Box::new(FarEndDatagramConversation {
                        socket,
                        protocol,
                        request: Vec::new(),
                        timeout,
                        stack: stack.name.clone(),
                        calls: DatagramCalls::default(),
                        limit_seen: None,
                    }));
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        Err(failed.unwrap_or_else(|| Error::input("there is no server to connect to")))
    }
}

/// What became of the calls of a connection.
#[derive(Debug, Default)]
struct DatagramCalls {
    made: u64,
    answered: u64,
    lost: u64,
    /// Of the last 64 calls, the present one in the lowest bit: whether it was lost and no answer has come since.
    still_lost: u64,
    /// Answers that came after their calls had counted as lost.
    late: u64,
    duplicated: u64,
    stray: u64,
}

impl DatagramCalls {
    const fn begin(&mut self) {
        self.made += 1;
        self.still_lost <<= 1;
    }

    const fn lose(&mut self) {
        self.lost += 1;
        self.still_lost |= 1;
    }

    /// An answer to the call so many before the present one.
    fn answered_before(&mut self, ago: u64) {
        let bit = u32::try_from(ago)
            .ok()
            .and_then(|ago| 1_u64.checked_shl(ago));
        match bit {
            Some(bit) if self.still_lost & bit == 0 => self.duplicated += 1,
            Some(bit) => {
                self.late += 1;
                self.still_lost &= !bit;
            }
            // Too long ago to know: most such answers are of lost calls.
            None => self.late += 1,
        }
    }
}

/// A socket that is connected to a far end, and the calls over it.
struct FarEndDatagramConversation {
    socket: FarEndDatagramSocket,
    protocol: Box<dyn DatagramProtocol>,
    request: Vec<u8>,
    timeout: Duration,
    stack: String,
    calls: DatagramCalls,
    /// When the time limit was first seen to have passed.
    limit_seen: Option<Instant>,
}

impl FarEndDatagramConversation {
    /// Sends the request. False if it could not leave in time.
    fn send(&mut self, since: Instant, buffers: &LiveThreadBuffers) -> Result<bool> {
        let mut was_refused = false;
        loop {
            let Err(error) = self.socket.send(&self.request) else {
                return Ok(true);
            };
            match error.kind() {
                io::ErrorKind::Interrupted => {}
                // The device's queue is full.
                io::ErrorKind::WouldBlock => std::thread::yield_now(),
                _ if error.raw_os_error() == Some(libc::ENOBUFS) => std::thread::yield_now(),
                // A report of another conversation's datagram fails one call.
                _ if was_refused => return Err(error::io_error("send", &error)),
                _ => {
                    self.explain("send", &error)?;
                    was_refused = true;
                }
            }
            buffers.flags.interrupted()?;
            if self.left(since, buffers).is_zero() {
                return Ok(false);
            }
        }
    }

    /// Waits for the answer. False if none came in time.
    fn await_answer(&mut self, since: Instant, buffers: &LiveThreadBuffers) -> Result<bool> {
        let mut at_once = false;
        loop {
            match self.socket.receive(at_once) {
                Ok(datagram) => {
                    let bytes = datagram.len();
                    match self.protocol.answer(datagram)? {
                        DatagramAnswer::Present => {
                            self.socket.note_answer(bytes);
                            return Ok(true);
                        }
                        DatagramAnswer::Earlier(ago) => self.calls.answered_before(ago),
                        DatagramAnswer::Stray => self.calls.stray += 1,
                        DatagramAnswer::Foreign => {}
                    }
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => {
                        buffers.flags.interrupted()?;
                    }
                    _ => self.explain("recv", &error)?,
                },
            }
            // The first wait was the call's own; from here on it ends when the time is over.
            let left = self.left(since, buffers);
            if left.is_zero() {
                return Ok(false);
            }
            self.wait_readable(left.min(SLICE));
            at_once = true;
        }
    }

    /// How long a call that began at `since` may still wait.
    fn left(&mut self, since: Instant, buffers: &LiveThreadBuffers) -> Duration {
        let now = clock::now();
        let left = |most: Duration, since: Instant| {
            most.saturating_sub(Duration::from_nanos((now - since).0))
        };
        let of_call = left(self.timeout, since);
        if !buffers.flags.limit() {
            return of_call;
        }
        let limit = *self.limit_seen.get_or_insert(now);
        of_call.min(left(LATE, limit))
    }

    fn wait_readable(&self, time: Duration) {
        let mut watched = [PollFd::new(self.socket.fd(), PollFlags::POLLIN)];
        // The result is ignored: the caller tries to receive in any case.
        let _ = ppoll(&mut watched, Some(TimeSpec::from_duration(time)), None);
    }

    fn explain(&self, what: &str, error: &io::Error) -> Result<()> {
        // Where nothing was ever answered, it is the address or the network that is wrong.
        let blame = if self.calls.answered == 0 {
            Blame::Environment
        } else {
            Blame::Measurement
        };
        let is_ours = |quoted: &[u8]| self.protocol.has_sent(quoted);
        self.socket.explain(what, error, is_ours, blame)
    }
}

impl LiveConnection for FarEndDatagramConversation {
    fn send(&mut self, _: usize, _: u64, _: &mut LiveThreadBuffers) -> Result<u64> {
        Err(unmapped())
    }

    fn receive(&mut self, _: usize, _: u64, _: &mut LiveThreadBuffers) -> Result<u64> {
        Err(unmapped())
    }

    fn call(
        &mut self,
        request: usize,
        _: usize,
        since: Instant,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        self.calls.begin();
        self.request.clear();
        let data = outgoing(buffers, request)?;
        self.protocol.request(data, &mut self.request)?;
        let answered = self.send(since, buffers)? && self.await_answer(since, buffers)?;
        if answered {
            self.calls.answered += 1;
        } else {
            self.calls.lose();
        }
        Ok(answered)
    }

    fn closed(&self) -> bool {
        false
    }

    fn start_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Err(unmapped())
    }

    fn await_start_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<bool> {
        Err(unmapped())
    }

    fn stop_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Err(unmapped())
    }

    fn await_stop_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Err(unmapped())
    }

    fn end_stream(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        Ok(())
    }

    fn disconnect(self: Box<Self>, _: &mut LiveThreadBuffers) -> Result<()> {
        let calls = &self.calls;
        if calls.answered == 0 && calls.made >= SILENT_CALLS {
            let server = self.socket.shown();
            return Err(never_answered(
                &server,
                calls.made,
                self.timeout,
                &self.stack,
            ));
        }
        Ok(())
    }

    fn await_disconnect(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        Err(unmapped())
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = BTreeMap::new();
        self.socket.settings(&mut settings);
        settings.extend(self.protocol.settings());
        settings
    }

    fn losses(&self) -> Option<UnitLosses> {
        Some(UnitLosses {
            lost: self.calls.lost,
            duplicated: self.calls.duplicated,
            reordered: 0,
        })
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        self.socket.addresses()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.protocol.notes();
        if self.calls.late > 0 {
            notes.push(format!(
                "{} came after their calls had counted as lost (`timeout` is {})",
                units::counted(self.calls.late, "answer"),
                units::format_time(self.timeout.as_secs_f64()),
            ));
        }
        if self.calls.stray > 0 {
            notes.push(format!(
                "{} from the server answered none of the calls",
                units::counted(self.calls.stray, "datagram"),
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::DatagramCalls;

    #[test]
    fn an_answer_is_late_once_and_then_a_duplicate() {
        let mut calls = DatagramCalls::default();
        for lost in [true, false, true] {
            calls.begin();
            if lost {
                calls.lose();
            }
        }
        calls.begin();
        for ago in [3, 3, 2, 1, 64] {
            calls.answered_before(ago);
        }
        let counted = [calls.made, calls.lost, calls.late, calls.duplicated];
        assert_eq!(counted, [4, 2, 3, 2]);
    }
}
