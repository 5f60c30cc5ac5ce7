//! Selects lifelines for a page or picture that cannot show all: first those that findings name, then those with an unusual outcome
//! or marks, then every n-th of the others.

use stackline_analyze::findings::Finding;
use stackline_analyze::lifelines::{Id, Lifeline, LifelineOutcome, Lifelines};
use std::collections::HashSet;

/// Indices of the lines that a page shows, in their order, with about `most` events at most.
pub(crate) fn select_lifelines(
    lifelines: &Lifelines,
    findings: &[Finding],
    most: usize,
) -> Vec<u32> {
    let named: HashSet<Id> = findings
        .iter()
        .flat_map(|f| &f.evidence)
        .flat_map(|e| &e.units)
        .map(|unit| Id::parse(unit))
        .collect();
    thin_lifelines(
        lifelines,
        (0..lifelines.lines.len() as u32).collect(),
        &named,
        most,
        |line| (line.count + line.mark_count) as usize,
    )
}

/// Selects of `lines` as many as weigh about `most` together, in their order: first the named, then those with an unusual outcome or
/// marks, then the others. Each group is thinned out evenly if it does not fit.
pub(crate) fn thin_lifelines(
    lifelines: &Lifelines,
    lines: Vec<u32>,
    named: &HashSet<Id>,
    most: usize,
    weight: impl Fn(&Lifeline) -> usize,
) -> Vec<u32> {
    let line = |index: &u32| &lifelines.lines[*index as usize];
    let weigh = |lines: &[u32]| lines.iter().map(|index| weight(line(index))).sum::<usize>();
    if weigh(&lines) <= most {
        return lines;
    }
    let rank = |index: &u32| {
        let line = line(index);
        let plain = line.outcome == LifelineOutcome::Complete && line.mark_count == 0;
        if named.contains(&line.unit) {
            0
        } else {
            1 + u8::from(plain)
        }
    };
    let mut chosen = Vec::new();
    let mut room = most;
    for wanted in 0..3 {
        let these: Vec<u32> = lines
            .iter()
            .copied()
            .filter(|index| rank(index) == wanted)
            .collect();
        let step = weigh(&these).div_ceil(room.max(1)).max(1);
        let some: Vec<u32> = these.into_iter().step_by(step).collect();
        room = room.saturating_sub(weigh(&some));
        chosen.extend(some);
    }
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_analyze::findings::Evidence;
    use stackline_analyze::lifelines::{Lifeline, LifelinePassage};

    fn lines(count: u32) -> Lifelines {
        let line = |unit: u32| Lifeline {
            unit: i64::from(unit).into(),
            first: unit * 2,
            count: 2,
            ..Lifeline::default()
        };
        let passages = vec![LifelinePassage::default(); count as usize * 2];
        Lifelines {
            lines: (0..count).map(line).collect(),
            passages,
            ..Lifelines::default()
        }
    }

    #[test]
    fn few_are_all_kept() {
        assert_eq!(select_lifelines(&lines(5), &[], 10), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn of_many_those_that_matter_are_kept_and_every_so_many_of_the_others() {
        let mut many = lines(1000);
        many.lines[501].outcome = LifelineOutcome::NeverArrived { after: 0 };
        let finding = Finding {
            takes: None,
            whole: None,
            saves: None,
            is_of_units: false,
            kind: "queue_drop",
            sentence: String::new(),
            confidence: 1.0,
            share: 1.0,
            evidence: vec![Evidence {
                units: vec!["7".into()],
                ..Evidence::default()
            }],
            tries: Vec::new(),
            measurement: None,
        };
        let kept = select_lifelines(&many, &[finding], 100);
        assert!(kept.contains(&7) && kept.contains(&501), "{kept:?}");
        assert!((40..=50).contains(&kept.len()), "{}", kept.len());
        assert!(kept.is_sorted());
    }
}
