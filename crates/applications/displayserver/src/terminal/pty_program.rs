//! A program on a pseudo-terminal: starting it, reading its output, and hanging up when nobody is there; the terminal's size and echo.

use super::telnet_end::PIECE;
use super::typist::{self, Typist};
use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use stackline_core::error::{Error, Result};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// How long a program may take to end after the hang-up.
const HANGS_UP: Duration = Duration::from_secs(1);

/// Whom a program on a terminal serves.
#[derive(Clone, Copy)]
pub(super) enum For {
    /// A person, who sees all of its output.
    Person,
    /// A display, which gets only requests: standard error goes to this program's.
    Display,
}

/// A program on a pseudo-terminal.
pub(super) struct ProgramTerminal {
    pub(super) pty: Arc<Pty>,
    child: Child,
}

impl ProgramTerminal {
    /// Starts a program on a terminal of that size (columns and rows, if known), with or without echo.
    pub(super) fn start(
        program: &[String],
        whom: For,
        size: Option<(u16, u16)>,
        echoes: bool,
    ) -> Result<Self> {
        let (pty, pts) = open().map_err(|error| failed(&error))?;
        resize(&pty, size);
        echo(&pty, echoes);
        let (name, arguments) = program
            .split_first()
            .ok_or_else(|| Error::input("no program specified"))?;
        let command = Command::new(name).args(arguments);
        let command = match whom {
            For::Person => command,
            For::Display => command.stderr(Stdio::inherit()),
        };
        let child = command.spawn(pts).map_err(|error| {
            Error::environment(format!("cannot start {name} on a terminal: {error}"))
                .hint("check that it is in PATH")
        })?;
        Ok(Self {
            pty: Arc::new(pty),
            child,
        })
    }

    pub(super) fn typist(&self) -> Result<Typist> {
        Typist::new(&self.pty).map_err(|error| failed(&error))
    }

    /// Runs until the program or the connection ends. `types` passes input until nobody is there, `says` takes the program's output as long
    /// as somebody is there, `ends` ends the connection.
    pub(super) fn run(
        mut self,
        types: impl FnOnce() + Send + 'static,
        mut says: impl FnMut(&[u8]) -> bool,
        ends: impl FnOnce(),
    ) {
        let group = Pid::from_child(&self.child);
        let (says_more, is_silent) = channel::<()>();
        let typed = thread::spawn(move || {
            types();
            // Nobody is there any more: the process group gets a hang-up, and is killed if it ignores that.
            let _ = kill_process_group(group, Signal::HUP);
            let _ = is_silent.recv_timeout(HANGS_UP);
            let _ = kill_process_group(group, Signal::KILL);
        });
        let mut piece = [0; PIECE];
        loop {
            let count = typist::read(&self.pty, &mut piece, || has_ended(group));
            if count == 0 || !says(&piece[..count]) {
                break;
            }
        }
        drop(says_more);
        // The process number cannot be reused before it is waited for.
        let _ = self.child.kill();
        ends();
        let _ = typed.join();
        let _ = self.child.wait();
    }
}

/// Whether a program has ended that nobody has waited for.
fn has_ended(program: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(program), options).is_ok_and(|status| status.is_some())
}

/// Sets the size of a terminal, in columns and rows.
pub(super) fn resize(pty: &Pty, size: Option<(u16, u16)>) {
    if let Some((columns, rows)) = size {
        let _ = pty.resize(Size::new(rows, columns));
    }
}

/// Sets whether a terminal echoes what is typed.
pub(super) fn echo(pty: &Pty, is_on: bool) {
    if let Ok(mut modes) = tcgetattr(pty) {
        modes.local_modes.set(LocalModes::ECHO, is_on);
        let _ = tcsetattr(pty, OptionalActions::Now, &modes);
    }
}

pub(super) fn failed(error: &dyn std::fmt::Display) -> Error {
    Error::environment(format!("cannot open a pseudo-terminal: {error}"))
}
