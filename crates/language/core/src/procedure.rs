//! A benchmark procedure (SPIMS sections 3 and 7.1) as steps over communication operations.
//!
//! Sizes and delays are still symbolic here: `unit`, `reply`, a timing of the data specification. The cursor draws them.

use crate::distribution::Distribution;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Which end of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairSide {
    /// Starts the communication and holds the clock.
    Initiator,
    /// Answers.
    Responder,
}

impl PairSide {
    /// Its place in a pair of things: the initiator's is the first.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Initiator => 0,
            Self::Responder => 1,
        }
    }

    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Initiator => Self::Responder,
            Self::Responder => Self::Initiator,
        }
    }
}

/// How large a data unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SizeArgument {
    /// The first size of the data specification.
    Unit,
    /// Its second size; the first when there is only one.
    Reply,
    /// Written in the procedure itself, in bytes.
    Bytes(u64),
}

/// How often a repeat goes round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountArgument {
    /// As the data specification says.
    Count,
    /// Written in the procedure itself.
    Times(u64),
}

/// How long a delay is, in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelayArgument {
    /// The timing of that position in the timing list; no delay when the list is shorter.
    Timing(usize),
    /// Written in the procedure itself.
    Drawn(Distribution),
}

/// One communication or local operation of DESIGN section 5, with symbolic arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationCall {
    /// Opens a connection.
    ConnectRequest,
    /// Waits until the peer opens one.
    AwaitConnectIndication,
    /// Closes the connection.
    DisconnectRequest,
    /// Waits until the peer closes it.
    AwaitDisconnectIndication,
    /// Requests that the peer sends in bulk.
    StartBulkGet,
    /// Waits for that.
    AwaitStartBulkGet,
    /// Ends a bulk get: everything has arrived.
    StopBulkGet,
    /// Ends a bulk get at the sender.
    AwaitStopBulkGet,
    /// Announces bulk data.
    StartBulkPut,
    /// Waits for that.
    AwaitStartBulkPut,
    /// Ends a bulk put: returns when the peer confirms that everything has arrived.
    StopBulkPut,
    /// Confirms that.
    AwaitStopBulkPut,
    /// Hands one data unit over.
    DataRequest(SizeArgument),
    /// Waits for one data unit.
    AwaitDataIndication(SizeArgument),
    /// Sends a request and waits for its response.
    RpcCall(SizeArgument, SizeArgument),
    /// Waits for a request.
    RpcAwaitCallInd(SizeArgument),
    /// Sends the response.
    RpcReturn(SizeArgument),
    /// Starts the clock.
    StartMeasurement,
    /// Stops it.
    StopMeasurement,
    /// Waits, counted from now.
    Delay(DelayArgument),
    /// Waits for the next intended moment, counted from the last intended moment; what follows is timed from it.
    Pace(DelayArgument),
    /// Reads from the source FILE of this end.
    ReadFile(SizeArgument),
    /// Writes to the destination FILE of this end.
    WriteFile(SizeArgument),
    /// Notes the time since the clock started, under a name.
    Mark(String),
}

/// The arguments an operation takes in the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationArguments {
    /// None.
    Nothing,
    /// One size.
    Size,
    /// Two sizes: request and response.
    TwoSizes,
    /// A timing name or a distribution.
    Delay,
    /// A name.
    Name,
}

