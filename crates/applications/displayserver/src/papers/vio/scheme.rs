//! `vio:HOST:PORT/ADDRESS`: through the internet server at that host and port.

use super::Vio;
use crate::acceptor::DisplayAcceptor;
use crate::address::absent_service::internet;
use crate::address::scheme::{DisplayScheme, ParsedAddress, Refused};
use crate::address::variants::{DisplayAddress, DisplayAddressSecret};
use crate::stream::DisplayStream;
use stackline_core::error::{Error, Result};
use stackline_guard::secret::Secret;

/// The server's secret, its host and port, and the address that it connects to.
pub(crate) struct VioAddress<'a> {
    pub(crate) secret: &'a DisplayAddressSecret,
    pub(crate) server: &'a str,
    pub(crate) to: &'a DisplayAddress,
}

/// Parses `vio:HOST:PORT/ADDRESS`.
pub(crate) fn parse(text: &str) -> Option<ParsedAddress> {
    let rest = text.strip_prefix("vio:")?;
    // Command-line arguments can be read by every user of the machine.
    if rest.contains('@') {
        return Some(Err(
            "omit the secret, as in vio:HOST:PORT/ADDRESS: it is read from a file or the environment".into(),
        ));
    }
    Some(through(rest).ok_or_else(|| {
        "use vio:HOST:PORT/ADDRESS: the internet server's address, then the HOST:PORT or pup:HOST:PORT to connect to".into()
    }))
}

/// Parses `HOST:PORT/ADDRESS`.
fn through(text: &str) -> Option<DisplayAddress> {
    let (server, to) = text.split_once('/')?;
    let Ok(DisplayAddress::Tcp(server)) = DisplayAddress::parse(server) else {
        return None;
    };
    let to = DisplayAddress::parse(to).ok();
    let to = to.filter(|to| to.scheme().is_behind_server())?;
    let secret = DisplayAddressSecret::default();
    Some(DisplayAddress::Vio(secret, server, Box::new(to)))
}

impl DisplayScheme for VioAddress<'_> {
    fn text(&self) -> String {
        format!("vio:{}/{}", self.server, self.to)
    }

    fn connect(&self, _: Refused<'_>) -> Result<DisplayStream> {
        let secret = self.secret.0.as_ref().map_or(&[][..], Secret::bytes);
        Vio::connect(self.server, secret, &self.to.to_string())
            .map(DisplayStream::Vio)
            .map_err(|error| internet(self.server, &error))
    }

    fn listen(&self, _: Refused<'_>) -> Result<Box<dyn DisplayAcceptor>> {
        Err(
            Error::input("an internet server connects to streams; it cannot accept connections")
                .hint("listen on HOST:PORT, pup:HOST:PORT or unix:PATH"),
        )
    }

    fn place(&self) -> Option<String> {
        Some(self.server.to_owned())
    }

    fn changed(
        &self,
        place: fn(&str) -> String,
        secret: Option<&Secret>,
    ) -> Option<DisplayAddress> {
        let secret = DisplayAddressSecret(secret.or(self.secret.0.as_ref()).cloned());
        let to = Box::new(self.to.clone());
        Some(DisplayAddress::Vio(secret, place(self.server), to))
    }

    fn is_through_server(&self) -> bool {
        true
    }

    fn without_marks_of(&self) -> Option<&DisplayAddress> {
        matches!(self.to, DisplayAddress::Pup(_)).then_some(self.to)
    }

    fn shows_late(&self) -> bool {
        true
    }

    fn listens(&self) -> String {
        self.to.to_string()
    }
}
