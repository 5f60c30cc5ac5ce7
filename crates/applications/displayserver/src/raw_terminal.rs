//! A terminal in raw mode: it passes bytes unchanged, and gets its old mode back afterwards.

use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcsetattr};
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The terminals that are in raw mode.
static CHANGED: Mutex<Vec<Weak<SavedTerminalMode>>> = Mutex::new(Vec::new());

/// A terminal in raw mode, until this is dropped.
#[derive(Debug)]
pub struct RawTerminal(Arc<SavedTerminalMode>);

/// A terminal and the mode that it had.
#[derive(Debug)]
struct SavedTerminalMode {
    terminal: File,
    before: Termios,
}

impl SavedTerminalMode {
    fn restore(&self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Drain, &self.before);
    }

    fn change(&self) {
        let mut raw = self.before.clone();
        raw.make_raw();
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &raw);
    }
}

fn changed() -> Vec<Arc<SavedTerminalMode>> {
    CHANGED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .iter()
        .filter_map(Weak::upgrade)
        .collect()
}

/// Restores the mode of all terminals, for a program that ends at any point.
pub fn restore() {
    changed().iter().for_each(|before| before.restore());
}

/// Runs `stops` (which suspends the program) with all terminals in their old mode, and puts them into raw mode again.
pub fn restored<T>(stops: impl FnOnce() -> T) -> T {
    let changed = changed();
    changed.iter().for_each(|before| before.restore());
    let done = stops();
    changed.iter().for_each(|before| before.change());
    done
}

impl RawTerminal {
    /// Puts a terminal into raw mode; `None` if it is not a terminal.
    #[must_use]
    pub fn enter(terminal: BorrowedFd<'_>) -> Option<Self> {
        if !isatty(terminal) {
            return None;
        }
        let before = tcgetattr(terminal).ok()?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(terminal, OptionalActions::Now, &raw).ok()?;
        let terminal = File::from(terminal.try_clone_to_owned().ok()?);
        let before = Arc::new(SavedTerminalMode { terminal, before });
        let mut changed = CHANGED.lock().unwrap_or_else(PoisonError::into_inner);
        changed.retain(|before| before.strong_count() > 0);
        changed.push(Arc::downgrade(&before));
        Some(Self(before))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        self.0.restore();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pty_process::blocking::open;
    use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer};
    use std::os::fd::AsFd;

    #[test]
    fn a_terminal_is_as_it_was_when_this_goes_and_when_the_program_ends_before() {
        let (pty, _pts) = open().unwrap();
        let terminal = ioctl_tiocgptpeer(&pty, OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        let modes = || tcgetattr(&terminal).unwrap().local_modes;
        let before = modes();
        let raw = RawTerminal::enter(terminal.as_fd()).unwrap();
        assert_ne!(modes(), before);
        restored(|| assert_eq!(modes(), before));
        assert_ne!(modes(), before);
        restore();
        assert_eq!(modes(), before);
        drop(raw);
        drop(RawTerminal::enter(terminal.as_fd()));
        assert_eq!(modes(), before);
    }
}
