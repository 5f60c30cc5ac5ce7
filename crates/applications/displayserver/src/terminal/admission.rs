//! Who wants a terminal of a server and who has one: how many may be, what they have to know, and why somebody gets none.

use super::login;
use crate::server::hear_out;
use crate::stream::DisplayStream;
use stackline_core::error::{Error, Result};
use stackline_guard::attempts::Attempts;
use stackline_guard::connection_slots::{ConnectionSlot, ConnectionSlotPool};
use stackline_guard::secret::Secret;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

/// Terminals at once, and connections that have not said the secret yet: of more the idlest gives way.
const MOST_TERMINALS: usize = 64;
pub(super) const MOST_STRANGERS: usize = 64;
/// How long one that is refused may take to read why.
const LAST: Duration = Duration::from_secs(1);

/// What is served on terminals.
#[derive(Clone, Debug)]
pub struct TerminalServiceOptions {
    /// The program and its arguments.
    pub program: Vec<String>,
    /// What the other end has to know, but for programs of this user at a unix socket; without one those alone get a terminal.
    pub secret: Option<Secret>,
}

/// Who wants terminals, and who has them.
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

/// Says why there is no terminal. What the other end sent and nobody read would take the words with it.
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

/// Why somebody gets no terminal, where there is something to say of it.
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
        // Who goes before there is a terminal wanted none.
        _ => Ok(()),
    }
}
