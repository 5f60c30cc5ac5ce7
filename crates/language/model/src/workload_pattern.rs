//! Recognises which workload pattern an application type has between `StartMeasurement` and `StopMeasurement`: a bulk
//! transfer, calls, exchanges or connections. Only the operations of the procedure count, not its name: a user's own
//! procedure is read like the predefined ones.
//!
//! A procedure that fits no pattern is refused with the operation that does not fit. The clock runs between the two
//! operations; a pass is one execution of the body of a repeat.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use stackline_core::procedure::{
    CountArgument, DelayArgument, OperationCall, PairSide, Procedure, ProcedureStep, SizeArgument,
    contains_call,
};

/// What an application does while it is measured.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkloadPattern {
    /// Data units in one direction, confirmed at the end.
    Bulk {
        /// Whether the responder sends them.
        get: bool,
        /// Size of a data unit.
        unit: SizeArgument,
        /// Number of data units.
        count: CountArgument,
        /// The waits of the sender before each data unit.
        waits: Vec<DelayArgument>,
        /// Whether the connection is opened while the clock runs.
        connects: bool,
    },
    /// Calls, one after another.
    Calls {
        /// The calls of one pass: size of the request, size of the response.
        calls: Vec<(SizeArgument, SizeArgument)>,
        /// The interval between the intended start times of passes; `None` if a pass begins when the one before has
        /// ended.
        arrival: Option<DelayArgument>,
        /// The waits of the responder before its responses in one pass.
        service: Vec<DelayArgument>,
        /// Whether each pass has a connection of its own.
        fresh: bool,
    },
    /// A data unit from the initiator and one back, alternately.
    Exchange {
        /// Size of the initiator's data unit.
        there: SizeArgument,
        /// Size of the responder's data unit.
        back: SizeArgument,
        /// The waits of both sides in one pass.
        waits: Vec<DelayArgument>,
    },
    /// Connections opened and closed with nothing between.
    Connects {
        /// The interval between the intended start times of connections; `None` if one begins when the one before is
        /// closed.
        arrival: Option<DelayArgument>,
    },
}

/// Recognises the pattern of a procedure.
///
/// # Errors
/// One sentence that says what in the procedure no formula covers.
pub fn recognise(procedure: &Procedure) -> Result<WorkloadPattern, String> {
    let measured = measured(procedure)?;
    let connects = measured
        .iter()
        .any(|step| matches!(step, ProcedureStep::Call(OperationCall::ConnectRequest)));
    let around = |step: &&ProcedureStep| {
        !matches!(
            step,
            ProcedureStep::Call(OperationCall::ConnectRequest | OperationCall::DisconnectRequest)
        )
    };
    let core: Vec<&ProcedureStep> = if connects && measured.len() > 2 {
        measured.iter().filter(around).collect()
    } else {
        measured.iter().collect()
    };
    match core.as_slice() {
        [
            ProcedureStep::Call(OperationCall::StartBulkGet),
            body @ ..,
            ProcedureStep::Call(OperationCall::StopBulkGet),
        ] => get(body, procedure, connects),
        [
            ProcedureStep::Call(OperationCall::StartBulkPut),
            body @ ..,
            ProcedureStep::Call(OperationCall::StopBulkPut),
        ] => {
            let (unit, count, waits) = sending(body)?;
            none_waits(
                procedure.timed(PairSide::Responder),
                "the receiver of a bulk transfer",
            )?;
            Ok(WorkloadPattern::Bulk {
                get: false,
                unit,
                count,
                waits,
                connects,
            })
        }
        [ProcedureStep::Repeat(_, body)] => turn(&kept(body), procedure, false),
        steps => turn(
            &steps.iter().map(|step| (*step).clone()).collect::<Vec<_>>(),
            procedure,
            connects,
        ),
    }
}

/// The initiator's steps between `StartMeasurement` and `StopMeasurement`, without those that take no time on the network.
fn measured(procedure: &Procedure) -> Result<Vec<ProcedureStep>, String> {
    let clock = |step: &ProcedureStep| {
        matches!(
            step,
            ProcedureStep::Call(OperationCall::StartMeasurement | OperationCall::StopMeasurement)
        )
    };
    let timed = procedure.timed(PairSide::Initiator);
    if timed.len() + 2 > procedure.initiator.len() || timed.iter().any(clock) {
        return Err(
            "the procedure does not measure exactly one interval, outside any repeat".to_string(),
        );
    }
    Ok(kept(timed))
}

