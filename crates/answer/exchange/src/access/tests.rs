//! Lines of every form, which of them are joined, and hostile ones.

use super::*;
use proptest::prelude::*;
use std::slice;

const MS: u64 = 1_000_000;
/// 2000-10-10, 20:55:36 UTC.
const AT: u64 = 971_211_336_000 * MS;

fn asked(number: i64, name: &str, from: u64, to: u64) -> CapturedRequest {
    CapturedRequest {
        unit: number,
        answer: (1, 0, 10),
        server: "web".into(),
        name: name.into(),
        status: "200".into(),
        at_ns: (from, to),
    }
}

fn entry(line: &str) -> AccessLogEntry {
    let read = read(line.as_bytes());
    assert_eq!(
        (read.entries.len(), read.mistakes.count),
        (1, 0),
        "{:?}",
        read.mistakes
    );
    read.entries[0].clone()
}

#[test]
fn lines_of_every_form_say_the_same() {
    let combined = r#"10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a?b=1 HTTP/1.0" 200 2326 "http://x/ \"y\" 1.5" "curl 7.88""#;
    let found = entry(combined);
    assert_eq!(
        (
            found.at_ns,
            found.resolution_ns,
            found.is_end,
            found.took_ns
        ),
        (AT, 1000 * MS, false, None)
    );
    assert_eq!(
        (
            found.method.as_str(),
            found.path.as_str(),
            found.status.as_str()
        ),
        ("GET", "/a?b=1", "200")
    );
    for times in [
        "0.021 0.020",
        "rt=0.021 urt=\"0.020\"",
        "0.021 \"0.001, 0.020\"",
    ] {
        let found = entry(&format!("{combined} {times}"));
        assert_eq!(
            (found.is_end, found.took_ns, found.upstream_ns),
            (true, Some(21 * MS), Some(20 * MS)),
            "{times}"
        );
    }
    assert_eq!(entry(&format!("{combined} 0.021 -")).upstream_ns, None);
    for (json, resolution) in [
        (
            r#"{"time":"2000-10-10T20:55:36.000Z","method":"GET","path":"/a?b=1","status":200,"duration_ms":21}"#,
            MS,
        ),
        (
            r#"{"ts":971211336.000,"request":{"method":"GET","uri":"/a?b=1"},"status":200,"duration":0.021,"level":"info"}"#,
            100 * MS,
        ),
        (
            r#"{"@timestamp":"2000-10-10T20:55:36.000000Z","http":{"request":{"method":"GET"},"response":{"status_code":200}},"url":{"path":"/a?b=1"},"latency":"21ms"}"#,
            1000,
        ),
        (
            r#"{"msec":"971211336000","request":"GET /a?b=1 HTTP/1.1","status":"200","request_time":"0.021"}"#,
            MS,
        ),
    ] {
        let found = entry(json);
        assert_eq!(
            (found.at_ns, found.resolution_ns, found.took_ns),
            (AT, resolution, Some(21 * MS)),
            "{json}"
        );
        assert_eq!(
            (
                found.method.as_str(),
                found.path.as_str(),
                found.status.as_str()
            ),
            ("GET", "/a?b=1", "200")
        );
    }
    let otlp = read(format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{"traceId":"0123456789abcdef0123456789abcdef","spanId":"0123456789abcdef","name":"GET","kind":2,"startTimeUnixNano":"{}","endTimeUnixNano":"{AT}","attributes":[{{"key":"http.request.method","value":{{"stringValue":"GET"}}}},{{"key":"url.path","value":{{"stringValue":"/a"}}}},{{"key":"http.response.status_code","value":{{"intValue":"200"}}}}]}}]}}]}}]}}"#, AT - 21 * MS).as_bytes());
    assert_eq!(otlp.mistakes, ImportMistakes::default());
    assert_eq!(
        (otlp.entries[0].took_ns, otlp.entries[0].path.as_str()),
        (Some(21 * MS), "/a")
    );
    let wrong = read(b"no line\n\n{\"a\":1}\n");
    assert_eq!(
        (wrong.lines, wrong.mistakes.count, wrong.entries.len()),
        (2, 2, 0)
    );
}

#[test]
fn a_line_joins_the_one_request_that_ends_then() {
    let ends = |ms: u64| AccessLogEntry {
        at_ns: AT + ms * MS,
        resolution_ns: MS,
        is_end: true,
        method: "GET".into(),
        path: "/a".into(),
        status: "200".into(),
        ..AccessLogEntry::default()
    };
    let requests = [
        asked(0, "GET /a?q=7", AT, AT + 21 * MS),
        asked(1, "GET /b", AT, AT + 21 * MS),
        asked(2, "GET /a", AT + 900 * MS, AT + 1000 * MS),
        asked(3, "GET /a", AT + 990 * MS, AT + 1010 * MS),
    ];
    let joined = join(&[ends(22), ends(72), ends(1005)], &requests, None);
    assert_eq!(
        joined,
        AccessLogMatches {
            pairs: vec![(0, 0)],
            alone: 1,
            ambiguous: 1,
            ..AccessLogMatches::default()
        }
    );
    // The time that it took tells which.
    let took = AccessLogEntry {
        took_ns: Some(100 * MS),
        ..ends(1005)
    };
    assert_eq!(
        join(slice::from_ref(&took), &requests, None).pairs,
        [(0, 2)]
    );
    assert_eq!(
        join(slice::from_ref(&took), &requests, Some("other")).alone,
        1
    );
    // Two lines of one request are of none.
    assert_eq!(
        join(&[took.clone(), took], &requests, None),
        AccessLogMatches {
            pairs: vec![],
            alone: 0,
            ambiguous: 2,
            ..AccessLogMatches::default()
        }
    );
    assert_eq!(
        join(
            &[AccessLogEntry {
                status: "404".into(),
                ..ends(22)
            }],
            &requests,
            None
        )
        .alone,
        1
    );
    assert_eq!(
        join(
            &[AccessLogEntry {
                path: "/a?q=8".into(),
                ..ends(22)
            }],
            &requests,
            None
        )
        .alone,
        1
    );
    // A log of whole seconds names the second before its end; the line stands at the end.
    let coarse = AccessLogEntry {
        resolution_ns: 1000 * MS,
        at_ns: AT,
        ..ends(0)
    };
    assert_eq!(
        join(slice::from_ref(&coarse), &requests[..2], None).pairs,
        [(0, 0)]
    );
    assert_eq!(moment(&coarse, &requests[0]), AT + 21 * MS);
    assert_eq!(moment(&ends(22), &requests[0]), AT + 22 * MS);
    // Apache logs when a request came.
    let began = AccessLogEntry {
        is_end: false,
        ..ends(900)
    };
    assert_eq!(
        join(slice::from_ref(&began), &requests[..3], None).pairs,
        [(0, 2)]
    );
}

proptest! {
    #[test]
    fn hostile_lines_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..200), line in "[ -~]{0,40}") {
        let _ = read(&bytes);
        let _ = read(format!("x [10/Oct/2000:13:55:36 -0700] \"GET {line}").as_bytes());
        let _ = read(format!("{{\"time\":\"{line}\"}}").as_bytes());
    }
}
