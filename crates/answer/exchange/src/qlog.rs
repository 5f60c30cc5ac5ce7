//! Reads and writes qlog (draft-ietf-quic-qlog-main-schema), the log of a QUIC stack such as quinn, in any of its drafts: as one document, or as
//! records that are separated (RFC 7464) or on lines.
//!
//! Packets sent, received and lost become `QUIC_*` events, one for each stream frame they carry, with its stream and byte range. Metrics
//! of the sender become `QUIC_INFO` too; everything else becomes an event named after the qlog event, with its data as JSON. Streams on
//! which a client asks are requests (`requests`). Relative times become ns since 1970; qlog has floating-point milliseconds, so they are
//! exact to some hundred ns at best. Of a document that was cut short, the complete events are read.

mod export;
mod framing;
mod packets;
pub(crate) mod requests;
mod send_pauses;
mod sender;
pub(crate) mod streams;
mod values;

use crate::{Error, Imported, json_mistake, keyword_of_others, moment};
pub use export::{QlogDocument, document};
use packets::{QlogPacket, QlogPacketPoint};
use sender::QlogSender;
use serde_json::Value as Json;
use stackline_dissect::left_out::Bound;
use stackline_events::{EventTable, EventValue};
use stackline_redact::{LEFT_OUT, foreign_names, qlog as kept};
use std::collections::BTreeMap;
use streams::{QlogConnection, QlogPassage, QlogSide};
use values::{nanoseconds, number_of};

/// The most bytes of an event's data that are kept as JSON.
const LONGEST_DATA: usize = Bound::Data.most();
/// A millisecond in ns.
const MS: i64 = 1_000_000;

/// The content of a log.
#[derive(Debug, Default)]
pub struct QlogLog {
    /// The events.
    pub imported: Imported,
    /// The connections, with what was sent and received on their streams.
    pub(crate) connections: Vec<QlogConnection>,
}

impl QlogLog {
    /// The requests on the connections, as events, without the logs of the other ends.
    #[must_use]
    pub fn requests(&self, contents: bool) -> EventTable {
        requests::find_requests(self.connections.clone(), 0, contents).table
    }
}

/// Reads a file. `host` is the name of the host that logs; without it, the name and side of the vantage point are used. Data is redacted
/// by `stackline-redact`, unless `contents` is set.
///
/// # Errors
/// If it is not qlog.
pub fn read(bytes: &[u8], host: Option<&str>, contents: bool) -> Result<QlogLog, Error> {
    let mut log = QlogLog::default();
    match framing::find_separator(bytes) {
        Some(separator) => {
            let records = framing::records(bytes, separator);
            read_sequence(records, host, contents, &mut log)?;
        }
        None => read_document(bytes, host, contents, &mut log)?,
    }
    Ok(log)
}

/// Reads all traces of a document.
fn read_document(
    bytes: &[u8],
    host: Option<&str>,
    contents: bool,
    into: &mut QlogLog,
) -> Result<(), Error> {
    let log = serde_json::from_slice(bytes).or_else(|cause: serde_json::Error| {
        let mistake = json_mistake(&cause, 0);
        let whole = framing::whole_part(bytes, &cause)
            .ok_or_else(|| Error::new("this is not qlog", &mistake))?;
        into.imported.mistake(format!(
            "nothing after the last complete event was read: {mistake}"
        ));
        Ok(whole)
    });
    let log: Json = log?;
    let traces = log["traces"]
        .as_array()
        .ok_or_else(|| Error::new("this is not qlog", "it has no traces"))?;
    for trace in traces {
        let mut reader = QlogTraceReader::from_trace(trace, host, contents);
        for event in trace["events"].as_array().into_iter().flatten() {
            reader.read_event(event, &mut into.imported);
        }
        reader.finish(into);
    }
    Ok(())
}

