//! The notes below a table: drops of a modelled network, losses, limits, default settings, placement, absent figures.
//!
//! A note that holds for all rows is given once; else the numbers of its rows follow it. Each has a weight, by which a table shows
//! the most important ones.

mod connection_counts;
mod network;
mod placement;

use crate::defaults::defaults;
use crate::figure::percent;
use stackline_analyze::generator_lateness::is_late;
use stackline_analyze::{SampleStatistics, SideSummary, Summary};
use stackline_core::run_record::WakeUp;
use stackline_core::units;

/// A window that limits less than this share of the busy time gets no note.
const WORTH_A_LINE: f64 = 0.05;

/// How important a note is for readers, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// What limits the run.
    Finding,
    /// Why a result reflects the machine or the caller instead of the network.
    Doubt,
    /// Losses, and where they happened.
    Loss,
    /// What limited the sending time.
    Limit,
    /// Default settings of the stacks.
    Settings,
    /// Where threads ran.
    Placement,
    /// Everything else.
    Detail,
    /// Always shown: where the run is stored, whether it is complete.
    Always,
}

/// A sentence below a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// How much it matters.
    pub weight: Weight,
    /// The sentence.
    pub text: String,
}

impl Note {
    /// A sentence of some weight.
    #[must_use]
    pub fn new(weight: Weight, text: impl Into<String>) -> Self {
        Self {
            weight,
            text: text.into(),
        }
    }

    /// What waking a thread costs; `None` where that was not measured on the same core.
    #[must_use]
    pub fn of_wake_up(wake_up: WakeUp) -> Option<Self> {
        let same = units::format_time(wake_up.same_core_s?);
        let other = wake_up.other_core_s.map_or_else(
            || "the only one in this machine".into(),
            |s| format!("{} on another core", units::format_time(s)),
        );
        let text = format!("waking a thread costs {same} on the same core, {other}");
        Some(Self::new(Weight::Detail, text))
    }

    pub(crate) fn is_always_shown(&self) -> bool {
        self.weight == Weight::Always
    }
}

/// The lines of the notes of a trace, at most `most` of them, and how many more there are.
#[must_use]
pub fn trace_note_lines(notes: &[String], most: Option<usize>) -> Vec<String> {
    let shown = notes.len().min(most.unwrap_or(usize::MAX));
    let mut lines: Vec<String> = notes[..shown]
        .iter()
        .map(|note| format!("note: {note}"))
        .collect();
    let more = notes.len() - shown;
    lines.extend((more > 0).then(|| format!("note: {more} more with --notes all")));
    lines
}

/// A function that makes the notes of one kind for a summary, perhaps none.
type Say = fn(&Summary) -> Vec<String>;

/// Notes that are made for every row.
const OF_ALL: [(Weight, Say); 8] = [
    (Weight::Loss, lost),
    (Weight::Loss, network::ports),
    (Weight::Loss, retransmitted),
    (Weight::Doubt, network::overload),
    (Weight::Doubt, generator_lateness),
    (Weight::Limit, limits),
    (Weight::Detail, network::emulator),
    (Weight::Detail, lateness),
];

/// Notes that are made for parts only: a row of all parts together does not repeat what cannot be summed.
const OF_PARTS: [(Weight, Say); 5] = [
    (
        Weight::Settings,
        connection_counts::handshakes_and_migrations,
    ),
    (Weight::Doubt, backlog),
    (Weight::Always, placement::pinned_pair),
    (Weight::Placement, placement::cores),
    (Weight::Detail, absent),
];

