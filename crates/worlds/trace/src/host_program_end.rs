//! The moment at which a program on a host of an emulated network ended. The process that started it there writes it, before the
//! programs that are left on the host are ended and before the trace notices.

use nix::sys::memfd::{MFdFlags, memfd_create};
use stackline_events::clock;
use stackline_os::clock::{SystemClock, read_clock};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

/// A memory file (memfd) into which the moment is written.
#[derive(Debug)]
pub(crate) struct HostProgramEnd(File);

impl HostProgramEnd {
    /// Creates the file, without a moment.
    pub(crate) fn new() -> io::Result<Self> {
        let file = memfd_create("stackline-end", MFdFlags::MFD_CLOEXEC)?;
        Ok(Self(File::from(file)))
    }

    /// The path by which other processes of this user open the file.
    pub(crate) fn path(&self) -> PathBuf {
        let (process, descriptor) = (std::process::id(), self.0.as_raw_fd());
        PathBuf::from(format!("/proc/{process}/fd/{descriptor}"))
    }

    /// The moment on the clock of events, ns; `None` if none was written. The file holds it on the monotonic clock.
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
