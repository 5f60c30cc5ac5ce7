//! Lifelines (the events of each data unit) as text and JSON: where the time went, outcomes, throughput, the slowest units.

mod gnuplot;
mod json;
mod single_lifeline;
#[cfg(test)]
mod tests;

pub use gnuplot::{SCRIPT, lifelines_gnuplot};
pub use json::lifelines_json;

use crate::figure::{ABSENT, percent};
use crate::grid::{Align, line, widths, wrap};
use crate::table::WIDTH;
use stackline_analyze::findings::AccountedTimes;
use stackline_analyze::lifeline_percentiles::TimeSpread;
use stackline_analyze::lifeline_statistics::{LifelineOutcomeCount, LifelineStatistics};
use stackline_analyze::lifelines::{LifelineOutcome, LifelinePoint, Lifelines};
use stackline_analyze::names::{SENDS_AGAIN, point_name, segment_label};
use stackline_analyze::rates::{Rates, TransferSide};
use stackline_analyze::segments::LifelineSegment;
use stackline_core::units;
use stackline_core::units::counted;
use std::collections::HashMap;

/// Lifelines with their statistics, and what else is shown.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'l> {
    /// The lines.
    pub lifelines: &'l Lifelines,
    /// The statistics of these lines.
    pub statistics: &'l LifelineStatistics,
    /// The causes of the time of requests, if requests of other programs were traced.
    pub requests: Option<&'l AccountedTimes>,
    /// What units that are requests are called, by unit (see [`crate::request_names`]).
    pub names: &'l HashMap<i64, String>,
    /// What groups are, such as "server".
    pub by: &'l str,
    /// Notes that are added at the end.
    pub notes: &'l [String],
}

/// The whole report as text.
#[must_use]
pub fn lifelines(shown: &Shown<'_>) -> String {
    if shown.lifelines.lines.is_empty() {
        return "no event refers to a data unit\n".to_owned();
    }
    let mut paragraphs = vec![outcomes(shown)];
    paragraphs.extend(shown.requests.map(requests));
    paragraphs.extend(times(shown, None));
    let grouped = shown
        .statistics
        .whole
        .iter()
        .filter_map(|whole| whole.group);
    paragraphs.extend(grouped.filter_map(|group| times(shown, Some(group))));
    paragraphs.extend(
        [
            connections(shown),
            rates(shown),
            blocked(shown),
            operation(shown),
        ]
        .into_iter()
        .flatten(),
    );
    paragraphs.extend(
        shown
            .statistics
            .slowest
            .iter()
            .map(|line| single_lifeline::line_of(shown, *line)),
    );
    let notes: Vec<String> = notes(shown)
        .iter()
        .flat_map(|note| wrap(note, WIDTH))
        .collect();
    if !notes.is_empty() {
        paragraphs.push(notes);
    }
    let texts: Vec<String> = paragraphs
        .into_iter()
        .map(|lines| lines.join("\n") + "\n")
        .collect();
    texts.join("\n")
}

/// A point as text: keyword, host, port or direction, and service if it has one.
pub(crate) fn label(point: &LifelinePoint) -> String {
    let mut label = point.keyword.clone();
    // The name of a port contains its host.
    if !point.place.contains('>') {
        label = format!("{label} {}", point.host);
    }
    if !point.place.is_empty() && point.place != point.host {
        label = format!("{label} {}", point.place);
    }
    if !point.service.is_empty() {
        label = format!("{label} for {}", point.service);
    }
    label
}

fn time(ns: f64) -> String {
    units::format_time(ns * 1e-9)
}

fn outcome(lifelines: &Lifelines, outcome: LifelineOutcome) -> String {
    let at = |point: u32| label(&lifelines.points[point as usize]);
    match outcome {
        LifelineOutcome::Complete => "complete".into(),
        LifelineOutcome::CacheHit => "cache hit".into(),
        LifelineOutcome::Retried { .. } => "retried, then arrived".into(),
        LifelineOutcome::Flushed { after } => format!("flushed after {}", at(after)),
        LifelineOutcome::NeverArrived { after } => format!("never arrived after {}", at(after)),
        LifelineOutcome::Unfinished { after } => {
            format!("in flight at the end, after {}", at(after))
        }
        LifelineOutcome::Headless { before } => format!("recorded only from {} onward", at(before)),
    }
}

