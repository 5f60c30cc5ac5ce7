//! Traces: what leaves for what arrives, to the ms.

use super::script::{MS, Script};
use crate::tcp::{Algorithm, TcpFlags, TcpOptions, TcpReceived, TcpSegment, TcpState};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use stackline_core::time::Duration;

pub(super) const FULL: u32 = 1448;
pub(super) const NONE: TcpFlags = TcpFlags(0);

/// The end of the nth full segment.
pub(super) fn at(n: u32) -> u32 {
    1 + n * FULL
}

/// Full segments of data, from the `from`th to the one before the `to`th.
pub(super) fn full(ms: u64, from: u32, to: u32) -> Vec<String> {
    (from..to)
        .map(|n| format!("{ms} {}:{}({FULL}) ack 1", at(n), at(n + 1)))
        .collect()
}

fn open() -> Script {
    Script::open(TcpOptions::default(), 20, 65_535)
}

/// It has so many full segments to send, and has sent as many as it may.
fn sending(segments: u32) -> Script {
    let mut script = Script::open(
        TcpOptions {
            send_buffer: Some(1 << 20),
            ..TcpOptions::default()
        },
        20,
        65_535,
    );
    assert_eq!(
        script.end.send(script.now(), u64::from(segments * FULL)),
        Some(u64::from(segments * FULL))
    );
    script
}

#[test]
fn a_lost_syn_leaves_again_after_one_three_and_seven_seconds() {
    let mut script = Script::dials(TcpOptions::default(), 1000);
    assert_eq!(
        script.until(7000),
        [
            "0 S 0:0(0)",
            "1000 S 0:0(0)",
            "3000 S 0:0(0)",
            "7000 S 0:0(0)"
        ]
    );
    script.until(130_000);
    assert!(script.end.broken);
    assert_eq!(script.end.receive(script.now(), 1), TcpReceived::Broken);
}

#[test]
fn ten_segments_leave_at_first_and_two_for_each_that_is_acknowledged() {
    let mut script = sending(40);
    assert_eq!(script.until(20), full(20, 0, 10));
    script.ack(40, at(2), &[]);
    assert_eq!(script.until(40), full(40, 10, 14));
    assert_eq!(script.end.facts(script.now()).rtt, Duration(20 * MS));
}

#[test]
fn nagle_holds_a_small_segment_until_the_one_before_is_acknowledged() {
    let mut script = open();
    script.end.send(script.now(), 100);
    assert_eq!(script.until(20), ["20 1:101(100) ack 1"]);
    script.end.send(script.now(), 100);
    script.end.send(script.now(), 100);
    assert_eq!(script.until(30), [] as [&str; 0]);
    script.ack(40, 101, &[]);
    assert_eq!(script.until(40), ["40 101:301(200) ack 1"]);
    script.end.set_nodelay();
    script.end.send(script.now(), 50);
    assert_eq!(script.until(40), ["40 301:351(50) ack 1"]);
}

#[test]
fn a_small_send_buffer_is_looked_at_where_a_block_begins() {
    // The least that there is: 4,608 B of memory.
    let mut script = Script::open(
        TcpOptions {
            send_buffer: Some(250),
            ..TcpOptions::default()
        },
        20,
        65_535,
    );
    script.end.send(script.now(), 100);
    assert_eq!(script.until(20), ["20 1:101(100) ack 1"]);
    script.end.send(script.now(), 50);
    assert_eq!(script.until(20), [] as [&str; 0]);
    // The block that Nagle's algorithm holds back takes the rest of its 45 segments, and two segments more for each two that
    // leave: eight of the nine that the window lets.
    assert_eq!(
        script.end.send(script.now(), 1_000_000),
        Some(u64::from(45 * FULL - 50 + 8 * FULL))
    );
    assert_eq!(script.until(20).len(), 9);
    assert!(!script.end.has_room());
}

#[test]
fn three_selective_acknowledgements_cause_a_retransmission() {
    let mut script = sending(10);
    script.until(20);
    script.ack(40, 1, &[(at(1), at(2))]);
    script.ack(40, 1, &[(at(1), at(3))]);
    assert_eq!(script.until(40), [] as [&str; 0]);
    script.ack(41, 1, &[(at(1), at(4))]);
    assert_eq!(script.until(41), full(41, 0, 1));
    script.ack(61, at(10), &[]);
    assert_eq!(script.until(61), [] as [&str; 0]);
    // Seven tenths of ten, and one more for the seven that arrived now.
    let facts = script.end.facts(script.now());
    assert_eq!(
        (facts.window, facts.threshold, facts.retransmits),
        (8, 7, 1)
    );
}

