//! What is true by removal, and whether findings say so.

use crate::limit_cause::LimitCause;
use crate::scenario::Scenario;
use serde::Serialize;
use std::collections::BTreeMap;

/// Who is without a cause is at least so much sooner done, else it is no cause.
pub const CAUSE: f64 = 0.15;
/// What saves less than this is certainly none; between the two nobody is wrong.
pub const NONE: f64 = 0.04;

/// What each change saves, of the whole time: 0.4 means that without the cause 40 % of the time are gone.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MeasuredTruth {
    /// Savings by change; changes that take nothing away are absent.
    pub saves: BTreeMap<LimitCause, f64>,
}

/// One finding, as whoever names limits said it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportedFinding {
    /// The kind of the finding.
    pub kind: String,
    /// Its sentence, which holds the place.
    pub sentence: String,
    /// How sure it is, 0 to 1.
    pub confidence: f64,
    /// How many times as fast it says the same would be, for each piece of advice that says so.
    pub gains: Vec<f64>,
}

/// What became of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingVerdict {
    /// A cause by removal.
    Right,
    /// None.
    Wrong,
    /// It saves a little, or it says nothing that can be right or wrong.
    Open,
}

impl MeasuredTruth {
    /// From the time it took, and the times without each cause.
    #[must_use]
    pub fn of(took_s: f64, without: &BTreeMap<LimitCause, f64>) -> Self {
        let saves = without
            .iter()
            .map(|(change, other_s)| (*change, 1.0 - other_s / took_s))
            .collect();
        Self { saves }
    }

    /// What it certainly costs time, the most expensive first.
    #[must_use]
    pub fn causes(&self) -> Vec<LimitCause> {
        let mut causes: Vec<(f64, LimitCause)> = self
            .saves
            .iter()
            .filter(|(_, saves)| **saves >= CAUSE)
            .map(|(change, saves)| (*saves, *change))
            .collect();
        causes.sort_by(|a, b| b.0.total_cmp(&a.0));
        causes.into_iter().map(|(_, change)| change).collect()
    }

    /// Whether a finding is right.
    #[must_use]
    pub fn verdict(&self, said: &ReportedFinding, scenario: &Scenario) -> FindingVerdict {
        if said.kind == "healthy" {
            // Distance and rate are the network's own: no fault.
            let faults = self
                .saves
                .iter()
                .filter(|(change, _)| !matches!(change, LimitCause::Rate | LimitCause::Delay));
            let most = faults.map(|(_, saves)| *saves).fold(0.0, f64::max);
            return grade(1.0 - most, 1.0 - NONE, 1.0 - CAUSE);
        }
        // No change takes a window's beginning away: only a shorter distance can show that it is right.
        let wrong = if said.kind == "slow_start" {
            f64::NEG_INFINITY
        } else {
            NONE
        };
        if said.kind == "unexplained" {
            return FindingVerdict::Open;
        }
        let named = |change: &LimitCause| change.is_named_by(&said.kind, &said.sentence, scenario);
        let saves = self
            .saves
            .iter()
            .filter(|(change, _)| named(change))
            .map(|(_, saves)| *saves)
            .fold(0.0, f64::max);
        grade(saves, CAUSE, wrong)
    }

    /// How many times as fast the same is without the cause that a finding names, where its advice takes just that away: the path's own
    /// rate and distance, and copies, are quartered or removed here and halved there.
    #[must_use]
    pub fn worth(&self, said: &ReportedFinding, scenario: &Scenario) -> Option<f64> {
        let named = |change: &LimitCause| change.is_named_by(&said.kind, &said.sentence, scenario);
        let halved = |change: &LimitCause| {
            matches!(
                change,
                LimitCause::Rate | LimitCause::Delay | LimitCause::Copy
            )
        };
        let named = self
            .saves
            .iter()
            .filter(|(change, _)| named(change))
            .collect::<Vec<_>>();
        match named[..] {
            [(change, saves)] if !halved(change) && *saves < 1.0 => Some(1.0 / (1.0 - saves)),
            _ => None,
        }
    }

    /// Whether the causes that are named with some confidence are exactly those there are, but for the path's own rate and distance and
    /// for what saves too little to be called either.
    #[must_use]
    pub fn is_exact(&self, sure: &[ReportedFinding], scenario: &Scenario) -> bool {
        let own = |cause: &LimitCause| matches!(cause, LimitCause::Rate | LimitCause::Delay);
        let missed = self
            .causes()
            .iter()
            .any(|cause| !own(cause) && !self.is_named(*cause, sure, scenario));
        !missed
            && sure
                .iter()
                .all(|said| self.verdict(said, scenario) != FindingVerdict::Wrong)
    }

    /// Whether somebody named that cause.
    #[must_use]
    pub fn is_named(
        &self,
        cause: LimitCause,
        all: &[ReportedFinding],
        scenario: &Scenario,
    ) -> bool {
        all.iter()
            .any(|said| cause.is_named_by(&said.kind, &said.sentence, scenario))
    }
}

fn grade(value: f64, right: f64, wrong: f64) -> FindingVerdict {
    match value {
        value if value >= right => FindingVerdict::Right,
        value if value < wrong => FindingVerdict::Wrong,
        _ => FindingVerdict::Open,
    }
}
