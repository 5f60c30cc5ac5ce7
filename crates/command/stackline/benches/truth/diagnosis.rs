//! Findings of random specifications beside what is true by removal.

use crate::runs::Place;
use crate::seeds;
use stackline_truth::judge::{CAUSE, MeasuredTruth};
use stackline_truth::{LimitCause, Scenario};
use stackline_verdicts::calibration::Reliability;
use stackline_verdicts::{FindingJudge, FindingVerdict, ReportedFinding};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Instant;

/// One specification, judged.
struct Judged {
    scenario: Scenario,
    truth: MeasuredTruth,
    said: Vec<ReportedFinding>,
}

impl Judged {
    const fn judge(&self) -> FindingJudge<'_> {
        FindingJudge {
            truth: &self.truth,
            scenario: &self.scenario,
        }
    }
}

/// All that were judged, or what went wrong, by seed.
pub(crate) struct All(Vec<(u64, Result<Judged, String>)>);

/// Judges the specifications of seeds from `from` on, until one of the limits is reached.
pub(crate) fn judge(from: u64, count: u64, until: Instant) -> All {
    All(seeds::each(from, count, until, one))
}

impl All {
    /// A line for each.
    pub(crate) fn lines(&self) -> String {
        let mut out = String::new();
        self.0
            .iter()
            .for_each(|(seed, judged)| line(&mut out, *seed, judged));
        out
    }

    /// What they come to.
    pub(crate) fn table(&self) -> String {
        let mut out = String::new();
        let judged: Vec<&Judged> = self
            .0
            .iter()
            .filter_map(|(_, judged)| judged.as_ref().ok())
            .collect();
        table(&mut out, &judged, self.0.len() - judged.len());
        out
    }

    /// How often findings said with 90 % or more were right, and wrong; and how many could not be judged.
    pub(crate) fn of_the_sure(&self) -> (usize, usize, usize) {
        let judged = || self.0.iter().filter_map(|(_, judged)| judged.as_ref().ok());
        let of = |verdict| {
            let sure = judged().map(move |judged| {
                let said = judged.said.iter().filter(|said| said.confidence >= 0.9);
                said.filter(|said| judged.judge().verdict(said) == verdict)
                    .count()
            });
            sure.sum()
        };
        (
            of(FindingVerdict::Right),
            of(FindingVerdict::Wrong),
            self.0.len() - judged().count(),
        )
    }
}

fn one(place: &Place, seed: u64) -> Result<Judged, String> {
    let scenario = Scenario::draw(seed);
    let (took_s, said) = place.diagnosed(&scenario)?;
    let mut without = BTreeMap::new();
    for change in LimitCause::ALL {
        if let Some(other) = change.without(&scenario) {
            without.insert(change, place.takes_s(&other)?);
        }
    }
    Ok(Judged {
        scenario,
        truth: MeasuredTruth::of(took_s, &without),
        said,
    })
}

fn line(out: &mut String, seed: u64, judged: &Result<Judged, String>) {
    let judged = match judged {
        Ok(judged) => judged,
        Err(error) => {
            let _ = writeln!(
                out,
                "{seed}: FAILED {}",
                error.lines().next().unwrap_or_default()
            );
            return;
        }
    };
    let saves: Vec<String> = judged
        .truth
        .saves
        .iter()
        .map(|(change, saves)| format!("{change:?} {saves:.2}"))
        .collect();
    let _ = writeln!(
        out,
        "{seed}: planted {:?}; {}",
        judged.scenario.planted,
        saves.join(", ")
    );
    for said in &judged.said {
        let verdict = judged.judge().verdict(said);
        let _ = writeln!(
            out,
            "    {verdict:?} {:.2} {}: {}",
            said.confidence, said.kind, said.sentence
        );
    }
    for cause in judged.truth.causes() {
        if !judged.judge().is_named(cause, &judged.said) {
            let _ = writeln!(out, "    MISSED {cause:?}");
        }
    }
}