/// Name, arguments, and the side that may use it (`None`: both). The language manual and `check` read this table.
pub const OPERATIONS: &[(&str, OperationArguments, Option<PairSide>)] = &[
    (
        "ConnectRequest",
        OperationArguments::Nothing,
        Some(PairSide::Initiator),
    ),
    (
        "AwaitConnectIndication",
        OperationArguments::Nothing,
        Some(PairSide::Responder),
    ),
    (
        "DisconnectRequest",
        OperationArguments::Nothing,
        Some(PairSide::Initiator),
    ),
    (
        "AwaitDisconnectIndication",
        OperationArguments::Nothing,
        Some(PairSide::Responder),
    ),
    (
        "StartBulkGet",
        OperationArguments::Nothing,
        Some(PairSide::Initiator),
    ),
    (
        "AwaitStartBulkGet",
        OperationArguments::Nothing,
        Some(PairSide::Responder),
    ),
    (
        "StopBulkGet",
        OperationArguments::Nothing,
        Some(PairSide::Initiator),
    ),
    (
        "AwaitStopBulkGet",
        OperationArguments::Nothing,
        Some(PairSide::Responder),
    ),
    (
        "StartBulkPut",
        OperationArguments::Nothing,
        Some(PairSide::Initiator),
    ),
    (
        "AwaitStartBulkPut",
        OperationArguments::Nothing,
        Some(PairSide::Responder),
    ),
    (
        "StopBulkPut",
        OperationArguments::Nothing,
        Some(PairSide::Initiator),
    ),
    (
        "AwaitStopBulkPut",
        OperationArguments::Nothing,
        Some(PairSide::Responder),
    ),
    ("DataRequest", OperationArguments::Size, None),
    ("AwaitDataIndication", OperationArguments::Size, None),
    (
        "RPCCall",
        OperationArguments::TwoSizes,
        Some(PairSide::Initiator),
    ),
    (
        "RPCAwaitCallInd",
        OperationArguments::Size,
        Some(PairSide::Responder),
    ),
    (
        "RPCReturn",
        OperationArguments::Size,
        Some(PairSide::Responder),
    ),
    (
        "StartMeasurement",
        OperationArguments::Nothing,
        Some(PairSide::Initiator),
    ),
    (
        "StopMeasurement",
        OperationArguments::Nothing,
        Some(PairSide::Initiator),
    ),
    ("Delay", OperationArguments::Delay, None),
    ("Pace", OperationArguments::Delay, None),
    ("ReadFile", OperationArguments::Size, None),
    ("WriteFile", OperationArguments::Size, None),
    ("Mark", OperationArguments::Name, None),
];

impl OperationCall {
    /// The sizes it has as its arguments.
    #[must_use]
    pub const fn sizes(&self) -> [Option<SizeArgument>; 2] {
        match self {
            Self::DataRequest(size)
            | Self::AwaitDataIndication(size)
            | Self::RpcAwaitCallInd(size)
            | Self::RpcReturn(size)
            | Self::ReadFile(size)
            | Self::WriteFile(size) => [Some(*size), None],
            Self::RpcCall(request, response) => [Some(*request), Some(*response)],
            _ => [None, None],
        }
    }

