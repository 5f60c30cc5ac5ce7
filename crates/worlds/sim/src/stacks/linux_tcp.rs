//! The stack `tcp`: each end of each connection is a [`TcpConnection`] of `stackline_proto`, which behaves as Linux's TCP does.
//!
//! A segment travels through the simulated network as its fields; its bytes are made for captures only.

use super::byte_stream::Got;
use super::tcp_wire::{DELAYED_ACK, MAPPING, MSS, NODELAY, SimTcpWire, TIMEOUT};
use crate::datagram::SimDatagram;
use crate::run_state::SimRunState;
use crate::run_trace::SimTraceLog;
use stackline_core::catalogue::{
    ClosedForm, FlowControl, IP_FAMILY, OptionKind, OptionTable, PacketContent, StackFacts,
    StackTable, least_mtu_of_family,
};
use stackline_core::plan::Stack;
use stackline_core::run_record::{SenderLimitTimes, TransportRecord};
use stackline_core::time::{Duration, Instant};
use stackline_events::EventValue;
use stackline_events::catalogue::rows::{self, TcpRcvqFull, TcpRetransmit};
use stackline_net::{EcnMarking, NetworkPacket};
use stackline_proto::tcp::segment::IPV6_MORE;
use stackline_proto::tcp::{
    self, Algorithm, Codepoint, PacketBuffers, Recovery, TcpConnection, TcpConnectionEvent,
    TcpFacts, TcpFlags, TcpOptions, TcpReceived, TcpSegment, TcpState,
};
use std::collections::BTreeMap;

