//! Listeners for all addresses to which clients can connect as streams.

use crate::acceptor::{DisplayAcceptor, cannot_listen_at};
use crate::address::DisplayAddress;
use crate::stream::DisplayStream;
use stackline_core::error::Result;
use stackline_guard::connection_slots::{ConnectionSlot, ConnectionSlotPool};
use stackline_guard::serve::{ConnectionService, serve_connections};
use stackline_guard::stop::StopSwitch;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// A listener, whatever its scheme.
#[derive(Debug)]
pub struct DisplayListener(Box<dyn DisplayAcceptor>);

impl DisplayListener {
    /// Listens on that address. Checking a secret is up to the server; a unix socket accepts only programs of this user.
    ///
    /// # Errors
    /// An error of the environment.
    pub fn at(address: &DisplayAddress) -> Result<Self> {
        let failed = |error| cannot_listen_at(address, &error);
        address.scheme().listen(&failed).map(Self)
    }

    /// Waits for the next connection.
    ///
    /// # Errors
    /// The kernel's.
    pub fn accept(&self) -> io::Result<DisplayStream> {
        self.0.accept()
    }

    /// The address on which it listens.
    #[must_use]
    pub fn address(&self) -> DisplayAddress {
        self.0.address()
    }

    /// Whether it can be reached only from this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        let is_loopback = |place: String| {
            place
                .parse()
                .is_ok_and(|address: SocketAddr| address.ip().is_loopback())
        };
        self.address().scheme().place().is_none_or(is_loopback)
    }
}

/// What is done with the connections of a listener.
struct StreamService<F> {
    strangers: Arc<ConnectionSlotPool>,
    serve: F,
}

impl<F: Fn(DisplayStream, ConnectionSlot) + Send + Sync + 'static> ConnectionService
    for StreamService<F>
{
    type Connection = DisplayStream;

    fn strangers(&self) -> &Arc<ConnectionSlotPool> {
        &self.strangers
    }

    fn end_of(&self, stream: &DisplayStream) -> io::Result<impl FnOnce() + Send + 'static> {
        stream.again().map(|stream| move || stream.end())
    }

    fn serve(self: Arc<Self>, stream: DisplayStream, place: ConnectionSlot) {
        (self.serve)(stream, place);
    }
}

/// Serves connections forever, each in a thread of its own that gets its slot among strangers.
pub(crate) fn serve_streams(
    listener: &DisplayListener,
    strangers: Arc<ConnectionSlotPool>,
    serve: impl Fn(DisplayStream, ConnectionSlot) + Send + Sync + 'static,
) {
    serve_streams_until(&StopSwitch::never(), listener, strangers, serve);
}

/// The same until the switch is thrown, which the next connection notices.
pub(crate) fn serve_streams_until(
    stop: &StopSwitch,
    listener: &DisplayListener,
    strangers: Arc<ConnectionSlotPool>,
    serve: impl Fn(DisplayStream, ConnectionSlot) + Send + Sync + 'static,
) {
    let service = Arc::new(StreamService { strangers, serve });
    serve_connections(&service, stop, || listener.accept());
}
