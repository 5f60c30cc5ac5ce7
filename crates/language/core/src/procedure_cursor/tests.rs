//! What the cursor yields, operation by operation.

use super::*;
use crate::distribution::Distribution;
use crate::plan::any_size;
use alloc::string::ToString;
use alloc::vec;

fn data(unit: Size, count: UnitCount) -> DataSpec {
    DataSpec {
        reply: unit.clone(),
        unit,
        count,
        timings: vec![],
        least_drawn: any_size(),
        takes_turns: false,
    }
}

fn walk(cursor: &mut Cursor) -> Vec<CursorOperation> {
    core::iter::from_fn(|| cursor.advance())
        .take(1000)
        .collect()
}

fn get_initiator() -> Vec<ProcedureStep> {
    vec![
        ProcedureStep::Call(OperationCall::StartBulkGet),
        ProcedureStep::Repeat(
            CountArgument::Count,
            vec![ProcedureStep::Call(OperationCall::AwaitDataIndication(
                SizeArgument::Unit,
            ))],
        ),
        ProcedureStep::Call(OperationCall::StopBulkGet),
    ]
}

#[test]
fn a_repeat_of_one_constant_operation_is_one_operation() {
    let mut cursor = Cursor::new(
        &get_initiator(),
        &data(Size::Bytes(1024), UnitCount::Units(1000)),
        Seed::root(1),
    );
    let expected = [
        CursorOperation::StartBulkGet,
        CursorOperation::AwaitDataIndication {
            bytes: 1024,
            times: 1000,
        },
        CursorOperation::StopBulkGet,
    ];
    assert_eq!(walk(&mut cursor), expected);
}

#[test]
fn a_server_of_constant_sizes_is_one_operation() {
    let body = vec![
        ProcedureStep::Call(OperationCall::RpcAwaitCallInd(SizeArgument::Unit)),
        ProcedureStep::Call(OperationCall::RpcReturn(SizeArgument::Reply)),
    ];
    let steps = vec![
        ProcedureStep::Repeat(CountArgument::Count, body),
        ProcedureStep::Call(OperationCall::AwaitDisconnectIndication),
    ];
    let mut cursor = Cursor::new(
        &steps,
        &data(Size::Bytes(32), UnitCount::Units(7)),
        Seed::root(1),
    );
    assert_eq!(
        cursor.advance(),
        Some(CursorOperation::RpcServe {
            request: 32,
            response: 32,
            times: 7
        })
    );
    assert!(!cursor.leave(false));
    assert_eq!(
        cursor.advance(),
        Some(CursorOperation::AwaitDisconnectIndication)
    );
}

#[test]
fn the_last_unit_of_an_amount_is_as_short_as_it_has_to_be() {
    let received = |bytes, times| CursorOperation::AwaitDataIndication { bytes, times };
    let of = |amount| {
        let data = data(Size::Bytes(1000), UnitCount::Amount(amount));
        let all = walk(&mut Cursor::new(&get_initiator(), &data, Seed::root(1)));
        all[1..all.len() - 1].to_vec()
    };
    assert_eq!(of(2001), [received(1000, 2), received(1, 1)]);
    assert_eq!(of(2000), [received(1000, 2)]);
    assert_eq!(of(7), [received(7, 1)]);
}

#[test]
fn all_units_of_the_last_pass_are_short_and_responses_are_not() {
    let body = [
        OperationCall::ReadFile(SizeArgument::Unit),
        OperationCall::RpcCall(SizeArgument::Unit, SizeArgument::Reply),
    ];
    let steps = [ProcedureStep::Repeat(
        CountArgument::Count,
        body.map(ProcedureStep::Call).to_vec(),
    )];
    let mut cursor = Cursor::new(
        &steps,
        &data(Size::Bytes(8), UnitCount::Amount(11)),
        Seed::root(1),
    );
    let call = |request| CursorOperation::RpcCall {
        request,
        response: 8,
        times: 1,
    };
    let read = |bytes| CursorOperation::ReadFile { bytes };
    assert_eq!(walk(&mut cursor), [read(8), call(8), read(3), call(3)]);
}

#[test]
fn a_limit_or_an_ended_stream_before_the_short_unit_leaves_it_out() {
    let put = [ProcedureStep::Repeat(
        CountArgument::Count,
        vec![ProcedureStep::Call(OperationCall::DataRequest(
            SizeArgument::Unit,
        ))],
    )];
    let data = data(Size::Bytes(1000), UnitCount::Amount(2001));
    let mut between = Cursor::new(&put, &data, Seed::root(1));
    assert_eq!(
        between.advance(),
        Some(CursorOperation::DataRequest {
            bytes: 1000,
            times: 2
        })
    );
    let mut within = between.clone();
    between.limit_reached();
    assert_eq!(walk(&mut between), [CursorOperation::EndStream]);
    within.limit_reached();
    within.cut_short();
    assert_eq!(walk(&mut within), []);
    let mut receiver = Cursor::new(&get_initiator(), &data, Seed::root(1));
    receiver.advance();
    assert_eq!(
        receiver.advance(),
        Some(CursorOperation::AwaitDataIndication {
            bytes: 1000,
            times: 2
        })
    );
    receiver.leave(false);
    assert_eq!(walk(&mut receiver), [CursorOperation::StopBulkGet]);
}

