//! The TCP connections of packet captures as a table: ends, duration, round trip, bytes, retransmissions, full windows, quiet times.

use crate::grid::{Align, line, widths};
use serde_json::{Value, json as object};
use stackline_analyze::captured_connections::CapturedConnection;
use stackline_core::units;

/// Most connections that are listed; the others are only counted.
const LISTED: usize = 20;

/// The table. `all` begins with the connections with most data.
#[must_use]
pub fn connections(all: &[CapturedConnection]) -> String {
    let heads = [
        "connection",
        "round trip",
        "acks",
        "bytes sent",
        "back",
        "again",
        "no window",
        "longest quiet",
    ];
    let head: Vec<String> = heads.map(str::to_owned).to_vec();
    let listed = &all[..all.len().min(LISTED)];
    let mut rows = vec![head];
    rows.extend(listed.iter().map(figures));
    let widths = widths(&rows);
    let align = [
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Left,
    ];
    let mut text = line(&rows[0], &widths, &align) + "\n";
    for (one, row) in listed.iter().zip(&rows[1..]) {
        text += &format!(
            "{} > {} ({})\n{}\n",
            one.initiator,
            one.responder,
            one.end,
            line(row, &widths, &align)
        );
    }
    if all.len() > LISTED {
        text += &format!("and {} more with less data\n", all.len() - LISTED);
    }
    text
}

fn figures(one: &CapturedConnection) -> Vec<String> {
    let time = |ns: u64| units::format_time(ns as f64 / 1e9);
    let known = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), time);
    let some = |ns: u64| if ns == 0 { "-".to_owned() } else { time(ns) };
    let acks = one.ack_ns.iter().flatten().max().copied();
    let again = one.again.iter().sum::<u64>();
    let quiet = match &one.quiet_until[..] {
        "" => "-".to_owned(),
        who => format!("{}, {who}", time(one.quiet_ns)),
    };
    vec![
        format!("  {}", time(one.duration_ns)),
        known(one.handshake_ns),
        known(acks),
        units::format_size(one.bytes[0]),
        units::format_size(one.bytes[1]),
        again.to_string(),
        some(one.window_full_ns),
        quiet,
    ]
}

/// All connections as JSON (docs/JSON.md).
#[must_use]
pub fn connections_json(all: &[CapturedConnection]) -> Value {
    object!(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_a_terminal_and_says_who_was_waited_for() {
        let one = CapturedConnection {
            initiator: "10.0.0.1:45678".into(),
            responder: "10.0.0.2:80".into(),
            duration_ns: 1_200_000_000,
            handshake_ns: Some(20_000_000),
            ack_ns: [Some(20_100_000), None],
            bytes: [1_234_567, 500],
            again: [3, 1],
            window_full_ns: 800_000_000,
            quiet_ns: 220_000_000,
            quiet_until: "responder".into(),
            end: "closed".into(),
            ..CapturedConnection::default()
        };
        let text = connections(&vec![one; 22]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "connection  round trip     acks  bytes sent   back  again  no window  longest quiet"
        );
        assert_eq!(lines[1], "10.0.0.1:45678 > 10.0.0.2:80 (closed)");
        assert_eq!(
            lines[2],
            "  1.20 s       20.0 ms  20.1 ms     1.23 MB  500 B      4     800 ms  220 ms, responder"
        );
        assert_eq!(
            (lines.len(), *lines.last().unwrap()),
            (42, "and 2 more with less data")
        );
    }
}
