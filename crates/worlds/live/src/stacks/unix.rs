//! `unix`: a stream socket between two processes of one host.

use super::authentication::{Newcomers, TokenBytes, wait_for_a_connection};
use super::ip;
use super::stream::{Flavour, LiveStream, Receive, THREADS};
use crate::buffers::LiveThreadBuffers;
use crate::cancel;
use crate::error::{self, Error, Result};
use crate::readiness;
use crate::stacks::contract::{
    Connector, LiveConnectParameters, LiveConnection, LiveListener, LiveStack,
};
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use socket2::{Domain, SockAddr, Socket, Type};
use stackline_core::catalogue::{OptionKind, OptionTable, ServiceMapping, StackTable};
use stackline_core::run_record::TransportRecord;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

const TABLE: StackTable = StackTable {
    name: "unix",
    summary: "a Unix stream socket between two processes on one host",
    one_host: true,
    options: &[
        OptionTable::new(
            "send_buffer",
            OptionKind::BUFFER,
            "the kernel's default",
            "SO_SNDBUF in bytes (the kernel doubles it)",
        ),
        OptionTable::new(
            "receive",
            OptionKind::Word(&["block", "spin"]),
            "block",
            "block: sleep until data arrives; spin: poll continuously",
        ),
        THREADS,
    ],
    mapping: ServiceMapping(
"\
ConnectRequest -> socket, connect, send a 16-byte token (in procedures without data: on the first connection only)
AwaitConnectIndication -> accept4, recv the 16-byte token (likewise; SO_PEERCRED on all); connections without it are closed
DataRequest -> send of the whole unit (FILE: sendfile)
AwaitDataIndication -> recv of up to max(unit, 128 KiB) until the unit is complete; FILE: recv, pwrite
RPCCall -> send of the request, recv until the response is complete
RPCAwaitCallInd -> recv until the request is complete
RPCReturn -> send of the response
StartBulkGet, StartBulkPut -> send of 1 byte
AwaitStartBulkGet, AwaitStartBulkPut -> recv of 1 byte
StopBulkGet, AwaitStopBulkGet -> none: the last unit has arrived
StopBulkPut -> recv of 1 byte that confirms arrival
AwaitStopBulkPut -> send of that byte
end of stream (time limit) -> shutdown(SHUT_WR); the peer's recv returns 0
DisconnectRequest -> close
AwaitDisconnectIndication -> recv until it returns 0, close",
),
    exclusive: &[&["threads", "receive"]],
    ..StackTable::RELIABLE
};

/// The stack `unix`.
pub(super) struct Unix;

impl LiveStack for Unix {
    fn table(&self) -> &'static StackTable {
        &TABLE
    }

    fn listen(&self, parameters: &LiveConnectParameters) -> Result<Box<dyn LiveListener>> {
        // A name in the abstract namespace (unix(7)): no file is left behind.
        let random: String = parameters
            .token
            .iter()
            .take(8)
            .map(|b| format!("{b:02x}"))
            .collect();
        let name = format!("stackline-{random}-{}", parameters.replica);
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)
            .map_err(|e| ip::socket_unavailable("unix", &e))?;
        socket
            .bind(&abstract_address(&name)?)
            .map_err(|e| Error::environment(format!("cannot listen on @{name}: {e}")))?;
        ip::listen(&socket)?;
        Ok(Box::new(UnixListener {
            socket,
            name,
            parameters: parameters.clone(),
            introduced: false,
            peer: None,
            newcomers: Newcomers::default(),
        }))
    }

    fn connector(
        &self,
        parameters: &LiveConnectParameters,
        address: &str,
    ) -> Result<Box<dyn Connector>> {
        let target = abstract_address(address)?;
        Ok(Box::new(UnixConnector {
            address: target,
            shown: address.to_string(),
            parameters: parameters.clone(),
            introduced: false,
        }))
    }
}

/// The address of a name in the abstract namespace, which begins with a zero byte.
fn abstract_address(name: &str) -> Result<SockAddr> {
    SockAddr::unix(format!("\0{name}")).map_err(|e| {
        Error::environment(format!(
            "the name @{name} cannot be used as a socket address: {e}"
        ))
    })
}