#[test]
fn both_sides_draw_the_same_sizes() {
    let unit = Size::Drawn(Distribution::Uniform(1.0, 5000.0));
    let sender = vec![ProcedureStep::Repeat(
        CountArgument::Count,
        vec![ProcedureStep::Call(OperationCall::DataRequest(
            SizeArgument::Unit,
        ))],
    )];
    let seed = Seed::root(9).index(2);
    let mut get = Cursor::new(
        &get_initiator(),
        &data(unit.clone(), UnitCount::Amount(100_000)),
        seed,
    );
    let mut put = Cursor::new(&sender, &data(unit, UnitCount::Amount(100_000)), seed);
    let received: Vec<u64> = walk(&mut get)
        .iter()
        .filter_map(|o| {
            if let CursorOperation::AwaitDataIndication { bytes, times: 1 } = o {
                Some(*bytes)
            } else {
                None
            }
        })
        .collect();
    let sent: Vec<u64> = walk(&mut put)
        .iter()
        .filter_map(|o| {
            if let CursorOperation::DataRequest { bytes, times: 1 } = o {
                Some(*bytes)
            } else {
                None
            }
        })
        .collect();
    assert_eq!(received, sent);
    assert_eq!(received.iter().sum::<u64>(), 100_000);
}

#[test]
fn no_size_is_drawn_below_what_the_stack_carries() {
    let unit = Size::Drawn(Distribution::Exponential(100.0));
    let steps = vec![ProcedureStep::Repeat(
        CountArgument::Count,
        vec![ProcedureStep::Call(OperationCall::DataRequest(
            SizeArgument::Unit,
        ))],
    )];
    let of_the_stack = DataSpec {
        least_drawn: 8,
        ..data(unit.clone(), UnitCount::Units(900))
    };
    let sizes = |data: &DataSpec| -> Vec<u64> {
        let bytes = |o: &CursorOperation| {
            if let CursorOperation::DataRequest { bytes, .. } = o {
                *bytes
            } else {
                0
            }
        };
        walk(&mut Cursor::new(&steps, data, Seed::root(3)))
            .iter()
            .map(bytes)
            .collect()
    };
    let (within, free) = (
        sizes(&of_the_stack),
        sizes(&data(unit, UnitCount::Units(900))),
    );
    assert_eq!(
        (within.iter().min(), within.iter().max()),
        (Some(&8), free.iter().max())
    );
    assert!(free.iter().min() < Some(&8));
    assert!(
        within
            .iter()
            .zip(&free)
            .all(|(bytes, drawn)| *bytes == (*drawn).max(8))
    );
}

#[test]
fn the_limit_ends_a_driving_repeat_after_its_pass_and_ends_the_stream() {
    let steps = vec![ProcedureStep::Repeat(
        CountArgument::Count,
        vec![
            ProcedureStep::Call(OperationCall::DataRequest(SizeArgument::Unit)),
            ProcedureStep::Call(OperationCall::AwaitDataIndication(SizeArgument::Reply)),
        ],
    )];
    let mut cursor = Cursor::new(
        &steps,
        &data(Size::Bytes(8), UnitCount::Unlimited),
        Seed::root(1),
    );
    assert_eq!(
        cursor.advance(),
        Some(CursorOperation::DataRequest { bytes: 8, times: 1 })
    );
    cursor.limit_reached();
    assert_eq!(
        cursor.advance(),
        Some(CursorOperation::AwaitDataIndication { bytes: 8, times: 1 })
    );
    assert_eq!(cursor.advance(), Some(CursorOperation::EndStream));
    assert_eq!(cursor.advance(), None);
}

#[test]
fn an_awaiting_repeat_ignores_the_limit_and_leaves_at_the_end_of_the_stream() {
    let steps = vec![
        ProcedureStep::Repeat(
            CountArgument::Count,
            vec![
                ProcedureStep::Call(OperationCall::RpcAwaitCallInd(SizeArgument::Unit)),
                ProcedureStep::Call(OperationCall::RpcReturn(SizeArgument::Reply)),
            ],
        ),
        ProcedureStep::Call(OperationCall::AwaitDisconnectIndication),
    ];
    let mut cursor = Cursor::new(
        &steps,
        &data(
            Size::Drawn(Distribution::Uniform(8.0, 8.0)),
            UnitCount::Units(5),
        ),
        Seed::root(1),
    );
    cursor.limit_reached();
    assert_eq!(
        cursor.advance(),
        Some(CursorOperation::RpcAwaitCallInd { bytes: 8 })
    );
    assert_eq!(
        cursor.advance(),
        Some(CursorOperation::RpcReturn { bytes: 8 })
    );
    assert_eq!(
        cursor.advance(),
        Some(CursorOperation::RpcAwaitCallInd { bytes: 8 })
    );
    assert!(cursor.leave(true));
    assert_eq!(
        cursor.advance(),
        Some(CursorOperation::AwaitDisconnectIndication)
    );
    assert!(!cursor.leave(true));
}

