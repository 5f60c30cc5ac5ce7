//! The cursor: walks the steps of one side of a procedure and yields the next operation, with its sizes and delays
//! drawn.
//!
//! It executes nothing and reads no clock: a world executes what it yields, and reports when the time limit has come
//! or the stream has ended. Two cursors with the same seed yield the same sizes, so a byte stream needs no length
//! fields.
//!
//! A repeat around a single operation of constant size is yielded as one operation with a count, so that the stack can
//! loop without code of ours between two system calls.

use crate::plan::{DataSpec, Size, UnitCount};
use crate::procedure::{CountArgument, DelayArgument, OperationCall, ProcedureStep, SizeArgument};
use crate::random::{Generator, Seed};
use crate::time::Duration;
use alloc::vec::Vec;

/// The next operation for a world to execute. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorOperation {
    /// Open a connection.
    ConnectRequest,
    /// Wait until the peer opens a connection.
    AwaitConnectIndication,
    /// Close the connection.
    DisconnectRequest,
    /// Wait until the peer closes the connection.
    AwaitDisconnectIndication,
    /// See [`OperationCall::StartBulkGet`].
    StartBulkGet,
    /// See [`OperationCall::AwaitStartBulkGet`].
    AwaitStartBulkGet,
    /// See [`OperationCall::StopBulkGet`].
    StopBulkGet,
    /// See [`OperationCall::AwaitStopBulkGet`].
    AwaitStopBulkGet,
    /// See [`OperationCall::StartBulkPut`].
    StartBulkPut,
    /// See [`OperationCall::AwaitStartBulkPut`].
    AwaitStartBulkPut,
    /// See [`OperationCall::StopBulkPut`].
    StopBulkPut,
    /// See [`OperationCall::AwaitStopBulkPut`].
    AwaitStopBulkPut,
    /// Send `times` units of `bytes`.
    DataRequest {
        /// Size of each unit.
        bytes: u64,
        /// Number of units.
        times: u64,
    },
    /// Receive `times` units of `bytes`.
    AwaitDataIndication {
        /// Size of each unit.
        bytes: u64,
        /// Number of units.
        times: u64,
    },
    /// Send a request, wait for the response, `times` times.
    RpcCall {
        /// Size of the request.
        request: u64,
        /// Size of the response.
        response: u64,
        /// Number of calls.
        times: u64,
    },
    /// Wait for a request, send the response, `times` times.
    RpcServe {
        /// Size of the request.
        request: u64,
        /// Size of the response.
        response: u64,
        /// Number of calls.
        times: u64,
    },
    /// Wait for a request.
    RpcAwaitCallInd {
        /// Its size.
        bytes: u64,
    },
    /// Send the response.
    RpcReturn {
        /// Its size.
        bytes: u64,
    },
    /// Start the clock.
    StartMeasurement,
    /// Stop the clock.
    StopMeasurement,
    /// Wait for this time, counted from the call.
    Delay(Duration),
    /// Wait until the next intended moment, this time after the previous one.
    Pace(Duration),
    /// Read from the source file.
    ReadFile {
        /// Number of bytes.
        bytes: u64,
    },
    /// Write to the destination file.
    WriteFile {
        /// Number of bytes.
        bytes: u64,
    },
    /// Record the time under the name with this index in [`Cursor::marks()`].
    Mark(usize),
    /// Inform the peer that no more data comes, because the time limit has cut a sending repeat short.
    EndStream,
}

#[derive(Clone, Debug)]
enum Instruction {
    Fixed(CursorOperation),
    /// A data unit to send, or (`send` false) to await.
    Data {
        drawn: SizeSelector,
        send: bool,
    },
    Call {
        request: SizeSelector,
        response: SizeSelector,
    },
    AwaitCall(SizeSelector),
    Return(SizeSelector),
    ReadFile(SizeSelector),
    WriteFile(SizeSelector),
    /// A `Pace`, or (`pace` false) a `Delay`, of the distribution with index `timing` in `Cursor::delays`.
    Wait {
        timing: usize,
        pace: bool,
    },
    Repeat {
        limit: RepeatLimit,
        end: usize,
        drives: bool,
    },
    EndRepeat {
        start: usize,
        drives: bool,
    },
}

/// Where a size comes from when the instruction runs.
#[derive(Clone, Copy, Debug)]
enum SizeSelector {
    Fixed(u64),
    Unit,
    Reply,
}

/// When a repeat ends.
#[derive(Clone, Copy, Debug)]
enum RepeatLimit {
    Times(u64),
    /// After `left` passes; in the last one a data unit has `last` bytes.
    Rounded {
        left: u64,
        last: u64,
    },
    /// When units of drawn sizes make up this number of bytes; the last unit is cut to fit.
    Amount(u64),
}

