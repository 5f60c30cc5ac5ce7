//! The monitor of throttling: the time for which a CPU quota stopped the control groups above this process.

use super::sample::{MonitorSetup, SampleInterval, Started, create_sampled, growth};
use stackline_events::EventLog;
use stackline_events::catalogue::rows::Throttled;
use stackline_os::cgroup_formats::Throttling;
use stackline_os::own_control_groups::Groups;
use stackline_os::root_directory::Root;

/// Starts the monitor.
pub(super) fn start(_: &MonitorSetup<'_>) -> Started {
    let root = Root::system();
    let groups = Groups::find(&root)?;
    groups.throttling(&root)?;
    create_sampled(move || groups.throttling(&root), record)
}

fn record(interval: SampleInterval, before: &Throttling, now: &mut Throttling, log: &mut EventLog) {
    Throttled {
        interval_ns: interval.length_ns.into(),
        throttled_ns: growth(before.throttled_ns, now.throttled_ns),
        periods: growth(before.throttled, now.throttled),
    }
    .write(log, interval.end_ns);
}

#[cfg(test)]
mod tests {
    use super::super::sample::testing::lines;
    use super::*;

    #[test]
    fn the_growth_of_a_new_group_is_unknown() {
        let throttling = |throttled, throttled_ns| Throttling {
            periods: 9,
            throttled,
            throttled_ns,
        };
        let interval = SampleInterval {
            end_ns: 2,
            length_ns: 1,
        };
        let mut log = EventLog::default();
        record(
            interval,
            &throttling(1, 500),
            &mut throttling(3, 800),
            &mut log,
        );
        record(
            interval,
            &throttling(3, 800),
            &mut throttling(0, 0),
            &mut log,
        );
        assert_eq!(lines(&log), ["THROTTLED 1;300;2", "THROTTLED 1;;"]);
    }
}
