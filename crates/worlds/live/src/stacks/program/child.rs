//! A program of the user's: started without a shell in a process group of its own, asked by lines on its standard input, and ended with
//! its group when its endpoint ends.

use super::answer::{LONGEST_ANSWER, ProgramAnswer, parse_answer};
use crate::cancel::LiveCancelFlags;
use crate::child_end::{end_group, seen_ended_within};
use crate::error::{self, Error, Result};
use crate::silence_limits::silence_limit;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::wait::WaitStatus;
use stackline_os::spawn::dying_with_thread;
use std::collections::VecDeque;
use std::fmt::{Arguments, Write as _};
use std::io::{self, BufRead, BufReader, Read, Write as _};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Version of the commands, which a program is greeted with.
const VERSION: u32 = 1;
/// How long a program may take to end after its standard input has ended.
const ENDS: Duration = Duration::from_millis(500);
/// How long a program whose standard output has ended may take to end itself, until it is said that it still runs.
const DIES: Duration = Duration::from_millis(300);
/// Lines of standard error that an error shows.
const SHOWN_LINES: usize = 2;
/// Most bytes of each.
const SHOWN_BYTES: usize = 256;
/// Most characters of an answer that an error shows.
const SHOWN_ANSWER: usize = 60;

/// How long an answer may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandPatience {
    /// As long as listening and connecting may: 10 s by default.
    Bounded,
    /// Until the job is ended: the operation may have to wait for the peer.
    UntilEnded,
}

/// A program that runs.
pub(super) struct OwnProgram {
    /// As errors name it.
    name: String,
    child: Child,
    /// Its standard input; `None` once it is to end.
    input: Option<ChildStdin>,
    output: ChildStdout,
    /// What has arrived of an answer, in `answer[..have]`.
    answer: Box<[u8; LONGEST_ANSWER]>,
    have: usize,
    /// The present command with its line break; its memory is used again.
    command: String,
    said: Arc<StderrTail>,
    /// What it says that it is.
    of_itself: String,
}

/// The program of an endpoint, which its listener or connector and its present connection share.
pub(super) type SharedProgram = Arc<Mutex<OwnProgram>>;

