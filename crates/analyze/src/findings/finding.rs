//! What a finding is: a sentence with its evidence and what to try. It finds nothing.

use serde::Serialize;

/// Findings explain at least this share of the measured time.
pub const LEAST: f64 = 0.05;

/// The kind of a measurement that nothing limits.
pub(crate) const HEALTHY: &str = "healthy";

/// A diagnosis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The name of its kind, as in the table of `docs/JSON.md`.
    pub kind: &'static str,
    /// What limits, in one sentence with figures.
    pub sentence: String,
    /// How sure that is, 0 to 1.
    pub confidence: f64,
    /// Share of the time of what was measured that it explains, of all parallel parts together, 0 to 1: what findings are
    /// ranked by.
    pub share: f64,
    /// What proves it.
    pub evidence: Vec<Evidence>,
    /// What would make it better.
    pub tries: Vec<String>,
    /// Which measurement it is about, by index in the plan; `None` for the whole run.
    pub measurement: Option<usize>,
}

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

    /// With something to try.
    pub(crate) fn attempt(mut self, what: impl Into<String>) -> Self {
        self.tries.push(what.into());
        self
    }

    /// Whether nothing limits its measurement.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.kind == HEALTHY
    }

    /// The share of the time it explains, times how sure it is.
    #[must_use]
    pub fn rank(&self) -> f64 {
        self.share * self.confidence
    }
}

/// `1 segment`, `2 segments`.
pub(crate) fn counted(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// A share in words: `12 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}