#[derive(Clone, Copy, Debug)]
struct Loop {
    left: RepeatLimit,
    /// The value of `Cursor::unit_bytes` when the repeat began.
    base: u64,
    /// Whether its first communication operation starts communication (see [`OperationCall::drives`]), so that a time
    /// limit ends it.
    drives: bool,
}

/// One walk through the steps of a side.
#[derive(Clone, Debug)]
pub struct Cursor {
    instructions: Vec<Instruction>,
    at: usize,
    /// The repeats that are being executed, the innermost last.
    loops: Vec<Loop>,
    /// Whether the world has reported that the time limit has come.
    limit_reached: bool,
    end_stream: bool,
    /// How much of its repeat the last yielded operation covers.
    share: RepeatShare,
    unit: SizeSource,
    reply: SizeSource,
    /// The distributions of delays and their generators: first the timing list, then those written in the procedure.
    delays: Vec<(crate::distribution::Distribution, Generator)>,
    /// Bytes of all data units of the first size so far.
    unit_bytes: u64,
    marks: Vec<alloc::string::String>,
}

/// How much of a repeat one yielded operation covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RepeatShare {
    /// One pass, or the operation is not in a repeat.
    One,
    /// All passes but the last, whose data unit is shorter.
    AllButLast,
    /// All passes.
    All,
}

/// The source of one of the data specification's sizes.
#[derive(Clone, Debug)]
enum SizeSource {
    Bytes(u64),
    Drawn(crate::distribution::Distribution, Generator, u64),
}

impl SizeSource {
    fn new(size: &Size, least: u64, seed: Seed) -> Self {
        match size {
            Size::Bytes(bytes) => Self::Bytes(*bytes),
            Size::Drawn(distribution) => Self::Drawn(distribution.clone(), seed.generator(), least),
        }
    }

    fn draw(&mut self) -> u64 {
        match self {
            Self::Bytes(bytes) => *bytes,
            Self::Drawn(distribution, generator, least) => {
                distribution.draw_bytes(generator, *least)
            }
        }
    }
}

impl Cursor {
    /// A cursor at the first of `steps`. `seed` belongs to the pair (measurement, part, run, replica) and is the same
    /// on both sides.
    #[must_use]
    pub fn new(steps: &[ProcedureStep], data: &DataSpec, seed: Seed) -> Self {
        let mut cursor = Self {
            instructions: Vec::new(),
            at: 0,
            loops: Vec::new(),
            limit_reached: false,
            end_stream: false,
            share: RepeatShare::One,
            unit: SizeSource::new(&data.unit, data.least_drawn, seed.child("unit")),
            reply: SizeSource::new(&data.reply, data.least_drawn, seed.child("reply")),
            delays: Vec::new(),
            unit_bytes: 0,
            marks: Vec::new(),
        };
        for (index, timing) in data.timings.iter().enumerate() {
            cursor.delays.push((
                timing.clone(),
                seed.child("timing").index(index as u64).generator(),
            ));
        }
        cursor.compile(steps, data, seed);
        cursor
    }

    /// Names of the marks, by the index that [`CursorOperation::Mark`] carries.
    #[must_use]
    pub fn marks(&self) -> &[alloc::string::String] {
        &self.marks
    }

    /// Reports that the time limit has come: every repeat that drives ends after its current pass, and no further one
    /// begins.
    pub fn limit_reached(&mut self) {
        self.limit_reached = true;
    }

    /// Reports that the peer sends no more data units where one was awaited. With `closed` it sends nothing at all any
    /// more on this connection, so every running repeat ends; otherwise only the one around the awaited unit does.
    /// Returns false when no repeat ends.
    pub fn leave(&mut self, closed: bool) -> bool {
        let depth = if closed {
            self.loops.len()
        } else {
            usize::from(self.share != RepeatShare::All && !self.loops.is_empty())
        };
        self.leave_repeats(depth);
        depth > 0
    }

    /// Reports that the limit came before the next operation could begin. If the innermost repeat drives, it ends at
    /// once. Returns whether it did.
    pub fn cut(&mut self) -> bool {
        let drives = self.loops.last().is_some_and(|running| running.drives);
        if drives {
            self.leave_repeats(1);
            self.end_stream = true;
        }
        drives
    }

    /// Reports that the last yielded operation was executed fewer times than its count because the limit came: the
    /// shorter last pass is skipped.
    pub fn cut_short(&mut self) {
        if self.share == RepeatShare::AllButLast {
            self.leave_repeats(1);
        }
    }

