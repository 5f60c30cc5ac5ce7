//! Options of a connection, with the defaults of Linux.

use super::congestion::{Algorithm, INITIAL_WINDOW};
use super::rtt_and_timeout::Timeouts;
use stackline_core::time::Duration;

/// How a sender finds and repairs losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// By selective acknowledgements and times (RFC 2018, RFC 8985, RFC 6937).
    #[default]
    Linux,
    /// By counting duplicates, one loss a window.
    Reno,
}

/// Buffers of packets in which a receiver keeps what its application has not read (Lantz, Nowicki and Theimer 1985, section 7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketBuffers {
    /// Buffers that hold a packet of any size each.
    pub packets: u32,
    /// Buffers beside them for packets of at most [`PacketBuffers::SMALL`] bytes.
    pub small: u32,
    /// Bytes that a packet is expected to carry, at most those of a full segment; without it so many.
    pub expected: Option<u32>,
    /// When none is free, packets that follow each other are moved together.
    pub compaction: bool,
}

impl PacketBuffers {
    /// Bytes of data that a small buffer holds.
    pub const SMALL: u32 = 128;
}

/// Options of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOptions {
    /// Congestion control.
    pub congestion: Algorithm,
    /// How losses are found and repaired; with [`Recovery::Reno`] nothing is acknowledged selectively.
    pub recovery: Recovery,
    /// Small segments are not held back.
    pub nodelay: bool,
    /// It asks for explicit congestion notification, and grants it.
    pub ecn: bool,
    /// Largest IPv4 packet in bytes that it sends or takes.
    pub mtu: u32,
    /// Bytes asked for what is not acknowledged ([`stackline_core::socket_memory::send_memory`]); by default as many as two windows hold, up to 4 MiB.
    pub send_buffer: Option<u64>,
    /// No more is taken while so many bytes have not left (TCP_NOTSENT_LOWAT); a writer that waits is woken at half of them.
    pub notsent_lowat: Option<u64>,
    /// Bytes asked for what has arrived, of which a part is offered ([`stackline_core::socket_memory::offered_window`]); without it the window is as
    /// large as the reader needs, from 64 KiB up to 6 MiB.
    pub receive_buffer: Option<u64>,
    /// What has arrived is kept in buffers of packets instead of bytes, and the window is made of those that are free.
    pub packet_buffers: Option<PacketBuffers>,
    /// How long the acknowledgement of a single segment waits for company; zero: not at all.
    pub delayed_ack: Duration,
    /// Delayed acknowledgements leave at ticks of a timer that runs anyhow (4.2BSD: 200 ms), counted as `timer_phase` says; zero: after
    /// `delayed_ack`.
    pub ack_tick: Duration,
    /// Retransmission timeouts are no shorter. Linux takes the variation of the round trip for at least so much, others compare
    /// the whole.
    pub least_timeout: Duration,
    /// Before a round trip was measured, and of a SYN.
    pub first_timeout: Duration,
    /// Retransmission timeouts are always so long, whatever round trips take and however often they come in a row, as before they
    /// followed the round trip (Lantz, Nowicki and Theimer 1985, section 7.2).
    pub fixed_timeout: Option<Duration>,
    /// Windows are offered and used however small they are, as before RFC 813 (1985, section 7.3): each read opens one.
    pub silly_windows: bool,
    /// Retransmission timeouts are counted in ticks of a timer that runs anyhow (4.3BSD: 500 ms), rounded up, and end at one of
    /// them; zero: they are exact.
    pub timer_tick: Duration,
    /// When that timer ticked first.
    pub timer_phase: Duration,
    /// Segments that may leave at first, and after a pause at least: 10 (RFC 6928).
    pub first_window: u32,
    /// The first segments with data, and those after a pause, are acknowledged one by one and at once.
    pub quickack: bool,
    /// A connection that receives nothing for so long is given up, even an idle one.
    pub timeout: Option<Duration>,
}

impl Default for TcpOptions {
    /// As Linux has them, for an MTU of 1500 bytes.
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
    /// How its retransmission timeouts are counted.
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
