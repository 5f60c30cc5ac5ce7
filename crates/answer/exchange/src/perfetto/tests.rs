//! The packets of a small trace, read back with the same messages; the test of the command reads them with Perfetto's own.

use super::*;
use stackline_analyze::assemble::{LifelineOptions, lifelines};
use stackline_events::EventValue;

fn events() -> EventTable {
    let mut table = EventTable::default();
    table.push(
        "APP_CALL",
        "khons",
        100,
        &[EventValue::Number(7), EventValue::Number(4)],
    );
    table.push(
        "APP_INDICATION",
        "udjat",
        140,
        &[EventValue::Number(7), EventValue::Text("x")],
    );
    table.push(
        "CPU_USE",
        "khons",
        150,
        &[
            EventValue::Number(10),
            EventValue::Number(1),
            EventValue::Number(250_000),
        ],
    );
    table
}

fn decoded() -> BTreeMap<String, PerfettoTrace> {
    let table = events();
    let files = files(
        &table,
        &lifelines(&table, None, &LifelineOptions::default()),
        &Index::default(),
    );
    let traces = files.iter().filter(|(name, _)| *name != MANIFEST);
    traces
        .map(|(name, bytes)| (name.clone(), decompressed(bytes)))
        .collect()
}

/// The packets within the compressed ones.
fn decompressed(bytes: &[u8]) -> PerfettoTrace {
    let mut packets = Vec::new();
    for packet in PerfettoTrace::decode(bytes).unwrap().packet {
        let mut reader =
            flate2::read::ZlibDecoder::new(&packet.compressed_packets.as_ref().unwrap()[..]);
        std::io::copy(&mut reader, &mut packets).unwrap();
    }
    PerfettoTrace::decode(&packets[..]).unwrap()
}

#[test]
fn a_file_a_host_and_a_flow_through_a_unit() {
    let traces = decoded();
    assert_eq!(
        traces.keys().collect::<Vec<_>>(),
        ["1-khons.pftrace", "2-udjat.pftrace"]
    );
    let flows = |trace: &PerfettoTrace| -> Vec<u64> {
        let instants = trace
            .packet
            .iter()
            .filter_map(|p| p.track_event.as_ref())
            .filter(|e| e.r#type == INSTANT);
        instants.flat_map(|e| e.flow_ids.clone()).collect()
    };
    let slices = |trace: &PerfettoTrace| -> Vec<(u64, i32)> {
        let events = trace
            .packet
            .iter()
            .filter_map(|p| Some((p.timestamp?, p.track_event.as_ref()?.r#type)));
        events
            .filter(|(_, r#type)| [BEGIN, END].contains(r#type))
            .collect()
    };
    assert_eq!(
        slices(&traces["1-khons.pftrace"]),
        [(100, BEGIN), (140, END)],
        "a unit is a slice where it begins"
    );
    assert_eq!(slices(&traces["2-udjat.pftrace"]), []);
    assert_eq!(
        flows(&traces["1-khons.pftrace"]),
        flows(&traces["2-udjat.pftrace"])
    );
    let uuids = traces
        .values()
        .flat_map(|trace| &trace.packet)
        .filter_map(|p| p.track_descriptor.as_ref());
    let uuids: Vec<u64> = uuids.map(|track| track.uuid).collect();
    assert_eq!(
        uuids
            .iter()
            .collect::<std::collections::BTreeSet<_>>()
            .len(),
        uuids.len(),
        "tracks differ across files"
    );
}

#[test]
fn monitors_are_counters_with_their_labels_in_the_name() {
    let khons = &decoded()["1-khons.pftrace"];
    let track = khons
        .packet
        .iter()
        .filter_map(|p| p.track_descriptor.as_ref())
        .find(|t| t.counter.is_some())
        .unwrap();
    assert_eq!(
        (
            track.name.as_str(),
            track.counter.as_ref().unwrap().unit_name.as_str()
        ),
        ("CPU_USE 1 user_ppm", "ppm")
    );
    let value = khons
        .packet
        .iter()
        .filter_map(|p| p.track_event.as_ref())
        .find(|e| e.track_uuid == track.uuid)
        .unwrap();
    assert_eq!(
        (value.r#type, value.counter_value),
        (COUNTER, Some(250_000))
    );
}

#[test]
fn a_name_is_said_once_and_before_it_is_used() {
    let mut table = EventTable::default();
    for at in 0..100 {
        table.push(
            "APP_CALL",
            "khons",
            100 + at,
            &[EventValue::Number(at as i64), EventValue::Text("x")],
        );
    }
    let files = files(&table, &Lifelines::default(), &Index::default());
    let trace = decompressed(&files["1-khons.pftrace"]);
    let said: Vec<&Interned> = trace
        .packet
        .iter()
        .filter_map(|packet| packet.interned_data.as_ref())
        .collect();
    let [said] = said[..] else { panic!("{said:?}") };
    assert_eq!(
        (said.events[0].name.as_str(), said.texts[0].name.as_str()),
        ("APP_CALL", "x")
    );
    let events: Vec<&TrackEvent> = trace
        .packet
        .iter()
        .filter_map(|packet| packet.track_event.as_ref())
        .collect();
    assert!(
        events
            .iter()
            .all(|event| event.name_iid == said.events[0].iid)
    );
    let text = events[99].debug_annotations[1].string_value_iid;
    assert_eq!(text, Some(said.texts[0].iid));
    assert_eq!(
        said.annotations[1].iid,
        events[99].debug_annotations[1].name_iid
    );
}

#[test]
fn the_manifest_relates_every_file_to_the_reference() {
    let table = events();
    let index = Index {
        reference: "udjat".into(),
        ..Index::default()
    };
    let files = files(
        &table,
        &lifelines(&table, None, &LifelineOptions::default()),
        &index,
    );
    let manifest: Json = serde_json::from_slice(&files[MANIFEST]).unwrap();
    let manifest = &manifest["perfetto_manifest"];
    assert_eq!(manifest["version"], 1);
    assert_eq!(
        manifest["files"][0]["clocks"]["is"]["file"],
        "2-udjat.pftrace"
    );
    assert_eq!(manifest["files"][1].get("clocks"), None);
    assert_eq!(manifest["files"][1]["machine"]["name"], "udjat");
}

#[test]
fn hosts_whose_names_are_alike_have_a_file_each() {
    let mut table = EventTable::default();
    table.push("A", "a/b", 1, &[]);
    table.push("A", "a-b", 2, &[]);
    let files = files(&table, &Lifelines::default(), &Index::default());
    assert_eq!(
        files.keys().collect::<Vec<_>>(),
        ["1-a-b.pftrace", "2-a-b.pftrace", MANIFEST]
    );
}
