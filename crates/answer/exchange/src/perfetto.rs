//! Writes a trace for Perfetto's viewer: one file per host (a machine there), one track per keyword, each event an instant with its data,
//! and a flow through the events of each unit across all hosts. Units are slices at the host where they begin, monitors are counters. A
//! manifest (version 1) beside the files puts all of them on one time axis. Names and texts are interned once per file and packets are
//! compressed, so that a trace is not much larger than the run.
//!
//! The messages here have only the fields that are needed, with their numbers from perfetto_trace.proto.

mod slices;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use prost::Message;
use serde_json::{Value as Json, json};
use slices::Slice;
use stackline_analyze::lifelines::Lifelines;
use stackline_core::trace_index::Index;
use stackline_events::EventTable;
use stackline_events::catalogue::{self, Layer};
use stackline_events::table::EventColumn;
use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;

/// A trace file; only tests read one.
#[cfg(test)]
#[derive(Clone, PartialEq, Message)]
struct PerfettoTrace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<PerfettoPacket>,
}

#[derive(Clone, PartialEq, Message)]
struct PerfettoPacket {
    #[prost(message, optional, tag = "6")]
    clock_snapshot: Option<ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, tag = "10")]
    trusted_packet_sequence_id: u32,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    interned_data: Option<Interned>,
    #[prost(uint32, optional, tag = "13")]
    sequence_flags: Option<u32>,
    /// Packets, compressed with zlib.
    #[prost(bytes = "vec", optional, tag = "50")]
    compressed_packets: Option<Vec<u8>>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

/// Names and texts that are interned with a packet, that is, defined when they first occur.
#[derive(Clone, PartialEq, Message)]
struct Interned {
    #[prost(message, repeated, tag = "1")]
    categories: Vec<PerfettoInternedName>,
    #[prost(message, repeated, tag = "2")]
    events: Vec<PerfettoInternedName>,
    #[prost(message, repeated, tag = "3")]
    annotations: Vec<PerfettoInternedName>,
    #[prost(message, repeated, tag = "29")]
    texts: Vec<PerfettoInternedName>,
}

/// An interned text and its number.
#[derive(Clone, PartialEq, Message)]
struct PerfettoInternedName {
    #[prost(uint64, tag = "1")]
    iid: u64,
    #[prost(string, tag = "2")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    clocks: Vec<PerfettoClock>,
}

