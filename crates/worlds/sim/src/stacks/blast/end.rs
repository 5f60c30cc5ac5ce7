//! One end of a connection of `saw`, `window` or `blast`: the machine of `proto::blast`, and the data that its application has handed
//! over and taken. All protocol decisions are the machine's.

use super::super::byte_stream::Got;
use super::super::packet_end::{self, PacketEndMachine as _};
use super::super::packet_wire::{ArrivedSimPacket, PacketWire};
use super::super::time_accounting::{SenderHoldUp, TimeAccount};
use crate::connection_info::ConnectionInfo;
use crate::datagram::SimDatagram;
use crate::error::Error;
use crate::run_state::SimRunState;
use crate::run_trace::SimTraceLog;
use stackline_core::run_record::TransportRecord;
use stackline_core::time::Instant;
use stackline_events::catalogue::families::ConnectionReportEvent;
use stackline_net::NetworkPacket;
use stackline_proto::blast::event_tracer::BlastTracer;
use stackline_proto::blast::{
    BlastArrival, BlastConnection, BlastFailure as Broken, BlastOptions, BlastOutput, BlastState,
};
use std::rc::Rc;

/// Data units that are to be sent and were not handed to the machine yet. They are handed over only as the machine can send them in
/// whole blasts, so that at a time limit the rest is not sent.
#[derive(Clone, Copy, Debug, Default)]
struct UnsentBlastStretch {
    /// Bytes of a data unit.
    unit: u64,
    /// The number of data units.
    left: u64,
}

/// The machine of one end, and its application.
pub(super) struct SimBlastMachine {
    connection: BlastConnection,
    stretch: UnsentBlastStretch,
    /// Whether the last packet sent was the last of its round, so that the next may begin a blast.
    between: bool,
    /// Stream position up to which the application has taken what arrived.
    taken: u64,
    /// While the run is traced: when data units were handed to the machine, and how many.
    handed: Option<Vec<(Instant, u64)>>,
    spent: TimeAccount,
    /// The state that was sampled last, and how many bytes had arrived then.
    recorded: (ConnectionInfo, u64),
    /// While the run is traced: derives the events.
    tracer: Option<BlastTracer>,
}

impl SimBlastMachine {
    pub(super) fn new(connection: BlastConnection) -> Self {
        Self {
            connection,
            stretch: UnsentBlastStretch::default(),
            between: true,
            taken: 0,
            handed: None,
            spent: TimeAccount::default(),
            recorded: Default::default(),
            tracer: None,
        }
    }

    /// Hands the machine the data units that fit into its next blast.
    fn top_up(&mut self, now: Instant) {
        let UnsentBlastStretch { unit, left } = self.stretch;
        let room = u64::from(self.connection.options().size)
            .saturating_sub(self.connection.sender().waiting());
        if left == 0 || room == 0 || !self.between || self.connection.state() != BlastState::Open {
            return;
        }
        let units = room.div_ceil(unit.max(1)).min(left);
        self.connection.send(unit.saturating_mul(units));
        self.stretch.left -= units;
        if let Some(handed) = &mut self.handed {
            handed.push((now, units));
        }
    }

    /// The present state for an INFO event; there is no congestion window and no send buffer.
    fn info(&self, now: Instant) -> ConnectionInfo {
        let (sender, facts) = (self.connection.sender(), self.connection.facts());
        let receiver = self.connection.receiver();
        ConnectionInfo {
            in_flight_bytes: Some(sender.in_flight()),
            rtt: facts.rtt.map(|(smoothed, ..)| smoothed),
            retransmits: facts.sent.repeated,
            busy: Some(self.spent.busy(now)),
            receive_window_limited: Some(self.spent.by(SenderHoldUp::ReceiveWindow, now)),
            unsent_bytes: Some(sender.waiting()),
            receive_queue_bytes: Some(receiver.delivered().saturating_sub(self.taken)),
            send_window_bytes: Some(sender.window()),
            mss_bytes: Some(u64::from(self.connection.options().packet)),
            acked_bytes: Some(facts.sent.acknowledged),
            ..ConnectionInfo::default()
        }
    }

    /// Everything that an application may wait for: if it changes, the application is woken.
    fn awaited(&self) -> (BlastState, u64, bool, bool) {
        let (sender, receiver) = (self.connection.sender(), self.connection.receiver());
        (
            self.connection.state(),
            receiver.delivered(),
            receiver.ended(),
            sender.is_idle(),
        )
    }
}