fn puts_in_a_loop() -> Vec<ProcedureStep> {
    let units = ProcedureStep::Repeat(
        CountArgument::Count,
        vec![ProcedureStep::Call(OperationCall::AwaitDataIndication(
            SizeArgument::Unit,
        ))],
    );
    let put = vec![
        ProcedureStep::Call(OperationCall::AwaitStartBulkPut),
        units,
        ProcedureStep::Call(OperationCall::AwaitStopBulkPut),
    ];
    vec![
        ProcedureStep::Repeat(CountArgument::Times(3), put),
        ProcedureStep::Call(OperationCall::AwaitDisconnectIndication),
    ]
}

#[test]
fn an_ended_transfer_leaves_its_own_repeat_and_a_closed_connection_all_of_them() {
    for (unit, count) in [
        (Size::Bytes(8), 5),
        (Size::Drawn(Distribution::Uniform(8.0, 9.0)), 5),
    ] {
        let mut cursor = Cursor::new(
            &puts_in_a_loop(),
            &data(unit, UnitCount::Units(count)),
            Seed::root(1),
        );
        assert_eq!(cursor.advance(), Some(CursorOperation::AwaitStartBulkPut));
        assert!(matches!(
            cursor.advance(),
            Some(CursorOperation::AwaitDataIndication { .. })
        ));
        cursor.leave(false);
        assert_eq!(cursor.advance(), Some(CursorOperation::AwaitStopBulkPut));
        assert_eq!(cursor.advance(), Some(CursorOperation::AwaitStartBulkPut));
        assert!(matches!(
            cursor.advance(),
            Some(CursorOperation::AwaitDataIndication { .. })
        ));
        cursor.leave(true);
        assert_eq!(
            cursor.advance(),
            Some(CursorOperation::AwaitDisconnectIndication)
        );
    }
}

#[test]
fn a_cut_leaves_before_the_operation_that_drives() {
    let pace = OperationCall::Pace(DelayArgument::Drawn(Distribution::Constant(1.0)));
    let call = OperationCall::RpcCall(SizeArgument::Unit, SizeArgument::Reply);
    let steps = vec![
        ProcedureStep::Repeat(
            CountArgument::Count,
            vec![ProcedureStep::Call(pace), ProcedureStep::Call(call)],
        ),
        ProcedureStep::Call(OperationCall::DisconnectRequest),
    ];
    let mut cursor = Cursor::new(
        &steps,
        &data(Size::Bytes(8), UnitCount::Units(5)),
        Seed::root(1),
    );
    assert!(matches!(cursor.advance(), Some(CursorOperation::Pace(_))));
    assert!(cursor.cut());
    assert_eq!(cursor.advance(), Some(CursorOperation::EndStream));
    assert_eq!(cursor.advance(), Some(CursorOperation::DisconnectRequest));
}

#[test]
fn nested_repeats_and_marks() {
    let inner = ProcedureStep::Repeat(
        CountArgument::Times(2),
        vec![ProcedureStep::Call(OperationCall::Mark("a".to_string()))],
    );
    let steps = vec![ProcedureStep::Repeat(
        CountArgument::Times(2),
        vec![
            inner,
            ProcedureStep::Call(OperationCall::Mark("b".to_string())),
        ],
    )];
    let mut cursor = Cursor::new(
        &steps,
        &data(Size::Bytes(1), UnitCount::Units(1)),
        Seed::root(1),
    );
    let indices: Vec<CursorOperation> = walk(&mut cursor);
    let expected = [0, 0, 1, 0, 0, 1].map(CursorOperation::Mark);
    assert_eq!(indices, expected);
    assert_eq!(cursor.marks(), ["a", "b"]);
}

#[test]
fn an_absent_timing_is_no_operation() {
    let steps = vec![
        ProcedureStep::Call(OperationCall::Delay(DelayArgument::Timing(0))),
        ProcedureStep::Call(OperationCall::DisconnectRequest),
    ];
    let mut cursor = Cursor::new(
        &steps,
        &data(Size::Bytes(1), UnitCount::Units(1)),
        Seed::root(1),
    );
    assert_eq!(walk(&mut cursor), [CursorOperation::DisconnectRequest]);
}

#[test]
fn nothing_is_repeated_zero_times() {
    let mut cursor = Cursor::new(
        &get_initiator(),
        &data(Size::Bytes(1), UnitCount::Units(0)),
        Seed::root(1),
    );
    assert_eq!(
        walk(&mut cursor),
        [CursorOperation::StartBulkGet, CursorOperation::StopBulkGet]
    );
}