fn table(out: &mut String, all: &[&Judged], failed: usize) {
    let mut diagram = Reliability::default();
    let (mut named, mut causes) = (
        BTreeMap::<LimitCause, u32>::new(),
        BTreeMap::<LimitCause, u32>::new(),
    );
    let mut wrong = BTreeMap::<&str, (u32, u32)>::new();
    for judged in all {
        let (judge, said) = (judged.judge(), &judged.said);
        for finding in said {
            let verdict = judge.verdict(finding);
            diagram.add(finding.confidence, verdict);
            let (right, false_ones) = wrong.entry(&finding.kind).or_default();
            *right += u32::from(verdict == FindingVerdict::Right);
            *false_ones += u32::from(verdict == FindingVerdict::Wrong);
        }
        let sure: Vec<ReportedFinding> = said
            .iter()
            .filter(|said| said.confidence >= 0.8)
            .cloned()
            .collect();
        for cause in judged.truth.causes() {
            *causes.entry(cause).or_default() += 1;
            *named.entry(cause).or_default() += u32::from(judge.is_named(cause, &sure));
        }
    }
    let _ = writeln!(
        out,
        "\n{} specifications, {failed} failed; a cause saves at least {:.0} %\n",
        all.len(),
        100.0 * CAUSE
    );
    let _ = writeln!(
        out,
        "| confidence | right | wrong | open | share right (95 %) |\n| --- | --- | --- | --- | --- |"
    );
    for bin in &diagram.bins {
        let share = bin
            .share()
            .map_or_else(String::new, |(share, [low, high])| {
                format!(
                    "{:.1} % ({:.1} to {:.1})",
                    100.0 * share,
                    100.0 * low,
                    100.0 * high
                )
            });
        let _ = writeln!(
            out,
            "| {} to {} | {} | {} | {} | {share} |",
            bin.from, bin.to, bin.right, bin.wrong, bin.open
        );
    }
    let _ = writeln!(
        out,
        "\n| cause by removal | times | named with 80 % or more |\n| --- | --- | --- |"
    );
    for (cause, times) in &causes {
        let _ = writeln!(
            out,
            "| {cause:?} | {times} | {} |",
            named.get(cause).copied().unwrap_or(0)
        );
    }
    let own = |cause: &&LimitCause| !matches!(cause, LimitCause::Rate | LimitCause::Delay);
    let sum = |of: &BTreeMap<LimitCause, u32>| {
        of.keys()
            .filter(own)
            .filter_map(|cause| of.get(cause))
            .sum::<u32>()
    };
    let (all_causes, all_named) = (sum(&causes), sum(&named));
    let _ = writeln!(
        out,
        "| all but the path's own | {all_causes} | {all_named} |\n\n| finding | right | wrong |\n| --- | --- | --- |"
    );
    for (kind, (right, wrong)) in &wrong {
        let _ = writeln!(out, "| {kind} | {right} | {wrong} |");
    }
    sets(out, all);
    advice(out, all);
}

/// How often exactly the causes were named.
fn sets(out: &mut String, all: &[&Judged]) {
    let exact = |judged: &&&Judged| {
        let sure: Vec<ReportedFinding> = judged
            .said
            .iter()
            .filter(|said| said.confidence >= 0.8)
            .cloned()
            .collect();
        judged.judge().is_exact(&sure)
    };
    let own = |cause: &LimitCause| matches!(cause, LimitCause::Rate | LimitCause::Delay);
    let _ = writeln!(
        out,
        "\n| causes | specifications | exactly these were named |\n| --- | --- | --- |"
    );
    for n in 0..=3 {
        let those = || {
            let several = |judged: &&&Judged| {
                judged
                    .truth
                    .causes()
                    .iter()
                    .filter(|cause| !own(cause))
                    .count()
                    == n
            };
            all.iter().filter(several)
        };
        let _ = writeln!(
            out,
            "| {n} | {} | {} |",
            those().count(),
            those().filter(exact).count()
        );
    }
}

/// What advice said it is worth, beside what taking the cause away brings.
fn advice(out: &mut String, all: &[&Judged]) {
    let (mut near, mut more, mut less, mut given) = (0, 0, 0, 0);
    for judged in all {
        let (judge, said) = (judged.judge(), &judged.said);
        for finding in said {
            given += finding.gains.len();
            let best = finding.gains.iter().copied().reduce(f64::max);
            let Some((says, is)) = best.zip(judge.worth(finding)) else {
                continue;
            };
            *match says / is {
                ratio if ratio > 1.0 + THIRD => &mut more,
                ratio if ratio < 1.0 - THIRD => &mut less,
                _ => &mut near,
            } += 1;
        }
    }
    let _ = writeln!(
        out,
        "\n{given} pieces of advice say what they are worth.\n\n| best advice of a finding, beside its cause taken away | times |\n| --- | --- |\n| within a third | {near} |\n| says more | {more} |\n| says less | {less} |"
    );
}

/// What advice is worth may differ from what it says by so much.
const THIRD: f64 = 1.0 / 3.0;