    /// The name in the language.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::ConnectRequest => "ConnectRequest",
            Self::AwaitConnectIndication => "AwaitConnectIndication",
            Self::DisconnectRequest => "DisconnectRequest",
            Self::AwaitDisconnectIndication => "AwaitDisconnectIndication",
            Self::StartBulkGet => "StartBulkGet",
            Self::AwaitStartBulkGet => "AwaitStartBulkGet",
            Self::StopBulkGet => "StopBulkGet",
            Self::AwaitStopBulkGet => "AwaitStopBulkGet",
            Self::StartBulkPut => "StartBulkPut",
            Self::AwaitStartBulkPut => "AwaitStartBulkPut",
            Self::StopBulkPut => "StopBulkPut",
            Self::AwaitStopBulkPut => "AwaitStopBulkPut",
            Self::DataRequest(_) => "DataRequest",
            Self::AwaitDataIndication(_) => "AwaitDataIndication",
            Self::RpcCall(..) => "RPCCall",
            Self::RpcAwaitCallInd(_) => "RPCAwaitCallInd",
            Self::RpcReturn(_) => "RPCReturn",
            Self::StartMeasurement => "StartMeasurement",
            Self::StopMeasurement => "StopMeasurement",
            Self::Delay(_) => "Delay",
            Self::Pace(_) => "Pace",
            Self::ReadFile(_) => "ReadFile",
            Self::WriteFile(_) => "WriteFile",
            Self::Mark(_) => "Mark",
        }
    }

    /// Whether it has nothing to do with the peer.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        matches!(
            self,
            Self::StartMeasurement
                | Self::StopMeasurement
                | Self::Delay(_)
                | Self::Pace(_)
                | Self::ReadFile(_)
                | Self::WriteFile(_)
                | Self::Mark(_)
        )
    }

    /// Whether it moves a data unit, or half of a call.
    const fn carries(&self) -> bool {
        matches!(
            self,
            Self::DataRequest(_)
                | Self::AwaitDataIndication(_)
                | Self::RpcCall(..)
                | Self::RpcAwaitCallInd(_)
                | Self::RpcReturn(_)
        )
    }

    /// Whether it moves the conversation on by itself. A time limit ends a repeat on the side whose first
    /// operation drives; the other side follows when the stream ends.
    #[must_use]
    pub const fn drives(&self) -> Option<bool> {
        match self {
            Self::ConnectRequest
            | Self::StartBulkGet
            | Self::StartBulkPut
            | Self::DataRequest(_)
            | Self::RpcCall(..) => Some(true),
            Self::AwaitConnectIndication
            | Self::AwaitDisconnectIndication
            | Self::AwaitStartBulkGet
            | Self::AwaitStartBulkPut
            | Self::AwaitDataIndication(_)
            | Self::RpcAwaitCallInd(_) => Some(false),
            _ => None,
        }
    }
}

/// A statement of a procedure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcedureStep {
    /// One operation.
    Call(OperationCall),
    /// The body, several times.
    Repeat(CountArgument, Vec<Self>),
}

/// Whether an operation somewhere in the steps passes the test.
pub fn contains_call(steps: &[ProcedureStep], test: &impl Fn(&OperationCall) -> bool) -> bool {
    steps.iter().any(|step| match step {
        ProcedureStep::Call(call) => test(call),
        ProcedureStep::Repeat(_, body) => contains_call(body, test),
    })
}

/// Whether data units or calls lie before the start or behind the stop of the clock that these steps have.
#[must_use]
pub fn moves_outside_clock(steps: &[ProcedureStep]) -> bool {
    let place = |wanted: OperationCall| {
        steps
            .iter()
            .position(|step| *step == ProcedureStep::Call(wanted.clone()))
    };
    let (start, stop) = (
        place(OperationCall::StartMeasurement),
        place(OperationCall::StopMeasurement),
    );
    let moves = |part: Option<&[ProcedureStep]>| {
        part.is_some_and(|part| contains_call(part, &OperationCall::carries))
    };
    moves(start.map(|start| &steps[..start])) || moves(stop.map(|stop| &steps[stop..]))
}

/// Whether connections come and go in a repeat, so that none lasts from clock start to stop.
#[must_use]
pub fn repeats_connections(steps: &[ProcedureStep]) -> bool {
    let connects = |call: &OperationCall| {
        matches!(
            call,
            OperationCall::ConnectRequest | OperationCall::AwaitConnectIndication
        )
    };
    steps.iter().any(
        |step| matches!(step, ProcedureStep::Repeat(_, body) if contains_call(body, &connects)),
    )
}

/// Whether data units begin at either end, from the view of one of them; a call and its response begin at the initiator.
#[must_use]
pub fn both_ways(steps: &[ProcedureStep]) -> bool {
    let sends = |call: &OperationCall| {
        matches!(
            call,
            OperationCall::DataRequest(_) | OperationCall::RpcCall(..)
        )
    };
    let takes = |call: &OperationCall| {
        matches!(
            call,
            OperationCall::AwaitDataIndication(_) | OperationCall::RpcAwaitCallInd(_)
        )
    };
    contains_call(steps, &sends) && contains_call(steps, &takes)
}

