//! Everything that kinds of findings look at, computed once a measurement.

use super::endpoints::{self, Outside, Wait};
use super::losses::Losses;
use super::measurement::Measurement;
use super::{Evidence, Finding, Kind, cpu_limit};
use stackline_core::program::Side;
use std::collections::BTreeMap;

/// One measurement and what was computed of it.
#[derive(Debug)]
pub(crate) struct Context<'c> {
    pub(crate) measurement: Measurement<'c>,
    /// What was waited for, with the bytes.
    pub(crate) waits: Vec<Wait>,
    /// Times outside operations, by part of the measurement.
    pub(crate) outside: Vec<BTreeMap<Side, Outside>>,
    /// Processors at their limit.
    pub(crate) processors: Vec<cpu_limit::Processor>,
    pub(crate) losses: Losses,
}

impl<'c> Context<'c> {
    pub(crate) fn of(measurement: Measurement<'c>) -> Self {
        let waits = endpoints::waits(&measurement);
        let outside: Vec<_> =
            (0..measurement.plan.parts.len()).map(|part| endpoints::outside(&measurement, part)).collect();
        let processors = cpu_limit::processors(&measurement);
        let cpu = processors.iter().map(|processor| processor.share).fold(0.0, f64::max);
        let losses = Losses::of(&measurement, &waits, &outside, cpu);
        Self { measurement, waits, outside, processors, losses }
    }

    /// The share of the measured time that one side's endpoints of a part were outside operations, 0 to 1.
    pub(crate) fn outside_share(&self, part: usize, side: Side) -> f64 {
        let Some(about) = self.measurement.parts.iter().find(|about| about.index == part) else { return 0.0 };
        let all = about.elapsed_s * f64::from(about.plan.replicas.max(1));
        self.outside
            .get(part)
            .and_then(|sides| sides.get(&side))
            .map_or(0.0, |outside| (outside.total_s / all).min(1.0))
    }

    /// A finding of this measurement.
    pub(crate) fn finding(&self, kind: Kind, share: f64, confidence: f64, sentence: String) -> Finding {
        let (share, confidence) = (share.clamp(0.0, 1.0), confidence.clamp(0.0, 1.0));
        let measurement = Some(self.measurement.index);
        Finding { kind, sentence, confidence, share, evidence: Vec::new(), tries: Vec::new(), measurement }
    }
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
}

/// A share in words: `12 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}
