//! Chooses the cores for pairs with both ends on this machine, if the plan names none. A pair is an initiator and its responder.
//!
//! Left alone, the kernel puts the two ends of one stack on one core and those of another stack on two, and a call that wakes another core
//! takes several times as long: results would rank placements, not stacks. So one rule places all pairs. Ends that take turns share a
//! core, since one of them always waits; ends that work at the same time get a core each. Pairs take the cores in turn.

use stackline_core::plan::MeasurementPart;
use stackline_core::procedure::{OperationCall, PairSide, both_ways};

/// Most pairs of a part for which cores are listed; the threads of further pairs start again at the beginning of the list.
const PLACED_PAIRS: usize = 256;

/// The cores of the initiators and of the responders of a part, one per pair; empty if `cores` is.
///
/// `first_pair` is how many pairs of the run were placed before this part.
pub(super) fn cores_of_pairs(
    part: &MeasurementPart,
    cores: &[usize],
    first_pair: usize,
) -> [Vec<usize>; 2] {
    let pairs = (part.replicas as usize).min(PLACED_PAIRS);
    let places = (first_pair..first_pair + pairs).map(|pair| {
        if takes_turns(part) {
            (pair, pair)
        } else {
            // Every further round through the cores begins one core later. With two cores this swaps the ends of every second pair, so
            // that each core runs as many initiators as responders.
            let first = 2 * pair + (2 * pair) / cores.len().max(1);
            (first, first + 1)
        }
    });
    let core = |place: usize| cores.get(place % cores.len().max(1)).copied();
    let (initiators, responders): (Vec<_>, Vec<_>) = places
        .map(|(initiator, responder)| (core(initiator), core(responder)))
        .unzip();
    [initiators, responders].map(|side| side.into_iter().flatten().collect())
}

/// Whether one end of a pair always waits while the other works: remote calls, connections, or data units sent there and back. False for
/// ends that spin while they wait, because each needs a core of its own.
fn takes_turns(part: &MeasurementPart) -> bool {
    let moves_data = part
        .procedure
        .calls(PairSide::Initiator)
        .iter()
        .any(|call| {
            matches!(
                call,
                OperationCall::DataRequest(_)
                    | OperationCall::AwaitDataIndication(_)
                    | OperationCall::StartBulkGet
                    | OperationCall::StartBulkPut
            )
        });
    let spins = part.stack.word("receive") == Some("spin");
    !spins && (!moves_data || both_ways(part.procedure.side(PairSide::Initiator)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_spec::{Available, CheckContext, Overrides, check};

    fn part(text: &str) -> MeasurementPart {
        let tables = crate::stacks::stack_tables();
        let worlds = [Available {
            can: crate::CAPABILITIES,
            stacks: &tables,
        }];
        let context = CheckContext {
            worlds: &worlds,
            read_file: &|_: &str| Err("no file".to_string()),
            cores: &[],
        };
        let plan = check(text, &context, &Overrides::default()).plan.unwrap();
        plan.measurements[0].parts[0].clone()
    }

    #[test]
    fn ends_that_take_turns_share_a_core_whatever_the_stack() {
        for text in [
            "1 rr 32*10 over tcp",
            "1 rr 32*10 over udp",
            "1 rr 32*10 over unix",
            "1 connect_disconnect 0*10 over tcp",
        ] {
            assert_eq!(
                cores_of_pairs(&part(text), &[2, 5], 0),
                [[2], [2]],
                "{text}"
            );
        }
    }

    #[test]
    fn ends_that_work_at_the_same_time_have_a_core_each() {
        for text in [
            "1 bulk_get 1 KiB*10 over tcp",
            "1 bulk_put 1 KiB*10 over unix",
            "1 stream 1000*10 1 Mbit/s over udp",
            "1 rr 32*10 over tcp(receive = spin)",
        ] {
            assert_eq!(
                cores_of_pairs(&part(text), &[2, 5], 0),
                [[2], [5]],
                "{text}"
            );
        }
    }

    #[test]
    fn pairs_take_the_cores_in_turn() {
        let calls = part("1 3 rr 32*10 over tcp");
        assert_eq!(cores_of_pairs(&calls, &[0, 1], 1), [[1, 0, 1], [1, 0, 1]]);
        let data = part("1 3 bulk_get 1 KiB*10 over tcp");
        assert_eq!(cores_of_pairs(&data, &[0, 1], 0), [[0, 1, 0], [1, 0, 1]]);
        let four = [[0, 2, 1], [1, 3, 2]];
        assert_eq!(cores_of_pairs(&data, &[0, 1, 2, 3], 0), four);
        assert_eq!(cores_of_pairs(&data, &[4], 0), [[4, 4, 4], [4, 4, 4]]);
    }
}
