//! One unit's lifeline as text: the points that it passed, when, and how long each step took.

use super::{Shown, counted, label, outcome, time};
use crate::figure::ABSENT;
use crate::grid::{Align, line, widths};
use stackline_analyze::lifelines::{Lifeline, LifelineOutcome, LifelinePassage};
use stackline_analyze::names::segment_name;
use stackline_analyze::segments::lifeline_duration_ns;
use stackline_core::units;
use stackline_events::unit_ids;

/// The length of the longest bar, characters.
const BAR: f64 = 20.0;
const ALIGN: [Align; 5] = [
    Align::Right,
    Align::Right,
    Align::Left,
    Align::Left,
    Align::Left,
];

/// The lifeline with this index, as lines of text.
pub(super) fn line_of(shown: &Shown<'_>, number: u32) -> Vec<String> {
    let lifelines = shown.lifelines;
    let of = &lifelines.lines[number as usize];
    let passages = lifelines.passages_of(of);
    let begun = passages.first().map_or(0, |passage| passage.at_ns);
    let whole = lifeline_duration_ns(lifelines, of).unsigned_abs().max(1) as f64;
    let since = |at_ns: u64| at_ns.wrapping_sub(begun) as i64 as f64;
    let mut rows = vec![["at", "after", "", "", ""].map(str::to_owned).to_vec()];
    let mut marks = lifelines.marks_of(of).iter().peekable();
    let beside = |mark: &LifelinePassage| {
        let name = format!("! {}", label(&lifelines.marked[mark.point as usize]));
        vec![
            time(since(mark.at_ns)),
            String::new(),
            String::new(),
            name,
            String::new(),
        ]
    };
    let (mut before, mut from) = (begun, None);
    for passage in passages {
        while let Some(mark) = marks.next_if(|mark| mark.at_ns < passage.at_ns) {
            rows.push(beside(mark));
        }
        let point = &lifelines.points[passage.point as usize];
        // The name of a step to a foreign keyword contains the keyword, which the next column shows already.
        let name = from
            .map(|from| segment_name(from, point))
            .filter(|name| !name.ends_with(&point.keyword));
        let step = passage.at_ns.wrapping_sub(before) as i64 as f64;
        let bar = "#".repeat((step.abs() / whole * BAR).round().min(BAR) as usize);
        let after = if passage.at_ns == begun && before == begun {
            String::new()
        } else {
            time(step)
        };
        rows.push(vec![
            time(since(passage.at_ns)),
            after,
            name.unwrap_or_default(),
            label(point),
            bar,
        ]);
        (before, from) = (passage.at_ns, Some(point));
    }
    rows.extend(marks.map(beside));
    let widths = widths(&rows);
    let mut lines = vec![title(shown, of)];
    lines.extend(rows.iter().map(|row| line(row, &widths, &ALIGN)));
    lines
}

fn title(shown: &Shown<'_>, line: &Lifeline) -> String {
    let became = match line.outcome {
        LifelineOutcome::Retried { times } => {
            format!("retried ({})", counted(u64::from(times), "time"))
        }
        other => outcome(shown.lifelines, other),
    };
    let bytes = line
        .bytes
        .map_or_else(|| ABSENT.to_owned(), units::format_size);
    let group = &shown.lifelines.groups[line.group as usize];
    let took = time(lifeline_duration_ns(shown.lifelines, line) as f64);
    let name = match (line.flow, line.unit.number()) {
        (Some(flow), Some(id)) => format!("{} of flow {flow}", unit_ids::parts(id).1),
        _ => line.unit.to_string(),
    };
    let request = line.unit.number().and_then(|unit| shown.names.get(&unit));
    let called = request.map_or_else(String::new, |request| format!("{request}, "));
    format!(
        "{called}unit {name} ({} {group}, {bytes}): {took}, {became}",
        shown.by
    )
}
