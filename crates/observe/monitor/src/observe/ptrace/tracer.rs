//! The tracing side: starts a program, stops it and all that it starts at calls that send or receive, reports what these did at TCP
//! connections, and ends with the program's exit code.
//!
//! A stopped thread goes on as soon as its call has been looked at. Signals reach the program as if it was not traced.

use super::contents::{SystemCall, contents_of};
use super::record::{PtraceChange, PtraceRecord};
use super::socket::{SocketIdentity, identify_socket, number_of};
use crate::observe::existing_connections::has_accepted;
use crate::sys::ptrace::{go_on, listen, read_call_entry, read_call_result, wait};
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::unistd::Pid;
use stackline_events::clock;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::process::Command;

/// The most sockets that are remembered; calls at further ones are not recorded, and counted as lost.
const MOST: usize = 1 << 18;
/// Signals that are passed on to the program.
const PASSED_ON: [Signal; 6] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];
/// The event of a stop that is not the delivery of a signal (`PTRACE_EVENT_STOP`).
const EVENT_STOP: i32 = 128;
/// Signals that stop a program.
const STOPPING: [i32; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// The exit code of a program, as shells show it: its own code, or 128 plus the number of the signal that ended it.
pub type TraceeExitCode = i32;

/// Starts the command, which becomes the program through [`super::tracee_setup::become_program`], and reports what it does until it
/// ends; with the bytes sent and received at TCP connections if `contents`.
///
/// # Errors
/// When it cannot be started, or may not be traced.
pub fn trace_command(
    command: &mut Command,
    contents: bool,
    mut report: impl FnMut(PtraceRecord),
) -> io::Result<TraceeExitCode> {
    let program = Pid::from_raw(command.spawn()?.id().cast_signed());
    let options = Options::PTRACE_O_TRACESECCOMP
        | Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_EXITKILL;
    // Seized and not attached: no SIGSTOP is sent, and a group-stop lasts (ptrace(2)).
    ptrace::seize(program, options).map_err(|error| {
        let _ = kill(program, Signal::SIGKILL);
        io::Error::from(error)
    })?;
    pass_on(program)?;
    // The `/proc` of another PID namespace has other numbers for these processes.
    if fs::read_link("/proc/self").ok().as_deref()
        != Some(std::path::Path::new(&std::process::id().to_string()))
    {
        let why = "/proc does not show the program's processes, so their use of sockets is unknown"
            .to_owned();
        report(PtraceRecord {
            at_ns: clock::now_ns(),
            thread: 0,
            what: PtraceChange::Absent { why },
        });
    }
    let mut tracer = PtraceTracer {
        program,
        contents,
        calls: HashMap::new(),
        sockets: HashMap::new(),
        processes: HashMap::new(),
        report,
    };
    loop {
        match wait() {
            Ok((thread, status)) => {
                if let Some(code) = tracer.see(thread, status) {
                    return Ok(code);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Passes signals on to the program that another process sends to this one. Signals of the terminal reach the program without that.
fn pass_on(program: Pid) -> io::Result<()> {
    let signals: SigSet = PASSED_ON.into_iter().collect();
    signals.thread_block()?;
    let pending = SignalFd::new(&signals)?;
    let pass = move || {
        while let Ok(Some(sent)) = pending.read_signal() {
            // Codes above 0 are of the kernel, such as those of the terminal.
            if let Ok(signal) = Signal::try_from(sent.ssi_signo.cast_signed())
                && sent.ssi_code <= 0
            {
                let _ = kill(program, signal);
            }
        }
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(pass)
        .map(drop)
}

/// A call that a thread is in, and the sockets at which it sends and receives.
#[derive(Clone, Copy, Debug, Default)]
struct PendingSystemCall {
    sends: Option<u64>,
    receives: Option<u64>,
    /// The call itself.
    made: SystemCall,
}

struct PtraceTracer<T> {
    program: Pid,
    /// Whether the bytes sent and received are reported too.
    contents: bool,
    /// The call that each thread is in.
    calls: HashMap<Pid, PendingSystemCall>,
    /// The sockets that are known, by inode number.
    sockets: HashMap<u64, SocketIdentity>,
    /// The process of each thread.
    processes: HashMap<Pid, Pid>,
    report: T,
}

impl<T: FnMut(PtraceRecord)> PtraceTracer<T> {
    /// Handles a stop or end of a thread, and lets it go on. Returns the program's exit code when the program has ended.
    fn see(&mut self, thread: Pid, status: i32) -> Option<TraceeExitCode> {
        if libc::WIFEXITED(status) {
            return self.ends(thread, libc::WEXITSTATUS(status));
        }
        if libc::WIFSIGNALED(status) {
            return self.ends(thread, 128 + libc::WTERMSIG(status));
        }
        let signal = libc::WSTOPSIG(status);
        match status >> 16 {
            libc::PTRACE_EVENT_SECCOMP => self.enters(thread),
            // A thread that a signal stopped stays stopped; every other stop of this kind is the first one of a new thread.
            EVENT_STOP if STOPPING.contains(&signal) => listen(thread),
            EVENT_STOP => go_on(thread, 0),
            // PTRACE_O_TRACESYSGOOD sets bit 7 in stops at calls.
            0 if signal == libc::SIGTRAP | 0x80 => self.returns(thread),
            0 => go_on(thread, signal),
            event => {
                self.event(thread, event);
                go_on(thread, 0);
            }
        }
        None
    }

    fn report_change(&mut self, thread: Pid, what: PtraceChange) {
        (self.report)(PtraceRecord {
            at_ns: clock::now_ns(),
            thread: number(thread),
            what,
        });
    }

    /// A thread is about to make one of the calls.
    fn enters(&mut self, thread: Pid) {
        let calls = read_call_entry(thread).map(|(number, arguments)| PendingSystemCall {
            made: SystemCall { number, arguments },
            ..self.calls_of(thread, number, &arguments)
        });
        match calls.filter(|calls| calls.sends.is_some() || calls.receives.is_some()) {
            Some(calls) => {
                self.calls.insert(thread, calls);
                // An error is ignored: the thread has been killed.
                let _ = ptrace::syscall(thread, None);
            }
            None => go_on(thread, 0),
        }
    }

    /// The connections at which a call sends and receives.
    fn calls_of(&mut self, thread: Pid, call: i64, arguments: &[u64; 6]) -> PendingSystemCall {
        let looks_only = |flags: u64| flags & u64::from(libc::MSG_PEEK.cast_unsigned()) != 0;
        match call {
            libc::SYS_read | libc::SYS_readv => PendingSystemCall {
                receives: self.connection(thread, arguments[0]),
                ..PendingSystemCall::default()
            },
            libc::SYS_recvfrom if looks_only(arguments[3]) => PendingSystemCall::default(),
            libc::SYS_recvmsg if looks_only(arguments[2]) => PendingSystemCall::default(),
            libc::SYS_recvfrom | libc::SYS_recvmsg => PendingSystemCall {
                receives: self.connection(thread, arguments[0]),
                ..PendingSystemCall::default()
            },
            libc::SYS_splice => PendingSystemCall {
                receives: self.connection(thread, arguments[0]),
                sends: self.connection(thread, arguments[2]),
                ..PendingSystemCall::default()
            },
            _ => PendingSystemCall {
                sends: self.connection(thread, arguments[0]),
                ..PendingSystemCall::default()
            },
        }
    }

    /// The inode number of the TCP connection of a thread's descriptor; a new connection is reported.
    fn connection(&mut self, thread: Pid, descriptor: u64) -> Option<u64> {
        let socket = number_of(thread, descriptor)?;
        let known = match self.sockets.get(&socket) {
            Some(known) => *known,
            None if self.sockets.len() >= MOST => {
                self.report_change(thread, PtraceChange::Lost { count: 1 });
                return None;
            }
            None => {
                let known = identify_socket(self.process(thread), descriptor, socket);
                if let SocketIdentity::Connection(local, remote) = known {
                    let pid = thread.as_raw().cast_unsigned();
                    self.report_change(
                        thread,
                        PtraceChange::Opened {
                            socket,
                            local,
                            remote,
                            has_accepted: has_accepted(pid, local, remote),
                        },
                    );
                }
                if known != SocketIdentity::NotYet {
                    self.sockets.insert(socket, known);
                }
                known
            }
        };
        matches!(known, SocketIdentity::Connection(..)).then_some(socket)
    }

    /// A thread is at the exit of a call.
    fn returns(&mut self, thread: Pid) {
        let result = read_call_result(thread).and_then(|result| u64::try_from(result).ok());
        let calls = self.calls.remove(&thread).unwrap_or_default();
        if let Some(bytes) = result.filter(|bytes| *bytes > 0) {
            if let Some(socket) = calls.receives {
                self.report_contents(thread, calls.made, socket, false, bytes);
                self.report_change(thread, PtraceChange::Received { socket, bytes });
            }
            if let Some(socket) = calls.sends {
                self.report_change(thread, PtraceChange::Sent { socket, bytes });
                self.report_contents(thread, calls.made, socket, true, bytes);
            }
        }
        if let Some(socket) = calls
            .receives
            .filter(|_| self.contents && result == Some(0))
        {
            self.report_change(thread, PtraceChange::Ended { socket });
        }
        go_on(thread, 0);
    }

    /// Reports the bytes that a call sent or received, if wanted.
    fn report_contents(
        &mut self,
        thread: Pid,
        made: SystemCall,
        socket: u64,
        sent: bool,
        bytes: u64,
    ) {
        if !self.contents {
            return;
        }
        let known = contents_of(thread, made, bytes);
        for what in PtraceChange::of_contents(socket, sent, &known, bytes) {
            self.report_change(thread, what);
        }
    }

    /// A thread started another one, or executed a program.
    fn event(&mut self, thread: Pid, event: i32) {
        let other = || {
            ptrace::getevent(thread)
                .ok()
                .and_then(|number| i32::try_from(number).ok())
                .map(Pid::from_raw)
        };
        match event {
            libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
                let Some(child) = other() else { return };
                let is_process = self.process(child) == child;
                self.report_change(
                    thread,
                    PtraceChange::Began {
                        child: number(child),
                        is_process,
                    },
                );
            }
            libc::PTRACE_EVENT_EXEC => {
                // A thread that executes a program gets its process's ID as its number.
                if let Some(before) = other() {
                    self.calls.remove(&before);
                }
                let name = fs::read_to_string(format!("/proc/{thread}/comm")).unwrap_or_default();
                self.report_change(
                    thread,
                    PtraceChange::Executes {
                        name: name.trim_end().to_owned(),
                    },
                );
            }
            _ => {}
        }
    }

    /// A thread ended; returns the exit code if it was the program's first.
    fn ends(&mut self, thread: Pid, code: TraceeExitCode) -> Option<TraceeExitCode> {
        let last = self.process(thread) == thread;
        self.report_change(thread, PtraceChange::Ends { last });
        self.calls.remove(&thread);
        self.processes.remove(&thread);
        (thread == self.program).then_some(code)
    }

    /// The process of a thread.
    fn process(&mut self, thread: Pid) -> Pid {
        *self.processes.entry(thread).or_insert_with(|| {
            let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
            let process = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
            process
                .and_then(|text| text.trim().parse().ok())
                .map_or(thread, Pid::from_raw)
        })
    }
}

fn number(thread: Pid) -> u32 {
    thread.as_raw().unsigned_abs()
}
