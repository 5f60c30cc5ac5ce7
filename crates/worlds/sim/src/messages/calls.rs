//! V's messages between two programs of an application (`proto::ikp`): one side asks and is blocked until the other answers. What is in a
//! message nobody here knows.

use crate::datagram::Datagram;
use crate::stacks::packet_wire::Wire;
use stackline_core::program::Side;
use stackline_core::time::Instant;
use stackline_net::{Node, Packet};
use stackline_proto::ikp::{Client, Grants, Options, Output, Server, client, server};

/// Two programs that exchange messages.
pub(super) struct Calls<M> {
    client: Client,
    server: Server,
    wires: [Wire; 2],
    /// Bytes of what was asked and answered last, by side; and what that is, until it arrives.
    bytes: [u32; 2],
    question: Option<M>,
    answer: Option<M>,
    /// The transaction that the server has and has not answered.
    open: Option<u32>,
    /// The next timer of each side.
    pub(super) alarms: [Option<Instant>; 2],
}

/// What has come to a program.
pub(super) enum Came<M> {
    Question(M),
    Answer(M),
}

impl<M> Calls<M> {
    pub(super) fn new(number: u32, nodes: [Node; 2], packet: u32) -> Self {
        let options = Options {
            packet,
            ..Options::once()
        };
        let wire = |side: Side| {
            let (near, far) = (side.index(), side.other().index());
            Wire {
                pair: number,
                side,
                nodes: [nodes[near], nodes[far]],
                ports: [1024, 1024],
                seal: 0,
            }
        };
        Self {
            client: Client::new(&options, number, 0),
            server: Server::new(&options, number),
            wires: [wire(Side::Initiator), wire(Side::Responder)],
            bytes: [1, 0],
            question: None,
            answer: None,
            open: None,
            alarms: [None; 2],
        }
    }

    /// The side on that host.
    pub(super) const fn side_of(&self, node: Node) -> Side {
        if self.wires[0].nodes[0].0 == node.0 {
            Side::Initiator
        } else {
            Side::Responder
        }
    }

    /// Bytes that a message has room for.
    pub(super) const fn room(&self) -> u32 {
        self.client.options().room()
    }

    /// Asks; nothing may be asked until it is answered.
    pub(super) fn ask(&mut self, now: Instant, bytes: u32, message: M) {
        let bytes = bytes.clamp(1, self.room());
        if self.client.send(now, bytes, Grants::default()).is_ok() {
            (self.bytes[0], self.question) = (bytes, Some(message));
        }
    }

    /// Answers what was asked.
    pub(super) fn answer(&mut self, now: Instant, bytes: u32, message: M) {
        let bytes = bytes.min(self.room());
        if let Some(transaction) = self.open.take()
            && self.server.reply(now, transaction, bytes, 0, 0).is_ok()
        {
            (self.bytes[1], self.answer) = (bytes, Some(message));
        }
    }

    /// A packet has reached the host of a side.
    pub(super) fn arrived(
        &mut self,
        now: Instant,
        side: Side,
        datagram: &Datagram,
    ) -> Option<Came<M>> {
        let arrived = self.wires[side.index()].read(datagram)?;
        match side {
            Side::Responder => {
                match self
                    .server
                    .handle(now, &arrived.header, arrived.body, arrived.payload)
                {
                    server::Arrival::Message(message) => {
                        self.open = Some(message.transaction);
                        self.question.take().map(Came::Question)
                    }
                    _ => None,
                }
            }
            Side::Initiator => {
                match self
                    .client
                    .handle(now, &arrived.header, arrived.body, arrived.payload)
                {
                    client::Arrival::Reply { .. } => self.answer.take().map(Came::Answer),
                    _ => None,
                }
            }
        }
    }

    /// What leaves a side now.
    pub(super) fn poll(&mut self, now: Instant, side: Side) -> Option<Packet<Datagram>> {
        let output = match side {
            Side::Initiator => self.client.poll(now, 1),
            Side::Responder => self.server.poll(now, 1),
        }?;
        let wire = &self.wires[side.index()];
        Some(match output {
            Output::Run(run) => wire.data(&run.header(0), run.span(0).1),
            Output::Control(header, body) => wire.control(&header, body),
            Output::Message(header) => {
                wire.control(&header, vec![0; self.bytes[side.index()] as usize])
            }
        })
    }

    /// Whether nobody answers.
    pub(super) const fn is_silent(&self) -> bool {
        matches!(self.client.state(), client::State::Failed(_))
    }

    /// When a side has something to do.
    pub(super) fn deadline(&mut self, now: Instant, side: Side) -> Option<Instant> {
        match side {
            Side::Initiator => self.client.deadline(now).map(|(at, _)| at),
            Side::Responder => self.server.deadline(now).map(|(at, _)| at),
        }
    }
}
