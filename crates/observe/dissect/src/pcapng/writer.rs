//! Packets as pcapng (draft-ietf-opsawg-pcapng), for tshark and Wireshark: a section header, one interface description a
//! port, enhanced packet blocks with nanoseconds and comments. Little-endian.
//!
//! Model time runs ahead of itself: a departure is known when the packet arrives. So packets are held until [`PcapngWriter::settle`]
//! says that nothing earlier can come, and leave sorted by time. What is held is bounded: above [`PcapngSettings::most_held`] bytes the
//! earliest leave, and a packet that then comes too late is written all the same, where it is, and counted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

/// Link type of bytes that begin with an IPv4 or IPv6 header.
const LINKTYPE_RAW: u16 = 101;
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_SPEED: u16 = 8;
const IF_TSRESOL: u16 = 9;
/// Timestamps are in units of 10^-9 s.
const NANOSECONDS: u8 = 9;
/// Bytes a held packet takes beside its own.
const BESIDE: usize = 96;

/// A place where packets were captured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaptureInterface {
    /// Its name, such as `khons>edge`.
    pub name: String,
    /// What else is to be known of it; nothing when empty.
    pub description: String,
    /// Its rate, where it has one that does not change.
    pub speed_bit_s: Option<u64>,
}

/// One packet at one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PcapngPacket {
    /// When, in ns since the start of the run.
    pub at_ns: u64,
    /// Which of the interfaces.
    pub interface: u32,
    /// Its bytes from the network layer on, perhaps not all.
    pub bytes: Vec<u8>,
    /// Bytes it had on the wire.
    pub length: u32,
    /// What is to be said of it, such as `dropped: queue full`.
    pub comments: Vec<String>,
}

/// What holds for a whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PcapngSettings {
    /// Most bytes kept of a packet; 0 keeps all.
    pub snaplen: u32,
    /// The start of the run in ns since 1970.
    pub epoch_ns: u64,
    /// Most bytes held back for sorting.
    pub most_held: usize,
}

impl Default for PcapngSettings {
    /// All bytes of each packet, from 1970 on, 64 MiB held.
    fn default() -> Self {
        Self {
            snaplen: 0,
            epoch_ns: 0,
            most_held: 64 << 20,
        }
    }
}

/// What a finished file holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PcapngTotals {
    /// Packets.
    pub packets: u64,
    /// Those of them that stand behind a later one, because more than [`PcapngSettings::most_held`] had to wait.
    pub late: u64,
}

/// Writes one file.
#[derive(Debug)]
pub struct PcapngWriter<W: Write> {
    out: W,
    settings: PcapngSettings,
    interfaces: u32,
    held: BinaryHeap<Reverse<BufferedPcapngPacket>>,
    held_bytes: usize,
    /// Packets taken so far: those of one instant leave in the order in which they came.
    taken: u64,
    latest_ns: u64,
    written: PcapngTotals,
}

#[derive(Debug, PartialEq, Eq)]
struct BufferedPcapngPacket {
    order: (u64, u64),
    capture: PcapngPacket,
}

impl PartialOrd for BufferedPcapngPacket {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BufferedPcapngPacket {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order.cmp(&other.order)
    }
}

impl<W: Write> PcapngWriter<W> {
    /// Begins a file with these interfaces, by their place.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(
        mut out: W,
        interfaces: &[CaptureInterface],
        settings: PcapngSettings,
    ) -> io::Result<Self> {
        out.write_all(&section())?;
        for interface in interfaces {
            out.write_all(&described(interface, settings.snaplen))?;
        }
        let count = u32::try_from(interfaces.len())
            .map_err(|_| io::Error::other("more than 2^32 interfaces"))?;
        let (held, written) = (BinaryHeap::new(), PcapngTotals::default());
        Ok(Self {
            out,
            settings,
            interfaces: count,
            held,
            held_bytes: 0,
            taken: 0,
            latest_ns: 0,
            written,
        })
    }

    /// Takes a packet.
    ///
    /// # Errors
    /// When there is no such interface, or when what had to leave for it cannot be written.
    pub fn put(&mut self, mut capture: PcapngPacket) -> io::Result<()> {
        if capture.interface >= self.interfaces {
            let said = format!(
                "no interface {}: the capture has only {}",
                capture.interface, self.interfaces
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, said));
        }
        if self.settings.snaplen > 0 {
            capture.bytes.truncate(self.settings.snaplen as usize);
        }
        capture.bytes.shrink_to_fit();
        self.held_bytes += weight(&capture);
        self.held.push(Reverse(BufferedPcapngPacket {
            order: (capture.at_ns, self.taken),
            capture,
        }));
        self.taken += 1;
        while self.held_bytes > self.settings.most_held {
            self.release()?;
        }
        Ok(())
    }

    /// Nothing earlier than this comes any more, in ns since the start of the run: what is not later is written.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn settle(&mut self, until_ns: u64) -> io::Result<()> {
        while self
            .held
            .peek()
            .is_some_and(|Reverse(first)| first.order.0 <= until_ns)
        {
            self.release()?;
        }
        Ok(())
    }

    /// Writes what is held and gives the file back.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> io::Result<(W, PcapngTotals)> {
        self.settle(u64::MAX)?;
        self.out.flush()?;
        Ok((self.out, self.written))
    }

    /// Writes the earliest.
    fn release(&mut self) -> io::Result<()> {
        let Some(Reverse(BufferedPcapngPacket { capture, .. })) = self.held.pop() else {
            return Ok(());
        };
        self.held_bytes -= weight(&capture);
        self.written.packets += 1;
        self.written.late += u64::from(capture.at_ns < self.latest_ns);
        self.latest_ns = self.latest_ns.max(capture.at_ns);
        self.out
            .write_all(&packet(&capture, self.settings.epoch_ns))
    }
}

