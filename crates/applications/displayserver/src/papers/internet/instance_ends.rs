//! What an instance of a server of V's block I/O is connected with: a stream, or a program by its pipes.

use crate::address::{DisplayAddress, DisplayServiceKind};
use crate::stream::DisplayStream;
use rustix::pipe::fcntl_setpipe_size;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use stackline_core::error::{Error, Result};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The size of a pipe, bytes.
const PIPE: usize = 4096;
/// How long a program may take to end after it has closed its output; a program that runs longer has not failed.
const ENDS: Duration = Duration::from_secs(1);
/// How long a program may take to end when nobody reads it any more.
const HANGS_UP: Duration = Duration::from_millis(200);

/// The kind of instances that a server has.
#[derive(Clone, Debug)]
pub enum Serves {
    /// Streams to the address that is the instance's name: an internet server.
    Streams,
    /// A program, by its pipes: the V-server.
    Program {
        /// The program and its arguments.
        program: Vec<String>,
        /// How often the program's output is polled; `None`: read immediately.
        polls: Option<Duration>,
    },
}

/// Both ways of an instance's connection, and how to end it.
pub(super) struct InternetInstanceEnds {
    pub(super) reads: Box<dyn Read + Send>,
    pub(super) writes: Box<dyn Write + Send>,
    pub(super) end: Box<dyn FnOnce() + Send>,
}

impl InternetInstanceEnds {
    pub(super) fn of_stream(stream: DisplayStream) -> Result<Self> {
        let again = || {
            stream
                .again()
                .map_err(|error| Error::environment(error.to_string()))
        };
        let (writes, ends) = (again()?, again()?);
        Ok(Self {
            reads: Box::new(stream),
            writes: Box::new(writes),
            end: Box::new(move || ends.end()),
        })
    }

    pub(super) fn of_program(program: &[String], polls: Option<Duration>) -> Result<Self> {
        let (name, arguments) = program
            .split_first()
            .ok_or_else(|| Error::input("no program specified"))?;
        let failed = |error: std::io::Error| {
            Error::environment(format!("cannot start {name}: {error}"))
                .hint("check that it is in PATH")
        };
        let mut command = Command::new(name);
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .process_group(0);
        let mut child = command.spawn().map_err(failed)?;
        let (Some(writes), Some(reads)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::environment(format!("{name} has no pipes")));
        };
        let _ = (
            fcntl_setpipe_size(&writes, PIPE),
            fcntl_setpipe_size(&reads, PIPE),
        );
        let group = Pid::from_child(&child);
        let end = move || {
            let begun = Instant::now();
            let _ = kill_process_group(group, Signal::HUP);
            while begun.elapsed() < HANGS_UP && matches!(child.try_wait(), Ok(None)) {
                thread::sleep(Duration::from_millis(5));
            }
            let _ = kill_process_group(group, Signal::KILL);
            let _ = child.wait();
        };
        let reads = InternetProgramOutput {
            name: name.clone(),
            process: group,
            pipe: Polled {
                pipe: reads,
                polls,
                begun: Instant::now(),
            },
        };
        Ok(Self {
            reads: Box::new(reads),
            writes: Box::new(writes),
            end: Box::new(end),
        })
    }
}

/// Connects an instance of that name.
pub(super) fn connect(
    serves: &Serves,
    to: Option<&DisplayAddress>,
) -> Result<InternetInstanceEnds> {
    match (serves, to) {
        (Serves::Streams, Some(to)) => {
            InternetInstanceEnds::of_stream(to.connect_to(DisplayServiceKind::Stream)?)
        }
        (Serves::Streams, None) => Err(Error::input("name a stream as HOST:PORT or pup:HOST:PORT")),
        (Serves::Program { program, polls }, _) => {
            InternetInstanceEnds::of_program(program, *polls)
        }
    }
}

/// A program's output, which ends with an error if the program failed.
struct InternetProgramOutput<P> {
    name: String,
    process: Pid,
    pipe: Polled<P>,
}

impl<P: Read> Read for InternetProgramOutput<P> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self.pipe.read(into) {
            Ok(0) => match failure(self.process) {
                Some(how) => Err(std::io::Error::other(format!("{} {how}", self.name))),
                None => Ok(0),
            },
            read => read,
        }
    }
}

/// How a program failed that has closed its output. It is not waited for, so its process number cannot be reused.
fn failure(process: Pid) -> Option<String> {
    let (begun, how) = (
        Instant::now(),
        WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT,
    );
    let status = loop {
        match waitid(WaitId::Pid(process), how).ok()? {
            Some(status) => break status,
            None if begun.elapsed() >= ENDS => return None,
            None => thread::sleep(Duration::from_millis(5)),
        }
    };
    let signal = status
        .terminating_signal()
        .map(|signal| format!("was killed by signal {signal}"));
    let code = status.exit_status().filter(|code| *code != 0);
    signal.or_else(|| code.map(|code| format!("exited with code {code}")))
}

/// A pipe that is polled now and then.
struct Polled<P> {
    pipe: P,
    polls: Option<Duration>,
    begun: Instant,
}

impl<P: Read> Read for Polled<P> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if let Some(polls) = self.polls.filter(|polls| !polls.is_zero()) {
            let since = self.begun.elapsed().as_nanos() % polls.as_nanos();
            thread::sleep(polls - Duration::from_nanos(u64::try_from(since).unwrap_or(0)));
        }
        self.pipe.read(into)
    }
}