pub(super) const TABLE: StackTable = StackTable {
    name: "tcp",
    summary: "TCP over IPv4 or IPv6 in virtual time, with Linux's algorithms",
    least_mtu: least_mtu_of_family,
    files: false,
    ecn: true,
    options: &[
        NODELAY,
        OptionTable::new(
            "congestion",
            OptionKind::Word(&["cubic", "reno", "bbr"]),
            "cubic",
            "congestion control: cubic (RFC 9438), reno (RFC 5681) or bbr (version 1)",
        ),
        OptionTable::new(
            "recovery",
            OptionKind::Word(&["linux", "reno"]),
            "linux",
            "linux: detect losses by selective acknowledgements and timing; reno: by three duplicate ACKs, one loss per window, as TCP did in 1995 (implies congestion = reno)",
        ),
        OptionTable::new(
            "send_buffer",
            OptionKind::BUFFER,
            "two congestion windows, 16 KiB to 4 MiB",
            "SO_SNDBUF in bytes (takes twice as much memory)",
        ),
        OptionTable::new(
            "notsent_lowat",
            OptionKind::BUFFER,
            "none: as much as the send buffer holds",
            "TCP_NOTSENT_LOWAT: a writer waits while at least this many bytes are unsent",
        ),
        OptionTable::new(
            "receive_buffer",
            OptionKind::BUFFER,
            "adapts to the reader, from 64 KiB to 6 MiB",
            "SO_RCVBUF in bytes (takes twice as much memory; the window is part of that)",
        ),
        IP_FAMILY,
        MSS,
        DELAYED_ACK,
        TIMEOUT,
        super::ip_options::DSCP,
        OptionTable::new(
            "first_window",
            OptionKind::Number(1, 1 << 16),
            "10",
            "initial window in segments; also the smallest window after an idle period",
        ),
        OptionTable::new(
            "quickack",
            OptionKind::Word(&["on", "off"]),
            "on",
            "acknowledge the first 16 data segments, and those after an idle period, at once; off: only every second segment",
        ),
        OptionTable::new(
            "least_timeout",
            OptionKind::Time,
            "200 ms",
            "minimum round-trip variation used in a retransmission timeout; with timer_tick or recovery = reno, the minimum timeout",
        ),
        OptionTable::new(
            "first_timeout",
            OptionKind::Time,
            "1 s",
            "retransmission timeout for a SYN, and for any segment until a round trip has been measured",
        ),
        OptionTable::new(
            "fixed_timeout",
            OptionKind::Time,
            "none: retransmission timeouts adapt to round-trip times",
            "use this fixed retransmission timeout, as before adaptive timeouts (1985); 0 s: adapt to round-trip times",
        ),
        OptionTable::new(
            "silly_windows",
            OptionKind::Flag,
            "off: small windows are not offered (RFC 813)",
            "offer and use windows of any size, at each read (1982)",
        ),
        OptionTable::new(
            "packet_buffers",
            OptionKind::Number(1, 4096),
            "none: received data is kept as bytes",
            "keep arriving packets in this many buffers, one per packet, until they are read, and drop packets when no buffer is free; the window is the number of free buffers times expected_packet (1985)",
        ),
        OptionTable::new(
            "expected_packet",
            OptionKind::Bytes(1, 65_535),
            "a full segment",
            "bytes that a receiver with packet_buffers expects per packet, as specified by higher-level protocols; at most a full segment",
        ),
        OptionTable::new(
            "small_buffers",
            OptionKind::Number(1, 4096),
            "none: all buffers take a packet of any size",
            "this many additional packet_buffers of 128 bytes, for packets that fit",
        ),
        OptionTable::new(
            "compaction",
            OptionKind::Flag,
            "off: a packet stays in its buffer",
            "when none of the packet_buffers is free, merge consecutive packets; this takes no time",
        ),
        OptionTable::new(
            "ack_tick",
            OptionKind::Time,
            "0 s: after delayed_ack",
            "send delayed acknowledgements at ticks of a periodic timer (4.2BSD: 200 ms)",
        ),
        OptionTable::new(
            "timer_tick",
            OptionKind::Time,
            "0 s: retransmission timeouts are exact",
            "count retransmission timeouts in ticks of a slow timer (4.3BSD: 500 ms), doubling up to 64 s",
        ),
    ],
    mapping: MAPPING,
    exclusive: &[
        &["recovery = reno", "congestion = cubic", "congestion = bbr"],
        &["receive_buffer", "packet_buffers"],
        &["delayed_ack", "ack_tick"],
    ],
    needs: &[
        ("expected_packet", "packet_buffers"),
        ("small_buffers", "packet_buffers"),
        ("compaction", "packet_buffers"),
    ],
    facts: StackFacts {
        packets: PacketContent::Stream,
        form: ClosedForm::Tcp,
        flow_control: FlowControl::KernelBuffers,
        ..StackTable::RELIABLE.facts
    },
    ..StackTable::RELIABLE
};

/// The machine of one end of a connection.
#[derive(Debug)]
pub(super) struct SimLinuxTcpMachine {
    connection: TcpConnection,
    /// The initial sequence number.
    first: u32,
}

/// The machine's options, from those of the stack. `mtu` is the path's in bytes; `ecn` asks for congestion marks.
pub(super) fn linux_tcp_options(stack: &Stack, mtu: u32, ecn: bool) -> TcpOptions {
    let usual = TcpOptions::default();
    let recovery = if stack.word("recovery") == Some("reno") {
        Recovery::Reno
    } else {
        Recovery::Linux
    };
    let time = |name: &str, usual| stack.seconds(name).map_or(usual, Duration::from_seconds);
    TcpOptions {
        congestion: match stack.word("congestion") {
            Some("reno") => Algorithm::Reno,
            Some("bbr") => Algorithm::Bbr,
            None if recovery == Recovery::Reno => Algorithm::Reno,
            _ => Algorithm::Cubic,
        },
        recovery,
        nodelay: stack.flag("nodelay"),
        ecn,
        mtu,
        send_buffer: stack.number("send_buffer"),
        notsent_lowat: stack.number("notsent_lowat"),
        receive_buffer: stack.number("receive_buffer"),
        packet_buffers: packet_buffers(stack),
        delayed_ack: time("delayed_ack", usual.delayed_ack),
        timeout: stack.seconds("timeout").map(Duration::from_seconds),
        least_timeout: time("least_timeout", usual.least_timeout),
        first_timeout: time("first_timeout", usual.first_timeout),
        ack_tick: time("ack_tick", usual.ack_tick),
        timer_tick: time("timer_tick", usual.timer_tick),
        fixed_timeout: stack
            .seconds("fixed_timeout")
            .filter(|time| *time > 0.0)
            .map(Duration::from_seconds),
        silly_windows: stack.flag("silly_windows"),
        timer_phase: usual.timer_phase,
        first_window: stack
            .number("first_window")
            .map_or(usual.first_window, |segments| segments as u32),
        quickack: stack.word("quickack") != Some("off"),
    }
}

