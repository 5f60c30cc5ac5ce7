//! The TCP machine: one end of a connection, the application's operations, and the verbs `handle`, `poll`, `deadline`.

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
/// The least size of a send buffer that grows with the window, in bytes.
const FIRST_SEND_BUFFER: u64 = 16 << 10;

/// The states of a connection (RFC 9293).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpState {
    /// No connection.
    Closed,
    /// Waits for a SYN.
    Listen,
    /// Has sent a SYN.
    SynSent,
    /// Has answered a SYN.
    SynReceived,
    /// Both sides may send.
    Established,
    /// This end has closed its half.
    FinWait1,
    /// This end has closed its half, and the peer has acknowledged that.
    FinWait2,
    /// The peer has closed its half.
    CloseWait,
    /// Both ends have closed their halves at the same time.
    Closing,
    /// Both ends have closed their halves, the peer first.
    LastAck,
    /// Both halves are closed and acknowledged; late segments are still answered.
    TimeWait,
}

/// The result of taking received data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpReceived {
    /// This many bytes were taken, at least one.
    Bytes(u64),
    /// There is nothing to take yet.
    Nothing,
    /// The peer has closed its half, and all data was taken.
    End,
    /// The connection was reset or given up.
    Broken,
}

/// Facts about a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TcpFacts {
    /// Retransmitted segments.
    pub retransmits: u64,
    /// The smoothed round trip time; zero before the first sample.
    pub rtt: Duration,
    /// The mean deviation of the round trip time; zero before the first sample.
    pub rtt_deviation: Duration,
    /// The least round trip time of the last minutes.
    pub least_rtt: Duration,
    /// The congestion window, in segments.
    pub window: u32,
    /// The slow start threshold, in segments.
    pub threshold: u32,
    /// Bytes of data in a full segment.
    pub mss: u32,
    /// Time with unsent data or data in flight.
    pub busy: Duration,
    /// The part of `busy` in which the peer's window held the sender back.
    pub receive_window_limited: Duration,
    /// The part of `busy` in which the send buffer was full and all of it in flight.
    pub send_buffer_limited: Duration,
    /// The rest of `busy`, by what kept the sender from sending more.
    pub spent: TcpLimitTimes,
    /// Bytes that the peer has acknowledged.
    pub bytes_acked: u64,
    /// Bytes that arrived in order.
    pub bytes_received: u64,
    /// The present memory of the send buffer, in bytes ([`socket_memory`]).
    pub send_buffer: u64,
    /// The present memory of the receive buffer, in bytes ([`socket_memory`]).
    pub receive_buffer: u64,
    /// Bytes sent and neither acknowledged nor marked as lost.
    pub in_flight: u64,
    /// Bytes that the application has written and that have not been sent.
    pub unsent: u64,
    /// Bytes that have arrived in order and were not taken by the application.
    pub waiting: u64,
    /// The window that the peer offers, in bytes.
    pub peer_window: u64,
    /// Packets dropped because no packet buffer was free ([`TcpOptions::packet_buffers`]).
    pub dropped: u64,
}

/// One end of a TCP connection.
#[derive(Clone, Debug)]
pub struct TcpConnection {
    pub(super) options: TcpOptions,
    pub(super) state: TcpState,
    /// The own port and the peer's.
    pub(super) ports: (u16, u16),
    pub(super) sender: TcpSender,
    pub(super) receiver: TcpReceiver,
    /// Whether both sides use window scaling.
    pub(super) scaled: bool,
    /// Whether both sides use timestamps.
    pub(super) timestamps: bool,
    /// How many times the SYN or its answer was sent.
    pub(super) syns: u32,
    /// When the SYN or its answer was sent first.
    pub(super) syn_sent: Instant,
    /// When the SYN or its answer is sent again.
    pub(super) handshake: Option<Instant>,
    /// When TIME-WAIT ends.
    pub(super) end: Option<Instant>,
    /// When the last acceptable segment arrived.
    pub(super) last_received: Instant,
    /// A reset has to be sent: its sequence number, and what it acknowledges.
    pub(super) reset: Option<(u32, Option<u32>)>,
    /// The connection was reset or given up.
    pub(super) broken: bool,
    /// A probe that has to be sent although a window may be full.
    pub(super) push: Option<Push>,
    /// Data was sent since the use of the congestion window was last checked.
    pub(super) sent: bool,
    /// The last write found too little room in the send buffer.
    pub(super) wants_room: bool,
    /// Unsent data is sent without waiting for Nagle's algorithm, as far as the windows allow: a write found no room.
    pub(super) pushes: bool,
    /// There may be a segment to send: [`Self::poll`] has to look.
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
        // `mss_of` leaves at least 28 bytes, so the option fits.
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

