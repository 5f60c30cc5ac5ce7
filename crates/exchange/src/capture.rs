//! Captures, pcapng and pcap: each TCP segment with data becomes an event `NET_SEEN` with its stream and byte range, so that it
//! joins the data units whose bytes it carries; a range that the same capture saw before is a `TCP_RETRANSMIT` too.
//!
//! Of each connection there is one `TCP_CONNECTION` besides, with what all of its packets together say (`accounts`).
//!
//! Offsets count from the SYN. Where a capture begins later, they count from the first segment seen, which is told. Of other
//! packets only that they were there is kept.

mod accounts;

use crate::{Error, Imported};
use accounts::Accounts;
use stackline_dissect::connections::Connections;
use stackline_dissect::pcapng::{self, Item, Packet};
use stackline_dissect::segment::Segment;
use stackline_events::{Table, Value};
use std::collections::BTreeMap;
use std::io::Read;
use std::net::SocketAddr;

/// What is known beside a capture.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whose it is; without one the interface's name.
    pub host: Option<String>,
    /// Streams by who sends and who receives: what is found there has that id.
    pub known: BTreeMap<(SocketAddr, SocketAddr), i64>,
    /// The first flow that may be given to a connection that is not known.
    pub first_flow: u32,
}

/// Reads a capture, however long it is, some events at a time.
#[derive(Debug)]
pub struct Reader<'o> {
    from: pcapng::Reader<'o>,
    capture: Capture<'o>,
    ended: bool,
}

impl<'o> Reader<'o> {
    /// Reads its beginning.
    ///
    /// # Errors
    /// When it does not begin as a capture.
    pub fn open(from: impl Read + Send + 'o, options: &'o Options) -> Result<Self, Error> {
        let from = pcapng::Reader::open(from);
        let from = from.map_err(|cause| Error::new("this is neither pcapng nor pcap", cause))?;
        Ok(Self { from, capture: Capture::new(options), ended: false })
    }

    /// The next events; `None` when there are no more.
    pub fn next_batch(&mut self) -> Option<Table> {
        while !self.ended && self.capture.imported.table.len() < BATCH {
            if let Err(cause) = self.from.step(|packet| self.capture.packet(packet)) {
                self.ended = true;
                self.capture.end(cause, self.from.packets());
                std::mem::take(&mut self.capture.accounts).finish(&mut self.capture.imported.table);
            }
        }
        Some(std::mem::take(&mut self.capture.imported.table)).filter(|table| !table.is_empty())
    }

    /// What could not be read: how much of it, and the first few in words. And what the next capture of the same
    /// connections has to know.
    #[must_use]
    pub fn finish(self) -> ((u64, Vec<String>), Options) {
        let (known, first_flow) = self.capture.connections.known();
        let host = self.capture.options.host.clone();
        (self.capture.imported.mistakes, Options { host, known, first_flow })
    }
}

/// Events that are given at a time.
const BATCH: usize = 1 << 16;

#[derive(Debug)]
struct Capture<'o> {
    options: &'o Options,
    imported: Imported,
    connections: Connections,
    accounts: Accounts,
    /// Packets that are no TCP.
    others: u64,
}

impl<'o> Capture<'o> {
    fn new(options: &'o Options) -> Self {
        let connections = Connections::new(options.known.clone(), options.first_flow);
        Self { options, imported: Imported::default(), connections, accounts: Accounts::default(), others: 0 }
    }

    fn packet(&mut self, packet: Item<'_>) {
        match packet.map(|packet| (packet, packet.segment())) {
            Ok((packet, Some(segment))) => self.segment(&packet, &segment),
            Ok((_, None)) => self.others += 1,
            Err(mistake) => self.imported.mistake(mistake),
        }
    }

    fn segment(&mut self, packet: &Packet<'_>, segment: &Segment) {
        let (number, place, at_ns) = (packet.number, packet.interface, packet.at_ns);
        let Some(known) = self.connections.locate(segment) else {
            return self.imported.mistake(format!("packet {number} is of one connection more than are told apart"));
        };
        let host = self.options.host.as_deref().unwrap_or(place);
        self.accounts.take(host, at_ns, segment, &known);
        if segment.bytes == 0 {
            return;
        }
        let [from, to] = [segment.ends.0.to_string(), segment.ends.1.to_string()];
        let way = format!("{from}>{to}");
        let range = [Value::Absent, Value::from(known.stream), Value::from(known.offset), Value::from(segment.bytes)];
        let flow = Value::from(known.stream >> 1);
        let rest = [
            Value::from(place),
            Value::from(&way),
            flow,
            Value::from(number),
            Value::from(1),
            Value::from(segment.length),
        ];
        let table = &mut self.imported.table;
        table.push("NET_SEEN", host, at_ns, &[&range[..], &rest[..]].concat());
        if known.repeated {
            let rest = [Value::Text("seen before"), Value::from(1), Value::from(&from), Value::from(&to)];
            table.push("TCP_RETRANSMIT", host, at_ns, &[&range[..], &rest[..]].concat());
        }
    }

    fn end(&mut self, cause: Option<&str>, packets: u64) {
        if let Some(cause) = cause {
            self.imported.mistake(format!("it cannot be read on: {cause}"));
        }
        for ((from, to), stream) in self.connections.without_beginning() {
            self.imported.mistake(format!("the beginning of {from}>{to} was not captured: its offsets (stream {stream}) count from the first segment seen"));
        }
        if self.others > 0 {
            let (others, all) = (self.others, packets);
            self.imported
                .mistake(format!("{others} of {all} packets are no TCP over IP, or are cut off within their headers"));
        }
    }
}

#[cfg(test)]
mod tests;
