//! What accepts connections of one scheme, and what all schemes need to listen.

use crate::address::variants::DisplayAddress;
use crate::stream::DisplayStream;
use stackline_core::error::Error;
use stackline_guard::serve::cannot_listen;
use std::fmt::Debug;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// How long to wait until a killed service has released the address.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// How often to check whether it has.
const LOOK: Duration = Duration::from_millis(50);

/// Accepts connections of one scheme.
pub(crate) trait DisplayAcceptor: Debug + Send + Sync {
    /// Waits for the next connection.
    fn accept(&self) -> io::Result<DisplayStream>;

    /// The address on which it listens.
    fn address(&self) -> DisplayAddress;
}

/// The error if an address cannot be listened on.
pub(crate) fn cannot_listen_at(address: &DisplayAddress, error: &io::Error) -> Error {
    let why = match error.kind() {
        io::ErrorKind::NotFound => "create the socket's directory, or choose another address",
        io::ErrorKind::PermissionDenied => "this program lacks permission: choose another address",
        io::ErrorKind::InvalidInput => {
            "a unix socket path has at most 107 bytes: choose a shorter one"
        }
        io::ErrorKind::AddrNotAvailable => {
            "this machine does not have that address: choose another one"
        }
        _ => "another program may be using it: choose another address",
    };
    let hint = format!("{why} (`--listen`; for a page, `--view`)");
    cannot_listen(address, error, &hint)
}

/// Listens as soon as the address is free: a service that was just killed may still be ending.
pub(crate) fn once_free<L>(listen: impl Fn() -> io::Result<L>) -> io::Result<L> {
    let begun = Instant::now();
    loop {
        match listen() {
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse && begun.elapsed() < ENDS_WITHIN =>
            {
                thread::sleep(LOOK);
            }
            ended => return ended,
        }
    }
}
