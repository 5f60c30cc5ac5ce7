//! A trace of two services becomes one lifeline; what is none is refused; hostile bytes are harmless.

use super::*;
use proptest::prelude::*;
use stackline_analyze::assemble::{LifelineOptions, lifelines};

const TRACE: &str = r#"{"data":[{"traceID":"e1f2","spans":[
  {"traceID":"e1f2","spanID":"a1","flags":1,"operationName":"GET /cart","references":[],"startTime":1700000000000000,
   "duration":900,"tags":[{"key":"http.status_code","type":"int64","value":200},{"key":"error","type":"bool","value":false}],
   "logs":[{"timestamp":1700000000000400,"fields":[{"key":"event","type":"string","value":"cache miss"}]}],
   "processID":"p1","warnings":null},
  {"traceID":"e1f2","spanID":"a2","operationName":"SELECT","references":[{"refType":"CHILD_OF","traceID":"e1f2","spanID":"a1"}],
   "startTime":1700000000000500,"duration":100,"tags":[],"logs":null,"processID":"p2"},
  {"traceID":"zz","spanID":"a3","operationName":"broken","startTime":1,"duration":1,"processID":"p2"}],
  "processes":{"p1":{"serviceName":"web","tags":[{"key":"hostname","type":"string","value":"web-1"}]},
   "p2":{"serviceName":"db","tags":[]}},"warnings":null}],"total":0,"limit":0,"offset":0,"errors":null}"#;

#[test]
fn a_trace_of_two_services_is_one_lifeline() {
    let read = read(TRACE.as_bytes(), false).unwrap();
    let lines: Vec<String> = (0..read.table.len())
        .map(|row| read.table.event(row).to_string())
        .collect();
    let trace = format!("{:0>32}", "e1f2");
    let (web, db) = (
        format!("{trace}; {:0>16}; ", "a1"),
        format!("{trace}; {:0>16}; {:0>16}", "a2", "a1"),
    );
    assert_eq!(
        lines,
        [
            format!(
                "WEB_GET_CART_START; web-1; 1700000000; 0; {web}; GET /cart; http.status_code=200; error=false"
            ),
            format!(
                "WEB_CACHE_MISS; web-1; 1700000000; 400000; {web}; GET /cart; event=cache miss"
            ),
            format!("WEB_GET_CART_END; web-1; 1700000000; 900000; {web}; GET /cart"),
            format!("DB_SELECT_START; db; 1700000000; 500000; {db}; SELECT"),
            format!("DB_SELECT_END; db; 1700000000; 600000; {db}; SELECT"),
        ]
    );
    assert_eq!(read.mistakes.count, 1, "a span whose trace has no number");
    let lines = lifelines(&read.table, None, &LifelineOptions::default());
    assert_eq!((lines.lines.len(), lines.passages.len()), (1, 5));
}

#[test]
fn what_is_no_answer_of_jaeger_is_refused() {
    for text in ["{", "[]", r#"{"data":7}"#, r#"{"spans":[]}"#] {
        assert!(
            read(text.as_bytes(), false)
                .unwrap_err()
                .to_string()
                .starts_with("this is not Jaeger JSON"),
            "{text}"
        );
    }
    let cut = format!("{TRACE}\n{{\"data\":[");
    assert_eq!(
        read(cut.as_bytes(), false).unwrap().mistakes.count,
        2,
        "what was read before is kept"
    );
}

proptest! {
    #[test]
    fn damaged_bytes_are_harmless(at in 0..TRACE.len(), byte: u8) {
        let mut bytes = TRACE.as_bytes().to_vec();
        bytes[at] = byte;
        let _ = read(&bytes, false);
    }
}
