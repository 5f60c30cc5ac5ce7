//! This program's terminal (`tty`), or its standard input and output (`pipe`), whose other ends are a display.

use super::scheme::{DisplayCarriage, DisplayScheme, Refused};
use crate::acceptor::DisplayAcceptor;
use crate::raw_terminal::RawTerminal;
use crate::stream::DisplayStream;
use crate::terminal_stream::TerminalStream;
use stackline_core::error::{Error, Result};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// This program's terminal.
pub(super) const TTY: &str = "tty";
/// Its standard input and output.
pub(super) const PIPE: &str = "pipe";

/// Which of the two it is, as it is written.
pub(super) struct OwnTerminal(pub(super) &'static str);

impl DisplayScheme for OwnTerminal {
    fn text(&self) -> String {
        self.0.to_owned()
    }

    /// The terminal is in raw mode as long as the connection exists; standard input and output are used whatever they are.
    fn connect(&self, _: Refused<'_>) -> Result<DisplayStream> {
        let raw = if self.0 == TTY {
            let raw = RawTerminal::enter(io::stdin().as_fd()).ok_or_else(|| {
                Error::input("standard input is not a terminal").hint(
                    "serve programs on terminals with `stackline display terminal -- PROGRAM`",
                )
            })?;
            Some(Arc::new(raw))
        } else {
            None
        };
        let clone = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map(File::from);
        let ends =
            clone(io::stdin().as_fd()).and_then(|input| Ok((input, clone(io::stdout().as_fd())?)));
        let (input, output) =
            ends.map_err(|error| Error::environment(format!("cannot open the terminal: {error}")))?;
        Ok(DisplayStream::Terminal(TerminalStream {
            input,
            output,
            raw,
        }))
    }

    fn listen(&self, _: Refused<'_>) -> Result<Box<dyn DisplayAcceptor>> {
        Err(
            Error::input("nothing can connect to this program's terminal or pipes")
                .hint("listen on HOST:PORT or unix:PATH"),
        )
    }

    fn carriage(&self) -> DisplayCarriage {
        DisplayCarriage::OnlyConnection
    }
}
