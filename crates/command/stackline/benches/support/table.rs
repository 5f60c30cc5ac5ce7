//! Results as an aligned table for people and as JSON for programs.

use super::args::Options;
use super::figure::Unit;
use super::runner::{Outcome, Row};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The table of one case.
pub(crate) fn text(outcome: &Outcome) -> String {
    let (_, unit) = outcome.unit.shown();
    let (_, cost) = outcome.unit.cost();
    let mut text = format!("\n{}  [{unit}, {}]\n", outcome.name, outcome.unit.better());
    _ = writeln!(
        text,
        "  {:<22} {:>10} {:>21} {cost:>12}   {:<24} note",
        "side", "median", "min..max", "stackline / it"
    );
    for row in &outcome.rows {
        _ = writeln!(text, "  {}", line(outcome, row));
    }
    for note in &outcome.notes {
        _ = writeln!(text, "  {note}");
    }
    if let Some(others) = outcome.others.filter(|others| *others > DISTURBING) {
        _ = writeln!(
            text,
            "  warning: other work took {others:.2} processors meanwhile; run it again on an idle host"
        );
    }
    text
}

/// Processors' worth of other work from which on a case is not to be trusted.
const DISTURBING: f64 = 0.1;

fn line(outcome: &Outcome, row: &Row) -> String {
    let Some((median, least, greatest)) = row.value() else {
        return format!(
            "{:<22} failed: {}",
            row.side,
            row.failure.as_deref().unwrap_or("no reason")
        );
    };
    let (scale, _) = outcome.unit.shown();
    let range = format!("{:.2}..{:.2}", least / scale, greatest / scale);
    let cpu = row.cpu().map_or("-".to_owned(), |(cpu, _, _)| {
        format!("{:.3}", cpu / outcome.unit.cost().0)
    });
    let ratio = ratio(outcome, row).map_or(String::new(), |(r, low, high)| {
        format!("{r:.3} ({low:.3}..{high:.3})")
    });
    let failure = row.failure.as_ref().map_or(String::new(), |reason| {
        format!(" (a round failed: {reason})")
    });
    let median = median / scale;
    format!(
        "{:<22} {median:>10.2} {range:>21} {cpu:>12}   {ratio:<24} {}{failure}",
        row.side,
        row.note()
    )
    .trim_end()
    .to_owned()
}

/// stackline's figure over a side's; the side that is like it is compared when there are several.
fn ratio(outcome: &Outcome, row: &Row) -> Option<(f64, f64, f64)> {
    let subject = outcome
        .rows
        .iter()
        .find(|row| row.side.starts_with("stackline"))?;
    if row.side.starts_with("stackline") {
        None
    } else {
        subject.ratio(row)
    }
}

/// What the host is and how busy: figures taken beside other work are worth less.
pub(crate) fn host() -> String {
    let (kernel, load) = (
        line_of("/proc/sys/kernel/osrelease"),
        line_of("/proc/loadavg"),
    );
    let show = |line: Option<String>| line.unwrap_or_else(|| "unknown".to_owned());
    format!(
        "Linux {}, {} processors, load {}",
        show(kernel),
        processors(),
        show(load)
    )
}

fn line_of(file: &str) -> Option<String> {
    std::fs::read_to_string(file)
        .ok()
        .map(|text| text.trim().to_owned())
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(0, usize::from)
}

/// All cases.
pub(crate) fn json(outcomes: &[Outcome], options: &Options) -> Value {
    json!({
        "kernel": line_of("/proc/sys/kernel/osrelease"),
        "processors": processors(),
        "load": line_of("/proc/loadavg"),
        "quick": options.quick,
        "cases": outcomes.iter().map(case).collect::<Vec<_>>(),
    })
}

fn case(outcome: &Outcome) -> Value {
    json!({
        "name": outcome.name,
        "unit": if outcome.unit == Unit::BitPerSecond { "bit/s" } else { "s" },
        "cpu_unit": if outcome.unit == Unit::BitPerSecond { "s/GB" } else { "s" },
        "better": outcome.unit.better(),
        "sides": outcome.rows.iter().map(|row| side(outcome, row)).collect::<Vec<_>>(),
        "notes": outcome.notes,
        "processors_taken_by_others": outcome.others,
    })
}

fn side(outcome: &Outcome, row: &Row) -> Value {
    let rounds = row
        .rounds
        .iter()
        .map(|figure| figure.as_ref().map(|figure| figure.value));
    json!({
        "side": row.side,
        "rounds": rounds.collect::<Vec<_>>(),
        "value": three(row.value()),
        "cpu": three(row.cpu()),
        "stackline_over_this": three(ratio(outcome, row)),
        "note": row.note(),
        "failure": row.failure,
    })
}

fn three(spread: Option<(f64, f64, f64)>) -> Value {
    spread.map_or(
        Value::Null,
        |(median, min, max)| json!({"median": median, "min": min, "max": max}),
    )
}