/// Reads records: the first one describes the file, each further one is an event. A record that cannot be read is counted as a mistake.
fn read_sequence<'b>(
    mut records: impl Iterator<Item = &'b [u8]>,
    host: Option<&str>,
    contents: bool,
    into: &mut QlogLog,
) -> Result<(), Error> {
    let header: Json = serde_json::from_slice(records.next().unwrap_or_default())
        .map_err(|cause| Error::new("this is not qlog", json_mistake(&cause, 0)))?;
    if !framing::is_header(&header) {
        return Err(Error::new(
            "this is not qlog",
            "its first record has neither qlog_version nor file_schema",
        ));
    }
    let mut reader = QlogTraceReader::from_trace(&header["trace"], host, contents);
    for record in records {
        match serde_json::from_slice(record) {
            Ok(event) => reader.read_event(&event, &mut into.imported),
            Err(cause) => into
                .imported
                .mistake(format!("a record: {}", json_mistake(&cause, 0))),
        }
    }
    reader.finish(into);
    Ok(())
}

/// An event, independent of its draft.
struct QlogEvent<'j> {
    time: f64,
    name: String,
    data: &'j Json,
    trigger: Option<&'j str>,
    group: Option<&'j str>,
}

/// Reads the events of one trace.
struct QlogTraceReader {
    host: String,
    /// What times count from, ns since 1970.
    reference_ns: i128,
    /// Whether the first event defines the reference time, whatever its own time is.
    begins_at_reference: bool,
    /// Whether each time counts from the previous event.
    deltas: bool,
    /// The unit of times, ns.
    unit_ns: i64,
    /// The field names of events that are arrays (drafts 0 and 1).
    columns: Vec<String>,
    /// The time of the latest event, in the trace's unit.
    latest: Option<f64>,
    /// The connection of events that name none.
    group: Option<String>,
    sender: QlogSender,
    /// The end that logs. Where the log does not say it, it is the client if it sends the first packet.
    side: Option<QlogSide>,
    connections: BTreeMap<Option<String>, QlogConnection>,
    contents: bool,
}

impl QlogTraceReader {
    fn from_trace(trace: &Json, host: Option<&str>, contents: bool) -> Self {
        let common = &trace["common_fields"];
        let columns: Vec<String> = trace["event_fields"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|field| field.as_str().unwrap_or_default().to_lowercase())
            .collect();
        let unit = trace["configuration"]["time_units"].as_str();
        let unit_ns = match unit.unwrap_or_default() {
            "us" => 1000,
            "ns" => 1,
            _ => MS,
        };
        let format = common["time_format"].as_str().unwrap_or_default();
        let deltas = matches!(format, "delta" | "relative_to_previous_event")
            || columns.iter().any(|column| column == "delta_time");
        let group = ["group_id", "ODCID", "dcid"]
            .iter()
            .find_map(|name| common[*name].as_str())
            .map(str::to_owned);
        let reference = &common["reference_time"];
        let is_unknown = reference["epoch"].as_str() == Some("unknown");
        Self {
            host: host.map_or_else(|| name_host(&trace["vantage_point"]), str::to_owned),
            reference_ns: reference_ns(reference, unit_ns).unwrap_or(0),
            begins_at_reference: is_unknown && !deltas,
            deltas,
            unit_ns,
            columns,
            latest: None,
            group,
            sender: QlogSender::default(),
            side: match trace["vantage_point"]["type"].as_str() {
                Some("client") => Some(QlogSide::Client),
                Some("server") => Some(QlogSide::Server),
                _ => None,
            },
            connections: BTreeMap::new(),
            contents,
        }
    }

