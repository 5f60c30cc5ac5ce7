//! One end of an `ikp` connection: the machine of `proto::ikp` (a client or a server), and the messages that its application sends and
//! receives. All protocol decisions are the machine's.

use super::super::packet_end;
use super::super::packet_wire::{ArrivedSimPacket, PacketWire};
use crate::datagram::SimDatagram;
use crate::error::{Error, Result};
use crate::run_state::SimRunState;
use crate::run_trace::SimTraceLog;
use stackline_core::run_record::TransportRecord;
use stackline_core::time::Instant;
use stackline_events::EventValue;
use stackline_events::catalogue::families::{ProtocolStep, ProtocolStepEvent};
use stackline_net::NetworkPacket;
use stackline_proto::blast::BlastPacketKind;
use stackline_proto::blast::event_tracer::{BlastEvent, BlastTracer};
use stackline_proto::ikp::client::{self, IkpClientState};
use stackline_proto::ikp::server::{self, IkpMessage, IkpMoveProgress, IkpReplyError};
use stackline_proto::ikp::stack::{IkpReplyContent, Verb};
use stackline_proto::ikp::{Grants, IkpClient, IkpOutput, IkpServer};
use std::rc::Rc;

/// The machine: the initiator's is a client, the responder's a server.
pub(super) enum SimIkpRole {
    Client(Box<IkpClient>),
    Server(Box<IkpServer>),
}

/// A message that a server has received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Come {
    pub(super) message: IkpMessage,
    pub(super) verb: Verb,
    pub(super) number: u64,
}

/// The machine of one end, and its application.
pub(super) struct SimIkpMachine {
    role: SimIkpRole,
    /// A client's message, or a server's last reply.
    body: Vec<u8>,
    /// The reply to the client's message.
    answer: Option<IkpReplyContent>,
    /// The message that has arrived at the server and was not taken yet.
    come: Option<Come>,
    /// The token in the last message; empty if it had none.
    token: Vec<u8>,
    /// While the run is traced: the number of the message that left last; the same one again is a retransmission.
    last: Option<u32>,
    /// While the run is traced: derives the events of moves.
    tracer: Option<BlastTracer>,
}

impl SimIkpMachine {
    pub(super) const fn new(role: SimIkpRole) -> Self {
        Self {
            role,
            body: Vec::new(),
            answer: None,
            come: None,
            token: Vec::new(),
            last: None,
            tracer: None,
        }
    }

    /// Records the events for an output of the machine.
    fn emit(&mut self, log: &SimTraceLog, now: Instant, wire: &PacketWire, output: &IkpOutput) {
        let (header, step, cause) = match output {
            IkpOutput::Run(run) => {
                // The positions of a move are in a memory segment, not in a stream.
                let emit = |event: BlastEvent| {
                    log.blast(
                        wire.pair,
                        wire.side,
                        now,
                        BlastEvent {
                            offset: None,
                            ..event
                        },
                    )
                };
                return self.tracer.get_or_insert_default().run(run.packets(), emit);
            }
            IkpOutput::Control(header, _) if header.kind == BlastPacketKind::Pending => {
                (header, ProtocolStepEvent::IkpPending, "asked")
            }
            IkpOutput::Control(..) => return,
            IkpOutput::Message(header) if self.last.replace(header.blast) == Some(header.blast) => {
                (
                    header,
                    ProtocolStepEvent::IkpRetransmit,
                    if header.kind == BlastPacketKind::Send {
                        "timeout"
                    } else {
                        "asked"
                    },
                )
            }
            IkpOutput::Message(header) => (
                header,
                ProtocolStepEvent::IkpSend,
                if header.kind == BlastPacketKind::Send {
                    "call"
                } else {
                    "reply"
                },
            ),
        };
        let (stream, host) = log.stream(wire.pair, wire.side);
        let data = ProtocolStep {
            stream: stream.into(),
            bytes: header.length.into(),
            cause: EventValue::Text(cause),
            ..ProtocolStep::default()
        };
        log.emit(host, now, |log, at_ns| step.write(&data, log, at_ns));
    }
}

impl packet_end::PacketEndMachine for SimIkpMachine {
    /// Whether the client has given its message up, or the server's move has failed.
    type State = bool;

