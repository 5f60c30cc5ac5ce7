//! The types of a finding: a sentence about what limits a run, with its confidence, evidence and advice. Nothing is searched for here.

use crate::findings::change::PlanChange;
use serde::Serialize;
use stackline_core::units;
pub(crate) use stackline_core::units::counted;

/// The least share of the measured time that a cause has to explain to be reported.
pub const LEAST: f64 = 0.05;

/// A cause whose removal saves less than this share of the time limits nothing by itself.
const IDLE: f64 = 0.03;

/// The name of the kind of finding that says that nothing limits a measurement.
pub(crate) const HEALTHY: &str = "healthy";

/// A diagnosis.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The name of its kind, as in the table of kinds in `docs/JSON.md`.
    pub kind: &'static str,
    /// What limits, in one sentence with figures.
    pub sentence: String,
    /// How sure that is, 0 to 1.
    pub confidence: f64,
    /// Share of the time of what was measured that it explains, of all parallel parts together, 0 to 1. No time is in two findings of a
    /// measurement.
    pub share: f64,
    /// `share` with the time that findings of higher rank explain too; `None` before that was taken from it.
    pub whole: Option<f64>,
    /// Whether `share` is a share of all data units (those that never arrived), and not of the time.
    pub is_of_units: bool,
    /// The share of the time that is saved when the cause is removed, 0 to 1; `None` where that was not simulated. Findings are ranked by
    /// this before `share`.
    pub saves: Option<f64>,
    /// The observations that prove it.
    pub evidence: Vec<Evidence>,
    /// What to try against it.
    pub tries: Vec<Advice>,
    /// Which measurement it is about, by index in the plan; `None` for the whole run.
    pub measurement: Option<usize>,
    /// What the cause takes of the time of traced requests; `None` for findings that are not about requests.
    pub takes: Option<CauseTimeShare>,
}

/// What a cause takes of the time of traced requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CauseTimeShare {
    /// How many requests have nearly all of it, at the place that is named.
    pub requests: u64,
    /// The number of all traced requests, of which `requests` are a part.
    pub of_requests: u64,
    /// The time that the cause takes of all requests together, s.
    pub total_s: f64,
    /// Of each of those requests, s.
    pub each_s: f64,
    /// What all requests take that no other was made for, s.
    pub of_s: f64,
    /// What these would take without it, under the limits that remain, s.
    pub without_s: f64,
    /// Which limit remains then, in words; empty where none is met.
    pub limited_by: String,
}

impl CauseTimeShare {
    /// What all requests would take without the cause, in words.
    #[must_use]
    pub fn gain(&self) -> String {
        let limit = match self.limited_by.as_str() {
            "" => String::new(),
            limit => format!("; {limit}"),
        };
        format!(
            "without it, all requests together would take {} instead of {}{limit}",
            units::format_time(self.without_s),
            units::format_time(self.of_s)
        )
    }
}

/// One piece of advice: something to try against the cause of a finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// The advice in words, with figures.
    pub what: String,
    /// The same advice as a change of the plan, where it is one.
    pub change: Option<PlanChange>,
    /// The effect of the change, where it was simulated.
    pub expected: Option<ExpectedEffect>,
}

/// The figure by which simulated runs with and without a change are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Gauge {
    /// Bytes of data units over the measured time.
    Throughput,
    /// Mean response time of calls.
    Response,
    /// Answered calls a second, where calls were lost.
    Calls,
    /// Mean time to connect and disconnect.
    Connect,
    /// The measured time.
    Elapsed,
}

/// The effect of a change, from simulated runs with and without it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ExpectedEffect {
    /// The figure that is compared.
    pub metric: Gauge,
    /// The number of parts that are compared; with several, figures and gains are geometric means over the parts.
    pub parts: usize,
    /// The mean of the figure over runs without the change, in bit/s, calls a second or s, as `metric` has it.
    pub now: f64,
    /// The mean of the figure over runs with the change, in the same unit.
    pub then: f64,
    /// How many times as fast the change makes it: by the means, and the least and the greatest of the middle nine tenths of the pairs
    /// of runs with the same seed (of all pairs if there are fewer than 20).
    pub times_as_fast: [f64; 3],
    /// The share of the measured time that the change saves, from 0 to 1.
    pub saves: f64,
    /// The number of pairs of runs.
    pub runs: usize,
}

