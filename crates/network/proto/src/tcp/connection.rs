//! The machine: one end of a connection, the application's operations, and the verbs `handle`, `poll`, `deadline`.

use super::buffers::TcpReceiveBuffers;
use super::event::TcpEventLog;
use super::loss_recovery::Push;
use super::options::TcpOptions;
use super::receiver::TcpReceiver;
use super::segment::{IPV4_HEADER, TCP_HEADER, TIMESTAMPS, TcpSegment};
use super::send_buffer::{self, SendBuffer};
use super::sender::{TcpRecoveryPhase, TcpSender};
use super::sequence_numbers::TcpSequenceOrigin;
use super::time_accounting::{TcpLimitTimes, TcpSendLimit};
use super::window::Tuning;
use alloc::boxed::Box;
use stackline_core::socket_memory;
use stackline_core::time::{Duration, Instant};

/// Largest send buffer by default, in bytes.
pub(super) const SEND_BUFFER: u64 = 4 << 20;
/// What a send buffer takes at first.
const FIRST_SEND_BUFFER: u64 = 16 << 10;

/// The states of RFC 9293.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpState {
    /// No connection.
    Closed,
    /// It waits for a SYN.
    Listen,
    /// It has sent a SYN.
    SynSent,
    /// It has answered a SYN.
    SynReceived,
    /// Both sides may send.
    Established,
    /// It has closed its half.
    FinWait1,
    /// It has closed its half, and the peer has acknowledged it.
    FinWait2,
    /// The peer has closed its half.
    CloseWait,
    /// Both have, at once.
    Closing,
    /// Both have, the peer first.
    LastAck,
    /// Both have, acknowledged; late segments are still answered.
    TimeWait,
}

/// Why it has to be polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpPollCause {
    /// Something leaves now.
    Send,
    /// What was sent is not acknowledged.
    Retransmission,
    /// The end of what was sent may be lost.
    TailProbe,
    /// What seems to be missing may only be late.
    Reordering,
    /// The peer's window may have opened.
    WindowProbe,
    /// An acknowledgement was kept back.
    DelayedAcknowledgement,
    /// The connection ends, or is given up.
    End,
}

/// What there was to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpReceived {
    /// So many bytes, at least one.
    Bytes(u64),
    /// Nothing yet.
    Nothing,
    /// The peer has closed its half and everything is taken.
    End,
    /// The connection was reset or given up.
    Broken,
}

/// Facts about a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TcpFacts {
    /// Segments sent again.
    pub retransmits: u64,
    /// Smoothed round trip time and its mean deviation; zero before the first sample.
    pub rtt: Duration,
    /// See `rtt`.
    pub rtt_deviation: Duration,
    /// The least of the last minutes.
    pub least_rtt: Duration,
    /// Congestion window in segments.
    pub window: u32,
    /// Slow start ends here, in segments.
    pub threshold: u32,
    /// Bytes of data in a full segment.
    pub mss: u32,
    /// Time with unsent data or data in flight.
    pub busy: Duration,
    /// Of it, held back by the peer's window.
    pub receive_window_limited: Duration,
    /// Of it, limited by a full send buffer that was all in flight.
    pub send_buffer_limited: Duration,
    /// The rest of it, by what kept the sender from sending more.
    pub spent: TcpLimitTimes,
    /// Bytes that the peer has acknowledged.
    pub bytes_acked: u64,
    /// Bytes that arrived in order.
    pub bytes_received: u64,
    /// Memory of the send buffer now, and of the receive buffer, in bytes ([`socket_memory`]).
    pub send_buffer: u64,
    /// See `send_buffer`.
    pub receive_buffer: u64,
    /// Bytes sent and neither acknowledged nor marked as lost.
    pub in_flight: u64,
    /// Bytes written that have not been sent.
    pub unsent: u64,
    /// Bytes that have arrived and were not taken.
    pub waiting: u64,
    /// The peer's window.
    pub peer_window: u64,
    /// Packets that found no free buffer, where buffers are packets.
    pub dropped: u64,
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct TcpConnection {
    pub(super) options: TcpOptions,
    pub(super) state: TcpState,
    pub(super) ports: (u16, u16),
    pub(super) sender: TcpSender,
    pub(super) receiver: TcpReceiver,
    /// Whether both sides use window scaling and timestamps.
    pub(super) scaled: bool,
    pub(super) timestamps: bool,
    /// Times the SYN or its answer left.
    pub(super) syns: u32,
    pub(super) syn_sent: Instant,
    /// When the SYN leaves again, when TIME-WAIT ends.
    pub(super) handshake: Option<Instant>,
    pub(super) end: Option<Instant>,
    pub(super) last_received: Instant,
    /// A reset has to leave, with that number.
    pub(super) reset: Option<(u32, Option<u32>)>,
    pub(super) broken: bool,
    pub(super) push: Option<Push>,
    /// Data has left since the sender's window was looked at.
    pub(super) sent: bool,
    pub(super) wants_room: bool,
    /// The last write leaves now, even if small, as far as the windows allow.
    pub(super) pushes: bool,
    /// Something may have to leave.
    pub(super) output_pending: bool,
    /// Recorded events, if tracing is enabled.
    pub(super) trace: Option<Box<TcpEventLog>>,
}