/// The steps without marks and file operations, which take no time on the network.
fn kept(steps: &[ProcedureStep]) -> Vec<ProcedureStep> {
    let silent = |step: &&ProcedureStep| {
        !matches!(
            step,
            ProcedureStep::Call(
                OperationCall::Mark(_) | OperationCall::ReadFile(_) | OperationCall::WriteFile(_)
            )
        )
    };
    steps.iter().filter(silent).cloned().collect()
}

/// The pattern of a bulk transfer from the responder; its waits are those of the responder's sending loop.
fn get(
    body: &[&ProcedureStep],
    procedure: &Procedure,
    connects: bool,
) -> Result<WorkloadPattern, String> {
    let (count, inner) = one_repeat(body)?;
    let [ProcedureStep::Call(OperationCall::AwaitDataIndication(unit))] = inner.as_slice() else {
        return Err(unfit(&inner, "AwaitDataIndication alone"));
    };
    let loops = procedure
        .timed(PairSide::Responder)
        .iter()
        .filter_map(|step| match step {
            ProcedureStep::Repeat(_, body)
                if contains_call(body, &|call| matches!(call, OperationCall::DataRequest(_))) =>
            {
                Some(kept(body))
            }
            _ => None,
        });
    let mut waits = Vec::new();
    for body in loops {
        waits = send_waits(&body)?.1;
    }
    Ok(WorkloadPattern::Bulk {
        get: true,
        unit: *unit,
        count,
        waits,
        connects,
    })
}

/// Size and number of the data units that the initiator sends, and its waits before each.
fn sending(
    body: &[&ProcedureStep],
) -> Result<(SizeArgument, CountArgument, Vec<DelayArgument>), String> {
    let (count, inner) = one_repeat(body)?;
    let (unit, waits) = send_waits(&inner)?;
    Ok((unit, count, waits))
}

/// Number of passes and body of the only repeat of a bulk transfer; without a repeat, the operations are one pass.
fn one_repeat(body: &[&ProcedureStep]) -> Result<(CountArgument, Vec<ProcedureStep>), String> {
    match body {
        [ProcedureStep::Repeat(count, inner)] => Ok((*count, kept(inner))),
        steps
            if steps
                .iter()
                .all(|step| matches!(step, ProcedureStep::Call(_))) =>
        {
            Ok((
                CountArgument::Times(1),
                steps.iter().map(|step| (*step).clone()).collect(),
            ))
        }
        _ => Err("no closed-form formula covers several repeats in one bulk transfer".to_string()),
    }
}

/// Reads a body of waits followed by one `DataRequest`: the size of the unit, and the waits.
fn send_waits(body: &[ProcedureStep]) -> Result<(SizeArgument, Vec<DelayArgument>), String> {
    let Some((ProcedureStep::Call(OperationCall::DataRequest(unit)), before)) = body.split_last()
    else {
        return Err(unfit(body, "waits followed by one DataRequest"));
    };
    let waits: Option<Vec<DelayArgument>> = before.iter().map(wait).collect();
    Ok((
        *unit,
        waits.ok_or_else(|| unfit(body, "waits followed by one DataRequest"))?,
    ))
}

/// The delay of a Pace or Delay.
fn wait(step: &ProcedureStep) -> Option<DelayArgument> {
    match step {
        ProcedureStep::Call(OperationCall::Pace(delay) | OperationCall::Delay(delay)) => {
            Some(delay.clone())
        }
        _ => None,
    }
}

/// Refuses steps that contain a wait; `who` is the subject of the reason.
fn none_waits(steps: &[ProcedureStep], who: &str) -> Result<(), String> {
    let waits = contains_call(steps, &|call| {
        matches!(call, OperationCall::Pace(_) | OperationCall::Delay(_))
    });
    if waits {
        Err(format!("{who} waits, which no closed-form formula covers"))
    } else {
        Ok(())
    }
}