/// A table of outcomes: how many units have each, with a column for each group if there are several.
fn outcomes(shown: &Shown<'_>) -> Vec<String> {
    let groups = &shown.lifelines.groups;
    let several = groups.len() > 1 && groups.len() <= 8;
    let mut head = vec![
        "outcome of units".to_owned(),
        "units".into(),
        "share".into(),
    ];
    head.extend(groups.iter().filter(|_| several).cloned());
    let mut kinds: Vec<(bool, LifelineOutcome)> = shown
        .statistics
        .outcomes
        .iter()
        .map(|count| (count.connections, count.outcome))
        .collect();
    kinds.sort_by_key(|(connections, kind)| (*connections, order(*kind)));
    kinds.dedup();
    let sum = |kind: (bool, Option<LifelineOutcome>), group: Option<u32>| {
        let of = |count: &&LifelineOutcomeCount| {
            count.connections == kind.0
                && kind.1.is_none_or(|kind| count.outcome == kind)
                && group.is_none_or(|group| count.group == group)
        };
        shown
            .statistics
            .outcomes
            .iter()
            .filter(of)
            .map(|count| count.lines)
            .sum::<u64>()
    };
    let row = |(connections, kind): &(bool, LifelineOutcome)| {
        let of = (*connections, Some(*kind));
        let what = if *connections { "connections: " } else { "" };
        let share = sum(of, None) as f64 / sum((*connections, None), None) as f64;
        let mut cells = vec![what.to_owned() + &outcome(shown.lifelines, *kind)];
        cells.extend([sum(of, None).to_string(), percent(share)]);
        let of_group = |group: usize| match sum(of, Some(group as u32)) {
            0 => ABSENT.to_owned(),
            n => n.to_string(),
        };
        cells.extend((0..groups.len()).filter(|_| several).map(of_group));
        cells
    };
    grid(std::iter::once(head).chain(kinds.iter().map(row)).collect())
}

const fn order(outcome: LifelineOutcome) -> (u8, u32) {
    match outcome {
        LifelineOutcome::Complete => (0, 0),
        LifelineOutcome::CacheHit => (1, 0),
        LifelineOutcome::Retried { .. } => (2, 0),
        LifelineOutcome::Flushed { after } => (3, after),
        LifelineOutcome::NeverArrived { after } => (4, after),
        LifelineOutcome::Unfinished { after } => (5, after),
        LifelineOutcome::Headless { before } => (6, before),
    }
}

/// A table whose first column is left-aligned.
fn grid(rows: Vec<Vec<String>>) -> Vec<String> {
    let widths = widths(&rows);
    let mut align = vec![Align::Right; widths.len()];
    if let Some(first) = align.first_mut() {
        *first = Align::Left;
    }
    rows.iter().map(|row| line(row, &widths, &align)).collect()
}

/// Most causes that are shown.
const MOST_CAUSES: usize = 24;

