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
use crate::buffers::Buffers;
use crate::cancel::Flags;
use crate::error::{Error, Result};
use crate::stacks::contract::{ConnectParameters, Connection, Connector, Listener, Protocol};
use failure::from_transfer;
use options::options;
use responder::{Peer, lock, peer_of};
use stackline_core::catalogue::StackTable;
use stackline_proto::datagram::Token;
use stackline_proto::ikp::Options as Machine;
use stackline_proto::ikp::stack::{self, Answer, Verb};
use stackline_transfer::Interrupt;
use stackline_transfer::ikp::{self, Client, Options, Segments, Server};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

/// V's message passing.
pub(super) struct Ikp;

impl Protocol for Ikp {
    fn table(&self) -> &'static StackTable {
        &stack::TABLE
    }

    fn listen(&self, parameters: &ConnectParameters) -> Result<Box<dyn Listener>> {
        let address = SocketAddr::new(parameters.bind, ip::port(parameters)?);
        let flags = Arc::new(Mutex::new(None));
        let options = Options {
            interrupt: Some(interrupt(&flags)),
            ..options(parameters)?
        };
        let server = Server::bind(address, &options).map_err(from_transfer)?;
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
        parameters: &ConnectParameters,
        address: &str,
    ) -> Result<Box<dyn Connector>> {
        let found = ip::resolve(address)?.as_socket();
        let peer = found
            .ok_or_else(|| Error::environment(format!("{address} is not the address of a host")))?;
        Ok(Box::new(IkpConnector {
            peer,
            options: options(parameters)?,
            shown: address.to_string(),
            token: parameters.token,
        }))
    }
}

/// The flags of the job that uses a server at the time.
type Present = Arc<Mutex<Option<Arc<Flags>>>>;

fn interrupt(flags: &Present) -> Interrupt {
    let flags = Arc::clone(flags);
    Interrupt::new(move || lock(&flags).as_ref().is_some_and(|flags| flags.ended()))
}

struct IkpListener {
    server: Arc<Mutex<Server>>,
    port: u16,
    flags: Present,
    token: Token,
    machine: Machine,
    /// Who was connected last.
    last: Option<Peer>,
}

impl Listener for IkpListener {
    fn address(&self) -> String {
        self.port.to_string()
    }

    fn accept(&mut self, buffers: &mut Buffers) -> Result<Box<dyn Connection>> {
        *lock(&self.flags) = Some(Arc::clone(&buffers.flags));
        let mut server = lock(&self.server);
        loop {
            let request = server.receive().map_err(from_transfer)?;
            match Verb::read(request.message()) {
                Some((Verb::Connect, _, token)) if token == self.token => {}
                // Of the last connection, whose last reply was lost.
                Some((Verb::Close | Verb::Closing, ..)) if Some(peer_of(&request)) == self.last => {
                    request.reply(Answer::Done.reply()).map_err(from_transfer)?;
                    continue;
                }
                // Strangers find nobody.
                _ => continue,
            }
            let peer = peer_of(&request);
            self.last = Some(peer);
            request.reply(Answer::Done.reply()).map_err(from_transfer)?;
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
    options: Options,
    shown: String,
    token: Token,
}

impl Connector for IkpConnector {
    fn connect(&mut self, buffers: &mut Buffers) -> Result<Box<dyn Connection>> {
        let flags = Arc::clone(&buffers.flags);
        let options = Options {
            interrupt: Some(Interrupt::new(move || flags.ended())),
            ..self.options.clone()
        };
        let mut client = Client::connect(self.peer, &options).map_err(from_transfer)?;
        let mut reply = [0; 1];
        match client.send(&Verb::connect(&self.token), Segments::none(), &mut reply) {
            Ok(bytes) if Answer::read(&reply[..bytes]) == Some(Answer::Done) => {}
            Ok(_) => return Err(Error::measurement("the peer's first reply is malformed")),
            Err(ikp::Error::Nobody) => {
                return Err(ip::unreachable(
                    &self.shown,
                    &io::ErrorKind::ConnectionRefused.into(),
                ));
            }
            Err(ikp::Error::Silent(_)) => {
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
