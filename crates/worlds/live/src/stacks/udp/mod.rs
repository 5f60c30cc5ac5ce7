//! `udp`: one datagram per data unit, sent and received one at a time, many per system call (`batch`), or segmented and coalesced by the
//! kernel (`gso`).
//!
//! The first 8 bytes of a data unit hold its number (fewer if a call's unit is shorter). Control datagrams hold the token, which no number
//! can look like. Control datagrams are repeated until they are answered; data units never are: lost ones are counted.

mod datagrams;

use super::ip;
use super::ip_options::{self, IP_OPTIONS};
use super::stream::Receive;
use crate::buffers::LiveThreadBuffers;
use crate::error::{self as fault, Error as Fault, Result};
use crate::stacks::contract::{
    Connector, LiveConnectParameters, LiveConnection, LiveListener, LiveStack,
};
use datagrams::{LiveUdpConversation, SEGMENTS};
use socket2::{Domain, Socket, Type};
use stackline_core::catalogue::{
    ClosedForm, IP_FAMILY, OptionKind, OptionTable, PacketContent, ServiceMapping, StackFacts,
    StackTable, least_mtu_of_family,
};
use stackline_core::plan::Stack;
use stackline_os::datagram_batch::LARGEST_DATAGRAM;
use stackline_os::socket_option::set_option;
use stackline_os::stream_socket::{self as socket, RecvFlags};
use stackline_proto::datagram::control::{CONTROL, DatagramControl, read_control};
use stackline_proto::datagram::{DatagramToken, NUMBER, TIMEOUT, call_timeout};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Receive buffer, bytes, if the kernel coalesces datagrams: hosts usually give about three times the 64 KiB of one read, which would
/// overflow whenever the receiver is delayed for a moment.
const JOINED_BUFFER: u64 = 4 << 20;

const TABLE: StackTable = StackTable {
    name: "udp",
    summary: "UDP datagrams: unordered, unacknowledged, counted",
    largest_unit: LARGEST_DATAGRAM as u64,
    least_bulk_unit: NUMBER as u64,
    reliable: false,
    files: false,
    options: &OPTIONS,
    mapping: ServiceMapping(
        "\
ConnectRequest -> socket, connect, control HELLO until answered
AwaitConnectIndication -> recv of a HELLO with the token, connect to its sender, answer
DataRequest -> send; batch: sendmmsg; gso: sendmsg with UDP_SEGMENT
AwaitDataIndication -> recv; batch: recvmmsg; gso: recvmsg with UDP_GRO
RPCCall -> send, recv; an answer to an earlier call is dropped; no answer within `timeout` counts as a loss
RPCAwaitCallInd -> recv
RPCReturn -> send, with the number of the request
StartBulkGet, StartBulkPut -> control START until answered (or until data arrives)
AwaitStartBulkGet, AwaitStartBulkPut -> recv of START, answer
StopBulkGet, AwaitStopBulkPut -> recv of END with the number of units sent, answer
AwaitStopBulkGet, StopBulkPut -> control END until answered
end of stream (time limit) -> control END until answered
DisconnectRequest -> control BYE until answered
AwaitDisconnectIndication -> recv of BYE, answer",
    ),
    facts: StackFacts {
        packets: PacketContent::Datagrams,
        form: ClosedForm::Udp,
        ..StackTable::RELIABLE.facts
    },
    least_mtu: least_mtu_of_family,
    ..StackTable::RELIABLE
};

/// The options of UDP.
const OPTIONS: [OptionTable; 13] = StackTable::joined(&UDP_OPTIONS, &IP_OPTIONS);

