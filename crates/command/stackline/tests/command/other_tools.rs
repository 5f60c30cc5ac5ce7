//! Logs and traces of other tools beside what is captured, as a user has them: QUIC's own logs, access logs of proxies, spans.

use crate::one_side::Talk;
use crate::support::Place;
use serde_json::{Value, json};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";
const MS: u64 = 1000;

/// A request with a `traceparent`, answered after 100 ms; its first byte leaves 20 ms after the capture begins.
fn capture() -> Vec<u8> {
    let mut talk = Talk::at_client(20 * MS);
    let head = format!(
        "GET /item/17?q=1 HTTP/1.1\r\nHost: web\r\nCookie: SECRET\r\ntraceparent: 00-{TRACE}-{SPAN}-01\r\n\r\n"
    );
    talk.says(0, head.as_bytes());
    talk.now += 100 * MS;
    talk.says(1, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    talk.capture()
}

/// The kept run, as text.
fn run(place: &Place) -> String {
    place.kept().0.to_str().unwrap().to_owned()
}

fn text(place: &Place, run: &str) -> String {
    let done = place.stackline(&["export", run, "--text"]);
    done.succeeds().out.clone()
}

/// Spans of a run by name and kind, with trace, own id, parent and service.
fn spans(place: &Place, run: &str) -> Vec<(String, Value, [String; 3], String)> {
    place
        .stackline(&["export", run, "--otlp-json", "spans.json"])
        .succeeds();
    let data = std::fs::read_to_string(place.path("spans.json")).unwrap();
    let data: Value = serde_json::from_str(&data).unwrap();
    let mut found = Vec::new();
    for resource in data["resourceSpans"].as_array().unwrap() {
        let service = resource["resource"]["attributes"][1]["value"]["stringValue"].clone();
        for span in resource["scopeSpans"][0]["spans"].as_array().unwrap() {
            let ids = ["traceId", "spanId", "parentSpanId"]
                .map(|id| span[id].as_str().unwrap().to_owned());
            let name = span["name"].as_str().unwrap().to_owned();
            found.push((
                name,
                span["kind"].clone(),
                ids,
                service.as_str().unwrap().to_owned(),
            ));
        }
    }
    found
}

#[test]
fn requests_go_out_as_spans_of_the_users_own_trace_and_meet_its_spans_on_one_line() {
    let place = Place::new();
    place.write("one.pcap", capture());
    place.stackline(&["import", "one.pcap"]).succeeds();
    let run = run(&place);
    assert!(!text(&place, &run).contains("SECRET"));
    let found = spans(&place, &run);
    let client = found
        .iter()
        .find(|(_, kind, ..)| *kind == json!(3))
        .unwrap();
    assert_eq!(client.0, "GET /item/:id?q=…");
    assert_eq!((&client.2[0][..], &client.2[2][..]), (TRACE, SPAN));
    assert!(
        found
            .iter()
            .all(|(name, _, ids, _)| ids[0] == TRACE && !name.starts_with("unit ")),
        "{found:?}"
    );
    // What the server's own instrumentation says of it.
    let ns = |ms: u64| (1_700_000_000_000_000_000 + ms * 1_000_000).to_string();
    let span = json!({"traceId": TRACE, "spanId": "00f067aa0ba902b7", "parentSpanId": SPAN, "name": "load item", "kind": 2,
        "startTimeUnixNano": ns(40), "endTimeUnixNano": ns(100)});
    let resource =
        json!({"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]});
    let line =
        json!({"resource": resource, "scopeSpans": [{"scope": {"name": "x"}, "spans": [span]}]});
    place.write("shop.json", line.to_string());
    place
        .stackline(&["import", "shop.json", "--into", &run])
        .succeeds();
    let lines = place.stackline(&["lifelines", &run, "--json"]).json();
    let points: Vec<&str> = lines["points"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|point| point["keyword"].as_str())
        .collect();
    assert!(points.contains(&"SHOP_LOAD_ITEM_START"), "{points:?}");
    // The connection and the request, which has the span in it.
    assert_eq!(lines["units"], 2, "{lines}");
}

#[test]
fn lines_of_a_proxy_are_joined_and_what_is_not_read_is_counted_by_reason() {
    let place = Place::new();
    place.write("one.pcap", capture());
    let at = "14/Nov/2023:22:13:20";
    let nginx = format!(
        "- - - [{at} +0000] \"GET /item/17?q=1 HTTP/1.1\" 200 2 \"-\" \"curl\" rt=0.100 uct=\"0.001\" uht=\"0.080\" urt=\"0.010, 0.080\"\n# no line\n"
    );
    let haproxy = format!(
        "lb haproxy[14389]: 10.9.0.1:40001 [{at}.020] web web/s1 0/0/10/80/100 200 2 - - ---- 1/1/1/1/0 0/0 \"GET /item/17?q=1 HTTP/1.1\"\n"
    );
    for (name, log, ending) in [
        (
            "nginx",
            nginx,
            "1 events, 1 not read: no known time format\n",
        ),
        ("haproxy", haproxy, "1 events\n"),
    ] {
        place.write("access.log", &log);
        let words = ["import", "one.pcap", "--log", "access.log", "--name", name];
        let done = place.stackline(&words);
        assert!(done.succeeds().out.ends_with(ending), "{}", done.out);
        let run = done.out.lines().next().unwrap().to_owned();
        let behind = if name == "nginx" { "90.0 ms" } else { "100 ms" };
        let said = format!("GET /item/17?q=… 200 in 100 ms, upstream {behind}");
        assert!(
            text(&place, &run).contains(&said),
            "{name}: {}",
            text(&place, &run)
        );
    }
}

#[test]
fn logs_of_both_ends_of_quic_are_requests_by_name() {
    let place = Place::new();
    let log = |side: &str, events: &Value| {
        json!({"qlog_version": "0.3", "traces": [{
            "vantage_point": {"name": side, "type": side},
            "common_fields": {"ODCID": "5a", "reference_time": 1_700_000_000_000.0},
            "events": events}]})
        .to_string()
    };
    let packet = |ms: u64, what: &str, length: u64| {
        json!({"time": ms, "name": format!("transport:packet_{what}"), "data": {"header": {"packet_type": "1RTT"},
            "frames": [{"frame_type": "stream", "stream_id": 0, "offset": 0, "length": length, "fin": true}]}})
    };
    let headers = json!([{"name": ":method", "value": "GET"}, {"name": ":path", "value": "/slow?key=SECRET"}]);
    let made = json!({"time": 5, "name": "http:frame_created",
        "data": {"stream_id": 0, "frame": {"frame_type": "headers", "headers": headers}}});
    let client = json!([made, packet(5, "sent", 90), packet(85, "received", 700)]);
    let server = json!([packet(15, "received", 90), packet(75, "sent", 700)]);
    place.write("client.qlog", log("client", &client));
    place.write("server.qlog", log("server", &server));
    let done = place.stackline(&["import", "client.qlog", "server.qlog"]);
    done.succeeds();
    assert!(done.err.contains("1 request (1 HTTP/3)"), "{}", done.err);
    let run = run(&place);
    let lines = place.stackline(&["lifelines", &run]).succeeds().out.clone();
    let whole = lines
        .lines()
        .find(|line| line.starts_with("whole requests"));
    assert!(
        whole.is_some_and(|line| line.contains("80.0 ms")),
        "{lines}"
    );
    let said = place.stackline(&["diagnose", &run]).succeeds().out.clone();
    assert!(
        said.contains("GET /slow?key=…") && said.contains("server 75 %"),
        "{said}"
    );
    assert!(!said.contains("SECRET"), "{said}");
}

#[test]
fn logs_of_quic_say_what_was_lost_and_what_held_the_sender_back() {
    let place = Place::new();
    let mut server = String::from(
        "{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"trace\":{\"vantage_point\":{\"name\":\"aioquic\",\"type\":\"server\"}}}\n",
    );
    for number in 0..100 {
        let data = json!({"header": {"packet_type": "1RTT", "packet_number": number}, "raw": {"length": 1200},
            "frames": [{"frame_type": "stream", "stream_id": 3, "offset": number * 1100, "length": 1100}]});
        let sent = json!({"time": number * 10, "name": "transport:packet_sent", "data": data});
        let figures =
            json!({"congestion_window": 12000, "bytes_in_flight": 11500, "smoothed_rtt": 40});
        let metrics =
            json!({"time": number * 10, "name": "recovery:metrics_updated", "data": figures});
        server += &format!("{sent}\n{metrics}\n");
    }
    let whole = json!({"qlog_version": "0.3", "traces": [{"vantage_point": {"name": "aioquic", "type": "client"}, "events": [
        {"time": 1, "name": "recovery:packet_lost", "data": {"type": "1RTT", "packet_number": 9}}, {"time": 2, "name": "x"}]}]});
    let cut = whole.to_string();
    place.write("server.qlog", &server);
    place.write("client.qlog", &cut[..cut.len() - 10]);
    let done = place.stackline(&["import", "server.qlog", "client.qlog"]);
    done.succeeds();
    assert!(
        done.out
            .ends_with("  client.qlog (qlog): 2 events, 1 not read\n"),
        "{}",
        done.out
    );
    assert!(!done.err.contains("have events of aioquic"), "{}", done.err);
    let run = run(&place);
    let said = place.stackline(&["diagnose", &run]).succeeds().out.clone();
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains(
            "the congestion window of aioquic-server was full for 100 % of its connection time"
        ),
        "{said}"
    );
    let lines = place.stackline(&["lifelines", &run]).succeeds().out.clone();
    assert!(
        lines.contains("`stackline diagnose` reports lost packets"),
        "{lines}"
    );
    place
        .stackline(&[
            "report",
            &run,
            "--monitor",
            "cwnd_bytes",
            "--svg",
            "window.svg",
        ])
        .succeeds();
}
