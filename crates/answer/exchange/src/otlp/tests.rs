//! What goes out comes back event by event, in both forms; what others write becomes lifelines; hostile bytes are harmless.

use super::*;
use proptest::prelude::*;
use stackline_analyze::assemble::{LifelineOptions, lifelines};
use stackline_core::trace_index::{Index, RunFlow};
use stackline_events::{EventTable, TextEvent, unit_ids};

/// Two units over two hosts, one event that is on no line.
fn events() -> EventTable {
    events_at(1_700_000_000_000_000_000)
}

fn events_at(base: u64) -> EventTable {
    let mut table = EventTable::default();
    for (unit, at) in [(7, 0), (8, 500)] {
        table.push(
            "APP_CALL",
            "khons",
            base + at,
            &[
                EventValue::Number(unit),
                EventValue::Number(4),
                EventValue::Number(16),
                EventValue::Number(32),
            ],
        );
        table.push(
            "APP_INDICATION",
            "udjat",
            base + at + 40,
            &[
                EventValue::Number(unit),
                EventValue::Absent,
                EventValue::Text("a; b"),
            ],
        );
        table.push(
            "APP_RESPONSE",
            "khons",
            base + at + 90,
            &[EventValue::Number(unit)],
        );
    }
    table.push("VMSTAT", "khons", base, &[]);
    table
}

fn sorted(table: &EventTable) -> Vec<TextEvent> {
    let mut events: Vec<TextEvent> = (0..table.len()).map(|row| table.event(row)).collect();
    events.sort_by_key(|event| (event.at_ns, event.keyword.clone()));
    events
}

#[test]
fn what_goes_out_comes_back_in_both_forms() {
    let table = events();
    let data = spans(
        &lifelines(&table, None, &LifelineOptions::default()),
        &table,
    );
    let json = json(&data).unwrap();
    assert_eq!(serde_json::from_str::<TracesData>(&json).unwrap(), data);
    let mut expected = sorted(&table);
    expected.retain(|event| event.keyword != "VMSTAT");
    for bytes in [protobuf(&data), json.into_bytes()] {
        let read = read(&bytes, false).unwrap();
        assert_eq!(
            (sorted(&read.table), read.mistakes.count),
            (expected.clone(), 0)
        );
    }
}

#[test]
fn ids_are_those_of_the_specification() {
    let table = events();
    let data = spans(
        &lifelines(&table, None, &LifelineOptions::default()),
        &table,
    );
    let all: Vec<&OtlpSpan> = data
        .resource_spans
        .iter()
        .flat_map(|r| &r.scope_spans)
        .flat_map(|s| &s.spans)
        .collect();
    assert_eq!(
        all.len(),
        6,
        "two units, each with its root and two segments"
    );
    assert!(all.iter().all(|span| span.trace_id.len() == 16
        && span.span_id.len() == 8
        && span.events.len() < 128));
    let ids: std::collections::BTreeSet<_> = all.iter().map(|span| &span.span_id).collect();
    assert_eq!(ids.len(), all.len());
    for span in all.iter().filter(|span| !span.parent_span_id.is_empty()) {
        let parent = all
            .iter()
            .find(|other| other.span_id == span.parent_span_id)
            .unwrap();
        assert_eq!(parent.trace_id, span.trace_id);
    }
    let text = json(&data).unwrap();
    assert!(
        text.contains(r#""startTimeUnixNano":"1700000000000000000""#),
        "64-bit numbers are texts in JSON: {text}"
    );
    let id = text.split_once(r#""traceId":""#).unwrap().1;
    let id = u128::from_str_radix(&id[..32], 16).unwrap();
    assert_eq!(id as u64, 7, "ids are hexadecimal: {text}");
    assert!(!text.contains("null"), "{text}");
}

#[test]
fn traces_of_two_runs_have_different_ids() {
    let ids = |base| {
        let table = events_at(base);
        let options = LifelineOptions::default();
        let data = spans(&lifelines(&table, None, &options), &table);
        let spans = data.resource_spans.into_iter().flat_map(|r| r.scope_spans);
        let ids = spans.flat_map(|s| s.spans).map(|span| span.trace_id);
        ids.collect::<std::collections::BTreeSet<_>>()
    };
    let (first, second) = (
        ids(1_700_000_000_000_000_000),
        ids(1_700_000_060_000_000_000),
    );
    assert_eq!((first.len(), second.len()), (2, 2));
    assert!(first.is_disjoint(&second));
}

#[test]
fn spans_of_others_become_lifelines() {
    let text = r#"{"resourceSpans":[{"resource":{"attributes":[
        {"key":"service.name","value":{"stringValue":"cart"}},{"key":"host.name","value":{"stringValue":"web-1"}}]},
      "scopeSpans":[{"scope":{"name":"lib"},"spans":[
        {"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","name":"GET /cart","kind":2,
         "startTimeUnixNano":1000,"endTimeUnixNano":"3000","droppedEventsCount":1,
         "attributes":[{"key":"http.status","value":{"intValue":"200"}}],
         "events":[{"timeUnixNano":"2000","name":"cache miss"}]},
        {"traceId":"00","spanId":"01","name":"broken","startTimeUnixNano":"1","endTimeUnixNano":"2"}]}]}]}"#;
    let read = read(text.as_bytes(), false).unwrap();
    let lines: Vec<String> = (0..read.table.len())
        .map(|row| read.table.event(row).to_string())
        .collect();
    let ids = "0af7651916cd43dd8448eb211c80319c; b7ad6b7169203331; ";
    assert_eq!(
        lines,
        [
            format!("CART_GET_CART_START; web-1; 0; 1000; {ids}; GET /cart; http.status=200"),
            format!("CART_CACHE_MISS; web-1; 0; 2000; {ids}; GET /cart"),
            format!("CART_GET_CART_END; web-1; 0; 3000; {ids}; GET /cart"),
        ]
    );
    assert_eq!(read.mistakes.count, 1);
    let lines = lifelines(&read.table, None, &LifelineOptions::default());
    assert_eq!((lines.lines.len(), lines.passages.len()), (1, 3));
}