    fn state(&self) -> bool {
        match &self.role {
            SimIkpRole::Client(client) => matches!(client.state(), IkpClientState::Failed(_)),
            SimIkpRole::Server(server) => server.has_failed(),
        }
    }

    fn handle(&mut self, arrived: &ArrivedSimPacket<'_>, shared: &SimRunState) -> bool {
        let (
            now,
            ArrivedSimPacket {
                header,
                body,
                payload,
            },
        ) = (shared.now(), arrived);
        match &mut self.role {
            SimIkpRole::Client(client) => {
                let client::IkpClientArrival::Reply { message, .. } =
                    client.handle(now, header, body, *payload)
                else {
                    return false;
                };
                self.answer =
                    IkpReplyContent::read(body.get(..message as usize).unwrap_or_default());
            }
            SimIkpRole::Server(server) => match server.handle(now, header, body, *payload) {
                server::IkpServerArrival::Message(message) => {
                    let read = Verb::read(body.get(..message.bytes as usize).unwrap_or_default());
                    self.come = read.map(|(verb, number, shown)| {
                        self.token = shown.to_vec();
                        Come {
                            message,
                            verb,
                            number,
                        }
                    });
                }
                server::IkpServerArrival::Refused => return false,
                // The packet may have completed a move, so the application is woken.
                server::IkpServerArrival::Place(_) | server::IkpServerArrival::Nothing => {}
            },
        }
        true
    }

    fn deadline(&mut self, now: Instant) -> Option<Instant> {
        match &mut self.role {
            SimIkpRole::Client(client) => client.deadline(now).map(|(at, _)| at),
            SimIkpRole::Server(server) => server.deadline(now).map(|(at, _)| at),
        }
    }

    fn poll(
        &mut self,
        wire: &PacketWire,
        shared: &SimRunState,
    ) -> Option<NetworkPacket<SimDatagram>> {
        let now = shared.now();
        let output = match &mut self.role {
            SimIkpRole::Client(client) => client.poll(now, 1),
            SimIkpRole::Server(server) => server.poll(now, 1),
        }?;
        if let Some(log) = &shared.log {
            self.emit(log, now, wire, &output);
        }
        Some(match output {
            IkpOutput::Run(run) => wire.data(&run.header(0), run.span(0).1),
            IkpOutput::Control(header, body) => wire.control(&header, body),
            IkpOutput::Message(header) => {
                let mut body = self.body.clone();
                let beside = match &self.role {
                    SimIkpRole::Client(client) => client.carried(),
                    SimIkpRole::Server(_) => header.length,
                };
                body.resize(body.len() + beside as usize, 0);
                wire.control(&header, body)
            }
        })
    }

    fn abandon(&mut self, _now: Instant) {
        if let SimIkpRole::Client(client) = &mut self.role {
            client.abandon();
        }
    }

    /// Always: packets of an abandoned end that have not left yet are never sent.
    fn is_over(&self) -> bool {
        true
    }
}

/// One end of a connection.
pub(super) type SimIkpEnd = packet_end::PacketEnd<SimIkpMachine>;

/// The application's side.
impl SimIkpEnd {
    // --- the initiator's side ---

    /// Sends a message, with grants to the data that the server may read and write.
    pub(super) fn ask(self: &Rc<Self>, message: &[u8], grants: Grants, shared: &SimRunState) {
        let mut machine = self.machine.borrow_mut();
        let SimIkpMachine {
            role, body, answer, ..
        } = &mut *machine;
        if let SimIkpRole::Client(client) = role
            && client
                .send(shared.now(), message.len() as u32, grants)
                .is_ok()
        {
            body.clear();
            body.extend_from_slice(message);
            *answer = None;
        }
        self.touch(shared);
    }

    /// The reply to the message sent last; `None` until it has arrived.
    ///
    /// # Errors
    /// When the client has given up, or the reply is malformed.
    pub(super) fn answer(&self) -> Option<Result<IkpReplyContent>> {
        let machine = self.machine.borrow();
        let SimIkpRole::Client(client) = &machine.role else {
            return None;
        };
        match client.state() {
            IkpClientState::Sending => None,
            IkpClientState::Failed(why) => Some(Err(self.failed(why, client))),
            IkpClientState::Idle => {
                let none = || Error::measurement("the peer's reply is malformed");
                Some(machine.answer.ok_or_else(none))
            }
        }
    }

