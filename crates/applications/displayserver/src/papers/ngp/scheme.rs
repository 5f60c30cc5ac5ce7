//! `ngp:ADDRESS` and `ngp-newest:ADDRESS`: the network graphics protocol on a stream to that address.

use super::{Ngp, NgpChangeDelivery, NgpDefinitionStores, NgpSentDefinitions};
use crate::acceptor::{DisplayAcceptor, cannot_listen_at};
use crate::address::scheme::{DisplayCarriage, DisplayScheme, ParsedAddress, Refused};
use crate::address::variants::DisplayAddress;
use crate::stream::DisplayStream;
use stackline_core::error::{Error, Result};
use stackline_guard::secret::Secret;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

/// The address of the stream, the definitions that were sent, and which changes are delivered.
pub(crate) struct NgpAddress<'a> {
    pub(crate) below: &'a DisplayAddress,
    pub(crate) sent: &'a NgpSentDefinitions,
    pub(crate) changes: NgpChangeDelivery,
}

/// The prefix of an address.
const fn prefix(changes: NgpChangeDelivery) -> &'static str {
    match changes {
        NgpChangeDelivery::Every => "ngp:",
        NgpChangeDelivery::Newest => "ngp-newest:",
    }
}

/// Parses `ngp:ADDRESS` and `ngp-newest:ADDRESS`.
pub(crate) fn parse(text: &str) -> Option<ParsedAddress> {
    let of = |changes| Some((changes, text.strip_prefix(prefix(changes))?));
    let (changes, rest) = of(NgpChangeDelivery::Every).or_else(|| of(NgpChangeDelivery::Newest))?;
    let below = DisplayAddress::parse(rest)
        .ok()
        .filter(|below| below.carriage() == DisplayCarriage::Bytes);
    Some(below.map(|below| DisplayAddress::Ngp(Box::new(below), NgpSentDefinitions::new(), changes)).ok_or_else(|| {
        let prefix = prefix(changes);
        format!("a stream must follow `{prefix}`, as in {prefix}127.0.0.1:7085, {prefix}unix:PATH or {prefix}pup:127.0.0.1:7085")
    }))
}

impl DisplayScheme for NgpAddress<'_> {
    fn text(&self) -> String {
        format!("{}{}", prefix(self.changes), self.below)
    }

    fn connect(&self, absent: Refused<'_>) -> Result<DisplayStream> {
        let below = self.below.scheme();
        let stream = Ngp::connect(below.connect(absent)?, self.sent, self.changes);
        stream
            .map(DisplayStream::Ngp)
            .map_err(|error| match error.kind() {
                ErrorKind::Unsupported => {
                    Error::environment(format!("no display answers at {}: {error}", self.text()))
                        .hint(format!(
                            "omit `ngp:`, or make the display listen on ngp:{} as well",
                            below.elsewhere()
                        ))
                }
                _ => absent(error),
            })
    }

    fn listen(&self, _: Refused<'_>) -> Result<Box<dyn DisplayAcceptor>> {
        let below = self.below;
        if self.changes == NgpChangeDelivery::Newest {
            return Err(Error::input(
                "the client chooses which changes are sent, so nothing can listen on `ngp-newest:`",
            )
            .hint(format!(
                "listen on ngp:{below}; clients use ngp-newest:{below}"
            )));
        }
        let failed = |error| cannot_listen_at(below, &error);
        Ok(Box::new(NgpAcceptor {
            below: below.scheme().listen(&failed)?,
            kept: NgpDefinitionStores::default(),
        }))
    }

    fn carriage(&self) -> DisplayCarriage {
        DisplayCarriage::Requests
    }

    fn place(&self) -> Option<String> {
        self.below.scheme().place()
    }

    fn changed(
        &self,
        place: fn(&str) -> String,
        secret: Option<&Secret>,
    ) -> Option<DisplayAddress> {
        let below = self.below.clone().changed(place, secret);
        Some(DisplayAddress::Ngp(
            Box::new(below),
            self.sent.clone(),
            self.changes,
        ))
    }

    fn socket_file(&self) -> Option<PathBuf> {
        self.below.scheme().socket_file()
    }

    fn is_through_server(&self) -> bool {
        self.below.is_through_server()
    }

    fn listens(&self) -> String {
        format!("ngp:{}", self.below.scheme().listens())
    }
}

/// A listener for streams with the protocol on them, and the definitions kept for its clients.
#[derive(Debug)]
struct NgpAcceptor {
    below: Box<dyn DisplayAcceptor>,
    kept: NgpDefinitionStores,
}

impl DisplayAcceptor for NgpAcceptor {
    fn accept(&self) -> io::Result<DisplayStream> {
        Ngp::accept(self.below.accept()?, &self.kept).map(DisplayStream::Ngp)
    }

    fn address(&self) -> DisplayAddress {
        DisplayAddress::Ngp(
            Box::new(self.below.address()),
            NgpSentDefinitions::new(),
            NgpChangeDelivery::Every,
        )
    }
}
