//! `dns(tcp)`: queries and answers with their length before them, on one connection (RFC 7766).

use super::FarEndProtocol;
use super::byte_stream::FarEndStream;
use super::datagrams::{DatagramAnswer, DatagramProtocol};
use super::dns::DnsClient;
use crate::error::{Error, Result};
use std::collections::BTreeMap;

/// The client of a name server on a connection.
pub(super) struct DnsOverTcp {
    client: DnsClient,
    /// The query, with its length before it.
    query: Vec<u8>,
    message: Vec<u8>,
}

impl DnsOverTcp {
    pub(super) const fn new(client: DnsClient) -> Self {
        Self {
            client,
            query: Vec::new(),
            message: Vec::new(),
        }
    }

    /// Sends the query and receives what may be the length of an answer. False if the server has left instead: it may do so between
    /// two queries (RFC 7766, 6.2.3).
    fn ask(&self, stream: &mut FarEndStream) -> Result<bool> {
        let mut goes_on = stream.send(&self.query)?;
        while goes_on && stream.unused().len() < 2 {
            goes_on = stream.receive_more(2, "the length of an answer")?;
        }
        Ok(goes_on)
    }
}

impl FarEndProtocol for DnsOverTcp {
    fn call(&mut self, stream: &mut FarEndStream, _: &[u8]) -> Result<()> {
        self.message.clear();
        self.client.request(&[], &mut self.message)?;
        self.query.clear();
        let length = self.message.len() as u16;
        self.query.extend_from_slice(&length.to_be_bytes());
        self.query.extend_from_slice(&self.message);
        if !self.ask(stream)? {
            stream.reconnect()?;
            if !self.ask(stream)? {
                return Err(stream.cut_short("an answer"));
            }
        }
        let length = usize::from(u16::from_be_bytes([stream.unused()[0], stream.unused()[1]]));
        stream.take(2);
        stream.require(length, "an answer")?;
        let answer = self.client.answer(&stream.unused()[..length])?;
        stream.take(length);
        if answer == DatagramAnswer::Present {
            return Ok(());
        }
        let message = format!(
            "the server at {} answered another question",
            stream.server()
        );
        Err(Error::measurement(message).hint("is it a name server?"))
    }

    fn settings(&self) -> BTreeMap<String, String> {
        self.client.settings()
    }
}