/// The receiver's packet buffers; `None` where the option is not given.
fn packet_buffers(stack: &Stack) -> Option<PacketBuffers> {
    let number = |name: &str| {
        stack
            .number(name)
            .map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    };
    Some(PacketBuffers {
        packets: number("packet_buffers")?,
        small: number("small_buffers").unwrap_or(0),
        expected: number("expected_packet"),
        compaction: stack.flag("compaction"),
    })
}

impl SimLinuxTcpMachine {
    /// `ecn`: the connection negotiates ECN, as a kernel does where its host is set to.
    pub(super) fn new(stack: &Stack, mtu: u32, ecn: bool, seed: u64, now: Instant) -> Self {
        let first = seed as u32;
        // Hosts were not started together, so the phase of the host's timer ticks is random.
        let timer_phase = Duration(seed >> 32);
        let options = TcpOptions {
            timer_phase,
            ..linux_tcp_options(stack, mtu, ecn)
        };
        Self {
            connection: TcpConnection::listen(now, options, 0, first),
            first,
        }
    }

    pub(super) fn dial(&mut self, now: Instant, ports: [u16; 2], traced: bool) {
        self.connection = TcpConnection::connect(
            now,
            *self.connection.options(),
            (ports[0], ports[1]),
            self.first,
        );
        if traced {
            self.connection.enable_trace();
        }
    }

    pub(super) fn listen(&mut self, now: Instant, port: u16, traced: bool) {
        self.connection = TcpConnection::listen(now, *self.connection.options(), port, self.first);
        if traced {
            self.connection.enable_trace();
        }
    }

    pub(super) const fn state(&self) -> TcpState {
        self.connection.state()
    }

    pub(super) fn readable(&self) -> bool {
        self.connection.readable() > 0
    }

    /// Whether to wake an application that waits for room: when a third of the buffer is free.
    pub(super) fn has_room(&self) -> bool {
        self.connection.has_room()
    }

    pub(super) fn arrived(&mut self, datagram: &SimDatagram, now: Instant) {
        if let Some(segment) = datagram.segment() {
            self.connection.handle(now, segment);
        }
    }

    /// Sends what there is to send. Returns when it has to be called again.
    pub(super) fn flush(&mut self, wire: &SimTcpWire, shared: &SimRunState) -> Option<Instant> {
        let now = shared.now();
        let mut leaving = shared.outgoing().borrow_mut();
        while let Some(segment) = self.connection.poll(now) {
            let place = self.connection.place(&segment);
            leaving.push(packet(wire, wire.connection, segment, place));
        }
        if let Some(log) = &shared.log {
            self.emit(wire, log, now);
        }
        self.connection.deadline()
    }

