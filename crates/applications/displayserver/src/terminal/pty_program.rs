//! A program on a terminal of its own: started, its output read, hung up once nobody is there; the terminal's size and echo.

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

/// How long a program may take to end once nobody is there.
const HANGS_UP: Duration = Duration::from_secs(1);

/// Whom a program on a terminal is for.
#[derive(Clone, Copy)]
pub(super) enum For {
    /// A person sees all that it says.
    Person,
    /// Of a display's requests nothing else is part: standard error is ours.
    Display,
}

/// A program on a terminal of its own.
pub(super) struct ProgramTerminal {
    pub(super) pty: Arc<Pty>,
    child: Child,
}

impl ProgramTerminal {
    /// A program on a terminal of that size (columns and rows, where they are known), which echoes what is typed or not.
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

    /// Goes on until program or connection end: `types` brings what is typed until nobody is there, `says` takes what the program says as
    /// long as there is somebody, `ends` ends the connection.
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
            // Nobody is there any more: the terminal hangs up, and who does not care is ended.
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
        // Its number is its own until it is waited for.
        let _ = self.child.kill();
        ends();
        let _ = typed.join();
        let _ = self.child.wait();
    }
}

/// Whether a program has ended, which nobody has waited for.
fn has_ended(program: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(program), options).is_ok_and(|status| status.is_some())
}

/// A terminal has another size: so many columns and rows.
pub(super) fn resize(pty: &Pty, size: Option<(u16, u16)>) {
    if let Some((columns, rows)) = size {
        let _ = pty.resize(Size::new(rows, columns));
    }
}

/// A terminal echoes what is typed, or does not.
pub(super) fn echo(pty: &Pty, is_on: bool) {
    if let Ok(mut modes) = tcgetattr(pty) {
        modes.local_modes.set(LocalModes::ECHO, is_on);
        let _ = tcsetattr(pty, OptionalActions::Now, &modes);
    }
}

pub(super) fn failed(error: &dyn std::fmt::Display) -> Error {
    Error::environment(format!("cannot open a pseudo-terminal: {error}"))
}
