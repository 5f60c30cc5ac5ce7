//! `pup:HOST:PORT`: PUP streams.

use super::{Pup, PupListener};
use crate::acceptor::DisplayAcceptor;
use crate::address::host_port::HostPortScheme;
use crate::address::scheme::DisplayCarriage;
use crate::address::variants::DisplayAddress;
use crate::stream::DisplayStream;
use std::io;

pub(crate) static PUP: HostPortScheme = HostPortScheme {
    prefix: "pup:",
    expected: "expected HOST:PORT after `pup:`",
    address: DisplayAddress::Pup,
    connect: |place| Pup::connect(place).map(DisplayStream::Pup),
    listen: |place, failed| Ok(Box::new(PupListener::bind(place).map_err(failed)?)),
    carriage: DisplayCarriage::Bytes,
    is_behind_server: true,
};

impl DisplayAcceptor for PupListener {
    fn accept(&self) -> io::Result<DisplayStream> {
        Self::accept(self).map(DisplayStream::Pup)
    }

    fn address(&self) -> DisplayAddress {
        DisplayAddress::Pup(self.local().to_string())
    }
}
