//! The paper's formulas: latency of a loaded server, the rule for a port's buffer, pacing, copies.

use super::printed::{BLOCK, INTERVAL, TABLE_2};
use crate::printed_and_here::{self, PrintedFigure, PrintedValue};
use stackline_report::sheet::{Sheet, SheetCell};

/// Bytes of a TAXI or ATM packet in the paper (section 4.1).
pub(super) const MTU: u32 = 9180;
/// Bytes of buffer that four ports share in the later module (section 4.3.4).
pub(super) const LATER_BUFFER: u64 = 624 * 1024;
/// Bytes of a port's buffer in the earlier one (section 4.3.3).
pub(super) const EARLIER_BUFFER: u64 = 1500;
/// The time to send a block from user space to user space, s (section 4.2.3).
const SENDING: f64 = 0.023;

/// The longest latency, s: a block that misses one list is requested in the next (section 4.2.3).
pub(super) fn longest_latency(interval: f64, sending: f64) -> f64 {
    interval + sending
}

/// The mean latency of a loaded server, in the unit of the arguments.
pub(super) fn mean_latency(shortest: f64, longest: f64) -> f64 {
    f64::midpoint(shortest, longest)
}

/// Bytes that a port needs so that a segment of each stream can be sent again at once (section 4.3.4).
pub(super) fn buffer_needed(streams: u64, segment: u32) -> u64 {
    streams * u64::from(segment)
}

/// The number of streams for which a buffer is enough by [`buffer_needed`].
pub(super) fn streams_served(buffer: u64, segment: u32) -> u64 {
    buffer / u64::from(segment)
}

/// The rate of each sender, Mbit/s of data, if senders share a link equally; cells of 53 bytes carry 48 of data.
pub(super) fn paced(link_mbit_s: f64, senders: u32) -> f64 {
    link_mbit_s / f64::from(senders) * 48.0 / 53.0
}

/// The rate of a server with `copies` copies per block, from its `rate` with `fewer`, if copying takes all of its time.
pub(super) fn with_copies(rate: f64, fewer: f64, copies: f64) -> f64 {
    rate * fewer / copies
}

/// A formula's name, and the printed value beside the computed one.
type Formula = (&'static str, PrintedValue);

fn latencies() -> [Formula; 4] {
    let longest = longest_latency(INTERVAL, SENDING);
    let ms = |printed: PrintedFigure, seconds: f64| PrintedValue::new(printed, seconds * 1e3, 0);
    [
        (
            "longest latency: interval + time to send a block, ms",
            ms(PrintedFigure::Figure(220.0), longest),
        ),
        (
            "shortest latency: 2 + 6 + 23 + 23 ms",
            ms(
                PrintedFigure::Range(50.0, 100.0),
                0.002 + 0.006 + 0.023 + SENDING,
            ),
        ),
        (
            "mean of both, shortest 100 ms",
            ms(PrintedFigure::Figure(160.0), mean_latency(0.1, 0.22)),
        ),
        (
            "mean of both, shortest 54 ms",
            ms(PrintedFigure::Nothing, mean_latency(0.054, longest)),
        ),
    ]
}

fn throughputs() -> [Formula; 6] {
    let needed = buffer_needed(3, MTU) as f64;
    let two_thirds = with_copies(TABLE_2[3].burst_tcp, 2.0, 3.0);
    let single = 100.0 * (with_copies(1.0, 3.0, 2.0) - 1.0);
    let small = streams_served(EARLIER_BUFFER, 256).min(3) as f64;
    [
        (
            "buffer for 3 streams of 9180 bytes, bytes (the port had 1500)",
            PrintedValue::new(PrintedFigure::Nothing, needed, 0),
        ),
        (
            "streams served by 624 KiB",
            PrintedValue::new(69.0, streams_served(LATER_BUFFER, MTU) as f64, 0),
        ),
        (
            "streams served by 1500 bytes, segments of 256",
            PrintedValue::new(3.0, small, 0),
        ),
        (
            "a third of 100 Mbit/s, less cell headers, Mbit/s",
            PrintedValue::new(30.0, paced(100.0, 3), 1),
        ),
        (
            "SS20 with 3 copies (68 Mbit/s with 2), Mbit/s",
            PrintedValue::new(47.0, two_thirds, 1),
        ),
        (
            "gain from 2 copies instead of 3, %",
            PrintedValue::new(25.0, single, 0)
                .because("the formula is a bound, reached only if copies take all of the time"),
        ),
    ]
}

/// The table of all formulas.
pub(super) fn sheet() -> Sheet {
    let mut sheet = printed_and_here::sheet(
        "Formulas",
        "as published, and computed here from the numbers that the paper gives",
        &[("formula", "formula")],
    );
    for (formula, value) in latencies().into_iter().chain(throughputs()) {
        sheet.rows.push(value.row([SheetCell::text(formula)]));
    }
    let kib = f64::from(BLOCK) / 1024.0;
    sheet
        .note(format!(
            "Throughput is {kib:.0} KiB divided by the time between two send timestamps (servers) or between two blocks read (receiver); a burst is five consecutive blocks (section 4.2.2). `stackline blocks replay` and the tables below compute all three this way."
        ))
        .note("The published mean of 160 ms assumes a shortest latency of 100 ms; with 54 ms, the sum of the published components, the mean is lower.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_numbers_come_out_where_they_hold() {
        assert_eq!(streams_served(LATER_BUFFER, MTU), 69);
        assert!((paced(100.0, 3) - 30.19).abs() < 0.01);
        assert!((mean_latency(0.1, longest_latency(0.2, 0.02)) - 0.16).abs() < 1e-9);
        assert!(buffer_needed(3, 512) > EARLIER_BUFFER && buffer_needed(3, 256) < EARLIER_BUFFER);
    }

    #[test]
    fn two_thirds_of_a_burst_is_the_average_of_most_platforms() {
        // Where it is not, disks or the other processor count: DEC's TCP, and SS20 on FDDI.
        let near =
            |burst: f64, average: f64| (with_copies(burst, 2.0, 3.0) / average - 1.0).abs() < 0.15;
        let tcp = TABLE_2
            .iter()
            .filter(|row| near(row.burst_tcp, row.average_tcp))
            .count();
        let udp = TABLE_2
            .iter()
            .filter(|row| {
                row.burst_udp
                    .is_some_and(|burst| near(burst, row.average_udp))
            })
            .count();
        assert_eq!((tcp, udp), (3, 4));
    }
}