impl packet_end::PacketEndMachine for SimBlastMachine {
    type State = BlastState;

    fn state(&self) -> BlastState {
        self.connection.state()
    }

    fn handle(&mut self, arrived: &ArrivedSimPacket<'_>, shared: &SimRunState) -> bool {
        if shared.log.is_some() {
            self.tracer.get_or_insert_default().arrived(&arrived.header);
        }
        let before = self.awaited();
        let came =
            self.connection
                .handle(shared.now(), &arrived.header, arrived.body, arrived.payload);
        if let BlastArrival::Place {
            check: Some(check), ..
        } = came
        {
            // A simulated network never corrupts data, so the checksum of the blast is right.
            self.connection.checked(check.blast.number, true);
        }
        self.awaited() != before
    }

    fn deadline(&mut self, now: Instant) -> Option<Instant> {
        self.top_up(now);
        self.connection.deadline(now).map(|(at, _)| at)
    }

    fn poll(
        &mut self,
        wire: &PacketWire,
        shared: &SimRunState,
    ) -> Option<NetworkPacket<SimDatagram>> {
        let now = shared.now();
        let output = self.connection.poll(now, 1)?;
        if let Some(log) = &shared.log {
            let packet = self.connection.options().packet;
            let emit = |event| log.blast(wire.pair, wire.side, now, event);
            self.tracer
                .get_or_insert_default()
                .leaves(&output, packet, emit);
        }
        Some(match output {
            BlastOutput::Run(run) => {
                self.between = run.requests_ack;
                let (place, bytes) = run.span(0);
                wire.data_at(&run.header(0, 0), place, bytes)
            }
            BlastOutput::Control(header, body) => wire.control(&header, body),
        })
    }

    /// Accounts for the sender's time, after packets were sent.
    fn sent(&mut self, now: Instant) {
        let sender = self.connection.sender();
        let held = if sender.waits_for_grant() {
            SenderHoldUp::ReceiveWindow
        } else {
            SenderHoldUp::Network
        };
        let idle = sender.is_idle();
        if !idle || self.spent.is_busy() {
            self.spent.turn(held, now);
        }
        if idle {
            self.spent.end();
        }
    }

    fn abandon(&mut self, now: Instant) {
        self.connection.close(now);
    }

    fn is_over(&self) -> bool {
        matches!(
            self.connection.state(),
            BlastState::Closed | BlastState::Failed(_)
        )
    }

    /// Records an INFO event if data is under way or has moved since the last sample. Whether it did.
    fn sample(&mut self, wire: &PacketWire, at: Instant, log: &SimTraceLog) -> bool {
        let now = (self.info(at), self.connection.receiver().delivered());
        let before = std::mem::replace(&mut self.recorded, now);
        let records =
            self.spent.is_busy() || now.0.acked_bytes != before.0.acked_bytes || now.1 != before.1;
        if records {
            log.info(
                ConnectionReportEvent::BlastInfo,
                wire.pair,
                wire.side,
                at,
                &before.0,
                &now.0,
            );
        }
        records
    }
}

/// One end of a connection.
pub(super) type SimBlastEnd = packet_end::PacketEnd<SimBlastMachine>;

/// The application's side.
impl SimBlastEnd {
    /// Whether the connection was accepted; `None` while that is not known.
    pub(super) fn answered(&self) -> Option<bool> {
        match self.machine.borrow().connection.state() {
            BlastState::Listening | BlastState::Opening => None,
            BlastState::Open | BlastState::Closing => Some(true),
            BlastState::Closed | BlastState::Failed(_) => Some(false),
        }
    }

    /// Begins to send `times` data units of `unit` bytes each.
    pub(super) fn begin(self: &Rc<Self>, unit: u64, times: u64, shared: &SimRunState) {
        let mut machine = self.machine.borrow_mut();
        machine.handed = shared.log.is_some().then(Vec::new);
        if unit > 0 {
            machine.stretch = UnsentBlastStretch { unit, left: times };
        }
        self.touch(shared);
    }

    /// Takes the record of when data units were handed over, and how many; empty unless the run is traced.
    pub(super) fn handed(&self) -> Vec<(Instant, u64)> {
        self.machine.borrow_mut().handed.take().unwrap_or_default()
    }

