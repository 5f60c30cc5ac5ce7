//! The clocks of imported logs: those that the user set, and those that causality proves wrong (a message cannot arrive before it was
//! sent).

use serde_json::{Map, Value, json};
use stackline_analyze::clocks::Causality;
use stackline_core::error::{Error, Result};
use stackline_core::trace_index::{ClockCorrection, HostTrace, Index};
use stackline_core::units;
use stackline_runs::events::{EventColumnSelection, read_batches};
use std::collections::BTreeMap;
use std::path::Path;

/// Adds the clocks that were given on the command line to the index.
pub(crate) fn set_given_clocks(
    given: &[(String, i64)],
    index: &mut Index,
    came: &BTreeMap<String, u64>,
) -> Result<()> {
    for (host, ahead_ns) in given {
        if !came.contains_key(host) && !index.hosts.contains_key(host) {
            let hosts: Vec<&str> = came
                .keys()
                .chain(index.hosts.keys())
                .map(String::as_str)
                .collect();
            let message = format!("--clock {host}: that host has no events");
            return Err(
                Error::input(message).hint(format!("hosts with events: {}", hosts.join(", ")))
            );
        }
        let side = if *ahead_ns < 0 { "behind" } else { "ahead" };
        let by = units::format_time(ahead_ns.unsigned_abs() as f64 / 1e9);
        let trace = index.hosts.entry(host.clone()).or_default();
        trace.clock = ClockCorrection {
            offset_ns: *ahead_ns,
            ..ClockCorrection::default()
        };
        note(
            trace,
            format!(
                "the clock of {host} is {by} {side}, as specified; times are corrected accordingly"
            ),
        );
    }
    Ok(())
}

/// Corrects clocks that violate causality, and notes doubtful ones.
pub(crate) fn correct_clocks(run: &Path, index: &mut Index) -> Result<()> {
    if index.hosts.len() < 2 {
        return Ok(());
    }
    let mut causality = Causality::new(index);
    read_batches(
        run,
        &EventColumnSelection::fields(&Causality::fields()),
        |events| causality.add(events),
    )?;
    let found = causality.finish();
    if let Some(reference) = found.reference {
        index.reference = reference;
    }
    for (host, (clock, sentence)) in found.corrected {
        let trace = index.hosts.entry(host).or_default();
        trace.clock = clock;
        note(trace, sentence);
    }
    for (host, doubt) in found.doubts {
        let trace = index.hosts.entry(host).or_default();
        trace.clock_doubt = Some(doubt.clone());
        note(trace, doubt);
    }
    Ok(())
}

/// Adds a note unless it exists.
pub(crate) fn note(trace: &mut HostTrace, sentence: String) {
    if !trace.notes.contains(&sentence) {
        trace.notes.push(sentence);
    }
}

/// The clocks that differ from the reference or have notes, by host.
pub(crate) fn json(index: &Index) -> Value {
    let wrong = index
        .hosts
        .iter()
        .filter(|(_, trace)| trace.clock != ClockCorrection::default() || !trace.notes.is_empty());
    let clock = |trace: &HostTrace| {
        let ClockCorrection {
            offset_ns,
            drift_ppm,
            error_ns,
            ..
        } = &trace.clock;
        json!({"offset_ns": offset_ns, "drift_ppm": drift_ppm, "error_ns": error_ns, "notes": trace.notes})
    };
    wrong
        .map(|(host, trace)| (host.clone(), clock(trace)))
        .collect::<Map<_, _>>()
        .into()
}
