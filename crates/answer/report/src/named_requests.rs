//! A table of requests by name, 80 characters wide.

use crate::grid::{Align, line, total, widths, wrap};
use stackline_analyze::findings::NamedRequests;
use stackline_core::units::format_time;
use std::collections::{BTreeMap, BTreeSet};

/// Most names that are shown.
const MOST: usize = 10;
/// Most processes of a server that are listed.
const MOST_PIDS: usize = 4;
/// Width of the table, characters.
const COLUMNS: usize = 80;
/// Least width of a request's name, characters.
const SHORTEST_NAME: usize = 10;
/// Most characters of the cause that takes most time.
const LONGEST_TAKER: usize = 20;
/// With fewer requests, the 99th percentile is the longest time and is called `max`.
const PERCENTILE_OF: u64 = 100;

/// The table; empty without requests.
#[must_use]
pub fn named_requests(all: &[NamedRequests]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let shown = &all[..all.len().min(MOST)];
    let slowest = if shown.iter().any(has_percentile) {
        "p99"
    } else {
        "max"
    };
    let header = ["request", "count", "failed", "p50", slowest, "main part"].map(str::to_owned);
    let mut rows = vec![header.to_vec()];
    rows.extend(shown.iter().map(|named| row(named, all, slowest)));
    // A name gets the width that the figures leave.
    let beside = total(&widths(&rows)[1..]) + 2;
    let room = COLUMNS.saturating_sub(beside).max(SHORTEST_NAME);
    for (row, named) in rows[1..].iter_mut().zip(all) {
        row[0] = label(named, all, room);
    }
    let (widths, align) = (
        widths(&rows),
        [
            Align::Left,
            Align::Right,
            Align::Right,
            Align::Right,
            Align::Right,
            Align::Left,
        ],
    );
    let mut lines: Vec<String> = rows.iter().map(|row| line(row, &widths, &align)).collect();
    let more = all.len().saturating_sub(MOST);
    if more > 0 {
        let rest: u64 = all.iter().skip(MOST).map(|named| named.count).sum();
        lines.push(format!(
            "not shown: {rest} of the requests, {more} of the names (--json shows all)"
        ));
    }
    let beside: u64 = all
        .iter()
        .filter(|named| named.is_background)
        .map(|named| named.count)
        .sum();
    if beside > 0 {
        let sentence = format!(
            "requests from programs other than the traced one: {beside}; findings do not cover their time"
        );
        lines.extend(wrap(&sentence, COLUMNS));
    }
    lines.extend(processes(all));
    lines.join("\n") + "\n"
}

/// The processes that answered: `answering processes (pid): nginx on web: 812; python3 on app: 815, 816`.
fn processes(all: &[NamedRequests]) -> Vec<String> {
    let mut by_server: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
    for named in all.iter().filter(|named| !named.server_pids.is_empty()) {
        let known = by_server.entry(&named.server).or_default();
        known.extend(&named.server_pids);
    }
    let servers: Vec<String> = by_server
        .into_iter()
        .map(|(server, pids)| {
            let more = pids.len().saturating_sub(MOST_PIDS);
            let mut shown: Vec<String> = pids.iter().take(MOST_PIDS).map(i64::to_string).collect();
            shown.extend((more > 0).then(|| format!("{more} more")));
            format!("{server}: {}", shown.join(", "))
        })
        .collect();
    match servers.is_empty() {
        true => Vec::new(),
        false => wrap(
            &format!("answering processes (pid): {}", servers.join("; ")),
            COLUMNS,
        ),
    }
}

/// Whether there are enough requests of a name for a 99th percentile.
fn has_percentile(named: &NamedRequests) -> bool {
    named.count.saturating_sub(named.failed) >= PERCENTILE_OF
}

/// A row of the table; `slowest` is the heading of its column (`p99` or `max`). A longest time under `p99` is marked with `max`.
fn row(named: &NamedRequests, all: &[NamedRequests], slowest: &str) -> Vec<String> {
    let time =
        |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| format_time(ns as f64 / 1e9));
    let taker = match named.most_of_it.as_str() {
        "" => "-".to_owned(),
        who => format!("{} {:.0} %", short_taker(who), 100.0 * named.share),
    };
    vec![
        label(named, all, usize::MAX),
        named.count.to_string(),
        named.failed.to_string(),
        time(named.p50_ns),
        match named.p99_ns {
            Some(_) if slowest != "max" && !has_percentile(named) => {
                format!("max {}", time(named.p99_ns))
            }
            p99 => time(p99),
        },
        taker,
    ]
}

