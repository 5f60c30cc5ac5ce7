//! Which lifelines a page holds when a run has more events than it may: those that something became of, those that findings
//! name, and of the others every so many.

use stackline_analyze::findings::Finding;
use stackline_analyze::lifelines::{Lifelines, Outcome};
use std::collections::HashSet;

/// Indices of the chosen lines, in their order, with at most about `most` events.
pub(super) fn chosen(lifelines: &Lifelines, findings: &[Finding], most: usize) -> Vec<u32> {
    let all = 0..lifelines.lines.len() as u32;
    if lifelines.passages.len() + lifelines.marks.len() <= most {
        return all.collect();
    }
    let named: HashSet<&str> =
        findings.iter().flat_map(|f| &f.evidence).flat_map(|e| &e.units).map(String::as_str).collect();
    let rank = |index: &u32| {
        let line = &lifelines.lines[*index as usize];
        if named.contains(line.unit.as_str()) { 0 } else { 1 + u8::from(line.outcome == Outcome::Complete) }
    };
    let events = |index: &u32| {
        let line = &lifelines.lines[*index as usize];
        (line.count + line.mark_count) as usize
    };
    let mut chosen = Vec::new();
    let mut room = most;
    for wanted in 0..3 {
        let these: Vec<u32> = all.clone().filter(|index| rank(index) == wanted).collect();
        let passages: usize = these.iter().map(events).sum();
        let step = passages.div_ceil(room.max(1)).max(1);
        let some: Vec<u32> = these.into_iter().step_by(step).collect();
        let taken: usize = some.iter().map(events).sum();
        room = room.saturating_sub(taken);
        chosen.extend(some);
    }
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_analyze::findings::{Evidence, Kind};
    use stackline_analyze::lifelines::{Line, Passage};

    fn lines(count: u32) -> Lifelines {
        let line = |unit: u32| Line { unit: unit.to_string(), first: unit * 2, count: 2, ..Line::default() };
        let passages = vec![Passage::default(); count as usize * 2];
        Lifelines { lines: (0..count).map(line).collect(), passages, ..Lifelines::default() }
    }

    #[test]
    fn few_are_all_kept() {
        assert_eq!(chosen(&lines(5), &[], 10), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn of_many_those_that_matter_are_kept_and_every_so_many_of_the_others() {
        let mut many = lines(1000);
        many.lines[501].outcome = Outcome::NeverArrived { after: 0 };
        let finding = Finding {
            kind: Kind::QueueDrop,
            sentence: String::new(),
            confidence: 1.0,
            share: 1.0,
            evidence: vec![Evidence { units: vec!["7".into()], ..Evidence::default() }],
            tries: Vec::new(),
            measurement: None,
        };
        let kept = chosen(&many, &[finding], 100);
        assert!(kept.contains(&7) && kept.contains(&501), "{kept:?}");
        assert!((40..=50).contains(&kept.len()), "{}", kept.len());
        assert!(kept.is_sorted());
    }
}