/// The pattern of one pass of calls, exchanges or connections. `fresh`: each pass has a connection of its own.
fn turn(
    body: &[ProcedureStep],
    procedure: &Procedure,
    mut fresh: bool,
) -> Result<WorkloadPattern, String> {
    let (mut calls, mut arrival, mut waits, mut data) = (Vec::new(), None, Vec::new(), Vec::new());
    for (at, step) in body.iter().enumerate() {
        match step {
            ProcedureStep::Call(OperationCall::Pace(delay)) if at == 0 => {
                arrival = Some(delay.clone())
            }
            ProcedureStep::Call(OperationCall::Delay(delay)) => waits.push(delay.clone()),
            ProcedureStep::Call(
                OperationCall::ConnectRequest | OperationCall::DisconnectRequest,
            ) => fresh = true,
            ProcedureStep::Call(OperationCall::RpcCall(request, response)) => {
                calls.push((*request, *response))
            }
            ProcedureStep::Call(
                call @ (OperationCall::DataRequest(_) | OperationCall::AwaitDataIndication(_)),
            ) => data.push(call),
            _ => {
                return Err(unfit(
                    &body[at..],
                    "calls, a unit in each direction, or connections",
                ));
            }
        }
    }
    match (calls.is_empty(), data.as_slice()) {
        (false, []) => Ok(WorkloadPattern::Calls {
            calls,
            arrival,
            service: service(procedure)?,
            fresh,
        }),
        (
            true,
            [
                OperationCall::DataRequest(there),
                OperationCall::AwaitDataIndication(back),
            ],
        ) if !fresh => {
            waits.extend(arrival);
            waits.extend(all_delays(procedure.timed(PairSide::Responder))?);
            Ok(WorkloadPattern::Exchange {
                there: *there,
                back: *back,
                waits,
            })
        }
        // A connection with a pause in it is refused: the pause would be measured too.
        (true, []) if fresh && waits.is_empty() => {
            none_waits(
                procedure.timed(PairSide::Responder),
                "in connections without data, the responder",
            )?;
            Ok(WorkloadPattern::Connects { arrival })
        }
        _ => Err(unfit(
            body,
            "calls, a unit in each direction, or connections",
        )),
    }
}

/// The responder's delays in its loop of responses.
fn service(procedure: &Procedure) -> Result<Vec<DelayArgument>, String> {
    let returns = |call: &OperationCall| matches!(call, OperationCall::RpcReturn(_));
    let timed = procedure.timed(PairSide::Responder);
    let loops = timed.iter().filter_map(|step| match step {
        ProcedureStep::Repeat(_, body) if contains_call(body, &returns) => Some(body),
        _ => None,
    });
    let bodies: Vec<&Vec<ProcedureStep>> = loops.collect();
    match bodies.as_slice() {
        [] => all_delays(timed),
        [body] => all_delays(body),
        _ => Err("no closed-form formula covers several response loops".to_string()),
    }
}

/// All delays of the responder, also those in repeats, whose body counts once.
fn all_delays(steps: &[ProcedureStep]) -> Result<Vec<DelayArgument>, String> {
    let mut delays = vec![];
    for step in steps {
        match step {
            ProcedureStep::Call(OperationCall::Delay(delay)) => delays.push(delay.clone()),
            ProcedureStep::Call(OperationCall::Pace(_)) => {
                return Err(
                    "no closed-form formula covers a responder with its own pace".to_string(),
                );
            }
            ProcedureStep::Call(_) => {}
            ProcedureStep::Repeat(_, body) => delays.extend(all_delays(body)?),
        }
    }
    Ok(delays)
}

