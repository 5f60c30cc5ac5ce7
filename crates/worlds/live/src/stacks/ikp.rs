//! `ikp`: V's message passing of `transfer`, straight from and into a job's memory.
//!
//! The initiator is the client: every operation of its is a message, every operation of the responder what it does with the
//! client's next message (`proto::ikp::stack` has the table). Data units are moved one by one; the peer has a data unit when
//! the operation returns. Where the responder finds a message it does not expect, both sides wait for each other: that is
//! reported, as nothing else would ever happen.

mod failure;
mod initiator;
mod options;
mod responder;

use super::ip;
use crate::buffers::LiveThreadBuffers;
use crate::cancel::LiveCancelFlags;
use crate::error::{Error, Result};
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
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

/// V's message passing.
pub(super) struct LiveIkpStack;

impl LiveStack for LiveIkpStack {
    fn table(&self) -> &'static StackTable {
        &stack::TABLE
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
        let found = ip::resolve(address)?.as_socket();
        let peer =
            found.ok_or_else(|| Error::environment(format!("{address} is not a host address")))?;
        Ok(Box::new(IkpConnector {
            peer,
            options: parse_options(parameters)?,
            shown: address.to_string(),
            token: parameters.token,
        }))
    }
}

/// The flags of the job that uses a server at the time.
type Present = Arc<Mutex<Option<Arc<LiveCancelFlags>>>>;

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
    /// Who was connected last.
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
                // Of the last connection, whose last reply was lost.
                Some((Verb::Close | Verb::Closing, ..)) if Some(peer_of(&request)) == self.last => {
                    request
                        .reply(IkpReplyContent::Done.reply())
                        .map_err(from_transfer)?;
                    continue;
                }
                // Strangers find nobody.
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
        let mut client = IkpUdpClient::connect(self.peer, &options).map_err(from_transfer)?;
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