/// How many of the responder's statements answer these of the initiator: a call is two.
fn exchanges(steps: &[ProcedureStep]) -> usize {
    let of = |step: &ProcedureStep| match step {
        ProcedureStep::Call(call) if call.is_local() => 0,
        ProcedureStep::Call(OperationCall::RpcCall(..)) => 2,
        ProcedureStep::Call(_) => 1,
        ProcedureStep::Repeat(..) => usize::from(communicates(step)),
    };
    steps.iter().map(of).sum()
}

fn communicates(step: &ProcedureStep) -> bool {
    contains_call(core::slice::from_ref(step), &|call| !call.is_local())
}

/// The place behind so many statements that communicate.
fn place_behind(steps: &[ProcedureStep], count: usize) -> usize {
    let places = steps
        .iter()
        .enumerate()
        .filter(|(_, step)| communicates(step))
        .map(|(at, _)| at + 1);
    places.take(count).last().unwrap_or(0)
}

/// An application type: a pair of benchmark procedures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Procedure {
    /// Its name in the language.
    pub name: String,
    /// Names of the timing list's entries, in order.
    pub timings: Vec<String>,
    /// What the initiator does.
    pub initiator: Vec<ProcedureStep>,
    /// What the responder does.
    pub responder: Vec<ProcedureStep>,
}

impl Procedure {
    /// The steps of one side.
    #[must_use]
    pub fn side(&self, side: PairSide) -> &[ProcedureStep] {
        match side {
            PairSide::Initiator => &self.initiator,
            PairSide::Responder => &self.responder,
        }
    }

    /// The statements of one side that lie within the initiator's clock. The sides match operation by operation, so what the
    /// responder does meanwhile is found by counting; local operations at its edges count as within. All of it where they do not match.
    #[must_use]
    pub fn timed(&self, side: PairSide) -> &[ProcedureStep] {
        let Some((start, stop)) = self.clock() else {
            return self.side(side);
        };
        if side == PairSide::Initiator {
            return &self.initiator[start + 1..stop];
        }
        let answers = self
            .responder
            .iter()
            .filter(|step| communicates(step))
            .count();
        if answers != exchanges(&self.initiator) {
            return &self.responder;
        }
        let before = exchanges(&self.initiator[..start]);
        let within = exchanges(&self.initiator[start..stop]);
        let from = place_behind(&self.responder, before);
        let length = place_behind(&self.responder[from..], within);
        &self.responder[from..from + length]
    }

    /// The steps of one side as its endpoint walks them. Where data units or calls lie outside the clock, the responder's have a
    /// start and a stop of its own counts in the same place.
    #[must_use]
    pub fn walked(&self, side: PairSide) -> Vec<ProcedureStep> {
        let steps = self.side(side);
        let Some((start, stop)) = self.clock().filter(|_| side == PairSide::Responder) else {
            return steps.to_vec();
        };
        let timed = self.timed(side);
        let outside = |part: &[ProcedureStep]| contains_call(part, &OperationCall::carries);
        let from = place_behind(steps, exchanges(&self.initiator[..start]));
        let (before, after) = (&steps[..from], &steps[from + timed.len()..]);
        let mark = |wanted: bool, call: OperationCall| wanted.then_some(ProcedureStep::Call(call));
        let mut walked = before.to_vec();
        walked.extend(mark(
            outside(&self.initiator[..start]),
            OperationCall::StartMeasurement,
        ));
        walked.extend_from_slice(timed);
        walked.extend(mark(
            outside(&self.initiator[stop..]),
            OperationCall::StopMeasurement,
        ));
        walked.extend_from_slice(after);
        walked
    }

    /// Where the initiator's clock starts and stops.
    fn clock(&self) -> Option<(usize, usize)> {
        let place = |wanted: &OperationCall| {
            self.initiator
                .iter()
                .position(|step| matches!(step, ProcedureStep::Call(call) if call == wanted))
        };
        place(&OperationCall::StartMeasurement)
            .zip(place(&OperationCall::StopMeasurement))
            .filter(|(start, stop)| start < stop)
    }