    /// Bytes of data and options in a full segment of packets of `mtu` bytes.
    pub(super) const fn mss_of(mtu: u32) -> u32 {
        // RFC 791: every network forwards packets of 68 bytes unfragmented.
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

    /// Opens a connection by a SYN. `ports` are the own port and the peer's, `first` is the sequence number of the SYN.
    #[must_use]
    pub fn connect(now: Instant, options: TcpOptions, ports: (u16, u16), first: u32) -> Self {
        Self::new(options, ports, first, TcpState::SynSent, now)
    }

    /// Waits for a connection at a port; `first` is the sequence number of the SYN that will answer.
    #[must_use]
    pub fn listen(now: Instant, options: TcpOptions, port: u16, first: u32) -> Self {
        Self::new(options, (port, 0), first, TcpState::Listen, now)
    }

    /// The state of the connection.
    #[must_use]
    pub const fn state(&self) -> TcpState {
        self.state
    }

    /// Bytes that the application can take.
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

    /// The free bytes of a send buffer that grows with the window.
    fn room(&self) -> u64 {
        self.send_buffer().saturating_sub(self.sender.held())
    }

    /// The size of the send buffer in bytes: fixed by the options, or two congestion windows within bounds.
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

    /// The state of a send buffer with a fixed size or a bound of unsent bytes; `None` for one that only grows with the
    /// window.
    fn bounded_buffer(&self) -> Option<SendBuffer> {
        let (limit, description, lowat) =
            match (self.options.send_buffer, self.options.notsent_lowat) {
                (None, None) => return None,
                (Some(bytes), lowat) => (
                    socket_memory::send_memory(bytes),
                    send_buffer::DESCRIPTION,
                    lowat,
                ),
                // A buffer that grows with the window has room for the descriptions of all its blocks.
                (None, lowat) => (self.send_buffer(), 0, lowat),
            };
        let sender = &self.sender;
        let (segment, window) = (u64::from(sender.mss), u64::from(sender.congestion.window));
        let (smoothed, least) = (
            sender.rtt.smoothed(),
            sender.rtt.minimum().unwrap_or(Duration::ZERO),
        );
        // As `tcp_update_pacing_rate` of Linux: the last doubling of slow start is paced as what
        // follows it.
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

    /// How many of `wanted` bytes the send buffer accepts.
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

    /// Writes bytes of the application. Returns how many there was room for; `None` when the connection is broken or
    /// its half closed.
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

    /// Takes at most `most` bytes that have arrived in order.
    pub fn receive(&mut self, now: Instant, most: u64) -> TcpReceived {
        match self.receiver.take(now, most) {
            // Only where `most` is 0.
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

    /// Closes the own half of the connection: a FIN follows the data.
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

    /// Turns Nagle's algorithm off: small segments are sent at once from now on.
    pub fn set_nodelay(&mut self) {
        self.sender.nodelay = true;
        self.output_pending = true;
    }

    /// Whether Nagle's algorithm is off.
    #[must_use]
    pub const fn nodelay(&self) -> bool {
        self.sender.nodelay
    }

    /// The options of the connection.
    #[must_use]
    pub const fn options(&self) -> &TcpOptions {
        &self.options
    }

    /// The memory of the receive buffer in bytes: as requested, or as its window needs.
    fn receive_memory(&self) -> u64 {
        let mss = self.sender.mss;
        let needed = |window| socket_memory::for_window(window, mss.into());
        self.options.receive_buffer.map_or_else(
            || needed(self.receiver.tuning.clamp),
            socket_memory::receive_memory,
        )
    }

    /// Ends the connection and stops all timers; `broken` if it did not end in order.
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

    /// Notes what keeps the sender from sending more at this moment, for the time accounting.
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
            // Place 0 is the SYN, and a FIN behind `queued` is not data.
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

    /// The offset in the own stream of the data of a segment that this end has sent: the number of bytes before it.
    #[must_use]
    #[inline]
    pub const fn place(&self, segment: &TcpSegment) -> u64 {
        match self.sender.origin.place(segment.sequence, self.sender.next) {
            Some(place) => place.saturating_sub(1),
            None => 0,
        }
    }

    /// The next segment to send now; `None` when there is no more.
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