/// All notes on the summaries, in no particular order.
pub(crate) fn notes(summaries: &[Summary]) -> Vec<Note> {
    let ran: Vec<(usize, &Summary)> = (1..)
        .zip(summaries)
        .filter(|(_, summary)| summary.runs > 0)
        .collect();
    let part = |s: &Summary| {
        s.part_index.is_some() || !ran.iter().any(|(_, o)| !o.background && is_part_of(o, s))
    };
    let parts: Vec<(usize, &Summary)> = ran
        .iter()
        .filter(|(_, summary)| part(summary))
        .copied()
        .collect();
    let all = summaries.len();
    let settings = defaults(&parts)
        .into_iter()
        .map(|(line, rows)| Note::new(Weight::Settings, with_rows(line, &rows, all)));
    let of = |rows: &[(usize, &Summary)], (weight, say): (Weight, Say)| {
        grouped(rows, all, say)
            .into_iter()
            .map(|line| Note::new(weight, line))
            .collect::<Vec<_>>()
    };
    let beside = placement::stacks_beside(summaries)
        .into_iter()
        .map(|line| Note::new(Weight::Always, line));
    let sums = OF_ALL.into_iter().flat_map(|note| of(&ran, note));
    let below = ran
        .iter()
        .filter(|(_, whole)| is_below_the_sum(whole, &ran));
    let below: Vec<usize> = below.map(|(row, _)| *row).collect();
    let wholes = (!below.is_empty()).then(|| {
        let why = "total rate below the sum of the parts' rates, because their periods differ and the total is counted over the longest";
        Note::new(Weight::Doubt, with_rows(why.to_owned(), &below, all))
    });
    settings
        .chain(beside)
        .chain(wholes)
        .chain(sums)
        .chain(OF_PARTS.into_iter().flat_map(|note| of(&parts, note)))
        .collect()
}

fn is_part_of(part: &Summary, whole: &Summary) -> bool {
    part.part_index.is_some() && part.measurement == whole.measurement
}

/// A total rate below this share of the sum of its parts' rates gets a note.
const NEAR_THE_SUM: f64 = 0.9;

/// Whether the rate of all parts together is well below the sum of their rates: each part's rate is over its own period, the total
/// over the longest.
fn is_below_the_sum(whole: &Summary, ran: &[(usize, &Summary)]) -> bool {
    let Some(of_all) = whole.throughput_bit_s else {
        return false;
    };
    let parts = ran.iter().filter(|(_, part)| {
        whole.part_index.is_none() && is_part_of(part, whole) && !part.background
    });
    // Means over different runs are not comparable.
    let rates: Option<Vec<f64>> = parts
        .filter_map(|(_, part)| part.throughput_bit_s)
        .map(|rate| (rate.n == of_all.n).then_some(rate.mean))
        .collect();
    rates.is_some_and(|rates| {
        !rates.is_empty() && of_all.mean < NEAR_THE_SUM * rates.iter().sum::<f64>()
    })
}

/// The notes of one kind for these rows, equal ones grouped; `all` is the number of all rows.
fn grouped(rows: &[(usize, &Summary)], all: usize, say: Say) -> Vec<String> {
    let mut lines: Vec<(String, Vec<usize>)> = Vec::new();
    for (row, text) in rows
        .iter()
        .flat_map(|(row, summary)| say(summary).into_iter().map(move |text| (*row, text)))
    {
        match lines.iter_mut().find(|(line, _)| *line == text) {
            Some((_, rows)) => rows.push(row),
            None => lines.push((text, vec![row])),
        }
    }
    lines
        .into_iter()
        .map(|(line, rows)| with_rows(line, &rows, all))
        .collect()
}

fn with_rows(line: String, rows: &[usize], all: usize) -> String {
    if rows.is_empty() || rows.len() == all {
        return line;
    }
    format!(
        "{line} [row{} {}]",
        if rows.len() == 1 { "" } else { "s" },
        ranges(rows)
    )
}

/// Numbers of rows as ranges: `1, 4-7`.
fn ranges(rows: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for row in rows {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *row => *last = *row,
            _ => ranges.push((*row, *row)),
        }
    }
    let text = |(first, last)| {
        if first == last {
            format!("{first}")
        } else {
            format!("{first}-{last}")
        }
    };
    ranges.into_iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Lines below a row with further results: transactions, transfer time, fairness, response times besides throughput, and marks.
