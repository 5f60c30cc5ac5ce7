//! Lines of every form, which of them are joined, and hostile ones.

use super::*;
use proptest::prelude::*;
use std::slice;

const MS: u64 = 1_000_000;
/// 2000-10-10, 20:55:36 UTC.
const AT: u64 = 971_211_336_000 * MS;

/// The moment, whether it is the end, the time it took and that of servers behind it.
fn times(entry: &AccessLogEntry) -> (u64, bool, Option<u64>, Option<u64>) {
    (entry.at_ns, entry.is_end, entry.took_ns, entry.upstream_ns)
}

#[test]
fn proxies_write_lines_of_their_own() {
    let came = |took, upstream| (AT, false, Some(took), upstream);
    let lines = [
        // haproxy, with its syslog's head or without it.
        (
            r#"Oct 10 20:55:36 lb haproxy[14389]: 10.0.1.2:33317 [10/Oct/2000:20:55:36.000] http-in static/srv1 1/2/1/14/21 200 2750 - - ---- 1/1/1/1/0 0/0 {w} {} "GET /a?b=1 HTTP/1.1""#,
            came(21 * MS, Some(18 * MS)),
        ),
        (
            r#"10.0.1.2:33317 [10/Oct/2000:20:55:36.000] http-in http-in/<NOSRV> -1/-1/-1/-1/+0 200 187 - - PR-- 1/1/0/0/0 0/0 "GET /a?b=1 HTTP/1.1""#,
            came(0, None),
        ),
        // Envoy, and Istio with its details.
        (
            r#"[2000-10-10T20:55:36.000Z] "GET /a?b=1 HTTP/1.1" 200 - 0 500 21 20 "-" "curl/8" "id" "web" "10.0.0.2:80""#,
            came(21 * MS, Some(20 * MS)),
        ),
        (
            r#"[2000-10-10T20:55:36.000Z] "GET /a?b=1 HTTP/1.1" 200 UF via_upstream - "-" 0 500 21 - "-" "curl/8" "id" "web" "-" outbound|80||web - 10.0.0.2:80"#,
            came(21 * MS, None),
        ),
        // Traefik.
        (
            r#"10.0.0.1 - - [10/Oct/2000:20:55:36 +0000] "GET /a?b=1 HTTP/1.1" 200 500 "-" "curl/8" 7 "web@docker" "http://10.0.0.2:80" 21ms"#,
            came(21 * MS, None),
        ),
        // Apache with %T/%D.
        (
            r#"10.0.0.1 - - [10/Oct/2000:20:55:36 +0000] "GET /a?b=1 HTTP/1.1" 200 500 "-" "curl/8" 0/21000"#,
            came(21 * MS, None),
        ),
        (
            r#"{"level":"info","StartUTC":"2000-10-10T20:55:36Z","time":"2000-10-10T20:55:37Z","RequestMethod":"GET","RequestPath":"/a?b=1","DownstreamStatus":200,"Duration":21000000,"OriginDuration":20000000,"ClientHost":"10.0.0.1"}"#,
            came(21 * MS, Some(20 * MS)),
        ),
        (
            r#"{"start_time":"2000-10-10T20:55:36.000Z","method":"GET","path":"/a?b=1","response_code":200,"duration":21,"upstream_service_time":"20","response_flags":"-","upstream_host":"10.0.0.2:80"}"#,
            came(21 * MS, Some(20 * MS)),
        ),
        (
            r#"{"time_iso8601":"2000-10-10T20:55:36+0000","request":"GET /a?b=1 HTTP/1.1","status":"200","request_time":"0.021","upstream_response_time":"0.001, 0.019"}"#,
            (AT, true, Some(21 * MS), Some(20 * MS)),
        ),
        (
            r#"{"level":30,"time":971211336000,"req":{"method":"GET","url":"/a?b=1"},"res":{"statusCode":200},"responseTime":21}"#,
            (AT, true, Some(21 * MS), None),
        ),
    ];
    for (line, expected) in lines {
        let found = entry(line);
        assert_eq!(times(&found), expected, "{line}");
        let what = [&found.method, &found.path, &found.status].map(String::as_str);
        assert_eq!(what, ["GET", "/a?b=1", "200"], "{line}");
        assert_eq!(found.number_ns.filter(|_| !found.is_end), None, "{line}");
    }
}

#[test]
fn what_is_not_read_is_counted_by_its_reason() {
    let lines = [
        "# a comment",
        r#"- [10/Oct/2000:20:55:36 +0000] "\x16\x03" 400 0"#,
        r#"- [10/Oct/2000:20:55:36 +0000] "GET / HTTP/1.1" OK"#,
        r#"{"time":"2000-10-10T20:55:36Z","msg":"ready"}"#,
        r#"{"time""#,
    ];
    let found = read(lines.join("\n").as_bytes());
    assert_eq!((found.mistakes.count, found.entries.len()), (5, 0));
    let reasons = [
        ("not JSON", 1),
        ("no method or path", 2),
        ("no status", 1),
        ("no known time format", 1),
    ];
    assert_eq!(found.reasons, BTreeMap::from(reasons));
}