/// Bytes of memory it takes.
fn weight(capture: &PcapngPacket) -> usize {
    BESIDE
        + capture.bytes.len()
        + capture
            .comments
            .iter()
            .map(|comment| comment.len() + BESIDE)
            .sum::<usize>()
}

fn section() -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(BYTE_ORDER.to_le_bytes());
    body.extend([1, 0, 0, 0]); // version 1.0
    body.extend((-1_i64).to_le_bytes()); // up to the end of the file
    option(
        &mut body,
        SHB_USERAPPL,
        concat!("stackline ", env!("CARGO_PKG_VERSION")).as_bytes(),
    );
    end_of_options(&mut body);
    block(SECTION_HEADER, &body)
}

fn described(interface: &CaptureInterface, snaplen: u32) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(LINKTYPE_RAW.to_le_bytes());
    body.extend([0, 0]);
    body.extend(snaplen.to_le_bytes());
    option(&mut body, IF_NAME, interface.name.as_bytes());
    if !interface.description.is_empty() {
        option(&mut body, IF_DESCRIPTION, interface.description.as_bytes());
    }
    if let Some(speed) = interface.speed_bit_s {
        option(&mut body, IF_SPEED, &speed.to_le_bytes());
    }
    option(&mut body, IF_TSRESOL, &[NANOSECONDS]);
    end_of_options(&mut body);
    block(INTERFACE_DESCRIPTION, &body)
}

fn packet(capture: &PcapngPacket, epoch_ns: u64) -> Vec<u8> {
    let at = epoch_ns.saturating_add(capture.at_ns);
    let captured = u32::try_from(capture.bytes.len()).unwrap_or(u32::MAX);
    let mut body = Vec::with_capacity(64 + capture.bytes.len());
    body.extend(capture.interface.to_le_bytes());
    body.extend(((at >> 32) as u32).to_le_bytes());
    body.extend((at as u32).to_le_bytes());
    body.extend(captured.to_le_bytes());
    body.extend(capture.length.max(captured).to_le_bytes());
    padded(&mut body, &capture.bytes);
    for comment in &capture.comments {
        option(&mut body, OPT_COMMENT, comment.as_bytes());
    }
    if !capture.comments.is_empty() {
        end_of_options(&mut body);
    }
    block(ENHANCED_PACKET, &body)
}

/// Type, length, what is in it, length again.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 12)
        .unwrap_or(u32::MAX)
        .to_le_bytes();
    [&kind.to_le_bytes(), &length, body, &length].concat()
}

/// An option; a text too long for its length field is cut between two characters.
fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let mut length = value.len().min(usize::from(u16::MAX));
    while length < value.len() && value[length] & 0xc0 == 0x80 {
        length -= 1;
    }
    body.extend(code.to_le_bytes());
    body.extend((length as u16).to_le_bytes());
    padded(body, &value[..length]);
}

fn end_of_options(body: &mut Vec<u8>) {
    body.extend([0; 4]);
}

/// To a multiple of four bytes.
fn padded(body: &mut Vec<u8>, bytes: &[u8]) {
    body.extend(bytes);
    body.extend(&[0; 3][..bytes.len().next_multiple_of(4) - bytes.len()]);
}

#[cfg(test)]
mod tests;
