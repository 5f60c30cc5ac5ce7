//! Writes packets as pcapng (draft-ietf-opsawg-pcapng) for tshark and Wireshark: a section header, one interface description per port,
//! enhanced packet blocks with nanoseconds and comments. Little-endian.
//!
//! Model time runs ahead: a packet's departure is known when it arrives. So packets are held until [`PcapngWriter::settle`] says that no
//! earlier one can come, and are written sorted by time. Above [`PcapngSettings::most_held`] bytes, the earliest are written at once; a
//! packet that comes too late is then written out of order, and counted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

/// The link type of packets that begin with an IPv4 or IPv6 header.
const LINKTYPE_RAW: u16 = 101;
/// Block types, the byte-order magic, and option codes of pcapng.
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
/// The value of `if_tsresol` for time stamps in units of 10^-9 s.
const NANOSECONDS: u8 = 9;
/// The approximate memory that a held packet takes beside its bytes.
const BESIDE: usize = 96;

/// A place where packets are captured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaptureInterface {
    /// The interface's name, such as `khons>edge`.
    pub name: String,
    /// A description for the reader of the file; omitted if empty.
    pub description: String,
    /// The rate in bit/s, if it is constant.
    pub speed_bit_s: Option<u64>,
}

/// One packet at one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PcapngPacket {
    /// The packet's time, ns since the start of the run.
    pub at_ns: u64,
    /// The index of its interface.
    pub interface: u32,
    /// The bytes from the IP header on; they may be cut.
    pub bytes: Vec<u8>,
    /// The packet's length on the wire, in bytes.
    pub length: u32,
    /// Comments on the packet, such as `dropped: queue full`.
    pub comments: Vec<String>,
}

/// The settings of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PcapngSettings {
    /// The most bytes that are kept of a packet; 0 keeps all.
    pub snaplen: u32,
    /// The start of the run, ns since 1970.
    pub epoch_ns: u64,
    /// The most bytes that are held back for sorting.
    pub most_held: usize,
}

impl Default for PcapngSettings {
    /// All bytes of each packet, times since 1970, at most 64 MiB held.
    fn default() -> Self {
        Self {
            snaplen: 0,
            epoch_ns: 0,
            most_held: 64 << 20,
        }
    }
}

/// The totals of a finished file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PcapngTotals {
    /// The number of packets.
    pub packets: u64,
    /// How many of them stand behind a packet with a later time, because of [`PcapngSettings::most_held`].
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
    /// The number of packets taken so far; it keeps packets of the same time in order.
    taken: u64,
    /// The latest time written so far, ns.
    latest_ns: u64,
    written: PcapngTotals,
}

/// A packet that waits to be written.
#[derive(Debug, PartialEq, Eq)]
struct BufferedPcapngPacket {
    /// The time, ns, and the running number: the order of writing.
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
    /// Begins a file with these interfaces; packets name them by index.
    ///
    /// # Errors
    /// If it cannot be written.
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
    /// If there is no such interface, or a packet that had to be written for lack of room cannot be.
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

    /// Writes all packets up to `until_ns` (ns since the start of the run). The caller promises that no earlier packet comes.
    ///
    /// # Errors
    /// If it cannot be written.
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

    /// Writes all held packets and returns the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<(W, PcapngTotals)> {
        self.settle(u64::MAX)?;
        self.out.flush()?;
        Ok((self.out, self.written))
    }

    /// Writes the earliest packet.
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

/// The memory that a held packet takes, in bytes.
fn weight(capture: &PcapngPacket) -> usize {
    BESIDE
        + capture.bytes.len()
        + capture
            .comments
            .iter()
            .map(|comment| comment.len() + BESIDE)
            .sum::<usize>()
}

/// The section header block.
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

/// An interface description block.
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

/// An enhanced packet block.
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

/// A block: type, length, body, and the length again.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    // The kind, and the length at both ends.
    let length = u32::try_from(body.len() + 12)
        .unwrap_or(u32::MAX)
        .to_le_bytes();
    [&kind.to_le_bytes(), &length, body, &length].concat()
}

/// Adds an option; a text that is too long for its length field is cut between two characters.
fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let mut length = value.len().min(usize::from(u16::MAX));
    // Not in the middle of a character.
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

/// Adds bytes, padded to a multiple of four.
fn padded(body: &mut Vec<u8>, bytes: &[u8]) {
    body.extend(bytes);
    body.extend(&[0; 3][..bytes.len().next_multiple_of(4) - bytes.len()]);
}

#[cfg(test)]
mod tests;
