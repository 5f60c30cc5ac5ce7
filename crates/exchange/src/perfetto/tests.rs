//! The packets of a small trace, read back with the same messages; the test of the command reads them with Perfetto's own.

use super::*;
use stackline_analyze::assemble::{Options, lifelines};

fn events() -> Table {
    let mut table = Table::default();
    table.push("APP_CALL", "khons", 100, &[Value::Number(7), Value::Number(4)]);
    table.push("APP_INDICATION", "udjat", 140, &[Value::Number(7), Value::Text("x")]);
    table.push("CPU_USE", "khons", 150, &[Value::Number(10), Value::Number(1), Value::Number(250_000)]);
    table
}

fn decoded() -> BTreeMap<String, Trace> {
    let table = events();
    let files = files(&table, &lifelines(&table, None, &Options::default()), &Index::default());
    let traces = files.iter().filter(|(name, _)| *name != MANIFEST);
    traces.map(|(name, bytes)| (name.clone(), Trace::decode(&bytes[..]).unwrap())).collect()
}

#[test]
fn a_file_a_host_and_a_flow_through_a_unit() {
    let traces = decoded();
    assert_eq!(traces.keys().collect::<Vec<_>>(), ["1-khons.pftrace", "2-udjat.pftrace"]);
    let flows = |trace: &Trace| -> Vec<u64> {
        trace.packet.iter().filter_map(|p| p.track_event.as_ref()).flat_map(|e| e.flow_ids.clone()).collect()
    };
    assert_eq!(flows(&traces["1-khons.pftrace"]), flows(&traces["2-udjat.pftrace"]));
    let uuids = traces.values().flat_map(|trace| &trace.packet).filter_map(|p| p.track_descriptor.as_ref());
    let uuids: Vec<u64> = uuids.map(|track| track.uuid).collect();
    assert_eq!(
        uuids.iter().collect::<std::collections::BTreeSet<_>>().len(),
        uuids.len(),
        "tracks differ across files"
    );
}

#[test]
fn monitors_are_counters_with_their_labels_in_the_name() {
    let khons = &decoded()["1-khons.pftrace"];
    let track = khons.packet.iter().filter_map(|p| p.track_descriptor.as_ref()).find(|t| t.counter.is_some()).unwrap();
    assert_eq!(
        (track.name.as_str(), track.counter.as_ref().unwrap().unit_name.as_str()),
        ("CPU_USE 1 user_ppm", "ppm")
    );
    let value =
        khons.packet.iter().filter_map(|p| p.track_event.as_ref()).find(|e| e.track_uuid == track.uuid).unwrap();
    assert_eq!((value.r#type, value.counter_value), (COUNTER, Some(250_000)));
}

#[test]
fn the_manifest_relates_every_file_to_the_reference() {
    let table = events();
    let index = Index { reference: "udjat".into(), ..Index::default() };
    let files = files(&table, &lifelines(&table, None, &Options::default()), &index);
    let manifest: Json = serde_json::from_slice(&files[MANIFEST]).unwrap();
    let manifest = &manifest["perfetto_manifest"];
    assert_eq!(manifest["version"], 1);
    assert_eq!(manifest["files"][0]["clocks"]["is"]["file"], "2-udjat.pftrace");
    assert_eq!(manifest["files"][1].get("clocks"), None);
    assert_eq!(manifest["files"][1]["machine"]["name"], "udjat");
}

#[test]
fn hosts_whose_names_are_alike_have_a_file_each() {
    let mut table = Table::default();
    table.push("A", "a/b", 1, &[]);
    table.push("A", "a-b", 2, &[]);
    let files = files(&table, &Lifelines::default(), &Index::default());
    assert_eq!(files.keys().collect::<Vec<_>>(), ["1-a-b.pftrace", "2-a-b.pftrace", MANIFEST]);
}