#[derive(Clone, PartialEq, Message)]
struct PerfettoClock {
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
    process: Option<PerfettoProcess>,
    #[prost(uint64, optional, tag = "5")]
    parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    counter: Option<Counter>,
    /// 3 (explicit): by the ranks of its children.
    #[prost(int32, optional, tag = "11")]
    child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    sibling_order_rank: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct PerfettoProcess {
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
    #[prost(uint64, repeated, tag = "3")]
    category_iids: Vec<u64>,
    #[prost(message, repeated, tag = "4")]
    debug_annotations: Vec<Annotation>,
    /// 1: a slice begins, 2: a slice ends, 3: an instant, 4: a counter.
    #[prost(int32, tag = "9")]
    r#type: i32,
    #[prost(uint64, tag = "10")]
    name_iid: u64,
    #[prost(uint64, tag = "11")]
    track_uuid: u64,
    #[prost(int64, optional, tag = "30")]
    counter_value: Option<i64>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    flow_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct Annotation {
    #[prost(uint64, tag = "1")]
    name_iid: u64,
    #[prost(int64, optional, tag = "4")]
    int_value: Option<i64>,
    #[prost(uint64, optional, tag = "17")]
    string_value_iid: Option<u64>,
}

/// Perfetto's ids of the default clock and of the wall clock. They are equal here, since all times are ns since 1970 or since the run's
/// origin.
const BOOTTIME: u32 = 6;
const REALTIME: u32 = 1;
/// Values of [`TrackEvent`]'s type.
const BEGIN: i32 = 1;
const END: i32 = 2;
const INSTANT: i32 = 3;
const COUNTER: i32 = 4;
/// The value of `child_ordering`.
const EXPLICIT: i32 = 3;
/// A flag of a packet: all interned names of this sequence are forgotten.
const INCREMENTAL_STATE_CLEARED: u32 = 1;
/// A flag of a packet: it refers to names that were interned before.
const NEEDS_INCREMENTAL_STATE: u32 = 2;
/// Packets are compressed in blocks of about this many bytes.
const BLOCK: usize = 1 << 20;

/// The manifest's file name. The viewer expects it to sort first.
pub const MANIFEST: &str = "perfetto_manifest.json";

/// The files of a trace, by name: one per host and the manifest. All times are converted to the reference host's clock.
#[must_use]
pub fn files(
    events: &EventTable,
    lifelines: &Lifelines,
    index: &Index,
) -> BTreeMap<String, Vec<u8>> {
    let mut hosts: BTreeMap<&str, PerfettoHostFile<'_>> = BTreeMap::new();
    let units = flows(lifelines);
    for row in events.by_time() {
        let row = row as usize;
        let name = events.host(row);
        let pid = hosts.len() as u32 + 1;
        hosts
            .entry(name)
            .or_insert_with(|| PerfettoHostFile::new(name, pid))
            .put(events, row, index, &units);
    }
    for (name, slices) in slices::collect_slices(lifelines) {
        if let Some(host) = hosts.get_mut(name) {
            slices.iter().for_each(|slice| host.slice(slice, lifelines));
        }
    }
    let manifest = manifest(
        hosts.values().map(|host| (host.name, host.file_name())),
        index,
    );
    let files = hosts
        .into_values()
        .map(|host| (host.file_name(), host.finish()));
    files
        .chain([(MANIFEST.to_owned(), format!("{manifest:#}\n").into_bytes())])
        .collect()
}

/// For each row of the events, the flow of its lifeline (counted from 1); 0 for none.
fn flows(lifelines: &Lifelines) -> Vec<u64> {
    let rows = lifelines
        .passages
        .iter()
        .map(|passage| passage.row)
        .filter(|row| *row != u32::MAX);
    let mut flows = vec![0; rows.max().map_or(0, |row| row as usize + 1)];
    for (line, id) in lifelines.lines.iter().zip(1..) {
        for passage in lifelines.passages_of(line) {
            if let Some(flow) = flows.get_mut(passage.row as usize) {
                *flow = id;
            }
        }
    }
    flows
}

/// The manifest: the files, their hosts, and the common clock.
fn manifest<'h>(hosts: impl Iterator<Item = (&'h str, String)>, index: &Index) -> Json {
    let hosts: Vec<(&str, String)> = hosts.collect();
    let reference = hosts
        .iter()
        .find(|(name, _)| *name == index.reference)
        .or(hosts.first());
    let reference = reference.map(|(_, file)| file.clone()).unwrap_or_default();
    let file = |(name, path): &(&str, String)| {
        let mut entry = json!({"path": path, "machine": {"name": name}});
        if *path != reference {
            entry["clocks"] =
                json!({"clock": "BOOTTIME", "is": {"file": reference, "clock": "BOOTTIME"}});
        }
        entry
    };
    let files: Vec<Json> = hosts.iter().map(file).collect();
    json!({"perfetto_manifest": {"version": 1, "trace_time": {"clock": "BOOTTIME", "file": reference}, "files": files}})
}

/// The file of one host, while it is written.
struct PerfettoHostFile<'n> {
    name: &'n str,
    sequence: u32,
    /// Packets that are not compressed yet.
    packets: Vec<u8>,
    /// The compressed file so far.
    file: Vec<u8>,
    /// The track of each keyword and of each counter, by name.
    tracks: BTreeMap<String, u64>,
    /// Keywords and interned texts, by their numbers in the event table.
    keywords: HashMap<u32, PerfettoKeyword>,
    texts: HashMap<u32, u64>,
    /// The numbers of interned names of events, categories and data fields.
    names: BTreeMap<String, u64>,
    /// Names that the next packet has to define.
    interned: Interned,
}

/// A keyword that occurred, with its track and interned names.
#[derive(Clone)]
struct PerfettoKeyword {
    entry: Option<&'static catalogue::CatalogueEntry>,
    rank: i32,
    track: u64,
    name_iid: u64,
    category_iid: u64,
    /// The number of the interned name of each data field.
    fields: Vec<u64>,
}

impl<'n> PerfettoHostFile<'n> {
    fn new(name: &'n str, pid: u32) -> Self {
        let mut host = Self {
            name,
            sequence: pid,
            packets: Vec::new(),
            file: Vec::new(),
            tracks: BTreeMap::new(),
            keywords: HashMap::new(),
            texts: HashMap::new(),
            names: BTreeMap::new(),
            interned: Interned::default(),
        };
        let clocks = [BOOTTIME, REALTIME].map(|clock_id| PerfettoClock {
            clock_id,
            timestamp: 0,
        });
        host.packet(PerfettoPacket {
            clock_snapshot: Some(ClockSnapshot {
                clocks: clocks.to_vec(),
            }),
            sequence_flags: Some(INCREMENTAL_STATE_CLEARED),
            ..PerfettoPacket::default()
        });
        let process = Some(PerfettoProcess {
            pid: pid as i32,
            process_name: name.to_owned(),
        });
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

    /// The host's name with only the characters that a file name may have, and a number that keeps similar names apart.
    fn file_name(&self) -> String {
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || "._-".contains(c) {
                c
            } else {
                '-'
            }
        };
        format!(
            "{}-{}.pftrace",
            self.sequence,
            self.name.chars().map(plain).take(100).collect::<String>()
        )
    }