struct UnixListener {
    socket: Socket,
    name: String,
    parameters: LiveConnectParameters,
    /// Whether a connection has shown the token.
    introduced: bool,
    /// ID of the process that has shown the token.
    peer: Option<i32>,
    newcomers: Newcomers,
}

impl LiveListener for UnixListener {
    fn address(&self) -> String {
        self.name.clone()
    }

    fn accept(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let socket = if self.introduced && !self.parameters.carries_data {
            self.next(buffers)?
        } else {
            self.newcomers
                .accept(
                    &self.socket,
                    &self.parameters.token,
                    || TokenBytes::behind(0),
                    buffers,
                )?
                .socket
        };
        if !self.introduced && !self.parameters.carries_data {
            self.peer = process(&socket);
        }
        self.introduced = true;
        Ok(Box::new(stream(socket, &self.parameters)?))
    }
}

/// ID of the process that opened a connection (SO_PEERCRED).
fn process(socket: &Socket) -> Option<i32> {
    getsockopt(&socket.as_fd(), PeerCredentials)
        .ok()
        .map(|peer| peer.pid())
}

impl UnixListener {
    /// The next connection in a procedure without data, after the first: it sends no token, but has to come from the same process.
    fn next(&mut self, buffers: &LiveThreadBuffers) -> Result<Socket> {
        loop {
            match self
                .newcomers
                .next()
                .map_or_else(|| self.socket.accept(), Ok)
            {
                // Connections of other processes are closed.
                Ok((socket, _)) if process(&socket) == self.peer => return Ok(socket),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait_for_a_connection(None, buffers)?
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    buffers.flags.interrupted()?
                }
                Err(error) => return Err(error::io_error("accept", &error)),
            }
        }
    }
}

/// Pause before connecting is tried again after the listener's queue was full.
const FULL: Duration = Duration::from_millis(1);

struct UnixConnector {
    address: SockAddr,
    shown: String,
    parameters: LiveConnectParameters,
    /// Whether an earlier connection has sent the token.
    introduced: bool,
}

impl Connector for UnixConnector {
    fn connect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)
            .map_err(|e| ip::socket_unavailable("unix", &e))?;
        if readiness::is_here() {
            ip::without_blocking(&socket)?;
        }
        while let Err(error) = socket.connect(&self.address) {
            match error.kind() {
                // The listener's queue is full; the kernel does not report when it has room.
                io::ErrorKind::WouldBlock => {
                    cancel::pause(FULL);
                    buffers.flags.interrupted()?;
                }
                io::ErrorKind::Interrupted => buffers.flags.interrupted()?,
                _ => return Err(ip::unreachable(&self.shown, &error)),
            }
        }
        let mut stream = stream(socket, &self.parameters)?;
        let first = !std::mem::replace(&mut self.introduced, true);
        if first || self.parameters.carries_data {
            stream = stream.introducing(self.parameters.token);
        }
        if !self.parameters.carries_data {
            stream.introduce(buffers)?;
        }
        Ok(Box::new(stream))
    }
}

fn stream(socket: Socket, parameters: &LiveConnectParameters) -> Result<LiveStream<UnixFlavour>> {
    if let Some(bytes) = parameters.stack.number("send_buffer") {
        socket.set_send_buffer_size(bytes as usize).map_err(|e| {
            Error::environment(format!("the option send_buffer of unix was refused: {e}"))
        })?;
    }
    LiveStream::new(socket, UnixFlavour, Receive::new(&parameters.stack), false)
}

/// A stream over any connected socket, for the fuzz target.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn connection_over(socket: Socket) -> Result<impl LiveConnection> {
    LiveStream::new(socket, UnixFlavour, Receive::Block, false)
}

struct UnixFlavour;

impl Flavour for UnixFlavour {
    fn transport(&self, _: &Socket) -> Option<TransportRecord> {
        None
    }

    fn settings(&self, _: &Socket) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    fn has_zerocopy(&self) -> bool {
        false
    }

    fn push(&self, _: &Socket) {}
}