impl OwnProgram {
    /// Starts the program at this path; a relative one begins at the working directory.
    pub(super) fn start(path: &str) -> Result<Self> {
        let name = format!("the program {path}");
        // A path without a slash would be searched for in PATH.
        let absolute = std::path::absolute(path).unwrap_or_else(|_| Path::new(path).into());
        let mut command = Command::new(absolute);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = dying_with_thread(&mut command).spawn().map_err(|e| {
            Error::environment(format!("{name} cannot be started: {e}")).hint(
                "give the path of an executable file; a relative path begins where the agent was started",
            )
        })?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err(Error::environment(format!(
                "{name} was started without pipes"
            )));
        };
        Ok(Self {
            name,
            child,
            input: Some(input),
            output,
            answer: Box::new([0; LONGEST_ANSWER]),
            have: 0,
            command: String::with_capacity(256),
            said: StderrTail::read(errors),
            of_itself: String::new(),
        })
    }

    /// Says which side of which pair it is, and the run's token, by which it may recognise its peer.
    pub(super) fn greet(&mut self, side: &str, replica: u32, token: &str) -> Result<()> {
        let command = format_args!("stackline {VERSION} {side} {replica} {token}");
        let (flags, patience) = (LiveCancelFlags::default(), CommandPatience::Bounded);
        self.of_itself = self.ask_and(command, &flags, patience, |answer| match answer {
            ProgramAnswer::Done(text) => Some(text.to_owned()),
            _ => None,
        })?;
        Ok(())
    }

    /// What it says that it is; empty if it says nothing.
    pub(super) fn of_itself(&self) -> &str {
        &self.of_itself
    }

    /// A command whose answer says no more than that it is done.
    pub(super) fn ask(
        &mut self,
        command: Arguments<'_>,
        flags: &LiveCancelFlags,
        patience: CommandPatience,
    ) -> Result<()> {
        self.ask_and(command, flags, patience, |answer| match answer {
            ProgramAnswer::Done("") => Some(()),
            _ => None,
        })
    }

    /// A command whose answer says something, as `listen` does.
    pub(super) fn ask_for_text(
        &mut self,
        command: Arguments<'_>,
        flags: &LiveCancelFlags,
    ) -> Result<String> {
        let patience = CommandPatience::Bounded;
        self.ask_and(command, flags, patience, |answer| match answer {
            ProgramAnswer::Done(text) if !text.is_empty() => Some(text.to_owned()),
            _ => None,
        })
    }

    /// Sends a command and returns what `meaning` makes of the answer; an answer that means nothing to it is an error.
    pub(super) fn ask_and<T>(
        &mut self,
        command: Arguments<'_>,
        flags: &LiveCancelFlags,
        patience: CommandPatience,
        meaning: impl FnOnce(ProgramAnswer<'_>) -> Option<T>,
    ) -> Result<T> {
        self.command.clear();
        // Writing to a String cannot fail.
        let _ = writeln!(self.command, "{command}");
        self.send_command(flags)?;
        let until = match patience {
            CommandPatience::Bounded => Some(Instant::now() + silence_limit() / 6),
            CommandPatience::UntilEnded => None,
        };
        let length = self.receive_answer(flags, until)?;
        let line = &self.answer[..length];
        match parse_answer(line) {
            Some(ProgramAnswer::Failed(why)) => Err(Error::measurement(format!(
                "{} failed at {}: {why}",
                self.name,
                shown_command(&self.command)
            ))),
            answer => answer.and_then(meaning).ok_or_else(|| self.rubbish(length)),
        }
    }

    fn send_command(&mut self, flags: &LiveCancelFlags) -> Result<()> {
        let mut sent = 0;
        while sent < self.command.len() {
            let Some(input) = &mut self.input else {
                return Err(self.died());
            };
            match input.write(&self.command.as_bytes()[sent..]) {
                Ok(bytes) => sent += bytes,
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => self.unless_ended(flags)?,
                    _ => return Err(self.died()),
                },
            }
        }
        Ok(())
    }

    /// Receives a line. Returns its length without the line break; it begins `answer`.
    fn receive_answer(&mut self, flags: &LiveCancelFlags, until: Option<Instant>) -> Result<usize> {
        self.have = 0;
        loop {
            if let Some(until) = until {
                self.wait(until, flags)?;
            }
            match self.output.read(&mut self.answer[self.have..]) {
                Ok(0) => return Err(self.died()),
                Ok(bytes) => {
                    let before = self.have;
                    self.have += bytes;
                    let end = self.answer[before..self.have]
                        .iter()
                        .position(|b| *b == b'\n');
                    match end.map(|end| before + end) {
                        Some(end) if end + 1 == self.have => return Ok(end),
                        Some(end) => return Err(self.rubbish(end)),
                        None if self.have == LONGEST_ANSWER => return Err(self.rubbish(self.have)),
                        None => {}
                    }
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => self.unless_ended(flags)?,
                    _ => return Err(error::io_error("reading a program's answer", &error)),
                },
            }
        }
    }

    /// Waits until something can be read, at most until that moment.
    fn wait(&self, until: Instant, flags: &LiveCancelFlags) -> Result<()> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            // `poll` counts whole milliseconds: rounded up, so that it does not end too early.
            let left = PollTimeout::try_from(left + Duration::from_millis(1));
            let mut watched = [PollFd::new(self.output.as_fd(), PollFlags::POLLIN)];
            match poll(&mut watched, left.unwrap_or(PollTimeout::MAX)) {
                Ok(0) => {
                    let (limit, name) = ((silence_limit() / 6).as_secs_f64(), &self.name);
                    let command = shown_command(&self.command);
                    let message = format!("{name} did not answer {command} within {limit} s");
                    return Err(Error::environment(message).hint(
                        "it has to answer each command with a line, and to flush its standard output (docs/STACKS.md)",
                    ));
                }
                Ok(_) => return Ok(()),
                Err(nix::errno::Errno::EINTR) => self.unless_ended(flags)?,
                Err(error) => return Err(error::io_error("poll", &error.into())),
            }
        }
    }

    /// An error if the job was ended before the answer came.
    fn unless_ended(&self, flags: &LiveCancelFlags) -> Result<()> {
        if !flags.ended() {
            return Ok(());
        }
        if self.command.starts_with("await") {
            // What awaits its peer is not the cause.
            return Err(Error::interrupted());
        }
        let command = shown_command(&self.command);
        let message = format!(
            "{} had not answered {command} when the run was ended",
            self.name
        );
        Err(Error::measurement(message)
            .hint("it waits for its peer, or did not flush its standard output"))
    }

    /// The error for an answer that is none, or none to this command; its line has so many bytes.
    #[cold]
    fn rubbish(&self, length: usize) -> Error {
        let line = String::from_utf8_lossy(&self.answer[..length]);
        let shown: String = line.chars().take(SHOWN_ANSWER).collect();
        let more = if line.chars().count() > SHOWN_ANSWER {
            "..."
        } else {
            ""
        };
        let (name, command) = (&self.name, shown_command(&self.command));
        let what = match () {
            () if length == LONGEST_ANSWER => "more than 4096 bytes, which begin with ",
            () if length + 1 < self.have => "several lines, the first of which is ",
            () => "",
        };
        let message = format!(
            "{name} answered {command} with {what}`{}{more}`",
            shown.escape_debug()
        );
        Error::environment(message).hint(
            "each command is answered by one line: `ok`, what docs/STACKS.md says stands behind it, or `error SENTENCE`; other words go to standard error",
        )
    }

    /// The error for a program whose standard output has ended, or that takes no command.
    #[cold]
    fn died(&mut self) -> Error {
        self.input = None;
        let status = seen_ended_within(&self.child, DIES);
        let how = status.map_or_else(|| "closed its standard output".to_owned(), ending);
        let (name, command) = (&self.name, shown_command(&self.command));
        let words = self.said.last_words();
        Error::environment(format!("{name} {how} at {command}{words}"))
            .hint("run it by itself and type the commands of docs/STACKS.md")
    }
}

