//! The monitor of memory, from `/proc/meminfo`.

use super::sample::{MonitorSetup, SampleInterval, Started, create_sampled, file_reader};
use crate::parse::name_values;
use stackline_events::EventLog;
use stackline_events::catalogue::rows::MemoryUse;

/// Starts the monitor.
pub(super) fn start(_: &MonitorSetup<'_>) -> Started {
    create_sampled(file_reader(["/proc/meminfo"], parse)?, record)
}

/// Available, free and dirty memory, bytes.
type MemoryLevels = [Option<u64>; 3];

fn parse([text]: [&str; 1]) -> Option<MemoryLevels> {
    let meminfo = name_values::meminfo(text);
    let memory = ["MemAvailable", "MemFree", "Dirty"].map(|name| meminfo.get(name).copied());
    memory[1].map(|_| memory)
}

fn record(interval: SampleInterval, _: &MemoryLevels, now: &mut MemoryLevels, log: &mut EventLog) {
    let [available, free, dirty] = *now;
    MemoryUse {
        interval_ns: interval.length_ns.into(),
        available_bytes: available.into(),
        free_bytes: free.into(),
        dirty_bytes: dirty.into(),
    }
    .write(log, interval.end_ns);
}

#[cfg(test)]
mod tests {
    use super::super::sample::testing::recorded;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn memory_is_the_present_value() {
        let text = "MemTotal: 100 kB\nMemFree: 40 kB\nMemAvailable: 60 kB\nDirty: 1 kB\n";
        assert_eq!(
            recorded(parse, record, [text], [text]),
            ["MEMORY 1000000000;61440;40960;1024"]
        );
        let old = "MemTotal: 100 kB\nMemFree: 40 kB\n";
        assert_eq!(
            recorded(parse, record, [old], [old]),
            ["MEMORY 1000000000;;40960;"]
        );
        assert!(parse(["nothing of it"]).is_none());
    }

    proptest! {
        #[test]
        fn any_text_is_harmless(text in "(Mem[FA][a-z]{0,10}: {0,3}[0-9]{0,22}( kB)?\n|\\PC{0,20}\n){0,4}") {
            let _ = parse([&text]);
        }
    }
}
