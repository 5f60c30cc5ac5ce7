//! What importers keep of spans, tags, logs of QUIC and access logs that hold secrets: none of these, and what may be kept is; all of it
//! where contents are asked for.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

use stackline_exchange::{Imported, access, jaeger, netlogger, otlp, qlog};

/// All that a run would keep of what was read, mistakes in words too.
fn kept(read: &Imported) -> String {
    let lines = (0..read.table.len()).map(|row| read.table.event(row).to_string());
    lines
        .chain(read.mistakes.first.iter().cloned())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Keeps these texts and no secret; with contents it shows the secrets.
fn hides(read: impl Fn(bool) -> Imported, texts: &[&str]) {
    let without = kept(&read(false));
    assert!(
        !without.contains("SECRET") && !without.contains("bob"),
        "{without}"
    );
    for text in texts {
        assert!(without.contains(text), "{text} of {without}");
    }
    assert!(kept(&read(true)).contains("SECRET"));
}

const SPANS: &str = r#"{"resourceSpans":[{"resource":{"attributes":[
    {"key":"service.name","value":{"stringValue":"cart"}},{"key":"process.command_line","value":{"stringValue":"x -p SECRET"}}]},
  "scopeSpans":[{"scope":{"name":"lib"},"spans":[
    {"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","name":"GET /cart?key=SECRET","kind":2,
     "startTimeUnixNano":"1000","endTimeUnixNano":"3000","attributes":[
      {"key":"http.url","value":{"stringValue":"http://bob:SECRET@w/cart;s=SECRET?key=SECRET#SECRET"}},
      {"key":"http.request.header.cookie","value":{"arrayValue":{"values":[{"stringValue":"SECRET"}]}}},
      {"key":"http.request.header.authorization","value":{"stringValue":"SECRET"}},
      {"key":"db.system","value":{"stringValue":"mysql"}},
      {"key":"db.statement","value":{"stringValue":"SELECT a FROM t WHERE b = \"SECRET\" # don't"}},
      {"key":"enduser.id","value":{"stringValue":"bob"}},{"key":"app.pin_secret","value":{"intValue":"42424242"}},
      {"key":"note","value":{"stringValue":"from bob@example.org"}},{"key":"http.route","value":{"stringValue":"/cart/{id}"}},
      {"key":"http.status_code","value":{"intValue":"200"}}],
     "status":{"message":"SECRET"},
     "events":[{"timeUnixNano":"2000","name":"exception","attributes":[
       {"key":"exception.type","value":{"stringValue":"KeyError"}},
       {"key":"exception.message","value":{"stringValue":"no SECRET"}},{"key":"exception.stacktrace","value":{"stringValue":"SECRET"}}]}]},
    {"traceId":"00","spanId":"01","name":"SELECT 'SECRET'","startTimeUnixNano":"1","endTimeUnixNano":"2"}]}]}]}
{"resourceSpans": "SECRET"}"#;

#[test]
fn spans_show_no_secret() {
    let texts = [
        "CART_GET_CART_KEY_START",
        "GET /cart?key=…; http.url=/cart%3B…?key=…",
        "db.statement=SELECT a FROM t WHERE b = ?",
        "http.route=/cart/{id}; http.status_code=200",
        "exception.type=KeyError; exception.message=…",
        "app.pin_secret=…",
        "the span \"SELECT ?\" has an invalid trace ID",
        "a value has the wrong type at line 19",
    ];
    hides(
        |contents| otlp::read(SPANS.as_bytes(), contents).unwrap(),
        &texts,
    );
    assert!(!kept(&otlp::read(SPANS.as_bytes(), false).unwrap()).contains("42424242"));
}

#[test]
fn tags_of_jaeger_show_no_secret() {
    let trace = r#"{"data":[{"traceID":"e1f2","spans":[{"traceID":"e1f2","spanID":"a1","operationName":"/cart?key=SECRET",
      "references":[],"startTime":1700000000000000,"duration":900,"processID":"p1","tags":[
        {"key":"http.url","value":"http://bob:SECRET@w/cart?key=SECRET"},{"key":"sql.query","value":"SELECT 'it''s SECRET'"},
        {"key":"http.request.header.cookie","value":["SECRET"]},{"key":"password","value":"SECRET"},{"key":"error","value":true}],
      "logs":[{"timestamp":1700000000000400,"fields":[{"key":"message","value":"login of bob with SECRET"}]},
        {"timestamp":1700000000000500,"fields":[{"key":"event","value":"cache miss"},{"key":"error.object","value":"SECRET"}]}]}],
      "processes":{"p1":{"serviceName":"web","tags":[]}}}]}
      {"data": [{"traceID": ["SECRET"]}]} {"data": "SECRET"}"#;
    let texts = [
        "/cart?key=…; http.url=/cart?key=…; sql.query=SELECT ?",
        "error=true",
        "WEB_LOG; ",
        "event=cache miss",
    ];
    hides(
        |contents| jaeger::read(trace.as_bytes(), contents).unwrap(),
        &texts,
    );
}

