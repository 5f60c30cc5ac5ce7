//! Walks a program and yields the next operation, its sizes and delays drawn.
//!
//! It does nothing itself and reads no clock: a world executes what it yields and reports when the time limit has come or
//! the stream has ended. Two cursors with one seed yield mirrored sizes, so a byte stream needs no length in it.
//!
//! A repeat around a single operation of constant size is yielded as one operation with a count: the stack can then loop
//! with nothing of ours between two system calls.

use crate::plan::{DataSpec, Size, UnitCount};
use crate::procedure::{CountArgument, DelayArgument, OperationCall, ProcedureStep, SizeArgument};
use crate::random::{Generator, Seed};
use crate::time::Duration;
use alloc::vec::Vec;

/// What a world does next. Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorOperation {
    /// Open a connection.
    ConnectRequest,
    /// Wait for one.
    AwaitConnectIndication,
    /// Close it.
    DisconnectRequest,
    /// Wait until the peer does.
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
        /// Size of each.
        bytes: u64,
        /// How many.
        times: u64,
    },
    /// Receive `times` units of `bytes`.
    AwaitDataIndication {
        /// Size of each.
        bytes: u64,
        /// How many.
        times: u64,
    },
    /// Send a request, wait for the response, `times` times.
    RpcCall {
        /// Size of the request.
        request: u64,
        /// Size of the response.
        response: u64,
        /// How often.
        times: u64,
    },
    /// Wait for a request, send the response, `times` times.
    RpcServe {
        /// Size of the request.
        request: u64,
        /// Size of the response.
        response: u64,
        /// How often.
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
    /// Stop it.
    StopMeasurement,
    /// Wait, from now.
    Delay(Duration),
    /// Wait for the next intended moment.
    Pace(Duration),
    /// Read this much from the source file.
    ReadFile {
        /// How much.
        bytes: u64,
    },
    /// Write this much to the destination file.
    WriteFile {
        /// How much.
        bytes: u64,
    },
    /// Note the time under the name of that index.
    Mark(usize),
    /// A time limit cut a sending repeat short: inform the peer that no more comes.
    EndStream,
}

#[derive(Clone, Debug)]
enum Instruction {
    Fixed(CursorOperation),
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

/// How long a repeat goes on.
#[derive(Clone, Copy, Debug)]
enum RepeatLimit {
    Times(u64),
    /// So many passes; in the last one a data unit has `last` bytes.
    Rounded {
        left: u64,
        last: u64,
    },
    /// Until units of drawn sizes make up these bytes; the last of them is cut.
    Amount(u64),
}

#[derive(Clone, Copy, Debug)]
struct Loop {
    left: RepeatLimit,
    /// What `unit_bytes` was when the loop began.
    base: u64,
    /// Whether its first communication operation drives.
    drives: bool,
}

/// One walk through a program.
#[derive(Clone, Debug)]
pub struct Cursor {
    instructions: Vec<Instruction>,
    at: usize,
    loops: Vec<Loop>,
    limit_reached: bool,
    end_stream: bool,
    /// How much of its repeat the operation yielded last was.
    share: RepeatShare,
    unit: SizeSource,
    reply: SizeSource,
    delays: Vec<(crate::distribution::Distribution, Generator)>,
    unit_bytes: u64,
    marks: Vec<alloc::string::String>,
}

/// How much of a repeat an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RepeatShare {
    One,
    /// All passes but the last, whose data unit is shorter.
    AllButLast,
    All,
}

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
    /// A cursor at the first operation of `steps`. `seed` is the pair's (measurement, part, run, replica), the same on both sides.
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

    /// The time limit has come: every repeat that drives ends after its present pass, and none begins.
    pub fn limit_reached(&mut self) {
        self.limit_reached = true;
    }

    /// The peer sends no more data units where one was awaited. `closed`: nor anything else on this connection, so every
    /// running repeat is left; else only the one around the awaited unit. Returns false when none is running.
    pub fn leave(&mut self, closed: bool) -> bool {
        let depth = if closed {
            self.loops.len()
        } else {
            usize::from(self.share != RepeatShare::All && !self.loops.is_empty())
        };
        self.leave_repeats(depth);
        depth > 0
    }

    /// The limit came before the next operation: leaves the innermost repeat at once if it is one that drives.
    pub fn cut(&mut self) -> bool {
        let drives = self.loops.last().is_some_and(|running| running.drives);
        if drives {
            self.leave_repeats(1);
            self.end_stream = true;
        }
        drives
    }

    /// The operation yielded last was sent or called fewer times than it says, because the limit came in between: the
    /// shorter pass that would follow it is none.
    pub fn cut_short(&mut self) {
        if self.share == RepeatShare::AllButLast {
            self.leave_repeats(1);
        }
    }

    fn leave_repeats(&mut self, mut depth: usize) {
        self.loops.truncate(self.loops.len() - depth);
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

    /// The next operation; `None` at the end of the program. Allocates nothing.
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

    /// Most bytes that the next data unit may have, by the total it helps to make up.
    fn room(&self) -> u64 {
        let made_up = |running: &Loop| match running.left {
            RepeatLimit::Times(_) => None,
            RepeatLimit::Rounded { left: 1, last } => Some(last),
            RepeatLimit::Rounded { .. } => Some(u64::MAX),
            RepeatLimit::Amount(amount) => {
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

    /// The operation that so many passes of what is here are together, and how many instructions a pass takes.
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

    /// A repeat around one operation (or a request and its response) whose sizes never change, as one operation; the loop
    /// is then done, but for a last pass that is shorter.
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
            // What was yielded is all passes but one: its end is the end of the last but one.
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

    /// Which timing it is; none where the list does not give it: that is no delay, and nothing to yield.
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

/// Whether the first communication operation of a body drives.
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
