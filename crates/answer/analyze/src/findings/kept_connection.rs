//! Rewrites a procedure that opens a connection in each pass of a repeat so that one connection serves all passes: the change behind the
//! advice to keep connections.

use stackline_core::procedure::{OperationCall, Procedure, ProcedureStep};

/// Moves opening and closing of the connection out of the repeats of both sides: before the start of the clock and after its stop. `None`
/// if the procedure carries no data, or one side does not both open and close a connection.
pub(super) fn keep_connection(procedure: &mut Procedure) -> Option<()> {
    if !procedure.carries_data() {
        return None;
    }
    let Procedure {
        initiator,
        responder,
        ..
    } = procedure;
    *initiator = kept(initiator)?;
    *responder = kept(responder)?;
    Some(())
}

/// The steps of one side with one connection around the measured time; `None` if it does not both open and close one.
fn kept(steps: &[ProcedureStep]) -> Option<Vec<ProcedureStep>> {
    let (mut opens, mut closes) = (None, None);
    let mut inner = without(steps, &mut opens, &mut closes);
    let place = |inner: &[ProcedureStep], wanted: &OperationCall| {
        inner
            .iter()
            .position(|step| matches!(step, ProcedureStep::Call(call) if call == wanted))
    };
    let behind = place(&inner, &OperationCall::StopMeasurement).map_or(inner.len(), |at| at + 1);
    inner.insert(behind, ProcedureStep::Call(closes?));
    let before = place(&inner, &OperationCall::StartMeasurement).unwrap_or(0);
    inner.insert(before, ProcedureStep::Call(opens?));
    Some(inner)
}

/// The steps without the operations that open and close connections; these are put into `opens` and `closes`.
fn without(
    steps: &[ProcedureStep],
    opens: &mut Option<OperationCall>,
    closes: &mut Option<OperationCall>,
) -> Vec<ProcedureStep> {
    let mut left = Vec::new();
    for step in steps {
        match step {
            ProcedureStep::Call(
                call @ (OperationCall::ConnectRequest | OperationCall::AwaitConnectIndication),
            ) => *opens = Some(call.clone()),
            ProcedureStep::Call(
                call
                @ (OperationCall::DisconnectRequest | OperationCall::AwaitDisconnectIndication),
            ) => *closes = Some(call.clone()),
            ProcedureStep::Call(_) => left.push(step.clone()),
            ProcedureStep::Repeat(times, body) => {
                left.push(ProcedureStep::Repeat(*times, without(body, opens, closes)));
            }
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_core::procedure::{CountArgument, SizeArgument};

    fn call(call: OperationCall) -> ProcedureStep {
        ProcedureStep::Call(call)
    }

    #[test]
    fn one_connection_is_there_before_the_clock_and_behind_it() {
        let work = call(OperationCall::RpcCall(
            SizeArgument::Unit,
            SizeArgument::Reply,
        ));
        let repeat = |body| ProcedureStep::Repeat(CountArgument::Count, body);
        let mut procedure = Procedure {
            name: "fetch".into(),
            timings: Vec::new(),
            initiator: vec![
                call(OperationCall::StartMeasurement),
                repeat(vec![
                    call(OperationCall::ConnectRequest),
                    work.clone(),
                    call(OperationCall::DisconnectRequest),
                ]),
                call(OperationCall::StopMeasurement),
            ],
            responder: vec![repeat(vec![
                call(OperationCall::AwaitConnectIndication),
                call(OperationCall::AwaitDisconnectIndication),
            ])],
        };
        assert_eq!(keep_connection(&mut procedure), Some(()));
        let wanted = vec![
            call(OperationCall::ConnectRequest),
            call(OperationCall::StartMeasurement),
            repeat(vec![work]),
            call(OperationCall::StopMeasurement),
            call(OperationCall::DisconnectRequest),
        ];
        assert_eq!(procedure.initiator, wanted);
        assert_eq!(
            procedure.responder,
            vec![
                call(OperationCall::AwaitConnectIndication),
                repeat(Vec::new()),
                call(OperationCall::AwaitDisconnectIndication),
            ]
        );
    }
}