    /// Reads an event that is an object, or an array in the order of the trace's columns.
    fn event_of<'j>(&self, event: &'j Json) -> Option<QlogEvent<'j>> {
        let field = |names: &[&str]| match event {
            Json::Array(values) => self
                .columns
                .iter()
                .position(|column| names.contains(&&column[..]))
                .and_then(|at| values.get(at)),
            _ => values::first_of(event, names),
        };
        let text = |names: &[&str]| field(names).and_then(Json::as_str);
        let name = match text(&["name"]) {
            Some(name) => name.to_owned(),
            None => {
                let name = text(&["event", "event_type", "type"])?;
                let category = text(&["category"]).unwrap_or("quic");
                format!("{category}:{name}").to_lowercase()
            }
        };
        Some(QlogEvent {
            time: field(&["time", "relative_time", "delta_time"]).and_then(number_of)?,
            name,
            data: field(&["data"]).unwrap_or(&Json::Null),
            trigger: text(&["trigger"]),
            group: text(&["group_id", "odcid"]),
        })
    }

    /// Reads an event and adds what becomes of it.
    fn read_event(&mut self, event: &Json, imported: &mut Imported) {
        let Some(event) = self.event_of(event) else {
            imported.mistake("an event lacks a time or a name".to_owned());
            return;
        };
        let name = &self.shown(&event.name);
        let Some(at_ns) = self.time_of(event.time) else {
            imported.mistake(format!("{name} has an invalid time: {} ms", event.time));
            return;
        };
        self.sender.pass(at_ns);
        match event.name.rsplit([':', '.']).next().unwrap_or_default() {
            "packet_sent" => self.packet(QlogPacketPoint::Sent, at_ns, &event, imported),
            "packet_received" => self.packet(QlogPacketPoint::Received, at_ns, &event, imported),
            "packet_lost" => self.packet(QlogPacketPoint::Lost, at_ns, &event, imported),
            "metrics_updated"
            | "recovery_metrics_updated"
            | "metric_update"
            | "congestion_metric_update" => {
                let least_ns = self.sender.take_figures(event.data, self.unit_ns);
                self.sender.report(&self.host, at_ns, &mut imported.table);
                self.connection(&event).measure_round_trip(least_ns);
                self.other(name, at_ns, &event, imported);
            }
            "congestion_state_updated" => {
                self.sender.take_state(event.data);
                self.other(name, at_ns, &event, imported);
            }
            "frame_created" | "frame_parsed" => {
                self.connection(&event).http_frame(event.data);
                self.other(name, at_ns, &event, imported);
            }
            _ => self.other(name, at_ns, &event, imported),
        }
    }

    /// The connection that an event belongs to.
    fn connection(&mut self, event: &QlogEvent<'_>) -> &mut QlogConnection {
        let group = event
            .group
            .map(str::to_owned)
            .or_else(|| self.group.clone());
        self.connections.entry(group).or_default()
    }

    /// A foreign name, redacted unless contents are kept.
    fn shown(&self, name: &str) -> String {
        match self.contents {
            true => name.to_owned(),
            false => foreign_names::redact_foreign_name(name),
        }
    }

    /// The time of an event, ns since 1970.
    fn time_of(&mut self, time: f64) -> Option<u64> {
        let (first, before) = (self.latest.is_none(), self.latest.unwrap_or(0.0));
        let time = if self.deltas { before + time } else { time };
        let since_ns = nanoseconds(time, self.unit_ns)?;
        if first && self.begins_at_reference {
            self.reference_ns -= since_ns;
        }
        self.latest = Some(time);
        u64::try_from(self.reference_ns + since_ns).ok()
    }

    /// Adds a packet that was sent, received or lost.
    fn packet(
        &mut self,
        point: QlogPacketPoint,
        at_ns: u64,
        event: &QlogEvent<'_>,
        imported: &mut Imported,
    ) {
        let packet = QlogPacket::new(point, event.data, event.trigger);
        match point {
            QlogPacketPoint::Lost => self.sender.lose_packet(),
            _ => {
                let is_sent = point == QlogPacketPoint::Sent;
                self.sender.take_frames(packet.frames, is_sent, at_ns);
                let first = match is_sent {
                    true => QlogSide::Client,
                    false => QlogSide::Server,
                };
                let passage = QlogPassage {
                    at_ns,
                    side: *self.side.get_or_insert(first),
                    is_sent,
                };
                self.connection(event).packet(passage, &packet);
            }
        }
        let kind = self.shown(packet.kind);
        packet.push(&self.host, at_ns, &kind, &mut imported.table);
    }

    /// Adds an event without special meaning, with its data as JSON.
    fn other(&self, name: &str, at_ns: u64, event: &QlogEvent<'_>, imported: &mut Imported) {
        let keyword = keyword_of_others(&["QLOG", name], "", &mut imported.left_out);
        let mut text = match event.data {
            Json::Null => String::new(),
            data if self.contents => data.to_string(),
            data => harmless("", data, false).to_string(),
        };
        if text.len() > LONGEST_DATA {
            imported.left_out.add(Bound::Data, 1);
            text.truncate(text.floor_char_boundary(LONGEST_DATA));
        }
        let values = [
            EventValue::Absent,
            EventValue::Absent,
            EventValue::Absent,
            EventValue::Absent,
            EventValue::from(event.group.or(self.group.as_deref())),
            EventValue::from(&text),
        ];
        imported.table.push(&keyword, &self.host, at_ns, &values);
    }

    /// Reports the sender's last metrics and hands over the connections.
    fn finish(mut self, into: &mut QlogLog) {
        if self.sender.has_unreported() {
            let at_ns = self.sender.until_ns();
            self.sender
                .report(&self.host, at_ns, &mut into.imported.table);
        }
        let Some(side) = self.side else {
            return;
        };
        for (group, mut connection) in self.connections {
            connection.group = group;
            connection.hosts[side as usize] = Some(self.host.clone());
            into.connections.push(connection);
        }
    }
}

