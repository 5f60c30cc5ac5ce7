//! `ikp` (interkernel protocol): the message passing of the V kernel, as `stackline_transfer` implements it, directly from and into the
//! endpoint's buffers.
//!
//! The initiator is the client: each of its operations sends one message and waits for the reply. The responder is the server: each of its
//! operations handles the client's next message (`stackline_proto::ikp::stack` has the table). Data units are moved one by one; when an
//! operation returns, the peer has the data unit. If the responder finds a message that its operation does not expect, both sides would
//! wait for each other without end, so that is an error.

mod failure;
mod initiator;
mod options;
mod responder;

use super::ip;
use super::ip_options::{self, IP_OPTIONS};
use crate::buffers::LiveThreadBuffers;
use crate::cancel::LiveCancelFlags;
use crate::error::{self, Error, Result};
use crate::stacks::contract::{
    Connector, LiveConnectParameters, LiveConnection, LiveListener, LiveStack,
};
use failure::from_transfer;
use options::parse_options;
use responder::{LiveIkpPeer, lock, peer_of};
use stackline_core::catalogue::StackTable;
use stackline_proto::datagram::DatagramToken;
use stackline_proto::ikp::IkpOptions as Machine;
use stackline_proto::ikp::stack::{self, IkpReplyContent, Verb};
use stackline_transfer::Interrupt;
use stackline_transfer::ikp::{
    self, IkpClientSegments, IkpTransferOptions, IkpUdpClient, IkpUdpServer,
};
use stackline_transfer::udp::Udp;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

const TABLE: StackTable = StackTable {
    options: &StackTable::joined::<OPTIONS>(stack::TABLE.options, &IP_OPTIONS),
    ..stack::TABLE
};

/// How many options it has.
const OPTIONS: usize = stack::TABLE.options.len() + IP_OPTIONS.len();

/// The stack `ikp`.
pub(super) struct LiveIkpStack;

impl LiveStack for LiveIkpStack {
    fn table(&self) -> &'static StackTable {
        &TABLE
    }

    fn listen(&self, parameters: &LiveConnectParameters) -> Result<Box<dyn LiveListener>> {
        let address = SocketAddr::new(parameters.bind, ip::listening_port(parameters)?);
        let flags = Arc::new(Mutex::new(None));
        let options = IkpTransferOptions {
            interrupt: Some(interrupt(&flags)),
            ..parse_options(parameters)?
        };
        let server = IkpUdpServer::bind(address, &options).map_err(from_transfer)?;
        let port = server.local().map_err(from_transfer)?.port();
        let server = Arc::new(Mutex::new(server));
        Ok(Box::new(IkpListener {
            server,
            port,
            flags,
            token: parameters.token,
            machine: options.protocol,
            last: None,
        }))
    }

    fn connector(
        &self,
        parameters: &LiveConnectParameters,
        address: &str,
    ) -> Result<Box<dyn Connector>> {
        let found = ip::resolve(address, &parameters.stack)?.as_socket();
        let peer =
            found.ok_or_else(|| Error::environment(format!("{address} is not a host address")))?;
        Ok(Box::new(IkpConnector {
            peer,
            options: parse_options(parameters)?,
            parameters: parameters.clone(),
            shown: address.to_string(),
            token: parameters.token,
        }))
    }
}

/// The flags of the job that uses a server; `None` until its first accept.
type Present = Arc<Mutex<Option<Arc<LiveCancelFlags>>>>;

/// A callback by which a server asks whether the job was ended.
fn interrupt(flags: &Present) -> Interrupt {
    let flags = Arc::clone(flags);
    Interrupt::new(move || lock(&flags).as_ref().is_some_and(|flags| flags.ended()))
}

struct IkpListener {
    server: Arc<Mutex<IkpUdpServer>>,
    port: u16,
    flags: Present,
    token: DatagramToken,
    machine: Machine,
    /// The client of the last connection.
    last: Option<LiveIkpPeer>,
}

impl LiveListener for IkpListener {
    fn address(&self) -> String {
        self.port.to_string()
    }

    fn accept(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        *lock(&self.flags) = Some(Arc::clone(&buffers.flags));
        let mut server = lock(&self.server);
        loop {
            let request = server.receive().map_err(from_transfer)?;
            match Verb::read(request.message()) {
                Some((Verb::Connect, _, token)) if token == self.token => {}
                // A repeated message of the last connection, whose reply was lost: reply again.
                Some((Verb::Close | Verb::Closing, ..)) if Some(peer_of(&request)) == self.last => {
                    request
                        .reply(IkpReplyContent::Done.reply())
                        .map_err(from_transfer)?;
                    continue;
                }
                // Anything else is dropped, which rejects the client's message.
                _ => continue,
            }
            let peer = peer_of(&request);
            self.last = Some(peer);
            request
                .reply(IkpReplyContent::Done.reply())
                .map_err(from_transfer)?;
            return Ok(Box::new(responder::Responder::new(
                Arc::clone(&self.server),
                peer,
                self.machine,
            )));
        }
    }
}

struct IkpConnector {
    peer: SocketAddr,
    options: IkpTransferOptions,
    parameters: LiveConnectParameters,
    shown: String,
    token: DatagramToken,
}

impl Connector for IkpConnector {
    fn connect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let flags = Arc::clone(&buffers.flags);
        let options = IkpTransferOptions {
            interrupt: Some(Interrupt::new(move || flags.ended())),
            ..self.options.clone()
        };
        let socket = ip_options::connected_datagrams(&self.parameters, self.peer)?;
        let carrier = Udp::over(socket, options.udp)
            .map_err(|e| error::io_error("setting up the socket", &e))?;
        let mut client = IkpUdpClient::over(carrier, &options).map_err(from_transfer)?;
        let mut reply = [0; 1];
        match client.send(
            &Verb::connect(&self.token),
            IkpClientSegments::none(),
            &mut reply,
        ) {
            Ok(bytes) if IkpReplyContent::read(&reply[..bytes]) == Some(IkpReplyContent::Done) => {}
            Ok(_) => return Err(Error::measurement("the peer's first reply is malformed")),
            Err(ikp::IkpTransferError::Nobody) => {
                return Err(ip::unreachable(
                    &self.shown,
                    &io::ErrorKind::ConnectionRefused.into(),
                ));
            }
            Err(ikp::IkpTransferError::Silent(_)) => {
                return Err(ip::unreachable(
                    &self.shown,
                    &io::ErrorKind::TimedOut.into(),
                ));
            }
            Err(error) => return Err(from_transfer(error)),
        }
        Ok(Box::new(initiator::Initiator::new(client)))
    }
}
