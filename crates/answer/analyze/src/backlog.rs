//! How long paced calls waited at their own caller because the call before them was not answered yet.
//!
//! Only procedures in which the initiator alone uses `Pace` are judged: if the responder paces too, the recorded lateness is not
//! only that of the callers.

use crate::groups::SummaryGroup;
use crate::statistics::to_f64;
use crate::summary::{RepeatedWork, Summary};
use stackline_core::plan::MeasurementPart;
use stackline_core::procedure::{DelayArgument, OperationCall, PairSide};

/// Least share of the time that callers must be busy: less busy ones are late for other reasons, such as a late wake-up.
const BUSY: f64 = 0.5;
/// Least share of the response time that the wait must be to be reported.
const WORTH: f64 = 0.1;

/// The mean wait of a call for the calls before it, in seconds; `None` if it is less than a tenth of the response time or cannot be
/// attributed to the callers.
pub(crate) fn backlog_s(group: &SummaryGroup<'_>, summary: &Summary) -> Option<f64> {
    let paces = |side| group.parts.iter().any(|part| paces(part, side));
    if !paces(PairSide::Initiator)
        || paces(PairSide::Responder)
        || summary.rate_of != Some(RepeatedWork::Call)
    {
        return None;
    }
    let (response, lateness) = (summary.response_s?, summary.lateness_s?);
    let [calls, late] = [response.n, lateness.n].map(to_f64);
    let callers_s = summary.elapsed_s?.mean * f64::from(summary.runs) * f64::from(summary.replicas);
    let waited_s = lateness.mean * late;
    let busy = (response.mean * calls - waited_s) / callers_s;
    let wait_s = waited_s / calls;
    (busy >= BUSY && wait_s >= WORTH * response.mean).then_some(wait_s)
}

/// Whether a side of a part has a `Pace` with a timing in the specification.
fn paces(part: &MeasurementPart, side: PairSide) -> bool {
    part.procedure
        .calls(side)
        .into_iter()
        .any(|call| match call {
            OperationCall::Pace(DelayArgument::Timing(index)) => {
                part.data.timings.get(*index).is_some()
            }
            OperationCall::Pace(_) => true,
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use crate::statistics::tests::histogram;
    use crate::summarise::summarise;
    use stackline_core::run_record::RunRecord;

    const SECOND: u64 = 1_000_000_000;

    /// Ten calls in ten seconds, each answered `service` after it began, each begun `late` after it was to.
    fn backlog(text: &str, service: u64, late: u64) -> Option<f64> {
        let record = RunRecord {
            replicas: 1,
            elapsed_ns: 10 * SECOND,
            calls: histogram(&[service + late; 10]),
            lateness: histogram(&[late; 10]),
            ..RunRecord::default()
        };
        summarise(&crate::testing::plan(text), &[record])[0].backlog_s
    }

    #[test]
    fn callers_that_fall_behind_and_callers_that_wake_up_late() {
        let paced = "1 rr 64*10 exponential(900 ms) over tcp;";
        let wait = backlog(paced, SECOND, 4 * SECOND).unwrap();
        assert!((wait - 4.0).abs() < 0.04, "{wait}");
        assert_eq!(
            backlog(paced, SECOND / 10_000, SECOND / 5000),
            None,
            "an idle caller whose thread wakes up late"
        );
        assert_eq!(
            backlog(paced, SECOND, SECOND / 20),
            None,
            "a twentieth of the time"
        );
        assert_eq!(
            backlog("1 rr 64*10 over tcp;", SECOND, 4 * SECOND),
            None,
            "nobody said when"
        );
    }
}
