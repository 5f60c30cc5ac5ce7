//! The programs of a trace: parsed from the command line, started in order, waited for, and ended.

use crate::listening_processes::{count_listeners, listens};
use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};
use stackline_core::error::{Error, Result};
use stackline_events::clock;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The word for programs on this machine instead of a host.
pub const HERE: &str = "here";
/// How long a server program may take until it listens.
const LISTENS: Duration = Duration::from_secs(3);
/// How long a program may take to end after SIGTERM.
const ENDS: Duration = Duration::from_secs(5);
/// How long servers may take to exit by themselves once the last program has ended.
const EXITS: Duration = Duration::from_millis(30);
/// The exit code of a program that a signal killed is this more than the signal's number, as shells and the tracer show it.
const KILLED_BY: i32 = 128;
/// How often it is checked whether a program listens.
const LOOK: Duration = Duration::from_millis(20);

/// A program to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedProgram {
    /// Where it runs: a host of the network, or [`HERE`].
    pub host: String,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// The program that `command` starts and stops at its calls, where it is not the program itself. Its exit code is then 128 plus the
    /// number of the signal that killed it, if one did.
    pub stopped: Option<OsString>,
}

impl TracedProgram {
    /// Checks before anything is set up that the program exists and may be executed. Hosts have the files of this machine.
    ///
    /// # Errors
    /// When it is not there, or may not be executed.
    pub fn can_be_started(&self) -> Result<(), StartFailure> {
        let name = &self.command[0];
        let search = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
        let places = match name.as_bytes().contains(&b'/') {
            true => vec![PathBuf::from(name)],
            false => std::env::split_paths(&search)
                .map(|place| place.join(name))
                .collect(),
        };
        // As execvp(3) does: the search goes on behind a file that cannot be executed.
        let mut cause = Errno::ENOENT;
        for place in &places {
            match may_be_executed(place) {
                Ok(()) => return interpreter_is_there(name, place),
                Err(Errno::ENOENT) => {}
                Err(other) => cause = other,
            }
        }
        Err(StartFailure::new(name, &cause.into()))
    }
}

/// A program that cannot be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartFailure {
    /// The error, with a hint.
    pub error: Error,
    /// The exit code that shells use for it: 127 if the program does not exist, 126 if it may not be executed.
    pub code: u8,
}

impl StartFailure {
    fn new(name: &OsStr, cause: &std::io::Error) -> Self {
        let is_absent = cause.kind() == std::io::ErrorKind::NotFound;
        Self {
            error: cannot_be_started(name, cause),
            // The codes of shells.
            code: if is_absent { 127 } else { 126 },
        }
    }
}

/// Whether a file may be executed.
fn may_be_executed(place: &Path) -> Result<(), Errno> {
    access(place, AccessFlags::X_OK)?;
    // Directories may have the bit, too.
    if place.is_dir() {
        return Err(Errno::EACCES);
    }
    Ok(())
}

/// Checks the interpreter of a script (`#!`): if that does not exist, the kernel would report the script as missing.
fn interpreter_is_there(name: &OsStr, script: &Path) -> Result<(), StartFailure> {
    /// The most bytes of the first line that the kernel reads.
    const HEAD: usize = 256;
    let mut head = Vec::with_capacity(HEAD);
    let read = File::open(script).and_then(|file| file.take(HEAD as u64).read_to_end(&mut head));
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or(&[]);
    let (true, Some(line)) = (read.is_ok(), line.strip_prefix(b"#!")) else {
        return Ok(());
    };
    let mut words = line.split(u8::is_ascii_whitespace);
    let Some(interpreter) = words.find(|word| !word.is_empty()) else {
        return Ok(());
    };
    may_be_executed(Path::new(OsStr::from_bytes(interpreter))).map_err(|cause| {
        let said = format!("{}: {cause}", String::from_utf8_lossy(interpreter));
        let kind = std::io::Error::from(cause).kind();
        StartFailure::new(name, &std::io::Error::new(kind, said))
    })
}

fn cannot_be_started(name: &OsStr, cause: &std::io::Error) -> Error {
    Error::input(format!(
        "{} cannot be started: {cause}",
        name.to_string_lossy()
    ))
    .hint(match cause.kind() {
        std::io::ErrorKind::PermissionDenied => {
            "the file is not executable (`chmod +x FILE`), or it is a directory"
        }
        _ => "check that it is installed and in $PATH",
    })
}

