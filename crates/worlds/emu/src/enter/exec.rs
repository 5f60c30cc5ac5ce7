//! Runs a program on a host, in the host's namespaces: terminal, signals and exit code are passed through. The program ends with this
//! process.
//!
//! ```text
//! this process     holds the lease, waits, passes signals on
//!   init           first process of the PID namespace; killed by the kernel when this process ends, however it ends
//!     the program  and whatever it starts; all killed by the kernel when init ends
//! ```

use super::init;
use super::network::enter_network;
use super::signals::{PendingSignal, Signals};
use super::view;
use crate::error::{self, Error, Result};
use crate::protocol::HostHandle;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, pipe2, sethostname};
use rustix::thread::{
    CapabilitySet, capabilities, configure_capability_in_ambient_set, set_capabilities,
};
use stackline_guard::keeper::fork;
use stackline_os::clock::{SystemClock, read_clock};
use stackline_os::processor_share::ControlGroup;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt as _;

/// What an unprivileged user may do on a host beyond what any user may: set up its network, capture on it, use low
/// ports.
const CAPABILITIES: [CapabilitySet; 3] = [
    CapabilitySet::NET_ADMIN,
    CapabilitySet::NET_RAW,
    CapabilitySet::NET_BIND_SERVICE,
];

/// A program to run on a host.
#[derive(Debug)]
pub struct HostProgram<'a> {
    /// The host.
    pub host: &'a HostHandle,
    /// All hosts of the network: their names are in the program's `/etc/hosts`.
    pub hosts: &'a [HostHandle],
    /// The program and its arguments.
    pub command: &'a [OsString],
    /// The connection to the emulator, which is closed when the emulator ends: the program is then ended too.
    pub lease: BorrowedFd<'a>,
    /// A file to which the moment of the program's end is written, in ns of the monotonic clock, before processes that it left behind are
    /// ended. Without it a note names these processes.
    pub end: Option<&'a File>,
}

/// Runs the program to its end and returns its exit code; 128 and the signal's number when a signal ended it, 127 when
/// there is no such program, 126 when it cannot be started. This process has one thread and leaves its network for
/// good.
pub fn exec(program: &HostProgram<'_>) -> Result<i32> {
    let group = program
        .host
        .share
        .as_ref()
        .map(|(share, name)| ControlGroup::make(name, *share))
        .transpose()?;
    enter_network(program.host.user.as_deref(), &program.host.net)?;
    let flags = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWIPC;
    let lost = |what: &str| format!("setting up the program's environment ({what})");
    let parent = pipe2(OFlag::O_CLOEXEC).map_err(|e| error::call_failed("opening a pipe", e))?;
    // Before the fork: both processes read signals from descriptors.
    let signals = Signals::block().map_err(|e| error::call_failed(&lost("signals"), e))?;
    // The number of threads is read in /proc, which is replaced afterwards.
    let child = {
        unshare(flags)
            .map_err(|e| error::namespaces_failed("mount, PID, UTS and IPC namespaces", e))?;
        fork().map_err(|e| error::call_failed(&lost("processes"), e))?
    };
    if let Some(init) = child {
        // Each process keeps one end: the child's shows when this process has ended.
        drop(parent.0);
        let ended = watch(init, &signals, program.lease);
        // The last program of the host takes the group with it.
        group.iter().for_each(ControlGroup::remove);
        return ended;
    }
    drop(parent.1);
    let code = prepare_environment(program).map_or_else(
        |error| {
            eprintln!(
                "error: {}",
                error::call_failed(&lost("files and privileges"), error).message
            );
            3
        },
        |()| {
            group.iter().for_each(|group| enter(group, program.host));
            let code = init::run(program.command, &signals, parent.0.as_fd());
            program.end.into_iter().for_each(write_end);
            if program.end.is_none() {
                init::name_left_processes();
            }
            code
        },
    );
    std::process::exit(code)
}

/// Writes when the program ended: ns of the monotonic clock, 8 bytes in native order. An error is ignored: whoever waits for the
/// program then takes the moment at which it noticed the end.
fn write_end(to: &File) {
    let moment = read_clock(SystemClock::Monotonic);
    let _ = to.write_all_at(&moment.to_ne_bytes(), 0);
}

/// Joins the host's control group, which limits its share of a processor. The first of the host's programs also measures the share with
/// a test loop, and prints a note if it differs from what the host was given by more than a tenth.
fn enter(group: &ControlGroup, host: &HostHandle) {
    if let Err(error) = group.enter() {
        eprintln!("note: {}", error.message);
        return;
    }
    let given = host
        .share
        .as_ref()
        .map_or(1.0, |(share, _)| f64::from(share.0) / 1000.0);
    let got = (group.is_new() && given < 1.0)
        .then(stackline_os::processor_share::measured_share)
        .flatten();
    if let Some(got) = got.filter(|got| (got / given - 1.0).abs() > 0.1) {
        eprintln!(
            "note: {} was given {:.1}% of a processor, but a test loop got {:.1}%",
            host.name,
            100.0 * given,
            100.0 * got
        );
    }
}

/// Gives this process the host's view: files, host name, capabilities.
fn prepare_environment(program: &HostProgram<'_>) -> io::Result<()> {
    for note in view::private_files(program.hosts)? {
        eprintln!("note: {note}");
    }
    if let Err(error) = sethostname(&program.host.name) {
        eprintln!("note: the program sees the machine's host name: {error}");
    }
    // A user other than root loses all capabilities at the start of the program, unless they are ambient.
    if program.host.user.is_some() {
        grant_capabilities()
    } else {
        Ok(())
    }
}

/// Makes [`CAPABILITIES`] ambient, so that they are kept when the program is executed.
fn grant_capabilities() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.inheritable |= CAPABILITIES.into_iter().collect::<CapabilitySet>() & sets.permitted;
    set_capabilities(None, sets)?;
    CAPABILITIES
        .into_iter()
        .try_for_each(|capability| Ok(configure_capability_in_ambient_set(capability, true)?))
}

/// Waits for init and returns its exit code; passes signals on to it, and kills it when the emulator ends.
fn watch(init: Pid, signals: &Signals, lease: BorrowedFd<'_>) -> Result<i32> {
    let failed = |error: Errno| error::call_failed("waiting for the program", error);
    loop {
        let mut fds = [
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(lease, PollFlags::POLLIN),
        ];
        match poll(&mut fds, PollTimeout::NONE) {
            Err(Errno::EINTR) => continue,
            other => other.map_err(failed)?,
        };
        let abandoned = fds[1].any() == Some(true);
        while let Some(sent) = signals.next().map_err(failed)? {
            match sent {
                PendingSignal::By(_, signal) => drop(kill(init, signal)),
                PendingSignal::Kernel => {}
                PendingSignal::Child => {
                    match waitpid(init, Some(WaitPidFlag::WNOHANG)).map_err(failed)? {
                        WaitStatus::Exited(_, code) => return Ok(code),
                        WaitStatus::Signaled(_, signal, _) => return Ok(128 + signal as i32),
                        _ => {}
                    }
                }
            }
        }
        if abandoned {
            let _ = kill(init, Signal::SIGKILL);
            let _ = waitpid(init, None);
            return Err(Error::measurement(
                "the network emulator exited, so the program was stopped",
            ));
        }
    }
}