impl TcpConnection {
    fn new(
        options: TcpOptions,
        ports: (u16, u16),
        first: u32,
        state: TcpState,
        now: Instant,
    ) -> Self {
        let mss = Self::mss_of(options.mtu) - TIMESTAMPS;
        let mut sender = TcpSender::new(TcpSequenceOrigin(first), &options, mss);
        sender.congestion.begin(now, 0);
        let offered = options.receive_buffer.map(|asked| {
            socket_memory::offered_window(socket_memory::receive_memory(asked), mss.into())
        });
        let offered = options
            .packet_buffers
            .map(|plan| TcpReceiveBuffers::new(plan, mss).most())
            .or(offered);
        let tuning = Tuning::new(offered, mss);
        let scale = Tuning::scale(offered);
        Self {
            options,
            state,
            ports,
            sender,
            receiver: TcpReceiver::new(TcpSequenceOrigin(0), tuning, scale, mss, &options),
            scaled: true,
            timestamps: true,
            syns: 0,
            syn_sent: now,
            handshake: None,
            end: None,
            last_received: now,
            reset: None,
            broken: false,
            push: None,
            sent: false,
            wants_room: false,
            pushes: false,
            output_pending: true,
            trace: None,
        }
    }

    /// Bytes of a full segment, its options among them.
    pub(super) const fn mss_of(mtu: u32) -> u32 {
        let least = 68;
        let mtu = if mtu < least {
            least
        } else if mtu > 65_535 {
            65_535
        } else {
            mtu
        };
        mtu - IPV4_HEADER - TCP_HEADER
    }

    /// Asks for a connection: from the own port to the peer's, `first` is the number of its SYN.
    #[must_use]
    pub fn connect(now: Instant, options: TcpOptions, ports: (u16, u16), first: u32) -> Self {
        Self::new(options, ports, first, TcpState::SynSent, now)
    }

    /// Waits for a connection at a port; `first` is the number of the SYN that will answer.
    #[must_use]
    pub fn listen(now: Instant, options: TcpOptions, port: u16, first: u32) -> Self {
        Self::new(options, (port, 0), first, TcpState::Listen, now)
    }

    /// Where it is in its life.
    #[must_use]
    pub const fn state(&self) -> TcpState {
        self.state
    }

    /// Bytes that can be taken.
    #[must_use]
    pub fn readable(&self) -> u64 {
        self.receiver.waiting()
    }

    /// Whether there is enough room to wake the writer: a third of the send buffer, as in Linux.
    #[must_use]
    pub fn has_room(&self) -> bool {
        match self.bounded_buffer() {
            Some(buffer) => buffer.has_room(),
            None => self.room() > 0 && self.room() * 3 >= self.send_buffer(),
        }
    }

    /// Bytes that there is room for in a send buffer that grows with the window.
    fn room(&self) -> u64 {
        self.send_buffer().saturating_sub(self.sender.held())
    }

    fn send_buffer(&self) -> u64 {
        self.options.send_buffer.map_or_else(
            || {
                let windows =
                    u64::from(self.sender.congestion.window) * u64::from(self.sender.mss) * 2;
                windows.clamp(FIRST_SEND_BUFFER, SEND_BUFFER)
            },
            socket_memory::send_memory,
        )
    }

