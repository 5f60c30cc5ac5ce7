//! The traced program's side: before the program begins, its process waits until it is traced, and installs the filter that stops it
//! at calls.

use crate::sys::ptrace::stop_at;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

/// The calls that send or receive at a descriptor. The program is stopped at each of them, whatever the descriptor is.
pub(super) const CALLS: [u32; 10] = [
    libc::SYS_read as u32,
    libc::SYS_write as u32,
    libc::SYS_readv as u32,
    libc::SYS_writev as u32,
    libc::SYS_recvfrom as u32,
    libc::SYS_sendto as u32,
    libc::SYS_recvmsg as u32,
    libc::SYS_sendmsg as u32,
    libc::SYS_sendfile as u32,
    libc::SYS_splice as u32,
];
/// How long to wait for the tracer, which attaches at once.
const BEGINS: Duration = Duration::from_secs(5);

/// Becomes the program once the process is traced. It returns only on failure.
#[must_use]
pub fn become_program(command: &[OsString]) -> io::Error {
    let Some((name, arguments)) = command.split_first() else {
        return io::Error::other("the command is empty");
    };
    let until = Instant::now() + BEGINS;
    while !is_traced() {
        if Instant::now() > until {
            return io::Error::other("no tracer attached to it");
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    // Not before there is a tracer: without one, the stopped calls fail (seccomp(2)).
    match stop_at(&CALLS) {
        Ok(()) => Command::new(name).args(arguments).exec(),
        Err(error) => error,
    }
}

fn is_traced() -> bool {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let tracer = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|tracer| tracer.trim() != "0")
}
