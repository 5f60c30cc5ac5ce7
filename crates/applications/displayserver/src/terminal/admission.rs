//! Admission to the terminals of a server: the limits on connections, the secret, and the reasons for refusals.

use super::login;
use crate::stream::DisplayStream;
use stackline_core::error::{Error, Result};
use stackline_guard::attempts::Attempts;
use stackline_guard::connection_slots::{ConnectionSlot, ConnectionSlotPool};
use stackline_guard::secret::Secret;
use stackline_guard::timed_stream::hear_out;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

/// The limit on open terminals.
const MOST_TERMINALS: usize = 64;
/// The limit on connections that have not sent the secret; when there are more, the idlest gives way.
pub(super) const MOST_STRANGERS: usize = 64;
/// How long a refused connection may take to read the reason.
const LAST: Duration = Duration::from_secs(1);

/// What is served on terminals.
#[derive(Clone, Debug)]
pub struct TerminalServiceOptions {
    /// The program and its arguments.
    pub program: Vec<String>,
    /// The secret that the other end has to send, except programs of this user on a unix socket. `None`: only those get a terminal.
    pub secret: Option<Secret>,
}

/// Decides who gets a terminal.
pub(super) struct TerminalAdmission {
    pub(super) service: TerminalServiceOptions,
    pub(super) terminals: Arc<ConnectionSlotPool>,
    pub(super) attempts: Attempts,
}

impl TerminalAdmission {
    pub(super) fn new(service: TerminalServiceOptions) -> Self {
        Self {
            service,
            terminals: ConnectionSlotPool::new(MOST_TERMINALS),
            attempts: Attempts::default(),
        }
    }
}

/// Reports to a client that no terminal is free. Its unread data is read first: closing with unread data would discard the report.
pub(super) fn refused(stream: &mut DisplayStream) -> Error {
    let words = format!(
        "{MOST_TERMINALS} terminals are open here, which is the maximum: try again later\r\n"
    );
    let _ = stream.write_all(words.as_bytes());
    stream.ends_writing();
    hear_out(stream, LAST);
    stream.end();
    Error::environment(format!(
        "a terminal was refused: {MOST_TERMINALS} are already open"
    ))
}

/// The error for a connection that gets no terminal, if there is something to report.
pub(super) fn sent_away(error: &io::Error, place: &ConnectionSlot) -> Result<()> {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Err(Error::environment(format!(
            "a terminal was refused: {error}"
        ))),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Err(Error::environment(format!(
            "a terminal was refused: the peer did not send the secret within {} s",
            login::TIME.as_secs()
        ))),
        _ if place.is_lost() => Err(Error::environment(
            "a terminal was refused: newer connections arrived before the peer sent the secret",
        )),
        // A connection that ends before there is a terminal is not reported.
        _ => Ok(()),
    }
}