    fn leave_repeats(&mut self, mut depth: usize) {
        self.loops.truncate(self.loops.len() - depth);
        // From within: a repeat that begins on the way has to end on it, too.
        while depth > 0 {
            match self.instructions.get(self.at) {
                Some(Instruction::Repeat { .. }) => depth += 1,
                Some(Instruction::EndRepeat { .. }) => depth -= 1,
                Some(_) => {}
                None => return,
            }
            self.at += 1;
        }
    }

    /// The next operation; `None` at the end of the steps. Does not allocate.
    pub fn advance(&mut self) -> Option<CursorOperation> {
        loop {
            if self.end_stream {
                self.end_stream = false;
                return Some(CursorOperation::EndStream);
            }
            let operation = match *self.instructions.get(self.at)? {
                Instruction::Repeat { limit, end, drives } => {
                    self.enter(limit, end, drives);
                    if let Some(operation) = self.whole_repeat() {
                        return Some(operation);
                    }
                    continue;
                }
                Instruction::EndRepeat { start, drives } => {
                    self.again(start, drives);
                    continue;
                }
                Instruction::Fixed(operation) => operation,
                Instruction::Wait { timing, pace } => {
                    let (distribution, generator) = &mut self.delays[timing];
                    let delay = Duration::from_seconds(distribution.draw(generator));
                    if pace {
                        CursorOperation::Pace(delay)
                    } else {
                        CursorOperation::Delay(delay)
                    }
                }
                Instruction::Data { drawn, send } => {
                    let bytes = self.size(drawn);
                    if send {
                        CursorOperation::DataRequest { bytes, times: 1 }
                    } else {
                        CursorOperation::AwaitDataIndication { bytes, times: 1 }
                    }
                }
                Instruction::Call { request, response } => CursorOperation::RpcCall {
                    request: self.size(request),
                    response: self.size(response),
                    times: 1,
                },
                Instruction::AwaitCall(drawn) => CursorOperation::RpcAwaitCallInd {
                    bytes: self.size(drawn),
                },
                Instruction::Return(drawn) => CursorOperation::RpcReturn {
                    bytes: self.size(drawn),
                },
                Instruction::ReadFile(drawn) => CursorOperation::ReadFile {
                    bytes: self.size(drawn),
                },
                Instruction::WriteFile(drawn) => CursorOperation::WriteFile {
                    bytes: self.size(drawn),
                },
            };
            self.at += 1;
            self.share = RepeatShare::One;
            return Some(operation);
        }
    }

    /// Draws a size, in bytes, and counts units of the first size.
    fn size(&mut self, drawn: SizeSelector) -> u64 {
        match drawn {
            SizeSelector::Fixed(bytes) => bytes,
            SizeSelector::Unit => {
                let bytes = self.unit.draw().min(self.room());
                self.unit_bytes += bytes;
                bytes
            }
            SizeSelector::Reply => self.reply.draw(),
        }
    }

    /// The most bytes that the next data unit may have, given what is left of the repeat it counts for.
    fn room(&self) -> u64 {
        let made_up = |running: &Loop| match running.left {
            RepeatLimit::Times(_) => None,
            RepeatLimit::Rounded { left: 1, last } => Some(last),
            RepeatLimit::Rounded { .. } => Some(u64::MAX),
            RepeatLimit::Amount(amount) => {
                // At least one byte, so that the repeat comes to its end.
                Some(amount.saturating_sub(self.unit_bytes - running.base).max(1))
            }
        };
        self.loops
            .iter()
            .rev()
            .find_map(made_up)
            .unwrap_or(u64::MAX)
    }

    fn enter(&mut self, limit: RepeatLimit, end: usize, drives: bool) {
        let empty = matches!(limit, RepeatLimit::Times(0));
        if empty || (self.limit_reached && drives) {
            self.end_stream = !empty;
            self.at = end + 1;
        } else {
            self.loops.push(Loop {
                left: limit,
                base: self.unit_bytes,
                drives,
            });
            self.at += 1;
        }
    }

