//! The addresses of displays, and connecting to them: a TCP port, a unix socket, PUP or blast streams, V's messages, a stream through an
//! internet server, a terminal, or pipes. A scheme is a variant, a file, and a row of the table here.

pub(crate) mod absent_service;
pub(crate) mod host_port;
mod messages;
pub(crate) mod own_terminal;
pub(crate) mod scheme;
mod tcp;
mod unix;
pub(crate) mod variants;

pub use absent_service::{DisplayServiceKind, program_not_served};
pub use scheme::DisplayCarriage;
pub use variants::{DisplayAddress, DisplayAddressSecret};

use crate::papers::blast_stream::scheme::BLAST;
use crate::papers::ngp::scheme::{self as ngp, NgpAddress};
use crate::papers::pup::scheme::PUP;
use crate::papers::vio::scheme::{self as vio, VioAddress};
use crate::stream::DisplayStream;
use host_port::HostPort;
use messages::MESSAGES;
use own_terminal::{OwnTerminal, PIPE, TTY};
use scheme::{DisplayScheme, ParsedAddress};
use stackline_core::error::{Error, Result};
use stackline_events::setting::host;
use stackline_guard::secret::Secret;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use tcp::TCP;
use unix::UnixAddress;

/// Makes what parses the addresses of all schemes, and what finds the scheme of an address. A row says how a text is parsed (`None`: it
/// belongs to another scheme), and what the scheme does with the address.
macro_rules! schemes {
    ($($name:ident $(($($part:ident),+))?, $parse:expr => $scheme:expr;)+) => {
        /// The first that does not answer `None` decides.
        static PARSERS: &[fn(&str) -> Option<ParsedAddress>] = &[$($parse),+];

        impl DisplayAddress {
            /// What its scheme does with it.
            pub(crate) fn scheme(&self) -> Box<dyn DisplayScheme + '_> {
                match self {
                    $(Self::$name $(($($part),+))? => Box::new($scheme),)+
                }
            }
        }
    };
}

schemes! {
    Unix(path), unix::parse => UnixAddress(path);
    Terminal, |text| (text == TTY).then_some(Ok(DisplayAddress::Terminal)) => OwnTerminal(TTY);
    Pipe, |text| (text == PIPE).then_some(Ok(DisplayAddress::Pipe)) => OwnTerminal(PIPE);
    Messages(place), |text| MESSAGES.parse(text) => HostPort(&MESSAGES, place);
    Pup(place), |text| PUP.parse(text) => HostPort(&PUP, place);
    Blast(place), |text| BLAST.parse(text) => HostPort(&BLAST, place);
    Vio(secret, server, to), vio::parse => VioAddress { secret, server, to };
    Ngp(below, sent, changes), ngp::parse => NgpAddress { below, sent, changes: *changes };
    Tcp(place), |text| TCP.parse(text) => HostPort(&TCP, place);
}

impl DisplayAddress {
    /// Parses an address: `unix:PATH`, `HOST:PORT`, `ikp:HOST:PORT`, `pup:HOST:PORT`, `blast:HOST:PORT`, `vio:HOST:PORT/ADDRESS`, `ngp:` or
    /// `ngp-newest:` before the address of a stream, `tty`, or `pipe`.
    ///
    /// # Errors
    /// What was expected, in words.
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        let parsed = PARSERS.iter().find_map(|parse| parse(text));
        parsed.unwrap_or_else(|| Err(TCP.expected.to_owned()))
    }

    /// The same address; if it goes through an internet server, with that server's secret.
    #[must_use]
    pub fn knowing(self, secret: &Secret) -> Self {
        self.changed(str::to_owned, Some(secret))
    }

    /// Whether it goes through an internet server.
    #[must_use]
    pub fn is_through_server(&self) -> bool {
        self.scheme().is_through_server()
    }

    /// What connections to it carry.
    #[must_use]
    pub fn carriage(&self) -> DisplayCarriage {
        self.scheme().carriage()
    }

    /// The address for clients: if the server listens on all addresses of this machine, with this machine's name.
    #[must_use]
    pub fn for_others(self) -> Self {
        self.changed(named, None)
    }

    /// The address with another host and port, and with another secret of an internet server, if it has them.
    pub(crate) fn changed(self, place: fn(&str) -> String, secret: Option<&Secret>) -> Self {
        let changed = self.scheme().changed(place, secret);
        changed.unwrap_or(self)
    }

    /// Whether its host can be resolved, or it has none.
    fn has_host(&self) -> bool {
        self.scheme()
            .place()
            .is_none_or(|place| place.to_socket_addrs().is_ok())
    }

    /// Checks that it is a stream that can be connected to: only over such a stream can bytes pass in both directions at once.
    ///
    /// # Errors
    /// If it is a terminal, a pipe, or V's messages.
    pub fn must_be_stream(&self) -> Result<()> {
        match self.carriage() {
            DisplayCarriage::Bytes | DisplayCarriage::Requests => Ok(()),
            DisplayCarriage::OnlyConnection => {
                Err(Error::input("cannot open a separate connection to a display behind a terminal or a pipe")
                    .hint("use a display at HOST:PORT or unix:PATH"))
            }
            DisplayCarriage::Messages => Err(Error::input(
                "cannot relay V messages: they block a client while it sends",
            )
            .hint("use HOST:PORT or unix:PATH; the same display can listen there too, as its `--listen` may be repeated")),
        }
    }

    /// Checks that a terminal can be served there over TELNET.
    ///
    /// # Errors
    /// If TELNET, or PUP TELNET with its marks, cannot pass there.
    pub fn must_serve_telnet(&self) -> Result<()> {
        if self.carriage() != DisplayCarriage::Bytes {
            return Err(Error::input(format!(
                "no terminal is served at {self}: TELNET needs a stream"
            ))
            .hint("`stackline display terminal -- PROGRAM` serves one and prints its address"));
        }
        let scheme = self.scheme();
        let Some(to) = scheme.without_marks_of() else {
            return Ok(());
        };
        Err(Error::input(
            "PUP TELNET uses marks in its stream, which do not pass through an internet server",
        )
        .hint(format!(
            "connect to {to} directly, or to a terminal at HOST:PORT through the server"
        )))
    }

    /// Removes the socket file of a Unix address.
    pub fn remove_socket_file(&self) {
        if let Some(path) = self.scheme().socket_file() {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Connects to a display.
    ///
    /// # Errors
    /// An [`Error`](stackline_core::error::Error) that says what does not answer.
    pub fn connect(&self) -> Result<DisplayStream> {
        self.connect_to(DisplayServiceKind::Display)
    }

    /// Connects to a service of that kind.
    ///
    /// # Errors
    /// As for [`Self::connect`].
    pub fn connect_to(&self, service: DisplayServiceKind) -> Result<DisplayStream> {
        let absent = |error| service.absent(self, &error);
        self.scheme().connect(&absent)
    }
}

impl fmt::Display for DisplayAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.scheme().text())
    }
}

/// The host and port with this machine's name, if the host is the unspecified address.
fn named(place: &str) -> String {
    match place.parse::<SocketAddr>() {
        Ok(all) if all.ip().is_unspecified() => format!("{}:{}", host(), all.port()),
        _ => place.to_owned(),
    }
}
