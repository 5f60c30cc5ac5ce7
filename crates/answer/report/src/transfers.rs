//! A table of transfers of programs that are not ours. Figures take 80 characters; the line of both ends may be longer.

use crate::grid::{Align, line, widths};
use stackline_analyze::findings::{GoodputInterval, ObservedTransfer};
use stackline_core::units;

/// Most transfers that are listed; the others are only counted.
const LISTED: usize = 10;

/// The table. Each transfer has its sender and receiver, its figures, and its goodput over time as a line of bars. Empty if there are no
/// transfers.
#[must_use]
pub fn transfers(all: &[ObservedTransfer]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let listed = &all[..all.len().min(LISTED)];
    let head = [
        "transfer",
        "bytes",
        "time",
        "goodput",
        "paused",
        "no room",
        "send buffer",
        "again",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(listed.iter().map(figures));
    let align = [
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
    ];
    let widths = widths(&rows);
    let mut text = line(&rows[0], &widths, &align) + "\n";
    for (one, row) in listed.iter().zip(&rows[1..]) {
        let (sender, receiver) = (&one.sender, &one.receiver);
        text += &format!("{sender} > {receiver}\n{}\n", line(row, &widths, &align));
        text += &goodput_bars(&one.goodput_over_time);
    }
    if all.len() > LISTED {
        text += &format!("not shown: {} with less data\n", all.len() - LISTED);
    }
    text
}

/// One bar for each interval; the highest is the largest goodput. Empty if there are no intervals.
fn goodput_bars(intervals: &[GoodputInterval]) -> String {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = intervals
        .iter()
        .fold(0.0_f64, |most, one| most.max(one.bit_s));
    let Some(first) = intervals.first().filter(|_| most > 0.0) else {
        return String::new();
    };
    let bar =
        |one: &GoodputInterval| BARS[(8.0 * one.bit_s / most).ceil().clamp(0.0, 8.0) as usize];
    let bars: String = intervals.iter().map(bar).collect();
    let (length, most) = (units::format_time(first.seconds), units::format_rate(most));
    format!("goodput |{bars}|  {length} per bar, highest {most}\n")
}

fn whole_percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn figures(one: &ObservedTransfer) -> Vec<String> {
    vec![
        String::new(),
        units::format_size(one.bytes),
        units::format_time(one.seconds),
        units::format_rate(one.goodput_bit_s),
        whole_percent(one.paused),
        whole_percent(one.without_room),
        one.send_buffer
            .map_or_else(|| "-".to_owned(), whole_percent),
        one.retransmits.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_a_terminal() {
        let one = ObservedTransfer {
            sender: "rsync (10.0.0.1:45678)".into(),
            receiver: "sshd (10.0.0.2:22)".into(),
            bytes: 12_300_000,
            seconds: 4.0,
            goodput_bit_s: 24.6e6,
            paused: 0.42,
            without_room: 0.0,
            send_buffer: Some(0.07),
            retransmits: 3,
            goodput_over_time: vec![],
        };
        let text = transfers(&vec![one; 12]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..3],
            [
                "transfer    bytes    time      goodput  paused  no room  send buffer  again",
                "rsync (10.0.0.1:45678) > sshd (10.0.0.2:22)",
                "          12.3 MB  4.00 s  24.6 Mbit/s    42 %      0 %          7 %      3",
            ]
        );
        assert_eq!(*lines.last().unwrap(), "not shown: 2 with less data");
        let interval = |bit_s| GoodputInterval {
            at_seconds: 0.0,
            seconds: 1.28,
            bit_s,
        };
        let intervals = [0.0, 0.1, 8e6, 15e6, 16e6].map(interval);
        assert_eq!(
            goodput_bars(&intervals),
            "goodput | ▁▄██|  1.28 s per bar, highest 16.0 Mbit/s\n"
        );
        assert!(goodput_bars(&[0.0, 0.0].map(interval)).is_empty());
        assert!(transfers(&[]).is_empty());
    }
}
