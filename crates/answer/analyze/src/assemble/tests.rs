//! Small logs written by hand, and the lines that come of them.

use super::*;
use crate::lifelines::LifelineOutcome;
use proptest::prelude::*;
use stackline_core::trace_index::{HostTrace, RunFlow, RunSpan};
use stackline_events::text::EventTextReader;
use stackline_events::unit_ids::{EventStreamDirection, connection, stream, unit};
use std::collections::BTreeMap;
use std::fmt::Write as _;

fn table(log: &str) -> EventTable {
    let mut table = EventTable::default();
    EventTextReader::new(log.as_bytes(), "log").for_each(|event| table.push_event(&event.unwrap()));
    table
}

/// Each line as text: its unit, what it met and when in ms, what became of it.
fn drawn(made: &Lifelines) -> String {
    let mut text = String::new();
    for line in &made.lines {
        let point = |point: u32| {
            let point = &made.points[point as usize];
            let place = if point.place.is_empty() {
                String::new()
            } else {
                format!("/{}", point.place)
            };
            format!("{}@{}{place}", point.keyword, point.host)
        };
        let _ = write!(text, "{} [{}]", line.unit, made.groups[line.group as usize]);
        for passage in made.passages_of(line) {
            let _ = write!(
                text,
                " {}:{}",
                point(passage.point),
                passage.at_ns as f64 / 1e6
            );
        }
        for mark in made.marks_of(line) {
            let _ = write!(
                text,
                " ({}:{})",
                made.marked[mark.point as usize].keyword,
                mark.at_ns as f64 / 1e6
            );
        }
        let outcome = match line.outcome {
            LifelineOutcome::Complete => "complete".into(),
            LifelineOutcome::CacheHit => "cache hit".into(),
            LifelineOutcome::Retried { times } => format!("retried {times}"),
            LifelineOutcome::Flushed { after } => format!("flushed after {}", point(after)),
            LifelineOutcome::NeverArrived { after } => {
                format!("never arrived after {}", point(after))
            }
            LifelineOutcome::Unfinished { after } => format!("unfinished after {}", point(after)),
            LifelineOutcome::Headless { before } => format!("headless before {}", point(before)),
        };
        let _ = writeln!(text, " = {outcome}");
    }
    text
}

fn all(log: &str) -> String {
    drawn(&lifelines(&table(log), None, &LifelineOptions::default()))
}

/// Blocks of two servers: 1 and 2 come, 3 is in the cache, 4 waits for its disk and 5 for the network when a new list
/// comes, 6 is lost behind its server, 7 is requested as the log ends. Events of `vmstat` and other monitors are on no line.
const MAGIC: &str = "\
app_send; app; 10; 000000000; 1
app_send; app; 10; 000000000; 2
server_in; s1; 10; 008000000; 1
VMSTAT_SYS_CALLS; s1; 10; 009000000; 1
server_in; s2; 10; 009000000; 2
start_read; s1; 10; 013000000; 1
start_read; s2; 10; 014000000; 2
end_read; s1; 10; 035000000; 1
end_read; s2; 10; 036000000; 2
start_write; s1; 10; 043000000; 1
start_write; s2; 10; 044000000; 2
app_receive; app; 10; 066000000; 1
app_receive; app; 10; 067000000; 2
app_send; app; 10; 200000000; 3
app_send; app; 10; 200000000; 4
app_send; app; 10; 200000000; 5
app_send; app; 10; 200000000; 6
server_in; s1; 10; 208000000; 3
server_in; s1; 10; 208000000; 4
server_in; s1; 10; 208000000; 5
server_in; s2; 10; 208000000; 6
start_read; s1; 10; 213000000; 4
start_read; s1; 10; 213000000; 5
start_read; s2; 10; 213000000; 6
start_write; s1; 10; 214000000; 3
app_receive; app; 10; 237000000; 3
end_read; s1; 10; 235000000; 5
end_read; s2; 10; 235000000; 6
start_write; s2; 10; 243000000; 6
app_send; app; 10; 400000000; 1
app_send; app; 10; 400000000; 8
server_in; s1; 10; 408000000; 1
server_in; s2; 10; 409000000; 8
start_read; s1; 10; 413000000; 1
start_read; s2; 10; 414000000; 8
end_read; s1; 10; 435000000; 1
end_read; s2; 10; 436000000; 8
start_write; s1; 10; 443000000; 1
start_write; s2; 10; 444000000; 8
app_receive; app; 10; 466000000; 1
app_receive; app; 10; 467000000; 8
app_send; app; 10; 470000000; 7
server_in; s1; 10; 478000000; 7
";

