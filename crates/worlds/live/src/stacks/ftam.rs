//! `ftam`: file transfer as OSI has it (ISO 8571) over its upper layers and TPKT (RFC 1006), on one TCP connection for each pair. SPIMS
//! measured it beside TCP and FTP. Both ends are of stackline; memory, or the job's files, stand for the file that is read and written.
//!
//! The token of the run is the calling TSAP-ID of the connect request, so the wire format is as specified. A connection that does not show
//! it there is closed before anything of it is parsed.

mod association;
mod initiator;
mod responder;

use super::layered::{LAYERED_TABLE, TCP_OPTIONS};
use super::tcp::{TcpConnector, TcpListener};
use crate::buffers::LiveThreadBuffers;
use crate::error::{self, Result};
use crate::stacks::contract::{
    Connector, LiveConnectParameters, LiveConnection, LiveListener, LiveStack,
};
use crate::stacks::ip;
use association::FtamAssociation;
use initiator::FtamInitiator;
use responder::FtamResponder;
use stackline_core::catalogue::{OptionKind, OptionTable, ServiceMapping, StackTable};
use stackline_events::scope::{self, ConnectionStep};
use stackline_proto::papers::ftam::TpduSize;
use stackline_proto::papers::ftam::cotp::CALLING_SELECTOR_AT;
use std::io;
use std::time::Duration;

const OPTIONS: [OptionTable; 14] = StackTable::joined(
    &[OptionTable::new(
        "tpdu",
        OptionKind::Bytes(TpduSize::LEAST as u64, TpduSize::MOST as u64),
        "none is proposed: 65531 B, as RFC 1006 has it",
        "the largest TPDU that is proposed, rounded down to a power of two as COTP codes it",
    )],
    &TCP_OPTIONS,
);

static TABLE: StackTable = StackTable {
    name: "ftam",
    summary: "OSI's FTAM (ISO 8571) over ACSE, presentation, session, COTP class 0 and TPKT (RFC 1006), on the kernel's TCP",
    options: &OPTIONS,
    mapping: ServiceMapping(
        "\
ConnectRequest -> socket, connect; COTP CR with a 16-byte token as calling TSAP-ID, CC; F-INITIALIZE request, its confirmation
AwaitConnectIndication -> accept4, recv of the CR; connections without the token are closed; CC; F-INITIALIZE indication, response
StartBulkGet -> F-BEGIN-GROUP, F-SELECT, F-OPEN, F-END-GROUP requests, their confirmations; F-READ request
StartBulkPut -> F-BEGIN-GROUP, F-SELECT, F-OPEN, F-END-GROUP requests, their confirmations; F-WRITE request
AwaitStartBulkGet, AwaitStartBulkPut -> these indications and responses
DataRequest -> F-DATA request: a P-DATA with an OCTET STRING of the unit (outside a bulk transfer, the first opens and writes or awaits a read)
AwaitDataIndication -> F-DATA indication (likewise)
StopBulkGet -> F-DATA-END indication; F-TRANSFER-END request, confirmation; F-BEGIN-GROUP, F-CLOSE, F-DESELECT, F-END-GROUP requests, \
their confirmations
StopBulkPut -> F-DATA-END request; the rest as StopBulkGet
AwaitStopBulkGet, AwaitStopBulkPut -> the same of the other side
RPCCall -> F-WRITE, F-DATA, F-DATA-END, F-TRANSFER-END requests in one send; confirmation; F-READ request; F-DATA, F-DATA-END indications; \
F-TRANSFER-END request, confirmation (the first call also opens the file)
RPCAwaitCallInd -> F-WRITE to F-TRANSFER-END indications, F-TRANSFER-END response
RPCReturn -> F-READ indication; F-DATA, F-DATA-END requests in one send; F-TRANSFER-END indication, response
end of stream (time limit) -> F-DATA-END request
DisconnectRequest -> F-CLOSE, F-DESELECT if the file is open; F-TERMINATE request, confirmation; close
AwaitDisconnectIndication -> these indications and responses; recv until it returns 0, close",
    ),
    ..LAYERED_TABLE
};

/// How long the first connection of a pair may take at each step to open.
const PATIENCE: Duration = Duration::from_secs(30);

/// The stack `ftam`.
pub(super) struct FtamStack;

impl LiveStack for FtamStack {
    fn table(&self) -> &'static StackTable {
        &TABLE
    }

    fn listen(&self, parameters: &LiveConnectParameters) -> Result<Box<dyn LiveListener>> {
        Ok(Box::new(FtamListener {
            tcp: TcpListener::new(parameters, None)?,
            parameters: parameters.clone(),
        }))
    }

    fn connector(
        &self,
        parameters: &LiveConnectParameters,
        address: &str,
    ) -> Result<Box<dyn Connector>> {
        Ok(Box::new(FtamConnector {
            tcp: TcpConnector::new(parameters, address, None)?,
            parameters: parameters.clone(),
            shown: address.to_string(),
            known: false,
        }))
    }
}

/// The size of TPDUs that an end proposes, or accepts at most.
fn tpdu_size(parameters: &LiveConnectParameters) -> TpduSize {
    TpduSize::within(parameters.stack.number("tpdu"))
}

struct FtamListener {
    tcp: TcpListener,
    parameters: LiveConnectParameters,
}

impl LiveListener for FtamListener {
    fn address(&self) -> String {
        self.tcp.port()
    }

    fn accept(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        // Every connection shows the token, whether it carries data or not.
        let proven = self.tcp.accept_behind(CALLING_SELECTOR_AT, buffers)?;
        let size = tpdu_size(&self.parameters);
        let association = FtamAssociation::accept(proven, &self.parameters.stack, size, buffers)?;
        Ok(Box::new(FtamResponder::new(association)))
    }
}

struct FtamConnector {
    tcp: TcpConnector,
    parameters: LiveConnectParameters,
    shown: String,
    /// Whether the peer has answered before.
    known: bool,
}

impl Connector for FtamConnector {
    fn connect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let (socket, _) = self.tcp.connect_socket(&buffers.flags)?;
        scope::connection_step(|| ConnectionStep::Tcp);
        let patience = |socket: &socket2::Socket, time| {
            let set = socket.set_read_timeout(time);
            set.map_err(|e| error::io_error("SO_RCVTIMEO", &e))
        };
        if !self.known {
            patience(&socket, Some(PATIENCE))?;
        }
        let size = tpdu_size(&self.parameters);
        let (stack, token) = (&self.parameters.stack, &self.parameters.token);
        let association = FtamAssociation::connect(socket, stack, token, size, buffers)?;
        let Some(association) = association else {
            return Err(ip::unreachable(
                &self.shown,
                &io::ErrorKind::TimedOut.into(),
            ));
        };
        if !self.known {
            patience(association.socket(), None)?;
            self.known = true;
        }
        Ok(Box::new(FtamInitiator::new(association)))
    }
}
