//! Closes the directory of runs that were made, and says what is missing of them and why.

use crate::exit::Error;
use stackline_core::plan::{Plan, World};
use stackline_core::run_record::{RunRecord, WakeUp};
use stackline_report::{Note, ReportHeader};
use stackline_runner::RunWriter;

/// How many reasons are kept of measurements that failed.
const MOST_REASONS: usize = 16;

/// What is known besides the records.
#[derive(Default)]
pub(crate) struct RunFindings {
    /// The cost of waking a thread, if it was measured.
    pub(crate) wake_up: Option<WakeUp>,
    /// Why measurements were given up, in the order in which they were.
    pub(crate) given_up: Vec<Error>,
    pub(crate) notes: Vec<Note>,
}

/// Runs that were made and are written.
pub(crate) struct ClosedRun {
    pub(crate) header: ReportHeader,
    pub(crate) records: Vec<RunRecord>,
    /// Why the runs ended early, or why there are none.
    pub(crate) failed: Option<Error>,
    /// Why something was not kept.
    pub(crate) unkept: Option<Error>,
}

impl ClosedRun {
    /// Closes the directory of a writer. `failed` says why the runs ended early, if they did.
    pub(crate) fn new(
        plan: &Plan,
        writer: RunWriter<'_>,
        failed: Option<Error>,
        known: &RunFindings,
    ) -> Self {
        let run = writer.path().display().to_string();
        let reason = reasons(known.given_up.iter().chain(&failed));
        // Nothing at all was measured: then the first failure is that of the whole.
        let first = known.given_up.first().cloned();
        let failed = failed.or(first.filter(|_| writer.is_empty()));
        let (records, unkept) = writer.finish(reason.is_none(), reason.as_deref());
        let first = plan.measurements.first();
        let header = ReportHeader {
            stackline: env!("CARGO_PKG_VERSION").into(),
            run,
            seed: plan.seed,
            world: first.map_or(World::Live, |measurement| measurement.world),
            wake_up: known.wake_up,
            complete: reason.is_none() && unkept.is_none(),
            running: false,
            reason: reason.or(unkept.as_ref().map(|error| error.message.clone())),
        };
        Self {
            header,
            records,
            failed,
            unkept: unkept.map(Error::from),
        }
    }
}

/// Why runs are missing, in one text; `None` without a failure.
fn reasons<'e>(failures: impl Iterator<Item = &'e Error>) -> Option<String> {
    let reasons: Vec<&str> = failures.map(|fault| fault.message.as_str()).collect();
    if reasons.is_empty() {
        return None;
    }
    let more = reasons.len().saturating_sub(MOST_REASONS);
    let mut text = reasons[..reasons.len() - more].join("; ");
    if more > 0 {
        text += &format!("; and {more} more");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_bounded() {
        let failures = |count: usize| -> Vec<Error> {
            (0..count)
                .map(|n| Error::measurement(format!("line {n}")))
                .collect()
        };
        assert_eq!(reasons(failures(0).iter()), None);
        assert_eq!(reasons(failures(2).iter()).unwrap(), "line 0; line 1");
        let many = reasons(failures(1000).iter()).unwrap();
        assert!(many.ends_with("line 15; and 984 more"), "{many}");
    }
}
