//! `blast:HOST:PORT`: streams of blasts.

use super::{BlastStream, BlastStreamListener};
use crate::acceptor::DisplayAcceptor;
use crate::address::host_port::HostPortScheme;
use crate::address::scheme::DisplayCarriage;
use crate::address::variants::DisplayAddress;
use crate::stream::DisplayStream;
use std::io;

pub(crate) static BLAST: HostPortScheme = HostPortScheme {
    prefix: "blast:",
    expected: "expected HOST:PORT after `blast:`",
    address: DisplayAddress::Blast,
    connect: |place| BlastStream::connect(place).map(DisplayStream::Blast),
    listen: |place, failed| Ok(Box::new(BlastStreamListener::bind(place).map_err(failed)?)),
    carriage: DisplayCarriage::Bytes,
    is_behind_server: false,
};

impl DisplayAcceptor for BlastStreamListener {
    fn accept(&self) -> io::Result<DisplayStream> {
        Self::accept(self).map(DisplayStream::Blast)
    }

    fn address(&self) -> DisplayAddress {
        DisplayAddress::Blast(self.local().to_string())
    }
}
