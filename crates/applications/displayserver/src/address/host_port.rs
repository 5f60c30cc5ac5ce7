//! Schemes whose addresses are a prefix, a host and a port.

use super::scheme::{DisplayCarriage, DisplayScheme, ParsedAddress, Refused};
use super::variants::DisplayAddress;
use crate::acceptor::DisplayAcceptor;
use crate::stream::DisplayStream;
use stackline_core::error::Result;
use stackline_guard::secret::Secret;
use std::io;

/// Such a scheme.
pub(crate) struct HostPortScheme {
    /// What precedes the host.
    pub(crate) prefix: &'static str,
    /// What is said of a text that is no host and port.
    pub(crate) expected: &'static str,
    /// The address with that host and port.
    pub(crate) address: fn(String) -> DisplayAddress,
    /// Connects to a host and port.
    pub(crate) connect: fn(&str) -> io::Result<DisplayStream>,
    /// Listens at a host and port, or says why nothing can.
    pub(crate) listen: fn(&str, Refused<'_>) -> Result<Box<dyn DisplayAcceptor>>,
    /// What its connections carry.
    pub(crate) carriage: DisplayCarriage,
    /// Whether an internet server connects to such addresses.
    pub(crate) is_behind_server: bool,
}

impl HostPortScheme {
    /// The address of a text with its prefix.
    pub(crate) fn parse(&self, text: &str) -> Option<ParsedAddress> {
        let place = text.strip_prefix(self.prefix)?;
        let is_place = place
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        let address = is_place.then(|| (self.address)(place.to_owned()));
        Some(address.ok_or_else(|| self.expected.to_owned()))
    }
}

/// A scheme, and a host and port.
pub(crate) struct HostPort<'a>(pub(super) &'static HostPortScheme, pub(super) &'a str);

impl DisplayScheme for HostPort<'_> {
    fn text(&self) -> String {
        format!("{}{}", self.0.prefix, self.1)
    }

    fn connect(&self, absent: Refused<'_>) -> Result<DisplayStream> {
        (self.0.connect)(self.1).map_err(absent)
    }

    fn listen(&self, failed: Refused<'_>) -> Result<Box<dyn DisplayAcceptor>> {
        (self.0.listen)(self.1, failed)
    }

    fn carriage(&self) -> DisplayCarriage {
        self.0.carriage
    }

    fn place(&self) -> Option<String> {
        Some(self.1.to_owned())
    }

    fn changed(&self, place: fn(&str) -> String, _: Option<&Secret>) -> Option<DisplayAddress> {
        Some((self.0.address)(place(self.1)))
    }

    fn is_behind_server(&self) -> bool {
        self.0.is_behind_server
    }

    fn shows_late(&self) -> bool {
        self.0.carriage == DisplayCarriage::Messages
    }

    fn elsewhere(&self) -> String {
        format!("{}HOST:ANOTHER_PORT", self.0.prefix)
    }
}
