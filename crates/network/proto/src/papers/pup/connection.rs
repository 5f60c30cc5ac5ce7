//! One end of a PUP connection: rendezvous (opening), a byte stream each way, interrupts, and the end. Input and output are whole packets.

use super::options::PupOptions;
use super::packet::{PupPacket, PupPacketKind, PupPort};
use super::receiver::{PupReceiver, PupStreamItem};
use super::sender::PupSender;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::time::{Duration, Instant};

/// The state of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PupState {
    /// This end has asked for it (RFC) and awaits the answer.
    Opening,
    /// Bytes go both ways.
    Open,
    /// This end has sent its End and awaits the reply.
    Ending,
    /// The other end has sent its End, which is answered as often as it comes.
    Dallying,
    /// It is over; with a reason, unless it ended ordinarily.
    Closed(Option<String>),
}

/// What is next in the incoming stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PupReceived {
    /// Nothing yet.
    Nothing,
    /// Bytes.
    Data(Vec<u8>),
    /// A mark.
    Mark(u8),
    /// No more comes.
    End,
}

/// The most marks that may be unacknowledged.
const MOST_MARKS: usize = 1024;
/// The most interrupts that wait to be sent, and that wait to be read.
const MOST_INTERRUPTS: usize = 16;

/// One end of a connection.
#[derive(Debug)]
pub struct PupConnection {
    options: PupOptions,
    /// The connection's id, also the number of the first byte and of the first interrupt.
    id: u32,
    own: PupPort,
    peer: PupPort,
    /// The listener's port, to which the connection request goes.
    asked_at: PupPort,
    state: PupState,
    sender: PupSender,
    receiver: PupReceiver,
    /// Packets to be sent besides the streams: type, id and data.
    says: VecDeque<(PupPacketKind, u32, Vec<u8>)>,
    /// Codes of interrupts to be sent; the first one may be under way.
    interrupts: VecDeque<u16>,
    /// When the interrupt under way is sent again.
    interrupting: Option<Instant>,
    /// The number of the first interrupt in `interrupts`.
    interrupt_sent: u32,
    /// The number of the next interrupt that the peer will send.
    interrupt_wanted: u32,
    /// Codes of interrupts that arrived and were not taken yet.
    came: VecDeque<u16>,
    /// When the rendezvous or the End is sent again; while dallying, when this end closes.
    again: Option<Instant>,
    /// How often the rendezvous or the End was sent, or an interrupt was repeated.
    times: u32,
    /// The application has asked for the end.
    wants_end: bool,
    /// When the last packet arrived.
    heard: Instant,
}

impl PupConnection {
    fn new(
        now: Instant,
        options: PupOptions,
        id: u32,
        own: PupPort,
        peer: PupPort,
        state: PupState,
    ) -> Self {
        Self {
            options,
            id,
            own,
            peer,
            asked_at: peer,
            state,
            sender: PupSender::new(options, id),
            receiver: PupReceiver::new(options, id),
            says: VecDeque::new(),
            interrupts: VecDeque::new(),
            interrupting: None,
            interrupt_sent: id,
            interrupt_wanted: id,
            came: VecDeque::new(),
            again: None,
            times: 0,
            wants_end: false,
            heard: now,
        }
    }

    /// Asks the listener at a port for a connection. `id` must not have been used recently.
    #[must_use]
    pub fn connect(now: Instant, options: PupOptions, id: u32, own: PupPort, to: PupPort) -> Self {
        let mut new = Self::new(now, options, id, own, to, PupState::Opening);
        new.again = Some(now);
        new
    }

    /// Accepts a requested connection, at a new port `own`; `None` if the packet is not a request.
    #[must_use]
    pub fn accept(
        now: Instant,
        options: PupOptions,
        own: PupPort,
        asked: &PupPacket<'_>,
    ) -> Option<Self> {
        let peer = PupPort::read(asked.data).filter(|_| asked.kind == PupPacketKind::Rfc)?;
        let mut new = Self::new(now, options, asked.id, own, peer, PupState::Open);
        new.asked_at = asked.to;
        new.rendezvous();
        Some(new)
    }

    /// Its state.
    #[must_use]
    pub const fn state(&self) -> &PupState {
        &self.state
    }

