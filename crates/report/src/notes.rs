//! What stands below a table: settings nobody wrote, placement, losses, what a modelled network did, limits, what is absent and why.
//!
//! A line that holds for every row stands once and alone; else the rows it holds for stand behind it.

mod network;

use crate::defaults::defaults;
use crate::figure::percent;
use stackline_analyze::{Placement, SideSummary, Statistics, Summary};
use stackline_core::units;

/// A window that limits less than this of the busy time is not worth a line.
const WORTH_A_LINE: f64 = 0.05;

/// One way to say something about a summary, perhaps nothing.
type Note = fn(&Summary) -> Vec<String>;

/// What is said of every row, in this order.
const OF_ALL: [Note; 5] = [responses, traffic, network::ports, network::emulator, limits];

/// Where the parts have rows of their own, a row of all of them repeats nothing of theirs that cannot be summed.
pub(crate) fn notes(summaries: &[Summary]) -> Vec<String> {
    let ran: Vec<(usize, &Summary)> = (1..).zip(summaries).filter(|(_, summary)| summary.runs > 0).collect();
    let part = |s: &Summary| s.part_index.is_some() || !ran.iter().any(|(_, o)| !o.background && is_part_of(o, s));
    let parts: Vec<(usize, &Summary)> = ran.iter().filter(|(_, summary)| part(summary)).copied().collect();
    let all = summaries.len();
    let settings = defaults(&parts).into_iter().map(|(line, rows)| with_rows(line, &rows, all));
    let sums = OF_ALL.iter().flat_map(|note| grouped(&ran, all, *note));
    settings.chain(grouped(&parts, all, placement)).chain(sums).chain(grouped(&parts, all, absent)).collect()
}

fn is_part_of(part: &Summary, whole: &Summary) -> bool {
    part.part_index.is_some() && part.measurement == whole.measurement
}

/// What one kind of note says of the rows, of `all` there are.
fn grouped(rows: &[(usize, &Summary)], all: usize, note: Note) -> Vec<String> {
    let mut lines: Vec<(String, Vec<usize>)> = Vec::new();
    for (row, text) in rows.iter().flat_map(|(row, summary)| note(summary).into_iter().map(move |text| (*row, text))) {
        match lines.iter_mut().find(|(line, _)| *line == text) {
            Some((_, rows)) => rows.push(row),
            None => lines.push((text, vec![row])),
        }
    }
    lines.into_iter().map(|(line, rows)| with_rows(line, &rows, all)).collect()
}

fn with_rows(line: String, rows: &[usize], all: usize) -> String {
    if rows.is_empty() || rows.len() == all {
        return line;
    }
    format!("{line} [row{} {}]", if rows.len() == 1 { "" } else { "s" }, ranges(rows))
}

/// `1, 4-7`.
fn ranges(rows: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for row in rows {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *row => *last = *row,
            _ => ranges.push((*row, *row)),
        }
    }
    let text = |(first, last)| if first == last { format!("{first}") } else { format!("{first}-{last}") };
    ranges.into_iter().map(text).collect::<Vec<_>>().join(", ")
}

fn placement(summary: &Summary) -> Vec<String> {
    let core = |side: &str, placement: Option<Placement>| {
        let Placement { start, end, pinned } = placement?;
        let moved = if start == end { String::new() } else { format!(" -> {end}") };
        Some(format!("{side} on core {start}{moved} ({})", if pinned { "pinned" } else { "not pinned" }))
    };
    let sides = [core("initiator", summary.initiator.placement), core("responder", summary.responder.placement)];
    let said: Vec<String> = sides.into_iter().flatten().collect();
    if said.is_empty() { said } else { vec![format!("placement, last run: {}", said.join(", "))] }
}

/// Response times where the row is judged by throughput, and lateness.
fn responses(summary: &Summary) -> Vec<String> {
    let time = |name: &str, what: &str, s: &Statistics| {
        let several = if s.n == 1 { "" } else { "s" };
        format!("{name}: mean {}, p99 {} ({} {what}{several})", units::time(s.mean), units::time(s.p99), s.n)
    };
    let calls = summary.response_s.filter(|_| summary.throughput_bit_s.is_some());
    let mut out: Vec<String> = calls.iter().map(|s| time("response times", "call", s)).collect();
    out.extend(summary.lateness_s.iter().map(|s| time("paced operations began late by", "operation", s)));
    out.extend(summary.marks.iter().map(|(name, s)| time(&format!("mark {name}"), "time", s)));
    out
}

fn traffic(summary: &Summary) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(lost) = summary.lost {
        let share = summary
            .lost_share
            .filter(|share| *share > 0.0)
            .map_or_else(String::new, |share| format!(" ({})", percent(share)));
        let more = [("duplicated", summary.duplicated), ("reordered", summary.reordered)];
        let more = more.iter().filter_map(|(name, n)| n.filter(|n| *n > 0).map(|n| format!(", {name} {n}")));
        out.push(format!("data units or calls lost: {lost}{share}{}", more.collect::<String>()));
    }
    let again = [("initiator", summary.initiator.retransmits), ("responder", summary.responder.retransmits)];
    let again = again.iter().filter_map(|(side, n)| n.filter(|n| *n > 0).map(|n| format!("{n} by the {side}")));
    let again: Vec<String> = again.collect();
    if !again.is_empty() {
        out.push(format!("segments retransmitted: {}", again.join(", ")));
    }
    out
}

fn limits(summary: &Summary) -> Vec<String> {
    let sides = [("initiator", &summary.initiator), ("responder", &summary.responder)];
    sides.into_iter().filter_map(|(name, side)| limited(name, side)).collect()
}

fn limited(name: &str, side: &SideSummary) -> Option<String> {
    let window = side.receive_window_limited_share.map(|share| ("the peer's receive window", share));
    let buffer = side.send_buffer_limited_share.map(|share| ("its send buffer", share));
    let worth = [window, buffer].into_iter().flatten().filter(|(_, share)| *share >= WORTH_A_LINE);
    let said: Vec<String> = worth.map(|(by, share)| format!("{} by {by}", percent(share))).collect();
    (!said.is_empty()).then(|| format!("the {name}'s sending time was limited {}", said.join(", ")))
}

/// Without what a table does not show anyhow: the CPU time of hosts is in the JSON.
fn absent(summary: &Summary) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, reason) in summary.absent.iter().filter(|(name, _)| *name != "host_cpu") {
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    reasons.into_iter().map(|(reason, names)| format!("not measured: {}: {reason}", names.join(", "))).collect()
}
