//! Estimates the clocks of a simulated run's hosts from simulated exchanges of timestamps with a coordinator. The true
//! clocks are in the specification; a reader of the run is given only what a coordinator could have measured.

use stackline_core::clock_offset::Offset;
use stackline_core::network::{ClockModel as Truth, Network};
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};
use stackline_core::trace_index::{ClockCorrection, ClockExchange, HostTrace};
use std::collections::BTreeMap;

/// The number of exchanges before a run, and after it.
const AROUND: u64 = 8;
/// The time between two of these exchanges.
const APART: Duration = Duration(1_000_000);
/// The time between two exchanges during a run.
const EVERY: Duration = Duration(1_000_000_000);
/// The most exchanges during a run; a longer run has them further apart.
const MOST: u64 = 64;
/// The delay of one direction of the control channel, ns: at least the first value, plus up to the second.
const CONTROL_DELAY_NS: (u64, u64) = (50_000, 100_000);

/// The measured clock of each host whose clock is not right. Hosts with right clocks are left out.
pub(super) fn faulty_clocks(
    network: &Network,
    zero_ns: u64,
    end: Instant,
    seed: Seed,
) -> BTreeMap<String, HostTrace> {
    let wrong = network
        .hosts
        .iter()
        .filter(|host| host.clock != Truth::default());
    let known = wrong.map(|host| {
        let clock = compared(&host.clock, zero_ns, end, seed.child(&host.name));
        (
            host.name.clone(),
            HostTrace {
                clock,
                ..HostTrace::default()
            },
        )
    });
    known.collect()
}

/// The exchanges with one host before, during and after a run that ends at `end`, and the clock correction from them.
fn compared(truth: &Truth, zero_ns: u64, end: Instant, seed: Seed) -> ClockCorrection {
    let around = |from: Instant| (0..AROUND).map(move |n| from + Duration(n * APART.0));
    let between = (end.0 / EVERY.0 / MOST + 1) * EVERY.0;
    let during = (1..)
        .map(|n| Instant(n * between))
        .take_while(|at| *at < end);
    let mut moments: Vec<Instant> = around(Instant(0))
        .chain(during)
        .chain(around(end))
        .collect();
    moments.sort_unstable();
    moments.dedup_by(|later, earlier| later.since(*earlier) < APART);
    let mut offset = Offset::default();
    let exchanges = (0..)
        .zip(moments)
        .map(|(number, at)| exchange(truth, zero_ns, at, seed.index(number)));
    let exchanges: Vec<ClockExchange> =
        exchanges.filter(|exchange| offset.take(exchange)).collect();
    ClockCorrection {
        exchanges,
        ..offset.clock().unwrap_or_default()
    }
}

/// One exchange that begins at the true moment `sent`; `zero_ns` is what a right clock reads at the beginning.
fn exchange(truth: &Truth, zero_ns: u64, sent: Instant, seed: Seed) -> ClockExchange {
    let delay = |name: &str| Duration(CONTROL_DELAY_NS.0 + seed.child(name).0 % CONTROL_DELAY_NS.1);
    let heard = sent + delay("there");
    let answered = heard + Duration(1_000);
    let returned = answered + delay("back");
    let theirs = |at: Instant| {
        u64::try_from((i128::from(zero_ns) + truth.reading_ns(at)).max(0)).unwrap_or(u64::MAX)
    };
    ClockExchange {
        asked_ns: zero_ns + sent.0,
        heard_ns: theirs(heard),
        answered_ns: theirs(answered),
        returned_ns: zero_ns + returned.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_core::network::NetworkHost;

    /// What is found of one host with that clock in a run of so many seconds.
    fn found(clock: Truth, seconds: u64) -> Option<ClockCorrection> {
        let host = NetworkHost {
            name: "khons".into(),
            clock,
            ..NetworkHost::default()
        };
        let network = Network {
            hosts: vec![host],
            ..Network::default()
        };
        let end = Instant(seconds * 1_000_000_000);
        faulty_clocks(&network, 5_000_000_000, end, Seed::root(1))
            .remove("khons")
            .map(|host| host.clock)
    }

    #[test]
    fn a_wrong_clock_is_found_within_its_stated_error() {
        let truth = Truth {
            offset_ns: -3_000_000,
            drift_ppm: 40.0,
            steps: vec![],
        };
        let clock = found(truth.clone(), 20).unwrap();
        let error = clock.error_ns.unwrap();
        assert!((1..=150_000).contains(&error), "{error} ns");
        for at in [0, 1, 7, 20].map(|s| Instant(s * 1_000_000_000)) {
            let reads = u64::try_from(5_000_000_000 + truth.reading_ns(at)).unwrap();
            let wrong = clock.reference_ns(reads).abs_diff(5_000_000_000 + at.0);
            assert!(wrong <= error, "{wrong} ns off at {at}, {error} ns stated");
        }
        assert!(clock.offset_ns != truth.offset_ns, "nobody gets the truth");
    }

    #[test]
    fn a_clock_that_is_set_has_a_step_and_a_right_one_nothing() {
        let set = Truth {
            steps: vec![(Duration(4_500_000_000), 2_000_000)],
            ..Truth::default()
        };
        let steps = found(set, 20).unwrap().steps;
        assert_eq!(steps.len(), 1, "{steps:?}");
        assert!(steps[0].1.abs_diff(2_000_000) < 300_000, "{steps:?}");
        assert_eq!(found(Truth::default(), 20), None);
    }
}
