//! The TCP connections of packet captures, read from `TCP_CONNECTION` events; the one with most data first.

use serde::Serialize;
use stackline_events::{EventTable, catalogue};

/// A TCP connection as a packet capture recorded it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CapturedConnection {
    /// The host where it was captured.
    pub host: String,
    /// The number of its flow; its two streams have the numbers `2 * flow` and `2 * flow + 1`.
    pub flow: i64,
    /// The end that opened it.
    pub initiator: String,
    /// The other end.
    pub responder: String,
    /// The time of its first packet, ns since 1970.
    pub began_ns: u64,
    /// The time from its first packet to its last, ns.
    pub duration_ns: u64,
    /// The round-trip time of the handshake, ns; absent if the handshake was not captured whole or part of it was sent twice.
    pub handshake_ns: Option<u64>,
    /// The median time from data to its acknowledgement at the capture, ns: for data of the initiator, of the responder.
    pub ack_ns: [Option<u64>; 2],
    /// Bytes of data there (from the initiator) and back, without retransmissions.
    pub bytes: [u64; 2],
    /// Retransmitted segments, there and back.
    pub again: [u64; 2],
    /// How often either end announced a window of zero.
    pub zero_windows: u64,
    /// How long the receiver's window had no room for another segment, ns, both directions together.
    pub window_full_ns: u64,
    /// The longest time without data, ns.
    pub quiet_ns: u64,
    /// Whose data ended that time: `initiator`, `responder`, or a `retransmission`.
    pub quiet_until: String,
    /// How the connection ended: `closed`, `reset`, or `open` at the end of the capture.
    pub end: String,
}

/// All connections of a table of events, the one with most data first.
#[must_use]
pub fn find_captured_connections(events: &EventTable) -> Vec<CapturedConnection> {
    let keyword = events.names.find("TCP_CONNECTION");
    let rows = (0..events.len()).filter(|row| Some(events.keyword[*row]) == keyword);
    let mut found: Vec<CapturedConnection> = rows.map(|row| connection(events, row)).collect();
    sort_by_bytes(&mut found);
    found
}

/// Sorts connections by their bytes, the most first; then by begin and flow.
pub fn sort_by_bytes(connections: &mut [CapturedConnection]) {
    connections.sort_by_key(|one| {
        (
            std::cmp::Reverse(one.bytes.iter().sum::<u64>()),
            one.began_ns,
            one.flow,
        )
    });
}

/// The connection of a `TCP_CONNECTION` event.
pub(crate) fn connection(events: &EventTable, row: usize) -> CapturedConnection {
    let entry = catalogue::find("TCP_CONNECTION");
    let value = |name: &str| {
        entry
            .and_then(|entry| entry.field(name))
            .map(|field| events.value(row, field))
    };
    let number = |name: &str| {
        value(name)?
            .number()
            .and_then(|number| u64::try_from(number).ok())
    };
    let text = |name: &str| {
        value(name)
            .and_then(|value| value.text())
            .unwrap_or_default()
            .to_owned()
    };
    let pair = |there: &str, back: &str| [number(there).unwrap_or(0), number(back).unwrap_or(0)];
    CapturedConnection {
        host: events.host(row).to_owned(),
        flow: number("stream").map_or(0, |stream| (stream >> 1) as i64),
        initiator: text("initiator"),
        responder: text("responder"),
        began_ns: events.at_ns[row],
        duration_ns: number("duration_ns").unwrap_or(0),
        handshake_ns: number("handshake_ns"),
        ack_ns: [number("ack_there_ns"), number("ack_back_ns")],
        bytes: pair("bytes_there", "bytes_back"),
        again: pair("again_there", "again_back"),
        zero_windows: number("zero_windows").unwrap_or(0),
        window_full_ns: number("window_full_ns").unwrap_or(0),
        quiet_ns: number("quiet_ns").unwrap_or(0),
        quiet_until: text("quiet_until"),
        end: text("end"),
    }
}
