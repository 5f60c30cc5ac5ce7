//! What an application type does between the start and the stop of its clock, read from its operations. Names say
//! nothing here: a user's own procedure is read as the standard ones are.
//!
//! What fits none of the shapes is refused with the operation that does not fit; nothing is guessed.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use stackline_core::program::{
    Call, CountArgument, DelayArgument, Procedure, Side, SizeArgument, Step, any,
};

/// What happens while the clock runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Data units one way, confirmed at the end.
    Bulk {
        /// Whether they come from the responder.
        get: bool,
        /// Their size.
        unit: SizeArgument,
        /// How many.
        count: CountArgument,
        /// What the sender waits before each.
        waits: Vec<DelayArgument>,
        /// Whether the connection is opened while the clock runs.
        connects: bool,
    },
    /// Calls, one after another.
    Calls {
        /// Sizes of request and response of the calls of one pass.
        calls: Vec<(SizeArgument, SizeArgument)>,
        /// Whether a pass begins at an intended moment, and when the next one is.
        arrival: Option<DelayArgument>,
        /// What the responder waits before its responses of one pass.
        service: Vec<DelayArgument>,
        /// Whether each pass has a connection of its own.
        fresh: bool,
    },
    /// A data unit there and one back, in turn.
    Exchange {
        /// The size there.
        there: SizeArgument,
        /// The size back.
        back: SizeArgument,
        /// What both sides wait in one pass.
        waits: Vec<DelayArgument>,
    },
    /// Connections opened and closed with nothing between.
    Connects {
        /// Whether one begins at an intended moment, and when the next one is.
        arrival: Option<DelayArgument>,
    },
}

/// Reads a procedure.
///
/// # Errors
/// One sentence: what in it no form covers.
pub fn recognise(procedure: &Procedure) -> Result<Shape, String> {
    let measured = measured(procedure)?;
    let connects = measured
        .iter()
        .any(|step| matches!(step, Step::Call(Call::ConnectRequest)));
    let around = |step: &&Step| {
        !matches!(
            step,
            Step::Call(Call::ConnectRequest | Call::DisconnectRequest)
        )
    };
    let core: Vec<&Step> = if connects && measured.len() > 2 {
        measured.iter().filter(around).collect()
    } else {
        measured.iter().collect()
    };
    match core.as_slice() {
        [
            Step::Call(Call::StartBulkGet),
            body @ ..,
            Step::Call(Call::StopBulkGet),
        ] => get(body, procedure, connects),
        [
            Step::Call(Call::StartBulkPut),
            body @ ..,
            Step::Call(Call::StopBulkPut),
        ] => {
            let (unit, count, waits) = sending(body)?;
            none_waits(
                procedure.timed(Side::Responder),
                "the receiver of a bulk transfer",
            )?;
            Ok(Shape::Bulk {
                get: false,
                unit,
                count,
                waits,
                connects,
            })
        }
        [Step::Repeat(_, body)] => turn(&kept(body), procedure, false),
        steps => turn(
            &steps.iter().map(|step| (*step).clone()).collect::<Vec<_>>(),
            procedure,
            connects,
        ),
    }
}

/// What lies between StartMeasurement and StopMeasurement, without what takes no time on the network.
fn measured(procedure: &Procedure) -> Result<Vec<Step>, String> {
    let clock = |step: &Step| {
        matches!(
            step,
            Step::Call(Call::StartMeasurement | Call::StopMeasurement)
        )
    };
    let timed = procedure.timed(Side::Initiator);
    if timed.len() + 2 > procedure.initiator.len() || timed.iter().any(clock) {
        return Err("its clock does not start and stop once, outside every repeat".to_string());
    }
    Ok(kept(timed))
}

fn kept(steps: &[Step]) -> Vec<Step> {
    let silent = |step: &&Step| {
        !matches!(
            step,
            Step::Call(Call::Mark(_) | Call::ReadFile(_) | Call::WriteFile(_))
        )
    };
    steps.iter().filter(silent).cloned().collect()
}

fn get(body: &[&Step], procedure: &Procedure, connects: bool) -> Result<Shape, String> {
    let (count, inner) = one_repeat(body)?;
    let [Step::Call(Call::AwaitDataIndication(unit))] = inner.as_slice() else {
        return Err(unfit(&inner, "AwaitDataIndication alone"));
    };
    let loops = procedure
        .timed(Side::Responder)
        .iter()
        .filter_map(|step| match step {
            Step::Repeat(_, body) if any(body, &|call| matches!(call, Call::DataRequest(_))) => {
                Some(kept(body))
            }
            _ => None,
        });
    let mut waits = Vec::new();
    for body in loops {
        waits = send_waits(&body)?.1;
    }
    Ok(Shape::Bulk {
        get: true,
        unit: *unit,
        count,
        waits,
        connects,
    })
}