/// Parses the programs from the words of a command line.
///
/// # Errors
/// When none is named.
pub fn parse_programs(words: &[OsString]) -> Result<Vec<TracedProgram>> {
    let is_break = |at: usize| words.get(at).is_some_and(|word| word == "--");
    let hint = "stackline trace -- COMMAND, or HOST -- COMMAND [HOST2 -- COMMAND2]; `here` is this machine";
    let mut found: Vec<TracedProgram> = Vec::new();
    let mut at = usize::from(is_break(0));
    if at == 1 || !is_break(1) {
        found.push(TracedProgram {
            host: HERE.into(),
            command: Vec::new(),
            stopped: None,
        });
    }
    while let Some(word) = words.get(at) {
        if is_break(at + 1) {
            let host = word
                .to_str()
                .ok_or_else(|| Error::input("a host name is not UTF-8"))?;
            found.push(TracedProgram {
                host: host.into(),
                command: Vec::new(),
                stopped: None,
            });
            at += 2;
        } else {
            if let Some(program) = found.last_mut() {
                program.command.push(word.clone());
            }
            at += 1;
        }
    }
    match found.iter().find(|program| program.command.is_empty()) {
        Some(program) if program.host == HERE => {
            Err(Error::input("no program was given").hint(hint))
        }
        Some(program) => {
            Err(Error::input(format!("no program was given for {}", program.host)).hint(hint))
        }
        None => Ok(found),
    }
}

/// How the programs of a trace ended.
#[derive(Debug, Default)]
pub(crate) struct ProgramsEnd {
    /// The exit status of the last program, if there was one.
    pub(crate) last: Option<ExitStatus>,
    /// Programs that did not begin to listen in time, in words.
    pub(crate) silent: Vec<String>,
    /// Programs that ended by themselves too early or with a failure.
    pub(crate) early: Vec<EarlyEnd>,
}

/// A program that ended by itself: the last one of a trace with a failure, another one before the trace did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EarlyEnd {
    /// The name of its file.
    pub(crate) name: String,
    /// The host it ran on.
    pub(crate) host: String,
    /// Its process, if that is a child of this one.
    pub(crate) pid: Option<u32>,
    /// Its exit code, if it exited.
    pub(crate) code: Option<i32>,
    /// The signal that killed it, if one did.
    pub(crate) signal: Option<i32>,
    /// Whether it is the last program, which ends the trace.
    pub(crate) is_last: bool,
    /// When that was noticed (CLOCK_REALTIME), ns.
    pub(crate) at_ns: u64,
}

impl EarlyEnd {
    /// The early end of a program, if this was one: the last program should succeed, and the others should serve until it has ended.
    fn from_child(child: &ProgramChild, is_last: bool) -> Option<Self> {
        let (status, at_ns) = child.ended?;
        let is_stopped = child.program.stopped.is_some();
        let of_signal = |code: &i32| is_stopped && *code > KILLED_BY;
        let code = status.code().filter(|code| !of_signal(code));
        let passed_on = status.code().filter(of_signal).map(|code| code - KILLED_BY);
        (!is_last || !status.success()).then(|| Self {
            name: program_name(&child.program),
            host: child.program.host.clone(),
            pid: (!is_stopped).then(|| child.process.id()),
            code,
            signal: status.signal().or(passed_on),
            is_last,
            at_ns,
        })
    }

    /// In words.
    pub(crate) fn in_words(&self) -> String {
        let how = match (self.code, self.signal) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "no exit code".to_owned(),
        };
        let when = if self.is_last {
            ""
        } else {
            " before the trace did"
        };
        format!("{} on {} ended with {how}{when}", self.name, self.host)
    }
}

/// A program that was started, and how it ended, once it has.
#[derive(Debug)]
struct ProgramChild {
    program: TracedProgram,
    process: Child,
    /// Its status, and when that was noticed (CLOCK_REALTIME), ns.
    ended: Option<(ExitStatus, u64)>,
}

impl ProgramChild {
    /// Looks whether it has ended.
    fn look(&mut self) {
        if self.ended.is_none() {
            let status = self.process.try_wait().ok().flatten();
            self.ended = status.map(|status| (status, clock::now_ns()));
        }
    }
}

/// The running programs, in the order in which they were started.
#[derive(Debug)]
pub(crate) struct RunningPrograms {
    children: Vec<ProgramChild>,
    /// Notes about programs that did not begin to listen in time.
    silent: Vec<String>,
}