    /// Whether it is over.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        matches!(self.state, PupState::Closed(_))
    }

    /// The port of this end.
    #[must_use]
    pub const fn own(&self) -> PupPort {
        self.own
    }

    /// Its id, which both ends share.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Hands over bytes to be sent. Returns how many there was room for; 0 once the connection ends.
    pub fn send(&mut self, bytes: &[u8]) -> usize {
        if self.wants_end || !matches!(self.state, PupState::Opening | PupState::Open) {
            return 0;
        }
        self.sender.send(bytes)
    }

    /// Whether there is room for bytes to be sent.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.sender.room() > 0
    }

    /// Sends a mark after all bytes so far. It needs no room in the send buffer, since the peer may wait for the mark that follows an
    /// interrupt; but at most `MOST_MARKS` may be unacknowledged.
    pub fn mark(&mut self, kind: u8) {
        let takes = !self.wants_end && self.sender.marks() < MOST_MARKS;
        if takes && matches!(self.state, PupState::Opening | PupState::Open) {
            self.sender.mark(kind);
        }
    }

    /// Sends an interrupt, which overtakes all bytes.
    pub fn interrupt(&mut self, code: u16) {
        if self.interrupts.len() < MOST_INTERRUPTS {
            self.interrupts.push_back(code);
        }
    }

    /// Takes what is next in the stream: a mark, or at most `most` bytes.
    pub fn receive(&mut self, most: usize) -> PupReceived {
        match self.receiver.take(most) {
            PupStreamItem::Data(data) => PupReceived::Data(data),
            PupStreamItem::Mark(kind) => PupReceived::Mark(kind),
            PupStreamItem::Nothing
                if matches!(self.state, PupState::Dallying | PupState::Closed(_)) =>
            {
                PupReceived::End
            }
            PupStreamItem::Nothing => PupReceived::Nothing,
        }
    }

    /// Bytes that can be read before the next mark.
    #[cfg(test)]
    pub(super) fn readable(&self) -> usize {
        self.receiver.readable()
    }

    /// Takes an interrupt that came.
    pub fn take_interrupt(&mut self) -> Option<u16> {
        self.came.pop_front()
    }

    /// Ends the connection once all bytes are acknowledged. Data that the other end has not sent yet is lost.
    pub const fn end(&mut self) {
        self.wants_end = true;
    }

    /// Ends the connection at once, with a reason for the other end.
    pub fn abort(&mut self, why: &str) {
        if !self.is_closed() {
            self.says.push_back((
                PupPacketKind::Abort,
                self.id,
                [&[0, 0], why.as_bytes()].concat(),
            ));
            self.state = PupState::Closed(Some(why.into()));
        }
    }

    /// Handles a packet that has arrived.
    pub fn handle(&mut self, now: Instant, packet: &PupPacket<'_>) {
        // Packets to another port, or, once the peer's is known, from another socket, belong to another connection.
        let is_other = packet.to != self.own
            || (self.state != PupState::Opening && packet.from.socket != self.peer.socket);
        if self.is_closed()
            || (packet.kind != PupPacketKind::Rfc
                && packet.kind != PupPacketKind::Abort
                && is_other)
        {
            return;
        }
        self.heard = now;
        match packet.kind {
            PupPacketKind::Rfc if packet.id == self.id => self.met(packet),
            PupPacketKind::Abort if packet.id == self.id => {
                let why: String = String::from_utf8_lossy(packet.data.get(2..).unwrap_or_default())
                    .chars()
                    .take(200)
                    .collect();
                self.state = PupState::Closed(Some(why));
            }
            // An Error says that nobody has the port. It is believed only if it quotes the header of a packet of this connection.
            PupPacketKind::Error
                if packet.data.get(8..20)
                    == Some(&[self.peer.bytes(), self.own.bytes()].concat()) =>
            {
                let why = (self.state != PupState::Ending).then(|| "nothing answers".into());
                self.state = PupState::Closed(why);
            }
            _ if self.state == PupState::Opening => {}
            PupPacketKind::Data
            | PupPacketKind::AData
            | PupPacketKind::Mark
            | PupPacketKind::AMark => {
                let is_mark = matches!(packet.kind, PupPacketKind::Mark | PupPacketKind::AMark);
                let asks = matches!(packet.kind, PupPacketKind::AData | PupPacketKind::AMark);
                self.receiver
                    .receive_data(packet.id, packet.data, is_mark, asks);
            }
            PupPacketKind::Ack => self.sender.answered(now, packet.id, packet.data),
            PupPacketKind::Interrupt => self.interrupted(packet),
            PupPacketKind::InterruptReply
                if packet.id == self.interrupt_sent && self.interrupting.is_some() =>
            {
                self.interrupting = None;
                self.interrupt_sent = self.interrupt_sent.wrapping_add(1);
                self.interrupts.pop_front();
                self.times = 0;
            }
            PupPacketKind::End if packet.id == self.id => {
                self.says
                    .push_back((PupPacketKind::EndReply, self.id, Vec::new()));
                // Repeated Ends do not prolong the time that this end stays.
                if self.state != PupState::Dallying {
                    self.again = Some(now + PupOptions::DALLY);
                }
                self.state = PupState::Dallying;
            }
            PupPacketKind::EndReply if packet.id == self.id && self.state == PupState::Ending => {
                self.says
                    .push_back((PupPacketKind::EndReply, self.id, Vec::new()));
                self.state = PupState::Closed(None);
            }
            PupPacketKind::EndReply if packet.id == self.id && self.state == PupState::Dallying => {
                self.state = PupState::Closed(None);
            }
            _ => {}
        }
    }

    /// Handles an RFC: the answer to the own request, or a repetition of the peer's request.
    fn met(&mut self, packet: &PupPacket<'_>) {
        let Some(peer) = PupPort::read(packet.data) else {
            return;
        };
        if self.state == PupState::Opening {
            (self.peer, self.state) = (peer, PupState::Open);
            (self.again, self.times) = (None, 0);
            // The probe shows the peer that its answer has arrived; its Ack tells this end how much it may send.
            self.sender.probe();
        } else if packet.to == self.asked_at && peer == self.peer {
            self.rendezvous();
        }
    }

    /// Sends an RFC with this end's port.
    fn rendezvous(&mut self) {
        self.says
            .push_back((PupPacketKind::Rfc, self.id, self.own.bytes().to_vec()));
    }

    /// Handles an interrupt; a repeated one is only answered.
    fn interrupted(&mut self, packet: &PupPacket<'_>) {
        if packet.id == self.interrupt_wanted && self.came.len() < MOST_INTERRUPTS {
            let code = packet
                .data
                .first_chunk()
                .map_or(0, |code| u16::from_be_bytes(*code));
            self.came.push_back(code);
            self.interrupt_wanted = packet.id.wrapping_add(1);
        }
        if packet.id.wrapping_add(1) == self.interrupt_wanted {
            self.says
                .push_back((PupPacketKind::InterruptReply, packet.id, Vec::new()));
        }
    }

    /// The bytes of the next packet to be sent.
    pub fn poll(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.timers(now);
        if let Some((kind, id, data)) = self.says.pop_front() {
            return Some(self.packet(kind, id, &data));
        }
        if let Some((id, answer)) = self.receiver.poll() {
            return Some(self.packet(PupPacketKind::Ack, id, &answer));
        }
        if self.state == PupState::Open {
            let piece = self.sender.poll(now);
            if self.sender.is_given_up() {
                self.abort("no answer came");
                return self.poll(now);
            }
            return piece.map(|piece| self.packet(piece.kind, piece.id, &piece.data));
        }
        None
    }

    /// Does what is due by now.
    fn timers(&mut self, now: Instant) {
        let is_due = self.again.is_some_and(|at| now >= at);
        match self.state {
            PupState::Opening if is_due => self.once_more(now, Self::rendezvous),
            PupState::Ending if is_due => self.once_more(now, |own| {
                own.says.push_back((PupPacketKind::End, own.id, Vec::new()))
            }),
            PupState::Dallying if is_due => self.state = PupState::Closed(None),
            PupState::Open
                if self.wants_end && self.sender.is_empty() && self.interrupts.is_empty() =>
            {
                (self.state, self.times) = (PupState::Ending, 0);
                self.once_more(now, |own| {
                    own.says.push_back((PupPacketKind::End, own.id, Vec::new()))
                });
            }
            PupState::Open => self.interrupts_due(now),
            _ => {}
        }
        if self.state == PupState::Open
            && let Some(idle) = self.options.idle
            && now.since(self.heard) >= idle
        {
            self.heard = now;
            self.sender.probe();
        }
    }

    /// Sends the first interrupt, or sends it again after a timeout.
    fn interrupts_due(&mut self, now: Instant) {
        let Some(code) = self.interrupts.front().copied() else {
            return;
        };
        if self.interrupting.is_none_or(|at| now >= at) {
            self.times += u32::from(self.interrupting.is_some());
            self.interrupting = Some(now + self.patience());
            self.says.push_back((
                PupPacketKind::Interrupt,
                self.interrupt_sent,
                code.to_be_bytes().to_vec(),
            ));
            if self.times > self.options.tries {
                self.abort("no answer came");
            }
        }
    }

    /// Sends the rendezvous or the End again, or gives up after [`PupOptions::tries`].
    fn once_more(&mut self, now: Instant, say: impl FnOnce(&mut Self)) {
        if self.times > self.options.tries {
            self.state = PupState::Closed(Some("no answer came".into()));
            return;
        }
        self.again = Some(now + self.patience());
        self.times += 1;
        say(self);
    }

    /// How long to wait for the answer before sending again; doubles up to 8 s.
    fn patience(&self) -> Duration {
        let doubled = PupOptions::FIRST_TIMEOUT.0 << self.times.min(3);
        self.options.fixed_timeout.unwrap_or(Duration(doubled))
    }

    fn packet(&self, kind: PupPacketKind, id: u32, data: &[u8]) -> Vec<u8> {
        // The listener answers an RFC from its listening port; the new port is in the data.
        let from = if kind == PupPacketKind::Rfc && self.state != PupState::Opening {
            self.asked_at
        } else {
            self.own
        };
        PupPacket {
            kind,
            id,
            to: self.peer,
            from,
            data,
        }
        .bytes(self.options.checked)
    }

    /// When the earliest timer is due; `None` if there is none.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        if self.is_closed() {
            return None;
        }
        let idle = self
            .options
            .idle
            .filter(|_| self.state == PupState::Open)
            .map(|idle| self.heard + idle);
        let sender = self
            .sender
            .deadline()
            .filter(|_| self.state == PupState::Open);
        let interrupt = self.interrupting.filter(|_| self.state == PupState::Open);
        [self.again, sender, interrupt, idle]
            .into_iter()
            .flatten()
            .min()
    }
}
