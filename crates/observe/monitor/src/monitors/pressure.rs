//! The monitor of pressure: the share of an interval in which tasks waited for a resource, from a file below `/proc/pressure`.

use super::sample::{SampleInterval, Started, create_sampled, file_reader};
use crate::parse::pressure;
use stackline_events::catalogue::rows::PressureStall;
use stackline_events::{EventLog, EventValue};

/// Starts the monitor of one resource.
pub(super) fn start(resource: &'static str, path: &'static str) -> Started {
    create_sampled(
        file_reader([path], parse)?,
        move |interval, before, now, log| record(resource, interval, before, now, log),
    )
}

/// Total time in which some tasks waited, and in which all did, us; older kernels have no time of all tasks for the processor.
type Pressure = (u64, Option<u64>);

fn parse([text]: [&str; 1]) -> Option<Pressure> {
    let total_us = |kind| pressure::parse(text, kind).map(|stall| stall.total_us);
    Some((total_us("some")?, total_us("full")))
}

fn record(
    resource: &str,
    interval: SampleInterval,
    before: &Pressure,
    now: &Pressure,
    log: &mut EventLog,
) {
    let ppm = |before: u64, now: u64| {
        let waited_ns = now.checked_sub(before)?.checked_mul(1_000)?;
        // The kernel may count time of one interval in the next, which would give more than the whole interval.
        let share = u128::from(waited_ns) * 1_000_000 / u128::from(interval.length_ns.max(1));
        Some(u64::try_from(share).unwrap_or(u64::MAX).min(1_000_000))
    };
    let full = before
        .1
        .zip(now.1)
        .and_then(|(before, now)| ppm(before, now));
    PressureStall {
        interval_ns: interval.length_ns.into(),
        resource: EventValue::Text(resource),
        some_ppm: ppm(before.0, now.0).into(),
        full_ppm: full.into(),
    }
    .write(log, interval.end_ns);
}

#[cfg(test)]
mod tests {
    use super::super::sample::testing::recorded;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pressure_is_a_share_of_the_interval() {
        let before = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n";
        let after = "some avg10=9.10 avg60=0.00 avg300=0.00 total=251000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=2000000\n";
        let rows = recorded(
            parse,
            |i, b, n, t| record("io", i, b, n, t),
            [before],
            [after],
        );
        assert_eq!(rows, ["PRESSURE 1000000000;io;250000;1000000"]);
        let only_some = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\n";
        let rows = recorded(
            parse,
            |i, b, n, t| record("cpu", i, b, n, t),
            [only_some],
            [only_some],
        );
        assert_eq!(rows, ["PRESSURE 1000000000;cpu;0;"]);
    }

    proptest! {
        #[test]
        fn any_text_is_harmless(text in "((some|full) avg10=[0-9.]{0,5} total=[0-9]{0,22}\n|\\PC{0,20}\n){0,4}") {
            if let Some(now) = parse([&text]) {
                record("cpu", SampleInterval { end_ns: 2, length_ns: 0 }, &now, &now, &mut EventLog::default());
            }
        }
    }
}
