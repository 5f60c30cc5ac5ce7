//! When a program ended on a host of a network, as the process says that started it there: what it leaves behind on the host is ended with
//! it, before the trace notices either.

use nix::sys::memfd::{MFdFlags, memfd_create};
use stackline_events::clock;
use stackline_os::clock::{SystemClock, read_clock};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

/// Where the moment is written: memory without a name.
#[derive(Debug)]
pub(crate) struct HostProgramEnd(File);

impl HostProgramEnd {
    /// Nothing ended yet.
    pub(crate) fn new() -> io::Result<Self> {
        let file = memfd_create("stackline-end", MFdFlags::MFD_CLOEXEC)?;
        Ok(Self(File::from(file)))
    }

    /// What others of this user open.
    pub(crate) fn path(&self) -> PathBuf {
        let (process, descriptor) = (std::process::id(), self.0.as_raw_fd());
        PathBuf::from(format!("/proc/{process}/fd/{descriptor}"))
    }

    /// The moment, on the clock of events, ns; `None` where none was written.
    pub(crate) fn at_ns(&self) -> Option<u64> {
        let mut written = [0; 8];
        self.0.read_exact_at(&mut written, 0).ok()?;
        let ago_ns = read_clock(SystemClock::Monotonic).checked_sub(u64::from_ne_bytes(written))?;
        clock::now_ns().checked_sub(ago_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_a_moment_of_the_clock_of_events() {
        let end = HostProgramEnd::new().unwrap();
        assert_eq!(end.at_ns(), None);
        let before_ns = clock::now_ns();
        let moment = read_clock(SystemClock::Monotonic);
        let after_ns = clock::now_ns();
        let other = File::options().write(true).open(end.path()).unwrap();
        other.write_all_at(&moment.to_ne_bytes(), 0).unwrap();
        let (first_ns, later_ns) = (end.at_ns().unwrap(), end.at_ns().unwrap());
        let slack_ns = clock::now_ns() - before_ns;
        assert!(first_ns + slack_ns >= before_ns && first_ns <= after_ns + slack_ns);
        assert!(later_ns.abs_diff(first_ns) <= slack_ns);
    }
}
