//! qlog (draft-ietf-quic-qlog-main-schema): what a QUIC stack, such as quinn, logs of itself, as JSON or JSON-SEQ (RFC 7464).
//!
//! Packets sent, received and lost become `QUIC_*` events, one for each stream frame they carry, with its stream and byte
//! range; everything else becomes an event of its own name with its data as JSON. Times relative to a reference become ns
//! since 1970; qlog has them as floating-point milliseconds, so they are exact to some hundred ns at best.

use crate::{Error, Imported, json_mistake, keyword_of_others, moment};
use serde_json::Value as Json;
use stackline_dissect::left_out::Bound;
use stackline_events::EventValue;
use stackline_redact::{LEFT_OUT, foreign_names, qlog as kept};

/// Begins a record of JSON-SEQ.
const SEPARATOR: u8 = 0x1e;
/// As many bytes of an event's data are kept as JSON.
const LONGEST_DATA: usize = Bound::Data.most();

/// Reads a file. `host` is whose log it is; without one the vantage point's name. Of events' data `stackline-redact` says what is
/// kept, or all where `contents` are asked for.
///
/// # Errors
/// When it is no qlog.
pub fn read(bytes: &[u8], host: Option<&str>, contents: bool) -> Result<Imported, Error> {
    let mut imported = Imported::default();
    if bytes.contains(&SEPARATOR) {
        read_sequence(bytes, host, contents, &mut imported)?;
    } else {
        let log: Json =
            serde_json::from_slice(bytes).map_err(|cause| Error::new("this is no qlog", cause))?;
        let traces = log["traces"]
            .as_array()
            .ok_or_else(|| Error::new("this is no qlog", "it has no traces"))?;
        for trace in traces {
            let mut reader = QlogTraceReader::of(trace, host, contents);
            for event in trace["events"].as_array().into_iter().flatten() {
                reader.event(event, &mut imported);
            }
        }
    }
    Ok(imported)
}

/// The first record says what the file is, each further one is an event. One that was cut off is a mistake and no more.
fn read_sequence(
    bytes: &[u8],
    host: Option<&str>,
    contents: bool,
    imported: &mut Imported,
) -> Result<(), Error> {
    let mut records = bytes
        .split(|byte| *byte == SEPARATOR)
        .filter(|record| !record.trim_ascii().is_empty());
    let first = records.next().unwrap_or_default();
    let header: Json =
        serde_json::from_slice(first).map_err(|cause| Error::new("this is no qlog", cause))?;
    if header.get("qlog_version").is_none() && header.get("file_schema").is_none() {
        return Err(Error::new(
            "this is no qlog",
            "its first record has neither qlog_version nor file_schema",
        ));
    }
    let mut reader = QlogTraceReader::of(&header["trace"], host, contents);
    for record in records {
        match serde_json::from_slice(record) {
            Ok(event) => reader.event(&event, imported),
            Err(cause) => imported.mistake(format!("a record: {}", json_mistake(&cause))),
        }
    }
    Ok(())
}

/// One trace: whose it is and what its times count from.
struct QlogTraceReader {
    host: String,
    reference_ns: i128,
    /// Whether each time counts from the one before.
    deltas: bool,
    latest_ms: f64,
    group: Option<String>,
    contents: bool,
}

impl QlogTraceReader {
    fn of(trace: &Json, host: Option<&str>, contents: bool) -> Self {
        let point = &trace["vantage_point"];
        let named = host
            .or_else(|| point["name"].as_str())
            .or_else(|| point["type"].as_str());
        let common = &trace["common_fields"];
        // Drafts up to 8 have a number of ms, later ones an object with a text.
        let reference = &common["reference_time"];
        let reference_ns = reference
            .as_f64()
            .and_then(nanoseconds)
            .or_else(|| wall_ns(reference))
            .unwrap_or(0);
        let format = common["time_format"].as_str().unwrap_or_default();
        let deltas = matches!(format, "delta" | "relative_to_previous_event");
        let group = common["group_id"]
            .as_str()
            .or_else(|| common["ODCID"].as_str())
            .map(str::to_owned);
        let host = named
            .filter(|name| !name.is_empty())
            .unwrap_or("quic")
            .to_owned();
        Self {
            host,
            reference_ns,
            deltas,
            latest_ms: 0.0,
            group,
            contents,
        }
    }

