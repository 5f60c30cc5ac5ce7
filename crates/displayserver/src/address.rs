//! Where a display listens, and connections there: a TCP port, a unix socket by its path, streams of PUP, V's messages,
//! streams through an internet server, a terminal.

use crate::blast::{Blast, BlastListener};
use crate::message_stream::Messages;
use crate::ngp::{Kept, Ngp, Sent};
use crate::pup::{Pup, PupListener};
use crate::raw::Raw;
use crate::vio::Vio;
use stackline_core::error::{Error, Result};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Where a display is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A host and a port.
    Tcp(String),
    /// A path.
    Unix(PathBuf),
    /// The other end of this program's terminal.
    Terminal,
    /// The other ends of its standard output and input.
    Pipe,
    /// A host and a port, by V's messages.
    Messages(String),
    /// A host and a port, by streams of PUP.
    Pup(String),
    /// A host and a port, by streams of blasts.
    Blast(String),
    /// Through an internet server: its secret, its host and port, and what it connects to.
    Vio(String, String, Box<Self>),
    /// One of the streams with the network graphics protocol on it.
    Ngp(Box<Self>, Sent),
}

impl Address {
    /// `unix:PATH`, `HOST:PORT`, `ikp:HOST:PORT`, `pup:HOST:PORT`, `blast:HOST:PORT`, `vio:[SECRET@]HOST:PORT/ADDRESS`, `ngp:` before a stream's, `tty`, or
    /// `pipe`.
    ///
    /// # Errors
    /// What was expected.
    pub fn of(text: &str) -> std::result::Result<Self, String> {
        match text {
            "tty" => return Ok(Self::Terminal),
            "pipe" => return Ok(Self::Pipe),
            _ => {}
        }
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err("a path behind `unix:`".into()) } else { Ok(Self::Unix(path.into())) };
        }
        if let Some(rest) = text.strip_prefix("ngp:") {
            let is_stream = |below: &Self| {
                matches!(below, Self::Tcp(_) | Self::Unix(_) | Self::Pup(_) | Self::Blast(_) | Self::Vio(..))
            };
            let below = Self::of(rest).ok().filter(is_stream);
            return below.map(|below| Self::Ngp(Box::new(below), Sent::new())).ok_or_else(|| {
                "a stream behind `ngp:`, as in ngp:127.0.0.1:7085, ngp:unix:PATH or ngp:pup:127.0.0.1:7085".into()
            });
        }
        if let Some(rest) = text.strip_prefix("vio:") {
            return Self::through(rest).ok_or_else(|| {
                "vio:[SECRET@]HOST:PORT/ADDRESS: an internet server, and HOST:PORT or pup:HOST:PORT to which it connects".into()
            });
        }
        let place = |place: &str| {
            let port = place.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
            port.filter(|(host, _)| !host.is_empty()).map(|_| place.to_owned())
        };
        for (prefix, of) in
            [("ikp:", Self::Messages as fn(String) -> Self), ("pup:", Self::Pup), ("blast:", Self::Blast)]
        {
            if let Some(rest) = text.strip_prefix(prefix) {
                return place(rest).map(of).ok_or_else(|| format!("HOST:PORT behind `{prefix}`"));
            }
        }
        place(text).map(Self::Tcp).ok_or_else(|| "HOST:PORT, as in 127.0.0.1:7085, or unix:PATH".into())
    }

    /// `[SECRET@]HOST:PORT/ADDRESS`.
    fn through(text: &str) -> Option<Self> {
        let (server, to) = text.split_once('/')?;
        let (secret, server) = server.rsplit_once('@').unwrap_or(("", server));
        let Ok(Self::Tcp(server)) = Self::of(server) else { return None };
        let to = Self::of(to).ok().filter(|to| matches!(to, Self::Tcp(_) | Self::Pup(_)))?;
        Some(Self::Vio(secret.to_owned(), server, Box::new(to)))
    }

    /// Whether only this machine's programs reach what listens there.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Unix(_) | Self::Terminal | Self::Pipe => true,
            Self::Ngp(below, _) => below.is_loopback(),
            Self::Tcp(place)
            | Self::Messages(place)
            | Self::Pup(place)
            | Self::Blast(place)
            | Self::Vio(_, place, _) => {
                place.to_socket_addrs().is_ok_and(|mut all| all.all(|address| address.ip().is_loopback()))
            }
        }
    }

    /// Connects.
    ///
    /// # Errors
    /// An [`Error`] that says who does not answer.
    pub fn connect(&self) -> Result<Stream> {
        let stream = match self {
            Self::Tcp(address) => tcp(address).map(Stream::Tcp),
            Self::Unix(path) => UnixStream::connect(path).map(Stream::Unix),
            Self::Terminal => return terminal(true),
            Self::Pipe => return terminal(false),
            Self::Messages(place) => Messages::connect(place).map(|client| Stream::Messages(Box::new(client))),
            Self::Pup(place) => Pup::connect(place).map(Stream::Pup),
            Self::Blast(place) => Blast::connect(place).map(Stream::Blast),
            Self::Ngp(below, sent) => {
                let stream = Ngp::connect(below.connect()?, sent).map(|stream| Stream::Ngp(Box::new(stream)));
                return stream.map_err(|error| {
                    Error::environment(format!("no display answers at {self}: {error}"))
                        .hint("`stackline display serve --listen ngp:HOST:PORT` serves one by this protocol")
                });
            }
            Self::Vio(secret, server, to) => Vio::connect(server, secret.as_bytes(), &to.to_string()).map(Stream::Vio),
        };
        stream.map_err(|error| {
            Error::environment(format!("no display answers at {self}: {error}"))
                .hint("`stackline display serve` serves one; `--to` says where it is")
        })
    }
}

