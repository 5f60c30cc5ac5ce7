//! Where a display is: a TCP port, a unix socket by its path, streams of PUP or blasts, V's messages, streams through an internet server, a
//! terminal or pipes; and connecting there.

use crate::blast::Blast;
use crate::message_stream::Messages;
use crate::ngp::{Ngp, Sent};
use crate::pup::Pup;
use crate::raw::Raw;
use crate::stream::Stream;
use crate::vio::Vio;
use stackline_core::error::{Error, Result};
use std::fmt;
use std::fs::File;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
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