/// A table of the causes of the time of requests, as findings account for it.
fn requests(times: &AccountedTimes) -> Vec<String> {
    let head = [
        "time spent on requests",
        "n",
        "min",
        "median",
        "p99",
        "max",
        "share",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for cause in times.causes.iter().take(MOST_CAUSES) {
        let name = format!("  {} {}", cause.cause.cause, cause.cause.place);
        rows.push(spread(name, &cause.ns, &percent(cause.share)));
    }
    rows.push(spread("whole requests".into(), &times.whole, ""));
    let mut lines = grid(rows);
    let more = times.causes.len().saturating_sub(MOST_CAUSES);
    if more > 0 {
        lines.push(format!("smaller parts not shown: {more}"));
    }
    lines
}

/// A table of segments: of all lines, or of a group. `None` if there are none.
fn times(shown: &Shown<'_>, group: Option<u32>) -> Option<Vec<String>> {
    let of = |segment: &&LifelineSegment| !segment.connections && segment.group == group;
    let title = group.map_or_else(
        || match shown.requests {
            Some(_) => "from point to point".to_owned(),
            None => "where the time went".to_owned(),
        },
        |group| format!("{} {}", shown.by, shown.lifelines.groups[group as usize]),
    );
    let mut rows = stretches(shown, &title, of);
    let whole = shown
        .statistics
        .whole
        .iter()
        .find(|whole| whole.group == group);
    rows.extend(
        whole.map(|whole| spread("first to last, units that arrived".into(), &whole.ns, "")),
    );
    (rows.len() > 1).then(|| grid(rows))
}

/// A table of the segments of connections, apart from data units, whose way does not include them.
fn connections(shown: &Shown<'_>) -> Option<Vec<String>> {
    let of = |segment: &&LifelineSegment| segment.connections && segment.group.is_none();
    let rows = stretches(shown, "where connection time went", of);
    (rows.len() > 1).then(|| grid(rows))
}

/// The head of a table and a row for each wanted segment; a row names the point where a segment begins if the segment before does not
/// end there.
fn stretches(
    shown: &Shown<'_>,
    title: &str,
    wanted: impl Fn(&&LifelineSegment) -> bool,
) -> Vec<Vec<String>> {
    let mut rows = vec![
        [title, "n", "min", "median", "p99", "max", "share"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let (points, segments) = table_of(shown);
    let mut last = None;
    for segment in chained(segments.iter().filter(wanted).collect()) {
        if last != Some(segment.from) {
            rows.push(vec![label(&points[segment.from as usize])]);
        }
        last = Some(segment.to);
        let mark = if is_doubtful(segment) { "? " } else { "  " };
        let name = format!("{mark}{}", name_of(points, segment));
        rows.push(spread(name, &segment.ns, &percent(segment.share)));
    }
    rows
}

/// The points and segments that tables show: those of stages if there are very many hosts and lines are not grouped.
fn table_of<'s>(shown: &Shown<'s>) -> (&'s [LifelinePoint], &'s [LifelineSegment]) {
    let grouped = shown
        .statistics
        .whole
        .iter()
        .any(|whole| whole.group.is_some());
    match &shown.statistics.by_stage {
        Some(stages) if !grouped => (&stages.points, &stages.segments),
        _ => (&shown.lifelines.points, &shown.statistics.segments),
    }
}

/// The name of a segment with its host.
fn name_of(points: &[LifelinePoint], segment: &LifelineSegment) -> String {
    let point = |at: u32| &points[at as usize];
    let label = segment_label(point(segment.from), point(segment.to));
    match segment.waits {
        true => format!("{SENDS_AGAIN}, {label}"),
        false => label,
    }
}

/// Orders segments such that each begins where the one before ends, as far as possible.
fn chained(mut segments: Vec<&LifelineSegment>) -> Vec<&LifelineSegment> {
    let mut chained: Vec<&LifelineSegment> = Vec::with_capacity(segments.len());
    while !segments.is_empty() {
        let last = chained.last().map(|segment| segment.to);
        // Of several segments that go on, the most frequent one is next.
        let goes_on = |segment: &&LifelineSegment| last == Some(segment.from);
        let most = segments
            .iter()
            .filter(|segment| goes_on(segment))
            .map(|segment| segment.ns.n)
            .max();
        let next = segments
            .iter()
            .position(|segment| goes_on(segment) && Some(segment.ns.n) == most);
        chained.push(segments.remove(next.unwrap_or(0)));
    }
    chained
}

/// Whether a segment's times may be an effect of clock errors: some are negative, or the median is within the error.
fn is_doubtful(segment: &LifelineSegment) -> bool {
    let error = segment.clock_error_ns.unwrap_or(0) as f64;
    segment.negative > 0 || error > 0.0 && segment.ns.median_ns.abs() <= error
}

fn spread(name: String, ns: &TimeSpread, last: &str) -> Vec<String> {
    let times = [ns.min_ns as f64, ns.median_ns, ns.p99_ns, ns.max_ns as f64];
    let mut cells = vec![name, ns.n.to_string()];
    cells.extend(times.map(time));
    cells.push(last.to_owned());
    cells
}

/// A table of the throughput of each group; `None` without any.
fn rates(shown: &Shown<'_>) -> Option<Vec<String>> {
    let rates = &shown.statistics.rates;
    if rates.is_empty() {
        return None;
    }
    let head = [
        "throughput unit by unit",
        "side",
        "units",
        "average",
        "bursts of five: min",
        "median",
        "max",
        "jitter",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for rates in rates {
        let side = match (rates.side, rates.responses) {
            (TransferSide::Sender, false) => "sender",
            (TransferSide::Receiver, false) => "receiver",
            (TransferSide::Sender, true) => "sender of responses",
            (TransferSide::Receiver, true) => "receiver of responses",
        };
        let average = rates
            .average_bit_s
            .map_or_else(|| units::per_second(rates.units_per_s), units::format_rate);
        let bursts = rates
            .bursts_bit_s
            .map(|bursts| [bursts.min, bursts.median, bursts.max].map(units::format_rate));
        let mut cells = vec![
            shown.lifelines.groups[rates.group as usize].clone(),
            side.into(),
            rates.units.to_string(),
            average,
        ];
        cells.extend(bursts.unwrap_or_else(|| std::array::from_fn(|_| ABSENT.to_owned())));
        cells.push(rates.jitter_ns.map_or_else(|| ABSENT.to_owned(), time));
        rows.push(cells);
    }
    let mut lines = grid(rows);
    if rates.iter().any(|rates| rates.jitter_ns.is_some()) {
        lines.push("jitter: variation in transit time from unit to unit (RFC 3550)".to_owned());
    }
    let average = |rates: &Rates| rates.average_bit_s.unwrap_or(f64::INFINITY);
    if rates.iter().any(|rates| {
        rates
            .bursts_bit_s
            .is_some_and(|bursts| bursts.max > 2.0 * average(rates))
    }) {
        let why = "The rate of a burst is the rate at which an application sends or receives five units; because of buffers between the application and the link, it can exceed the link rate.";
        lines.extend(wrap(why, WIDTH));
    }
    Some(lines)
}

/// A table of blocked intervals of each group, and sentences on whether groups were blocked together; `None` without any.
fn blocked(shown: &Shown<'_>) -> Option<Vec<String>> {
    let some: Vec<_> = shown
        .statistics
        .blocked
        .iter()
        .filter(|blocked| !blocked.intervals.is_empty())
        .collect();
    if some.is_empty() {
        return None;
    }
    let name = |group: u32| shown.lifelines.groups[group as usize].as_str();
    let head = [
        "blocked with units in flight",
        "intervals",
        "longer than",
        "longest",
        "total",
        "of its busy time",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for blocked in some {
        let longest = blocked
            .intervals
            .iter()
            .map(|(from, to)| to - from)
            .max()
            .unwrap_or(0);
        let share = blocked.blocked_ns as f64 / blocked.busy_ns.max(1) as f64;
        rows.push(vec![
            name(blocked.group).to_owned(),
            blocked.intervals.len().to_string(),
            time(blocked.threshold_ns as f64),
            time(longest as f64),
            time(blocked.blocked_ns as f64),
            percent(share),
        ]);
    }
    let mut lines = grid(rows);
    for pair in &shown.statistics.synchrony {
        let verdict = if pair.is_significant() {
            "more than chance"
        } else {
            "no more than chance"
        };
        lines.push(format!(
            "{} and {}: both blocked {} of the time, {} expected: {verdict} (p = {})",
            name(pair.a),
            name(pair.b),
            percent(pair.share),
            percent(pair.expected),
            pair.p
        ));
    }
    lines.extend(shown.statistics.together.map(|together| {
        let (share, expected) = (percent(together.share), percent(together.expected));
        format!(
            "at least two of {} groups blocked at once: {share} of the time; {expected} expected if independent",
            together.groups
        )
    }));
    Some(lines)
}

/// A table of how each host spent its time, by stretches of the units' way inside it; several can be busy at once.
fn operation(shown: &Shown<'_>) -> Option<Vec<String>> {
    let profiles = &shown.statistics.profiles;
    let hosts = profiles
        .iter()
        .filter(|profile| profile.stretches.len() > 1)
        .count();
    if hosts == 0 || hosts > 16 {
        return None;
    }
    let head = [
        "time in each host",
        "units",
        "of the time",
        "at once",
        "limits it",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for profile in profiles
        .iter()
        .filter(|profile| profile.stretches.len() > 1)
    {
        rows.push(vec![profile.host.clone()]);
        for (at, stretch) in profile.stretches.iter().enumerate() {
            let point = |at: u32| point_name(&shown.lifelines.points[at as usize]);
            let limits = profile
                .limits(at)
                .map_or_else(|| ABSENT.to_owned(), percent);
            rows.push(vec![
                format!("  {} to {}", point(stretch.from), point(stretch.to)),
                stretch.units.to_string(),
                percent(profile.share(stretch.busy_ns)),
                format!("{:.1}", stretch.at_once()),
                limits,
            ]);
        }
        rows.push(vec![
            "  idle".into(),
            String::new(),
            percent(profile.share(profile.idle_ns)),
        ]);
    }
    Some(grid(rows))
}

/// Notes on figures that clock errors make doubtful, and the given notes.
fn notes(shown: &Shown<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let (points, segments) = table_of(shown);
    let all = || segments.iter().filter(|segment| segment.group.is_none());
    for segment in all().filter(|segment| is_doubtful(segment)) {
        let host = |point: u32| &points[point as usize].host;
        let error = segment.clock_error_ns;
        let why = match error {
            _ if host(segment.from) == host(segment.to) => {
                "both events share a clock and can occur in either order".to_owned()
            }
            None => "the error between the two clocks is unknown".to_owned(),
            Some(0) => "both events share a clock and can occur in either order".to_owned(),
            Some(error) => format!("the two clocks agree to within {}", time(error as f64)),
        };
        let negative = match segment.negative {
            0 => "the median is within the clocks' error".to_owned(),
            n => format!("{n} of {} below zero", segment.ns.n),
        };
        notes.push(format!(
            "? {}: {negative}; {why}.",
            name_of(points, segment)
        ));
    }
    notes.extend(shown.notes.iter().cloned());
    notes
}
