//! Events to and from other tools: through their formats and back, read by their own readers where Python has them.

use crate::support::{Place, skip};
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Calls over a link that loses one packet.
const TRACED: &str = "network n { host a, b; link a - b 10 Mbit/s 1 ms loss packets 8; } 1 from a to b rr 3000*4 over tcp across n in simulated;";

fn traced() -> (Place, String) {
    let place = Place::new();
    place
        .stackline(&["run", "-e", TRACED, "--trace"])
        .succeeds();
    let run = place.kept().0.to_str().unwrap().to_owned();
    (place, run)
}

/// The lines of a run's events with that first part, in order.
fn lines(place: &Place, run: &str, program: &str) -> Vec<String> {
    let text = place
        .stackline(&["export", run, "--text"])
        .succeeds()
        .out
        .clone();
    let mut lines: Vec<String> = text
        .lines()
        .filter(|line| line.starts_with(program))
        .map(str::to_owned)
        .collect();
    lines.sort();
    lines
}

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
fn a_capture_of_a_run_joins_its_units() {
    let place = Place::new();
    place
        .stackline(&["run", "-e", TRACED, "--trace", "--capture", "a>b"])
        .succeeds();
    let run = place.kept().0;
    let capture = fs::read_dir(run.join("captures"))
        .unwrap()
        .flatten()
        .next()
        .unwrap()
        .path();
    let (run, capture) = (run.to_str().unwrap(), capture.to_str().unwrap());
    let json = place
        .stackline(&[
            "import",
            capture,
            "--into",
            run,
            "--json",
            "--host",
            &format!("tap={capture}"),
        ])
        .json();
    assert_eq!(json["imports"][0]["form"], "capture");
    let seen = lines(&place, run, "NET_SEEN; tap;");
    let left = lines(&place, run, "NET_DEQUEUE; a;");
    assert!(
        !seen.is_empty() && seen.len() <= left.len(),
        "{} of {}",
        seen.len(),
        left.len()
    );
    let again = lines(&place, run, "TCP_RETRANSMIT; tap;");
    assert_eq!(again.len(), 1, "the one packet that was lost: {again:?}");
}

/// A pcap with one segment of `bytes` of a connection to that port, and its SYN.
fn pcap(port: u8, bytes: usize) -> Vec<u8> {
    let mut file = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    file.extend([2, 0, 4, 0]);
    [0_u32, 0, 65535, 101]
        .iter()
        .for_each(|word| file.extend(word.to_le_bytes()));
    for (sequence, flags, length) in [(99_u8, 2_u8, 0), (100, 16, bytes)] {
        let total = 40 + length;
        let packet = [
            &[
                0x45,
                0,
                (total >> 8) as u8,
                total as u8,
                0,
                0,
                0,
                0,
                64,
                6,
                0,
                0,
                10,
                0,
                0,
                1,
                10,
                0,
                0,
                2,
            ][..],
            &[
                0x13, 0x88, 0, port, 0, 0, 0, sequence, 0, 0, 0, 0, 0x50, flags, 0, 100, 0, 0, 0, 0,
            ][..],
            &vec![7; length][..],
        ]
        .concat();
        [1_u32, 0, total as u32, total as u32]
            .iter()
            .for_each(|word| file.extend(word.to_le_bytes()));
        file.extend(packet);
    }
    file
}

#[test]
fn captures_together_know_one_anothers_connections() {
    let place = Place::new();
    fs::write(place.path("a.pcap"), pcap(80, 500)).unwrap();
    fs::write(place.path("b.pcap"), pcap(81, 600)).unwrap();
    fs::write(place.path("c.pcap"), pcap(80, 700)).unwrap();
    place.stackline(&["import", "a.pcap", "b.pcap"]).succeeds();
    let run = place.kept().0.to_str().unwrap().to_owned();
    place
        .stackline(&["import", "c.pcap", "--into", &run])
        .succeeds();
    let seen = lines(&place, &run, "NET_SEEN;");
    let mut streams: Vec<String> = seen
        .iter()
        .map(|line| {
            line.split("; ")
                .skip(5)
                .take(3)
                .collect::<Vec<_>>()
                .join("; ")
        })
        .collect();
    streams.sort();
    assert_eq!(
        streams,
        ["0; 0; 500", "2; 0; 600", "4; 0; 700"],
        "no two connections share a stream"
    );
}