    fn event(&mut self, event: &Json, imported: &mut Imported) {
        let (Some(time), Some(name)) = (event["time"].as_f64(), event["name"].as_str()) else {
            imported.mistake("an event has no time or no name".to_owned());
            return;
        };
        let name = &if self.contents {
            name.to_owned()
        } else {
            foreign_names::redact_foreign_name(name)
        };
        self.latest_ms = if self.deltas {
            self.latest_ms + time
        } else {
            time
        };
        let Some(at_ns) = self.at_ns() else {
            imported.mistake(format!(
                "{name} has {time} ms as its time, which is not one"
            ));
            return;
        };
        let short = name.rsplit(':').next().unwrap_or(name);
        match short {
            "packet_sent" => self.packet("QUIC_SENT", at_ns, &event["data"], imported),
            "packet_received" => self.packet("QUIC_RECEIVED", at_ns, &event["data"], imported),
            "packet_lost" => self.packet("QUIC_LOST", at_ns, &event["data"], imported),
            _ => self.other(name, at_ns, &event["data"], imported),
        }
    }

    fn at_ns(&self) -> Option<u64> {
        u64::try_from(self.reference_ns + nanoseconds(self.latest_ms)?).ok()
    }

    fn packet(&self, keyword: &str, at_ns: u64, data: &Json, imported: &mut Imported) {
        let header = &data["header"];
        let shown = |kind: &str| {
            if self.contents {
                kind.to_owned()
            } else {
                foreign_names::redact_foreign_name(kind)
            }
        };
        let number = EventValue::from(header["packet_number"].as_u64());
        let kind = header["packet_type"]
            .as_str()
            .or_else(|| data["trigger"].as_str())
            .unwrap_or_default();
        let kind = if keyword == "QUIC_LOST" {
            data["trigger"].as_str().unwrap_or(kind)
        } else {
            kind
        };
        let kind = &shown(kind)[..];
        let frames = data["frames"].as_array().into_iter().flatten();
        let mut carried = false;
        for frame in frames.filter(|frame| frame["frame_type"].as_str() == Some("stream")) {
            carried = true;
            let field = |name: &str| EventValue::from(frame[name].as_u64());
            let bytes = frame["length"]
                .as_u64()
                .or_else(|| frame["raw"]["payload_length"].as_u64());
            let range = [
                EventValue::Absent,
                field("stream_id"),
                field("offset"),
                EventValue::from(bytes),
            ];
            imported.table.push(
                keyword,
                &self.host,
                at_ns,
                &[&range[..], &[number, EventValue::from(kind)]].concat(),
            );
        }
        if !carried {
            let bytes = EventValue::from(data["raw"]["length"].as_u64());
            let values = [
                EventValue::Absent,
                EventValue::Absent,
                EventValue::Absent,
                bytes,
                number,
                EventValue::from(kind),
            ];
            imported.table.push(keyword, &self.host, at_ns, &values);
        }
    }

    fn other(&self, name: &str, at_ns: u64, data: &Json, imported: &mut Imported) {
        let keyword = keyword_of_others(&["QLOG", name], "", &mut imported.left_out);
        let mut text = match data {
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
            EventValue::from(self.group.as_ref()),
            EventValue::from(&text),
        ];
        imported.table.push(&keyword, &self.host, at_ns, &values);
    }
}

/// Data without what may be a secret; `hidden`: what they are in is left out, but for numbers that say how long something is.
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
        Json::Array(_) | Json::String(_) | Json::Number(_) if hidden => LEFT_OUT.to_string().into(),
        other => other.clone(),
    }
}

/// ms as ns; the whole ones exactly.
#[expect(clippy::cast_possible_truncation, reason = "checked to be in range")]
fn nanoseconds(ms: f64) -> Option<i128> {
    let in_range = ms.is_finite() && ms.abs() < 1e13;
    in_range.then(|| (ms.trunc() as i128) * 1_000_000 + (ms.fract() * 1e6).round() as i128)
}

/// `{"wall_clock_time": "2026-01-02T03:04:05.678Z"}` in ns since 1970.
fn wall_ns(reference: &Json) -> Option<i128> {
    moment::of_rfc3339(reference["wall_clock_time"].as_str()?)
}

#[cfg(test)]
mod tests;
