//! Findings of random specifications beside what is true by removal.

use crate::followed_advice::{FollowedAdvice, follow};
use crate::runs::{RunPlace, measured, plan};
use crate::verdict_tables;
use stackline_analyze::findings::Finding;
use stackline_testing::seeds::for_each_seed;
use stackline_truth::judge::{MeasuredTruth, seconds_for_all};
use stackline_truth::{LimitCause, Scenario};
use stackline_verdicts::{FindingJudge, FindingVerdict, ReportedFinding};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Instant;

/// One specification, judged.
pub(crate) struct JudgedScenario {
    pub(crate) scenario: Scenario,
    pub(crate) truth: MeasuredTruth,
    pub(crate) said: Vec<ReportedFinding>,
    pub(crate) followed: Vec<FollowedAdvice>,
}

impl JudgedScenario {
    pub(crate) const fn judge(&self) -> FindingJudge<'_> {
        FindingJudge {
            truth: &self.truth,
            scenario: &self.scenario,
        }
    }
}

/// All that were judged, or what went wrong, by seed.
pub(crate) struct JudgedScenarios(Vec<(u64, Result<JudgedScenario, String>)>);

impl JudgedScenarios {
    /// Judges the specifications of seeds from `from` on, until one of the limits is reached.
    pub(crate) fn judge(from: u64, count: u64, until: Instant) -> Self {
        Self(for_each_seed(from, count, until, RunPlace::new, one))
    }

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
        let judged: Vec<&JudgedScenario> = self
            .0
            .iter()
            .filter_map(|(_, judged)| judged.as_ref().ok())
            .collect();
        verdict_tables::all(&judged, self.0.len() - judged.len())
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

fn one(place: &RunPlace, seed: u64) -> Result<JudgedScenario, String> {
    let scenario = Scenario::draw(seed);
    let plan = plan(&scenario)?;
    let run = place.diagnosed(&plan)?;
    let mut without = BTreeMap::new();
    for change in LimitCause::ALL {
        if let Some(other) = change.without(&scenario) {
            let record = measured(&self::plan(&other)?, seed)?;
            without.insert(change, seconds_for_all(&record));
        }
    }
    Ok(JudgedScenario {
        truth: MeasuredTruth::new(seconds_for_all(&run.record), &without),
        said: run.findings.iter().map(reported).collect(),
        followed: follow(&plan, &run.findings),
        scenario,
    })
}

fn reported(finding: &Finding) -> ReportedFinding {
    ReportedFinding {
        kind: finding.kind.to_owned(),
        sentence: finding.sentence.clone(),
        confidence: finding.confidence,
        share_of_units: finding.is_of_units.then_some(finding.share),
    }
}

fn line(out: &mut String, seed: u64, judged: &Result<JudgedScenario, String>) {
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
    for advice in judged
        .followed
        .iter()
        .filter(|advice| !advice.is_near() || advice.harms())
    {
        let _ = writeln!(
            out,
            "    ADVICE said {:.2}, came {:.2}: {}",
            advice.said, advice.came, advice.what
        );
    }
    if !judged.judge().is_exact(&verdict_tables::sure(&judged.said)) {
        let _ = writeln!(out, "    NOT EXACT");
    }
}
