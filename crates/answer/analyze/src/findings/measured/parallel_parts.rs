//! Applies kinds of findings that are about single parts to all parallel parts of a measurement: each part is examined as if it were alone,
//! and one cause in several parts becomes one finding. Its share is of the time of all parts together: a cause that limits every part all
//! the time has share 1, however many parts there are.

use crate::findings::event_log::MOST;
use crate::findings::finding::{Evidence, Finding, percent};
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::part::MeasuredPart;
use std::mem;

/// The most other parts that a sentence names.
const NAMED: usize = 4;

/// One finding from what `find` reports for each part. The context is changed while a part is examined, and restored.
pub(crate) fn find(
    context: &mut FindingContext<'_>,
    find: fn(&FindingContext<'_>, &MeasuredPart<'_>) -> Option<Finding>,
) -> Option<Finding> {
    let parts = mem::take(&mut context.measurement.parts);
    let count = parts.len();
    let (mut examined, mut found) = (Vec::new(), Vec::new());
    for mut part in parts {
        // For a part by itself all of the time is its own.
        let weight = mem::replace(&mut part.weight, 1.0);
        context.measurement.parts = vec![part];
        let one = find(context, &context.measurement.parts[0]);
        let Some(mut part) = context.measurement.parts.pop() else {
            continue;
        };
        part.weight = weight;
        found.extend(one.map(|one| (weight * one.share, name(&part), one)));
        examined.push(part);
    }
    context.measurement.parts = examined;
    merged(found, count)
}

/// The ends of a part in words, as its name.
fn name(part: &MeasuredPart<'_>) -> String {
    format!("{} to {}", part.hosts.0, part.hosts.1)
}

/// Merges findings (weighted share, name of the part, finding) into one: the one with the greatest share, with the others named after it.
fn merged(mut found: Vec<(f64, String, Finding)>, count: usize) -> Option<Finding> {
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let share = found.iter().map(|(share, ..)| share).sum::<f64>().min(1.0);
    let mut found = found.into_iter();
    let (_, _, mut first) = found.next()?;
    first.share = share;
    let others: Vec<(f64, String, Finding)> = found.collect();
    if !others.is_empty() {
        let names: Vec<&str> = others
            .iter()
            .take(NAMED)
            .map(|(_, name, _)| name.as_str())
            .collect();
        let more = if others.len() > NAMED { ", ..." } else { "" };
        first.sentence += &format!(
            "; the same holds for other parts ({} of {}: {}{more}): {} of the total time of all parts",
            others.len(),
            count - 1,
            names.join(", "),
            percent(share)
        );
        // The confidence is the least of all.
        first.confidence = others
            .iter()
            .map(|(.., other)| other.confidence)
            .fold(first.confidence, f64::min);
        let proofs = others
            .into_iter()
            .filter_map(|(_, name, other)| proof(&name, other));
        first.evidence.extend(proofs.take(MOST));
    }
    Some(first)
}

/// The first proof of another part, with its name.
fn proof(name: &str, finding: Finding) -> Option<Evidence> {
    let first = finding.evidence.into_iter().next()?;
    Some(Evidence {
        what: format!("{name}: {}", first.what),
        ..first
    })
}
