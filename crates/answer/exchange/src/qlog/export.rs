//! Writes qlog as one document (draft-ietf-quic-qlog-main-schema-13, section 5; draft-ietf-quic-qlog-quic-events-12): one trace for each end of
//! each flow over QUIC, with the events that the run has of it. What the run does not know is left out: packets of simulated connections are
//! datagrams by their lengths, as their contents are encrypted.

use crate::moment;
use serde_json::{Map, Value as Json, json};
use stackline_core::trace_index::{Index, RunFlow};
use stackline_events::catalogue::{self, CatalogueEntry};
use stackline_events::{EventTable, EventValue, unit_ids};
use std::collections::BTreeMap;

/// The schema of the file, and how it is serialised (main schema, sections 5 and 11.1).
const FILE_SCHEMA: &str = "urn:ietf:params:qlog:file:contained";
const SERIALIZATION: &str = "application/qlog+json";
/// The schema of the events; until there is an RFC, with the number of its draft (main schema, section 8.2).
const EVENT_SCHEMA: &str = "urn:ietf:params:qlog:events:quic-12";
/// Bytes of the headers of IPv4 and UDP in the length of a packet.
const HEADERS: i64 = 28;
/// Nanoseconds of a millisecond, and of a second.
const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// A document of qlog.
#[derive(Clone, Debug, PartialEq)]
pub struct QlogDocument {
    /// The document.
    pub json: Json,
    /// How many events it has.
    pub events: u64,
}

/// Which trace an event belongs to: the flow, if the run knows it, and the host.
type QlogTracePlace = (Option<u32>, String);

/// Writes what a run knows of its connections of QUIC, in the reference host's time.
#[must_use]
pub fn document(events: &EventTable, index: &Index) -> QlogDocument {
    let mut traces: BTreeMap<QlogTracePlace, Vec<(u64, Json)>> = BTreeMap::new();
    let mut entries: BTreeMap<&str, Option<&CatalogueEntry>> = BTreeMap::new();
    for row in 0..events.len() {
        let keyword = events.keyword(row);
        let entry = *entries
            .entry(keyword)
            .or_insert_with(|| catalogue::find(keyword));
        let Some(entry) = entry else { continue };
        let row = QlogRow {
            events,
            index,
            row,
            entry,
        };
        let flow = row.flow();
        if let Some((name, data)) = row.event(flow) {
            let place = (flow.map(|flow| flow.id), row.host().to_owned());
            let event = json!({ "name": name, "data": data });
            traces.entry(place).or_default().push((row.at_ns(), event));
        }
    }
    let count = traces.values().map(|events| events.len() as u64).sum();
    let traces: Vec<Json> = traces
        .into_iter()
        .map(|((flow, host), events)| trace(flow.and_then(|id| index.flow(id)), &host, events))
        .collect();
    QlogDocument {
        json: json!({
            "file_schema": FILE_SCHEMA,
            "serialization_format": SERIALIZATION,
            "title": "stackline",
            "traces": traces,
        }),
        events: count,
    }
}

/// A trace: what one host has seen of a flow, in the order of time.
fn trace(flow: Option<&RunFlow>, host: &str, mut events: Vec<(u64, Json)>) -> Json {
    events.sort_by_key(|(at_ns, _)| *at_ns);
    // Times are ms since the second in which the trace begins, which a floating-point number holds to the nanosecond.
    let begins_ns = events
        .first()
        .map_or(0, |(at_ns, _)| at_ns / SECOND * SECOND);
    let timed = events.into_iter().map(|(at_ns, mut event)| {
        event["time"] = ms(at_ns - begins_ns);
        event
    });
    let side = match flow {
        Some(flow) if flow.hosts.0 == host => "client",
        Some(flow) if flow.hosts.1 == host => "server",
        _ => "unknown",
    };
    let mut common = json!({
        "time_format": "relative_to_epoch",
        "reference_time": { "clock_type": "system", "epoch": moment::as_rfc3339(begins_ns / SECOND) },
    });
    if let Some(flow) = flow {
        common["group_id"] = format!("flow {}", flow.id).into();
    }
    json!({
        "title": flow.map_or_else(|| host.to_owned(), |flow| format!("{} of flow {}", flow.stack, flow.id)),
        "common_fields": common,
        "vantage_point": { "name": host, "type": side },
        "event_schemas": [EVENT_SCHEMA],
        "events": timed.collect::<Vec<Json>>(),
    })
}

/// A time of ns in ms.
fn ms(ns: u64) -> Json {
    (ns as f64 / MS as f64).into()
}

/// An event of the run that qlog may have.
struct QlogRow<'e> {
    events: &'e EventTable,
    index: &'e Index,
    row: usize,
    entry: &'static CatalogueEntry,
}