    /// The repeat's body as one operation with a count of `times`, and the number of instructions of a pass; `None`
    /// when sizes vary or the body has other operations.
    fn repeated(&self, times: u64) -> Option<(CursorOperation, usize)> {
        let constant = |drawn: &SizeSelector| match (drawn, &self.unit, &self.reply) {
            (SizeSelector::Fixed(bytes), ..)
            | (SizeSelector::Unit, SizeSource::Bytes(bytes), _)
            | (SizeSelector::Reply, _, SizeSource::Bytes(bytes)) => Some(*bytes),
            _ => None,
        };
        Some(match self.instructions.get(self.at..)? {
            [
                Instruction::Data { drawn, send: true },
                Instruction::EndRepeat { .. },
                ..,
            ] => (
                CursorOperation::DataRequest {
                    bytes: constant(drawn)?,
                    times,
                },
                1,
            ),
            [
                Instruction::Data { drawn, send: false },
                Instruction::EndRepeat { .. },
                ..,
            ] => (
                CursorOperation::AwaitDataIndication {
                    bytes: constant(drawn)?,
                    times,
                },
                1,
            ),
            [
                Instruction::Call { request, response },
                Instruction::EndRepeat { .. },
                ..,
            ] => (
                CursorOperation::RpcCall {
                    request: constant(request)?,
                    response: constant(response)?,
                    times,
                },
                1,
            ),
            [
                Instruction::AwaitCall(request),
                Instruction::Return(response),
                Instruction::EndRepeat { .. },
                ..,
            ] => (
                CursorOperation::RpcServe {
                    request: constant(request)?,
                    response: constant(response)?,
                    times,
                },
                2,
            ),
            _ => return None,
        })
    }

    /// Yields a repeat around one operation (or a request and its response) of constant sizes as one operation. The
    /// repeat has then ended, except for a shorter last pass.
    fn whole_repeat(&mut self) -> Option<CursorOperation> {
        let (times, share) = match self.loops.last()?.left {
            RepeatLimit::Times(times) => (times, RepeatShare::All),
            RepeatLimit::Rounded { left, .. } if left > 1 => (left - 1, RepeatShare::AllButLast),
            RepeatLimit::Rounded { .. } | RepeatLimit::Amount(_) => return None,
        };
        let (operation, length) = self.repeated(times)?;
        self.share = share;
        self.at += length;
        match self.loops.last_mut() {
            // All passes but the last were yielded. `EndRepeat` comes next and takes one off, which leaves the last
            // pass.
            Some(Loop {
                left: RepeatLimit::Rounded { left, .. },
                ..
            }) => *left = 2,
            _ => {
                self.loops.pop();
                self.at += 1;
            }
        }
        Some(operation)
    }

    fn again(&mut self, start: usize, drives: bool) {
        let done = {
            let Some(running) = self.loops.last_mut() else {
                self.at += 1;
                return;
            };
            match &mut running.left {
                RepeatLimit::Times(left) | RepeatLimit::Rounded { left, .. } => {
                    *left = left.saturating_sub(1);
                    *left == 0
                }
                RepeatLimit::Amount(amount) => self.unit_bytes - running.base >= *amount,
            }
        };
        let cut = !done && drives && self.limit_reached;
        if done || cut {
            self.loops.pop();
            self.end_stream = cut;
            self.at += 1;
        } else {
            self.at = start + 1;
        }
    }

    fn compile(&mut self, steps: &[ProcedureStep], data: &DataSpec, seed: Seed) {
        for step in steps {
            match step {
                ProcedureStep::Call(call) => self.compile_call(call, data, seed),
                ProcedureStep::Repeat(count, body) => {
                    let start = self.instructions.len();
                    let drives = drives(body);
                    let limit = limit(*count, data);
                    self.instructions.push(Instruction::Repeat {
                        limit,
                        // Known once the body is compiled.
                        end: 0,
                        drives,
                    });
                    self.compile(body, data, seed);
                    let here = self.instructions.len();
                    if let Some(Instruction::Repeat { end, .. }) = self.instructions.get_mut(start)
                    {
                        *end = here;
                    }
                    self.instructions
                        .push(Instruction::EndRepeat { start, drives });
                }
            }
        }
    }