    /// Writes the machine's events to the trace.
    fn emit(&mut self, wire: &SimTcpWire, log: &SimTraceLog, now: Instant) {
        let (stream, host) = log.stream(wire.pair, wire.side);
        let back = log.stream(wire.pair, wire.side.other()).0;
        for event in self.connection.take_events() {
            let stream = stream.into();
            match event {
                TcpConnectionEvent::Sent { offset, bytes } => {
                    let data = rows::TcpSegment {
                        unit: EventValue::Absent,
                        stream,
                        offset: offset.into(),
                        bytes: bytes.into(),
                    };
                    log.emit(host, now, |log, at_ns| data.write(log, at_ns));
                }
                TcpConnectionEvent::Again {
                    offset,
                    bytes,
                    reason,
                } => {
                    let data = TcpRetransmit {
                        stream,
                        offset: offset.into(),
                        bytes: bytes.into(),
                        cause: EventValue::Text(reason.word()),
                        segments: 1.into(),
                        ..TcpRetransmit::default()
                    };
                    log.emit(host, now, |log, at_ns| data.write(log, at_ns));
                }
                TcpConnectionEvent::State { offset, state } => {
                    let data = rows::TcpState {
                        stream,
                        offset: offset.into(),
                        state: EventValue::Text(state),
                        ..rows::TcpState::default()
                    };
                    log.emit(host, now, |log, at_ns| data.write(log, at_ns));
                }
                TcpConnectionEvent::Full { offset, queued } => {
                    let data = TcpRcvqFull {
                        stream: back.into(),
                        offset: offset.into(),
                        queued: queued.into(),
                        ..TcpRcvqFull::default()
                    };
                    log.emit(host, now, |log, at_ns| data.write(log, at_ns));
                }
            }
        }
    }

    /// The connection's state; `None` while it is closed, listening or in TIME-WAIT.
    pub(super) fn facts(&self, now: Instant) -> Option<TcpFacts> {
        let lives = !matches!(
            self.connection.state(),
            TcpState::Closed | TcpState::Listen | TcpState::TimeWait
        );
        lives.then(|| self.connection.facts(now))
    }

    pub(super) fn send(&mut self, bytes: usize, now: Instant) -> Option<usize> {
        self.connection.send(now, bytes as u64).map(|n| n as usize)
    }

    pub(super) fn receive(&mut self, most: usize, now: Instant) -> Got {
        match self.connection.receive(now, most as u64) {
            TcpReceived::Bytes(n) => Got::Bytes(n as usize),
            TcpReceived::Nothing => Got::Nothing,
            TcpReceived::End => Got::End,
            TcpReceived::Broken => Got::Broken,
        }
    }

    pub(super) fn close(&mut self) {
        self.connection.close();
    }

    pub(super) fn abort(&mut self) {
        self.connection.abort();
    }

    pub(super) fn push(&mut self) {
        self.connection.set_nodelay();
    }

    pub(super) fn transport(&self, now: Instant) -> TransportRecord {
        let facts = self.connection.facts(now);
        TransportRecord {
            retransmits: facts.retransmits,
            rtt_s: facts.rtt.seconds(),
            rtt_var_s: Some(facts.rtt_deviation.seconds()),
            cwnd_segments: Some(u64::from(facts.window)),
            mss_bytes: u64::from(facts.mss),
            busy_s: Some(facts.busy.seconds()),
            receive_window_limited_s: Some(facts.receive_window_limited.seconds()),
            send_buffer_limited_s: Some(facts.send_buffer_limited.seconds()),
            bytes_acked: Some(facts.bytes_acked),
            bytes_received: facts.bytes_received,
            spent: Some(seconds(&facts.spent)),
        }
    }

    /// Notes for the run record: how many packets were dropped for want of a buffer.
    pub(super) fn notes(&self, now: Instant) -> Vec<String> {
        let dropped = self.connection.facts(now).dropped;
        let note = || format!("packets dropped because the receiver had no free buffer: {dropped}");
        (dropped > 0).then(note).into_iter().collect()
    }

    pub(super) fn settings(&self, now: Instant) -> BTreeMap<String, String> {
        let (facts, options) = (self.connection.facts(now), self.connection.options());
        let delayed = stackline_core::units::format_time(options.delayed_ack.seconds());
        let settings = [
            ("congestion", options.congestion.name().to_string()),
            (
                "nodelay",
                if self.connection.nodelay() {
                    "on"
                } else {
                    "off"
                }
                .to_string(),
            ),
            ("mss", format!("{} B", facts.mss)),
            ("send_buffer", format!("{} B", facts.send_buffer)),
            ("receive_buffer", format!("{} B", facts.receive_buffer)),
            ("delayed_ack", delayed),
            ("ecn", if options.ecn { "on" } else { "off" }.to_string()),
        ];
        let kept = options
            .packet_buffers
            .iter()
            .flat_map(|plan| buffers(*plan));
        settings
            .into_iter()
            .chain(unusual(options))
            .chain(kept)
            .map(|(name, value)| (name.to_string(), value))
            .collect()
    }
}