impl Advice {
    /// Advice in words alone, without a change of the plan.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            change: None,
            expected: None,
        }
    }

    /// The advice as a person reads it, with its simulated effect where that is known.
    #[must_use]
    pub fn text(&self) -> String {
        let Some(expected) = &self.expected else {
            return self.what.clone();
        };
        let how = self
            .change
            .as_ref()
            .and_then(PlanChange::how)
            .map_or_else(String::new, |how| format!(" {how}"));
        format!("{}; simulated{how}: {}", self.what, expected.text())
    }
}

impl From<&str> for Advice {
    fn from(what: &str) -> Self {
        Self::new(what)
    }
}

impl ExpectedEffect {
    /// The effect in words: `1.83 times as fast, 24.1 Mbit/s instead of 13.2 Mbit/s`.
    #[must_use]
    pub fn text(&self) -> String {
        let [times, least, greatest] = self.times_as_fast;
        let value = |value| match self.metric {
            Gauge::Throughput => units::format_rate(value),
            Gauge::Calls => format!("{value:.1} answered calls a second"),
            Gauge::Response | Gauge::Connect | Gauge::Elapsed => units::format_time(value),
        };
        let of_parts = if self.parts > 1 {
            let of = match self.metric {
                Gauge::Throughput => "together",
                _ => "on average",
            };
            format!(" ({} parts {of})", self.parts)
        } else {
            String::new()
        };
        let spread = if greatest / least > SPREAD {
            format!(
                " ({least:.2} to {greatest:.2} in {} pairs of runs)",
                self.runs
            )
        } else {
            String::new()
        };
        format!(
            "{times:.2} times as fast{spread}, {} instead of {}{of_parts}",
            value(self.then),
            value(self.now)
        )
    }
}

/// If the greatest gain of a pair of runs is more than this times the least, the text gives both.
const SPREAD: f64 = 1.02;

/// One observation that proves a finding.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Evidence {
    /// The observation, in words with figures.
    pub what: String,
    /// When the observed time begins, reference time, ns.
    pub from_ns: u64,
    /// When the observed time ends, reference time, ns.
    pub to_ns: u64,
    /// The first few of the units that it concerns.
    pub units: Vec<String>,
    /// The first few of the events that show it: host, and row in that host's file.
    pub events: Vec<(String, u32)>,
}

impl Finding {
    /// Adds a piece of evidence.
    pub(crate) fn because(mut self, evidence: Evidence) -> Self {
        self.evidence.push(evidence);
        self
    }

    /// Marks `share` as a share of data units that never arrived, and not of time.
    pub(crate) fn of_units(mut self) -> Self {
        self.is_of_units = true;
        self
    }

    /// Adds advice in words.
    pub(crate) fn attempt(mut self, what: impl Into<String>) -> Self {
        self.tries.push(Advice::new(what));
        self
    }

    /// As [`Finding::attempt_by`], but adds nothing if `is_not`.
    pub(super) fn attempt_by_unless(
        self,
        is_not: bool,
        advice: String,
        change: PlanChange,
    ) -> Self {
        if is_not {
            self
        } else {
            self.attempt_by(advice, change)
        }
    }

    /// Adds advice that is a change of the plan.
    pub(crate) fn attempt_by(mut self, what: impl Into<String>, change: PlanChange) -> Self {
        self.tries.push(Advice {
            change: Some(change),
            ..Advice::new(what)
        });
        self
    }

    /// Whether this finding says that nothing limits its measurement.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.kind == HEALTHY
    }

    /// By what findings are sorted: the share of the time that removing the cause saves, or if unknown the share that it explains, times
    /// the confidence.
    #[must_use]
    pub fn rank(&self) -> f64 {
        self.saves.unwrap_or(self.share) * self.confidence
    }

    /// Whether removing the cause was simulated and saved next to nothing.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.saves.is_some_and(|saves| saves < IDLE)
    }
}

/// A share in words: `12 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}