#[test]
fn a_number_has_the_unit_by_which_it_agrees_with_the_capture() {
    let requests: Vec<CapturedRequest> = [100, 300, 50, 600]
        .iter()
        .zip(0..)
        .map(|(ms, number)| {
            let from = AT + u64::try_from(number).unwrap() * 1000 * MS;
            asked(
                number,
                &format!("GET /p{number}"),
                from,
                from + (ms + 1) * MS,
            )
        })
        .collect();
    for (numbers, expected) in [
        ([100_000, 300_123, 50_001, 600_000], Some(100 * MS)),
        ([100, 300, 50, 600], Some(100 * MS)),
        ([0, 0, 0, 1], Some(0)),
        // Bytes, or what else somebody put there.
        ([12_345, 7, 98, 4_000_000], None),
    ] {
        let lines: String = numbers
            .iter()
            .enumerate()
            .map(|(at, number)| {
                format!("10.0.0.1 - - [10/Oct/2000:20:55:{} +0000] \"GET /p{at} HTTP/1.1\" 200 5 \"-\" \"curl\" {number}\n", 36 + at)
            })
            .collect();
        let mut entries = read(lines.as_bytes()).entries;
        settle_units(&mut entries, &requests, None);
        assert_eq!(entries[0].took_ns, expected, "{numbers:?}");
        assert_eq!(join(&entries, &requests, None).pairs.len(), 4);
    }
}

fn asked(number: i64, name: &str, from: u64, to: u64) -> CapturedRequest {
    CapturedRequest {
        unit: number,
        answer: (1, 0, 10),
        server: "web".into(),
        port: 80,
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
        "rt=0.021 uct=\"0.000\" uht=\"0.019\" urt=\"0.020\"",
        "uct:0.000 urt:0.020 rt:0.021",
        "0.021 \"0.001, 0.019\"",
        "0.021 0.001, -, 0.019",
        "0.021 0.001 : 0.019",
        "0.020 0.021",
        "75 0.021 [default-web-80] [] 10.0.0.2:80, 10.0.0.3:80 0, 500 0.001, 0.019 502, 200 c0ffee",
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

#[test]
fn as_many_lines_as_requests_are_paired_by_their_order() {
    let line = |ms: u64| AccessLogEntry {
        at_ns: AT + ms * MS,
        resolution_ns: MS,
        is_end: true,
        took_ns: Some(40 * MS),
        method: "GET".into(),
        path: "/a".into(),
        status: "200".into(),
        ..AccessLogEntry::default()
    };
    let at = |ms: u64| asked(ms as i64, "GET /a", AT + (ms - 40) * MS, AT + ms * MS);
    // Two end at once, and one is logged late.
    let requests = [at(100), at(102), at(500)];
    let lines = [line(101), line(103), line(620)];
    let pairs = |lines: &[AccessLogEntry]| join(lines, &requests, None).pairs;
    assert_eq!(pairs(&lines), [(0, 0), (1, 1), (2, 2)]);
    // Which line is missing is not known, nor may a line be of another moment.
    assert_eq!(pairs(&lines[1..]), []);
    assert_eq!(pairs(&[line(101), line(103), line(1620)]), []);
}

#[test]
fn lines_of_a_proxy_are_its_requests_once_one_line_shows_its_port() {
    let line = |seconds: u64, status: &str| AccessLogEntry {
        at_ns: AT + 1000 * seconds * MS,
        resolution_ns: MS,
        is_end: true,
        method: "GET".into(),
        path: "/a".into(),
        status: status.into(),
        took_ns: Some(10 * MS),
        ..AccessLogEntry::default()
    };
    let lines =
        [1, 2, 3, 4, 5].map(|at| line(at, if at % 2 == 0 || at == 5 { "504" } else { "200" }));
    let captured = |line: &AccessLogEntry, port: u16, took_ms: u64| CapturedRequest {
        port,
        status: line.status.clone(),
        ..asked(0, "GET /a", line.at_ns - took_ms * MS, line.at_ns)
    };
    // Its server at another port did not answer all of them.
    let mut requests: Vec<CapturedRequest> =
        lines.iter().map(|line| captured(line, 80, 10)).collect();
    requests.extend([&lines[0], &lines[2]].map(|line| captured(line, 8080, 9)));
    let joined = join(&lines, &requests, None);
    assert_eq!(joined.pairs, [0, 1, 2, 3, 4].map(|at| (at, at)));
    assert_eq!(joined.ambiguous, 0);
    // Without such lines, or with few of them, nothing decides.
    let joined = join(&[line(1, "200"), line(3, "200")], &requests, None);
    assert_eq!((joined.pairs.len(), joined.ambiguous), (0, 2));
    let joined = join(&lines[..3], &requests, None);
    assert_eq!((joined.pairs.len(), joined.ambiguous), (1, 2));
}
