//! Events go out to other tools: they come back as they were, are read by the tools' own readers where Python has them, and are those chosen.

use crate::support::traced::{lines, traced};
use crate::support::{Place, pair, skip};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn spans_come_back_event_by_event() {
    let (place, run) = traced();
    place
        .stackline(&[
            "export",
            &run,
            "--otlp",
            "run.otlp",
            "--otlp-json",
            "run.json",
        ])
        .succeeds();
    let units = |run: &str| {
        let mut lines = lines(&place, run, "APP_");
        lines.retain(|line| line.starts_with("APP_CALL;") || line.starts_with("APP_RESPONSE;"));
        lines
    };
    let expected = units(&run);
    assert_eq!(expected.len(), 8);
    for log in ["run.otlp", "run.json"] {
        let json = place
            .stackline(&["import", log, "--json", "--name", "again"])
            .json();
        assert_eq!(json["imports"][0]["form"], "otlp");
        assert_eq!(units(json["run"].as_str().unwrap()), expected, "{log}");
    }
}

#[test]
fn connections_of_quic_come_back_from_qlog() {
    let place = Place::new();
    let text = format!(
        "{} 1 from a to b bulk_put 1000*400 over quic across n in simulated;",
        pair("loss 2%")
    );
    place
        .stackline(&["run", "--trace", "--name", "sent", "-e", &text])
        .succeeds();
    let run = place.kept().0;
    let run = run.to_str().unwrap();
    place
        .stackline(&["export", run, "--qlog", "run.qlog"])
        .succeeds();
    let json: Value = serde_json::from_slice(&fs::read(place.path("run.qlog")).unwrap()).unwrap();
    let named = |name: &str| -> usize {
        let traces = json["traces"].as_array().unwrap().iter();
        let events = traces.flat_map(|trace| trace["events"].as_array().unwrap());
        events.filter(|event| event["name"] == name).count()
    };
    let had = lines(&place, run, "");
    let count = |words: &[&str]| -> usize {
        let has = |line: &&String| words.iter().all(|word| line.contains(word));
        had.iter().filter(has).count()
    };
    assert_eq!(
        named("quic:udp_datagrams_sent"),
        count(&["NET_ENQUEUE; a;"]) + count(&["NET_ENQUEUE; b;"])
    );
    assert_eq!(
        named("quic:udp_datagrams_received"),
        count(&["NET_DELIVER;"])
    );
    let lost = count(&["QUIC_LOST;"]);
    assert!(lost > 0, "packets are lost");
    assert_eq!(named("quic:packet_lost"), lost);
    assert_eq!(
        (
            named("quic:connection_started"),
            named("quic:connection_closed")
        ),
        (1, 2)
    );
    assert_eq!(json["traces"].as_array().unwrap().len(), 2);
    let again = place
        .stackline(&["import", "run.qlog", "--json", "--name", "again"])
        .json();
    assert_eq!(again["imports"][0]["form"], "qlog");
    assert!(
        again["imports"][0]["refused"]
            .as_object()
            .is_none_or(serde_json::Map::is_empty)
    );
    let again = lines(&place, again["run"].as_str().unwrap(), "QUIC_LOST;");
    assert_eq!(again.len(), lost);
    let hosts = ["; a-client; ", "; b-server; "];
    let names_a_host = |line: &String| hosts.iter().any(|host| line.contains(host));
    assert!(again.iter().all(names_a_host), "{again:?}");
    place
        .stackline(&["run", "--trace", "-e", "1 rr 10*5 over tcp"])
        .succeeds();
    place
        .stackline(&["export", "last", "--qlog"])
        .fails(2, &["the run has no events of QUIC"]);
}

/// What Python says of a file, when it has the packages that are asked for.
fn python(packages: &[&str], script: &str, file: &Path) -> Option<BTreeMap<String, String>> {
    let program = std::env::var_os("STACKLINE_PYTHON")?;
    let imports: String = packages
        .iter()
        .map(|package| format!("import {package}\n"))
        .collect();
    if !Command::new(&program)
        .args(["-c", &imports])
        .output()
        .is_ok_and(|output| output.status.success())
    {
        return None;
    }
    let output = Command::new(&program)
        .args(["-c", script])
        .arg(file)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(
        text.lines()
            .filter_map(|line| line.split_once('='))
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .collect(),
    )
}

