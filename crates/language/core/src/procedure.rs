//! A benchmark procedure (SPIMS sections 3 and 7.1): for each side of a pair, steps that call communication
//! operations.
//!
//! A pair is one initiator with one responder. Sizes and delays are still symbolic here (`unit`, `reply`, a timing of
//! the data specification); the cursor replaces them by values.

use crate::distribution::Distribution;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// One end of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairSide {
    /// Starts the communication; its clock gives the measured time.
    Initiator,
    /// Answers the initiator.
    Responder,
}

impl PairSide {
    /// Its index in an array of two: 0 for the initiator, 1 for the responder.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Initiator => 0,
            Self::Responder => 1,
        }
    }

    /// The other side.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Initiator => Self::Responder,
            Self::Responder => Self::Initiator,
        }
    }
}

/// The size of a data unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SizeArgument {
    /// The first size of the data specification.
    Unit,
    /// Its second size; the first when there is only one.
    Reply,
    /// A size written in the procedure itself, in bytes.
    Bytes(u64),
}

/// The number of passes of a repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountArgument {
    /// The number that the data specification gives.
    Count,
    /// A number written in the procedure itself.
    Times(u64),
}

/// The length of a delay, in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelayArgument {
    /// The entry of that index in the timing list; no delay when the list is shorter.
    Timing(usize),
    /// A distribution written in the procedure itself.
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
    /// Requests that the peer send in bulk.
    StartBulkGet,
    /// Waits until the peer requests a bulk get.
    AwaitStartBulkGet,
    /// Ends a bulk get at the receiver, after everything has arrived.
    StopBulkGet,
    /// Ends a bulk get at the sender.
    AwaitStopBulkGet,
    /// Announces bulk data.
    StartBulkPut,
    /// Waits until the peer announces bulk data.
    AwaitStartBulkPut,
    /// Ends a bulk put: returns when the peer confirms that everything has arrived.
    StopBulkPut,
    /// Waits for the end of a bulk put and confirms that everything has arrived.
    AwaitStopBulkPut,
    /// Sends one data unit.
    DataRequest(SizeArgument),
    /// Waits for one data unit of this size.
    AwaitDataIndication(SizeArgument),
    /// Sends a request of the first size and waits for its response of the second.
    RpcCall(SizeArgument, SizeArgument),
    /// Waits for a request.
    RpcAwaitCallInd(SizeArgument),
    /// Sends the response to a request.
    RpcReturn(SizeArgument),
    /// Starts the clock.
    StartMeasurement,
    /// Stops the clock.
    StopMeasurement,
    /// Waits for a time that counts from the call.
    Delay(DelayArgument),
    /// Waits until the next intended moment, which counts from the previous intended moment; the operation that
    /// follows is timed from it.
    Pace(DelayArgument),
    /// Reads from the source FILE of this side.
    ReadFile(SizeArgument),
    /// Writes to the destination FILE of this side.
    WriteFile(SizeArgument),
    /// Records the time since the clock started, under this name.
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

/// Each operation's name and arguments, and the side that may use it (`None`: both). The language manual and `check`
/// use this table.
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
    /// The sizes among its arguments.
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

    /// The operation's name in the language.
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

    /// Whether it involves this side alone and not the peer.
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

    /// Whether it transfers a data unit, or the request or response of a call.
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

    /// Whether it starts communication (true), waits for the peer to do so (false), or neither (`None`). A time limit
    /// ends a repeat on the side whose first such operation starts communication; the other side's repeat ends when
    /// the stream does.
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

/// A step of a procedure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcedureStep {
    /// One operation.
    Call(OperationCall),
    /// The body, repeated.
    Repeat(CountArgument, Vec<Self>),
}

/// Whether any operation in the steps, at any depth, passes the test.
pub fn contains_call(steps: &[ProcedureStep], test: &impl Fn(&OperationCall) -> bool) -> bool {
    steps.iter().any(|step| match step {
        ProcedureStep::Call(call) => test(call),
        ProcedureStep::Repeat(_, body) => contains_call(body, test),
    })
}

/// Whether data units or calls are transferred before the clock starts or after it stops in these steps.
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