#[test]
fn the_blocks_of_two_servers() {
    let made = lifelines(&table(MAGIC), None, &LifelineOptions::default());
    let points: Vec<String> = made
        .points
        .iter()
        .map(|point| format!("{}@{}", point.keyword, point.host))
        .collect();
    let path = "app_send@app server_in@s1 server_in@s2 start_read@s1 start_read@s2 end_read@s1 end_read@s2 start_write@s1 start_write@s2 app_receive@app";
    assert_eq!(points.join(" "), path);
    assert_eq!(
        drawn(&made),
        "\
1 [s1] app_send@app:10000 server_in@s1:10008 start_read@s1:10013 end_read@s1:10035 start_write@s1:10043 app_receive@app:10066 = complete
2 [s2] app_send@app:10000 server_in@s2:10009 start_read@s2:10014 end_read@s2:10036 start_write@s2:10044 app_receive@app:10067 = complete
3 [s1] app_send@app:10200 server_in@s1:10208 start_write@s1:10214 app_receive@app:10237 = cache hit
4 [s1] app_send@app:10200 server_in@s1:10208 start_read@s1:10213 = flushed after start_read@s1
5 [s1] app_send@app:10200 server_in@s1:10208 start_read@s1:10213 end_read@s1:10235 = flushed after end_read@s1
6 [s2] app_send@app:10200 server_in@s2:10208 start_read@s2:10213 end_read@s2:10235 start_write@s2:10243 = never arrived after start_write@s2
1 [s1] app_send@app:10400 server_in@s1:10408 start_read@s1:10413 end_read@s1:10435 start_write@s1:10443 app_receive@app:10466 = complete
8 [s2] app_send@app:10400 server_in@s2:10409 start_read@s2:10414 end_read@s2:10436 start_write@s2:10444 app_receive@app:10467 = complete
7 [s1] app_send@app:10470 server_in@s1:10478 = unfinished after server_in@s1
"
    );
}

#[test]
fn a_read_that_takes_no_time_is_a_cache_hit() {
    let mut log = String::new();
    for (block, read_ms) in [(1, 22), (2, 20), (3, 0), (4, 23)] {
        let at = |ms: u32| format!("{}; {}", block, ms * 1_000_000);
        for (point, host, ms) in [
            ("app_send", "app", 0),
            ("server_in", "s", 8),
            ("start_read", "s", 13),
            ("end_read", "s", 13 + read_ms),
        ] {
            let _ = writeln!(log, "{point}; {host}; {}; {block}", at(ms));
        }
        let _ = writeln!(log, "app_receive; app; {}; {block}", at(60));
    }
    let made = lifelines(&table(&log), None, &LifelineOptions::default());
    let outcomes: Vec<LifelineOutcome> = made.lines.iter().map(|line| line.outcome).collect();
    assert_eq!(
        outcomes,
        [
            LifelineOutcome::Complete,
            LifelineOutcome::Complete,
            LifelineOutcome::CacheHit,
            LifelineOutcome::Complete
        ]
    );
}

/// Blocks of the block server as its sessions write them: unit, whether a read is on the way, what the message says.
fn blocks(of: &[(u32, bool, &str)]) -> Vec<String> {
    let mut log = String::new();
    for (unit, read, source) in of {
        let at = |ms: u32| f64::from(ms) * 1e6;
        let mut point = |keyword: &str, host: &str, ms: u32| {
            let _ = writeln!(
                log,
                "{keyword}; {host}; {unit}; {}; {unit}; 7; 1; 1; 49152; {source}",
                at(ms)
            );
        };
        point("TV_REQ_TILE", "app", 0);
        point("DPSS_SERV_IN", "s", 8);
        if *read {
            point("DPSS_START_READ", "s", 13);
            point("DPSS_END_READ", "s", 35);
        }
        point("DPSS_START_WRITE", "s", 40);
        // The end of a connection's last write is not reported.
        if *unit != of.len() as u32 {
            point("DPSS_END_WRITE", "s", 41);
        }
        point("TV_RECV_TILE", "app", 60);
    }
    let made = lifelines(&table(&log), None, &LifelineOptions::default());
    made.lines.iter().map(|line| word(line.outcome)).collect()
}

