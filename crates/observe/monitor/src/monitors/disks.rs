//! The monitor of disks and their partitions: what they completed and how long they were busy, from `/proc/diskstats`.

use super::sample::{MonitorSetup, SampleInterval, Started, create_sampled, file_reader, growth};
use stackline_events::catalogue::rows::DiskUse;
use stackline_events::{EventLog, EventValue};

/// The size of a sector in these counters, bytes, whatever the disk's own sectors are.
const SECTOR: u64 = 512;
const NS_IN_MS: u64 = 1_000_000;

/// Starts the monitor.
pub(super) fn start(_: &MonitorSetup<'_>) -> Started {
    let read = file_reader(["/proc/diskstats"], parse)?;
    create_sampled(read, |interval, before, now, log| {
        record(interval, before, now, log)
    })
}

/// One line of `/proc/diskstats`.
#[derive(Debug, PartialEq)]
struct DiskCounters {
    device: String,
    /// Reads and bytes read, writes and bytes written.
    counters: [u64; 4],
    /// Time with requests in flight, in ms. The kernel counts it in 32 bits.
    busy_ms: u32,
}

/// Parses the file. Malformed lines are skipped: a machine without disks has none at all.
fn parse([text]: [&str; 1]) -> Option<Vec<DiskCounters>> {
    Some(text.lines().filter_map(disk).collect())
}

fn disk(line: &str) -> Option<DiskCounters> {
    let mut columns = line.split_ascii_whitespace().skip(2);
    let device = columns.next()?.to_owned();
    let mut next = |skip| columns.nth(skip)?.parse::<u64>().ok();
    let (reads, sectors_read) = (next(0)?, next(1)?);
    let (writes, sectors_written) = (next(1)?, next(1)?);
    let counters = [
        reads,
        sectors_read.wrapping_mul(SECTOR),
        writes,
        sectors_written.wrapping_mul(SECTOR),
    ];
    Some(DiskCounters {
        device,
        counters,
        busy_ms: next(2)? as u32,
    })
}

/// Records the growth of each disk's counters; a disk that did nothing is left out.
fn record(
    interval: SampleInterval,
    before: &[DiskCounters],
    now: &[DiskCounters],
    log: &mut EventLog,
) {
    for disk in now {
        let Some(earlier) = before
            .iter()
            .find(|other| other.device == disk.device && *other != disk)
        else {
            continue;
        };
        let grown = |at: usize| growth(earlier.counters[at], disk.counters[at]);
        DiskUse {
            interval_ns: interval.length_ns.into(),
            device: EventValue::Text(&disk.device),
            reads: grown(0),
            read_bytes: grown(1),
            writes: grown(2),
            written_bytes: grown(3),
            busy_ns: (u64::from(disk.busy_ms.wrapping_sub(earlier.busy_ms)) * NS_IN_MS).into(),
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
    fn a_disk_has_the_growth_of_its_counters() {
        // Linux 6.18 has 17 counters; 4.17 and before had 11.
        let before = " 254 0 vda 10 1 80 9 20 2 160 9 0 4294967295 9 0 0 0 0 0 0\n 7 0 loop0 1 0 8 0 0 0 0 0 0 1 1\n";
        let after = " 254 0 vda 13 1 96 9 21 2 168 9 1 4 9 0 0 0 0 0 0\n 7 0 loop0 1 0 8 0 0 0 0 0 0 1 1\n 7 1 new 1 0 8 0 0 0 0 0 0 1 1\n";
        assert_eq!(
            recorded(parse, |i, b, n, t| record(i, b, n, t), [before], [after]),
            ["DISK 1000000000;vda;3;8192;1;4096;5000000"]
        );
    }

    proptest! {
        #[test]
        fn any_text_is_harmless(before in "( 8 0 sd[ab]( [0-9]{1,20}){0,12}\n){0,6}", now in "( 8 0 sd[ab]( [0-9]{1,20}){0,12}\n|\\PC{0,20}\n){0,6}") {
            if let (Some(before), Some(now)) = (parse([&before]), parse([&now])) {
                record(SampleInterval { end_ns: 2, length_ns: 1 }, &before, &now, &mut EventLog::default());
            }
        }
    }
}