impl RunningPrograms {
    /// Starts the programs in order; `command` makes the command of each, `started` gets the process ID of each. After each one but
    /// the last, it waits until that listens.
    pub(crate) fn start(
        programs: Vec<TracedProgram>,
        command: impl Fn(&TracedProgram) -> Result<Command>,
        stop: &AtomicBool,
        mut started: impl FnMut(u32),
    ) -> Result<Self> {
        let mut running = Self {
            children: Vec::new(),
            silent: Vec::new(),
        };
        let last = programs.len().saturating_sub(1);
        for (number, program) in programs.into_iter().enumerate() {
            let listened = count_listeners(std::process::id());
            let mut command = command(&program)?;
            // Some servers signal their whole process group when they end, so each gets its own. The last program keeps this
            // process's group, and with it the terminal.
            if number < last {
                command.process_group(0);
            }
            let child = command
                .spawn()
                .map_err(|error| cannot_be_started(&program.command[0], &error));
            let child = match child {
                Ok(child) => child,
                Err(error) => {
                    running.end(true);
                    return Err(error);
                }
            };
            started(child.id());
            running.children.push(ProgramChild {
                program,
                process: child,
                ended: None,
            });
            if number < last {
                running.wait_until_it_listens(listened, stop);
            }
        }
        Ok(running)
    }

    /// Waits until the newest program or one of its descendants listens. The sockets of another user's program cannot be read; then
    /// it waits until the network namespace has more than `before` listeners.
    fn wait_until_it_listens(&mut self, before: usize, stop: &AtomicBool) {
        let Some(child) = self.children.last_mut() else {
            return;
        };
        let until = Instant::now() + LISTENS;
        let is_here = child.program.host == HERE;
        let pid = child.process.id();
        while Instant::now() < until && !stop.load(Ordering::Relaxed) {
            child.look();
            // Before the program has entered its host, it has the network namespace of this process.
            let entered = is_here || network_of(pid) != network_of(std::process::id());
            let before = if is_here { before } else { 0 };
            let is_hidden = std::fs::read_dir(format!("/proc/{pid}/fd")).is_err();
            let seen = listens(pid) || (is_hidden && count_listeners(pid) > before);
            if child.ended.is_some() || (entered && seen) {
                return;
            }
            std::thread::sleep(LOOK);
        }
        if !stop.load(Ordering::Relaxed) {
            self.silent.push(format!(
                "{} on {} did not start listening within {} s; the next program was started anyway",
                program_name(&child.program),
                child.program.host,
                LISTENS.as_secs()
            ));
        }
    }

    /// Waits until the last program has ended or `stop` is set.
    pub(crate) fn wait(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            self.children.iter_mut().for_each(ProgramChild::look);
            if self
                .children
                .last()
                .is_none_or(|child| child.ended.is_some())
            {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Ends the programs that still run: with SIGTERM, and after [`ENDS`] by killing them.
    /// `stopped`: the user ends the trace.
    pub(crate) fn end(&mut self, stopped: bool) -> ProgramsEnd {
        // A server whose failure ended the last program may need a moment to exit.
        if self.children.len() > 1 && !stopped {
            std::thread::sleep(EXITS);
        }
        let last = self.children.len().saturating_sub(1);
        let mut early = Vec::new();
        for (number, child) in self.children.iter_mut().enumerate() {
            child.look();
            early.extend(EarlyEnd::from_child(child, number == last));
            if child.ended.is_none() {
                ask_to_end(&child.process);
            }
        }
        let until = Instant::now() + ENDS;
        for child in &mut self.children {
            while child.ended.is_none() && Instant::now() < until {
                child.look();
                std::thread::sleep(Duration::from_millis(2));
            }
            if child.ended.is_none() {
                let _ = child.process.kill();
                let status = child.process.wait().ok();
                child.ended = status.map(|status| (status, clock::now_ns()));
            }
        }
        let ended = self.children.last().and_then(|child| child.ended);
        ProgramsEnd {
            last: ended.map(|(status, _)| status),
            silent: std::mem::take(&mut self.silent),
            early,
        }
    }
}

/// The name of a program's file.
fn program_name(program: &TracedProgram) -> String {
    let name = program.stopped.as_ref().or_else(|| program.command.first());
    name.map_or_else(String::new, |name| {
        Path::new(name)
            .file_name()
            .unwrap_or(name)
            .to_string_lossy()
            .into_owned()
    })
}

/// Sends SIGTERM. An error is ignored: the program has ended then.
fn ask_to_end(child: &Child) {
    use nix::sys::signal::{Signal, kill};
    if let Ok(pid) = i32::try_from(child.id()) {
        let _ = kill(nix::unistd::Pid::from_raw(pid), Signal::SIGTERM);
    }
}

/// The network namespace of a process.
fn network_of(pid: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/ns/net")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn parsed_programs(words: &[&str]) -> Vec<(String, String)> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let line = |program: &TracedProgram| {
            let words: Vec<_> = program
                .command
                .iter()
                .map(|word| word.to_string_lossy())
                .collect();
            (program.host.clone(), words.join(" "))
        };
        parse_programs(&words).unwrap().iter().map(line).collect()
    }