#[test]
fn a_log_of_quic_becomes_events() {
    let place = Place::new();
    place.write("client.sqlog", "\u{1e}{\"qlog_version\":\"0.3\",\"trace\":{\"vantage_point\":{\"type\":\"client\"}}}\n\u{1e}{\"time\":1,\"name\":\"recovery:packet_lost\",\"data\":{\"header\":{\"packet_number\":3},\"trigger\":\"time_threshold\"}}\n\u{1e}{\"time\"");
    let done = place.stackline(&["import", "client.sqlog"]);
    assert!(
        done.succeeds()
            .out
            .ends_with("  client.sqlog (qlog): 1 events, 1 not read\n"),
        "{}",
        done.out
    );
    let run = place.kept().0.to_str().unwrap().to_owned();
    assert_eq!(
        lines(&place, &run, "QUIC_"),
        ["QUIC_LOST; client; 0; 1000000; ; ; ; ; 3; time_threshold"]
    );
    place.write("broken.qlog", "{");
    place
        .stackline(&["import", "broken.qlog"])
        .fails(2, &["cannot import broken.qlog: this is not qlog"])
        .hints("--as");
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

/// A span of Jaeger's: its id, name, begin and duration in us, and process.
fn span(id: &str, name: &str, at: u64, duration: u64, process: &str) -> String {
    format!(
        r#"{{"traceID":"1","spanID":"{id}","operationName":"{name}","startTime":{at},"duration":{duration},"processID":"{process}"}}"#
    )
}

#[test]
fn traces_of_jaeger_are_lifelines() {
    let place = Place::new();
    let spans = [
        span("a", "get", 1000, 900, "p1"),
        span("b", "select", 1500, 100, "p2"),
    ]
    .join(",");
    let processes = r#"{"p1":{"serviceName":"web"},"p2":{"serviceName":"db"}}"#;
    place.write(
        "traces.json",
        format!(r#"{{"data":[{{"traceID":"1","spans":[{spans}],"processes":{processes}}}]}}"#),
    );
    let done = place.stackline(&["import", "traces.json"]);
    assert!(
        done.succeeds()
            .out
            .ends_with("  traces.json (jaeger): 4 events\n"),
        "{}",
        done.out
    );
    let json = place.stackline(&["lifelines", "last", "--json"]).json();
    let points: Vec<&str> = json["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| point["keyword"].as_str().unwrap())
        .collect();
    assert_eq!(
        points,
        [
            "WEB_GET_START",
            "DB_SELECT_START",
            "DB_SELECT_END",
            "WEB_GET_END"
        ]
    );
    let segments = json["segments"].as_array().unwrap();
    let medians: Vec<f64> = segments
        .iter()
        .map(|segment| segment["ns"]["median_ns"].as_f64().unwrap())
        .collect();
    assert_eq!(medians, [500e3, 100e3, 300e3]);
}

#[test]
fn contents_are_kept_only_where_they_are_asked_for_and_the_run_says_which() {
    let place = Place::new();
    let span = span("a", "GET /cart?key=SECRET", 1000, 900, "p1");
    let processes = r#"{"p1":{"serviceName":"web"}}"#;
    place.write(
        "traces.json",
        format!(r#"{{"data":[{{"traceID":"1","spans":[{span}],"processes":{processes}}}]}}"#),
    );
    let exported = |name: &str| {
        place
            .stackline(&["export", name, "--text", "-"])
            .succeeds()
            .out
            .clone()
    };
    let index = |done: &str| {
        fs::read_to_string(
            place
                .path(done.lines().next().unwrap())
                .join("events/index.json"),
        )
    };
    let done = place.stackline(&["import", "traces.json", "--name", "minimal"]);
    done.succeeds();
    let text = exported("last");
    assert!(
        text.contains("GET /cart?key=…") && !text.contains("SECRET"),
        "{text}"
    );
    assert!(!done.err.contains("--keep-contents"), "{}", done.err);
    let done = place.stackline(&[
        "import",
        "traces.json",
        "--name",
        "whole",
        "--keep-contents",
    ]);
    done.succeeds();
    let note = "contents are kept (--keep-contents): whole request names";
    assert!(done.err.contains(&format!("note: {note}")), "{}", done.err);
    assert!(index(&done.out).unwrap().contains(note));
    assert!(exported("last").contains("GET /cart?key=SECRET"));
}

#[test]
fn lines_of_netlogger_come_in_by_either_form() {
    let place = Place::new();
    place.write(
        "ulm.log",
        "DATE=20000330112320.957943 HOST=a PROG=p LVL=Usage NL.EVNT=READ_START BLOCK.ID=7\n\
         DATE=20000330112321 HOST=b PROG=p LVL=Usage NL.EVNT=READ_END BLOCK.ID=7\n\
         DATE=20000330112321 HOST=b\n",
    );
    place.write(
        "bp.log",
        "ts=2000-03-30T11:23:20.957943Z event=read.start level=Info host=a block.id=7\n",
    );
    let done = place.stackline(&["import", "ulm.log"]);
    assert!(
        done.succeeds()
            .out
            .ends_with("  ulm.log (ulm): 2 events, 1 not read\n"),
        "{}",
        done.out
    );
    assert!(
        done.err.contains("line 3: NL.EVNT is missing"),
        "{}",
        done.err
    );
    let json = place.stackline(&["lifelines", "last", "--json"]).json();
    assert_eq!(
        json["segments"][0]["ns"]["median_ns"], 42_057_000.0,
        "{json}"
    );
    let done = place.stackline(&["import", "bp.log"]);
    assert!(
        done.succeeds().out.ends_with("  bp.log (bp): 1 events\n"),
        "{}",
        done.out
    );
    assert_eq!(
        lines(&place, "last", "READ_"),
        ["READ_START; a; 954415400; 957943000; 7; event=read.start; level=Info; block.id=7"]
    );
}

#[test]
fn a_start_and_an_end_of_any_name_are_a_lifeline() {
    let place = Place::new();
    for name in ["app", "cpu", "drop", "net.send", "run", "job"] {
        let line = |end: &str, s: u32| {
            format!("ts=2010-04-19T18:26:0{s}Z event={name}.{end} id=7 host=a\n")
        };
        place.write("bp.log", line("start", 1) + &line("end", 3));
        place
            .stackline(&["import", "bp.log", "--name", name])
            .succeeds();
        let json = place.stackline(&["lifelines", name, "--json"]).json();
        let segments = json["segments"].as_array().unwrap();
        assert_eq!(segments.len(), 1, "{name}: {json}");
        assert_eq!(segments[0]["ns"]["median_ns"], 2e9, "{name}");
        place
            .stackline(&["report", name, "--svg", "lines.svg"])
            .succeeds();
        let picture = fs::read_to_string(place.path("lines.svg")).unwrap();
        assert!(
            picture.contains("_START</text>") && picture.contains("_END</text>"),
            "{name}: {picture}"
        );
    }
}

#[test]
fn a_log_without_events_leaves_no_run_and_known_forms_are_named() {
    let place = Place::new();
    let logs = [
        (
            "empty.json",
            r#"{"data":[{"traceID":"a","spans":[]}]}"#,
            "Jaeger",
        ),
        ("chrome.json", r#"{"traceEvents":[{"ph":"X"}]}"#, "Chrome"),
        (
            "zipkin.json",
            r#"[{"traceId":"a","localEndpoint":{}}]"#,
            "Zipkin",
        ),
        ("packed.gz", "\u{1f}\u{fffd}", "import --help"),
        ("other.json", r#"{"a":1}"#, "JSON"),
        ("page.html", "<!doctype html>", "HTML"),
        (
            "ulm.log",
            "HOST=h PROG=p NL.EVNT=X DATE=20000330112320\n",
            "--as ulm",
        ),
        (
            "bp.log",
            "event=x level=Info ts=2006-01-01T00:00:00Z\n",
            "--as bp",
        ),
        ("empty.log", "", "import --help"),
    ];
    for (name, text, word) in logs {
        place.write(name, text);
        let import = place.stackline(&["import", name]);
        assert_eq!(import.status.code(), Some(2), "{}", import.err);
        import.hints(word);
    }
    assert!(place.runs().is_empty());
    fs::write(place.path("log.gz"), [0x1f, 0x8b, 8, 0]).unwrap();
    place.stackline(&["import", "log.gz"]).hints("gunzip");
    // What the hints say works.
    place
        .stackline(&["import", "ulm.log", "--as", "ulm"])
        .succeeds();
    place
        .stackline(&["import", "bp.log", "--as", "bp"])
        .succeeds();
}

#[test]
fn a_run_of_events_alone_says_what_it_lacks() {
    let place = Place::new();
    place.write("a.log", "A; h; 1; 0; 1\n");
    place.stackline(&["import", "a.log"]).succeeds();
    let said = place
        .stackline(&["diagnose", "last"])
        .succeeds()
        .out
        .clone();
    assert!(
        said.starts_with("No cause was found. Looked for: clocks that disagree and lost events; "),
        "{said}"
    );
    place
        .stackline(&["compare", "last", "last"])
        .fails(2, &["nothing to compare"])
        .hints("traces");
}

#[test]
fn a_clock_that_may_be_wrong_is_in_the_diagnosis() {
    let place = Place::new();
    let (mut client, mut server) = (String::new(), String::new());
    for unit in 0..60_u64 {
        let event = |log: &mut String, keyword, host, ms: u64| {
            let (seconds, nanos) = (ms / 1000, ms % 1000 * 1_000_000);
            *log += &format!("{keyword}; {host}; {seconds}; {nanos}; {unit}\n");
        };
        let at = 100_000 + 50 * unit;
        event(&mut client, "REQ_START", "client", at);
        // A second behind.
        event(&mut server, "SRV_IN", "server", at + 10 - 1000);
        event(&mut server, "SRV_OUT", "server", at + 22 - 1000);
        event(&mut client, "REQ_END", "client", at + 32);
    }
    place.write("client.log", client);
    place.write("server.log", server);
    place
        .stackline(&["import", "client.log", "server.log"])
        .succeeds();
    let said = place.stackline(&["diagnose", "last", "--json"]).json();
    let finding = &said["findings"][0];
    assert_eq!(finding["kind"], "clock_trouble", "{said}");
    let sentence = finding["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("events at server come 978 ms before those at client")
            && sentence.contains("one of the clocks may be wrong"),
        "{sentence}"
    );
}

/// The capture of a run, imported into a run of its own.
fn captured(specification: &str) -> Place {
    let place = Place::new();
    place
        .stackline(&["run", "-e", specification, "--trace", "--capture", "a>b"])
        .succeeds();
    let captures = fs::read_dir(place.kept().0.join("captures")).unwrap();
    let capture = captures.flatten().next().unwrap().path();
    place
        .stackline(&["import", capture.to_str().unwrap(), "--name", "captured"])
        .succeeds();
    place
}

#[test]
fn a_capture_has_a_table_of_connections_that_says_what_happened() {
    let place = captured(TRACED);
    let json = place.stackline(&["lifelines", "last", "--json"]).json();
    let [one] = &json["connections"].as_array().unwrap()[..] else {
        panic!("{json}")
    };
    // Four calls of 3000 bytes over 1 ms each way; packets are captured where they leave a, once each.
    assert_eq!(
        (&one["bytes"][0], &one["again"][0]),
        (&serde_json::json!(12_016), &serde_json::json!(1)),
        "{one}"
    );
    assert_eq!(
        (&one["end"], &one["zero_windows"]),
        (&"open".into(), &0.into()),
        "{one}"
    );
    let text = place
        .stackline(&["lifelines", "last"])
        .succeeds()
        .out
        .clone();
    assert!(
        text.starts_with("connection") && text.contains("10.71.0.1"),
        "{text}"
    );
    let said = place
        .stackline(&["diagnose", "last"])
        .succeeds()
        .out
        .clone();
    assert!(
        said.contains("observed_loss") && said.contains("Looked for: "),
        "{said}"
    );
}

#[test]
fn captures_of_several_places_are_a_file_each_in_which_a_packet_stands_once() {
    let place = Place::new();
    let text = "network n { host a, b; switch x; link a - x 10 Mbit/s 1 ms; link x - b 10 Mbit/s 1 ms; } 1 from a to b rr 3000*4 over tcp across n in simulated;";
    let run = [
        "run",
        "-e",
        text,
        "--capture",
        "all",
        "--capture",
        "a",
        "--capture",
        "a>x",
    ];
    place.stackline(&run).succeeds();
    let directory = place.kept().0.join("captures");
    let mut files: Vec<String> = fs::read_dir(&directory)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let names = ["a-x", "a", "b-x", "x-a", "x-b"].map(|name| format!("n.1.1.{name}.pcapng"));
    assert_eq!(files, names);
    for file in &files {
        place
            .stackline(&[
                "import",
                directory.join(file).to_str().unwrap(),
                "--name",
                "one",
            ])
            .succeeds();
        let connections =
            place.stackline(&["lifelines", "last", "--json"]).json()["connections"].clone();
        assert_eq!(
            connections[0]["again"],
            serde_json::json!([0, 0]),
            "{file}: {connections}"
        );
        if file == "n.1.1.a.pcapng" {
            // 2 ms each way, and three small packets on links of 10 Mbit/s.
            let round_trip = connections[0]["handshake_ns"].as_u64().unwrap();
            assert!(
                (4_000_000..4_500_000).contains(&round_trip),
                "{connections}"
            );
            assert_eq!(
                connections[0]["bytes"],
                serde_json::json!([12_016, 12_000]),
                "{connections}"
            );
        }
    }
    place
        .stackline(&["run", "-e", text, "--capture", "y"])
        .fails(2, &["no port `y` and no host"])
        .hints("a>x");
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