/// The start of a bulk transfer that follows the clock's start at once in these steps, if one does.
#[must_use]
pub fn bulk_at_clock_start(steps: &[ProcedureStep]) -> Option<&OperationCall> {
    let start = ProcedureStep::Call(OperationCall::StartMeasurement);
    let at = steps.iter().position(|step| *step == start)?;
    match steps.get(at + 1)? {
        ProcedureStep::Call(call @ (OperationCall::StartBulkGet | OperationCall::StartBulkPut)) => {
            Some(call)
        }
        _ => None,
    }
}

/// Whether connections are opened inside a repeat, so that none lasts from clock start to stop.
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

/// Whether data units begin at both sides, judged from the steps of one side. A call and its response begin at the
/// initiator.
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

/// The number of steps of the responder that correspond to these of the initiator; a call corresponds to two.
fn exchanges(steps: &[ProcedureStep]) -> usize {
    let of = |step: &ProcedureStep| match step {
        ProcedureStep::Call(call) if call.is_local() => 0,
        ProcedureStep::Call(OperationCall::RpcCall(..)) => 2,
        ProcedureStep::Call(_) => 1,
        ProcedureStep::Repeat(..) => usize::from(communicates(step)),
    };
    steps.iter().map(of).sum()
}

/// Whether the step has any operation that involves the peer.
fn communicates(step: &ProcedureStep) -> bool {
    contains_call(core::slice::from_ref(step), &|call| !call.is_local())
}

/// The index after the first `count` steps that involve the peer.
fn place_behind(steps: &[ProcedureStep], count: usize) -> usize {
    let places = steps
        .iter()
        .enumerate()
        .filter(|(_, step)| communicates(step))
        .map(|(at, _)| at + 1);
    places.take(count).last().unwrap_or(0)
}

fn steps_without_timing(steps: &[ProcedureStep], index: usize) -> Vec<ProcedureStep> {
    let moved = |argument: &DelayArgument| match argument {
        DelayArgument::Timing(at) if *at == index => None,
        DelayArgument::Timing(at) => Some(DelayArgument::Timing(at - usize::from(*at > index))),
        DelayArgument::Drawn(distribution) => Some(DelayArgument::Drawn(distribution.clone())),
    };
    let kept = |step: &ProcedureStep| match step {
        ProcedureStep::Repeat(count, body) => Some(ProcedureStep::Repeat(
            *count,
            steps_without_timing(body, index),
        )),
        ProcedureStep::Call(OperationCall::Delay(argument)) => {
            moved(argument).map(|to| ProcedureStep::Call(OperationCall::Delay(to)))
        }
        ProcedureStep::Call(OperationCall::Pace(argument)) => {
            moved(argument).map(|to| ProcedureStep::Call(OperationCall::Pace(to)))
        }
        ProcedureStep::Call(call) => Some(ProcedureStep::Call(call.clone())),
    };
    steps.iter().filter_map(kept).collect()
}

/// An application type: the procedures of an initiator and a responder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Procedure {
    /// The application type's name in the language.
    pub name: String,
    /// Names of the entries of the timing list, in order.
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

    /// The steps of one side that are within the measured interval, between the initiator's clock start and stop. Only
    /// the initiator has a clock, but the sides match operation by operation, so the responder's steps are found by
    /// counting. Local operations between are included. All steps where the sides do not match or there is no clock.
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

    /// The steps of one side as its endpoint executes them. Where data units or calls are outside the measured
    /// interval, a start and a stop are inserted at the same place among the responder's steps, so that its counters
    /// cover the same interval.
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

    /// The indices of the initiator's clock start and stop.
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

    /// The timing that says when the initiator's operations, else the responder's, are to begin: that of the first
    /// `Pace` with a timing.
    #[must_use]
    pub fn pacing_timing(&self) -> Option<usize> {
        let paced = |call: &OperationCall| match call {
            OperationCall::Pace(DelayArgument::Timing(index)) => Some(*index),
            _ => None,
        };
        [PairSide::Initiator, PairSide::Responder]
            .into_iter()
            .find_map(|side| self.calls(side).into_iter().find_map(paced))
    }

    /// The procedure without a timing and the operations that wait for it; later timings move up in the list.
    #[must_use]
    pub fn without_timing(&self, index: usize) -> Self {
        let mut timings = self.timings.clone();
        if index < timings.len() {
            timings.remove(index);
        }
        Self {
            name: self.name.clone(),
            timings,
            initiator: steps_without_timing(&self.initiator, index),
            responder: steps_without_timing(&self.responder, index),
        }
    }

    /// Whether it transfers data units; of the predefined application types, `connect_disconnect` alone does not.
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