/// This program's terminal, taking every byte as it is; or its standard input and output, whatever they are.
fn terminal(is_one: bool) -> Result<Stream> {
    let raw = if is_one { Raw::of(io::stdin().as_fd()) } else { None };
    if is_one && raw.is_none() {
        return Err(Error::input("standard input is no terminal")
            .hint("`stackline display terminal -- PROGRAM` serves programs on terminals"));
    }
    let clone = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map(File::from);
    let ends = clone(io::stdin().as_fd()).and_then(|input| Ok((input, clone(io::stdout().as_fd())?)));
    let (input, output) = ends.map_err(|error| Error::environment(format!("the terminal cannot be had: {error}")))?;
    Ok(Stream::Terminal(input, output, raw.map(Arc::new)))
}

fn tcp(address: &str) -> io::Result<TcpStream> {
    const PATIENCE: Duration = Duration::from_secs(10);
    let mut last = io::Error::other("it has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => f.write_str(address),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Terminal => f.write_str("tty"),
            Self::Pipe => f.write_str("pipe"),
            Self::Messages(place) => write!(f, "ikp:{place}"),
            Self::Pup(place) => write!(f, "pup:{place}"),
            Self::Blast(place) => write!(f, "blast:{place}"),
            Self::Vio(_, server, to) => write!(f, "vio:{server}/{to}"),
            Self::Ngp(below, _) => write!(f, "ngp:{below}"),
        }
    }
}

/// A connection.
#[derive(Debug)]
pub enum Stream {
    /// Over TCP.
    Tcp(TcpStream),
    /// On this machine.
    Unix(UnixStream),
    /// A terminal, or pipes: where it is read and written, and how a terminal was before.
    Terminal(File, File, Option<Arc<Raw>>),
    /// By V's messages.
    Messages(Box<Messages>),
    /// A stream of PUP.
    Pup(Pup),
    /// A stream of blasts.
    Blast(Blast),
    /// A stream through an internet server.
    Vio(Vio),
    /// One with the network graphics protocol on it.
    Ngp(Box<Ngp>),
}

impl Stream {
    /// The same connection once more.
    ///
    /// # Errors
    /// The kernel's.
    pub fn again(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
            Self::Unix(stream) => stream.try_clone().map(Self::Unix),
            Self::Terminal(input, output, raw) => {
                Ok(Self::Terminal(input.try_clone()?, output.try_clone()?, raw.clone()))
            }
            Self::Pup(stream) => Ok(Self::Pup(stream.again())),
            Self::Vio(stream) => Ok(Self::Vio(stream.again())),
            Self::Blast(stream) => Ok(Self::Blast(stream.again())),
            Self::Ngp(stream) => stream.again().map(|again| Self::Ngp(Box::new(again))),
            // Who sends is blocked until the reply: nobody reads meanwhile.
            Self::Messages(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Writing takes no longer than that, or fails.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_within(&self, patience: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_write_timeout(Some(patience)),
            Self::Unix(stream) => stream.set_write_timeout(Some(patience)),
            Self::Pup(stream) => {
                stream.write_within(patience);
                Ok(())
            }
            Self::Vio(stream) => {
                stream.write_within(patience);
                Ok(())
            }
            Self::Ngp(stream) => stream.write_within(patience),
            // What a blast may take is its own patience.
            Self::Terminal(..) | Self::Messages(_) | Self::Blast(_) => Ok(()),
        }
    }

    /// Reading takes no longer than that, or fails; without, as long as it takes.
    ///
    /// # Errors
    /// The kernel's.
    pub fn read_within(&self, patience: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(patience),
            Self::Unix(stream) => stream.set_read_timeout(patience),
            Self::Terminal(..) => Ok(()),
            Self::Pup(stream) => {
                stream.read_within(patience);
                Ok(())
            }
            Self::Vio(stream) => {
                stream.read_within(patience);
                Ok(())
            }
            Self::Blast(stream) => {
                stream.read_within(patience);
                Ok(())
            }
            Self::Ngp(stream) => stream.read_within(patience),
            Self::Messages(messages) => {
                messages.patience.set(patience);
                Ok(())
            }
        }
    }