/// A request's name in `room` characters, with the server if requests of this name go to several.
fn label(named: &NamedRequests, all: &[NamedRequests], room: usize) -> String {
    const BRACKETS: usize = " ()".len();
    let server = if named.is_alone_among(all) {
        String::new()
    } else {
        let room = room.saturating_sub(SHORTEST_NAME + BRACKETS);
        let who = short_taker(&named.server);
        format!(" ({})", cut(&who, room.clamp(SHORTEST_NAME, LONGEST_TAKER)))
    };
    let left = room.saturating_sub(server.chars().count());
    cut(&named.label(), left.max(SHORTEST_NAME)) + &server
}

/// The cause that takes most time; a program at a port as `python3:8214`, without its host, as the port identifies it.
fn short_taker(who: &str) -> String {
    let of_port = who
        .split_once(") on ")
        .and_then(|(who, _)| who.split_once(" (port "));
    match of_port {
        Some((program, port)) => {
            let room = LONGEST_TAKER.saturating_sub(port.len() + 1);
            format!("{}:{port}", cut(program, room))
        }
        None => cut(who, LONGEST_TAKER),
    }
}

/// Cuts a text to at most `most` characters.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_at_a_port_is_shown_without_its_host() {
        assert_eq!(short_taker("python (port 8214) on here"), "python:8214");
        assert_eq!(short_taker("python3 on app"), "python3 on app");
        assert_eq!(
            short_taker("python3 on a-host-with-a-name"),
            "python3 on a-host-w…"
        );
    }

    #[test]
    fn servers_of_requests_of_one_name_fit_too() {
        let named = |port: u64| NamedRequests {
            name: "GET /item/:id".to_owned(),
            server: format!("python3 (port {port}) on here"),
            count: 12_000,
            failed: 0,
            p50_ns: Some(20_800_000),
            p99_ns: Some(123_000_000),
            most_of_it: format!("python3 (port {port}) on here"),
            share: 1.0,
            ..NamedRequests::default()
        };
        let text = named_requests(&[named(18_101), named(18_102)]);
        for line in text.lines() {
            assert!(line.chars().count() <= COLUMNS, "{line}");
        }
        assert!(text.contains("(python3:18102)") && text.contains("python3:18101 100 %"));
    }

    #[test]
    fn a_table_fits_eighty_columns_and_counts_what_it_leaves_out() {
        let named = |at: u64| NamedRequests {
            name: format!("GET /a/path/that/is/longer/than/others/{at}"),
            count: 1000 + at,
            failed: at,
            p50_ns: Some(81_200_000),
            p99_ns: (at != 3).then_some(1_250_000_000),
            most_of_it: "python3 on a-host-with-a-name".to_owned(),
            share: 0.955,
            ..NamedRequests::default()
        };
        let text = named_requests(&(0..12).map(named).collect::<Vec<_>>());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 12);
        assert!(
            lines.iter().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        assert!(lines[0].starts_with("request ") && lines[0].ends_with("main part"));
        assert!(lines[4].contains("  -  "), "{}", lines[4]);
        assert!(lines[1].contains("81.2 ms  1.25 s"), "{}", lines[1]);
        let few = || NamedRequests {
            count: 10,
            ..named(1)
        };
        assert!(named_requests(&[few(), named(2)]).contains("81.2 ms  max 1.25 s"));
        let text = named_requests(&[few()]);
        assert!(
            text.contains("     max  main part") && text.contains("81.2 ms  1.25 s"),
            "{text}"
        );
        assert_eq!(
            lines[11],
            "not shown: 2021 of the requests, 2 of the names (--json shows all)"
        );
        assert_eq!(named_requests(&[]), "");
        let answered = |pids: &[i64], is_background| NamedRequests {
            count: 3,
            server: "python3 on app".into(),
            server_pids: pids.iter().copied().collect(),
            is_background,
            ..named(1)
        };
        let text = named_requests(&[answered(&[815, 811], false), answered(&[820], true)]);
        let lines: Vec<&str> = text.lines().skip(3).collect();
        assert_eq!(
            lines,
            [
                "requests from programs other than the traced one: 3; findings do not cover their",
                "time",
                "answering processes (pid): python3 on app: 811, 815, 820"
            ]
        );
    }
}
