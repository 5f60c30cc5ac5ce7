//! The first process of a program's PID namespace: starts the program, passes signals on, reaps orphans, and ends
//! everything inside when it ends.

use super::signals::{PendingSignal, Signals};
use super::view;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{Pid, setpgid};
use stackline_os::spawn::blocking;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Runs the program to its end and returns its exit code: 128 and the signal's number if a signal ended it, 127 if there is no such
/// program, 126 if it cannot be started, 1 on other failures. `parent` is a pipe that closes when the parent ends.
pub(super) fn run(command: &[OsString], signals: &Signals, parent: BorrowedFd<'_>) -> i32 {
    // If the parent ended before this setting, the kernel sends no signal: the pipe shows whether it did.
    if set_pdeathsig(Signal::SIGKILL).is_err() || orphaned(parent) {
        return 1;
    }
    if let Err(error) = view::mount_proc() {
        eprintln!(
            "note: programs see the machine's /proc, because a private one cannot be mounted here: {error}"
        );
    }
    let program = match start(command, signals.before) {
        Ok(program) => program,
        Err(error) => {
            let name = command
                .first()
                .map(|name| name.to_string_lossy())
                .unwrap_or_default();
            eprintln!("error: {name} cannot be started: {error}");
            return if error.kind() == io::ErrorKind::NotFound {
                127
            } else {
                126
            };
        }
    };
    // Signals to the terminal's process group reach the program directly. This process leaves that group, so that it gets only the
    // signals that the parent passes on.
    let _ = setpgid(Pid::from_raw(0), Pid::from_raw(0));
    serve(program, signals).unwrap_or_else(|error| {
        eprintln!("error: waiting for the program failed: {error}");
        1
    })
}

/// Whether the parent has ended: its end of the pipe is closed.
fn orphaned(parent: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(parent, PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO) != Ok(0)
}

/// Starts the program, with this set of blocked signals.
fn start(command: &[OsString], blocked: SigSet) -> io::Result<Pid> {
    let (name, arguments) = command
        .split_first()
        .ok_or_else(|| io::Error::other("the command is empty"))?;
    let child = blocking(Command::new(name).args(arguments), blocked).spawn()?;
    Ok(Pid::from_raw(child.id() as i32))
}

/// Most processes that are named.
const NAMED_PROCESSES: usize = 4;

/// Says which processes the program has left behind: they end with it. Nothing where the machine's `/proc` is seen.
pub(super) fn name_left_processes() {
    if fs::read_link("/proc/self").is_ok_and(|own| own.as_os_str() != "1") {
        return;
    }
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let left: Vec<String> = numbers
        .filter(|process| *process != 1)
        .filter_map(running_name)
        .collect();
    let (named, others) = left.split_at(left.len().min(NAMED_PROCESSES));
    let (named, count) = (named.join(", "), left.len());
    let (is, more) = match (count, others.len()) {
        (0, _) => return,
        (1, _) => ("is", String::new()),
        (_, 0) => ("are", String::new()),
        (_, more) => ("are", format!(" and {more} more")),
    };
    eprintln!(
        "note: {named}{more} {is} still running and {is} ended with the command; `stackline net up` keeps a network for daemons"
    );
}

/// The name of a process that has not ended.
fn running_name(process: u32) -> Option<String> {
    let text = fs::read(format!("/proc/{process}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let (name, rest) = text.split_once('(')?.1.rsplit_once(") ")?;
    let name = name.chars().filter(|c| !c.is_control()).collect();
    (!rest.starts_with(['Z', 'X'])).then_some(name)
}

/// Passes signals on to the program and reaps processes until the program has ended; returns its exit code.
fn serve(program: Pid, signals: &Signals) -> nix::Result<i32> {
    loop {
        let mut fds = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::NONE) {
            Err(Errno::EINTR) => continue,
            other => other?,
        };
        while let Some(sent) = signals.next()? {
            match sent {
                // From outside: the parent passes on a signal.
                PendingSignal::By(0, signal @ (Signal::SIGINT | Signal::SIGQUIT)) => {
                    interrupt(program, signal)
                }
                PendingSignal::By(0, signal) => drop(kill(program, signal)),
                PendingSignal::By(..) | PendingSignal::Kernel => {}
                PendingSignal::Child => {
                    if let Some(code) = reap(program)? {
                        return Ok(code);
                    }
                }
            }
        }
    }
}

/// How long an interruption is repeated for processes that are new in the program's group.
const INTERRUPTED_FOR: Duration = Duration::from_millis(500);
/// Time between two looks for such processes.
const LOOK: Duration = Duration::from_millis(10);

/// Sends SIGINT or SIGQUIT to all processes of the program's group, as a key of the terminal does: a shell ends by an interruption only
/// when the process that it waits for had it too. A process between fork and exec has the handlers of its shell, which swallow an
/// interruption there; so each process that is new in the group, or has executed another program since, is interrupted again.
fn interrupt(program: Pid, signal: Signal) {
    let begun = Instant::now();
    let mut interrupted = BTreeMap::new();
    while begun.elapsed() < INTERRUPTED_FOR && !has_ended(program) {
        for process in group(program) {
            let file = fs::read_link(format!("/proc/{process}/exe")).ok();
            if interrupted.insert(process, file.clone()) != Some(file) {
                let _ = kill(process, signal);
            }
        }
        sleep(LOOK);
    }
}

/// Whether a child has ended. It is not reaped.
fn has_ended(child: Pid) -> bool {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    !matches!(waitid(Id::Pid(child), flags), Ok(WaitStatus::StillAlive))
}

/// The processes of the program's process group, the program itself last. Only the program where the machine's `/proc` is seen, because
/// its process ids are those of another PID namespace.
fn group(program: Pid) -> Vec<Pid> {
    let is_own = fs::read_link("/proc/self").is_ok_and(|own| own.as_os_str() == "1");
    let group = is_own.then(|| group_of(program)).flatten();
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers =
        numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(Pid::from_raw));
    let others = numbers
        .filter(|process| *process != program && group.is_some() && group_of(*process) == group);
    others.chain([program]).collect()
}

/// The process group of a process (field 5 of proc_pid_stat(5)), as text; `0` for a group outside this PID namespace. `None` if there
/// is no such process.
fn group_of(process: Pid) -> Option<String> {
    let text = fs::read(format!("/proc/{process}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    // The name before it may have any character, parentheses too.
    Some(text.rsplit_once(") ")?.1.split(' ').nth(2)?.to_owned())
}

/// Reaps the processes that have ended. Returns the program's exit code when it is among them, 128 and the number of a signal that
/// ended it.
fn reap(program: Pid) -> nix::Result<Option<i32>> {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) if pid == program => return Ok(Some(code)),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == program => {
                return Ok(Some(128 + signal as i32));
            }
            Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(error),
        }
    }
}
