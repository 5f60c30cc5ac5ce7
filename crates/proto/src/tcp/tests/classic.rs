//! Traces of hosts of 1995: what leaves for what arrives, to the ms.

use super::script::{MS, Script};
use crate::tcp::Options;
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
