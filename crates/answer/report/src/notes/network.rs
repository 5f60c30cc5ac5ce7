//! Notes on what a modelled network dropped, marked and duplicated, and on how punctual an emulated one was.

use stackline_analyze::{EmulationSummary, PortSummary, Summary};
use stackline_core::units;
use std::cmp::Reverse;

/// Most ports of one row that have a note of their own.
const MOST_PORTS: usize = 5;

/// A note for each port that dropped, marked or duplicated packets, most drops first.
pub(super) fn ports(summary: &Summary) -> Vec<String> {
    let all = summary.network.iter().flat_map(|network| &network.ports);
    let notable: Vec<&PortSummary> = all.filter(|port| port.is_notable()).collect();
    let mut lines: Vec<String> = notable
        .iter()
        .take(MOST_PORTS)
        .map(|port| line(port, summary.runs))
        .collect();
    let more = notable.len().saturating_sub(MOST_PORTS);
    if more > 0 {
        let several = if more == 1 { "" } else { "s" };
        lines.push(format!(
            "and {more} more port{several} that dropped, marked or duplicated packets"
        ));
    }
    lines
}

/// The note of a port: `dropped at edge>udjat: 12 of 3000 packets (queue full), 40 marked`.
fn line(port: &PortSummary, runs: u32) -> String {
    let happened = [
        ("dropped", port.dropped),
        ("marked", port.marked),
        ("duplicated", port.duplicated),
    ];
    let mut happened = happened.into_iter().filter(|(_, n)| *n > 0);
    let (what, n) = happened.next().unwrap_or(("dropped", 0));
    let reasons = if port.dropped > 0 {
        reasons(port)
    } else {
        String::new()
    };
    let others: String = happened.map(|(what, n)| format!(", {n} {what}")).collect();
    let few = if port.runs < runs {
        format!(", in {} of {runs} runs", port.runs)
    } else {
        String::new()
    };
    format!(
        "{what} at {}: {}{reasons}{others}{few}",
        port.name,
        share(port, n)
    )
}

/// How many of how many packets or cells; if the counts have different units, both separately.
fn share(port: &PortSummary, n: u64) -> String {
    let unit = |cells: bool| if cells { "cell" } else { "packet" };
    if port.dropped > 0 && port.cells != port.cells_dropped {
        return format!(
            "{}, with {} forwarded",
            units::counted(n, unit(port.cells_dropped)),
            units::counted(port.packets, unit(port.cells))
        );
    }
    format!("{n} of {}", units::counted(port.offered, unit(port.cells)))
}

/// The reasons of drops: ` (queue full)`, or with numbers if there are several, the most frequent first.
fn reasons(port: &PortSummary) -> String {
    let mut reasons: Vec<(&String, u64)> = port
        .drops
        .iter()
        .map(|(reason, n)| (reason, *n))
        .filter(|r| r.1 > 0)
        .collect();
    reasons.sort_by_key(|(_, n)| Reverse(*n));
    let texts: Vec<String> = match &reasons[..] {
        [(reason, _)] => vec![(*reason).clone()],
        several => several
            .iter()
            .map(|(reason, n)| format!("{n} {reason}"))
            .collect(),
    };
    format!(" ({})", texts.join("; "))
}

/// How late frames left the emulator, and how many it lost.
pub(super) fn emulator(summary: &Summary) -> Vec<String> {
    emulation(summary).map(kept).into_iter().collect()
}

/// Why the emulator was overloaded, so that the result reflects the machine.
pub(super) fn overload(summary: &Summary) -> Vec<String> {
    let Some(emulation) = emulation(summary) else {
        return Vec::new();
    };
    let (n, runs) = (emulation.overloaded, summary.runs);
    let example = if n > 1 { ", for example" } else { "" };
    let runs = units::counted(u64::from(runs), "run");
    emulation
        .overload
        .iter()
        .map(|why| format!("emulator overloaded in {n} of {runs}{example}: {why}"))
        .collect()
}

fn emulation(summary: &Summary) -> Option<&EmulationSummary> {
    summary.network.as_ref()?.emulation.as_ref()
}

fn kept(emulation: &EmulationSummary) -> String {
    let late = emulation
        .lateness_p50_s
        .zip(emulation.lateness_p99_s)
        .zip(emulation.lateness_max_s);
    let late = late.map_or_else(
        || "no frames forwarded".to_owned(),
        |((p50, p99), max)| {
            let [p50, p99, max] = [p50, p99, max].map(units::format_time);
            format!("departures late by {p50} (median), {p99} (p99), {max} (max)")
        },
    );
    let lost = match emulation.lost {
        0 => String::new(),
        1 => "; 1 frame lost".to_owned(),
        n => format!("; {n} frames lost"),
    };
    let trip = emulation.round_trip_s.map_or_else(String::new, |s| {
        format!("; its own round trip {}", units::format_time(s))
    });
    format!("emulator: {late}{lost}{trip}")
}