#[test]
fn perfetto_reads_its_trace() {
    let (place, run) = traced();
    place
        .stackline(&["export", &run, "--perfetto", "run.tar"])
        .succeeds();
    let script = "
import json, sys, tarfile, zlib
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace
archive = tarfile.open(sys.argv[1])
names = archive.getnames()
manifest = json.load(archive.extractfile(names[0]))['perfetto_manifest']
assert sorted(entry['path'] for entry in manifest['files']) == sorted(names[1:]), names
flows, events, zipped = {}, 0, 0
for name in names[1:]:
    outer = Trace.FromString(archive.extractfile(name).read())
    zipped += len(outer.packet)
    trace = Trace.FromString(b''.join(zlib.decompress(packet.compressed_packets) for packet in outer.packet))
    said = set()
    for packet in trace.packet:
        said.update(name.iid for name in packet.interned_data.event_names)
        if packet.HasField('track_event'):
            assert packet.track_event.type != 3 or packet.track_event.name_iid in said
            events += packet.track_event.type == 3
            for flow in packet.track_event.flow_ids:
                flows.setdefault(flow, set()).add(name)
print('hosts=%d' % (len(names) - 1))
print('events=%d' % events)
print('zipped=%d' % zipped)
print('both=%d' % sum(len(hosts) > 1 for hosts in flows.values()))
";
    let Some(read) = python(
        &["perfetto.protos.perfetto.trace.perfetto_trace_pb2"],
        script,
        &place.path("run.tar"),
    ) else {
        return skip("Python with the package perfetto");
    };
    assert!(read["hosts"].parse::<u32>().unwrap() >= 2, "{read:?}");
    assert!(read["events"].parse::<u32>().unwrap() > 20, "{read:?}");
    assert!(
        read["both"].parse::<u32>().unwrap() >= 4,
        "every call is a flow over both hosts: {read:?}"
    );
}

#[test]
fn opentelemetry_reads_its_spans() {
    let (place, run) = traced();
    place
        .stackline(&[
            "export",
            &run,
            "--otlp",
            "run.otlp",
            "--otlp-json",
            "run.json",
        ])
        .succeeds();
    let script = "
import json, sys
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
data = TracesData.FromString(open(sys.argv[1], 'rb').read())
spans = [span for r in data.resource_spans for s in r.scope_spans for span in s.spans]
ids = {span.span_id for span in spans}
assert all(not s.parent_span_id or s.parent_span_id in ids for s in spans)
document = json.load(open(sys.argv[1].replace('.otlp', '.json')))
print('spans=%d' % len(spans))
print('json=%d' % sum(len(s['spans']) for r in document['resourceSpans'] for s in r['scopeSpans']))
print('traces=%d' % len({span.trace_id for span in spans}))
";
    let Some(read) = python(
        &["opentelemetry.proto.trace.v1.trace_pb2"],
        script,
        &place.path("run.otlp"),
    ) else {
        return skip("Python with the package opentelemetry-proto");
    };
    assert_eq!(read["spans"], read["json"]);
    assert!(read["traces"].parse::<u32>().unwrap() >= 4, "{read:?}");
}

