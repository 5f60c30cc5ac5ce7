//! Counts turns in a procedure: one side sends data units and then waits for what comes back, which takes a round trip each time.

use stackline_core::procedure::{CountArgument, OperationCall, ProcedureStep};

/// The number of turns and of awaited data units in the same steps of a procedure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TurnCount {
    pub(crate) turns: u64,
    pub(crate) awaited: u64,
}

/// The number of passes assumed for a repeat whose count depends on the data: so many that its first and last pass hardly matter.
const PASSES: u64 = 10_000;

impl TurnCount {
    /// Counts the steps of one side.
    pub(crate) fn from_steps(steps: &[ProcedureStep]) -> Self {
        let (mut count, mut has_sent) = (Self::default(), false);
        count.walk(steps, &mut has_sent);
        count
    }

    /// The number of turns in a run in which this many data units came back.
    pub(crate) fn scaled(self, received: u64) -> u64 {
        let turns = u128::from(received) * u128::from(self.turns);
        u64::try_from(turns / u128::from(self.awaited.max(1))).unwrap_or(u64::MAX)
    }

    /// Adds the counts of these steps; `has_sent` says whether a data unit was sent since the last one was awaited.
    fn walk(&mut self, steps: &[ProcedureStep], has_sent: &mut bool) {
        for step in steps {
            match step {
                ProcedureStep::Call(OperationCall::DataRequest(_)) => *has_sent = true,
                ProcedureStep::Call(OperationCall::AwaitDataIndication(_)) => {
                    self.turns += u64::from(std::mem::take(has_sent));
                    self.awaited += 1;
                }
                ProcedureStep::Call(_) => {}
                ProcedureStep::Repeat(times, body) => self.repeat(*times, body, has_sent),
            }
        }
    }

    /// Adds the counts of a repeat. The first pass is counted by itself: only it can follow data units sent before the repeat.
    fn repeat(&mut self, times: CountArgument, body: &[ProcedureStep], has_sent: &mut bool) {
        let times = match times {
            CountArgument::Count => PASSES,
            CountArgument::Times(times) => times,
        };
        if times == 0 {
            return;
        }
        self.walk(body, has_sent);
        let mut one = Self::default();
        one.walk(body, has_sent);
        self.turns = self
            .turns
            .saturating_add(one.turns.saturating_mul(times - 1));
        self.awaited = self
            .awaited
            .saturating_add(one.awaited.saturating_mul(times - 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_core::procedure::SizeArgument;

    fn send() -> ProcedureStep {
        ProcedureStep::Call(OperationCall::DataRequest(SizeArgument::Unit))
    }

    fn wait() -> ProcedureStep {
        ProcedureStep::Call(OperationCall::AwaitDataIndication(SizeArgument::Reply))
    }

    fn repeat(body: Vec<ProcedureStep>) -> ProcedureStep {
        ProcedureStep::Repeat(CountArgument::Count, body)
    }

    #[test]
    fn each_answer_that_is_waited_for_is_a_turn() {
        assert_eq!(
            TurnCount::from_steps(&[repeat(vec![send(), wait()])]).scaled(50),
            50
        );
        let bursts = repeat(vec![
            ProcedureStep::Repeat(CountArgument::Times(8), vec![send()]),
            ProcedureStep::Repeat(CountArgument::Times(8), vec![wait()]),
        ]);
        assert_eq!(TurnCount::from_steps(&[bursts]).scaled(80), 10);
    }

    #[test]
    fn what_goes_one_way_first_and_then_the_other_is_one_turn() {
        let steps = [repeat(vec![send()]), repeat(vec![wait()])];
        assert!(TurnCount::from_steps(&steps).scaled(50) <= 1);
        assert_eq!(TurnCount::from_steps(&[repeat(vec![wait()])]).scaled(50), 0);
    }
}