    #[test]
    fn a_server_that_ends_by_itself_is_reported_and_the_last_program_where_it_fails() {
        let shell = |script: &str| TracedProgram {
            host: HERE.into(),
            command: ["/bin/sh", "-c", script].map(OsString::from).to_vec(),
            stopped: None,
        };
        let stop = AtomicBool::new(false);
        let run = |scripts: &[&str]| {
            let programs = scripts.iter().map(|script| shell(script)).collect();
            let command = |program: &TracedProgram| {
                let mut command = Command::new(&program.command[0]);
                command.args(&program.command[1..]);
                Ok(command)
            };
            let mut running = RunningPrograms::start(programs, command, &stop, |_| {}).unwrap();
            running.wait(&stop);
            let early = running.end(false).early;
            early.iter().map(EarlyEnd::in_words).collect::<Vec<_>>()
        };
        assert_eq!(
            run(&["exit 3", "exit 0"]),
            ["sh on here ended with exit code 3 before the trace did"]
        );
        assert_eq!(run(&["exit 7"]), ["sh on here ended with exit code 7"]);
        assert_eq!(run(&["kill -9 $$"]), ["sh on here ended with signal 9"]);
        assert!(run(&["exit 0"]).is_empty());
    }

    #[test]
    fn a_program_that_cannot_be_started_is_refused() {
        let judged = |word: &str| {
            TracedProgram {
                host: HERE.into(),
                command: vec![word.into()],
                stopped: None,
            }
            .can_be_started()
        };
        assert_eq!(judged("sh"), Ok(()));
        assert_eq!(judged("/bin/sh"), Ok(()));
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("script");
        std::fs::write(&script, "#! /nowhere/sh -e\n").unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        for (word, why, code) in [
            ("/nowhere/x", "No such file", 127),
            ("no-such-program", "No such file", 127),
            ("/etc/passwd", "Permission denied", 126),
            ("/etc", "Permission denied", 126),
            (script.to_str().unwrap(), "/nowhere/sh: ", 127),
        ] {
            let failure = judged(word).unwrap_err();
            assert!(
                failure.error.message.contains(why) && failure.error.hint.is_some(),
                "{failure:?}"
            );
            assert_eq!(failure.code, code, "{word}");
        }
    }

    #[test]
    fn a_host_before_two_dashes_begins_a_program() {
        let pair = |host: &str, command: &str| (host.to_owned(), command.to_owned());
        assert_eq!(
            parsed_programs(&["curl", "-s", "x"]),
            [pair("here", "curl -s x")]
        );
        assert_eq!(
            parsed_programs(&["--", "curl", "-s"]),
            [pair("here", "curl -s")]
        );
        assert_eq!(
            parsed_programs(&[
                "web",
                "--",
                "nginx",
                "-g",
                "daemon off;",
                "client",
                "--",
                "curl",
                "http://web/"
            ]),
            [
                pair("web", "nginx -g daemon off;"),
                pair("client", "curl http://web/")
            ]
        );
        assert_eq!(
            parsed_programs(&["here", "--", "a", "here", "--", "b"]),
            [pair("here", "a"), pair("here", "b")]
        );
        for wrong in [
            &[][..],
            &["--"],
            &["web", "--"],
            &["a", "--", "b", "c", "--"],
        ] {
            let words: Vec<OsString> = wrong.iter().map(OsString::from).collect();
            assert!(
                parse_programs(&words).is_err_and(|error| error.hint.is_some()),
                "{wrong:?}"
            );
        }
    }
}
