//! `ftp`: file transfer as RFC 959 has it, with EPSV and EPRT of RFC 2428: a control connection for each pair, and a further connection for
//! each file. SPIMS measured it beside TCP and FTAM. Both ends are of stackline; memory, or the job's files, stand for the file that is
//! stored and retrieved. The client of servers that others have written is `ftp_file`.
//!
//! The token of the run is the password of the login, in hexadecimal digits, so the wire format is as specified. A connection that does not
//! log in with it is closed before it can ask for anything else.

mod control;
mod data;
mod file;
mod initiator;
mod login;
mod mode;
mod responder;

use super::authentication::Newcomers;
use super::layered::{LAYERED_TABLE, TCP_OPTIONS};
use super::tcp::{TcpConnector, TcpListener};
use crate::buffers::LiveThreadBuffers;
use crate::error::{self, Result};
use crate::stacks::contract::{
    Connector, LiveConnectParameters, LiveConnection, LiveListener, LiveStack,
};
use crate::stacks::ip;
use control::FtpControl;
use initiator::FtpInitiator;
use login::FtpLogin;
use mode::FtpMode;
use responder::FtpResponder;
use stackline_core::catalogue::{
    OptionTable, PacketContent, ServiceMapping, StackFacts, StackTable,
};
use stackline_events::scope::{self, ConnectionStep};
use std::io;
use std::sync::Arc;
use std::time::Duration;

const OPTIONS: [OptionTable; 15] = StackTable::joined(&mode::OPTIONS, &TCP_OPTIONS);

static TABLE: StackTable = StackTable {
    name: "ftp",
    summary: "FTP (RFC 959, RFC 2428) on the kernel's TCP, a connection for each file; both ends are ours: `ftp_file` is the client of other servers",
    options: &OPTIONS,
    mapping: ServiceMapping(
        "\
ConnectRequest -> socket, connect; recv of 220; USER, 331; PASS with a 16-byte token in hexadecimal digits, 230; TYPE I, 200
AwaitConnectIndication -> accept4, send of 220; 331 to USER; connections whose PASS is not the token are closed; 230; 200 to TYPE I
StartBulkGet -> EPSV, 229, socket, connect (active: socket, listen, EPRT, 200); RETR, 150 (active: accept4)
StartBulkPut -> the same with STOR
AwaitStartBulkGet, AwaitStartBulkPut -> socket, listen, 229 to EPSV (active: 200 to EPRT); accept4 (active: socket, connect), 150 to RETR or STOR
DataRequest -> send of the whole unit on the file's connection (FILE: sendfile; outside a bulk transfer, the first begins as StartBulkPut does or \
awaits RETR)
AwaitDataIndication -> recv of up to max(unit, 128 KiB) there until the unit is complete (likewise; FILE: recv, pwrite)
StopBulkGet -> recv until it returns 0, shutdown(SHUT_WR) of the file's connection; recv of 226
StopBulkPut -> shutdown(SHUT_WR) of the file's connection; recv of 226
AwaitStopBulkGet -> shutdown(SHUT_WR) of the file's connection; send of 226
AwaitStopBulkPut -> recv until it returns 0, shutdown(SHUT_WR) of the file's connection; send of 226
end of stream (time limit) -> shutdown(SHUT_WR) of the file's connection
DisconnectRequest -> StopBulkGet or StopBulkPut if a file moves; QUIT, 221; close
AwaitDisconnectIndication -> the same of the other side; 221 to QUIT; recv until it returns 0, close",
    ),
    facts: StackFacts {
        // Files have connections of their own, which a capture does not tell from others.
        packets: PacketContent::Unknown,
        ..LAYERED_TABLE.facts
    },
    ..LAYERED_TABLE
};

/// How long the first connection of a pair may take at each step to open.
const PATIENCE: Duration = Duration::from_secs(30);

/// The stack `ftp`.
pub(super) struct FtpStack;

impl LiveStack for FtpStack {
    fn table(&self) -> &'static StackTable {
        &TABLE
    }

    fn listen(&self, parameters: &LiveConnectParameters) -> Result<Box<dyn LiveListener>> {
        Ok(Box::new(FtpListener {
            tcp: TcpListener::new(parameters, None)?,
            newcomers: Newcomers::default(),
            parameters: Arc::new(parameters.clone()),
            mode: FtpMode::new(&parameters.stack),
        }))
    }

    fn connector(
        &self,
        parameters: &LiveConnectParameters,
        address: &str,
    ) -> Result<Box<dyn Connector>> {
        let mut for_files = parameters.clone();
        // The control connection has this port.
        for_files.stack.options.remove("source_port");
        Ok(Box::new(FtpConnector {
            tcp: TcpConnector::new(parameters, address, None)?,
            parameters: Arc::new(for_files),
            mode: FtpMode::new(&parameters.stack),
            shown: address.to_string(),
            known: false,
        }))
    }
}

struct FtpListener {
    tcp: TcpListener,
    /// Connections that have not logged in yet.
    newcomers: Newcomers<FtpLogin>,
    parameters: Arc<LiveConnectParameters>,
    mode: FtpMode,
}

impl LiveListener for FtpListener {
    fn address(&self) -> String {
        self.tcp.port()
    }

    fn accept(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let (listener, token) = (self.tcp.socket(), &self.parameters.token);
        // Every connection shows the token, whether it carries data or not.
        let proven = self
            .newcomers
            .accept(listener, token, FtpLogin::new, buffers)?;
        let (stack, first) = (&self.parameters.stack, proven.dialogue.rest());
        let control = FtpControl::new(proven.socket, stack, first, &buffers.flags)?;
        let mut responder = FtpResponder::new(control, Arc::clone(&self.parameters), self.mode);
        responder.await_type(buffers)?;
        Ok(Box::new(responder))
    }
}

struct FtpConnector {
    tcp: TcpConnector,
    parameters: Arc<LiveConnectParameters>,
    mode: FtpMode,
    shown: String,
    /// Whether the peer has answered before.
    known: bool,
}

impl Connector for FtpConnector {
    fn connect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let (socket, _) = self.tcp.connect_socket(&buffers.flags)?;
        let patience = |socket: &socket2::Socket, time| {
            let set = socket.set_read_timeout(time);
            set.map_err(|e| error::io_error("SO_RCVTIMEO", &e))
        };
        if !self.known {
            patience(&socket, Some(PATIENCE))?;
        }
        scope::connection_step(|| ConnectionStep::Tcp);
        let control = FtpControl::new(socket, &self.parameters.stack, &[], &buffers.flags)?;
        let mut initiator = FtpInitiator::new(control, Arc::clone(&self.parameters), self.mode);
        if let Err(error) = initiator.log_in(&self.parameters.token) {
            if initiator.control().has_waited_in_vain() {
                let silence = io::ErrorKind::TimedOut.into();
                return Err(ip::unreachable(&self.shown, &silence));
            }
            return Err(error);
        }
        if !self.known {
            patience(initiator.control().socket(), None)?;
            self.known = true;
        }
        Ok(Box::new(initiator))
    }
}
