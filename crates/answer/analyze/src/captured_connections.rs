//! The TCP connections of packet captures, read from `TCP_CONNECTION` events; the one with most data first.

use serde::Serialize;
use stackline_core::error::Result;
use stackline_core::trace_index::Index;
use stackline_events::catalogue::CatalogueEntry;
use stackline_events::table::FIELDS;
use stackline_events::{EventTable, EventValue, catalogue};
use stackline_runs::events::{EventColumnSelection, read_batches};
use std::collections::HashMap;
use std::path::Path;

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
    /// The programs at its ends, initiator and responder; empty where they are not known.
    pub programs: [String; 2],
    /// Pauses before new data of the initiator and of the responder that neither a loss nor a full window explains.
    pub pauses: [u64; 2],
    /// How long these pauses were together, ns.
    pub paused_ns: [u64; 2],
    /// How the connection ended: `closed`, `reset`, or `open` at the end of the capture.
    pub end: String,
}

/// The connections in the captures that were imported into a run, the one with most data first.
///
/// # Errors
/// If its events cannot be read.
pub fn read_captured_connections(
    run: &Path,
    index: Option<&Index>,
) -> Result<Vec<CapturedConnection>> {
    let mut all = Vec::new();
    if index.is_some_and(|index| index.imports.iter().any(|import| import.form == "capture")) {
        let fields: Vec<usize> = (0..FIELDS).collect();
        read_batches(run, &EventColumnSelection::fields(&fields), |batch| {
            all.extend(find_captured_connections(batch))
        })?;
        sort_by_bytes(&mut all);
    }
    Ok(all)
}

/// All connections of a table of events, the one with most data first.
#[must_use]
pub fn find_captured_connections(events: &EventTable) -> Vec<CapturedConnection> {
    let rows_of = |keyword: &str| {
        let keyword = events.names.find(keyword);
        (0..events.len()).filter(move |row| Some(events.keyword[*row]) == keyword)
    };
    let transfers = ConnectionTransfers::from_events(events, rows_of("TCP_TRANSFER"));
    let rows = rows_of("TCP_CONNECTION");
    let mut found: Vec<CapturedConnection> = rows
        .map(|row| connection(events, row, &transfers))
        .collect();
    sort_by_bytes(&mut found);
    found
}

/// By host and flow: the rows of `TCP_TRANSFER` events.
pub(crate) struct ConnectionTransfers<'e> {
    rows: HashMap<(&'e str, i64), usize>,
}

impl<'e> ConnectionTransfers<'e> {
    pub(crate) fn from_events(events: &'e EventTable, rows: impl Iterator<Item = usize>) -> Self {
        let flow = |row: &usize| events.number(*row, 0).map(|stream| stream >> 1);
        let rows = rows.filter_map(|row| Some(((events.host(row), flow(&row)?), row)));
        Self {
            rows: rows.collect(),
        }
    }
}

/// Reads the fields of one event by name.
struct EventFields<'e> {
    events: &'e EventTable,
    row: usize,
    entry: Option<&'static CatalogueEntry>,
}

impl<'e> EventFields<'e> {
    fn new(events: &'e EventTable, row: usize, keyword: &str) -> Self {
        Self {
            events,
            row,
            entry: catalogue::find(keyword),
        }
    }

    fn value(&self, name: &str) -> Option<EventValue<'e>> {
        let field = self.entry?.field(name)?;
        Some(self.events.value(self.row, field))
    }

    fn number(&self, name: &str) -> Option<u64> {
        u64::try_from(self.value(name)?.number()?).ok()
    }

    fn text(&self, name: &str) -> String {
        let text = self.value(name).and_then(|value| value.text());
        text.unwrap_or_default().to_owned()
    }

    fn pair(&self, there: &str, back: &str) -> [u64; 2] {
        [there, back].map(|name| self.number(name).unwrap_or(0))
    }
}

/// Sorts connections by their bytes, the most first; then by begin and flow.
fn sort_by_bytes(connections: &mut [CapturedConnection]) {
    connections.sort_by_key(|one| {
        (
            std::cmp::Reverse(one.bytes.iter().sum::<u64>()),
            one.began_ns,
            one.flow,
        )
    });
}

/// The connection of a `TCP_CONNECTION` event, with what its `TCP_TRANSFER` says.
pub(crate) fn connection(
    events: &EventTable,
    row: usize,
    transfers: &ConnectionTransfers<'_>,
) -> CapturedConnection {
    let of = EventFields::new(events, row, "TCP_CONNECTION");
    let host = events.host(row);
    let flow = of.number("stream").map_or(0, |stream| (stream >> 1) as i64);
    let row = transfers.rows.get(&(host, flow));
    let transfer = row.map(|row| EventFields::new(events, *row, "TCP_TRANSFER"));
    let pair = |there: &str, back: &str| {
        let transfer = transfer.as_ref();
        transfer.map_or([0, 0], |transfer| transfer.pair(there, back))
    };
    let program = |name: &str| {
        let transfer = transfer.as_ref();
        transfer.map_or_else(String::new, |transfer| transfer.text(name))
    };
    CapturedConnection {
        host: host.to_owned(),
        flow,
        initiator: of.text("initiator"),
        responder: of.text("responder"),
        began_ns: events.at_ns[of.row],
        duration_ns: of.number("duration_ns").unwrap_or(0),
        handshake_ns: of.number("handshake_ns"),
        ack_ns: ["ack_there_ns", "ack_back_ns"].map(|name| of.number(name)),
        bytes: of.pair("bytes_there", "bytes_back"),
        again: of.pair("again_there", "again_back"),
        zero_windows: of.number("zero_windows").unwrap_or(0),
        window_full_ns: of.number("window_full_ns").unwrap_or(0),
        quiet_ns: of.number("quiet_ns").unwrap_or(0),
        quiet_until: of.text("quiet_until"),
        programs: ["initiator_program", "responder_program"].map(program),
        pauses: pair("pauses_there", "pauses_back"),
        paused_ns: pair("paused_there_ns", "paused_back_ns"),
        end: of.text("end"),
    }
}

impl CapturedConnection {
    /// The number of the stream of the data that an end sends (0 the initiator, 1 the responder).
    pub(crate) fn stream(&self, sender: usize) -> i64 {
        (self.flow << 1) | i64::from(sender == 1)
    }

    /// An end in words (0 the initiator, 1 the responder): its program and address, or its address alone.
    #[must_use]
    pub fn end_in_words(&self, end: usize) -> String {
        let address = [&self.initiator, &self.responder][end];
        match self.programs[end].as_str() {
            "" => address.clone(),
            program => format!("{program} ({address})"),
        }
    }
}
