//! Listeners for all addresses to which clients can connect as streams.

use crate::address::DisplayAddress;
use crate::papers::blast_stream::BlastStreamListener;
use crate::papers::ngp::{Ngp, NgpChangeDelivery, NgpDefinitionStores, NgpSentDefinitions};
use crate::papers::pup::PupListener;
use crate::stream::DisplayStream;
use rustix::net::sockopt::set_socket_oobinline;
use stackline_core::error::{Error, Result};
use stackline_guard::connection_slots::{ConnectionSlot, ConnectionSlotPool};
use stackline_guard::serve::{ConnectionService, cannot_listen, serve_connections};
use stackline_guard::socket;
use stackline_guard::stop::StopSwitch;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// How long to wait until a killed service has released the address.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// How often to check whether it has.
const LOOK: Duration = Duration::from_millis(50);

/// A listener, by its transport.
#[derive(Debug)]
pub enum DisplayListener {
    /// Over TCP.
    Tcp(TcpListener),
    /// A unix socket, for programs of this user; its file is removed on drop.
    Unix(UnixListener, PathBuf),
    /// Streams of PUP.
    Pup(PupListener),
    /// Streams of blasts.
    Blast(BlastStreamListener),
    /// Another listener with the network graphics protocol on its streams, and the definitions kept for its clients.
    Ngp(Box<Self>, NgpDefinitionStores),
}

impl DisplayListener {
    /// Listens on that address. Checking a secret is up to the server; a unix socket accepts only programs of this user.
    ///
    /// # Errors
    /// An [`Error`] of the environment.
    pub fn at(address: &DisplayAddress) -> Result<Self> {
        let failed = |error: io::Error| {
            let why = match error.kind() {
                io::ErrorKind::NotFound => {
                    "create the socket's directory, or choose another address"
                }
                io::ErrorKind::PermissionDenied => {
                    "this program lacks permission: choose another address"
                }
                io::ErrorKind::InvalidInput => {
                    "a unix socket path has at most 107 bytes: choose a shorter one"
                }
                io::ErrorKind::AddrNotAvailable => {
                    "this machine does not have that address: choose another one"
                }
                _ => "another program may be using it: choose another address",
            };
            let hint = format!("{why} (`--listen`; for a page, `--view`)");
            cannot_listen(address, &error, &hint)
        };
        match address {
            DisplayAddress::Vio(..) => Err(Error::input("an internet server connects to streams; it cannot accept connections")
                .hint("listen on HOST:PORT, pup:HOST:PORT or unix:PATH")),
            DisplayAddress::Terminal | DisplayAddress::Pipe => {
                Err(Error::input("nothing can connect to this program's terminal or pipes").hint("listen on HOST:PORT or unix:PATH"))
            }
            DisplayAddress::Ngp(below, _, NgpChangeDelivery::Newest) => {
                Err(Error::input("the client chooses which changes are sent, so nothing can listen on `ngp-newest:`")
                    .hint(format!("listen on ngp:{below}; clients use ngp-newest:{below}")))
            }
            DisplayAddress::Ngp(below, ..) => Ok(Self::Ngp(Box::new(Self::at(below)?), NgpDefinitionStores::default())),
            DisplayAddress::Unix(path) => {
                let listens = || {
                    remove_left_behind(path);
                    socket::listen(path)
                };
                once_free(listens).map(|listener| Self::Unix(listener, path.clone())).map_err(failed)
            }
            DisplayAddress::Messages(_) => Err(Error::input("V messages have no connections to listen for").hint(
                "serve a display over them with `display serve --listen ikp:HOST:PORT`; other programs listen on HOST:PORT or unix:PATH",
            )),
            DisplayAddress::Tcp(place) => once_free(|| TcpListener::bind(place)).map(Self::Tcp).map_err(failed),
            DisplayAddress::Pup(place) => PupListener::bind(place).map(Self::Pup).map_err(failed),
            DisplayAddress::Blast(place) => BlastStreamListener::bind(place).map(Self::Blast).map_err(failed),
        }
    }

    /// Waits for the next connection.
    ///
    /// # Errors
    /// The kernel's.
    pub fn accept(&self) -> io::Result<DisplayStream> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                // Urgent data stays in the stream like all other bytes.
                set_socket_oobinline(&stream, true)?;
                Ok(DisplayStream::Tcp(stream))
            }
            Self::Unix(listener, _) => loop {
                let (stream, _) = listener.accept()?;
                if socket::is_same_user(&stream) {
                    return Ok(DisplayStream::Unix(stream));
                }
            },
            Self::Pup(listener) => listener.accept().map(DisplayStream::Pup),
            Self::Blast(listener) => listener.accept().map(DisplayStream::Blast),
            Self::Ngp(below, kept) => Ngp::accept(below.accept()?, kept)
                .map(|stream| DisplayStream::Ngp(Box::new(stream))),
        }
    }

    /// The address on which it listens.
    #[must_use]
    pub fn address(&self) -> DisplayAddress {
        match self {
            Self::Tcp(listener) => DisplayAddress::Tcp(
                listener
                    .local_addr()
                    .map_or_else(|_| String::new(), |address| address.to_string()),
            ),
            Self::Unix(_, path) => DisplayAddress::Unix(path.clone()),
            Self::Pup(listener) => DisplayAddress::Pup(listener.local().to_string()),
            Self::Blast(listener) => DisplayAddress::Blast(listener.local().to_string()),
            Self::Ngp(below, _) => DisplayAddress::Ngp(
                Box::new(below.address()),
                NgpSentDefinitions::new(),
                NgpChangeDelivery::Every,
            ),
        }
    }

    /// Whether it can be reached only from this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(listener) => listener
                .local_addr()
                .is_ok_and(|address: SocketAddr| address.ip().is_loopback()),
            Self::Unix(..) => true,
            Self::Pup(listener) => listener.local().ip().is_loopback(),
            Self::Blast(listener) => listener.local().ip().is_loopback(),
            Self::Ngp(below, _) => below.is_local(),
        }
    }
}

impl Drop for DisplayListener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Listens as soon as the address is free: a service that was just killed may still be ending.
fn once_free<L>(listen: impl Fn() -> io::Result<L>) -> io::Result<L> {
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

/// Removes the file of a socket on which nobody listens any more, and nothing else.
fn remove_left_behind(path: &Path) {
    let is_socket =
        std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err() {
        let _ = std::fs::remove_file(path);
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
    let service = Arc::new(StreamService { strangers, serve });
    serve_connections(&service, &StopSwitch::never(), || listener.accept());
}