const UDP_OPTIONS: [OptionTable; 8] = [
    OptionTable::new(
        "batch",
        OptionKind::Number(1, 1024),
        "1: send and recv",
        "datagrams per call: sendmmsg and recvmmsg",
    ),
    OptionTable::new(
        "gso",
        OptionKind::Flag,
        "off",
        "UDP_SEGMENT and UDP_GRO: the kernel segments and coalesces datagrams; where it cannot, sendmmsg is used and this is reported",
    ),
    OptionTable::new(
        "receive",
        OptionKind::Word(&["block", "spin"]),
        "block",
        "block: sleep until data arrives; spin: poll continuously",
    ),
    OptionTable::new(
        "send_buffer",
        OptionKind::BUFFER,
        "the host's default",
        "SO_SNDBUF in bytes (the kernel doubles it)",
    ),
    OptionTable::new(
        "receive_buffer",
        OptionKind::BUFFER,
        "the host's default; 4 MiB with gso",
        "SO_RCVBUF in bytes (the kernel doubles it; may exceed rmem_max where permitted)",
    ),
    TIMEOUT,
    OptionTable::new(
        "port",
        OptionKind::PORT,
        "any free port",
        "first port of the responders; replicas use consecutive ports",
    ),
    IP_FAMILY,
];

/// The stack `udp`.
pub(super) struct Udp;

impl LiveStack for Udp {
    fn table(&self) -> &'static StackTable {
        &TABLE
    }

    fn listen(&self, parameters: &LiveConnectParameters) -> Result<Box<dyn LiveListener>> {
        let socket = ip::bound_socket(parameters, Type::DGRAM, None)?;
        let wire = LiveUdpSocket::new(socket, parameters)?;
        Ok(Box::new(UdpListener {
            wire,
            parameters: parameters.clone(),
            connected: false,
        }))
    }

    fn connector(
        &self,
        parameters: &LiveConnectParameters,
        address: &str,
    ) -> Result<Box<dyn Connector>> {
        let target = ip::resolve(address, &parameters.stack)?;
        let domain = target.as_socket().map_or(Domain::IPV4, Domain::for_address);
        let socket = Socket::new(domain, Type::DGRAM, None)
            .map_err(|e| ip::socket_unavailable("udp", &e))?;
        if let Some(peer) = target.as_socket() {
            ip_options::bind_initiator(&socket, parameters, peer.ip())?;
        }
        socket
            .connect(&target)
            .map_err(|e| ip::unreachable(address, &e))?;
        let wire = LiveUdpSocket::new(socket, parameters)?;
        Ok(Box::new(UdpConnector {
            wire,
            parameters: parameters.clone(),
            shown: address.to_string(),
        }))
    }
}

/// The socket and the options that the kernel granted; all connections of a pair share one socket.
#[derive(Clone)]
struct LiveUdpSocket {
    socket: Arc<Socket>,
    receive: Receive,
    /// Most datagrams per system call; 1 sends and receives them one by one.
    batch: usize,
    /// Whether the kernel segments what is sent (`UDP_SEGMENT`).
    gso: bool,
    /// Whether the kernel coalesces what is received (`UDP_GRO`).
    gro: bool,
    /// How long a call waits for its response before it counts as lost.
    timeout: stackline_core::time::Duration,
    /// Remarks for the run's record, such as refused options.
    notes: Vec<String>,
}