    /// The id of the host's own track. Track ids of different files must not collide, so the file's number is in the upper half.
    fn process(&self) -> u64 {
        u64::from(self.sequence) << 32
    }

    /// Adds a packet.
    fn packet(&mut self, packet: PerfettoPacket) {
        let packet = PerfettoPacket {
            trusted_packet_sequence_id: self.sequence,
            ..packet
        };
        prost::encoding::message::encode(1, &packet, &mut self.packets);
        if self.packets.len() >= BLOCK {
            self.compress();
        }
    }

    /// Compresses the waiting packets into the file.
    fn compress(&mut self) {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        // Writing into memory cannot fail.
        let compressed = encoder
            .write_all(&self.packets)
            .and_then(|()| encoder.finish())
            .unwrap_or_default();
        let packet = PerfettoPacket {
            compressed_packets: Some(compressed),
            ..PerfettoPacket::default()
        };
        prost::encoding::message::encode(1, &packet, &mut self.file);
        self.packets.clear();
    }

    fn finish(mut self) -> Vec<u8> {
        self.compress();
        self.file
    }

    /// Adds a packet with an event, and defines the names that it uses for the first time.
    fn event(&mut self, at_ns: u64, event: TrackEvent) {
        let interned = std::mem::take(&mut self.interned);
        self.packet(PerfettoPacket {
            timestamp: Some(at_ns),
            track_event: Some(event),
            interned_data: Some(interned).filter(|interned| *interned != Interned::default()),
            sequence_flags: Some(NEEDS_INCREMENTAL_STATE),
            ..PerfettoPacket::default()
        });
    }

    /// The number of an interned name; the next packet defines it. It is defined again if it was before.
    fn named(
        &mut self,
        name: &str,
        kind: fn(&mut Interned) -> &mut Vec<PerfettoInternedName>,
    ) -> u64 {
        let next = self.names.len() as u64 + 1;
        let iid = *self.names.entry(name.to_owned()).or_insert(next);
        let said = kind(&mut self.interned);
        said.push(PerfettoInternedName {
            iid,
            name: name.to_owned(),
        });
        iid
    }

    /// Adds a packet that describes a track.
    fn describe(&mut self, descriptor: TrackDescriptor) {
        self.packet(PerfettoPacket {
            track_descriptor: Some(descriptor),
            ..PerfettoPacket::default()
        });
    }