    /// A send buffer of a fixed size, or one that takes little that has not left.
    fn bounded_buffer(&self) -> Option<SendBuffer> {
        let (limit, description, lowat) =
            match (self.options.send_buffer, self.options.notsent_lowat) {
                (None, None) => return None,
                (Some(bytes), lowat) => (
                    socket_memory::send_memory(bytes),
                    send_buffer::DESCRIPTION,
                    lowat,
                ),
                // One that grows with the window has room for the descriptions of all of it.
                (None, lowat) => (self.send_buffer(), 0, lowat),
            };
        let sender = &self.sender;
        let (segment, window) = (u64::from(sender.mss), u64::from(sender.congestion.window));
        let (smoothed, least) = (
            sender.rtt.smoothed(),
            sender.rtt.minimum().unwrap_or(Duration::ZERO),
        );
        let opens = sender.congestion.window < sender.congestion.threshold / 2;
        let allowed = window.saturating_sub(sender.in_flight().into()) * segment;
        let unsent = sender.queued.saturating_sub(sender.next.max(1));
        Some(SendBuffer {
            limit,
            description,
            lowat: lowat.unwrap_or(u64::MAX),
            segment,
            piece: send_buffer::piece(window, segment, opens, smoothed, least),
            may_leave: allowed
                .min(sender.edge().saturating_sub(sender.next))
                .saturating_sub(unsent),
            held: sender.held(),
            unsent,
            last: sender.last_block,
        })
    }

    /// How many of so many bytes the send buffer takes.
    fn take(&mut self, wanted: u64) -> u64 {
        let Some(buffer) = self.bounded_buffer() else {
            return wanted.min(self.room());
        };
        let (taken, last) = buffer.take(wanted);
        self.sender.last_block = last;
        taken
    }

    /// Whether the application may still write.
    const fn may_send(&self) -> bool {
        let open = matches!(
            self.state,
            TcpState::SynSent | TcpState::SynReceived | TcpState::Established | TcpState::CloseWait
        );
        open && !self.sender.fin
    }

    /// Hands over bytes; how many there was room for. `None` when the connection is broken or its half closed.
    pub fn send(&mut self, now: Instant, bytes: u64) -> Option<u64> {
        if !self.may_send() {
            return None;
        }
        let accepted = self.take(bytes);
        if accepted > 0 {
            self.sender.restart_after_idle(now);
            self.sender.queued += accepted;
            self.output_pending = true;
        }
        self.wants_room = accepted < bytes;
        self.pushes |= self.wants_room && accepted > 0;
        self.account_time(now);
        Some(accepted)
    }

    /// Takes at most so many bytes.
    pub fn receive(&mut self, now: Instant, most: u64) -> TcpReceived {
        match self.receiver.take(now, most) {
            0 if self.receiver.waiting() > 0 => TcpReceived::Nothing,
            0 if self.receiver.ended() => TcpReceived::End,
            0 if self.broken || self.state == TcpState::Closed => TcpReceived::Broken,
            0 => TcpReceived::Nothing,
            n => {
                self.output_pending |= self.receiver.now;
                TcpReceived::Bytes(n)
            }
        }
    }

    /// Closes the own half: a FIN follows the data.
    pub fn close(&mut self) {
        self.output_pending = true;
        match self.state {
            TcpState::Listen | TcpState::SynSent => self.terminate(false),
            TcpState::SynReceived | TcpState::Established => {
                self.sender.fin = true;
                self.state = TcpState::FinWait1;
            }
            TcpState::CloseWait => {
                self.sender.fin = true;
                self.state = TcpState::LastAck;
            }
            _ => {}
        }
    }

    /// Aborts the connection: sends a reset.
    pub fn abort(&mut self) {
        if !matches!(
            self.state,
            TcpState::Closed | TcpState::Listen | TcpState::SynSent | TcpState::TimeWait
        ) {
            self.reset = Some((self.sender.origin.wire(self.sender.next), None));
        }
        self.terminate(true);
    }

    /// Small segments leave at once from now on.
    pub fn set_nodelay(&mut self) {
        self.sender.nodelay = true;
        self.output_pending = true;
    }