    /// Ends both ways: whoever reads or writes here is told.
    pub fn end(&self) {
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(std::net::Shutdown::Both),
            Self::Unix(stream) => stream.shutdown(std::net::Shutdown::Both),
            Self::Pup(stream) => {
                stream.end();
                Ok(())
            }
            Self::Vio(stream) => {
                stream.end();
                Ok(())
            }
            Self::Blast(stream) => {
                stream.end();
                Ok(())
            }
            Self::Ngp(stream) => {
                stream.end();
                Ok(())
            }
            Self::Terminal(..) | Self::Messages(_) => Ok(()),
        };
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
            Self::Terminal(input, ..) => input.read(into),
            Self::Messages(messages) => messages.read(into),
            Self::Pup(stream) => stream.read(into),
            Self::Vio(stream) => stream.read(into),
            Self::Blast(stream) => stream.read(into),
            Self::Ngp(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
            Self::Terminal(_, output, _) => output.write(bytes),
            Self::Messages(messages) => messages.write(bytes),
            Self::Pup(stream) => stream.write(bytes),
            Self::Vio(stream) => stream.write(bytes),
            Self::Blast(stream) => stream.write(bytes),
            Self::Ngp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Where connections come.
#[derive(Debug)]
pub enum Listener {
    /// Over TCP.
    Tcp(TcpListener),
    /// On this machine; the socket goes with it.
    Unix(UnixListener, PathBuf),
    /// Streams of PUP.
    Pup(PupListener),
    /// Streams of blasts.
    Blast(BlastListener),
    /// Others with the network graphics protocol on them, and what is kept of their clients.
    Ngp(Box<Self>, Kept),
}

impl Listener {
    /// Listens there. Beyond loopback only strangers who know the secret get in, which the caller sees to.
    ///
    /// # Errors
    /// An [`Error`] of the environment.
    pub fn at(address: &Address) -> Result<Self> {
        let failed = |error: io::Error| {
            Error::environment(format!("nothing can listen at {address}: {error}"))
                .hint("another program may have it: choose another address")
        };
        match address {
            Address::Messages(_) => Err(Error::input("V's messages have no connections to listen for").hint(
                "`display serve --listen ikp:HOST:PORT` serves a display by them; others listen at HOST:PORT or unix:PATH",
            )),
            Address::Vio(..) => Err(Error::input("an internet server connects to others, and nobody to it")
                .hint("listen at HOST:PORT, pup:HOST:PORT or unix:PATH")),
            Address::Terminal | Address::Pipe => {
                Err(Error::input("nobody connects to this program's terminal or pipes").hint("listen at HOST:PORT or unix:PATH"))
            }
            Address::Tcp(address) => TcpListener::bind(address.as_str()).map(Self::Tcp).map_err(failed),
            Address::Pup(address) => PupListener::bind(address).map(Self::Pup).map_err(failed),
            Address::Blast(address) => BlastListener::bind(address).map(Self::Blast).map_err(failed),
            Address::Ngp(below, _) => Ok(Self::Ngp(Box::new(Self::at(below)?), Kept::default())),
            Address::Unix(path) => {
                remove_left_behind(path);
                UnixListener::bind(path).map(|listener| Self::Unix(listener, path.clone())).map_err(failed)
            }
        }
    }

    /// The next connection.
    ///
    /// # Errors
    /// The kernel's.
    pub fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Self::Unix(listener, _) => listener.accept().map(|(stream, _)| Stream::Unix(stream)),
            Self::Pup(listener) => listener.accept().map(Stream::Pup),
            Self::Blast(listener) => listener.accept().map(Stream::Blast),
            Self::Ngp(below, kept) => Ngp::accept(below.accept()?, kept).map(|stream| Stream::Ngp(Box::new(stream))),
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> Address {
        match self {
            Self::Tcp(listener) => {
                Address::Tcp(listener.local_addr().map_or_else(|_| String::new(), |address| address.to_string()))
            }
            Self::Unix(_, path) => Address::Unix(path.clone()),
            Self::Pup(listener) => Address::Pup(listener.local().to_string()),
            Self::Blast(listener) => Address::Blast(listener.local().to_string()),
            Self::Ngp(below, _) => Address::Ngp(Box::new(below.address()), Sent::new()),
        }
    }

    /// Whether only programs of this machine reach it.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(listener) => listener.local_addr().is_ok_and(|address: SocketAddr| address.ip().is_loopback()),
            Self::Unix(..) => true,
            Self::Pup(listener) => listener.local().ip().is_loopback(),
            Self::Blast(listener) => listener.local().ip().is_loopback(),
            Self::Ngp(below, _) => below.is_local(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Removes a socket that nobody listens at any more, and nothing else.
fn remove_left_behind(path: &Path) {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err() {
        let _ = std::fs::remove_file(path);
    }
}
