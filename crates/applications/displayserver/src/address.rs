//! The addresses of displays, and connecting to them: a TCP port, a unix socket, PUP or blast streams, V's messages, a stream through an
//! internet server, a terminal, or pipes.

mod absent_service;

pub use absent_service::DisplayServiceKind;

use crate::message_stream::DisplayMessageStream;
use crate::papers::blast_stream::BlastStream;
use crate::papers::ngp::{Ngp, NgpChangeDelivery, NgpSentDefinitions};
use crate::papers::pup::Pup;
use crate::papers::vio::Vio;
use crate::raw_terminal::RawTerminal;
use crate::stream::{DisplayStream, TerminalStream};
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

/// The address of a display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DisplayAddress {
    /// A host and a TCP port.
    Tcp(String),
    /// The path of a unix socket.
    Unix(PathBuf),
    /// The other end of this program's terminal.
    Terminal,
    /// The other ends of this program's standard output and input.
    Pipe,
    /// A host and a UDP port, by V's messages.
    Messages(String),
    /// A host and a UDP port, by PUP streams.
    Pup(String),
    /// A host and a UDP port, by blast streams.
    Blast(String),
    /// Through an internet server: its secret, if known, its host and port, and the address that it connects to.
    Vio(DisplayAddressSecret, String, Box<Self>),
    /// A stream with the network graphics protocol on it.
    Ngp(Box<Self>, NgpSentDefinitions, NgpChangeDelivery),
}

/// A kind of address that consists of a prefix, a host and a port.
pub(crate) struct HostPortScheme {
    /// The prefix in the written address.
    pub(crate) prefix: &'static str,
    address: fn(String) -> DisplayAddress,
    connect: fn(&str) -> io::Result<DisplayStream>,
}

impl HostPortScheme {
    const fn new(
        prefix: &'static str,
        address: fn(String) -> DisplayAddress,
        connect: fn(&str) -> io::Result<DisplayStream>,
    ) -> Self {
        Self {
            prefix,
            address,
            connect,
        }
    }
}

static TCP: HostPortScheme = HostPortScheme::new("", DisplayAddress::Tcp, tcp);
static MESSAGES: HostPortScheme = HostPortScheme::new("ikp:", DisplayAddress::Messages, |place| {
    DisplayMessageStream::connect(place).map(|client| DisplayStream::Messages(Box::new(client)))
});
static PUP: HostPortScheme = HostPortScheme::new("pup:", DisplayAddress::Pup, |place| {
    Pup::connect(place).map(DisplayStream::Pup)
});
static BLAST: HostPortScheme = HostPortScheme::new("blast:", DisplayAddress::Blast, |place| {
    BlastStream::connect(place).map(DisplayStream::Blast)
});
/// The kinds that have a prefix.
static SCHEMES: [&HostPortScheme; 3] = [&MESSAGES, &PUP, &BLAST];