/// The settings that differ from Linux's, by option name.
fn unusual(options: &TcpOptions) -> impl Iterator<Item = (&'static str, String)> {
    let usual = TcpOptions::default();
    let time = |value: Duration, usual| {
        (value != usual).then(|| stackline_core::units::format_time(value.seconds()))
    };
    let window = options.first_window;
    [
        (
            "recovery",
            (options.recovery != usual.recovery).then(|| "reno".to_string()),
        ),
        (
            "first_window",
            (window != usual.first_window).then(|| window.to_string()),
        ),
        ("quickack", (!options.quickack).then(|| "off".to_string())),
        (
            "least_timeout",
            time(options.least_timeout, usual.least_timeout),
        ),
        (
            "first_timeout",
            time(options.first_timeout, usual.first_timeout),
        ),
        (
            "fixed_timeout",
            options
                .fixed_timeout
                .and_then(|fixed| time(fixed, Duration::ZERO)),
        ),
        (
            "silly_windows",
            options.silly_windows.then(|| "on".to_string()),
        ),
        ("ack_tick", time(options.ack_tick, usual.ack_tick)),
        ("timer_tick", time(options.timer_tick, usual.timer_tick)),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
}

/// The settings of a receiver's packet buffers, by option name.
fn buffers(plan: PacketBuffers) -> impl Iterator<Item = (&'static str, String)> {
    [
        ("packet_buffers", Some(plan.packets.to_string())),
        (
            "expected_packet",
            plan.expected.map(|bytes| format!("{bytes} B")),
        ),
        (
            "small_buffers",
            (plan.small > 0).then(|| plan.small.to_string()),
        ),
        ("compaction", plan.compaction.then(|| "on".to_string())),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
}

fn seconds(spent: &tcp::TcpLimitTimes) -> SenderLimitTimes {
    SenderLimitTimes {
        application_s: spent.application.seconds(),
        slow_start_s: spent.slow_start.seconds(),
        congestion_window_s: spent.congestion_window.seconds(),
        recovery_s: spent.recovery.seconds(),
        timeout_s: spent.timeout.seconds(),
        nagle_s: spent.nagle.seconds(),
    }
}

/// A network packet with a segment whose first byte is at stream position `place`.
fn packet(
    wire: &SimTcpWire,
    connection: u32,
    segment: TcpSegment,
    place: u64,
) -> NetworkPacket<SimDatagram> {
    let more = if wire.is_v6 { IPV6_MORE } else { 0 };
    let (bytes, length) = ((segment.bytes() + more) as usize, segment.length);
    let ecn = if segment.codepoint == Codepoint::Capable {
        EcnMarking::Capable
    } else {
        EcnMarking::NotCapable
    };
    let datagram = SimDatagram::of_segment(wire.pair, connection, [wire.from, wire.to], segment)
        .over(wire.is_v6);
    NetworkPacket {
        ecn,
        ..wire.packet(bytes, datagram.at(place, length))
    }
}

/// The answer to a segment of a connection that is over: a FIN is acknowledged as in TIME-WAIT, anything else gets a RST.
pub(super) fn reply_to_closed(
    wire: &SimTcpWire,
    datagram: &SimDatagram,
) -> Option<NetworkPacket<SimDatagram>> {
    let segment = datagram.segment()?;
    let mut answer = segment.refusal()?;
    if segment.flags.has(TcpFlags::FIN) {
        answer.sequence = segment.acknowledged;
        answer.acknowledged = segment.sequence.wrapping_add(segment.span());
        answer.flags = TcpFlags::ACK;
    }
    Some(packet(wire, datagram.connection, answer, 0))
}