pub(crate) fn results(summary: &Summary) -> Vec<String> {
    let calls = summary
        .response_s
        .filter(|_| summary.throughput_bit_s.is_some());
    let calls = calls.iter().map(|s| times("response times", "call", s));
    transactions(summary)
        .into_iter()
        .chain(transfer(summary))
        .chain(fairness(summary))
        .chain(calls)
        .chain(marks(summary))
        .collect()
}

/// Times at marks. For a mark that is passed repeatedly, the time from the start means little, so it is only in the JSON.
fn marks(summary: &Summary) -> impl Iterator<Item = String> {
    let again = |name: &str| summary.marks.contains_key(&format!("{name} -> {name}"));
    let shown = summary.marks.iter().filter(move |(name, _)| !again(name));
    shown.map(|(name, s)| times(&mark(name), "time", s))
}

/// The time of a whole transfer, if each run is one.
fn transfer(summary: &Summary) -> Option<String> {
    let s = summary
        .elapsed_s
        .filter(|_| summary.is_transfer && summary.throughput_bit_s.is_some())?;
    let spread = if s.n > 1 {
        format!(
            " ({}..{})",
            units::format_time(s.min),
            units::format_time(s.max)
        )
    } else {
        String::new()
    };
    Some(format!(
        "time for the whole transfer: mean {}{spread}",
        units::format_time(s.mean)
    ))
}

/// The fairness of the parts; the row itself has their sum.
fn fairness(summary: &Summary) -> Option<String> {
    let index = summary.fairness?;
    let least = if index.n > 1 {
        format!(" (minimum {:.3})", index.min)
    } else {
        String::new()
    };
    Some(format!(
        "Jain's fairness index of the parts' throughputs: {:.3}{least}",
        index.mean
    ))
}

/// Connections with all calls on them; the row itself counts calls.
fn transactions(summary: &Summary) -> Option<String> {
    let (each, rate) = (summary.transaction_s?, summary.transactions_per_s?);
    let connect = summary.connect_s.map_or_else(String::new, |s| {
        format!(
            ", of which connect and disconnect take {}",
            units::format_time(s.mean)
        )
    });
    let waits = if summary.lateness_s.is_some() {
        " (with pacing waits)"
    } else {
        ""
    };
    let (each, rate) = (units::format_time(each.mean), units::per_second(rate.mean));
    Some(format!(
        "transactions (connect, calls, disconnect): mean {each}{waits}{connect}; {rate}"
    ))
}

/// The name of a time at a mark: from the start to a mark, from mark to mark, or of one pass (from a mark back to it).
fn mark(name: &str) -> String {
    let pair = name.split_once(" -> ");
    pair.map_or_else(
        || format!("from the start to mark {name}"),
        |(from, to)| match from == to {
            true => format!("one pass, from mark {from} back to mark {from}"),
            false => format!("from mark {from} to mark {to}"),
        },
    )
}

fn lateness(summary: &Summary) -> Vec<String> {
    summary
        .lateness_s
        .iter()
        .map(|s| times("lateness of paced operations", "operation", s))
        .collect()
}

/// A note on a generator that was late by itself.
fn generator_lateness(summary: &Summary) -> Vec<String> {
    let late = summary.generator_lateness_s.filter(is_late);
    let Some((late, share)) = late.zip(summary.generator_late_share) else {
        return Vec::new();
    };
    vec![format!(
        "the generator was late: p99 {}, {} % of calls more than 100 us after they could have begun; response times contain that, so it is not the server's",
        units::format_time(late.p99),
        units::three_digits(100.0 * share)
    )]
}

