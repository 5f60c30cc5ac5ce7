//! Traces of hosts of 1995: what leaves for what arrives, to the ms.

use super::script::{MS, Script};
use super::traces::{FULL, NONE, at, full};
use crate::tcp::{Algorithm, Recovery, TcpOptions};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::time::Duration;

const fn ms(ms: u64) -> Duration {
    Duration(ms * MS)
}

/// 4.3BSD: two ticks at least, six seconds at first.
fn bsd() -> TcpOptions {
    TcpOptions {
        least_timeout: ms(1000),
        first_timeout: ms(6000),
        timer_tick: ms(500),
        ..TcpOptions::default()
    }
}

/// When lines of a trace left.
fn times(lines: &[String]) -> Vec<u64> {
    lines
        .iter()
        .map(|line| line.split(' ').next().unwrap().parse().unwrap())
        .collect()
}

#[test]
fn a_lost_syn_waits_for_the_first_timeout() {
    let exact = TcpOptions {
        first_timeout: ms(500),
        ..TcpOptions::default()
    };
    assert_eq!(
        times(&Script::dials(exact, 1000).until(3600)),
        [0, 500, 1500, 3500]
    );
    // The timer ticked 200 ms before, and every 500 ms.
    let ticks = TcpOptions {
        timer_phase: ms(300),
        ..bsd()
    };
    assert_eq!(
        times(&Script::dials(ticks, 1000).until(42_000)),
        [0, 5800, 17_800, 41_800]
    );
}

#[test]
fn time_outs_have_a_least_and_end_at_ticks() {
    let after_a_write = |options: TcpOptions| {
        let mut script = Script::open(options, 20, 65_535);
        script.end.send(script.now(), 100);
        script.until(20);
        script.ack(40, 101, &[]);
        script.end.send(script.now(), 100);
        // The one in between is a probe of the tail, which 1995 had not.
        times(&script.until(9000))
    };
    let exact = after_a_write(TcpOptions {
        least_timeout: ms(700),
        ..TcpOptions::default()
    });
    assert_eq!(exact[..1], [40]);
    assert!(exact.contains(&(280 + 720)), "{exact:?}");
    // The script begins with a tick, and after the probe at 280 ms there are ticks at 500 ms, 1 s and so on.
    assert_eq!(after_a_write(bsd()), [40, 280, 1000, 3000, 7000]);
}

#[test]
fn one_segment_leaves_at_first_and_after_a_pause() {
    let options = TcpOptions {
        first_window: 1,
        send_buffer: Some(1 << 20),
        ..TcpOptions::default()
    };
    let mut script = Script::open(options, 20, 65_535);
    script.end.send(script.now(), u64::from(7 * FULL));
    assert_eq!(script.until(20), full(20, 0, 1));
    script.ack(40, at(1), &[]);
    assert_eq!(script.until(40), full(40, 1, 3));
    script.ack(60, at(3), &[]);
    assert_eq!(script.until(60), full(60, 3, 7));
    script.ack(80, at(7), &[]);
    assert_eq!(script.until(3000), [] as [&str; 0]);
    script.end.send(script.now(), u64::from(7 * FULL));
    assert_eq!(script.until(3000), full(3000, 7, 8));
}

#[test]
fn without_quick_acknowledgements_a_single_segment_waits() {
    let mut script = Script::open(
        TcpOptions {
            quickack: false,
            delayed_ack: ms(50),
            ..TcpOptions::default()
        },
        20,
        65_535,
    );
    script.data(40, 1, FULL, 1, NONE);
    script.end.receive(script.now(), u64::MAX);
    assert_eq!(script.until(200), [format!("90 1:1(0) ack {}", at(1))]);
    script.data(201, at(1), FULL, 1, NONE);
    script.data(202, at(2), FULL, 1, NONE);
    script.end.receive(script.now(), u64::MAX);
    assert_eq!(script.until(300), [format!("202 1:1(0) ack {}", at(3))]);
}

/// Recovery of 1995, with so many segments to send and a first window of so many.
fn reno(segments: u32, first_window: u32) -> Script {
    let (congestion, recovery) = (Algorithm::Reno, Recovery::Reno);
    let options = TcpOptions {
        congestion,
        recovery,
        first_window,
        send_buffer: Some(1 << 20),
        ..TcpOptions::default()
    };
    let mut script = Script::open(options, 20, 65_535);
    script.end.send(script.now(), u64::from(segments * FULL));
    assert_eq!(script.until(20), full(20, 0, first_window));
    script
}

