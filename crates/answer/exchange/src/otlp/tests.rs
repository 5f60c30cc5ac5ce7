//! What goes out comes back event by event, in both forms; what others write becomes lifelines; hostile bytes are harmless.

use super::*;
use proptest::prelude::*;
use stackline_analyze::assemble::{LifelineOptions, lifelines};
use stackline_events::TextEvent;

/// Two units over two hosts, one event that is on no line.
fn events() -> EventTable {
    let mut table = EventTable::default();
    let base = 1_700_000_000_000_000_000;
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
    assert!(
        text.contains(r#""traceId":"00000000000000010000000000000007""#),
        "ids are hexadecimal: {text}"
    );
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

#[test]
fn what_is_neither_form_is_refused() {
    assert!(
        read(b"{\"resourceSpans\": 7}", false)
            .unwrap_err()
            .to_string()
            .starts_with("this is no OTLP/JSON")
    );
    assert!(
        read(b"hello", false)
            .unwrap_err()
            .to_string()
            .starts_with("this is no OTLP protobuf")
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
