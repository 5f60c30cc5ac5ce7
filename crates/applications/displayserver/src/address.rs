//! Where a display is: a TCP port, a unix socket by its path, streams of PUP or blasts, V's messages, streams through an internet server, a
//! terminal or pipes; and connecting there.

mod absent_service;

pub use absent_service::DisplayServiceKind;

use crate::message_stream::DisplayMessageStream;
use crate::papers::blast_stream::BlastStream;
use crate::papers::ngp::{Ngp, NgpChangeDelivery, NgpSentDefinitions};
use crate::papers::pup::Pup;
use crate::papers::vio::Vio;
use crate::raw_terminal::RawTerminal;
use crate::stream::DisplayStream;
use stackline_core::error::{Error, Result};
use stackline_events::setting::host;
use stackline_guard::secret::Secret;
use std::fmt;
use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Where a display is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DisplayAddress {
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
    /// Through an internet server: its secret, where that is known, its host and port, and what it connects to.
    Vio(DisplayAddressSecret, String, Box<Self>),
    /// One of the streams with the network graphics protocol on it.
    Ngp(Box<Self>, NgpSentDefinitions, NgpChangeDelivery),
}

/// A secret that goes with an address, and is no part of how it is written.
#[derive(Clone, Debug, Default)]
pub struct DisplayAddressSecret(Option<Secret>);

impl PartialEq for DisplayAddressSecret {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(own), Some(other)) => own.is(other.bytes()),
            (None, None) => true,
            _ => false,
        }
    }
}

impl Eq for DisplayAddressSecret {}

