//! Captures, pcapng and pcap: each TCP segment with data becomes an event `NET_SEEN` with its stream and byte range, so that it
//! joins the data units whose bytes it carries; a range that the same capture saw before is a `TCP_RETRANSMIT` too.
//!
//! Offsets count from the SYN. Where a capture begins later, they count from the first segment seen, which is told. Of other
//! packets only that they were there is kept.

mod streams;

use crate::{Error, Imported};
use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};
use stackline_events::{Table, Value};
use std::collections::BTreeMap;
use std::io::Read;
use std::net::SocketAddr;
use streams::{Seen, Streams};

/// Room for the largest block that is read.
const LARGEST_BLOCK: usize = 4 << 20;

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
pub struct Reader<'o> {
    from: Box<dyn PcapReaderIterator + Send + 'o>,
    capture: Capture<'o>,
    ended: bool,
}

impl std::fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("capture", &self.capture).finish_non_exhaustive()
    }
}

impl<'o> Reader<'o> {
    /// Reads its beginning.
    ///
    /// # Errors
    /// When it does not begin as a capture.
    pub fn open(from: impl Read + Send + 'o, options: &'o Options) -> Result<Self, Error> {
        let from = create_reader(1 << 16, from);
        let from = from.map_err(|cause| Error::new("this is neither pcapng nor pcap", describe(&cause)))?;
        Ok(Self { from, capture: Capture::new(options), ended: false })
    }

    /// The next events; `None` when there are no more.
    pub fn next_batch(&mut self) -> Option<Table> {
        while !self.ended && self.capture.imported.table.len() < BATCH {
            if let Err(cause) = self.step() {
                self.ended = true;
                self.capture.end(cause);
            }
        }
        Some(std::mem::take(&mut self.capture.imported.table)).filter(|table| !table.is_empty())
    }

    /// One block, or more bytes of it; the end of the capture, or what is wrong, ends it.
    fn step(&mut self) -> Result<(), Option<String>> {
        let length = match self.from.next() {
            Ok((length, block)) => {
                self.capture.block(&block);
                Some(length)
            }
            Err(PcapError::Eof) => return Err(None),
            Err(PcapError::Incomplete(_)) => None,
            Err(cause) => return Err(Some(describe(&cause))),
        };
        match length {
            Some(length) => {
                self.from.consume(length);
                Ok(())
            }
            None => more(&mut *self.from).map_err(Some),
        }
    }

    /// What could not be read: how much of it, and the first few in words. And what the next capture of the same
    /// connections has to know.
    #[must_use]
    pub fn finish(self) -> ((u64, Vec<String>), Options) {
        let (known, first_flow) = self.capture.streams.known();
        let host = self.capture.options.host.clone();
        (self.capture.imported.mistakes, Options { host, known, first_flow })
    }
}

/// Events that are given at a time.
const BATCH: usize = 1 << 16;

/// Reads more of a block that is not there whole.
fn more(reader: &mut dyn PcapReaderIterator) -> Result<(), String> {
    if reader.reader_exhausted() {
        return Err("its last block is cut off".to_owned());
    }
    let has = reader.data().len();
    if has >= LARGEST_BLOCK {
        return Err("a block is larger than 4 MiB".to_owned());
    }
    reader.grow((2 * has).max(1 << 17));
    reader.refill().map_err(|cause| describe(&cause))
}

fn describe<I: std::fmt::Debug>(cause: &PcapError<I>) -> String {
    match cause {
        PcapError::Eof => "it is empty".to_owned(),
        PcapError::UnexpectedEof => "it ends too early".to_owned(),
        PcapError::HeaderNotRecognized => "it begins with no known header".to_owned(),
        PcapError::ReadError => "the system cannot read it".to_owned(),
        _ => "a block is damaged".to_owned(),
    }
}

/// One interface of a capture.
#[derive(Clone, Debug)]
struct Interface {
    name: String,
    link: Linktype,
    /// Units of time in a second, and seconds to add.
    resolution: u64,
    offset_s: i64,
}

#[derive(Debug)]
struct Capture<'o> {
    options: &'o Options,
    imported: Imported,
    interfaces: Vec<Interface>,
    streams: Streams,
    /// Packets of all kinds so far.
    packets: u64,
    others: u64,
}

impl<'o> Capture<'o> {
    fn new(options: &'o Options) -> Self {
        let streams = Streams::new(options.known.clone(), options.first_flow);
        Self { options, imported: Imported::default(), interfaces: Vec::new(), streams, packets: 0, others: 0 }
    }

