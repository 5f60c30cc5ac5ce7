//! Findings as people and programs read them, in the order in which they come: each with what proves it and what to try.

use crate::grid::wrap;
use crate::table::WIDTH;
use serde_json::{Value, json as object};
use stackline_analyze::findings::{Advice, Evidence, Finding};
use stackline_core::plan::{Plan, describe_swept_values};
use stackline_core::units;

/// The findings as text.
#[must_use]
pub fn findings(plan: &Plan, findings: &[Finding]) -> String {
    let mut lines = Vec::new();
    let several = plan.measurements.len() > 1;
    for (at, finding) in findings.iter().enumerate() {
        if at > 0 {
            lines.push(String::new());
        }
        lines.extend(indented(
            &format!("{}. ", at + 1),
            &format!(
                "{} ({}; {}{})",
                finding.sentence,
                finding.kind,
                confidence(finding),
                saves(finding)
            ),
        ));
        if let Some(measurement) = finding
            .measurement
            .filter(|_| several)
            .and_then(|index| plan.measurements.get(index))
        {
            let swept = describe_swept_values(&measurement.variables, &measurement.variable_units);
            let of = match swept.is_empty() {
                true => measurement.text.clone(),
                false => format!("{swept}: {}", measurement.text),
            };
            lines.extend(indented("   of:   ", &of));
        }
        if let Some(takes) = &finding.takes {
            lines.extend(indented("   gain: ", &takes.gain()));
        }
        finding
            .evidence
            .iter()
            .for_each(|evidence| lines.extend(indented("   seen: ", &seen(evidence))));
        finding
            .tries
            .iter()
            .for_each(|attempt| lines.extend(indented("   try:  ", &attempt.text())));
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// How certain it is, in words.
fn confidence(finding: &Finding) -> String {
    format!("confidence {:.0} %", 100.0 * finding.confidence)
}

/// What the best change against it saves, where that was simulated: a queue of another length leaves some of its drops.
fn saves(finding: &Finding) -> String {
    match finding.saves {
        None => String::new(),
        Some(_) if finding.is_idle() => "; the fixes tried save nothing on their own".to_owned(),
        Some(saves) => format!("; the best fix tried saves {:.0} %", 100.0 * saves),
    }
}

/// A piece of evidence on one line.
fn seen(evidence: &Evidence) -> String {
    let mut text = evidence.what.clone();
    // A unit's number is what `export --units` takes; few findings have events of no unit.
    let example = match (evidence.units.first(), evidence.events.first()) {
        (Some(unit), _) => Some((format!("unit {unit}"), evidence.units.len())),
        (None, Some((host, row))) => {
            Some((format!("event {row} at {host}"), evidence.events.len()))
        }
        (None, None) => None,
    };
    if let Some((example, count)) = example {
        let lasts = evidence.to_ns.saturating_sub(evidence.from_ns) as f64 / 1e9;
        let span = match lasts > 0.0 {
            true => format!("events span {}; ", units::format_time(lasts)),
            false => String::new(),
        };
        let others = if count > 1 { " and others" } else { "" };
        text += &format!(" [{span}{example}{others}]");
    }
    text
}

/// A sentence as lines that fit a terminal.
#[must_use]
pub fn wrapped(sentence: &str) -> String {
    wrap(sentence, WIDTH)
        .into_iter()
        .map(|line| line + "\n")
        .collect()
}

/// A text behind a mark, its further lines below it.
fn indented(mark: &str, text: &str) -> Vec<String> {
    let blank = " ".repeat(mark.len());
    let lines = wrap(text, WIDTH - mark.len());
    lines
        .into_iter()
        .enumerate()
        .map(|(at, line)| format!("{}{line}", if at == 0 { mark } else { &blank }))
        .collect()
}

/// One line for the notes of a run: the first finding, with its measurement and the values swept there where there are several (rows count
/// from one); `None` when there is none, or nothing limits.
#[must_use]
pub fn first_finding(plan: &Plan, findings: &[Finding]) -> Option<String> {
    let first = findings.first().filter(|first| !first.is_healthy())?;
    let row = first.measurement.filter(|_| plan.measurements.len() > 1);
    let row = row.map_or_else(String::new, |index| {
        let swept = plan.measurements.get(index).map(|measurement| {
            describe_swept_values(&measurement.variables, &measurement.variable_units)
        });
        match swept.filter(|swept| !swept.is_empty()) {
            Some(swept) => format!("row {}, {swept}: ", index + 1),
            None => format!("row {}: ", index + 1),
        }
    });
    Some(format!(
        "{row}{}: {} ({}); `stackline diagnose` shows why",
        first.kind,
        first.sentence,
        confidence(first)
    ))
}

/// The findings as JSON (docs/JSON.md).
#[must_use]
pub fn findings_json(run: &str, complete: bool, findings: &[Finding]) -> Value {
    let evidence = |evidence: &Evidence| {
        let events: Vec<Value> = evidence
            .events
            .iter()
            .map(|(host, row)| object!({"host": host, "row": row}))
            .collect();
        object!({
            "what": evidence.what,
            "from_ns": evidence.from_ns,
            "to_ns": evidence.to_ns,
            "units": evidence.units,
            "events": events,
        })
    };
    let expected = |(at, advice): (usize, &Advice)| {
        let expected = advice.expected?;
        Some(object!({
            "try": at + 1,
            "metric": expected.metric,
            "parts": expected.parts,
            "now": expected.now,
            "then": expected.then,
            "times_as_fast": expected.times_as_fast,
            "runs": expected.runs,
        }))
    };
    let one = |(at, finding): (usize, &Finding)| {
        object!({
            "rank": at + 1,
            "kind": finding.kind,
            "measurement": finding.measurement.map(|index| index + 1),
            "sentence": finding.sentence,
            "confidence": finding.confidence,
            "share": finding.share,
            "saves": finding.saves,
            "takes": finding.takes,
            "evidence": finding.evidence.iter().map(evidence).collect::<Vec<_>>(),
            "tries": finding.tries.iter().map(|advice| &advice.what).collect::<Vec<_>>(),
            "expected": finding.tries.iter().enumerate().filter_map(expected).collect::<Vec<_>>(),
        })
    };
    let findings: Vec<Value> = findings.iter().enumerate().map(one).collect();
    object!({"run": run, "complete": complete, "findings": findings})
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_core::plan::{Composer, Measurement, VariableUnit, Warmup, World};
    use stackline_core::units::Quantity;

    fn finding() -> Finding {
        Finding {
            takes: None,
            whole: None,
            saves: None,
            is_of_units: false,
            kind: "queue_drop",
            sentence: "the queue before x>b drops packets".into(),
            confidence: 0.95,
            share: 0.5,
            evidence: vec![Evidence {
                what: "x>b: 14 queue full".into(),
                from_ns: 1_000_000,
                to_ns: 3_000_000,
                units: vec!["7".into()],
                events: vec![("x".into(), 12), ("x".into(), 40)],
            }],
            tries: vec!["a queue of 64 KiB".into()],
            measurement: Some(0),
        }
    }

    fn plan() -> Plan {
        Plan {
            seed: 1,
            hosts: Default::default(),
            networks: vec![],
            measurements: vec![],
        }
    }

    #[test]
    fn text_says_what_why_and_what_to_try() {
        let expected = "\
1. the queue before x>b drops packets (queue_drop; confidence 95 %)
   seen: x>b: 14 queue full [events span 2.00 ms; unit 7]
   try:  a queue of 64 KiB
";
        assert_eq!(findings(&plan(), &[finding()]), expected);
        let mut of_events = finding();
        of_events.evidence[0].units.clear();
        let text = findings(&plan(), &[of_events]);
        assert!(text.contains("; event 12 at x and others]"), "{text}");
        let note = "queue_drop: the queue before x>b drops packets (confidence 95 %); `stackline diagnose` shows why";
        assert_eq!(first_finding(&plan(), &[finding()]).unwrap(), note);
    }

    #[test]
    fn a_note_is_of_what_limits_with_its_row_among_several() {
        let healthy = Finding {
            kind: "healthy",
            ..finding()
        };
        assert_eq!(first_finding(&plan(), &[healthy]), None);
        let measurement = Measurement {
            text: String::new(),
            line: 1,
            specification: 0,
            variables: vec![],
            variable_units: vec![],
            runs: 1,
            time_limit: None,
            until: None,
            warmup: Warmup::Runs(0),
            composer: Composer::Parallel,
            world: World::Simulated,
            across: None,
            keeps_calls: false,
            interval: None,
            expectations: vec![],
            parts: vec![],
        };
        let mut two = Plan {
            measurements: vec![measurement.clone(), measurement],
            ..plan()
        };
        let second = [Finding {
            measurement: Some(1),
            ..finding()
        }];
        let note = first_finding(&two, &second).unwrap();
        assert!(note.starts_with("row 2: queue_drop: "), "{note}");
        two.measurements[1].text = "rr 32*10".into();
        two.measurements[1].variables = vec![("D".into(), 0.04), ("L".into(), 1.0)];
        let unit = |quantity| VariableUnit {
            quantity,
            factor: 1.0,
        };
        two.measurements[1].variable_units = vec![unit(Quantity::Time), unit(Quantity::Percent)];
        let note = first_finding(&two, &second).unwrap();
        assert!(
            note.starts_with("row 2, D = 40 ms, L = 1 %: queue_drop: "),
            "{note}"
        );
        let text = findings(&two, &second);
        assert!(
            text.contains("   of:   D = 40 ms, L = 1 %: rr 32*10\n"),
            "{text}"
        );
    }

    #[test]
    fn json_counts_from_one() {
        let json = findings_json("runs/x", true, &[finding()]);
        for kind in [
            "queue_drop",
            "window_below_bdp",
            "nagle_delayed_ack",
            "cpu_limit",
            "slow_start",
        ] {
            let named = findings_json("runs/x", true, &[Finding { kind, ..finding() }]);
            assert_eq!(named["findings"][0]["kind"], kind);
            assert!(
                stackline_analyze::findings::KINDS
                    .iter()
                    .any(|known| known.name == kind),
                "{kind}"
            );
        }
        assert_eq!(json["findings"][0]["measurement"], 1);
        assert_eq!(
            json["findings"][0]["evidence"][0]["events"][1],
            serde_json::json!({"host": "x", "row": 40})
        );
    }
}
