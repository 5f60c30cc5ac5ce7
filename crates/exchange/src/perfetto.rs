//! A trace for Perfetto's viewer: one file a host (a machine there), a track a keyword, every event an instant with its data,
//! a flow through the events of each unit, whatever hosts they are on; monitors are counters.
//! A manifest (version 1) beside the files puts all of them on one time axis.
//!
//! Only the messages and fields that are needed are here, by their numbers in perfetto_trace.proto.

use prost::Message;
use serde_json::{Value as Json, json};
use stackline_analyze::lifelines::Lifelines;
use stackline_core::trace::Index;
use stackline_events::catalogue::{self, Layer};
use stackline_events::{Table, Value};
use std::collections::BTreeMap;

/// What a trace is made of.
#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<Packet>,
}

#[derive(Clone, PartialEq, Message)]
struct Packet {
    #[prost(message, optional, tag = "6")]
    clock_snapshot: Option<ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, tag = "10")]
    trusted_packet_sequence_id: u32,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(uint32, optional, tag = "13")]
    sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    clocks: Vec<Clock>,
}

#[derive(Clone, PartialEq, Message)]
struct Clock {
    #[prost(uint32, tag = "1")]
    clock_id: u32,
    #[prost(uint64, tag = "2")]
    timestamp: u64,
}

#[derive(Clone, PartialEq, Message)]
struct TrackDescriptor {
    #[prost(uint64, tag = "1")]
    uuid: u64,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(message, optional, tag = "3")]
    process: Option<Process>,
    #[prost(uint64, optional, tag = "5")]
    parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    counter: Option<Counter>,
    /// 3: by the ranks of its children.
    #[prost(int32, optional, tag = "11")]
    child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    sibling_order_rank: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct Process {
    #[prost(int32, tag = "1")]
    pid: i32,
    #[prost(string, tag = "6")]
    process_name: String,
}

#[derive(Clone, PartialEq, Message)]
struct Counter {
    #[prost(string, tag = "6")]
    unit_name: String,
}

#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    debug_annotations: Vec<Annotation>,
    /// 1 a slice begins, 2 one ends, 3 an instant, 4 a counter.
    #[prost(int32, tag = "9")]
    r#type: i32,
    #[prost(uint64, tag = "11")]
    track_uuid: u64,
    #[prost(string, repeated, tag = "22")]
    categories: Vec<String>,
    #[prost(string, optional, tag = "23")]
    name: Option<String>,
    #[prost(int64, optional, tag = "30")]
    counter_value: Option<i64>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    flow_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct Annotation {
    #[prost(int64, optional, tag = "4")]
    int_value: Option<i64>,
    #[prost(string, optional, tag = "6")]
    string_value: Option<String>,
    #[prost(string, tag = "10")]
    name: String,
}

/// The clock that times are in unless they say otherwise, and the wall clock: the same here, as all times are ns since 1970 or
/// since the run's origin.
const BOOTTIME: u32 = 6;
const REALTIME: u32 = 1;
const INSTANT: i32 = 3;
const COUNTER: i32 = 4;
const EXPLICIT: i32 = 3;
/// What was said before on this sequence is forgotten.
const INCREMENTAL_STATE_CLEARED: u32 = 1;

/// The manifest's name; it is the first by name.
pub const MANIFEST: &str = "perfetto_manifest.json";

/// The files of a trace, by name: one a host and the manifest. All times are in the reference host's.
#[must_use]
pub fn files(events: &Table, lifelines: &Lifelines, index: &Index) -> BTreeMap<String, Vec<u8>> {
    let mut hosts: BTreeMap<&str, Host<'_>> = BTreeMap::new();
    let units = flows(lifelines);
    for row in events.by_time() {
        let row = row as usize;
        let name = events.host(row);
        let pid = hosts.len() as u32 + 1;
        hosts.entry(name).or_insert_with(|| Host::new(name, pid)).put(events, row, index, &units);
    }
    let manifest = manifest(hosts.values().map(|host| (host.name, host.file_name())), index);
    let files = hosts.values().map(|host| (host.file_name(), host.trace.encode_to_vec()));
    files.chain([(MANIFEST.to_owned(), format!("{manifest:#}\n").into_bytes())]).collect()
}

/// Which line each event is on, by row.
fn flows(lifelines: &Lifelines) -> BTreeMap<u32, u64> {
    let lines = lifelines.lines.iter().zip(1..);
    lines.flat_map(|(line, id)| lifelines.passages_of(line).iter().map(move |passage| (passage.row, id))).collect()
}

fn manifest<'h>(hosts: impl Iterator<Item = (&'h str, String)>, index: &Index) -> Json {
    let hosts: Vec<(&str, String)> = hosts.collect();
    let reference = hosts.iter().find(|(name, _)| *name == index.reference).or(hosts.first());
    let reference = reference.map(|(_, file)| file.clone()).unwrap_or_default();
    let file = |(name, path): &(&str, String)| {
        let mut entry = json!({"path": path, "machine": {"name": name}});
        if *path != reference {
            entry["clocks"] = json!({"clock": "BOOTTIME", "is": {"file": reference, "clock": "BOOTTIME"}});
        }
        entry
    };
    let files: Vec<Json> = hosts.iter().map(file).collect();
    json!({"perfetto_manifest": {"version": 1, "trace_time": {"clock": "BOOTTIME", "file": reference}, "files": files}})
}

/// A host's file being made.
struct Host<'n> {
    name: &'n str,
    trace: Trace,
    sequence: u32,
    /// The track of each keyword, and of each counter.
    tracks: BTreeMap<String, u64>,
}