fn sending(body: &[&Step]) -> Result<(SizeArgument, CountArgument, Vec<DelayArgument>), String> {
    let (count, inner) = one_repeat(body)?;
    let (unit, waits) = send_waits(&inner)?;
    Ok((unit, count, waits))
}

/// The one repeat of a bulk transfer, or its operations once.
fn one_repeat(body: &[&Step]) -> Result<(CountArgument, Vec<Step>), String> {
    match body {
        [Step::Repeat(count, inner)] => Ok((*count, kept(inner))),
        steps if steps.iter().all(|step| matches!(step, Step::Call(_))) => Ok((
            CountArgument::Times(1),
            steps.iter().map(|step| (*step).clone()).collect(),
        )),
        _ => Err("several repeats in one bulk transfer are in no form".to_string()),
    }
}

/// Waits, then one data unit.
fn send_waits(body: &[Step]) -> Result<(SizeArgument, Vec<DelayArgument>), String> {
    let Some((Step::Call(Call::DataRequest(unit)), before)) = body.split_last() else {
        return Err(unfit(body, "waits and then one DataRequest"));
    };
    let waits: Option<Vec<DelayArgument>> = before.iter().map(wait).collect();
    Ok((
        *unit,
        waits.ok_or_else(|| unfit(body, "waits and then one DataRequest"))?,
    ))
}

fn wait(step: &Step) -> Option<DelayArgument> {
    match step {
        Step::Call(Call::Pace(delay) | Call::Delay(delay)) => Some(delay.clone()),
        _ => None,
    }
}

fn none_waits(steps: &[Step], who: &str) -> Result<(), String> {
    let waits = any(steps, &|call| {
        matches!(call, Call::Pace(_) | Call::Delay(_))
    });
    if waits {
        Err(format!(
            "{who} waits between data units, which is in no form"
        ))
    } else {
        Ok(())
    }
}

/// One pass of calls, exchanges or connections.
fn turn(body: &[Step], procedure: &Procedure, mut fresh: bool) -> Result<Shape, String> {
    let (mut calls, mut arrival, mut waits, mut data) = (Vec::new(), None, Vec::new(), Vec::new());
    for (at, step) in body.iter().enumerate() {
        match step {
            Step::Call(Call::Pace(delay)) if at == 0 => arrival = Some(delay.clone()),
            Step::Call(Call::Delay(delay)) => waits.push(delay.clone()),
            Step::Call(Call::ConnectRequest | Call::DisconnectRequest) => fresh = true,
            Step::Call(Call::RpcCall(request, response)) => calls.push((*request, *response)),
            Step::Call(call @ (Call::DataRequest(_) | Call::AwaitDataIndication(_))) => {
                data.push(call)
            }
            _ => {
                return Err(unfit(
                    &body[at..],
                    "calls, a unit there and one back, or connections",
                ));
            }
        }
    }
    match (calls.is_empty(), data.as_slice()) {
        (false, []) => Ok(Shape::Calls {
            calls,
            arrival,
            service: service(procedure)?,
            fresh,
        }),
        (true, [Call::DataRequest(there), Call::AwaitDataIndication(back)]) if !fresh => {
            waits.extend(arrival);
            waits.extend(all_delays(procedure.timed(Side::Responder))?);
            Ok(Shape::Exchange {
                there: *there,
                back: *back,
                waits,
            })
        }
        // A pause inside a connection is measured with it.
        (true, []) if fresh && waits.is_empty() => {
            none_waits(
                procedure.timed(Side::Responder),
                "the responder of connections without data",
            )?;
            Ok(Shape::Connects { arrival })
        }
        _ => Err(unfit(
            body,
            "calls, a unit there and one back, or connections",
        )),
    }
}

/// What the responder waits in its loop of calls.
fn service(procedure: &Procedure) -> Result<Vec<DelayArgument>, String> {
    let returns = |call: &Call| matches!(call, Call::RpcReturn(_));
    let timed = procedure.timed(Side::Responder);
    let loops = timed.iter().filter_map(|step| match step {
        Step::Repeat(_, body) if any(body, &returns) => Some(body),
        _ => None,
    });
    let bodies: Vec<&Vec<Step>> = loops.collect();
    match bodies.as_slice() {
        [] => all_delays(timed),
        [body] => all_delays(body),
        _ => Err("several loops of responses are in no form".to_string()),
    }
}