/// The name of the host at a vantage point: its name and its side, since both ends may be named after one library.
fn name_host(point: &Json) -> String {
    let text = |field: &str| {
        point[field]
            .as_str()
            .filter(|text| !text.is_empty() && *text != "unknown")
    };
    match (text("name"), text("type")) {
        (Some(name), Some(side)) if !name.to_lowercase().contains(side) => format!("{name}-{side}"),
        (Some(name), _) => name.to_owned(),
        (None, Some(side)) => side.to_owned(),
        (None, None) => "quic".to_owned(),
    }
}

/// The reference time, ns since 1970: a number of units in drafts up to 8, later an object with texts. A number in the range of ms since
/// 1970 is taken as ms, whatever the unit is.
fn reference_ns(reference: &Json, unit_ns: i64) -> Option<i128> {
    const LIKE_MS: std::ops::Range<f64> = 1e12..1e14;
    if let Some(number) = number_of(reference) {
        let unit_ns = if LIKE_MS.contains(&number) {
            MS
        } else {
            unit_ns
        };
        return nanoseconds(number, unit_ns);
    }
    let moment = |field: &str| moment::of_rfc3339(reference[field].as_str()?);
    moment("epoch").or_else(|| moment("wall_clock_time"))
}

/// Redacts an event's data. With `hidden`, texts, lists and numbers are dropped, except lengths and names of states.
fn harmless(field: &str, data: &Json, hidden: bool) -> Json {
    match data {
        Json::Object(object) => {
            let text = |name: &str| object.get(name).and_then(Json::as_str);
            if let (Some(name), Some(value)) = (text("name"), text("value")) {
                return serde_json::json!({ "name": name, "value": kept::redact_header(name, value) });
            }
            let fields = object.iter().map(|(name, value)| {
                let hidden = (hidden || kept::is_hidden(name)) && name != "length";
                (name.clone(), harmless(name, value, hidden))
            });
            Json::Object(fields.collect())
        }
        Json::Array(values) if !hidden => values
            .iter()
            .map(|value| harmless(field, value, false))
            .collect(),
        Json::String(text) if !hidden => kept::redact_field(field, text).into(),
        Json::String(text) if kept::is_state(text) => text.clone().into(),
        Json::Array(_) | Json::String(_) | Json::Number(_) if hidden => LEFT_OUT.to_string().into(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