    fn block(&mut self, block: &PcapBlockOwned<'_>) {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                let resolution = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
                self.interface("capture", header.network, resolution, 0);
            }
            PcapBlockOwned::Legacy(packet) => {
                let time = u64::from(packet.ts_sec) * self.interfaces.first().map_or(1, |one| one.resolution);
                self.packet(0, time + u64::from(packet.ts_usec), packet.data, u64::from(packet.origlen));
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => self.interfaces.clear(),
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                let name = interface.options.iter().find(|option| option.code == pcap_parser::OptionCode::IfName);
                let name = name.map(|option| String::from_utf8_lossy(&option.value).trim_end_matches('\0').to_owned());
                let name = name.unwrap_or_else(|| format!("interface{}", self.interfaces.len()));
                let resolution = interface.ts_resolution().unwrap_or(1_000_000);
                self.interface(&name, interface.linktype, resolution, interface.if_tsoffset);
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let time = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let data = packet.data.get(..packet.caplen as usize).unwrap_or(packet.data);
                self.packet(packet.if_id as usize, time, data, u64::from(packet.origlen));
            }
            PcapBlockOwned::NG(Block::SimplePacket(_)) => {
                self.imported.mistake("a simple packet block has no time".to_owned());
            }
            PcapBlockOwned::NG(_) => {}
        }
    }

    fn interface(&mut self, name: &str, link: Linktype, resolution: u64, offset_s: i64) {
        let name: String = name.chars().take(100).collect();
        self.interfaces.push(Interface { name, link, resolution: resolution.max(1), offset_s });
    }

    fn packet(&mut self, interface: usize, time: u64, data: &[u8], length: u64) {
        self.packets += 1;
        let Some(interface) = self.interfaces.get(interface).cloned() else {
            return self.imported.mistake(format!("packet {} is of an interface that was not told", self.packets));
        };
        let Some(at_ns) = nanoseconds(time, interface.resolution, interface.offset_s) else {
            return self.imported.mistake(format!("the time of packet {} is none", self.packets));
        };
        match segment(interface.link, data, length) {
            Some(segment) => self.segment(&interface.name, at_ns, &segment),
            None => self.others += 1,
        }
    }

    fn segment(&mut self, place: &str, at_ns: u64, segment: &Segment) {
        let seen = self.streams.see(segment.ends, segment.sequence, segment.bytes, segment.syn);
        let Some((seen, known)) = seen else {
            return self
                .imported
                .mistake(format!("packet {} is of one connection more than are told apart", self.packets));
        };
        if segment.bytes == 0 {
            return;
        }
        let host = self.options.host.as_deref().unwrap_or(place);
        let [from, to] = [segment.ends.0.to_string(), segment.ends.1.to_string()];
        let way = format!("{from}>{to}");
        let range = [Value::Absent, Value::from(known.stream), Value::from(known.offset), Value::from(segment.bytes)];
        let flow = Value::from(known.stream >> 1);
        let rest = [
            Value::from(place),
            Value::from(&way),
            flow,
            Value::from(self.packets),
            Value::from(1),
            Value::from(segment.length),
        ];
        let table = &mut self.imported.table;
        table.push("NET_SEEN", host, at_ns, &[&range[..], &rest[..]].concat());
        if seen == Seen::Before {
            let rest = [Value::Text("seen before"), Value::from(1), Value::from(&from), Value::from(&to)];
            table.push("TCP_RETRANSMIT", host, at_ns, &[&range[..], &rest[..]].concat());
        }
    }

    fn end(&mut self, cause: Option<String>) {
        if let Some(cause) = cause {
            self.imported.mistake(format!("it cannot be read on: {cause}"));
        }
        for ((from, to), stream) in self.streams.without_beginning() {
            self.imported.mistake(format!("the beginning of {from}>{to} was not captured: its offsets (stream {stream}) count from the first segment seen"));
        }
        if self.others > 0 {
            let (others, all) = (self.others, self.packets);
            self.imported
                .mistake(format!("{others} of {all} packets are no TCP over IP, or are cut off within their headers"));
        }
    }
}

/// Time in an interface's units as ns.
fn nanoseconds(time: u64, resolution: u64, offset_s: i64) -> Option<u64> {
    let ns = u128::from(time) * 1_000_000_000 / u128::from(resolution);
    u64::try_from(i128::try_from(ns).ok()? + i128::from(offset_s) * 1_000_000_000).ok()
}

/// A TCP segment.
struct Segment {
    ends: (SocketAddr, SocketAddr),
    sequence: u32,
    /// Of data, also where the capture cut the packet.
    bytes: u64,
    syn: bool,
    /// Of the packet from the network layer's header on.
    length: u64,
}

fn segment(link: Linktype, data: &[u8], length: u64) -> Option<Segment> {
    let packet = match link {
        Linktype::ETHERNET => LaxSlicedPacket::from_ethernet(data).ok()?,
        Linktype::LINUX_SLL => LaxSlicedPacket::from_ip(data.get(16..)?).ok()?,
        LINUX_SLL2 => LaxSlicedPacket::from_ip(data.get(20..)?).ok()?,
        Linktype::NULL | Linktype::LOOP => LaxSlicedPacket::from_ip(data.get(4..)?).ok()?,
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 => LaxSlicedPacket::from_ip(data).ok()?,
        _ => return None,
    };
    let Some(TransportSlice::Tcp(tcp)) = &packet.transport else { return None };
    let (from, to, ip_header, told) = match packet.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            let (from, to) = (header.source_addr().into(), header.destination_addr().into());
            (from, to, header.slice().len(), u64::from(header.total_len()))
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            let (from, to) = (header.source_addr().into(), header.destination_addr().into());
            let told = u64::from(header.payload_length());
            (from, to, 40 + ip.extensions().slice().len(), if told == 0 { 0 } else { 40 + told })
        }
        LaxNetSlice::Arp(_) => return None,
    };
    let headers = (ip_header + tcp.header_slice().len()) as u64;
    let bytes = if told == 0 {
        // Segments that offload joined into more than the header can say.
        length.saturating_sub((data.len() - tcp.payload().len()) as u64)
    } else {
        told.saturating_sub(headers)
    };
    let ends = (SocketAddr::new(from, tcp.source_port()), SocketAddr::new(to, tcp.destination_port()));
    Some(Segment { ends, sequence: tcp.sequence_number(), bytes, syn: tcp.syn(), length: headers + bytes })
}

/// Linux cooked, second version.
const LINUX_SLL2: Linktype = Linktype(276);

#[cfg(test)]
mod tests;