/// A note on callers that fell behind their pace, and how to avoid that.
fn backlog(summary: &Summary) -> Vec<String> {
    let Some((wait, response)) = summary.backlog_s.zip(summary.response_s) else {
        return Vec::new();
    };
    let (call, wait, mean) = (
        units::format_time(response.mean - wait),
        units::format_time(wait),
        units::format_time(response.mean),
    );
    vec![format!(
        "calls were answered more slowly than they were scheduled: of the mean time of {mean}, {wait} is the caller's backlog, not network delay; the call itself took {call}. A longer interval, or the same rate spread over more concurrent pairs, reduces the backlog"
    )]
}

fn times(name: &str, what: &str, s: &SampleStatistics) -> String {
    let several = if s.n == 1 { "" } else { "s" };
    format!(
        "{name}: mean {}, p99 {} ({} {what}{several})",
        units::format_time(s.mean),
        units::format_time(s.p99),
        s.n
    )
}

fn lost(summary: &Summary) -> Vec<String> {
    let Some(lost) = summary.lost else {
        return Vec::new();
    };
    let share = summary
        .lost_share
        .filter(|share| *share > 0.0)
        .map_or_else(String::new, |share| format!(" ({})", percent(share)));
    let more = [
        ("duplicated", summary.duplicated),
        ("reordered", summary.reordered),
    ];
    let more = more
        .iter()
        .filter_map(|(name, n)| n.filter(|n| *n > 0).map(|n| format!(", {name} {n}")));
    vec![format!(
        "data units or calls lost: {lost}{share}{}",
        more.collect::<String>()
    )]
}

fn retransmitted(summary: &Summary) -> Vec<String> {
    let again = [
        ("initiator", summary.initiator.retransmits),
        ("responder", summary.responder.retransmits),
    ];
    let again = again
        .iter()
        .filter_map(|(side, n)| n.filter(|n| *n > 0).map(|n| format!("{n} by the {side}")));
    let again: Vec<String> = again.collect();
    if again.is_empty() {
        again
    } else {
        vec![format!("segments retransmitted: {}", again.join(", "))]
    }
}

fn limits(summary: &Summary) -> Vec<String> {
    let sides = [
        ("initiator", &summary.initiator),
        ("responder", &summary.responder),
    ];
    sides
        .into_iter()
        .filter_map(|(name, side)| limited(name, side))
        .collect()
}

fn limited(name: &str, side: &SideSummary) -> Option<String> {
    let window = side
        .receive_window_limited_share
        .map(|share| ("the peer's receive window", share));
    let buffer = side
        .send_buffer_limited_share
        .map(|share| ("its send buffer", share));
    let worth = [window, buffer]
        .into_iter()
        .flatten()
        .filter(|(_, share)| *share >= WORTH_A_LINE);
    let said: Vec<String> = worth
        .map(|(by, share)| format!("{} by {by}", percent(share)))
        .collect();
    (!said.is_empty()).then(|| {
        format!(
            "share of the {name}'s sending time that was limited: {}",
            said.join(", ")
        )
    })
}

/// Figures that could not be measured, and why; without the CPU time of hosts, which tables do not show.
fn absent(summary: &Summary) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, reason) in summary
        .absent
        .iter()
        .filter(|(name, _)| *name != "host_cpu")
    {
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    reasons
        .into_iter()
        .map(|(reason, names)| format!("not measured: {}: {reason}", names.join(", ")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_shows_three_notes_and_how_many_more_there_are() {
        let notes = |count: usize| (1..=count).map(|n| n.to_string()).collect::<Vec<_>>();
        let three = ["note: 1", "note: 2", "note: 3"];
        assert!(trace_note_lines(&notes(0), Some(3)).is_empty());
        assert_eq!(trace_note_lines(&notes(3), Some(3)), three);
        let of_five = trace_note_lines(&notes(5), Some(3));
        assert_eq!(of_five[..3], three);
        assert_eq!(of_five[3..], ["note: 2 more with --notes all"]);
        assert_eq!(trace_note_lines(&notes(5), None).len(), 5);
    }
}
