//! The monitor of the soft interrupts that receive packets, by core, of the sampling thread's network namespace, from
//! `/proc/net/softnet_stat`.

use super::sample::{MonitorSetup, SampleInterval, Started, create_sampled, file_reader};
use crate::parse::softnet;
use stackline_events::EventLog;
use stackline_events::catalogue::rows;

/// Starts the monitor.
pub(super) fn start(_: &MonitorSetup<'_>) -> Started {
    let read = file_reader(["/proc/thread-self/net/softnet_stat"], parse)?;
    create_sampled(read, |interval, before, now, log| {
        record(interval, before, now, log)
    })
}

/// A core's number and its counters.
type Core = (u32, softnet::Softnet);

fn parse([text]: [&str; 1]) -> Option<Vec<Core>> {
    Some(softnet::parse_cores(text)).filter(|cores| !cores.is_empty())
}

/// Records the growth of each core's counters; a core that received nothing is left out.
fn record(interval: SampleInterval, before: &[Core], now: &[Core], log: &mut EventLog) {
    for (core, softnet) in now {
        let Some((_, earlier)) = before
            .iter()
            .find(|(other, before)| other == core && before != softnet)
        else {
            continue;
        };
        // The kernel's counters have 32 bits.
        let growth = |before: u64, now: u64| (now as u32).wrapping_sub(before as u32).into();
        rows::Softnet {
            interval_ns: interval.length_ns.into(),
            core: (*core).into(),
            packets: growth(earlier.processed, softnet.processed),
            drops: growth(earlier.dropped, softnet.dropped),
            squeezed: growth(earlier.squeezed, softnet.squeezed),
        }
        .write(log, interval.end_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::testing::recorded;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counters_of_each_core_wrap_at_32_bits() {
        // Linux 6.18 writes the core in the 13th column; before 5.10 there were 11, and the line was the core.
        let new = |packets: &str, core| {
            format!("{packets} 00000000 00000026 0 0 0 0 0 0 0 0 0 {core:08x} 0 0\n")
        };
        let before = new("ffffffff", 0) + &new("00000005", 3);
        let after = new("00000009", 0) + &new("00000005", 3);
        assert_eq!(
            recorded(parse, |i, b, n, t| record(i, b, n, t), [&before], [&after]),
            ["SOFTNET 1000000000;0;10;0;0"]
        );
        let old = ["00000001 0 0 0 0 0 0 0 0 0 0\n00000001 0 0 0 0 0 0 0 0 0 0\n"];
        let later = ["00000001 0 0 0 0 0 0 0 0 0 0\n00000003 1 2 0 0 0 0 0 0 0 0\n"];
        assert_eq!(
            recorded(parse, |i, b, n, t| record(i, b, n, t), old, later),
            ["SOFTNET 1000000000;1;2;1;2"]
        );
    }

    proptest! {
        #[test]
        fn any_text_is_harmless(before in "([0-9a-f ]{0,60}\n){0,6}", now in "([0-9a-f ]{0,60}\n|\\PC{0,20}\n){0,6}") {
            if let (Some(before), Some(now)) = (parse([&before]), parse([&now])) {
                record(SampleInterval { end_ns: 2, length_ns: 1 }, &before, &now, &mut EventLog::default());
            }
        }
    }
}
