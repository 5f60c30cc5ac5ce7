//! The system calls the bare loops are made of, each a line around libc. A call that fails is an error, never a panic.

#![allow(unsafe_code)] // a bare loop is bare because nothing of a library stands between it and the kernel

use std::io::{Error, Result};
use std::os::fd::RawFd;
use std::time::Duration;

fn check(result: isize) -> Result<usize> {
    usize::try_from(result).map_err(|_| Error::last_os_error())
}

/// `read(2)`.
pub(crate) fn read(fd: RawFd, buffer: &mut [u8]) -> Result<usize> {
    // SAFETY: the pointer and the length are those of a live, writable buffer.
    check(unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) })
}

/// `recv(2)` that throws up to `length` bytes away without copying them.
pub(crate) fn discard(fd: RawFd, length: usize) -> Result<usize> {
    // SAFETY: with MSG_TRUNC a stream socket writes nothing to the buffer.
    check(unsafe { libc::recv(fd, std::ptr::null_mut(), length, libc::MSG_TRUNC) })
}

/// `write(2)`.
pub(crate) fn write(fd: RawFd, buffer: &[u8]) -> Result<usize> {
    // SAFETY: the pointer and the length are those of a live buffer.
    check(unsafe { libc::write(fd, buffer.as_ptr().cast(), buffer.len()) })
}

/// `close(2)`.
pub(crate) fn close(fd: RawFd) {
    // SAFETY: the caller owns the descriptor and uses it no more.
    unsafe { libc::close(fd) };
}

/// A new TCP socket connected to a port of this host.
pub(crate) fn connect(port: u16) -> Result<RawFd> {
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from(std::net::Ipv4Addr::LOCALHOST).to_be(),
        },
        sin_zero: [0; 8],
    };
    // SAFETY: plain numbers.
    let fd = check(
        unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) } as isize,
    )?;
    let fd = fd as RawFd;
    let size = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: the address is a live sockaddr_in and the size is its own.
    check(unsafe { libc::connect(fd, (&raw const address).cast(), size) } as isize)?;
    Ok(fd)
}

/// `listen(2)`, again if need be, for another backlog.
pub(crate) fn listen(fd: RawFd, backlog: i32) -> Result<()> {
    // SAFETY: plain numbers.
    check(unsafe { libc::listen(fd, backlog) } as isize).map(drop)
}

/// `accept4(2)`.
pub(crate) fn accept(fd: RawFd) -> Result<RawFd> {
    // SAFETY: no address is asked for.
    let new = unsafe {
        libc::accept4(
            fd,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            libc::SOCK_CLOEXEC,
        )
    };
    check(new as isize).map(|fd| fd as RawFd)
}

/// Sets an integer option.
pub(crate) fn option(fd: RawFd, level: i32, name: i32, value: i32) -> Result<()> {
    let size = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the value is a live integer of that size.
    check(unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), size) } as isize)
        .map(drop)
}

/// Buffers of this size, beyond the limit where the process may.
pub(crate) fn buffers(fd: RawFd, bytes: i32) -> Result<()> {
    option(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)
        .or_else(|_| option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes))?;
    option(fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, bytes)
        .or_else(|_| option(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, bytes))
}

/// Whether something can be read within the time.
pub(crate) fn readable(fd: RawFd, wait: Duration) -> Result<bool> {
    let mut one = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    let wait_ms = i32::try_from(wait.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: one live pollfd.
    check(unsafe { libc::poll(&raw mut one, 1, wait_ms) } as isize).map(|n| n > 0)
}

/// Runs this process on one core only.
pub(crate) fn pin(core: usize) -> Result<()> {
    // SAFETY: a cpu_set_t of zeros is an empty set; the core is bounds-checked by CPU_SET.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        check(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) as isize)
            .map(drop)
    }
}

/// CPU seconds (user and system) of this process so far.
pub(crate) fn cpu_s() -> f64 {
    usage_s(libc::RUSAGE_SELF)
}

/// CPU seconds of this process and of everything it waited for so far.
pub(crate) fn family_cpu_s() -> f64 {
    usage_s(libc::RUSAGE_SELF) + usage_s(libc::RUSAGE_CHILDREN)
}

fn usage_s(who: i32) -> f64 {
    // SAFETY: the kernel fills a live rusage.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &raw mut usage);
        seconds(&usage)
    }
}

/// User and system time of a usage record.
pub(crate) fn seconds(usage: &libc::rusage) -> f64 {
    let part = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    part(usage.ru_utime) + part(usage.ru_stime)
}

/// Nanoseconds of the monotonic clock.
pub(crate) fn now_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel fills a live timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