impl LiveUdpSocket {
    fn new(socket: Socket, parameters: &LiveConnectParameters) -> Result<Self> {
        let stack = &parameters.stack;
        buffers(&socket, stack)?;
        ip_options::mark(&socket, stack)?;
        let mut notes = Vec::new();
        let asked = stack.flag("gso");
        let gso = asked && set_option(socket.as_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok();
        let gro = asked && set_option(socket.as_fd(), libc::SOL_UDP, libc::UDP_GRO, 1).is_ok();
        if asked && !gso {
            notes.push("gso was refused: sendmmsg is used instead".to_string());
        }
        if asked && !gro {
            notes.push("gro was refused: recvmmsg is used instead".to_string());
        }
        let written = stack.number("batch").unwrap_or(1) as usize;
        let batch = match (asked, gso && gro) {
            (true, true) => 1,
            (true, false) => written.max(SEGMENTS),
            (false, _) => written,
        };
        let timeout = call_timeout(stack);
        Ok(Self {
            socket: Arc::new(socket),
            receive: Receive::new(stack),
            batch,
            gso,
            gro,
            timeout,
            notes,
        })
    }
}

impl LiveUdpSocket {
    const fn receive_flags(&self) -> RecvFlags {
        if matches!(self.receive, Receive::Spin) {
            RecvFlags::DONTWAIT
        } else {
            RecvFlags::empty()
        }
    }
}

/// Sets the sizes of the socket's buffers.
fn buffers(socket: &Socket, stack: &Stack) -> Result<()> {
    if let Some(bytes) = stack.number("send_buffer") {
        socket.set_send_buffer_size(bytes as usize).map_err(|e| {
            Fault::environment(format!("the option send_buffer of udp was refused: {e}"))
        })?;
    }
    if let Some(bytes) = stack
        .number("receive_buffer")
        .or(stack.flag("gso").then_some(JOINED_BUFFER))
    {
        let wanted = i32::try_from(bytes).unwrap_or(i32::MAX);
        // SO_RCVBUFFORCE goes beyond rmem_max but needs a privilege; the result reports the size in force.
        if set_option(
            socket.as_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVBUFFORCE,
            wanted,
        )
        .is_err()
        {
            socket.set_recv_buffer_size(bytes as usize).map_err(|e| {
                Fault::environment(format!("the option receive_buffer of udp was refused: {e}"))
            })?;
        }
    }
    Ok(())
}

struct UdpListener {
    wire: LiveUdpSocket,
    parameters: LiveConnectParameters,
    connected: bool,
}

impl LiveListener for UdpListener {
    fn address(&self) -> String {
        ip::bound_port(&self.wire.socket)
    }

    fn accept(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let mut connection = LiveUdpConversation::new(&self.wire, &self.parameters.token);
        if !self.connected {
            let peer = first_hello(&self.wire.socket, &self.parameters.token, buffers)?;
            // From here on the kernel drops datagrams of other senders.
            self.wire
                .socket
                .connect(&peer)
                .map_err(|e| fault::io_error("connect", &e))?;
            self.connected = true;
            drop_waiting(&self.wire.socket);
            connection.greet()?;
        }
        connection.await_hello(buffers)?;
        Ok(Box::new(connection))
    }
}

/// Waits for a HELLO with the token and returns its sender; everything else that arrives at the open port is dropped.
fn first_hello(
    socket: &Socket,
    token: &DatagramToken,
    buffers: &LiveThreadBuffers,
) -> Result<socket2::SockAddr> {
    let mut bytes = [0_u8; CONTROL + 1];
    loop {
        // The datagram is peeked at for its sender's address, then received.
        let from = match socket.peek_sender() {
            Ok(from) => from,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                buffers.flags.interrupted()?;
                continue;
            }
            Err(error) => return Err(fault::io_error("recvfrom", &error)),
        };
        let Ok(length) = socket::receive(socket.as_fd(), &mut bytes, RecvFlags::DONTWAIT) else {
            continue;
        };
        if read_control(&bytes[..length], token)
            .is_some_and(|(kind, _)| kind == DatagramControl::Hello as u8)
        {
            return Ok(from);
        }
    }
}

/// Drops the datagrams that arrived before the socket was connected, which may be other senders'. The peer has sent only HELLO so far.
fn drop_waiting(socket: &Socket) {
    let mut byte = [0_u8; 1];
    while socket::receive(socket.as_fd(), &mut byte, RecvFlags::DONTWAIT).is_ok() {}
}

struct UdpConnector {
    wire: LiveUdpSocket,
    parameters: LiveConnectParameters,
    shown: String,
}

impl Connector for UdpConnector {
    fn connect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let mut connection = LiveUdpConversation::new(&self.wire, &self.parameters.token);
        connection
            .say_hello(buffers)
            .map_err(|fault| match fault.blame {
                fault::Blame::Interrupted => fault,
                _ => ip::unreachable(&self.shown, &io::ErrorKind::TimedOut.into()),
            })?;
        Ok(Box::new(connection))
    }
}
