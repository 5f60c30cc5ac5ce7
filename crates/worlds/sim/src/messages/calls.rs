//! V's message passing (`proto::ikp`) between two programs of an application: one side asks and is blocked until the
//! other answers. The contents of messages (`M`) are opaque here.

use crate::datagram::SimDatagram;
use crate::stacks::packet_wire::PacketWire;
use stackline_core::procedure::PairSide;
use stackline_core::time::Instant;
use stackline_net::{NetworkPacket, NodeIndex};
use stackline_proto::ikp::{Grants, IkpClient, IkpOptions, IkpOutput, IkpServer, client, server};

/// The client and the server of two programs, and the messages between them.
pub(super) struct MessageCallPair<M> {
    client: IkpClient,
    server: IkpServer,
    wires: [PacketWire; 2],
    /// By side: the bytes of the last question and of the last answer.
    bytes: [u32; 2],
    /// By side: the last question and the last answer, until they arrive.
    messages: [Option<M>; 2],
    /// The transaction that the server has received and not answered.
    open: Option<u32>,
    /// By side: its next timer.
    pub(super) alarms: [Option<Instant>; 2],
}

impl<M> MessageCallPair<M> {
    pub(super) fn new(number: u32, nodes: [NodeIndex; 2], packet: u32) -> Self {
        let options = IkpOptions {
            packet,
            ..IkpOptions::once()
        };
        let wire = |side: PairSide| {
            let (near, far) = (side.index(), side.other().index());
            PacketWire {
                pair: number,
                side,
                nodes: [nodes[near], nodes[far]],
                ports: [1024, 1024],
                seal: 0,
            }
        };
        Self {
            client: IkpClient::new(&options, number, 0),
            server: IkpServer::new(&options, number),
            wires: [wire(PairSide::Initiator), wire(PairSide::Responder)],
            bytes: [1, 0],
            messages: [None, None],
            open: None,
            alarms: [None; 2],
        }
    }

    /// The most bytes of a message.
    pub(super) const fn room(&self) -> u32 {
        self.client.options().room()
    }

    /// Asks; nothing else may be asked until it is answered.
    pub(super) fn ask(&mut self, now: Instant, bytes: u32, message: M) {
        let bytes = bytes.clamp(1, self.room());
        if self.client.send(now, bytes, Grants::default()).is_ok() {
            (self.bytes[0], self.messages[0]) = (bytes, Some(message));
        }
    }

    /// Answers the question received last.
    pub(super) fn answer(&mut self, now: Instant, bytes: u32, message: M) {
        let bytes = bytes.min(self.room());
        if let Some(transaction) = self.open.take()
            && self.server.reply(now, transaction, bytes, 0, 0).is_ok()
        {
            (self.bytes[1], self.messages[1]) = (bytes, Some(message));
        }
    }

    /// Handles a packet that has reached the host of a side. Returns the question or the answer that it completes.
    pub(super) fn arrived(
        &mut self,
        now: Instant,
        side: PairSide,
        datagram: &SimDatagram,
    ) -> Option<M> {
        let packet = self.wires[side.index()].read(datagram)?;
        let (header, body, payload) = (&packet.header, packet.body, packet.payload);
        if side == PairSide::Initiator {
            let arrival = self.client.handle(now, header, body, payload);
            let is_answer = matches!(arrival, client::IkpClientArrival::Reply { .. });
            return is_answer.then(|| self.messages[1].take()).flatten();
        }
        match self.server.handle(now, header, body, payload) {
            server::IkpServerArrival::Message(message) => {
                self.open = Some(message.transaction);
                self.messages[0].take()
            }
            _ => None,
        }
    }

    /// The next packet of a side to send now.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        side: PairSide,
    ) -> Option<NetworkPacket<SimDatagram>> {
        let output = match side {
            PairSide::Initiator => self.client.poll(now, 1),
            PairSide::Responder => self.server.poll(now, 1),
        }?;
        let wire = &self.wires[side.index()];
        Some(match output {
            IkpOutput::Run(run) => wire.data(&run.header(0), run.span(0).1),
            IkpOutput::Control(header, body) => wire.control(&header, body),
            IkpOutput::Message(header) => {
                wire.control(&header, vec![0; self.bytes[side.index()] as usize])
            }
        })
    }

    /// Whether the client has given up because nobody answers.
    pub(super) const fn is_silent(&self) -> bool {
        matches!(self.client.state(), client::IkpClientState::Failed(_))
    }

    /// The next deadline of a side.
    pub(super) fn deadline(&mut self, now: Instant, side: PairSide) -> Option<Instant> {
        match side {
            PairSide::Initiator => self.client.deadline(now).map(|(at, _)| at),
            PairSide::Responder => self.server.deadline(now).map(|(at, _)| at),
        }
    }
}