impl Drop for OwnProgram {
    fn drop(&mut self) {
        // Its standard input ends, which asks it to end.
        self.input = None;
        end_group(&mut self.child, ENDS);
    }
}

/// How a program ended.
fn ending(status: WaitStatus) -> String {
    match status {
        WaitStatus::Exited(_, code) => format!("ended with exit code {code}"),
        WaitStatus::Signaled(_, signal, _) => format!("was ended by {}", signal.as_str()),
        _ => "ended".to_owned(),
    }
}

/// A command as errors show it; the token, which only the peer should know, is left out.
fn shown_command(command: &str) -> String {
    let command = command.trim_end();
    match command.strip_prefix("stackline ") {
        Some(_) => "the greeting `stackline`".to_owned(),
        None => format!("`{command}`"),
    }
}

/// The last lines that a program wrote to its standard error.
#[derive(Default)]
struct StderrTail {
    lines: Mutex<(VecDeque<String>, bool)>,
    ended: Condvar,
}

impl StderrTail {
    /// Starts a thread that reads all of it and keeps its last lines.
    fn read(errors: ChildStderr) -> Arc<Self> {
        let tail = Arc::new(Self::default());
        let keep = Arc::clone(&tail);
        std::thread::spawn(move || {
            let mut errors = BufReader::new(errors);
            let mut line = Vec::new();
            loop {
                line.clear();
                let got = errors
                    .by_ref()
                    .take(SHOWN_BYTES as u64)
                    .read_until(b'\n', &mut line);
                if !matches!(got, Ok(bytes) if bytes > 0) {
                    break;
                }
                let text = String::from_utf8_lossy(&line).replace(char::is_control, " ");
                let text = text.trim();
                if !text.is_empty() {
                    let lines = &mut keep.lines.lock().unwrap_or_else(PoisonError::into_inner).0;
                    lines.push_back(text.to_owned());
                    while lines.len() > SHOWN_LINES {
                        lines.pop_front();
                    }
                }
            }
            keep.lines.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
            keep.ended.notify_all();
        });
        tail
    }

    /// The last lines with a colon before them; empty if there are none. Waits a moment for the end of them.
    fn last_words(&self) -> String {
        let state = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .ended
            .wait_timeout_while(state, DIES, |(_, ended)| !*ended);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let words: Vec<&str> = state.0.iter().map(String::as_str).collect();
        match words.join("; ") {
            words if words.is_empty() => words,
            words => format!(": {words}"),
        }
    }
}