/// The reason for steps that fit no pattern.
fn unfit(body: &[ProcedureStep], expected: &str) -> String {
    let found = match body.first() {
        None => "the end".to_string(),
        Some(ProcedureStep::Repeat(..)) => "a repeat".to_string(),
        Some(ProcedureStep::Call(call)) => call.name().to_string(),
    };
    format!(
        "no closed-form formula covers the procedure from {found} on: expected {expected} there"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use SizeArgument::{Reply, Unit};

    fn call(call: OperationCall) -> ProcedureStep {
        ProcedureStep::Call(call)
    }

    fn measured_by(
        inner: Vec<ProcedureStep>,
        responder: Vec<ProcedureStep>,
    ) -> Result<WorkloadPattern, String> {
        let mut initiator = vec![
            call(OperationCall::ConnectRequest),
            call(OperationCall::StartMeasurement),
        ];
        initiator.extend(inner);
        initiator.extend([
            call(OperationCall::StopMeasurement),
            call(OperationCall::DisconnectRequest),
        ]);
        recognise(&Procedure {
            name: "mine".into(),
            timings: vec![],
            initiator,
            responder,
        })
    }

    fn repeat(body: Vec<ProcedureStep>) -> ProcedureStep {
        ProcedureStep::Repeat(CountArgument::Count, body)
    }

    #[test]
    fn bulk_both_ways() {
        let pace = OperationCall::Pace(DelayArgument::Timing(0));
        let send = vec![repeat(vec![
            call(pace.clone()),
            call(OperationCall::DataRequest(Unit)),
        ])];
        let take = repeat(vec![
            call(OperationCall::AwaitDataIndication(Unit)),
            call(OperationCall::WriteFile(Unit)),
        ]);
        let got = measured_by(
            vec![
                call(OperationCall::StartBulkGet),
                take,
                call(OperationCall::StopBulkGet),
            ],
            send.clone(),
        )
        .unwrap();
        let WorkloadPattern::Bulk {
            get: true,
            waits,
            connects: false,
            count: CountArgument::Count,
            ..
        } = got
        else {
            panic!()
        };
        assert_eq!(waits, [DelayArgument::Timing(0)]);
        let put = [
            vec![call(OperationCall::StartBulkPut)],
            send,
            vec![call(OperationCall::StopBulkPut)],
        ]
        .concat();
        assert!(matches!(
            measured_by(put, vec![]).unwrap(),
            WorkloadPattern::Bulk { get: false, .. }
        ));
    }

    #[test]
    fn calls_and_their_service() {
        let body = vec![
            call(OperationCall::RpcCall(Unit, Reply)),
            call(OperationCall::RpcCall(Reply, Unit)),
        ];
        let delay = call(OperationCall::Delay(DelayArgument::Timing(1)));
        let serve = vec![repeat(vec![
            call(OperationCall::RpcAwaitCallInd(Unit)),
            delay,
            call(OperationCall::RpcReturn(Reply)),
        ])];
        let WorkloadPattern::Calls {
            calls,
            arrival,
            service,
            fresh,
        } = measured_by(vec![repeat(body)], serve).unwrap()
        else {
            panic!()
        };
        assert_eq!(
            (calls.len(), arrival, service.len(), fresh),
            (2, None, 1, false)
        );
    }

    #[test]
    fn connections_and_exchanges() {
        let pair = vec![
            call(OperationCall::ConnectRequest),
            call(OperationCall::DisconnectRequest),
        ];
        assert_eq!(
            measured_by(vec![repeat(pair)], vec![]).unwrap(),
            WorkloadPattern::Connects { arrival: None }
        );
        let turns = vec![
            call(OperationCall::DataRequest(Unit)),
            call(OperationCall::AwaitDataIndication(Reply)),
        ];
        let shape = measured_by(vec![repeat(turns)], vec![]).unwrap();
        assert_eq!(
            shape,
            WorkloadPattern::Exchange {
                there: Unit,
                back: Reply,
                waits: vec![]
            }
        );
        let short = vec![
            call(OperationCall::ConnectRequest),
            call(OperationCall::RpcCall(Unit, Unit)),
            call(OperationCall::DisconnectRequest),
        ];
        assert!(matches!(
            measured_by(vec![repeat(short)], vec![]).unwrap(),
            WorkloadPattern::Calls { fresh: true, .. }
        ));
    }

    #[test]
    fn what_no_form_covers_is_said() {
        let bare = vec![repeat(vec![call(OperationCall::DataRequest(Unit))])];
        assert!(
            measured_by(bare, vec![])
                .unwrap_err()
                .contains("DataRequest")
        );
        assert!(measured_by(vec![], vec![]).unwrap_err().contains("the end"));
        let nested = vec![repeat(vec![repeat(vec![call(OperationCall::RpcCall(
            Unit, Unit,
        ))])])];
        assert!(
            measured_by(nested, vec![])
                .unwrap_err()
                .contains("a repeat")
        );
        let clockless = Procedure {
            name: "x".into(),
            timings: vec![],
            initiator: vec![],
            responder: vec![],
        };
        assert!(recognise(&clockless).unwrap_err().contains("interval"));
    }
}
