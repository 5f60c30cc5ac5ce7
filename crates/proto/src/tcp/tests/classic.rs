//! Traces of hosts of 1995: what leaves for what arrives, to the ms.

use super::script::{MS, Script};
use super::traces::{FULL, NONE, at, full};
use crate::tcp::Options;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::time::Duration;

const fn ms(ms: u64) -> Duration {
    Duration(ms * MS)
}

/// 4.3BSD: two ticks at least, six seconds at first.
fn bsd() -> Options {
    Options { least_timeout: ms(1000), first_timeout: ms(6000), timer_tick: ms(500), ..Options::default() }
}

/// When lines of a trace left.
fn times(lines: &[String]) -> Vec<u64> {
    lines.iter().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
}

#[test]
fn a_lost_syn_waits_for_the_first_timeout() {
    let exact = Options { first_timeout: ms(500), ..Options::default() };
    assert_eq!(times(&Script::dials(exact, 1000).until(3600)), [0, 500, 1500, 3500]);
    // The timer ticked 200 ms before, and every 500 ms.
    let ticks = Options { timer_phase: ms(300), ..bsd() };
    assert_eq!(times(&Script::dials(ticks, 1000).until(42_000)), [0, 5800, 17_800, 41_800]);
}

#[test]
fn time_outs_have_a_least_and_end_at_ticks() {
    let after_a_write = |options: Options| {
        let mut script = Script::open(options, 20, 65_535);
        script.end.send(script.now(), 100);
        script.until(20);
        script.ack(40, 101, &[]);
        script.end.send(script.now(), 100);
        // The one in between is a probe of the tail, which 1995 had not.
        times(&script.until(9000))
    };
    let exact = after_a_write(Options { least_timeout: ms(700), ..Options::default() });
    assert_eq!(exact[..1], [40]);
    assert!(exact.contains(&(280 + 720)), "{exact:?}");
    // The script begins with a tick, and after the probe at 280 ms there are ticks at 500 ms, 1 s and so on.
    assert_eq!(after_a_write(bsd()), [40, 280, 1000, 3000, 7000]);
}

#[test]
fn one_segment_leaves_at_first_and_after_a_pause() {
    let options = Options { first_window: 1, send_buffer: Some(1 << 20), ..Options::default() };
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
    let mut script = Script::open(Options { quickack: false, delayed_ack: ms(50), ..Options::default() }, 20, 65_535);
    script.data(40, 1, FULL, 1, NONE);
    script.end.receive(script.now(), u64::MAX);
    assert_eq!(script.until(200), [format!("90 1:1(0) ack {}", at(1))]);
    script.data(201, at(1), FULL, 1, NONE);
    script.data(202, at(2), FULL, 1, NONE);
    script.end.receive(script.now(), u64::MAX);
    assert_eq!(script.until(300), [format!("202 1:1(0) ack {}", at(3))]);
}