    fn compile_call(&mut self, call: &OperationCall, data: &DataSpec, seed: Seed) {
        let instruction = match call {
            OperationCall::ConnectRequest => Instruction::Fixed(CursorOperation::ConnectRequest),
            OperationCall::AwaitConnectIndication => {
                Instruction::Fixed(CursorOperation::AwaitConnectIndication)
            }
            OperationCall::DisconnectRequest => {
                Instruction::Fixed(CursorOperation::DisconnectRequest)
            }
            OperationCall::AwaitDisconnectIndication => {
                Instruction::Fixed(CursorOperation::AwaitDisconnectIndication)
            }
            OperationCall::StartBulkGet => Instruction::Fixed(CursorOperation::StartBulkGet),
            OperationCall::AwaitStartBulkGet => {
                Instruction::Fixed(CursorOperation::AwaitStartBulkGet)
            }
            OperationCall::StopBulkGet => Instruction::Fixed(CursorOperation::StopBulkGet),
            OperationCall::AwaitStopBulkGet => {
                Instruction::Fixed(CursorOperation::AwaitStopBulkGet)
            }
            OperationCall::StartBulkPut => Instruction::Fixed(CursorOperation::StartBulkPut),
            OperationCall::AwaitStartBulkPut => {
                Instruction::Fixed(CursorOperation::AwaitStartBulkPut)
            }
            OperationCall::StopBulkPut => Instruction::Fixed(CursorOperation::StopBulkPut),
            OperationCall::AwaitStopBulkPut => {
                Instruction::Fixed(CursorOperation::AwaitStopBulkPut)
            }
            OperationCall::StartMeasurement => {
                Instruction::Fixed(CursorOperation::StartMeasurement)
            }
            OperationCall::StopMeasurement => Instruction::Fixed(CursorOperation::StopMeasurement),
            OperationCall::DataRequest(size) => Instruction::Data {
                drawn: drawn(*size),
                send: true,
            },
            OperationCall::AwaitDataIndication(size) => Instruction::Data {
                drawn: drawn(*size),
                send: false,
            },
            OperationCall::RpcCall(request, response) => Instruction::Call {
                request: drawn(*request),
                response: drawn(*response),
            },
            OperationCall::RpcAwaitCallInd(size) => Instruction::AwaitCall(drawn(*size)),
            OperationCall::RpcReturn(size) => Instruction::Return(drawn(*size)),
            OperationCall::ReadFile(size) => Instruction::ReadFile(drawn(*size)),
            OperationCall::WriteFile(size) => Instruction::WriteFile(drawn(*size)),
            OperationCall::Delay(argument) | OperationCall::Pace(argument) => {
                let pace = matches!(call, OperationCall::Pace(_));
                let Some(timing) = self.compile_delay(argument, data, seed) else {
                    return;
                };
                Instruction::Wait { timing, pace }
            }
            OperationCall::Mark(name) => {
                Instruction::Fixed(CursorOperation::Mark(self.compile_mark(name)))
            }
        };
        self.instructions.push(instruction);
    }

    /// The index of the delay's distribution; `None` when the timing list is shorter, which means no delay and nothing
    /// to yield.
    fn compile_delay(
        &mut self,
        argument: &DelayArgument,
        data: &DataSpec,
        seed: Seed,
    ) -> Option<usize> {
        match argument {
            DelayArgument::Timing(index) => (*index < data.timings.len()).then_some(*index),
            DelayArgument::Drawn(distribution) => {
                let index = self.delays.len();
                let generator = seed.child("delay").index(index as u64).generator();
                self.delays.push((distribution.clone(), generator));
                Some(index)
            }
        }
    }

    fn compile_mark(&mut self, name: &str) -> usize {
        let known = self.marks.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.marks.push(name.into());
            self.marks.len() - 1
        })
    }
}

const fn drawn(size: SizeArgument) -> SizeSelector {
    match size {
        SizeArgument::Unit => SizeSelector::Unit,
        SizeArgument::Reply => SizeSelector::Reply,
        SizeArgument::Bytes(bytes) => SizeSelector::Fixed(bytes),
    }
}

fn limit(count: CountArgument, data: &DataSpec) -> RepeatLimit {
    match (count, data.count, &data.unit) {
        (CountArgument::Times(times), ..) | (CountArgument::Count, UnitCount::Units(times), _) => {
            RepeatLimit::Times(times)
        }
        (CountArgument::Count, UnitCount::Unlimited, _) => RepeatLimit::Times(u64::MAX),
        (CountArgument::Count, UnitCount::Amount(amount), Size::Bytes(unit)) => {
            let left = amount.div_ceil((*unit).max(1)).max(1);
            match data.last_unit() {
                Some(last) => RepeatLimit::Rounded { left, last },
                None => RepeatLimit::Times(left),
            }
        }
        (CountArgument::Count, UnitCount::Amount(amount), Size::Drawn(_)) => {
            RepeatLimit::Amount(amount)
        }
        (CountArgument::Count, UnitCount::WholeFile, _) => RepeatLimit::Times(0),
    }
}

/// Whether the first communication operation of a body starts communication (see [`OperationCall::drives`]).
fn drives(body: &[ProcedureStep]) -> bool {
    first_drive(body).unwrap_or(false)
}

fn first_drive(body: &[ProcedureStep]) -> Option<bool> {
    body.iter().find_map(|step| match step {
        ProcedureStep::Call(call) => call.drives(),
        ProcedureStep::Repeat(_, inner) => first_drive(inner),
    })
}

#[cfg(test)]
mod tests;
