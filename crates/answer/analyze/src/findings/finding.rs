//! What a finding is: a sentence with its evidence and what to try. It finds nothing.

use crate::findings::change::PlanChange;
use serde::Serialize;
use stackline_core::units;
pub(crate) use stackline_core::units::counted;

/// Findings explain at least this share of the measured time.
pub const LEAST: f64 = 0.05;

/// What saves less is no limit by itself.
const IDLE: f64 = 0.03;

/// The kind of a measurement that nothing limits.
pub(crate) const HEALTHY: &str = "healthy";

/// A diagnosis.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The name of its kind, as in the table of `docs/JSON.md`.
    pub kind: &'static str,
    /// What limits, in one sentence with figures.
    pub sentence: String,
    /// How sure that is, 0 to 1.
    pub confidence: f64,
    /// Share of the time of what was measured that it explains, of all parallel parts together, 0 to 1. No time is in two findings of a
    /// measurement.
    pub share: f64,
    /// Whether its share is of data units that never arrived, which costs no time.
    pub is_of_units: bool,
    /// Share of the time that taking it away saves, where that was simulated, 0 to 1: what findings are ranked by then.
    pub saves: Option<f64>,
    /// What proves it.
    pub evidence: Vec<Evidence>,
    /// What would make it better.
    pub tries: Vec<Advice>,
    /// Which measurement it is about, by index in the plan; `None` for the whole run.
    pub measurement: Option<usize>,
    /// What it takes of the time of requests that were traced, where it is about those.
    pub takes: Option<CauseTimeShare>,
}

/// What a cause takes of the time of requests that were traced.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CauseTimeShare {
    /// How many requests have nearly all of it, at the place that is named.
    pub requests: u64,
    /// Of how many.
    pub of_requests: u64,
    /// All of its time, s.
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

/// What would make it better.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// In words, with figures.
    pub what: String,
    /// The same as a change of the plan, where it is one.
    pub change: Option<PlanChange>,
    /// What it is worth, where that was simulated.
    pub expected: Option<ExpectedEffect>,
}

/// What simulated runs are compared by.
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

/// What a change came to in simulated runs with it and without.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ExpectedEffect {
    /// What is compared.
    pub metric: Gauge,
    /// Parts that are compared: of several, figures and gains are geometric means over them.
    pub parts: usize,
    /// Mean over runs without the change, in bit/s, calls a second or s.
    pub now: f64,
    /// With it.
    pub then: f64,
    /// How many times as fast: by the means, and from where to where in nine of ten pairs of runs of one seed (in all of fewer than 20).
    pub times_as_fast: [f64; 3],
    /// Pairs of runs.
    pub runs: usize,
}

impl Advice {
    /// In words.
    pub(crate) fn of(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            change: None,
            expected: None,
        }
    }

    /// As a person reads it: with what it is worth, where that is known.
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
        Self::of(what)
    }
}

impl ExpectedEffect {
    /// `1.83 times as fast, 24.1 Mbit/s instead of 13.2 Mbit/s`.
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

/// Pairs of runs whose gains differ by more say how much.
const SPREAD: f64 = 1.02;

/// One proof.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Evidence {
    /// The observation, in words with figures.
    pub what: String,
    /// From when, reference time, ns.
    pub from_ns: u64,
    /// To when, reference time, ns.
    pub to_ns: u64,
    /// Units it concerns, at most some.
    pub units: Vec<String>,
    /// Events that show it: host and row in that host's file, at most some.
    pub events: Vec<(String, u32)>,
}

impl Finding {
    /// With one more proof.
    pub(crate) fn because(mut self, evidence: Evidence) -> Self {
        self.evidence.push(evidence);
        self
    }

    /// Of data units that never arrived, and not of time.
    pub(crate) fn of_units(mut self) -> Self {
        self.is_of_units = true;
        self
    }

    /// With something to try.
    pub(crate) fn attempt(mut self, what: impl Into<String>) -> Self {
        self.tries.push(Advice::of(what));
        self
    }

    /// The same, unless there is no such thing here.
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

    /// With something to try that is a change of the plan.
    pub(crate) fn attempt_by(mut self, what: impl Into<String>, change: PlanChange) -> Self {
        self.tries.push(Advice {
            change: Some(change),
            ..Advice::of(what)
        });
        self
    }

    /// Whether nothing limits its measurement.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.kind == HEALTHY
    }

    /// The share of the time that taking it away saves, or else that it explains, times how sure it is.
    #[must_use]
    pub fn rank(&self) -> f64 {
        self.saves.unwrap_or(self.share) * self.confidence
    }

    /// Whether taking it away was tried and brought next to nothing.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.saves.is_some_and(|saves| saves < IDLE)
    }
}

/// A share in words: `12 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}