#[test]
fn a_shrinking_window_sends_in_proportion_to_arrivals() {
    let mut script = Script::open(
        TcpOptions {
            congestion: Algorithm::Reno,
            ..TcpOptions::default()
        },
        20,
        65_535,
    );
    script.end.send(script.now(), u64::from(20 * FULL));
    script.until(20);
    // The first is lost, nine arrive: two cause new segments, the third the retransmission, then one leaves for every
    // two until the window is full.
    let mut left = Vec::new();
    for n in 1..10 {
        script.ack(40 + u64::from(n), 1, &[(at(1), at(n + 1))]);
        left.push(script.until(40 + u64::from(n)).len());
    }
    assert_eq!(left, [1, 1, 1, 0, 1, 0, 1, 0, 0]);
}

#[test]
fn the_last_segment_is_sent_again_after_two_round_trips() {
    let mut script = sending(3);
    assert_eq!(script.until(20), full(20, 0, 3));
    script.ack(40, at(2), &[]);
    // One segment is out: two round trips and the longest that its acknowledgement may be delayed, or the time-out.
    assert_eq!(
        script.until(300),
        [format!("260 {}:{}({FULL}) ack 1", at(2), at(3))]
    );
    // It is acknowledged: the probe repaired a loss that no acknowledgement shows, so the window shrinks.
    script.ack(280, at(3), &[]);
    assert_eq!(script.end.facts(script.now()).threshold, 7);
}

#[test]
fn time_outs_double() {
    let mut script = sending(1);
    let lines = script.until(10_000);
    let times: Vec<u64> = lines
        .iter()
        .map(|line| line.split(' ').next().unwrap().parse().unwrap())
        .collect();
    // Sent, probed after 240 ms (a round trip's doubles and 200 ms), then time-outs that double.
    assert_eq!(times[0], 20);
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(
        gaps[1..]
            .windows(2)
            .all(|pair| pair[1].abs_diff(2 * pair[0]) <= 1),
        "{gaps:?}"
    );
    assert_eq!(script.end.facts(script.now()).window, 1);
}

#[test]
fn a_closed_window_is_probed_again_and_again() {
    let mut script = Script::open(TcpOptions::default(), 20, 2 * FULL as u16);
    script.end.send(script.now(), u64::from(4 * FULL));
    assert_eq!(script.until(20), full(20, 0, 2));
    script.offers(0);
    script.ack(40, at(2), &[]);
    let asked = script.until(2000);
    assert!(
        asked
            .iter()
            .all(|line| line.ends_with(&format!("{}:{}(0) ack 1", at(2) - 1, at(2) - 1))),
        "{asked:?}"
    );
    assert_eq!(asked.len(), 3, "{asked:?}");
    script.offers(65_535);
    script.ack(2000, at(2), &[]);
    assert_eq!(script.until(2000), full(2000, 2, 4));
    assert!(script.end.facts(script.now()).receive_window_limited > Duration(1900 * MS));
}

#[test]
fn a_single_segment_is_acknowledged_after_40_ms_and_two_at_once() {
    let mut script = open();
    for n in 0..16 {
        script.data(30, at(n), FULL, 1, NONE);
        script.end.receive(script.now(), u64::MAX);
        assert_eq!(
            script.until(30),
            [format!("30 1:1(0) ack {}", at(n + 1))],
            "{n}"
        );
    }
    script.data(31, at(16), FULL, 1, NONE);
    script.end.receive(script.now(), u64::MAX);
    assert_eq!(script.until(200), [format!("71 1:1(0) ack {}", at(17))]);
    script.data(201, at(17), FULL, 1, NONE);
    script.data(202, at(18), FULL, 1, NONE);
    script.end.receive(script.now(), u64::MAX);
    assert_eq!(script.until(202), [format!("202 1:1(0) ack {}", at(19))]);
}

#[test]
fn a_gap_and_its_end_are_acknowledged_at_once() {
    let mut script = open();
    script.data(30, at(1), FULL, 1, NONE);
    assert_eq!(
        script.until(30),
        [format!("30 1:1(0) ack 1 sack {}:{}", at(1), at(2))]
    );
    script.data(31, at(0), FULL, 1, NONE);
    assert_eq!(script.until(31), [format!("31 1:1(0) ack {}", at(2))]);
    assert_eq!(
        script.end.receive(script.now(), u64::MAX),
        TcpReceived::Bytes(u64::from(2 * FULL))
    );
}

