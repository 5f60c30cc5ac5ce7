//! A packet socket of another user namespace's network. The kernel lets no process of several threads join a user namespace,
//! so a child that shares this process's file descriptors, and nothing else, joins it and opens the socket.
//!
//! It decides nothing, and leaves no child behind.

use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd, RawFd};

/// A packet socket without link headers, bound to nothing.
pub fn open(user: BorrowedFd<'_>, net: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // The child puts its socket in this one's place.
    let place = OwnedFd::from(File::open("/dev/null")?);
    // SAFETY: without CLONE_VM the child has its own copy of the memory and of this stack. Locks of other threads stay locked
    // in it, so it makes system calls only, and returns from here never.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::CLONE_FILES, 0, 0, 0, 0) };
    match child {
        0 => join_and_open(user.as_raw_fd(), net.as_raw_fd(), place.as_raw_fd()),
        child if child < 0 => Err(io::Error::last_os_error()),
        child => finish(Pid::from_raw(child as libc::pid_t)).map(|()| place),
    }
}

/// The child: ends with the number of its error, or 0.
fn join_and_open(user: RawFd, net: RawFd, place: RawFd) -> ! {
    // SAFETY: system calls on numbers that are open, which may be made after a fork; nothing is allocated.
    unsafe {
        let opened = || {
            if libc::setns(user, libc::CLONE_NEWUSER) < 0
                || libc::setns(net, libc::CLONE_NEWNET) < 0
            {
                return false;
            }
            let socket = libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
            let put = socket >= 0 && libc::dup3(socket, place, libc::O_CLOEXEC) >= 0;
            // It would stay open in the parent.
            put && libc::close(socket) == 0
        };
        let code = if opened() {
            0
        } else {
            *libc::__errno_location()
        };
        libc::_exit(code)
    }
}

fn finish(child: Pid) -> io::Result<()> {
    loop {
        // It sends no signal when it ends, so that who waits for any child does not see it.
        match waitpid(child, Some(WaitPidFlag::__WALL)) {
            Ok(WaitStatus::Exited(_, 0)) => return Ok(()),
            Ok(WaitStatus::Exited(_, error)) => return Err(io::Error::from_raw_os_error(error)),
            Ok(WaitStatus::Signaled(..)) => return Err(io::ErrorKind::Interrupted.into()),
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
