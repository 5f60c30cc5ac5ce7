//! A terminal that takes bytes as they are, and is as it was afterwards.

use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcsetattr};
use std::fs::File;
use std::os::fd::BorrowedFd;

/// A terminal that takes every byte as it is, until this is dropped.
#[derive(Debug)]
pub struct Raw {
    terminal: File,
    before: Termios,
}

impl Raw {
    /// Of that terminal; nothing where it is none.
    #[must_use]
    pub fn of(terminal: BorrowedFd<'_>) -> Option<Self> {
        if !isatty(terminal) {
            return None;
        }
        let before = tcgetattr(terminal).ok()?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(terminal, OptionalActions::Now, &raw).ok()?;
        let terminal = File::from(terminal.try_clone_to_owned().ok()?);
        Some(Self { terminal, before })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Drain, &self.before);
    }
}