    /// Whether small segments leave at once.
    #[must_use]
    pub const fn nodelay(&self) -> bool {
        self.sender.nodelay
    }

    /// Its options.
    #[must_use]
    pub const fn options(&self) -> &TcpOptions {
        &self.options
    }

    /// Memory of the receive buffer: what was asked for, or what its window needs.
    fn receive_memory(&self) -> u64 {
        let mss = self.sender.mss;
        let needed = |window| socket_memory::for_window(window, mss.into());
        self.options.receive_buffer.map_or_else(
            || needed(self.receiver.tuning.clamp),
            socket_memory::receive_memory,
        )
    }

    /// Ends the connection.
    pub(super) fn terminate(&mut self, broken: bool) {
        self.state = TcpState::Closed;
        self.broken |= broken;
        self.sender.timer = None;
        self.sender.board.clear();
        (self.handshake, self.end, self.push) = (None, None, None);
        self.receiver.now = false;
        (self.receiver.delayed, self.receiver.gathering) = (None, None);
        self.output_pending = true;
    }

    /// Takes note of what holds the sender up.
    pub(super) fn account_time(&mut self, now: Instant) {
        let sender = &mut self.sender;
        let limit = if sender.una >= sender.queued || sender.una == 0 {
            TcpSendLimit::Idle
        } else if matches!(
            sender.phase,
            TcpRecoveryPhase::Recovery | TcpRecoveryPhase::Loss
        ) {
            TcpSendLimit::Recovery
        } else if sender.next < sender.queued {
            sender.limit_of_unsent()
        } else if self.wants_room {
            TcpSendLimit::SendBuffer
        } else {
            TcpSendLimit::Application
        };
        sender.times.set(limit, now);
    }

    /// Facts about the connection.
    #[must_use]
    pub fn facts(&self, now: Instant) -> TcpFacts {
        let sender = &self.sender;
        TcpFacts {
            retransmits: sender.retransmits,
            rtt: sender.rtt.smoothed(),
            rtt_deviation: sender.rtt.deviation(),
            least_rtt: sender.rtt.minimum().unwrap_or(Duration::ZERO),
            window: sender.congestion.window,
            threshold: sender.congestion.threshold,
            mss: sender.mss,
            busy: sender.times.busy(now),
            receive_window_limited: sender.times.receive_window(now),
            send_buffer_limited: sender.times.send_buffer(now),
            spent: sender.times.spent(now),
            bytes_acked: sender.una.clamp(1, sender.queued) - 1,
            bytes_received: self.receiver.bytes,
            send_buffer: self.send_buffer(),
            receive_buffer: self.receive_memory(),
            in_flight: u64::from(sender.in_flight()) * u64::from(sender.mss),
            unsent: sender.queued.saturating_sub(sender.next.max(1)),
            waiting: self.receiver.waiting(),
            peer_window: sender.window,
            dropped: self
                .receiver
                .buffers
                .as_ref()
                .map_or(0, TcpReceiveBuffers::dropped),
        }
    }

    /// Handles an arriving segment; [`Self::poll`] yields the answers.
    pub fn handle(&mut self, now: Instant, segment: &TcpSegment) {
        self.input(now, segment);
        self.output_pending = true;
        self.account_time(now);
        self.emit_changes();
    }

    /// Where in the own stream a segment of it lies: bytes before its first one, since the connection began.
    #[must_use]
    #[inline]
    pub const fn place(&self, segment: &TcpSegment) -> u64 {
        match self.sender.origin.place(segment.sequence, self.sender.next) {
            Some(place) => place.saturating_sub(1),
            None => 0,
        }
    }

    /// The next segment that leaves now, until there is none.
    pub fn poll(&mut self, now: Instant) -> Option<TcpSegment> {
        self.handle_timers(now);
        if !self.output_pending {
            return None;
        }
        let segment = self.output(now);
        if segment.is_none() {
            self.output_pending = false;
            self.account_time(now);
            self.emit_changes();
        }
        segment
    }

    /// What a test may check after every step.
    #[cfg(test)]
    pub(super) fn check(&self) {
        if self.state != TcpState::Closed && self.sender.una > 0 {
            self.sender.board.check(self.sender.una, self.sender.next);
        }
    }
}
