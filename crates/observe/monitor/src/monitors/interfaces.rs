//! The monitor of network interfaces: traffic, drops and errors, from `/proc/net/dev` of the sampling thread's network namespace.

use super::sample::{MonitorSetup, SampleInterval, Started, create_sampled, file_reader, growth};
use crate::kernel_file::SampledFile;
use crate::parse::interfaces::{InterfaceTraffic, parse};
use stackline_events::catalogue::rows::InterfaceUse;
use stackline_events::{EventLog, EventValue};

const PATH: &str = "/proc/thread-self/net/dev";

/// Starts the monitor of the configured interfaces, or of all.
pub(super) fn start(setup: &MonitorSetup<'_>) -> Started {
    let names = setup.config.interfaces.clone();
    let present = parse(SampledFile::open(PATH)?.text()?);
    if let Some(missing) = names
        .iter()
        .find(|name| present.iter().all(|present| present.name != **name))
    {
        return Err(format!("unknown interface {missing}"));
    }
    let chosen = move |[text]: [&str; 1]| {
        let mut traffic = parse(text);
        traffic.retain(|interface| names.is_empty() || names.contains(&interface.name));
        Some(traffic)
    };
    create_sampled(
        file_reader([PATH], chosen)?,
        |interval, before, now, log| record(interval, before, now, log),
    )
}

fn record(
    interval: SampleInterval,
    before: &[InterfaceTraffic],
    now: &[InterfaceTraffic],
    log: &mut EventLog,
) {
    for interface in now {
        let Some(earlier) = before.iter().find(|other| other.name == interface.name) else {
            continue;
        };
        let grown = |column: usize| growth(earlier.counters[column], interface.counters[column]);
        // The file has errors before drops.
        InterfaceUse {
            interval_ns: interval.length_ns.into(),
            interface: EventValue::Text(&interface.name),
            received_bytes: grown(0),
            received_packets: grown(1),
            received_errors: grown(2),
            received_drops: grown(3),
            sent_bytes: grown(4),
            sent_packets: grown(5),
            sent_errors: grown(6),
            sent_drops: grown(7),
        }
        .write(log, interval.end_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::testing::lines;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_interface_has_the_growth_of_its_counters() {
        let before = "Inter-|   Receive\n lo: 10 1 0 0 0 0 0 0 10 1 0 0 0 0 0 0\nveth:7: 5 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n";
        let after = "Inter-|   Receive\n lo: 40 3 7 8 0 0 0 0 50 4 5 6 0 0 0 0\nnew: 5 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n";
        let mut log = EventLog::default();
        record(
            SampleInterval {
                end_ns: 2,
                length_ns: 1,
            },
            &parse(before),
            &parse(after),
            &mut log,
        );
        assert_eq!(lines(&log), ["NETIF 1;lo;30;2;8;7;40;3;6;5"]);
    }

    proptest! {
        #[test]
        fn any_text_is_harmless(before in "(lo: ?[0-9A-Za-z -]{0,40}\n|[0-9a-f ]{0,60}\n){0,6}", now in "\\PC{0,80}") {
            let interval = SampleInterval { end_ns: 2, length_ns: 1 };
            record(interval, &parse(&before), &parse(&now), &mut EventLog::default());
        }
    }
}
