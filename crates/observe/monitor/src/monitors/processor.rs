//! The monitor of cores, interrupts, context switches, forks and paging, from `/proc/stat` and `/proc/vmstat`.

use super::sample::{MonitorSetup, SampleInterval, Started, create_sampled, file_reader, growths};
use crate::parse::{name_values, stat};
use stackline_events::catalogue::rows::{CpuUse, Vmstat};
use stackline_events::{EventLog, EventValue};

/// If a core has fewer ticks (10 ms each) than this in an interval, its shares would be too coarse: the time is added to the next
/// interval.
const FEWEST_TICKS: u64 = 5;

/// Starts the monitor.
pub(super) fn start(_: &MonitorSetup<'_>) -> Started {
    create_sampled(file_reader(["/proc/stat", "/proc/vmstat"], parse)?, record)
}

/// Counters since boot.
struct ProcessorCounters {
    /// The CPU times of each core, ticks.
    cores: Vec<(u32, stat::CpuTimes)>,
    /// How long before this sample the ticks were read, ns.
    cores_age_ns: u64,
    /// Interrupts, context switches, forks, page faults, major faults, pages read and written, pages swapped in and out.
    counts: [Option<u64>; 9],
}

fn parse([stat, vmstat]: [&str; 2]) -> Option<ProcessorCounters> {
    let stat = stat::parse(stat);
    let vmstat = name_values::counters(vmstat);
    let count = |name: &str| vmstat.get(name).copied();
    // The kernel counts what is read and written in KiB; the event has pages.
    let pages = |name: &str| count(name).map(|kib| kib / 4);
    let counts = [
        stat.interrupts,
        stat.context_switches,
        stat.forks,
        count("pgfault"),
        count("pgmajfault"),
        pages("pgpgin"),
        pages("pgpgout"),
        count("pswpin"),
        count("pswpout"),
    ];
    (!stat.each.is_empty()).then_some(ProcessorCounters {
        cores: stat.each,
        cores_age_ns: 0,
        counts,
    })
}

fn record(
    interval: SampleInterval,
    before: &ProcessorCounters,
    now: &mut ProcessorCounters,
    log: &mut EventLog,
) {
    let [
        interrupts,
        switches,
        forks,
        faults,
        major_faults,
        pages_in,
        pages_out,
        swapped_in,
        swapped_out,
    ] = growths(&before.counts, &now.counts);
    Vmstat {
        interval_ns: interval.length_ns.into(),
        interrupts,
        switches,
        forks,
        faults,
        major_faults,
        pages_in,
        pages_out,
        swapped_in,
        swapped_out,
    }
    .write(log, interval.end_ns);

    let length_ns = before.cores_age_ns + interval.length_ns;
    let ticks =
        |counters: &ProcessorCounters| counters.cores.first().map_or(0, |(_, times)| times.total());
    if ticks(now).saturating_sub(ticks(before)) < FEWEST_TICKS {
        now.cores.clone_from(&before.cores);
        now.cores_age_ns = length_ns;
        return;
    }
    let interval = SampleInterval {
        length_ns,
        ..interval
    };
    for (core, times) in &now.cores {
        if let Some((_, earlier)) = before.cores.iter().find(|(other, _)| other == core) {
            record_core(interval, *core, earlier, times, log);
        }
    }
}

fn record_core(
    interval: SampleInterval,
    core: u32,
    before: &stat::CpuTimes,
    now: &stat::CpuTimes,
    log: &mut EventLog,
) {
    // Some of the kernel's counts go back by one tick now and then; these count as unchanged.
    let grown: [u64; stat::KINDS.len()] =
        std::array::from_fn(|at| now.ticks[at].saturating_sub(before.ticks[at]));
    let total = grown.iter().sum::<u64>().max(1);
    let ppm = |ticks: u64| EventValue::from(ticks.saturating_mul(1_000_000) / total);
    let [user, nice, system, idle, iowait, irq, softirq, steal] = grown;
    CpuUse {
        interval_ns: interval.length_ns.into(),
        core: core.into(),
        user_ppm: ppm(user + nice),
        system_ppm: ppm(system),
        softirq_ppm: ppm(softirq),
        irq_ppm: ppm(irq),
        steal_ppm: ppm(steal),
        idle_ppm: ppm(idle),
        iowait_ppm: ppm(iowait),
    }
    .write(log, interval.end_ns);
}

#[cfg(test)]
mod tests {
    use super::super::sample::testing::recorded;
    use super::*;
    use proptest::prelude::*;

    const STAT: &str = "cpu  30 0 20 100 0 0 0 0 0 0\ncpu0 10 5 10 50 0 0 0 0 0 0\ncpu1 20 0 10 50 0 0 0 0 0 0\n\
        intr 1000 5 0\nctxt 77\nprocesses 3\n";
    const LATER: &str = "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 30 10 20 95 5 3 6 11 0 0\ncpu1 20 0 10 150 0 0 0 0 0 0\n\
        intr 1500 5 0\nctxt 177\nprocesses 3\n";

    #[test]
    fn shares_are_of_the_time_that_passed() {
        let rows = recorded(
            parse,
            record,
            [STAT, "pgfault 5\npgpgin 8\n"],
            [LATER, "pgfault 9\npgpgin 16\n"],
        );
        assert_eq!(
            rows,
            [
                "VMSTAT 1000000000;500;100;0;4;;2;;;",
                "CPU_USE 1000000000;0;238095;95238;57142;28571;104761;428571;47619",
                "CPU_USE 1000000000;1;0;0;0;0;0;1000000;0",
            ]
        );
    }

    #[test]
    fn a_few_ticks_are_added_to_the_next_interval() {
        let short = LATER.replace("cpu0 30 10 20 95 5 3 6 11", "cpu0 10 5 10 53 0 0 0 0");
        let (before, mut now) = (parse([STAT, ""]).unwrap(), parse([&short, ""]).unwrap());
        let mut log = EventLog::default();
        record(
            SampleInterval {
                end_ns: 9,
                length_ns: 30,
            },
            &before,
            &mut now,
            &mut log,
        );
        assert_eq!(log.records().count(), 1, "VMSTAT alone");
        let mut later = parse([LATER, ""]).unwrap();
        let mut log = EventLog::default();
        record(
            SampleInterval {
                end_ns: 19,
                length_ns: 10,
            },
            &now,
            &mut later,
            &mut log,
        );
        let cores: Vec<_> = log
            .records()
            .filter(|record| record.keyword == "CPU_USE")
            .collect();
        assert_eq!(
            cores[0].values[0],
            EventValue::Number(40),
            "both intervals together"
        );
        assert_eq!(cores[0].values[2], EventValue::Number(238_095));
    }

    proptest! {
        #[test]
        fn any_text_is_harmless(before in "(cpu[0-9]? [0-9 ]{0,40}\n|\\PC{0,20}\n){0,6}", now in "(cpu[0-9]? [0-9 ]{0,40}\n){0,6}") {
            if let (Some(before), Some(mut now)) = (parse([&before, &before]), parse([&now, &now])) {
                record(SampleInterval { end_ns: 2, length_ns: 1 }, &before, &mut now, &mut EventLog::default());
            }
        }
    }
}