    /// Every operation of one side, in the order written.
    #[must_use]
    pub fn calls(&self, side: PairSide) -> Vec<&OperationCall> {
        fn gather<'s>(steps: &'s [ProcedureStep], into: &mut Vec<&'s OperationCall>) {
            for step in steps {
                match step {
                    ProcedureStep::Call(call) => into.push(call),
                    ProcedureStep::Repeat(_, body) => gather(body, into),
                }
            }
        }
        let mut calls = Vec::new();
        gather(self.side(side), &mut calls);
        calls
    }

    /// Whether its connections carry data units; `connect_disconnect` is the one of the prelude that does not.
    #[must_use]
    pub fn carries_data(&self) -> bool {
        self.calls(PairSide::Initiator).iter().any(|call| {
            matches!(
                call,
                OperationCall::DataRequest(_)
                    | OperationCall::AwaitDataIndication(_)
                    | OperationCall::RpcCall(..)
                    | OperationCall::StartBulkGet
                    | OperationCall::StartBulkPut
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A unit, a call and a repeat of units, of which the initiator times the middle one.
    fn warmed() -> Procedure {
        use OperationCall::{
            AwaitConnectIndication, AwaitDataIndication, ConnectRequest, DataRequest,
        };
        let (step, unit) = (ProcedureStep::Call, SizeArgument::Unit);
        let times = |call: OperationCall| {
            ProcedureStep::Repeat(CountArgument::Times(3), alloc::vec![step(call)])
        };
        Procedure {
            name: "warmed".into(),
            timings: Vec::new(),
            initiator: alloc::vec![
                step(ConnectRequest),
                times(DataRequest(unit)),
                step(OperationCall::StartMeasurement),
                step(OperationCall::Mark("m".into())),
                step(OperationCall::RpcCall(unit, unit)),
                step(OperationCall::StopMeasurement),
                times(DataRequest(unit)),
            ],
            responder: alloc::vec![
                step(AwaitConnectIndication),
                times(AwaitDataIndication(unit)),
                step(OperationCall::RpcAwaitCallInd(unit)),
                step(OperationCall::RpcReturn(unit)),
                times(AwaitDataIndication(unit)),
            ],
        }
    }

    #[test]
    fn the_responder_counts_where_the_clock_runs() {
        let procedure = warmed();
        let names = |steps: &[ProcedureStep]| -> Vec<&str> {
            let name = |step: &ProcedureStep| {
                if let ProcedureStep::Call(call) = step {
                    call.name()
                } else {
                    "repeat"
                }
            };
            steps.iter().map(name).collect()
        };
        assert_eq!(
            names(procedure.timed(PairSide::Initiator)),
            ["Mark", "RPCCall"]
        );
        assert_eq!(
            names(procedure.timed(PairSide::Responder)),
            ["RPCAwaitCallInd", "RPCReturn"]
        );
        let walked = procedure.walked(PairSide::Responder);
        let marked = [
            "StartMeasurement",
            "RPCAwaitCallInd",
            "RPCReturn",
            "StopMeasurement",
            "repeat",
        ];
        assert_eq!(
            names(&walked),
            [&["AwaitConnectIndication", "repeat"][..], &marked[..]].concat()
        );
        assert_eq!(procedure.walked(PairSide::Initiator), procedure.initiator);
    }

    #[test]
    fn nothing_outside_the_clock_needs_no_mark() {
        let mut procedure = warmed();
        procedure.initiator.truncate(6);
        procedure.initiator.remove(1);
        procedure.responder.truncate(4);
        procedure.responder.remove(1);
        assert_eq!(procedure.walked(PairSide::Responder), procedure.responder);
    }

    #[test]
    fn the_table_names_every_operation_once() {
        let mut names: Vec<&str> = OPERATIONS.iter().map(|(name, ..)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), OPERATIONS.len());
        assert!(
            names.contains(&OperationCall::RpcCall(SizeArgument::Unit, SizeArgument::Reply).name())
        );
    }
}