fn word(outcome: LifelineOutcome) -> String {
    match outcome {
        LifelineOutcome::Complete => "complete".into(),
        LifelineOutcome::CacheHit => "cache hit".into(),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_block_is_a_cache_hit_where_its_message_says_so() {
    let (hit, miss) = ("cache hit", "complete");
    let none = [
        (1, true, "disk"),
        (2, true, "disk"),
        (3, true, "disk"),
        (4, true, "disk"),
    ];
    assert_eq!(blocks(&none), [miss; 4]);
    let all = [
        (1, false, "memory"),
        (2, false, "memory"),
        (3, false, "memory"),
    ];
    assert_eq!(blocks(&all), [hit; 3]);
    let half = [
        (1, true, "disk"),
        (2, false, "memory"),
        (3, false, "memory"),
        (4, true, "disk"),
    ];
    assert_eq!(blocks(&half), [miss, hit, hit, miss]);
    let last = [(1, true, "disk"), (2, true, "disk"), (3, false, "memory")];
    assert_eq!(blocks(&last), [miss, miss, hit]);
    let first = [(1, false, "memory"), (2, true, "disk")];
    assert_eq!(blocks(&first), [hit, miss]);
    let unsaid = [(1, true, ""), (2, true, ""), (3, false, ""), (4, true, "")];
    assert_eq!(
        blocks(&unsaid)[2],
        hit,
        "found by what it left out, as in others' logs"
    );
}

#[test]
fn a_line_without_its_beginning_ends_at_the_next_request() {
    let log = "\
end_read; s; 1; 0; 5
app_receive; app; 2; 0; 5
app_send; app; 3; 0; 5
end_read; s; 4; 0; 5
app_receive; app; 5; 0; 5
app_send; app; 3; 0; 6
end_read; s; 4; 0; 6
app_receive; app; 5; 0; 6
app_send; app; 3; 0; 7
end_read; s; 4; 0; 7
app_receive; app; 5; 0; 7
";
    assert_eq!(
        all(log),
        "\
5 [app] end_read@s:1000 app_receive@app:2000 = headless before end_read@s
5 [s] app_send@app:3000 end_read@s:4000 app_receive@app:5000 = complete
6 [s] app_send@app:3000 end_read@s:4000 app_receive@app:5000 = complete
7 [s] app_send@app:3000 end_read@s:4000 app_receive@app:5000 = complete
"
    );
}

#[test]
fn any_field_can_hold_the_unit() {
    let log = "READ; s; 1; 0; set 7; tile a\nWRITE; s; 2; 0; set 7; tile a\nREAD; s; 3; 0; set 7; tile b\nWRITE; s; 4; 0; set 7; tile b\n";
    let made = lifelines(
        &table(log),
        None,
        &LifelineOptions {
            unit_field: 1,
            ..LifelineOptions::default()
        },
    );
    let expected = "tile a [unknown] READ@s:1000 WRITE@s:2000 = complete\ntile b [unknown] READ@s:3000 WRITE@s:4000 = complete\n";
    assert_eq!(drawn(&made), expected);
}

/// One call on flow 0, request 100 bytes and response 200, two segments each way; then a unit on flow 1 that needs two
/// segments, of which the second is dropped and sent again, and carries the beginning of the next unit.
fn network() -> EventTable {
    let (call, there, back) = (
        unit(0, 0),
        stream(0, EventStreamDirection::There),
        stream(0, EventStreamDirection::Back),
    );
    let (one, two, bulk) = (
        unit(1, 0),
        unit(1, 1),
        stream(1, EventStreamDirection::There),
    );
    let log = format!(
        "\
APP_CALL; khons; 0; 0; {call}; {there}; 16; 100
NET_ENQUEUE; khons; 0; 1000000; ; {there}; 16; 60; khons>x; a; 1; 1; 1; 100
NET_ENQUEUE; khons; 0; 2000000; ; {there}; 76; 40; khons>x; a; 1; 2; 1; 80
SOCK_RECEIVED; udjat; 0; 3000000; ; {there}; 16; 60
SOCK_RECEIVED; udjat; 0; 4000000; ; {there}; 76; 40
APP_INDICATION; udjat; 0; 5000000; {call}; {there}; 16; 100
APP_REPLY; udjat; 0; 6000000; {call}; {back}; 0; 200
NET_ENQUEUE; udjat; 0; 6500000; ; {there}; ; ; udjat>x; b; 1; 2; 1; 40
NET_ENQUEUE; udjat; 0; 7000000; ; {back}; 0; 200; udjat>x; b; 1; 3; 1; 240
SOCK_RECEIVED; khons; 0; 8000000; ; {back}; 0; 200
APP_RESPONSE; khons; 0; 9000000; {call}; {back}; 0; 200
APP_SEND; khons; 0; 10000000; {one}; {bulk}; 16; 1000
APP_SEND; khons; 0; 10000000; {two}; {bulk}; 1016; 1000
NET_ENQUEUE; khons; 0; 11000000; ; {bulk}; 16; 900; khons>x; a; 2; 4; 1; 940
NET_ENQUEUE; khons; 0; 12000000; ; {bulk}; 916; 900; khons>x; a; 2; 5; 1; 940
NET_DROP; khons; 0; 12000000; ; {bulk}; 916; 900; khons>x; a; 2; 5; 1; 940; queue full
NET_ENQUEUE; khons; 0; 13000000; ; {bulk}; 1816; 200; khons>x; a; 2; 6; 1; 240
TCP_RETRANSMIT; khons; 0; 20000000; ; {bulk}; 916; 900; fast; 1
NET_ENQUEUE; khons; 0; 21000000; ; {bulk}; 916; 900; khons>x; a; 2; 7; 1; 940
APP_RECEIVED; udjat; 0; 22000000; {one}; {bulk}; 16; 1000
APP_RECEIVED; udjat; 0; 23000000; {two}; {bulk}; 1016; 1000
"
    );
    table(&log)
}

#[test]
fn segments_are_joined_by_the_bytes_they_carry() {
    let made = lifelines(&network(), None, &LifelineOptions::default());
    let (one, two) = (unit(1, 0), unit(1, 1));
    assert_eq!(
        drawn(&made),
        format!(
            "\
0 [udjat] APP_CALL@khons:0 NET_ENQUEUE@khons/khons>x:2 SOCK_RECEIVED@udjat:4 APP_INDICATION@udjat:5 APP_REPLY@udjat:6 NET_ENQUEUE@udjat/udjat>x:7 SOCK_RECEIVED@khons:8 APP_RESPONSE@khons:9 = complete
{one} [udjat] APP_SEND@khons:10 NET_ENQUEUE@khons/khons>x:12 APP_RECEIVED@udjat:22 (NET_DROP:12) (TCP_RETRANSMIT:20) = retried 1
{two} [udjat] APP_SEND@khons:10 NET_ENQUEUE@khons/khons>x:13 APP_RECEIVED@udjat:23 (NET_DROP:12) (TCP_RETRANSMIT:20) = retried 1
"
        )
    );
    let bytes: Vec<Option<u64>> = made.lines.iter().map(|line| line.bytes).collect();
    assert_eq!(bytes, [Some(300), Some(1000), Some(1000)]);
}

#[test]
fn connections_have_shares_of_their_own() {
    let (setup, there) = (connection(0, 0), stream(0, EventStreamDirection::There));
    let log = format!(
        "\
APP_CONNECT; a; 0; 0; {setup}; {there}
APP_CONNECTED; a; 0; 2000000; {setup}; {there}
APP_ACCEPTED; b; 0; 1500000; {setup}; {there}
APP_SEND; a; 0; 3000000; 0; {there}; 16; 10
APP_RECEIVED; b; 0; 4000000; 0; {there}; 16; 10
"
    );
    let made = lifelines(&table(&log), None, &LifelineOptions::default());
    assert!(
        drawn(&made).contains("APP_CONNECT@a:0 APP_CONNECTED@a:2 (APP_ACCEPTED:1.5) = complete"),
        "{}",
        drawn(&made)
    );
    let segments = crate::segments::segments(&made, None, false);
    let found: Vec<(bool, f64, f64)> = segments
        .iter()
        .map(|segment| (segment.connections, segment.ns.median_ns, segment.share))
        .collect();
    assert_eq!(found, [(false, 1e6, 1.0), (true, 2e6, 1.0)]);
}

/// Datagrams are known by their unit and have no offset; a simulated one is at its first queue at the instant it is sent.
#[test]
fn datagrams_begin_where_they_are_sent() {
    let simulated = include_str!("../../../../worlds/runner/tests/golden/traces/datagrams.txt");
    // With and without the direction.
    let undirected = simulated
        .lines()
        .filter(|line| line.starts_with("NET_"))
        .fold(simulated.to_owned(), |log, line| {
            let fields: Vec<&str> = line.split(';').collect();
            log.replace(
                line,
                &[&fields[..5], &[" "; 3], &fields[8..]].concat().join(";"),
            )
        });
    for log in [simulated, &undirected] {
        let made = lifelines(&table(log), None, &LifelineOptions::default());
        let outcomes: Vec<LifelineOutcome> = made
            .lines
            .iter()
            .filter(|line| !made.is_connection(line))
            .map(|line| line.outcome)
            .collect();
        assert_eq!(outcomes.len(), 4, "{}", drawn(&made));
        for (number, outcome) in outcomes.iter().enumerate() {
            let dropped = matches!(outcome, LifelineOutcome::NeverArrived { .. });
            assert!(
                if number == 2 {
                    dropped
                } else {
                    *outcome == LifelineOutcome::Complete
                },
                "{}",
                drawn(&made)
            );
        }
    }
}

/// Most calls return at the moment at which the last of their unit is sent, some before: none takes a time below zero.
#[test]
fn a_send_that_returns_as_its_unit_is_sent_comes_before_it() {
    let mut log = String::new();
    for number in 0..10_u64 {
        let (at, offset) = (number * 1_000_000, number * 100);
        let sent = if number % 4 == 0 {
            at + 5_000
        } else {
            at + 1_000
        };
        let _ = writeln!(log, "APP_SEND; a; 0; {at}; {number}; 0; {offset}; 100");
        let _ = writeln!(
            log,
            "APP_SENT; a; 0; {}; {number}; 0; {offset}; 100",
            at + 1_000
        );
        let _ = writeln!(log, "TCP_SEGMENT; a; 0; {sent}; ; 0; {offset}; 100");
        let _ = writeln!(
            log,
            "APP_RECEIVED; b; 0; {}; {number}; 0; {offset}; 100",
            at + 9_000
        );
    }
    let made = lifelines(&table(&log), None, &LifelineOptions::default());
    let path: Vec<&str> = made
        .points
        .iter()
        .map(|point| point.keyword.as_str())
        .collect();
    assert_eq!(
        path,
        ["APP_SEND", "APP_SENT", "TCP_SEGMENT", "APP_RECEIVED"]
    );
    assert!(
        crate::segments::segments(&made, None, false)
            .iter()
            .all(|segment| segment.negative == 0)
    );
}

#[test]
fn a_send_that_returns_late_is_beside_the_path() {
    let there = stream(0, EventStreamDirection::There);
    let log = format!(
        "\
APP_SEND; a; 0; 0; 0; {there}; 16; 10
SOCK_SEND; a; 0; 1000000; 0; {there}; 16; 10
SOCK_SENT; a; 0; 3000000; 0; {there}; 16; 10
SOCK_RECEIVED; b; 0; 2000000; 0; {there}; 16; 10
APP_RECEIVED; b; 0; 4000000; 0; {there}; 16; 10
"
    );
    let expected = "0 [b] APP_SEND@a:0 SOCK_SEND@a:1 SOCK_RECEIVED@b:2 APP_RECEIVED@b:4 (SOCK_SENT:3) = complete\n";
    assert_eq!(all(&log), expected);
}

#[test]
fn a_host_that_sends_both_ways_has_a_point_for_each_direction() {
    let (there, back) = (
        stream(0, EventStreamDirection::There),
        stream(0, EventStreamDirection::Back),
    );
    let log = format!(
        "\
APP_CALL; a; 0; 0; 0; {there}; 16; 10
SOCK_SEND; a; 0; 1000000; 0; {there}; 16; 10
APP_INDICATION; a; 0; 2000000; 0; {there}; 16; 10
APP_REPLY; a; 0; 3000000; 0; {back}; 0; 10
SOCK_SEND; a; 0; 4000000; 0; {back}; 0; 10
APP_RESPONSE; a; 0; 5000000; 0; {back}; 0; 10
"
    );
    let expected = "0 [unknown] APP_CALL@a:0 SOCK_SEND@a/there:1 APP_INDICATION@a:2 APP_REPLY@a:3 SOCK_SEND@a/back:4 APP_RESPONSE@a:5 = complete\n";
    assert_eq!(all(&log), expected);
}

#[test]
fn an_interface_that_is_captured_has_a_point_for_each_direction() {
    let (there, back) = (
        stream(0, EventStreamDirection::There),
        stream(0, EventStreamDirection::Back),
    );
    // A message of the server that nobody asked for, then a call.
    let log = format!(
        "\
APP_REPLY; b; 0; 1000000; 1; {back}; 0; 10
NET_SEEN; b; 0; 1000000; ; {back}; 0; 10; capture
NET_SEEN; a; 0; 3000000; ; {back}; 0; 10; capture
APP_RESPONSE; a; 0; 3000000; 1; {back}; 0; 10
APP_CALL; a; 0; 4000000; 2; {there}; 0; 10
NET_SEEN; a; 0; 4000000; ; {there}; 0; 10; capture
NET_SEEN; b; 0; 6000000; ; {there}; 0; 10; capture
APP_REPLY; b; 0; 7000000; 2; {back}; 10; 10
NET_SEEN; b; 0; 7000000; ; {back}; 10; 10; capture
NET_SEEN; a; 0; 9000000; ; {back}; 10; 10; capture
APP_RESPONSE; a; 0; 9000000; 2; {back}; 10; 10
"
    );
    let made = lifelines(&table(&log), None, &LifelineOptions::default());
    assert_eq!(
        drawn(&made),
        "\
1 [a] APP_REPLY@b:1 NET_SEEN@b/capture, back:1 NET_SEEN@a/capture, back:3 APP_RESPONSE@a:3 = headless before APP_REPLY@b
2 [b] APP_CALL@a:4 NET_SEEN@a/capture:4 NET_SEEN@b/capture:6 APP_REPLY@b:7 NET_SEEN@b/capture, back:7 NET_SEEN@a/capture, back:9 APP_RESPONSE@a:9 = complete
"
    );
}

/// Two hosts, the second with that clock; three units from the one to the other, 100 us each.
fn two_clocks(ahead_ns: i64, clock: ClockCorrection) -> (EventTable, Index) {
    let mut log = String::new();
    let there = stream(0, EventStreamDirection::There);
    for number in 0..3_u64 {
        let sent = 1_000_000_000 + number * 1_000_000;
        let received = (sent + 100_000) as i64 + ahead_ns;
        let _ = writeln!(
            log,
            "APP_SEND; a; {}; {}; {number}; {there}; {}; 10",
            sent / 1_000_000_000,
            sent % 1_000_000_000,
            number * 10
        );
        let _ = writeln!(
            log,
            "APP_RECEIVED; b; {}; {}; {number}; {there}; {}; 10",
            received / 1_000_000_000,
            received % 1_000_000_000,
            number * 10
        );
    }
    let mut index = Index {
        reference: "a".into(),
        ..Index::default()
    };
    index.hosts.insert("a".into(), HostTrace::default());
    index.hosts.insert(
        "b".into(),
        HostTrace {
            clock,
            ..HostTrace::default()
        },
    );
    (table(&log), index)
}

#[test]
fn clocks_are_corrected_and_their_errors_reported() {
    let clock = ClockCorrection {
        offset_ns: 5_000_000,
        error_ns: Some(2_000),
        ..ClockCorrection::default()
    };
    let (table, index) = two_clocks(5_000_000, clock);
    let made = lifelines(&table, Some(&index), &LifelineOptions::default());
    let segments = crate::segments::segments(&made, Some(&index), false);
    assert_eq!(
        (
            segments[0].ns.median_ns,
            segments[0].negative,
            segments[0].clock_error_ns
        ),
        (1e5, 0, Some(2_000))
    );
    assert_eq!(made.clock_error_ns, 2_000);
}

#[test]
fn a_clock_that_is_wrong_within_its_error_shows_times_below_zero() {
    let (table, index) = two_clocks(
        -300_000,
        ClockCorrection {
            error_ns: Some(400_000),
            ..ClockCorrection::default()
        },
    );
    let made = lifelines(&table, Some(&index), &LifelineOptions::default());
    let segments = crate::segments::segments(&made, Some(&index), false);
    assert_eq!(
        made.points[0].keyword, "APP_SEND",
        "within the error the order is that of the catalogue"
    );
    assert_eq!(
        (
            segments[0].ns.median_ns,
            segments[0].negative,
            segments[0].ns.n
        ),
        (-2e5, 3, 3)
    );
}

/// A call from a to b by a switch s, 5 us a link, each packet queued and sent at each port; b's clock is 20 us ahead, and its
/// error is known to be 25 us. Those of a and s are right.
#[test]
fn one_clock_that_is_wrong_leaves_the_order_of_the_others() {
    let (call, there, back) = (
        unit(0, 0),
        stream(0, EventStreamDirection::There),
        stream(0, EventStreamDirection::Back),
    );
    let path = [
        ("APP_CALL", "a", "", there),
        ("TCP_SEGMENT", "a", "", there),
        ("NET_ENQUEUE", "a", "a>s", there),
        ("NET_DEQUEUE", "a", "a>s", there),
        ("NET_ENQUEUE", "s", "s>b", there),
        ("NET_DEQUEUE", "s", "s>b", there),
        ("NET_DELIVER", "b", "b", there),
        ("APP_INDICATION", "b", "", there),
        ("APP_REPLY", "b", "", back),
        ("TCP_SEGMENT", "b", "", back),
        ("NET_ENQUEUE", "b", "b>s", back),
        ("NET_DEQUEUE", "b", "b>s", back),
        ("NET_ENQUEUE", "s", "s>a", back),
        ("NET_DEQUEUE", "s", "s>a", back),
        ("NET_DELIVER", "a", "a", back),
        ("APP_RESPONSE", "a", "", back),
    ];
    for ahead_ns in [-20_000, -7_000, 0, 7_000, 20_000] {
        let (mut log, mut at_ns) = (String::new(), 1_000_000_i64);
        let mut before = ("", "a");
        for (keyword, host, place, stream) in path {
            at_ns += if host != before.1 || keyword == "NET_DELIVER" {
                5_000
            } else {
                i64::from(before.0 != "APP_CALL")
            };
            before = (keyword, host);
            let seen_ns = at_ns + if host == "b" { ahead_ns } else { 0 };
            let place = if place.is_empty() {
                String::new()
            } else {
                format!("; {place}")
            };
            let _ = writeln!(
                log,
                "{keyword}; {host}; 0; {seen_ns}; {call}; {stream}; 16; 10{place}"
            );
        }
        let mut index = Index {
            reference: "a".into(),
            ..Index::default()
        };
        let wrong = ClockCorrection {
            error_ns: Some(25_000),
            ..ClockCorrection::default()
        };
        for (host, clock) in [
            ("a", ClockCorrection::default()),
            ("s", ClockCorrection::default()),
            ("b", wrong),
        ] {
            index.hosts.insert(
                host.into(),
                HostTrace {
                    clock,
                    ..HostTrace::default()
                },
            );
        }
        let made = lifelines(&table(&log), Some(&index), &LifelineOptions::default());
        let met: Vec<(&str, &str)> = made
            .points
            .iter()
            .map(|point| (point.keyword.as_str(), point.host.as_str()))
            .collect();
        let expected: Vec<(&str, &str)> = path
            .iter()
            .map(|(keyword, host, ..)| (*keyword, *host))
            .collect();
        assert_eq!(met, expected, "b is {ahead_ns} ns ahead");
    }
}

#[test]
fn units_of_warm_up_runs_and_of_runs_that_are_over() {
    let flow = |id, run, warmup| RunFlow {
        id,
        run,
        warmup,
        hosts: ("a".into(), "b".into()),
        stack: "tcp".into(),
        ..RunFlow::default()
    };
    let span = |run, warmup, from_ns, to_ns| RunSpan {
        run,
        warmup,
        from_ns,
        to_ns,
        ..RunSpan::default()
    };
    let index = Index {
        runs: vec![
            span(0, true, 0, 900),
            span(0, false, 1_000, 5_000),
            span(1, false, 6_000, 90_000),
        ],
        flows: vec![flow(0, 0, true), flow(1, 0, false), flow(2, 1, false)],
        ..Index::default()
    };
    let mut log = String::new();
    for (flow, number, sent, received) in [
        (0, 0, 100, Some(200)),
        (1, 0, 1_100, Some(1_600)),
        (1, 1, 4_900, None),
        (2, 0, 6_000, Some(6_400)),
        (2, 1, 7_000, None),
    ] {
        let (unit, there) = (
            unit(flow, number),
            stream(flow, EventStreamDirection::There),
        );
        let _ = writeln!(
            log,
            "APP_SEND; a; 0; {sent}; {unit}; {there}; {}; 10",
            number * 10
        );
        if let Some(received) = received {
            let _ = writeln!(
                log,
                "APP_RECEIVED; b; 0; {received}; {unit}; {there}; {}; 10",
                number * 10
            );
        }
    }
    let made = lifelines(
        &table(&log),
        Some(&index),
        &LifelineOptions {
            by: LifelineGroupKey::Stack,
            ..LifelineOptions::default()
        },
    );
    let found: Vec<(Option<u32>, LifelineOutcome)> = made
        .lines
        .iter()
        .map(|line| (line.flow, line.outcome))
        .collect();
    let expected = [
        (Some(1), LifelineOutcome::Complete),
        (Some(1), LifelineOutcome::Unfinished { after: 0 }),
        (Some(2), LifelineOutcome::Complete),
        (Some(2), LifelineOutcome::NeverArrived { after: 0 }),
    ];
    assert_eq!(
        (found.as_slice(), made.groups.as_slice()),
        (expected.as_slice(), ["tcp".to_owned()].as_slice())
    );
    let warm = LifelineOptions {
        warmup: true,
        ..LifelineOptions::default()
    };
    assert_eq!(lifelines(&table(&log), Some(&index), &warm).lines.len(), 5);
}

/// A line without rows, which depend on the order of events.
fn plain(mut made: Lifelines) -> Lifelines {
    made.passages
        .iter_mut()
        .chain(&mut made.marks)
        .for_each(|passage| passage.row = 0);
    made
}

fn shuffled(table: &EventTable, order: &[usize]) -> EventTable {
    let mut other = EventTable::default();
    order
        .iter()
        .for_each(|row| other.push_event(&table.event(*row)));
    other
}

fn orders(length: usize) -> impl Strategy<Value = Vec<usize>> {
    Just((0..length).collect::<Vec<usize>>()).prop_shuffle()
}

proptest! {
    #[test]
    fn the_order_of_events_changes_nothing(magic in orders(table(MAGIC).len()), net in orders(network().len())) {
        for (log, order) in [(table(MAGIC), magic), (network(), net)] {
            let made = |table: &EventTable| plain(lifelines(table, None, &LifelineOptions::default()));
            prop_assert_eq!(made(&shuffled(&log, &order)), made(&log));
        }
    }

    #[test]
    fn random_logs_are_assembled(events in proptest::collection::vec(hostile(), 0..60)) {
        let mut table = EventTable::default();
        for (keyword, host, at_ns, data) in &events {
            let data = data.iter().map(ToString::to_string).collect();
            let (keyword, host) = (keyword.to_string(), host.to_string());
            table.push_event(&stackline_events::TextEvent { keyword, host, at_ns: *at_ns, data });
        }
        let made = lifelines(&table, None, &LifelineOptions::default());
        // Every passage belongs to one line, and what lies between them adds up to the whole.
        let mut owners = vec![0; made.passages.len()];
        let mut sums = BTreeMap::new();
        for (number, line) in made.lines.iter().enumerate() {
            (line.first..line.first + line.count).for_each(|passage| owners[passage as usize] += 1);
            let passages = made.passages_of(line);
            let sum: i64 = passages.windows(2).map(|pair| pair[1].at_ns as i64 - pair[0].at_ns as i64).sum();
            prop_assert_eq!(sum, crate::segments::lifeline_duration_ns(&made, line));
            sums.insert(number, i128::from(sum));
        }
        prop_assert!(owners.iter().all(|owners| *owners == 1));
        let segments = crate::segments::segments(&made, None, false);
        let total: f64 = segments.iter().map(|segment| segment.ns.mean_ns * segment.ns.n as f64).sum();
        prop_assert!((total - sums.values().sum::<i128>() as f64).abs() < 1.0);
    }
}

type Hostile = (&'static str, &'static str, u64, Vec<i64>);

fn hostile() -> impl Strategy<Value = Hostile> {
    let keywords = [
        "APP_SEND",
        "APP_RECEIVED",
        "APP_CALL",
        "APP_CONNECT",
        "NET_ENQUEUE",
        "TCP_RETRANSMIT",
        "SOCK_SENT",
        "READ",
        "WRITE",
        "X_FLUSH",
    ];
    let number = prop_oneof![0_i64..4, Just(i64::MIN), Just(i64::MAX)];
    (
        proptest::sample::select(keywords.to_vec()),
        proptest::sample::select(vec!["a", "b", ""]),
        0_u64..50,
        proptest::collection::vec(number, 0..6),
    )
}

/// Blocks that two servers have, and a master that is asked for the name of each first.
#[test]
fn a_name_server_that_every_line_meets_is_not_the_server() {
    let mut log = String::new();
    for unit in 0..6 {
        let (at, server) = (unit * 1000, if unit % 2 == 0 { "s1" } else { "s2" });
        for (n, (keyword, host)) in [
            ("ask", "app"),
            ("name", "master"),
            ("read", server),
            ("got", "app"),
        ]
        .iter()
        .enumerate()
        {
            let _ = writeln!(log, "{keyword}; {host}; 1; {}; {unit}", at + n * 10);
        }
    }
    assert_eq!(
        lifelines(&table(&log), None, &LifelineOptions::default()).groups,
        ["s1", "s2"]
    );
    // Where there is only the one, it is the server.
    let alone = log.replace("s2", "s1").replace("master", "s1");
    assert_eq!(
        lifelines(&table(&alone), None, &LifelineOptions::default()).groups,
        ["s1"]
    );
}

#[test]
fn servers_that_begin_and_send_to_one_client_are_distinguished() {
    let between = |pairs: &[(&str, &str)]| {
        let mut log = String::new();
        let mut index = Index::default();
        for (id, (from, to)) in (0..).zip(pairs) {
            index.flows.push(RunFlow {
                id,
                hosts: ((*from).into(), (*to).into()),
                ..RunFlow::default()
            });
            let (unit, there) = (unit(id, 0), stream(id, EventStreamDirection::There));
            let _ = writeln!(log, "APP_SEND; {from}; 0; 100; {unit}; {there}; 0; 10");
            let _ = writeln!(log, "APP_RECEIVED; {to}; 0; 200; {unit}; {there}; 0; 10");
        }
        lifelines(&table(&log), Some(&index), &LifelineOptions::default()).groups
    };
    assert_eq!(between(&[("edc", "onyx"), ("usw", "onyx")]), ["edc", "usw"]);
    assert_eq!(between(&[("onyx", "edc"), ("onyx", "usw")]), ["edc", "usw"]);
    assert_eq!(between(&[("edc", "onyx"), ("edc", "onyx")]), ["onyx"]);
}
