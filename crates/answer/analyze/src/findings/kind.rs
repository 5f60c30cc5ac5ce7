//! What a kind of finding is: its name, its meaning, and the functions that search for it.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::Finding;
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::part::MeasuredPart;

/// A kind of finding. Each kind has a file with a constant of this type, and `KINDS` lists them all.
#[derive(Clone, Copy, Debug)]
pub struct FindingKind {
    /// Its name in JSON.
    pub name: &'static str,
    /// What such a finding means, as in the table of `docs/JSON.md`.
    pub meaning: &'static str,
    /// The functions that search for it.
    pub(crate) find: &'static [Find],
}

/// A function that searches for a kind of finding, by what it looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Find {
    /// In the events of the whole run.
    Run(fn(&FindingEventLog<'_>) -> Option<Finding>),
    /// In a measurement, over all its parts.
    Measurement(fn(&FindingContext<'_>) -> Option<Finding>),
    /// In each part of a measurement, as if it were alone.
    Part(fn(&FindingContext<'_>, &MeasuredPart<'_>) -> Option<Finding>),
    /// In what the findings above leave unexplained, those below `LEAST` among them.
    Rest(fn(&FindingContext<'_>, &[Finding]) -> Option<Finding>),
}

impl FindingKind {
    /// A finding of this kind about a measurement.
    pub(crate) fn finding(
        &self,
        context: &FindingContext<'_>,
        share: f64,
        confidence: f64,
        sentence: String,
    ) -> Finding {
        let measurement = Some(context.measurement.index);
        let (share, confidence) = (share.clamp(0.0, 1.0), confidence.clamp(0.0, 1.0));
        Finding {
            measurement,
            ..self.of_run(share, confidence, sentence)
        }
    }

    /// A finding of this kind about the whole run.
    pub(crate) fn of_run(&self, share: f64, confidence: f64, sentence: String) -> Finding {
        let (evidence, tries) = (Vec::new(), Vec::new());
        Finding {
            kind: self.name,
            sentence,
            confidence,
            share,
            is_of_units: false,
            saves: None,
            evidence,
            tries,
            measurement: None,
            takes: None,
            whole: None,
        }
    }
}