/// The secret that belongs to an address. It is never written as part of the address.
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
    /// Parses an address: `unix:PATH`, `HOST:PORT`, `ikp:HOST:PORT`, `pup:HOST:PORT`, `blast:HOST:PORT`, `vio:HOST:PORT/ADDRESS`, `ngp:` or
    /// `ngp-newest:` before the address of a stream, `tty`, or `pipe`.
    ///
    /// # Errors
    /// What was expected, in words.
    pub fn of(text: &str) -> std::result::Result<Self, String> {
        match text {
            "tty" => return Ok(Self::Terminal),
            "pipe" => return Ok(Self::Pipe),
            _ => {}
        }
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() {
                Err("expected a path after `unix:`".into())
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
                format!("a stream must follow `{prefix}`, as in {prefix}127.0.0.1:7085, {prefix}unix:PATH or {prefix}pup:127.0.0.1:7085")
            });
        }
        if let Some(rest) = text.strip_prefix("vio:") {
            // Command-line arguments can be read by every user of the machine.
            if rest.contains('@') {
                return Err("omit the secret, as in vio:HOST:PORT/ADDRESS: it is read from a file or the environment".into());
            }
            return Self::through(rest).ok_or_else(|| {
                "use vio:HOST:PORT/ADDRESS: the internet server's address, then the HOST:PORT or pup:HOST:PORT to connect to".into()
            });
        }
        let named = SCHEMES
            .into_iter()
            .find_map(|scheme| Some((scheme, text.strip_prefix(scheme.prefix)?)));
        let (scheme, place) = named.unwrap_or((&TCP, text));
        let is_place = place
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        if is_place {
            return Ok((scheme.address)(place.to_owned()));
        }
        Err(match scheme.prefix {
            "" => "expected HOST:PORT, as in 127.0.0.1:7085, or unix:PATH".into(),
            prefix => format!("expected HOST:PORT after `{prefix}`"),
        })
    }

    /// The same address; if it goes through an internet server, with that server's secret.
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

    /// Whether it goes through an internet server.
    #[must_use]
    pub fn is_through_server(&self) -> bool {
        match self {
            Self::Vio(..) => true,
            Self::Ngp(below, ..) => below.is_through_server(),
            _ => false,
        }
    }

    /// Parses `HOST:PORT/ADDRESS`.
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

    /// The address for clients: if the server listens on all addresses of this machine, with this machine's name.
    #[must_use]
    pub fn for_others(self) -> Self {
        if let Some((scheme, place)) = self.host_port() {
            return (scheme.address)(named(place));
        }
        match self {
            Self::Vio(secret, place, to) => Self::Vio(secret, named(&place), to),
            Self::Ngp(below, sent, changes) => {
                Self::Ngp(Box::new(below.for_others()), sent, changes)
            }
            other => other,
        }
    }

    /// The kind of address, and its host and port, if it consists of nothing else.
    pub(crate) fn host_port(&self) -> Option<(&'static HostPortScheme, &str)> {
        match self {
            Self::Tcp(place) => Some((&TCP, place)),
            Self::Messages(place) => Some((&MESSAGES, place)),
            Self::Pup(place) => Some((&PUP, place)),
            Self::Blast(place) => Some((&BLAST, place)),
            Self::Unix(_) | Self::Terminal | Self::Pipe | Self::Vio(..) | Self::Ngp(..) => None,
        }
    }

    /// The host and port, if it has them.
    fn place(&self) -> Option<&str> {
        match self {
            Self::Vio(_, place, _) => Some(place),
            Self::Ngp(below, ..) => below.place(),
            _ => self.host_port().map(|(_, place)| place),
        }
    }

    /// Whether its host can be resolved, or it has none.
    fn has_host(&self) -> bool {
        self.place()
            .is_none_or(|place| place.to_socket_addrs().is_ok())
    }

    /// Connects to a display.
    ///
    /// # Errors
    /// An [`Error`] that says what does not answer.
    pub fn connect(&self) -> Result<DisplayStream> {
        self.connect_to(DisplayServiceKind::Display)
    }

    /// Connects to a service of that kind.
    ///
    /// # Errors
    /// As for [`Self::connect`].
    pub fn connect_to(&self, service: DisplayServiceKind) -> Result<DisplayStream> {
        self.reach(service, self)
    }

    /// Connects; an error names the address `named`.
    fn reach(&self, service: DisplayServiceKind, named: &Self) -> Result<DisplayStream> {
        let stream = match self {
            Self::Unix(path) => UnixStream::connect(path).map(DisplayStream::Unix),
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
            _ => match self.host_port() {
                Some((scheme, place)) => (scheme.connect)(place),
                None => return terminal(*self == Self::Terminal),
            },
        };
        stream.map_err(|error| service.absent(named, &error))
    }

    /// Whether only the first exchange of bytes shows that nobody is there.
    pub(crate) fn shows_late(&self) -> bool {
        matches!(self, Self::Messages(_) | Self::Vio(..))
    }
}

/// This program's terminal in raw mode, or its standard input and output, whatever they are.
fn terminal(is_one: bool) -> Result<DisplayStream> {
    let raw = if is_one {
        RawTerminal::of(io::stdin().as_fd())
    } else {
        None
    };
    if is_one && raw.is_none() {
        return Err(Error::input("standard input is not a terminal")
            .hint("serve programs on terminals with `stackline display terminal -- PROGRAM`"));
    }
    let clone = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map(File::from);
    let ends =
        clone(io::stdin().as_fd()).and_then(|input| Ok((input, clone(io::stdout().as_fd())?)));
    let (input, output) =
        ends.map_err(|error| Error::environment(format!("cannot open the terminal: {error}")))?;
    Ok(DisplayStream::Terminal(TerminalStream {
        input,
        output,
        raw: raw.map(Arc::new),
    }))
}

fn tcp(address: &str) -> io::Result<DisplayStream> {
    const PATIENCE: Duration = Duration::from_secs(10);
    let mut last = io::Error::other("the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(DisplayStream::Tcp(stream));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The host and port with this machine's name, if the host is the unspecified address.
fn named(place: &str) -> String {
    match place.parse::<SocketAddr>() {
        Ok(all) if all.ip().is_unspecified() => format!("{}:{}", host(), all.port()),
        _ => place.to_owned(),
    }
}

impl fmt::Display for DisplayAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((scheme, place)) = self.host_port() {
            return write!(f, "{}{place}", scheme.prefix);
        }
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Terminal => f.write_str("tty"),
            Self::Vio(_, server, to) => write!(f, "vio:{server}/{to}"),
            Self::Ngp(below, _, NgpChangeDelivery::Every) => write!(f, "ngp:{below}"),
            Self::Ngp(below, _, NgpChangeDelivery::Newest) => write!(f, "ngp-newest:{below}"),
            _ => f.write_str("pipe"),
        }
    }
}