#[test]
fn names_that_hold_targets_and_statements_show_no_secret() {
    let names = [
        (
            "HTTP GET /x?t=SECRET",
            "HTTP GET /x?t=…",
            "WEB_HTTP_GET_X_T",
        ),
        (
            "fetch https://bob:SECRET@w/a#SECRET",
            "fetch /a",
            "WEB_FETCH_A",
        ),
        (
            "db: SELECT a FROM t WHERE b = 'SECRET'",
            "db: SELECT a FROM t WHERE b = ?",
            "WEB_DB_SELECT_A_FROM_T_WHERE_B",
        ),
    ];
    for (name, shown, keyword) in names {
        let span = format!(
            r#"{{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","name":"{name}","startTimeUnixNano":"1",
            "endTimeUnixNano":"3","events":[{{"timeUnixNano":"2","name":"{name}"}}]}}"#
        );
        let spans = format!(
            r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"web"}}}}]}},
            "scopeSpans":[{{"scope":{{"name":"lib"}},"spans":[{span}]}}]}}]}}"#
        );
        let [start, event] = [format!("{keyword}_START; "), format!("{keyword}; ")];
        let texts = [&start[..], &event, shown];
        hides(
            |contents| otlp::read(spans.as_bytes(), contents).unwrap(),
            &texts,
        );
        let trace = format!(
            r#"{{"data":[{{"traceID":"e1f2","spans":[{{"traceID":"e1f2","spanID":"a1","operationName":"{name}","startTime":1,"duration":9,
            "processID":"p1","logs":[{{"timestamp":2,"fields":[{{"key":"event","value":"{name}"}}]}}]}}],
            "processes":{{"p1":{{"serviceName":"web"}}}}}}]}}"#
        );
        hides(
            |contents| jaeger::read(trace.as_bytes(), contents).unwrap(),
            &texts[..1],
        );
        let line = format!("ts=1271701603 event=\"{name}\" x=1\n");
        let read =
            |contents| netlogger::read(line.as_bytes(), netlogger::NetLoggerForm::Bp, contents);
        hides(read, &[&format!("event={shown}")]);
        let log = format!(
            r#"{{"qlog_version":"0.4","traces":[{{"vantage_point":{{"type":"client"}},"events":[{{"time":1,"name":"{name}"}},
            {{"time":2,"name":"packet_lost","data":{{"trigger":"{name}"}}}}]}}]}}"#
        );
        hides(
            |contents| qlog::read(log.as_bytes(), None, contents).unwrap().imported,
            &[&format!("Q{}", &keyword[3..]).replace("Q_", "QLOG_")[..]],
        );
    }
    let service = SPANS.replace("\"cart\"", "\"cart?key=SECRET\"");
    let read = otlp::read(service.as_bytes(), false).unwrap();
    assert_eq!(
        read.table.keyword(0),
        "CART_KEY_GET_CART_KEY_START",
        "the name of a service is a name too"
    );
}

#[test]
fn messages_quote_no_value() {
    let said = [
        jaeger::read(br#"{"data": "SECRET"}"#, false)
            .unwrap_err()
            .to_string(),
        otlp::read(br#"{"resourceSpans": "SECRET"}"#, false)
            .unwrap_err()
            .to_string(),
    ];
    assert!(
        said.iter()
            .all(|said| !said.contains("SECRET") && said.contains("a value has the wrong type")),
        "{said:?}"
    );
}

#[test]
fn data_of_qlog_show_no_secret() {
    let log = r#"{"qlog_version":"0.4","traces":[{"vantage_point":{"type":"client"},"events":[
      {"time":1,"name":"security:key_updated","data":{"key_type":"client_1rtt_secret","new":"SECRET","old":"SECRET","generation":1}},
      {"time":2,"name":"http3:frame_created","data":{"stream_id":4,"frame":{"frame_type":"headers","headers":[
        {"name":":method","value":"GET"},{"name":":path","value":"/a?b=SECRET"},{"name":"cookie","value":"SECRET"}]}}},
      {"time":3,"name":"transport:parameters_set","data":{"owner":"remote","initial_source_connection_id":"5ec7e7aabbccddee",
        "stateless_reset_token":"SECRET","retry_token":{"type":"retry","raw":{"data":"SECRET","length":7}},"max_idle_timeout":30}},
      {"time":4,"name":"http3:datagram_created","data":{"raw":{"length":7,"data":["SECRET"]}}},
      {"time":5,"name":"connectivity:connection_closed","data":{"reason":"SECRET","connection_code":7,"owner":"local"}}]}]}"#;
    let texts = [
        r#""generation":1"#,
        r#"{"name":":path","value":"/a?b=…"}"#,
        r#"{"name":":method","value":"GET"}"#,
        r#"{"name":"cookie","value":"…"}"#,
        r#""initial_source_connection_id":"5ec7e7aabbccddee""#,
        r#""max_idle_timeout":30"#,
        r#""length":7"#,
        r#""connection_code":7"#,
    ];
    hides(
        |contents| qlog::read(log.as_bytes(), None, contents).unwrap().imported,
        &texts,
    );
    let cut = "\u{1e}{\"qlog_version\":\"0.3\",\"trace\":{}}\n\u{1e}SECRET\n";
    let read = qlog::read(cut.as_bytes(), None, false).unwrap().imported;
    assert_eq!(
        read.mistakes.first,
        ["a record: invalid JSON at line 1, column 1"]
    );
}

#[test]
fn lines_of_logs_that_cannot_be_read_are_not_quoted() {
    let read = access::read(b"cookie: SECRET\n{\"resource\": \"SECRET\"}\n");
    assert_eq!((read.mistakes.count, read.entries.len()), (2, 0));
    assert_eq!(
        read.mistakes.first[0],
        "line 1 does not describe a request: no known time format (14 bytes)"
    );
    assert!(!read.mistakes.first.concat().contains("SECRET"));
    let spans = access::read(b"{\"resourceSpans\": \"SECRET\"}");
    assert_eq!(
        spans.mistakes.first,
        ["the rest is not OTLP/JSON: a value has the wrong type at line 1, column 26"]
    );
}