    fn failed(&self, why: client::IkpFailure, client: &IkpClient) -> Error {
        match why {
            client::IkpFailure::Silent => {
                Error::measurement(format!("the peer has been silent for {}", client.options().patience))
                    .hint("the peer ended, or the network loses every packet; the option `patience` sets how long to wait")
            }
            client::IkpFailure::Refused(refusal) => {
                Error::measurement(format!("the peer refused the message: {refusal:?}"))
                    .hint("both sides need the same stack with the same options")
            }
        }
    }

    pub(super) fn transport(&self) -> Option<TransportRecord> {
        let machine = self.machine.borrow();
        let SimIkpRole::Client(client) = &machine.role else {
            return None;
        };
        let (counters, rtt) = (client.counters(), client.rtt());
        Some(TransportRecord {
            retransmits: counters.repeated,
            rtt_s: rtt.smoothed().unwrap_or_default().seconds(),
            rtt_var_s: Some(rtt.variation().seconds()),
            mss_bytes: u64::from(client.options().packet),
            ..TransportRecord::default()
        })
    }

    // --- the responder's side ---

    /// Takes the message that has arrived, if any.
    pub(super) fn take(&self) -> Option<Come> {
        self.machine.borrow_mut().come.take()
    }

    /// The token that the last message showed.
    pub(super) fn token(&self) -> Vec<u8> {
        self.machine.borrow().token.clone()
    }

    /// Lets `work` act on the server and its last reply; `None` at a client.
    fn serve<T>(
        self: &Rc<Self>,
        shared: &SimRunState,
        work: impl FnOnce(&mut IkpServer, &mut Vec<u8>) -> T,
    ) -> Option<T> {
        let mut machine = self.machine.borrow_mut();
        let SimIkpMachine { role, body, .. } = &mut *machine;
        let done = if let SimIkpRole::Server(server) = role {
            Some(work(server, body))
        } else {
            None
        };
        self.touch(shared);
        done
    }

    /// Begins a MoveFrom of the message's `bytes` bytes of data, without those that came in the same packet.
    pub(super) fn begin_take(
        self: &Rc<Self>,
        message: &IkpMessage,
        bytes: u32,
        shared: &SimRunState,
    ) -> Result<(), IkpReplyError> {
        let here = message.carried.min(bytes);
        let moved = |server: &mut IkpServer, _: &mut Vec<u8>| {
            server.move_from(shared.now(), message.transaction, here, bytes - here)
        };
        self.serve(shared, moved)
            .unwrap_or(Err(IkpReplyError::Gone))
    }

    /// Begins a MoveTo of `bytes` bytes to the client.
    pub(super) fn begin_move(
        self: &Rc<Self>,
        message: &IkpMessage,
        bytes: u32,
        shared: &SimRunState,
    ) -> Result<(), IkpReplyError> {
        let moved =
            |server: &mut IkpServer, _: &mut Vec<u8>| server.move_to(message.transaction, 0, bytes);
        self.serve(shared, moved)
            .unwrap_or(Err(IkpReplyError::Gone))
    }

    /// Whether the move has succeeded; `None` while it goes on.
    pub(super) fn moved(self: &Rc<Self>, message: &IkpMessage) -> Option<bool> {
        let mut machine = self.machine.borrow_mut();
        let SimIkpRole::Server(server) = &mut machine.role else {
            return Some(false);
        };
        match server.progress(message.transaction) {
            IkpMoveProgress::Going => None,
            progress => Some(progress == IkpMoveProgress::Done),
        }
    }

    /// Replies, with `data` bytes of data in the same packet.
    pub(super) fn reply(
        self: &Rc<Self>,
        message: &IkpMessage,
        answer: IkpReplyContent,
        data: u32,
        shared: &SimRunState,
    ) -> Result<(), IkpReplyError> {
        let replied = |server: &mut IkpServer, body: &mut Vec<u8>| {
            let bytes = answer.reply().len() as u32;
            server.reply(shared.now(), message.transaction, bytes, 0, data)?;
            body.clear();
            body.extend_from_slice(answer.reply());
            Ok(())
        };
        self.serve(shared, replied)
            .unwrap_or(Err(IkpReplyError::Gone))
    }
}