/// The events of some JSON as text, and how many mistakes and spans without a trace there were.
fn events_of(text: &str) -> (Vec<String>, u64, u64) {
    let read = read(text.as_bytes(), false).unwrap();
    let rows = 0..read.table.len();
    let lines = rows.map(|row| read.table.event(row).to_string()).collect();
    (lines, read.mistakes.count, read.without_ids)
}

const RESOURCE: &str =
    r#""resource":{"attributes":[{"key":"service.name","value":{"stringValue":"cart"}}]}"#;

fn span(ids: &str) -> String {
    format!(r#"{{{ids}"name":"op","kind":2,"startTimeUnixNano":"1000","endTimeUnixNano":"3000"}}"#)
}

#[test]
fn what_the_message_wraps_is_read_alone_too() {
    let ids = r#""traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","parentSpanId":null,"#;
    let (span, ids) = (
        span(ids),
        "0af7651916cd43dd8448eb211c80319c; b7ad6b7169203331; ; op",
    );
    let scopes = format!(r#"[{{"scope":{{"name":"x"}},"spans":[{span}]}}]"#);
    let expected = vec![
        format!("CART_OP_START; cart; 0; 1000; {ids}"),
        format!("CART_OP_END; cart; 0; 3000; {ids}"),
    ];
    let whole = format!(r#"{{"resourceSpans":[{{{RESOURCE},"scopeSpans":{scopes}}}]}}"#);
    let bare = format!(r#"{{{RESOURCE},"scopeSpans":{scopes}}}"#);
    for text in [
        &whole,
        &bare,
        &format!(r#"{{{RESOURCE},"instrumentationLibrarySpans":{scopes}}}"#),
        &format!(r#"{{"batches":[{bare}]}}"#),
        &format!(r#"{{"result":{whole}}}"#),
        &format!("[{whole}]"),
        // Protobuf's own JSON has ids in base64.
        &whole
            .replace(
                "0af7651916cd43dd8448eb211c80319c",
                "CvdlGRbNQ92ESOshHIAxnA==",
            )
            .replace("b7ad6b7169203331", "t61rcWkgMzE="),
    ] {
        assert_eq!(events_of(text), (expected.clone(), 0, 0), "{text}");
    }
    // One instrumentation, or some spans, of nobody knows whom.
    for text in [
        scopes[1..scopes.len() - 1].to_owned(),
        format!(r#"{{"spans":[{span}]}}"#),
    ] {
        assert_eq!(
            events_of(&text).0[0],
            format!("OP_START; unknown; 0; 1000; {ids}")
        );
    }
}

#[test]
fn a_span_without_a_trace_is_a_unit_of_its_own() {
    for ids in [
        r#""traceId":"","spanId":"","parentSpanId":"","#,
        "",
        r#""traceId":"00000000000000000000000000000000","spanId":"0000000000000000","#,
    ] {
        let (a, b) = (span(ids), span(ids).replace("op", "other"));
        let text = format!(r#"{{{RESOURCE},"scopeSpans":[{{"spans":[{a},{b}]}}]}}"#);
        let (lines, mistakes, without) = events_of(&text);
        assert_eq!((lines.len(), mistakes, without), (4, 0, 2), "{ids}");
        let unit = |line: &str| line.split("; ").nth(4).unwrap().to_owned();
        assert_eq!(unit(&lines[0]), unit(&lines[1]));
        assert_ne!(unit(&lines[0]), unit(&lines[2]));
        assert!(unit(&lines[0]).starts_with("span-"), "{lines:?}");
    }
}

#[test]
fn a_line_that_is_cut_does_not_take_the_others_with_it() {
    let ids = r#""traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","#;
    let line = format!(
        r#"{{{RESOURCE},"scopeSpans":[{{"spans":[{}]}}]}}"#,
        span(ids)
    );
    for cut in [1, 40, line.len() - 1] {
        let text = format!("{}\n{line}\n{}\n{line}\n", &line[..cut], &line[..cut]);
        let (lines, mistakes, _) = events_of(&text);
        assert_eq!((lines.len(), mistakes), (4, 2), "{cut}");
    }
}

#[test]
fn what_is_neither_form_is_refused() {
    assert!(
        read(b"{\"resourceSpans\": 7}", false)
            .unwrap_err()
            .to_string()
            .starts_with("this is not OTLP/JSON")
    );
    assert!(
        read(b"hello", false)
            .unwrap_err()
            .to_string()
            .starts_with("this is not OTLP protobuf")
    );
    let mut cut = json(&spans(
        &lifelines(&events(), None, &LifelineOptions::default()),
        &events(),
    ))
    .unwrap();
    cut.push_str("\n{\"resourceSpans\":[{");
    let read = read(cut.as_bytes(), false).unwrap();
    assert_eq!(
        (read.table.len(), read.mistakes.count),
        (6, 1),
        "the whole lines before are read"
    );
}

proptest! {
    #[test]
    fn hostile_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(&bytes, false);
    }

    #[test]
    fn damaged_bytes_are_harmless(at in 0_usize..400, byte: u8) {
        let table = events();
        let mut bytes = protobuf(&spans(&lifelines(&table, None, &LifelineOptions::default()), &table));
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = read(&bytes, false);
    }
}

/// A request of a client to a proxy, the one that this makes for it, and the connection that comes first; events in ns.
fn traced(context: Option<(&str, &str)>) -> EventTable {
    let mut table = EventTable::default();
    let number = EventValue::Number;
    let connection = unit_ids::connection(0, 0);
    table.push("APP_CONNECT", "a", 10, &[number(connection)]);
    table.push("APP_CONNECTED", "a", 20, &[number(connection)]);
    let outer = unit_ids::unit(0, 0);
    let inner = unit_ids::unit(1, 0);
    for (unit, flow, [client, server], at) in
        [(outer, 0, ["a", "b"], 30), (inner, 1, ["b", "c"], 60)]
    {
        let range = [
            number(unit),
            number(unit_ids::stream(
                flow,
                unit_ids::EventStreamDirection::There,
            )),
            number(0),
            number(9),
        ];
        let end = 200 - at;
        table.push("APP_CALL", client, at, &range);
        table.push("APP_INDICATION", server, at + 10, &range);
        let back = [
            number(unit),
            number(unit_ids::stream(flow, unit_ids::EventStreamDirection::Back)),
            number(0),
            number(9),
        ];
        table.push("APP_REPLY", server, end - 10, &back);
        table.push("APP_RESPONSE", client, end, &back);
        let (status, program) = if unit == outer { (502, 0) } else { (200, 1) };
        let programs = [["curl", "nginx"], ["nginx", ""]][program].map(EventValue::from);
        let what = [
            number(unit),
            "call".into(),
            "HTTP/1.1".into(),
            number(1),
            "GET /slow/17".into(),
            number(status),
            client.into(),
            server.into(),
        ];
        table.push("REQUEST", client, end, &[&what[..], &programs].concat());
    }
    table.push(
        "REQUEST_PARENT",
        "b",
        140,
        &[number(inner), number(outer), number(980_000)],
    );
    if let Some((trace, span)) = context {
        table.push(
            "REQUEST_TRACE",
            "a",
            170,
            &[number(outer), trace.into(), span.into()],
        );
    }
    table
}

/// Spans of a table by host, service, name and kind, each with its trace, its own id and its parent's.
fn named(
    table: &EventTable,
    index: Option<&Index>,
) -> BTreeMap<(String, String, String, i32), [String; 3]> {
    let data = spans(&lifelines(table, index, &LifelineOptions::default()), table);
    let mut found = BTreeMap::new();
    for resource in data.resource_spans {
        let said: Vec<String> = resource
            .resource
            .iter()
            .flat_map(|one| &one.attributes)
            .filter_map(shown)
            .collect();
        for span in resource
            .scope_spans
            .into_iter()
            .flat_map(|scope| scope.spans)
        {
            let ids = [&span.trace_id, &span.span_id, &span.parent_span_id].map(|id| hex_of(id));
            let place = (
                said[0].clone(),
                said[1].clone(),
                span.name.clone(),
                span.kind,
            );
            assert!(found.insert(place, ids).is_none(), "{span:?}");
        }
    }
    found
}

#[test]
fn requests_are_spans_of_their_programs_under_the_requests_that_they_were_made_for() {
    let found = named(&traced(None), None);
    let one = |host: &str, service: &str, name: &str, kind: i32| {
        found[&(host.to_owned(), service.to_owned(), name.to_owned(), kind)].clone()
    };
    let client = one("a", "curl", "GET /slow/:id", 3);
    let proxy = one("b", "nginx", "GET /slow/:id", 2);
    let call = one("b", "nginx", "GET /slow/:id", 3);
    let server = one("c", "c", "GET /slow/:id", 2);
    let connect = one("a", "curl", "connect", 1);
    assert_eq!(client[2], "");
    for (below, above) in [
        (&proxy, &client),
        (&call, &proxy),
        (&server, &call),
        (&connect, &client),
    ] {
        assert_eq!((&below[0], &below[2]), (&client[0], &above[1]), "{found:?}");
    }
    assert!(
        found.keys().all(|(.., name, _)| !name.starts_with("unit ")),
        "{found:?}"
    );
    let ids: std::collections::BTreeSet<&String> = found.values().map(|[_, id, _]| id).collect();
    assert_eq!(ids.len(), found.len());
}

#[test]
fn requests_on_the_line_of_another_are_the_same_spans() {
    let flow = |id: u32, [client, server]: [&str; 2]| RunFlow {
        id,
        hosts: (client.to_owned(), server.to_owned()),
        service: format!("{server}:80"),
        ..RunFlow::default()
    };
    let index = Index {
        flows: vec![flow(0, ["a", "b"]), flow(1, ["b", "c"])],
        ..Index::default()
    };
    let table = traced(None);
    let lines = lifelines(&table, Some(&index), &LifelineOptions::default()).lines;
    assert_eq!(lines.len(), 2, "the connection and the request: {lines:?}");
    let keys = |found: BTreeMap<(String, String, String, i32), [String; 3]>| {
        let keys: Vec<_> = found.into_keys().collect();
        keys
    };
    assert_eq!(keys(named(&table, Some(&index))), keys(named(&table, None)));
    let found = named(&table, Some(&index));
    let ids: Vec<&String> = found.values().map(|[_, id, _]| id).collect();
    for [_, _, parent] in found.values().filter(|[_, _, parent]| !parent.is_empty()) {
        assert!(ids.contains(&parent), "{found:?}");
    }
}

#[test]
fn a_header_that_a_proxy_passes_on_unchanged_leaves_its_call_below_what_it_is_made_for() {
    let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    let mut table = traced(Some((trace, span)));
    let inner = EventValue::Number(unit_ids::unit(1, 0));
    table.push(
        "REQUEST_TRACE",
        "b",
        171,
        &[inner, trace.into(), span.into()],
    );
    let found = named(&table, None);
    let of_nginx = |kind| {
        let name = ["b", "nginx", "GET /slow/:id"].map(str::to_owned);
        let [host, service, name] = name;
        found[&(host, service, name, kind)].clone()
    };
    let ([_, served, _], [own, _, parent]) = (of_nginx(2), of_nginx(3));
    assert_eq!((own.as_str(), parent), (trace, served), "{found:?}");
}

#[test]
fn requests_are_in_the_trace_that_they_name() {
    let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    let found = named(&traced(Some((trace, span))), None);
    assert!(found.values().all(|[own, ..]| own == trace), "{found:?}");
    let root = (
        "a".to_owned(),
        "curl".to_owned(),
        "GET /slow/:id".to_owned(),
        3,
    );
    assert_eq!(found[&root][2], span);
}

#[test]
fn a_failure_is_the_status_of_its_span() {
    let table = traced(None);
    let data = spans(
        &lifelines(&table, None, &LifelineOptions::default()),
        &table,
    );
    let failed: Vec<(String, i32)> = data
        .resource_spans
        .into_iter()
        .flat_map(|one| one.scope_spans)
        .flat_map(|one| one.spans)
        .filter_map(|span| span.status)
        .filter(|status| status.code == 2)
        .map(|status| (status.message, status.code))
        .collect();
    assert_eq!(failed, [("502".to_owned(), 2), ("502".to_owned(), 2)]);
}

#[test]
fn requests_that_name_each_other_end() {
    let mut table = traced(None);
    let units = [unit_ids::unit(0, 0), unit_ids::unit(1, 0)].map(EventValue::Number);
    table.push(
        "REQUEST_PARENT",
        "a",
        170,
        &[units[0], units[1], EventValue::Number(1)],
    );
    assert!(!named(&table, None).is_empty());
}
