//! Logs of other tools become events, lifelines and findings, and what is not a log is refused.

use crate::support::Place;
use crate::support::traced::lines;
use std::fs;

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
