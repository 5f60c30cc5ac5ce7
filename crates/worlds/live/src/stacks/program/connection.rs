//! A connection over two programs: each operation is one command to this side's program, and its answer.

use super::answer::{ProgramAnswer, units_of};
use super::child::{CommandPatience, OwnProgram, SharedProgram};
use crate::buffers::LiveThreadBuffers;
use crate::clock;
use crate::error::Result;
use crate::stacks::contract::{LiveConnection, connection_vanished};
use stackline_core::time::{Duration, Instant};
use stackline_endpoint::BulkDirection;
use std::collections::BTreeMap;
use std::fmt::Arguments;
use std::sync::{Arc, MutexGuard, PoisonError};

/// Bytes that the first command to send asks for.
const FIRST_PORTION: u64 = 64 << 10;
/// Most bytes that a command to send asks for, if a unit is not larger.
const LARGEST_PORTION: u64 = 1 << 30;
/// A command to send that took less is followed by one for twice as much.
const SHORT: Duration = Duration(5_000_000);
/// One that took more is followed by one for half as much, so that a time limit is noticed.
const LONG: Duration = Duration(20_000_000);

/// A connection over two programs.
pub(super) struct ProgramConnection {
    program: SharedProgram,
    settings: BTreeMap<String, String>,
    /// Bytes that the next command to send asks for.
    portion: u64,
}

impl ProgramConnection {
    pub(super) fn new(program: &SharedProgram, settings: &BTreeMap<String, String>) -> Self {
        Self {
            program: Arc::clone(program),
            settings: settings.clone(),
            portion: FIRST_PORTION,
        }
    }

    fn program(&self) -> MutexGuard<'_, OwnProgram> {
        self.program.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A command that is carried out or fails.
    fn command(&self, command: Arguments<'_>, buffers: &LiveThreadBuffers) -> Result<()> {
        self.program()
            .ask(command, &buffers.flags, CommandPatience::UntilEnded)
    }

    /// A command that waits for what the peer begins; false when the peer has finished.
    fn awaiting(&self, command: Arguments<'_>, buffers: &LiveThreadBuffers) -> Result<bool> {
        let mut program = self.program();
        let patience = CommandPatience::UntilEnded;
        program.ask_and(command, &buffers.flags, patience, |answer| match answer {
            ProgramAnswer::Done("") => Some(true),
            ProgramAnswer::Ended => Some(false),
            _ => None,
        })
    }

    /// Asks for more at once, or for less, by how long a command to send took.
    fn adapt(&mut self, took: Duration) {
        if took < SHORT {
            self.portion = (self.portion * 2).min(LARGEST_PORTION);
        } else if took > LONG {
            self.portion = (self.portion / 2).max(1);
        }
    }
}

const fn word(direction: BulkDirection) -> &'static str {
    match direction {
        BulkDirection::Get => "get",
        BulkDirection::Put => "put",
    }
}

impl LiveConnection for ProgramConnection {
    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        let mut done = 0;
        while done < times {
            if buffers.flags.limit() && times > 1 {
                return Ok(done);
            }
            let units = (self.portion / bytes.max(1) as u64).clamp(1, times - done);
            let begun = clock::now();
            self.command(format_args!("send {bytes} {units}"), buffers)?;
            self.adapt(clock::now() - begun);
            done += units;
        }
        Ok(times)
    }

    fn receive(
        &mut self,
        bytes: usize,
        times: u64,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<u64> {
        let command = format_args!("receive {bytes} {times}");
        let patience = CommandPatience::UntilEnded;
        let mut program = self.program();
        program.ask_and(command, &buffers.flags, patience, |answer| match answer {
            ProgramAnswer::Done(text) => units_of(text, times),
            ProgramAnswer::Ended => Some(0),
            ProgramAnswer::Failed(_) => None,
        })
    }

    fn call(
        &mut self,
        request: usize,
        response: usize,
        _: Instant,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        match self.awaiting(format_args!("call {request} {response}"), buffers)? {
            true => Ok(true),
            false => Err(connection_vanished("before the response arrived")),
        }
    }

    fn await_call(&mut self, bytes: usize, buffers: &mut LiveThreadBuffers) -> Result<bool> {
        self.awaiting(format_args!("await_call {bytes}"), buffers)
    }

    fn reply(&mut self, bytes: usize, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.command(format_args!("reply {bytes}"), buffers)
    }

    fn start_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        self.command(format_args!("start_bulk {}", word(direction)), buffers)
    }

    fn await_start_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        self.awaiting(
            format_args!("await_start_bulk {}", word(direction)),
            buffers,
        )
    }

    fn stop_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        self.command(format_args!("stop_bulk {}", word(direction)), buffers)
    }

    fn await_stop_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        self.command(format_args!("await_stop_bulk {}", word(direction)), buffers)
    }

    fn end_stream(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.command(format_args!("finish"), buffers)
    }

    fn disconnect(self: Box<Self>, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.command(format_args!("disconnect"), buffers)
    }

    fn await_disconnect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.command(format_args!("await_disconnect"), buffers)
    }

    fn settings(&self) -> BTreeMap<String, String> {
        self.settings.clone()
    }
}