    /// The track of a name; describes it at the first call.
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
            counter: counter.then(|| Counter {
                unit_name: unit_name(name).to_owned(),
            }),
            sibling_order_rank: Some(rank),
            ..TrackDescriptor::default()
        });
        uuid
    }

    /// Adds a unit as a slice from its first event to its last, in its lane above all other tracks.
    fn slice(&mut self, slice: &Slice, lifelines: &Lifelines) {
        let track_uuid = self.track(&format!("units, lane {}", slice.lane + 1), -1, false);
        let unit = lifelines.lines[slice.line].unit.to_string();
        let name_iid = self.named(&format!("unit {unit}"), |interned| &mut interned.events);
        let event = |r#type| TrackEvent {
            r#type,
            track_uuid,
            name_iid,
            ..TrackEvent::default()
        };
        self.event(
            slice.from_ns,
            TrackEvent {
                flow_ids: vec![slice.line as u64 + 1],
                ..event(BEGIN)
            },
        );
        self.event(slice.to_ns, event(END));
    }

    /// Adds an event: an instant, or counters for a monitor's event.
    fn put(&mut self, events: &EventTable, row: usize, index: &Index, units: &[u64]) {
        let clock = index.hosts.get(events.host(row)).map(|host| &host.clock);
        let at_ns = clock.map_or(events.at_ns[row], |clock| {
            clock.reference_ns(events.at_ns[row])
        });
        let number = events.keyword[row];
        let known = match self.keywords.remove(&number) {
            Some(known) => known,
            None => self.known(events.keyword(row), events.data.len()),
        };
        match known.entry.filter(|entry| entry.layer == Layer::Monitor) {
            Some(entry) => self.counters(events, row, at_ns, entry, known.rank),
            None => {
                let event = TrackEvent {
                    r#type: INSTANT,
                    track_uuid: known.track,
                    name_iid: known.name_iid,
                    category_iids: vec![known.category_iid],
                    debug_annotations: self.annotations(events, row, &known.fields),
                    flow_ids: units
                        .get(row)
                        .copied()
                        .filter(|flow| *flow > 0)
                        .into_iter()
                        .collect(),
                    ..TrackEvent::default()
                };
                self.event(at_ns, event);
            }
        }
        self.keywords.insert(number, known);
    }

    /// Creates the track and the names of a keyword that occurs for the first time.
    fn known(&mut self, keyword: &str, fields: usize) -> PerfettoKeyword {
        let rank = catalogue::ENTRIES
            .iter()
            .position(|entry| entry.keyword == keyword);
        let entry = rank.map(|rank| &catalogue::ENTRIES[rank]);
        let rank = rank.map_or(i32::MAX, |rank| rank as i32);
        if entry.is_some_and(|entry| entry.layer == Layer::Monitor) {
            let (track, name_iid, category_iid, fields) = (0, 0, 0, Vec::new());
            return PerfettoKeyword {
                entry,
                rank,
                track,
                name_iid,
                category_iid,
                fields,
            };
        }
        let name = |field: usize| {
            let known = entry.and_then(|entry| entry.data.get(field));
            known.map_or_else(|| format!("data {}", field + 1), |name| (*name).to_owned())
        };
        let category = keyword
            .split('_')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        PerfettoKeyword {
            entry,
            rank,
            track: self.track(keyword, rank, false),
            name_iid: self.named(keyword, |interned| &mut interned.events),
            category_iid: self.named(&category, |interned| &mut interned.categories),
            fields: (0..fields)
                .map(|field| self.named(&name(field), |interned| &mut interned.annotations))
                .collect(),
        }
    }

    /// The data fields of an event.
    fn annotations(&mut self, events: &EventTable, row: usize, names: &[u64]) -> Vec<Annotation> {
        let mut annotations = Vec::with_capacity(names.len());
        for (column, name_iid) in events.data.iter().zip(names.iter().copied()) {
            let (int_value, string_value_iid) = match column.texts.get(row).copied() {
                None | Some(EventColumn::ABSENT) => continue,
                Some(EventColumn::NUMBER) => (Some(column.numbers[row]), None),
                Some(text) => (None, Some(self.text(events.names.text(text), text))),
            };
            annotations.push(Annotation {
                name_iid,
                int_value,
                string_value_iid,
            });
        }
        annotations
    }

    /// The number of an interned text of the event table.
    fn text(&mut self, text: &str, number: u32) -> u64 {
        let next = self.texts.len() as u64 + 1;
        *self.texts.entry(number).or_insert_with(|| {
            self.interned.texts.push(PerfettoInternedName {
                iid: next,
                name: text.to_owned(),
            });
            next
        })
    }

    /// Adds the numbers of a monitor's event, one counter each; its texts (a core, an interface) become part of the counter's name.
    fn counters(
        &mut self,
        events: &EventTable,
        row: usize,
        at_ns: u64,
        entry: &catalogue::CatalogueEntry,
        rank: i32,
    ) {
        const NAMES: &[&str] = &[
            "core",
            "interface",
            "resource",
            "port",
            "local",
            "remote",
            "stream",
            "pid",
        ];
        let label = |name: &str| {
            entry
                .field(name)
                .map(|field| events.value(row, field).to_string())
        };
        let labels: Vec<String> = NAMES
            .iter()
            .filter_map(|name| label(name))
            .filter(|l| !l.is_empty())
            .collect();
        for (field, name) in entry
            .data
            .iter()
            .enumerate()
            .skip(1)
            .filter(|(_, name)| !NAMES.contains(name))
        {
            let Some(value) = events.number(row, field) else {
                continue;
            };
            let counter = [
                &[entry.keyword.to_owned()],
                &labels[..],
                &[(*name).to_owned()],
            ]
            .concat()
            .join(" ");
            let track_uuid = self.track(&counter, rank, true);
            let event = TrackEvent {
                r#type: COUNTER,
                track_uuid,
                counter_value: Some(value),
                ..TrackEvent::default()
            };
            self.event(at_ns, event);
        }
    }
}

/// The unit with which a counter's name ends, if it is a known one.
fn unit_name(counter: &str) -> &str {
    counter
        .rsplit('_')
        .next()
        .filter(|unit| matches!(*unit, "ns" | "bytes" | "ppm"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
