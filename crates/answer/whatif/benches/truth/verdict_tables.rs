//! What judged findings come to, as tables.

use crate::diagnosis::JudgedScenario;
use stackline_truth::LimitCause;
use stackline_truth::judge::CAUSE;
use stackline_verdicts::calibration::Reliability;
use stackline_verdicts::{FindingVerdict, ReportedFinding};
use std::collections::BTreeMap;
use std::fmt::Write;

/// All of them.
pub(crate) fn all(judged: &[&JudgedScenario], failed: usize) -> String {
    let mut out = format!(
        "\n{} specifications, {failed} failed; a cause saves at least {:.0} %\n",
        judged.len(),
        100.0 * CAUSE
    );
    confidence(&mut out, judged);
    causes(&mut out, judged);
    kinds(&mut out, judged);
    sets(&mut out, judged);
    firsts(&mut out, judged);
    advice(&mut out, judged);
    out
}

/// What is said with enough confidence to count.
pub(crate) fn sure(said: &[ReportedFinding]) -> Vec<ReportedFinding> {
    let sure = said.iter().filter(|said| said.confidence >= 0.8);
    sure.cloned().collect()
}

fn confidence(out: &mut String, all: &[&JudgedScenario]) {
    let mut diagram = Reliability::default();
    for judged in all {
        let judge = judged.judge();
        for finding in &judged.said {
            diagram.add(finding.confidence, judge.verdict(finding));
        }
    }
    let _ = writeln!(
        out,
        "\n| confidence | right | wrong | open | share right (95 %) |\n| --- | --- | --- | --- | --- |"
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
}

/// How many of the causes there are were named.
fn causes(out: &mut String, all: &[&JudgedScenario]) {
    let mut rows = BTreeMap::<LimitCause, [u32; 2]>::new();
    let mut sum = [0; 2];
    for judged in all {
        let (judge, sure) = (judged.judge(), sure(&judged.said));
        for cause in judged.truth.causes() {
            let named = u32::from(judge.is_named(cause, &sure));
            let row = rows.entry(cause).or_default();
            *row = [row[0] + 1, row[1] + named];
            if judge.causes().contains(&cause) {
                sum = [sum[0] + 1, sum[1] + named];
            }
        }
    }
    let _ = writeln!(
        out,
        "\n| cause by removal | times | named with 80 % or more |\n| --- | --- | --- |"
    );
    for (cause, [times, named]) in &rows {
        let _ = writeln!(out, "| {cause:?} | {times} | {named} |");
    }
    let _ = writeln!(out, "| all but the path's own | {} | {} |", sum[0], sum[1]);
}

fn kinds(out: &mut String, all: &[&JudgedScenario]) {
    let mut rows = BTreeMap::<&str, [u32; 2]>::new();
    for judged in all {
        for finding in &judged.said {
            let row = rows.entry(&finding.kind).or_default();
            match judged.judge().verdict(finding) {
                FindingVerdict::Right => row[0] += 1,
                FindingVerdict::Wrong => row[1] += 1,
                FindingVerdict::Open => {}
            }
        }
    }
    let _ = writeln!(out, "\n| finding | right | wrong |\n| --- | --- | --- |");
    for (kind, [right, wrong]) in &rows {
        let _ = writeln!(out, "| {kind} | {right} | {wrong} |");
    }
}

/// How often exactly the causes were named.
fn sets(out: &mut String, all: &[&JudgedScenario]) {
    let _ = writeln!(
        out,
        "\n| causes | specifications | exactly these were named |\n| --- | --- | --- |"
    );
    let row = |out: &mut String, name: &str, holds: &dyn Fn(usize) -> bool| {
        let those = || {
            all.iter()
                .filter(|judged| holds(judged.judge().causes().len()))
        };
        let exact = those().filter(|judged| judged.judge().is_exact(&sure(&judged.said)));
        let _ = writeln!(out, "| {name} | {} | {} |", those().count(), exact.count());
    };
    for n in 0..=3 {
        row(out, &n.to_string(), &|causes| causes == n);
    }
    row(out, "any", &|_| true);
}

/// The first finding of each, and those of specifications without a cause.
fn firsts(out: &mut String, all: &[&JudgedScenario]) {
    let mut first = [0; 3];
    let mut alone = [0; 2];
    for judged in all {
        let judge = judged.judge();
        if let Some(said) = judged.said.first() {
            first[judge.verdict(said) as usize] += 1;
        }
        if judge.causes().is_empty() {
            let blamed = sure(&judged.said)
                .iter()
                .any(|said| judge.verdict(said) == FindingVerdict::Wrong);
            alone[usize::from(blamed)] += 1;
        }
    }
    let [right, wrong, open] = first;
    let _ = writeln!(
        out,
        "\nfirst finding: {right} right, {wrong} wrong, {open} neither\nwithout a cause: {} left alone, {} blamed",
        alone[0], alone[1]
    );
}

/// What advice brought when it was followed.
fn advice(out: &mut String, all: &[&JudgedScenario]) {
    let followed = || all.iter().flat_map(|judged| &judged.followed);
    let _ = writeln!(
        out,
        "\n{} pieces of advice were followed with other seeds: {} within a third of what they said, {} made it worse",
        followed().count(),
        followed().filter(|advice| advice.is_near()).count(),
        followed().filter(|advice| advice.harms()).count()
    );
}
