//! Transfers of programs that are not ours: connections whose data goes one way and in which no request was recognised.

use crate::captured_connections::CapturedConnection;
use crate::findings::event_log::FindingEventLog;
use crate::findings::input::AnalysisInput;
use crate::findings::observed::connections::{collect_captured, is_observed};
use crate::findings::observed::sender_limits::{SenderLimits, collect_sender_limits};
use crate::statistics::to_f64;
use serde::Serialize;
use std::collections::HashMap;

/// A connection that sends fewer bytes is no transfer.
const LEAST_BYTES: u64 = 64 << 10;
/// Its receiver sends less than 1 / this of what its sender sends.
const ONE_WAY: u64 = 20;

/// The sender of a connection that is a transfer (0 the initiator, 1 the responder).
pub(super) fn sender_of(one: &CapturedConnection) -> Option<usize> {
    let sender = usize::from(one.bytes[1] > one.bytes[0]);
    let (sent, back) = (one.bytes[sender], one.bytes[1 - sender]);
    (sent >= LEAST_BYTES && back <= sent / ONE_WAY).then_some(sender)
}

/// A transfer: its two ends, its size and speed, and the shares of its time in which its connection stood still.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ObservedTransfer {
    /// Who sends: a program and its address, or the address alone.
    pub sender: String,
    /// Who receives.
    pub receiver: String,
    /// Bytes of data, without retransmissions.
    pub bytes: u64,
    /// The time of the connection, s.
    pub seconds: f64,
    /// Bytes over that time, bit/s.
    pub goodput_bit_s: f64,
    /// The share of the time in pauses of the sender, 0 to 1.
    pub paused: f64,
    /// The share of the time in which the receiver had no room, 0 to 1.
    pub without_room: f64,
    /// The share of the time in which the sender's buffer was full and its program waited, 0 to 1; absent where the kernel was not
    /// asked.
    pub send_buffer: Option<f64>,
    /// Retransmitted segments.
    pub retransmits: u64,
    /// The goodput by intervals; empty if the transfer was too short to have several.
    pub goodput_over_time: Vec<GoodputInterval>,
}

/// The goodput of an interval of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GoodputInterval {
    /// When it began, s after the connection's first packet.
    pub at_seconds: f64,
    /// How long it was, s.
    pub seconds: f64,
    /// Bytes of new data over that time, bit/s.
    pub bit_s: f64,
}

/// The transfers of a run without measurements, the one with most data first.
#[must_use]
pub fn find_transfers(input: &AnalysisInput<'_>) -> Vec<ObservedTransfer> {
    let log = FindingEventLog::from_input(input);
    if !is_observed(&log) {
        return Vec::new();
    }
    let goodput = collect_goodput(&log);
    let limits = collect_sender_limits(&log);
    let captured = collect_captured(&log).into_iter();
    let mut found: Vec<ObservedTransfer> = captured
        .filter_map(|(_, one)| {
            let sender = sender_of(&one)?;
            let limits = limits.get(&one.stream(sender));
            Some(ObservedTransfer::from_connection(
                &one, sender, &goodput, limits,
            ))
        })
        .collect();
    found.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.sender.cmp(&b.sender)));
    found
}

/// By host and stream: begin (ns since 1970), length (ns) and bytes of each interval.
type GoodputRows<'e> = HashMap<(&'e str, i64), Vec<[u64; 3]>>;

fn collect_goodput<'e>(log: &FindingEventLog<'e>) -> GoodputRows<'e> {
    let events = log.input.events;
    let mut found = GoodputRows::new();
    for row in log.rows("TCP_GOODPUT") {
        let row = *row as usize;
        let number = |field| events.number(row, field);
        let count = |field| number(field).and_then(|value| u64::try_from(value).ok());
        if let (Some(stream), Some(interval_ns), Some(bytes)) = (number(0), count(1), count(2)) {
            let of_stream = found.entry((events.host(row), stream)).or_default();
            of_stream.push([events.at_ns[row], interval_ns, bytes]);
        }
    }
    found
}

impl ObservedTransfer {
    fn from_connection(
        one: &CapturedConnection,
        sender: usize,
        goodput: &GoodputRows<'_>,
        limits: Option<&SenderLimits>,
    ) -> Self {
        let intervals = goodput.get(&(one.host.as_str(), one.stream(sender)));
        let interval = |[at_ns, interval_ns, bytes]: &[u64; 3]| GoodputInterval {
            at_seconds: to_f64(at_ns.saturating_sub(one.began_ns)) / 1e9,
            seconds: to_f64(*interval_ns) / 1e9,
            bit_s: 8e9 * to_f64(*bytes) / to_f64((*interval_ns).max(1)),
        };
        let duration_ns = to_f64(one.duration_ns.max(1));
        let share = |ns: u64| (to_f64(ns) / duration_ns).min(1.0);
        Self {
            sender: one.end_in_words(sender),
            receiver: one.end_in_words(1 - sender),
            bytes: one.bytes[sender],
            seconds: duration_ns / 1e9,
            goodput_bit_s: 8e9 * to_f64(one.bytes[sender]) / duration_ns,
            paused: share(one.program_paused_ns(sender, limits)),
            without_room: share(one.window_full_ns),
            send_buffer: limits.map(SenderLimits::share_of_send_buffer),
            retransmits: one.again[sender],
            goodput_over_time: intervals.into_iter().flatten().map(interval).collect(),
        }
    }
}