#[test]
fn both_close_at_once() {
    let mut script = open();
    script.end.close();
    assert_eq!(script.until(20), ["20 F 1:1(0) ack 1"]);
    script.data(30, 1, 0, 1, TcpFlags::FIN);
    assert_eq!(
        (script.until(30), script.state()),
        (["30 2:2(0) ack 2".to_string()].to_vec(), TcpState::Closing)
    );
    script.data(40, 2, 0, 2, NONE);
    assert_eq!(script.state(), TcpState::TimeWait);
    script.until(2000);
    assert_eq!(script.state(), TcpState::Closed);
}

#[test]
fn a_lost_fin_leaves_again() {
    let mut script = open();
    script.end.close();
    let lines = script.until(300);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[1].ends_with("F 1:1(0) ack 1"), "{lines:?}");
    script.ack(301, 2, &[]);
    assert_eq!(script.state(), TcpState::FinWait2);
    script.data(302, 1, 10, 2, TcpFlags::FIN);
    assert_eq!(script.until(302), ["302 2:2(0) ack 12"]);
    assert_eq!(
        script.end.receive(script.now(), 100),
        TcpReceived::Bytes(10)
    );
    assert_eq!(script.end.receive(script.now(), 100), TcpReceived::End);
}

#[test]
fn a_mark_shrinks_the_window_and_nothing_is_sent_again() {
    // RFC 3168, 6.1.2: as after a loss, once a window, and it is reported to the peer.
    let mut script = Script::dials(
        TcpOptions {
            ecn: true,
            send_buffer: Some(1 << 20),
            ..TcpOptions::default()
        },
        65_535,
    );
    script.until(0);
    let granted = Script::syn_ack();
    script.arrives_at(
        20,
        TcpSegment {
            flags: granted.flags.with(TcpFlags::ECE),
            ..granted
        },
    );
    script.until(20);
    script.end.send(script.now(), u64::from(60 * FULL));
    assert_eq!(script.until(20), full(20, 0, 10));
    script.ack(40, at(10), &[]);
    assert_eq!(script.until(40).len(), 20);
    script.echo(60, at(20));
    let flags = script.next_flags(60);
    assert!(
        flags.has(TcpFlags::CWR),
        "the first new data says that the window was made smaller"
    );
    script.echo(61, at(22));
    assert!(
        !script.next_flags(61).has(TcpFlags::CWR),
        "and says it once"
    );
    script.ack(80, at(30), &[]);
    script.until(80);
    let facts = script.end.facts(script.now());
    assert_eq!(facts.retransmits, 0);
    // RFC 9438, 4.6: 0.7 of the 20 segments that ten acknowledged ones had made of ten.
    assert_eq!((facts.window, facts.threshold), (14, 14), "{facts:?}");
}

#[test]
fn after_a_reset_received_data_can_still_be_read() {
    let mut script = open();
    script.data(30, 1, 10, 1, NONE);
    script.data(31, 11, 0, 1, TcpFlags::RST);
    assert_eq!(script.state(), TcpState::Closed);
    assert_eq!(
        script.end.receive(script.now(), 100),
        TcpReceived::Bytes(10)
    );
    assert_eq!(script.end.receive(script.now(), 100), TcpReceived::Broken);
    assert_eq!(script.end.send(script.now(), 1), None);
}

#[test]
fn an_inexact_reset_is_challenged() {
    let mut script = open();
    script.data(30, 100, 0, 1, TcpFlags::RST);
    assert_eq!(
        (script.until(30), script.state()),
        (
            ["30 1:1(0) ack 1".to_string()].to_vec(),
            TcpState::Established
        )
    );
}

#[test]
fn an_abort_resets_the_peer() {
    let mut script = open();
    script.end.abort();
    assert_eq!(script.until(20), ["20 R 1:1(0)"]);
    assert_eq!(script.state(), TcpState::Closed);
}

#[test]
fn after_a_pause_slow_start_begins_again() {
    let mut script = sending(30);
    script.until(20);
    script.ack(40, at(10), &[]);
    script.until(40);
    script.ack(60, at(30), &[]);
    let before = script.end.facts(script.now()).window;
    assert!(before > 10, "{before}");
    script.until(5000);
    script.end.send(script.now(), u64::from(50 * FULL));
    assert_eq!(script.until(5000).len(), 10);
}

#[test]
fn a_silent_peer_is_given_up_with_a_timeout() {
    let timeout = Some(Duration(3000 * MS));
    let mut script = Script::open(
        TcpOptions {
            timeout,
            ..TcpOptions::default()
        },
        20,
        1000,
    );
    assert_eq!(script.until(3019), [] as [&str; 0]);
    assert_eq!(script.until(3020), ["3020 R 1:1(0)"]);
    assert!(script.end.broken);
}
