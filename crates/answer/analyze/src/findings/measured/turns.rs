//! How often one side of a procedure sends data units and then waits for what comes back: each time is a turn, and takes a round trip.

use stackline_core::procedure::{CountArgument, OperationCall, ProcedureStep};

/// Turns, and data units that are awaited, of the same steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TurnCount {
    pub(crate) turns: u64,
    pub(crate) awaited: u64,
}

/// A repeat by the data's own count stands for so many passes: enough that its first and last count for nothing beside the others.
const PASSES: u64 = 10_000;

impl TurnCount {
    /// Of the steps of one side.
    pub(crate) fn of(steps: &[ProcedureStep]) -> Self {
        let (mut count, mut has_sent) = (Self::default(), false);
        count.walk(steps, &mut has_sent);
        count
    }

    /// How many turns there were when so many data units came back.
    pub(crate) fn scaled(self, received: u64) -> u64 {
        let turns = u128::from(received) * u128::from(self.turns);
        u64::try_from(turns / u128::from(self.awaited.max(1))).unwrap_or(u64::MAX)
    }

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

    /// The first pass by itself: what was sent before belongs to it alone.
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
            TurnCount::of(&[repeat(vec![send(), wait()])]).scaled(50),
            50
        );
        let bursts = repeat(vec![
            ProcedureStep::Repeat(CountArgument::Times(8), vec![send()]),
            ProcedureStep::Repeat(CountArgument::Times(8), vec![wait()]),
        ]);
        assert_eq!(TurnCount::of(&[bursts]).scaled(80), 10);
    }

    #[test]
    fn what_goes_one_way_first_and_then_the_other_is_one_turn() {
        let steps = [repeat(vec![send()]), repeat(vec![wait()])];
        assert!(TurnCount::of(&steps).scaled(50) <= 1);
        assert_eq!(TurnCount::of(&[repeat(vec![wait()])]).scaled(50), 0);
    }
}