    /// Stops at a time limit: hands over no more data units. Returns how many are not sent.
    pub(super) fn stop_short(&self) -> u64 {
        std::mem::take(&mut self.machine.borrow_mut().stretch.left)
    }

    /// Hands over bytes whose acknowledgement nobody waits for.
    pub(super) fn hand_over(self: &Rc<Self>, bytes: u64, shared: &SimRunState) {
        if bytes > 0 {
            self.machine.borrow_mut().connection.send(bytes);
            self.touch(shared);
        }
    }

    /// Whether the peer has acknowledged everything; `None` while that is not known. False if the connection ended before.
    pub(super) fn is_sent(&self) -> Option<bool> {
        let machine = self.machine.borrow();
        let sent = machine.stretch.left == 0 && machine.connection.sender().is_idle();
        if sent || machine.is_over() {
            Some(sent)
        } else {
            None
        }
    }

    /// Whether there are bytes to take; false at the end of the stream, `None` while that is not known.
    pub(super) fn has_come(&self) -> Option<bool> {
        let machine = self.machine.borrow();
        let receiver = machine.connection.receiver();
        let comes = receiver.delivered() > machine.taken;
        if comes || receiver.ended() || machine.is_over() {
            Some(comes)
        } else {
            None
        }
    }

    /// Takes at most `most` bytes.
    pub(super) fn take(self: &Rc<Self>, most: u64, shared: &SimRunState) -> Got {
        let Some(comes) = self.has_come() else {
            return Got::Nothing;
        };
        let mut machine = self.machine.borrow_mut();
        if !comes {
            return if matches!(machine.connection.state(), BlastState::Failed(_)) {
                Got::Broken
            } else {
                Got::End
            };
        }
        let bytes = (machine.connection.receiver().delivered() - machine.taken).min(most);
        machine.taken += bytes;
        let position = machine.taken;
        machine.connection.consume(position);
        self.touch(shared);
        Got::Bytes(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// Ends this side's stream.
    pub(super) fn finish(self: &Rc<Self>, shared: &SimRunState) {
        self.machine.borrow_mut().connection.finish();
        self.touch(shared);
    }

    /// Closes the connection, after everything has been delivered.
    pub(super) fn close(self: &Rc<Self>, shared: &SimRunState) {
        self.machine.borrow_mut().connection.close(shared.now());
        self.touch(shared);
    }

    /// Whether the connection is closed, by either side, or broken.
    pub(super) fn is_closed(&self) -> bool {
        self.machine.borrow().is_over()
    }

    /// Why it broke, where it did.
    pub(super) fn broken(&self) -> Option<Error> {
        let machine = self.machine.borrow();
        let BlastState::Failed(why) = machine.connection.state() else {
            return None;
        };
        let patience = machine.connection.options().patience;
        Some(match why {
            Broken::Silent => Error::measurement(format!("the peer has been silent for {patience}"))
                .hint("the peer ended, or the network loses every packet; the option `patience` sets how long to wait"),
            Broken::Refused(refusal) => Error::measurement(format!("the peer refused the connection: {refusal:?}"))
                .hint("both sides need the same stack with the same options"),
        })
    }

    pub(super) fn options(&self) -> BlastOptions {
        *self.machine.borrow().connection.options()
    }

    pub(super) fn transport(&self, now: Instant) -> TransportRecord {
        let machine = self.machine.borrow();
        let facts = machine.connection.facts();
        let (rtt, variation) = facts
            .rtt
            .map_or_else(Default::default, |(rtt, variation, _)| (rtt, variation));
        TransportRecord {
            retransmits: facts.sent.repeated,
            rtt_s: rtt.seconds(),
            rtt_var_s: Some(variation.seconds()),
            cwnd_segments: None,
            mss_bytes: u64::from(machine.connection.options().packet),
            busy_s: Some(machine.spent.busy(now).seconds()),
            receive_window_limited_s: Some(
                machine.spent.by(SenderHoldUp::ReceiveWindow, now).seconds(),
            ),
            send_buffer_limited_s: None,
            bytes_acked: Some(facts.sent.acknowledged),
            bytes_received: machine.connection.receiver().delivered(),
            spent: None,
        }
    }
}