#[test]
fn slow_and_fast_units_are_chosen_alike_in_lifelines_exports_and_pictures() {
    let (place, run) = traced();
    let lines = |run: &str, more: &[&str]| {
        let json = place
            .stackline(&[&["lifelines", run, "--json", "--lines"], more].concat())
            .json();
        json["lines"].as_array().unwrap().clone()
    };
    let all = lines(&run, &[]);
    let took: Vec<u64> = all
        .iter()
        .filter_map(|line| line["took_ns"].as_u64())
        .filter(|ns| *ns > 0)
        .collect();
    // Of four calls a packet of one is lost; the fifth line is of the connection, which is in no picture.
    let (limit, limit_ns) = ("9ms", 9_000_000);
    let (slow, fast) = (
        lines(&run, &["--slower-than", limit]),
        lines(&run, &["--faster-than", limit]),
    );
    assert!(slow.len() < 4, "{took:?}");
    assert!(
        slow.iter()
            .all(|line| line["took_ns"].as_u64() > Some(limit_ns)),
        "{slow:?}"
    );
    assert!(
        fast.iter()
            .all(|line| line["took_ns"].as_u64() < Some(limit_ns)),
        "{fast:?}"
    );
    let count = |slow: bool| took.iter().filter(|ns| (**ns > limit_ns) == slow).count();
    assert!(
        !slow.is_empty() && slow.len() == count(true) && fast.len() <= count(false),
        "{took:?}"
    );
    place
        .stackline(&[
            "export",
            &run,
            "--otlp",
            "slow.otlp",
            "--slower-than",
            limit,
        ])
        .succeeds();
    place
        .stackline(&["import", "slow.otlp", "--name", "slow"])
        .succeeds();
    assert_eq!(lines("last", &[]).len(), slow.len());
    let text = place
        .stackline(&["export", &run, "--text", "--slower-than", limit])
        .succeeds()
        .out
        .clone();
    let named: BTreeSet<String> = text
        .lines()
        .map(|line| line.split("; ").nth(4).unwrap().to_owned())
        .collect();
    assert_eq!(
        named,
        slow.iter()
            .map(|line| line["unit"].as_str().unwrap().to_owned())
            .collect()
    );
    let drawn = |more: &[&str]| {
        place
            .stackline(&[&["report", &run, "--svg", "some.svg"], more].concat())
            .succeeds();
        fs::read_to_string(place.path("some.svg"))
            .unwrap()
            .matches("stroke-width=\"1.2\"")
            .count()
    };
    assert_eq!(
        (drawn(&["--slower-than", limit]), drawn(&[])),
        (slow.len(), all.len() - 1)
    );
    place
        .stackline(&["lifelines", &run, "--slower-than", "1h"])
        .fails(2, &["no unit"])
        .hints("the slowest took");
    place
        .stackline(&["report", &run, "--slower-than", "1ms"])
        .fails(2, &["pictures"])
        .hints("-o FILE.svg");
}

#[test]
fn exports_are_of_the_time_and_the_units_that_are_chosen() {
    let (place, run) = traced();
    let text = |options: &[&str]| {
        let out = place
            .stackline(&[&["export", &run, "--text", "--reference"], options].concat())
            .succeeds()
            .out
            .clone();
        out.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let all = text(&[]);
    let (early, late) = (text(&["--to", "9999us"]), text(&["--from", "10ms"]));
    assert!(!early.is_empty() && !late.is_empty());
    assert_eq!(
        [early, late].concat(),
        all,
        "what lies before and after is all of it"
    );
    let calls: Vec<&String> = all
        .iter()
        .filter(|line| line.starts_with("APP_CALL;"))
        .collect();
    let unit = calls[1].split("; ").nth(4).unwrap();
    let of_unit = text(&["--units", unit]);
    assert!(
        of_unit
            .iter()
            .all(|line| line.split("; ").nth(4) == Some(unit))
            && of_unit.len() >= 4,
        "{of_unit:?}"
    );
    // A lifeline goes out whole.
    place
        .stackline(&["export", &run, "--otlp", "one.otlp", "--units", unit])
        .succeeds();
    place
        .stackline(&["import", "one.otlp", "--name", "one"])
        .succeeds();
    let one = place.stackline(&["lifelines", "last", "--json"]).json();
    assert_eq!(
        (&one["units"], &one["outcomes"][0]["outcome"]),
        (&1.into(), &"complete".into()),
        "{one}"
    );
    place
        .stackline(&["export", &run, "--perfetto", "some.tar", "--to", "10ms"])
        .succeeds();
    place
        .stackline(&["export", &run, "--perfetto", "all.tar"])
        .succeeds();
    let size = |name: &str| fs::metadata(place.path(name)).unwrap().len();
    assert!(size("some.tar") < size("all.tar"));
}