impl<'n> Host<'n> {
    fn new(name: &'n str, pid: u32) -> Self {
        let mut host = Self { name, trace: Trace::default(), sequence: pid, tracks: BTreeMap::new() };
        let clocks = [BOOTTIME, REALTIME].map(|clock_id| Clock { clock_id, timestamp: 0 });
        host.packet(Packet {
            clock_snapshot: Some(ClockSnapshot { clocks: clocks.to_vec() }),
            sequence_flags: Some(INCREMENTAL_STATE_CLEARED),
            ..Packet::default()
        });
        let process = Some(Process { pid: pid as i32, process_name: name.to_owned() });
        let (uuid, name) = (host.process(), name.to_owned());
        host.describe(TrackDescriptor {
            uuid,
            name,
            process,
            child_ordering: Some(EXPLICIT),
            ..TrackDescriptor::default()
        });
        host
    }

    /// What of its name a file may have, and a number, so that names that are alike stay apart.
    fn file_name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
        format!("{}-{}.pftrace", self.sequence, self.name.chars().map(plain).take(100).collect::<String>())
    }

    /// Tracks stay distinct across files too.
    fn process(&self) -> u64 {
        u64::from(self.sequence) << 32
    }

    fn packet(&mut self, packet: Packet) {
        self.trace.packet.push(Packet { trusted_packet_sequence_id: self.sequence, ..packet });
    }

    fn describe(&mut self, descriptor: TrackDescriptor) {
        self.packet(Packet { track_descriptor: Some(descriptor), ..Packet::default() });
    }

    fn track(&mut self, name: &str, rank: i32, counter: bool) -> u64 {
        if let Some(track) = self.tracks.get(name) {
            return *track;
        }
        let uuid = self.process() + self.tracks.len() as u64 + 1;
        self.tracks.insert(name.to_owned(), uuid);
        self.describe(TrackDescriptor {
            uuid,
            name: name.to_owned(),
            parent_uuid: Some(self.process()),
            counter: counter.then(|| Counter { unit_name: unit_name(name).to_owned() }),
            sibling_order_rank: Some(rank),
            ..TrackDescriptor::default()
        });
        uuid
    }

    fn put(&mut self, events: &Table, row: usize, index: &Index, units: &BTreeMap<u32, u64>) {
        let keyword = events.keyword(row);
        let clock = index.hosts.get(events.host(row)).map(|host| &host.clock);
        let at_ns = clock.map_or(events.at_ns[row], |clock| clock.reference_ns(events.at_ns[row]));
        let rank = catalogue::ENTRIES.iter().position(|entry| entry.keyword == keyword);
        let entry = rank.map(|rank| &catalogue::ENTRIES[rank]);
        let rank = rank.map_or(i32::MAX, |rank| rank as i32);
        if let Some(entry) = entry.filter(|entry| entry.layer == Layer::Monitor) {
            return self.counters(events, row, at_ns, (entry, rank));
        }
        let track_uuid = self.track(keyword, rank, false);
        let event = TrackEvent {
            r#type: INSTANT,
            track_uuid,
            name: Some(keyword.to_owned()),
            categories: vec![keyword.split('_').next().unwrap_or_default().to_ascii_lowercase()],
            debug_annotations: annotations(events, row, entry),
            flow_ids: units.get(&(row as u32)).copied().into_iter().collect(),
            ..TrackEvent::default()
        };
        self.packet(Packet { timestamp: Some(at_ns), track_event: Some(event), ..Packet::default() });
    }

    /// A monitor's numbers, one counter each; its texts (a core, an interface) are part of the counter's name.
    fn counters(&mut self, events: &Table, row: usize, at_ns: u64, (entry, rank): (&catalogue::Entry, i32)) {
        const NAMES: &[&str] = &["core", "interface", "resource", "port", "local", "remote", "stream", "pid"];
        let label = |name: &str| entry.field(name).map(|field| events.value(row, field).to_string());
        let labels: Vec<String> = NAMES.iter().filter_map(|name| label(name)).filter(|l| !l.is_empty()).collect();
        for (field, name) in entry.data.iter().enumerate().skip(1).filter(|(_, name)| !NAMES.contains(name)) {
            let Some(value) = events.number(row, field) else { continue };
            let counter = [&[entry.keyword.to_owned()], &labels[..], &[(*name).to_owned()]].concat().join(" ");
            let track_uuid = self.track(&counter, rank, true);
            let event = TrackEvent { r#type: COUNTER, track_uuid, counter_value: Some(value), ..TrackEvent::default() };
            self.packet(Packet { timestamp: Some(at_ns), track_event: Some(event), ..Packet::default() });
        }
    }
}

/// The unit a field's name ends with.
fn unit_name(counter: &str) -> &str {
    counter.rsplit('_').next().filter(|unit| matches!(*unit, "ns" | "bytes" | "ppm")).unwrap_or_default()
}

fn annotations(events: &Table, row: usize, entry: Option<&catalogue::Entry>) -> Vec<Annotation> {
    let name = |field: usize| {
        let known = entry.and_then(|entry| entry.data.get(field));
        known.map_or_else(|| format!("data {}", field + 1), |name| (*name).to_owned())
    };
    let annotation = |field: usize| match events.value(row, field) {
        Value::Absent => None,
        Value::Number(value) => Some(Annotation { int_value: Some(value), string_value: None, name: name(field) }),
        Value::Text(text) => {
            Some(Annotation { int_value: None, string_value: Some(text.to_owned()), name: name(field) })
        }
    };
    (0..events.data.len()).filter_map(annotation).collect()
}

#[cfg(test)]
mod tests;
