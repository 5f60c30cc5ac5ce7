//! Options of a TCP connection, with the defaults of Linux.

use super::congestion::{Algorithm, INITIAL_WINDOW};
use super::rtt_and_timeout::Timeouts;
use stackline_core::time::Duration;

/// How a sender finds and repairs losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// By selective acknowledgements and send times (RFC 2018, RFC 8985, RFC 6937).
    #[default]
    Linux,
    /// By counting duplicate acknowledgements; repairs one loss a window without a time-out.
    Reno,
}

/// Buffers of packets in which a receiver keeps what its application has not read (Lantz, Nowicki and Theimer 1985, section 7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketBuffers {
    /// The number of buffers that hold one packet of any size each.
    pub packets: u32,
    /// The number of further buffers, for packets of at most [`PacketBuffers::SMALL`] bytes.
    pub small: u32,
    /// Bytes that a packet is expected to carry, at most those of a full segment; `None`: a full segment. The offered
    /// window is computed with it.
    pub expected: Option<u32>,
    /// When no buffer is free, packets that follow each other in the stream are moved together.
    pub compaction: bool,
}

impl PacketBuffers {
    /// Bytes of data that fit into a small buffer.
    pub const SMALL: u32 = 128;
}

/// Options of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOptions {
    /// The congestion control algorithm.
    pub congestion: Algorithm,
    /// How losses are found and repaired; with [`Recovery::Reno`] nothing is acknowledged selectively.
    pub recovery: Recovery,
    /// Small segments are not held back (TCP_NODELAY: no Nagle algorithm).
    pub nodelay: bool,
    /// Asks for explicit congestion notification (ECN), and grants it to a peer that asks.
    pub ecn: bool,
    /// The largest IPv4 packet that this end sends or accepts, in bytes.
    pub mtu: u32,
    /// The requested send buffer (SO_SNDBUF) in bytes, for data that is not acknowledged
    /// ([`stackline_core::socket_memory::send_memory`]). `None`: as many bytes as two windows hold, up to 4 MiB.
    pub send_buffer: Option<u64>,
    /// No more data is accepted while this many bytes have not been sent (TCP_NOTSENT_LOWAT); a waiting writer is woken
    /// at half of them.
    pub notsent_lowat: Option<u64>,
    /// The requested receive buffer (SO_RCVBUF) in bytes, a part of which is offered as window
    /// ([`stackline_core::socket_memory::offered_window`]). `None`: the window grows as the reader needs, from 64 KiB
    /// up to 6 MiB.
    pub receive_buffer: Option<u64>,
    /// Arrived data is kept in packet buffers instead of bytes, and the window is computed from the free buffers.
    pub packet_buffers: Option<PacketBuffers>,
    /// How long the acknowledgement of a single segment is delayed to wait for another one; zero: not at all.
    pub delayed_ack: Duration,
    /// Delayed acknowledgements leave at ticks of a free-running timer with this period (4.2BSD: 200 ms) and the phase
    /// `timer_phase`; zero: after `delayed_ack`.
    pub ack_tick: Duration,
    /// The lower bound of retransmission timeouts. With Linux's rule it bounds the variation term of the round trip;
    /// with the classic rule the whole timeout.
    pub least_timeout: Duration,
    /// The retransmission timeout of a SYN, and before a round trip was measured.
    pub first_timeout: Duration,
    /// A constant retransmission timeout, whatever round trips take and however many occur in a row, as before timeouts
    /// followed the round trip (Lantz, Nowicki and Theimer 1985, section 7.2).
    pub fixed_timeout: Option<Duration>,
    /// Windows are offered and used however small they are, as before RFC 813 (Lantz, Nowicki and Theimer 1985, section
    /// 7.3): each read opens one.
    pub silly_windows: bool,
    /// Retransmission timeouts are counted in ticks of a free-running timer with this period (4.3BSD: 500 ms): they are
    /// rounded up and end at a tick; zero: they are exact.
    pub timer_tick: Duration,
    /// The phase of both free-running timers: when they ticked first.
    pub timer_phase: Duration,
    /// The initial congestion window in segments, 10 by default (RFC 6928); also the least window after a pause.
    pub first_window: u32,
    /// The first segments with data, and those after a pause, are acknowledged one by one and at once (Linux's quick
    /// acknowledgements).
    pub quickack: bool,
    /// A connection that receives nothing for this long is given up, even an idle one.
    pub timeout: Option<Duration>,
}

impl Default for TcpOptions {
    /// The defaults of Linux, for an MTU of 1500 bytes.
    fn default() -> Self {
        Self {
            congestion: Algorithm::Cubic,
            recovery: Recovery::Linux,
            nodelay: false,
            ecn: false,
            mtu: 1500,
            send_buffer: None,
            notsent_lowat: None,
            receive_buffer: None,
            packet_buffers: None,
            delayed_ack: Duration(40_000_000),
            ack_tick: Duration::ZERO,
            least_timeout: Duration(200_000_000),
            first_timeout: Duration(1_000_000_000),
            fixed_timeout: None,
            silly_windows: false,
            timer_tick: Duration::ZERO,
            timer_phase: Duration::ZERO,
            first_window: INITIAL_WINDOW,
            quickack: true,
            timeout: None,
        }
    }
}

impl TcpOptions {
    /// The rules by which retransmission timeouts are computed.
    pub(super) fn timeouts(&self) -> Timeouts {
        Timeouts {
            least: self.least_timeout,
            first: self.first_timeout,
            fixed: self.fixed_timeout,
            tick: self.timer_tick,
            phase: self.timer_phase,
            classic: self.timer_tick > Duration::ZERO || self.recovery == Recovery::Reno,
        }
    }
}