/// Duplicates arrive, one each ms, the first at `from`: the first segments of what leaves after each.
fn duplicates(script: &mut Script, upto: u32, from: u64, count: u64) -> Vec<Vec<String>> {
    (from..from + count)
        .map(|ms| {
            script.ack(ms, upto, &[]);
            script.until(ms)
        })
        .collect()
}

#[test]
fn the_third_duplicate_sends_one_segment_again_and_the_others_inflate_the_window() {
    let mut script = reno(20, 10);
    let left = duplicates(&mut script, 1, 41, 9);
    let nothing = Vec::new;
    assert_eq!(
        left[..5],
        [nothing(), nothing(), full(43, 0, 1), nothing(), nothing()]
    );
    // Five and one for each duplicate: with the sixth, eleven.
    assert_eq!(
        left[5..],
        [
            full(46, 10, 11),
            full(47, 11, 12),
            full(48, 12, 13),
            full(49, 13, 14)
        ]
    );
    assert_eq!(script.end.facts(script.now()).window, 14);
    script.ack(63, at(10), &[]);
    assert_eq!(script.until(63), full(63, 14, 15));
    let facts = script.end.facts(script.now());
    assert_eq!(
        (facts.window, facts.threshold, facts.retransmits),
        (5, 5, 1)
    );
}

#[test]
fn a_second_loss_of_a_window_needs_three_more_duplicates() {
    let mut script = reno(20, 10);
    // The first and the third are lost.
    assert_eq!(duplicates(&mut script, 1, 41, 8).concat().len(), 4);
    script.ack(63, at(2), &[]);
    assert_eq!(script.until(63), [] as [&str; 0]);
    let left = duplicates(&mut script, at(2), 66, 3);
    assert_eq!(left, [Vec::new(), Vec::new(), full(68, 2, 3)]);
    script.ack(88, at(13), &[]);
    assert_eq!(script.until(88), full(88, 13, 15));
}

#[test]
fn a_second_loss_without_duplicates_waits_for_the_timer() {
    let mut script = reno(10, 10);
    // Eight arrive, and nothing is left to send.
    assert_eq!(duplicates(&mut script, 1, 41, 8).concat(), full(43, 0, 1));
    script.ack(63, at(2), &[]);
    assert_eq!(script.until(300), full(263, 2, 3));
    script.ack(283, at(10), &[]);
    assert_eq!(script.until(300), [] as [&str; 0]);
    assert_eq!(script.end.facts(script.now()).retransmits, 2);
}

#[test]
fn a_time_out_sends_everything_again_as_the_window_opens() {
    let mut script = reno(10, 4);
    // No probe of the tail. The time-out doubles.
    assert_eq!(
        script.until(620),
        [full(220, 0, 1), full(620, 0, 1)].concat()
    );
    script.ack(640, at(1), &[]);
    assert_eq!(script.until(640), full(640, 1, 3));
    // The fourth had arrived: it does not leave again.
    script.ack(660, at(4), &[]);
    assert_eq!(script.until(660), full(660, 4, 6));
    assert_eq!(script.end.facts(script.now()).threshold, 2);
}

#[test]
fn what_lies_behind_a_gap_is_acknowledged_one_by_one_and_not_reported() {
    let recovery = Recovery::Reno;
    let mut script = Script::dials(
        TcpOptions {
            recovery,
            ..TcpOptions::default()
        },
        65_535,
    );
    let syn = script.end.poll(script.now()).unwrap();
    assert!(!syn.syn.sack_permitted);
    script.arrives_at(20, Script::syn_ack());
    script.until(20);
    let mut offered = Vec::new();
    for n in 1..8 {
        let ms = 40 + u64::from(n);
        script.data(ms, at(n), FULL, 1, NONE);
        let answer = script.end.poll(script.now()).unwrap();
        assert!(answer.sack().is_empty());
        offered.push((answer.acknowledged, answer.window));
        assert_eq!(script.until(ms), [] as [&str; 0]);
    }
    assert!(
        offered.windows(2).all(|pair| pair[0] == pair[1]),
        "{offered:?}"
    );
}