impl DisplayAddress {
    /// `unix:PATH`, `HOST:PORT`, `ikp:HOST:PORT`, `pup:HOST:PORT`, `blast:HOST:PORT`, `vio:HOST:PORT/ADDRESS`, `ngp:` or `ngp-newest:` before a
    /// stream's, `tty`, or `pipe`.
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
            return if path.is_empty() {
                Err("a path behind `unix:`".into())
            } else {
                Ok(Self::Unix(path.into()))
            };
        }
        for (prefix, changes) in [
            ("ngp:", NgpChangeDelivery::Every),
            ("ngp-newest:", NgpChangeDelivery::Newest),
        ] {
            let Some(rest) = text.strip_prefix(prefix) else {
                continue;
            };
            let is_stream = |below: &Self| {
                matches!(
                    below,
                    Self::Tcp(_) | Self::Unix(_) | Self::Pup(_) | Self::Blast(_) | Self::Vio(..)
                )
            };
            let below = Self::of(rest).ok().filter(is_stream);
            return below.map(|below| Self::Ngp(Box::new(below), NgpSentDefinitions::new(), changes)).ok_or_else(|| {
                format!("a stream behind `{prefix}`, as in {prefix}127.0.0.1:7085, {prefix}unix:PATH or {prefix}pup:127.0.0.1:7085")
            });
        }
        if let Some(rest) = text.strip_prefix("vio:") {
            // An argument can be read by every user of the machine.
            if rest.contains('@') {
                return Err("vio:HOST:PORT/ADDRESS without a secret: that comes from a file or the environment".into());
            }
            return Self::through(rest).ok_or_else(|| {
                "vio:HOST:PORT/ADDRESS: an internet server, and HOST:PORT or pup:HOST:PORT to which it connects".into()
            });
        }
        let place = |place: &str| {
            let port = place
                .rsplit_once(':')
                .and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
            port.filter(|(host, _)| !host.is_empty())
                .map(|_| place.to_owned())
        };
        for (prefix, of) in [
            ("ikp:", Self::Messages as fn(String) -> Self),
            ("pup:", Self::Pup),
            ("blast:", Self::Blast),
        ] {
            if let Some(rest) = text.strip_prefix(prefix) {
                return place(rest)
                    .map(of)
                    .ok_or_else(|| format!("HOST:PORT behind `{prefix}`"));
            }
        }
        place(text)
            .map(Self::Tcp)
            .ok_or_else(|| "HOST:PORT, as in 127.0.0.1:7085, or unix:PATH".into())
    }

    /// The same, where it is through an internet server: that server's secret is this one.
    #[must_use]
    pub fn knowing(self, secret: &Secret) -> Self {
        match self {
            Self::Vio(_, server, to) => {
                Self::Vio(DisplayAddressSecret(Some(secret.clone())), server, to)
            }
            Self::Ngp(below, sent, changes) => {
                Self::Ngp(Box::new(below.knowing(secret)), sent, changes)
            }
            other => other,
        }
    }

    /// Whether it is through an internet server.
    #[must_use]
    pub fn is_through_server(&self) -> bool {
        match self {
            Self::Vio(..) => true,
            Self::Ngp(below, ..) => below.is_through_server(),
            _ => false,
        }
    }

    /// `HOST:PORT/ADDRESS`.
    fn through(text: &str) -> Option<Self> {
        let (server, to) = text.split_once('/')?;
        let Ok(Self::Tcp(server)) = Self::of(server) else {
            return None;
        };
        let to = Self::of(to)
            .ok()
            .filter(|to| matches!(to, Self::Tcp(_) | Self::Pup(_)))?;
        Some(Self::Vio(
            DisplayAddressSecret::default(),
            server,
            Box::new(to),
        ))
    }

    /// The same as others connect to it: where it is at all addresses of this machine, by its name.
    #[must_use]
    pub fn for_others(self) -> Self {
        match self {
            Self::Tcp(place) => Self::Tcp(named(place)),
            Self::Messages(place) => Self::Messages(named(place)),
            Self::Pup(place) => Self::Pup(named(place)),
            Self::Blast(place) => Self::Blast(named(place)),
            Self::Vio(secret, place, to) => Self::Vio(secret, named(place), to),
            Self::Ngp(below, sent, changes) => {
                Self::Ngp(Box::new(below.for_others()), sent, changes)
            }
            local @ (Self::Unix(_) | Self::Terminal | Self::Pipe) => local,
        }
    }

    /// Host and port, where it has them.
    fn place(&self) -> Option<&str> {
        match self {
            Self::Unix(_) | Self::Terminal | Self::Pipe => None,
            Self::Ngp(below, ..) => below.place(),
            Self::Tcp(place)
            | Self::Messages(place)
            | Self::Pup(place)
            | Self::Blast(place)
            | Self::Vio(_, place, _) => Some(place),
        }
    }

    /// Whether its host is one, as far as there is one in it.
    fn has_host(&self) -> bool {
        self.place()
            .is_none_or(|place| place.to_socket_addrs().is_ok())
    }

    /// Connects to a display.
    ///
    /// # Errors
    /// An [`Error`] that says who does not answer.
    pub fn connect(&self) -> Result<DisplayStream> {
        self.connect_to(DisplayServiceKind::Display)
    }

    /// Connects to whoever serves that.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn connect_to(&self, service: DisplayServiceKind) -> Result<DisplayStream> {
        self.reach(service, self)
    }

    /// Connects, and names an address where nobody is there.
    fn reach(&self, service: DisplayServiceKind, named: &Self) -> Result<DisplayStream> {
        let stream = match self {
            Self::Tcp(address) => tcp(address).map(DisplayStream::Tcp),
            Self::Unix(path) => UnixStream::connect(path).map(DisplayStream::Unix),
            Self::Terminal => return terminal(true),
            Self::Pipe => return terminal(false),
            Self::Messages(place) => DisplayMessageStream::connect(place)
                .map(|client| DisplayStream::Messages(Box::new(client))),
            Self::Pup(place) => Pup::connect(place).map(DisplayStream::Pup),
            Self::Blast(place) => BlastStream::connect(place).map(DisplayStream::Blast),
            Self::Ngp(below, sent, changes) => {
                Ngp::connect(below.reach(service, named)?, sent, *changes)
                    .map(|stream| DisplayStream::Ngp(Box::new(stream)))
            }
            Self::Vio(secret, server, to) => {
                let stream = Vio::connect(
                    server,
                    secret.0.as_ref().map_or(&[], Secret::bytes),
                    &to.to_string(),
                )
                .map(DisplayStream::Vio);
                return stream.map_err(|error| absent_service::internet(server, &error));
            }
        };
        stream.map_err(|error| service.absent(named, &error))
    }

    /// Whether it shows with the first bytes only that nobody is there.
    pub(crate) fn shows_late(&self) -> bool {
        matches!(self, Self::Messages(_) | Self::Vio(..))
    }
}

/// This program's terminal, taking every byte as it is; or its standard input and output, whatever they are.
fn terminal(is_one: bool) -> Result<DisplayStream> {
    let raw = if is_one {
        RawTerminal::of(io::stdin().as_fd())
    } else {
        None
    };
    if is_one && raw.is_none() {
        return Err(Error::input("standard input is not a terminal")
            .hint("`stackline display terminal -- PROGRAM` serves programs on terminals"));
    }
    let clone = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map(File::from);
    let ends =
        clone(io::stdin().as_fd()).and_then(|input| Ok((input, clone(io::stdout().as_fd())?)));
    let (input, output) = ends
        .map_err(|error| Error::environment(format!("the terminal cannot be opened: {error}")))?;
    Ok(DisplayStream::Terminal(input, output, raw.map(Arc::new)))
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

/// A place by this machine's name, where it is at all its addresses.
fn named(place: String) -> String {
    match place.parse::<SocketAddr>() {
        Ok(all) if all.ip().is_unspecified() => format!("{}:{}", host(), all.port()),
        _ => place,
    }
}

impl fmt::Display for DisplayAddress {
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
            Self::Ngp(below, _, NgpChangeDelivery::Every) => write!(f, "ngp:{below}"),
            Self::Ngp(below, _, NgpChangeDelivery::Newest) => write!(f, "ngp-newest:{below}"),
        }
    }
}