impl<'e> QlogRow<'e> {
    fn host(&self) -> &'e str {
        self.events.host(self.row)
    }

    fn at_ns(&self) -> u64 {
        let at_ns = self.events.at_ns[self.row];
        let host = self.index.hosts.get(self.host());
        host.map_or(at_ns, |host| host.clock.reference_ns(at_ns))
    }

    fn value(&self, field: &str) -> EventValue<'e> {
        let place = self.entry.field(field);
        place.map_or(EventValue::Absent, |at| self.events.value(self.row, at))
    }

    fn number(&self, field: &str) -> Option<i64> {
        self.events.number(self.row, self.entry.field(field)?)
    }

    fn text(&self, field: &str) -> Option<&'e str> {
        match self.value(field) {
            EventValue::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// The flow of the event, if it is one over QUIC.
    fn flow(&self) -> Option<&'e RunFlow> {
        let stream = self.number("stream").filter(|stream| *stream >= 0)?;
        let flow = self.index.flow(unit_ids::stream_parts(stream).0)?;
        let stack = flow.stack.split('(').next().unwrap_or_default().trim();
        ["quic", "http3"].contains(&stack).then_some(flow)
    }

    /// The event's name and data in qlog; `None` if qlog has no such event, or it is not about QUIC.
    fn event(&self, flow: Option<&RunFlow>) -> Option<(&'static str, Json)> {
        match (self.entry.keyword, flow) {
            ("QUIC_SENT", _) => Some(("quic:packet_sent", self.packet())),
            ("QUIC_RECEIVED", _) => Some(("quic:packet_received", self.packet())),
            ("QUIC_LOST", _) => Some(("quic:packet_lost", self.lost_packet())),
            ("QUIC_INFO", _) => Some(("quic:recovery_metrics_updated", self.metrics())),
            ("APP_CONNECT", Some(_)) => {
                let end = || json!({ "connection_ids": [] });
                let ends = json!({ "local": end(), "remote": end() });
                Some(("quic:connection_started", ends))
            }
            ("QUIC_CONNECTED" | "APP_ACCEPTED", Some(_)) => Some((
                "quic:connection_state_updated",
                json!({ "new": "handshake_complete" }),
            )),
            ("APP_DISCONNECTED", Some(_)) => Some((
                "quic:connection_closed",
                json!({ "trigger": "application" }),
            )),
            ("NET_ENQUEUE", Some(_)) if self.is_first_port() => {
                Some(("quic:udp_datagrams_sent", self.datagrams()))
            }
            ("NET_DELIVER", Some(_)) => Some(("quic:udp_datagrams_received", self.datagrams())),
            _ => None,
        }
    }

    /// Whether a packet is at its own host: `a>x` of a packet from a.
    fn is_first_port(&self) -> bool {
        let from = self.text("way").and_then(|way| way.split('>').next());
        from == Some(self.host())
    }

    /// A packet with the frame of a stream that the event is about.
    fn packet(&self) -> Json {
        let mut header = Map::new();
        let kind = self.text("kind").unwrap_or("unknown");
        header.insert("packet_type".into(), kind.into());
        insert(&mut header, "packet_number", self.number("packet"));
        let mut packet = Map::new();
        packet.insert("header".into(), header.into());
        match self.number("stream") {
            Some(stream) => {
                let mut frame = Map::new();
                frame.insert("frame_type".into(), "stream".into());
                frame.insert("stream_id".into(), stream.into());
                insert(&mut frame, "offset", self.number("offset"));
                if let Some(bytes) = self.number("bytes") {
                    frame.insert("raw".into(), json!({ "payload_length": bytes }));
                }
                packet.insert("frames".into(), json!([frame]));
            }
            None => self.insert_length(&mut packet),
        }
        packet.into()
    }

    /// A lost packet; a simulated end knows its length and not its number.
    fn lost_packet(&self) -> Json {
        let mut packet = Map::new();
        if let Some(number) = self.number("packet") {
            let header = json!({ "packet_type": "unknown", "packet_number": number });
            packet.insert("header".into(), header);
        }
        self.insert_length(&mut packet);
        if let Some(cause) = self.text("cause") {
            packet.insert("trigger".into(), cause.into());
        }
        packet.into()
    }

    fn insert_length(&self, packet: &mut Map<String, Json>) {
        if let Some(bytes) = self.number("bytes") {
            packet.insert("raw".into(), json!({ "length": bytes }));
        }
    }

    fn metrics(&self) -> Json {
        let mut metrics = Map::new();
        insert(&mut metrics, "congestion_window", self.number("cwnd_bytes"));
        insert(
            &mut metrics,
            "bytes_in_flight",
            self.number("in_flight_bytes"),
        );
        let round_trip = self.number("rtt_ns").and_then(|ns| u64::try_from(ns).ok());
        if let Some(round_trip) = round_trip {
            metrics.insert("smoothed_rtt".into(), ms(round_trip));
        }
        metrics.into()
    }

    /// The datagrams of a packet at a network. Those that offload has joined have no lengths of their own.
    fn datagrams(&self) -> Json {
        let count = self.number("segments").unwrap_or(1).max(1);
        let mut datagrams = Map::new();
        datagrams.insert("count".into(), count.into());
        if let (Some(length), 1) = (self.number("length"), count) {
            let raw = json!([{ "length": (length - HEADERS).max(0) }]);
            datagrams.insert("raw".into(), raw);
        }
        if let Some(number) = self
            .number("number")
            .and_then(|number| u32::try_from(number).ok())
        {
            datagrams.insert("datagram_ids".into(), json!([number]));
        }
        datagrams.into()
    }
}

fn insert(into: &mut Map<String, Json>, name: &str, number: Option<i64>) {
    if let Some(number) = number {
        into.insert(name.into(), number.into());
    }
}

#[cfg(test)]
mod tests;