fn all_delays(steps: &[Step]) -> Result<Vec<DelayArgument>, String> {
    let mut delays = vec![];
    for step in steps {
        match step {
            Step::Call(Call::Delay(delay)) => delays.push(delay.clone()),
            Step::Call(Call::Pace(_)) => {
                return Err("a responder that keeps a pace of its own is in no form".to_string());
            }
            Step::Call(_) => {}
            Step::Repeat(_, body) => delays.extend(all_delays(body)?),
        }
    }
    Ok(delays)
}

fn unfit(body: &[Step], expected: &str) -> String {
    let found = match body.first() {
        None => "nothing".to_string(),
        Some(Step::Repeat(..)) => "a repeat".to_string(),
        Some(Step::Call(call)) => call.name().to_string(),
    };
    format!("no form covers what it does from {found} on: the forms are for {expected} there")
}

#[cfg(test)]
mod tests {
    use super::*;
    use SizeArgument::{Reply, Unit};

    fn call(call: Call) -> Step {
        Step::Call(call)
    }

    fn measured_by(inner: Vec<Step>, responder: Vec<Step>) -> Result<Shape, String> {
        let mut initiator = vec![call(Call::ConnectRequest), call(Call::StartMeasurement)];
        initiator.extend(inner);
        initiator.extend([call(Call::StopMeasurement), call(Call::DisconnectRequest)]);
        recognise(&Procedure {
            name: "mine".into(),
            timings: vec![],
            initiator,
            responder,
        })
    }

    fn repeat(body: Vec<Step>) -> Step {
        Step::Repeat(CountArgument::Count, body)
    }

    #[test]
    fn bulk_both_ways() {
        let pace = Call::Pace(DelayArgument::Timing(0));
        let send = vec![repeat(vec![
            call(pace.clone()),
            call(Call::DataRequest(Unit)),
        ])];
        let take = repeat(vec![
            call(Call::AwaitDataIndication(Unit)),
            call(Call::WriteFile(Unit)),
        ]);
        let got = measured_by(
            vec![call(Call::StartBulkGet), take, call(Call::StopBulkGet)],
            send.clone(),
        )
        .unwrap();
        let Shape::Bulk {
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
            vec![call(Call::StartBulkPut)],
            send,
            vec![call(Call::StopBulkPut)],
        ]
        .concat();
        assert!(matches!(
            measured_by(put, vec![]).unwrap(),
            Shape::Bulk { get: false, .. }
        ));
    }

    #[test]
    fn calls_and_their_service() {
        let body = vec![
            call(Call::RpcCall(Unit, Reply)),
            call(Call::RpcCall(Reply, Unit)),
        ];
        let delay = call(Call::Delay(DelayArgument::Timing(1)));
        let serve = vec![repeat(vec![
            call(Call::RpcAwaitCallInd(Unit)),
            delay,
            call(Call::RpcReturn(Reply)),
        ])];
        let Shape::Calls {
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
        let pair = vec![call(Call::ConnectRequest), call(Call::DisconnectRequest)];
        assert_eq!(
            measured_by(vec![repeat(pair)], vec![]).unwrap(),
            Shape::Connects { arrival: None }
        );
        let turns = vec![
            call(Call::DataRequest(Unit)),
            call(Call::AwaitDataIndication(Reply)),
        ];
        let shape = measured_by(vec![repeat(turns)], vec![]).unwrap();
        assert_eq!(
            shape,
            Shape::Exchange {
                there: Unit,
                back: Reply,
                waits: vec![]
            }
        );
        let short = vec![
            call(Call::ConnectRequest),
            call(Call::RpcCall(Unit, Unit)),
            call(Call::DisconnectRequest),
        ];
        assert!(matches!(
            measured_by(vec![repeat(short)], vec![]).unwrap(),
            Shape::Calls { fresh: true, .. }
        ));
    }

    #[test]
    fn what_no_form_covers_is_said() {
        let bare = vec![repeat(vec![call(Call::DataRequest(Unit))])];
        assert!(
            measured_by(bare, vec![])
                .unwrap_err()
                .contains("DataRequest")
        );
        assert!(measured_by(vec![], vec![]).unwrap_err().contains("nothing"));
        let nested = vec![repeat(vec![repeat(vec![call(Call::RpcCall(Unit, Unit))])])];
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
        assert!(recognise(&clockless).unwrap_err().contains("clock"));
    }
}
