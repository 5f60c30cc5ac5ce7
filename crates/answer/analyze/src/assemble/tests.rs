//! Small logs written by hand, and the lines that come of them.

mod any_log;
mod block_servers;
mod clocks;
mod path_points;
mod servers;
mod units;

use super::*;
use crate::lifelines::LifelineOutcome;
use stackline_events::text::EventTextReader;
use stackline_events::unit_ids::{EventStreamDirection, stream, unit};
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
