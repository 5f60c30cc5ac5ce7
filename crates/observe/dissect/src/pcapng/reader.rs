//! Reads the packets of a capture (pcapng or pcap) of any length, one at a time.

use crate::conversation::tls::session_secrets::Secrets;
use crate::left_out::{Bound, LeftOut};
use crate::segment::{self, DissectedSegment, PacketReadError, PacketTransport};
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, SecretsType, create_reader};
use std::io::Read;

/// The largest block that is read, in bytes.
const LARGEST_BLOCK: usize = Bound::Block.most();
/// The most interfaces of a section.
const MOST_INTERFACES: usize = Bound::Interfaces.most();
/// The longest interface name, in characters.
const LONGEST_INTERFACE: usize = Bound::InterfaceName.most();
/// The packet option with flags, which hold the packet's direction.
const EPB_FLAGS: pcap_parser::OptionCode = pcap_parser::OptionCode(2);

/// One packet of a capture.
#[derive(Clone, Copy, Debug)]
pub struct CapturePacket<'p> {
    /// The packet's number in the capture, from 1.
    pub number: u64,
    /// The name of its interface.
    pub interface: &'p str,
    /// Its time stamp, ns since 1970.
    pub at_ns: u64,
    /// The captured bytes from the link header on; the capture may have cut the packet.
    bytes: &'p [u8],
    /// The packet's length on the wire, in bytes.
    length: u64,
    /// The link type.
    link: Linktype,
    /// Whether the capturing machine sent the packet, if the block says so.
    outgoing: Option<bool>,
}

/// A copy of a packet that can be kept.
#[derive(Clone, Debug)]
pub struct OwnedCapturePacket {
    number: u64,
    interface: String,
    at_ns: u64,
    bytes: Vec<u8>,
    length: u64,
    link: Linktype,
    outgoing: Option<bool>,
}

impl OwnedCapturePacket {
    /// The packet that was copied.
    #[must_use]
    pub fn packet(&self) -> CapturePacket<'_> {
        let Self {
            number,
            interface,
            at_ns,
            bytes,
            length,
            link,
            outgoing,
        } = self;
        CapturePacket {
            number: *number,
            interface,
            at_ns: *at_ns,
            bytes,
            length: *length,
            link: *link,
            outgoing: *outgoing,
        }
    }
}

impl CapturePacket<'_> {
    /// Whether the capturing machine sent the packet, if this is recorded.
    #[must_use]
    pub fn outgoing(&self) -> Option<bool> {
        self.outgoing
            .or_else(|| segment::is_outgoing(self.link, self.bytes))
    }

    /// Copies the packet.
    #[must_use]
    pub fn keep(&self) -> OwnedCapturePacket {
        let Self {
            number,
            interface,
            at_ns,
            bytes,
            length,
            link,
            outgoing,
        } = *self;
        OwnedCapturePacket {
            number,
            interface: interface.to_owned(),
            at_ns,
            bytes: bytes.to_vec(),
            length,
            link,
            outgoing,
        }
    }

    /// The TCP segment or UDP datagram that the packet carries.
    #[must_use]
    pub fn carried(&self) -> Option<PacketTransport<'_>> {
        segment::carried_by(self.link, self.bytes, self.length)
    }

    /// The reason why [`Self::carried`] is `None`, if it is.
    #[must_use]
    pub fn unread(&self) -> Option<PacketReadError> {
        self.carried()
            .is_none()
            .then(|| segment::unread(self.link, self.bytes))
    }

    /// The bytes from the IP header on, if the packet carries IP.
    #[must_use]
    pub fn ip(&self) -> Option<&[u8]> {
        segment::ip_of(self.link, self.bytes)
    }

    /// The number of its link type.
    #[must_use]
    pub const fn link_number(&self) -> i32 {
        self.link.0
    }

    /// The TCP segment that the packet carries.
    #[must_use]
    pub fn segment(&self) -> Option<DissectedSegment> {
        segment::of_packet(self.link, self.bytes, self.length)
    }
}

/// The content of a block: a packet, or a description of what is wrong with it.
pub type CaptureItem<'p> = Result<CapturePacket<'p>, String>;

/// Reads a capture.
pub struct CaptureReader<'r> {
    from: Box<dyn PcapReaderIterator + Send + 'r>,
    blocks: CaptureBlockState,
}

impl<'r> CaptureReader<'r> {
    /// Opens a capture and reads its beginning.
    ///
    /// # Errors
    /// A description of why it is not a capture.
    pub fn open(from: impl Read + Send + 'r) -> Result<Self, &'static str> {
        let from = create_reader(1 << 18, from).map_err(|cause| describe(&cause))?;
        Ok(Self {
            from,
            blocks: CaptureBlockState::default(),
        })
    }

    /// The number of packets so far, including those that could not be read.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.blocks.packets
    }

    /// TLS secrets in the capture, as far as it was read.
    #[must_use]
    pub const fn secrets(&self) -> &Secrets {
        &self.blocks.secrets
    }

    /// What was left out because a limit was reached.
    #[must_use]
    pub const fn left_out(&self) -> &LeftOut {
        &self.blocks.left_out
    }

    /// Reads one block, or more bytes of an incomplete one; passes its packet to `take`.
    ///
    /// # Errors
    /// `None` at the end of the capture, or a description of what is wrong; both end it.
    pub fn step(
        &mut self,
        mut take: impl FnMut(CaptureItem<'_>),
    ) -> Result<(), Option<&'static str>> {
        let length = match self.from.next() {
            Ok((length, block)) => {
                self.blocks.block(&block, &mut take);
                Some(length)
            }
            Err(PcapError::Eof) => return Err(None),
            // A block that is larger than the buffer needs a larger buffer first.
            Err(PcapError::Incomplete(_) | PcapError::BufferTooSmall) => None,
            Err(cause) => return Err(Some(describe(&cause))),
        };
        match length {
            Some(length) => {
                self.from.consume(length);
                Ok(())
            }
            None => more(&mut *self.from, &mut self.blocks.left_out).map_err(Some),
        }
    }
}

/// Reads more bytes of an incomplete block.
fn more(reader: &mut dyn PcapReaderIterator, left_out: &mut LeftOut) -> Result<(), &'static str> {
    if reader.reader_exhausted() {
        return Err("its last block is truncated");
    }
    let has = reader.data().len();
    if has >= LARGEST_BLOCK {
        left_out.add(Bound::Block, 1);
        return Err("a block is larger than 4 MiB");
    }
    reader.grow((2 * has).max(1 << 17));
    reader.refill().map_err(|cause| describe(&cause))
}

const fn describe<I>(cause: &PcapError<I>) -> &'static str {
    match cause {
        PcapError::Eof => "it is empty",
        PcapError::UnexpectedEof => "it ends too early",
        PcapError::HeaderNotRecognized => "its header is not recognised",
        PcapError::ReadError => "the system cannot read it",
        _ => "a block is damaged",
    }
}

/// One interface of a capture.
#[derive(Debug)]
struct CaptureFileInterface {
    name: String,
    link: Linktype,
    /// How many units of its time stamps make a second.
    resolution: u128,
    /// Seconds to be added to its time stamps.
    offset_s: i64,
}

/// What earlier blocks say that later ones need.
#[derive(Debug, Default)]
struct CaptureBlockState {
    interfaces: Vec<CaptureFileInterface>,
    packets: u64,
    secrets: Secrets,
    left_out: LeftOut,
}

impl CaptureBlockState {
    /// Takes one block.
    fn block(&mut self, block: &PcapBlockOwned<'_>, take: &mut impl FnMut(CaptureItem<'_>)) {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                let resolution = if header.is_nanosecond_precision() {
                    1_000_000_000
                } else {
                    1_000_000
                };
                self.interface("capture", header.network, resolution, 0);
            }
            PcapBlockOwned::Legacy(packet) => {
                let ticks = self.interfaces.first().map_or(1, |one| one.resolution);
                let time = u128::from(packet.ts_sec) * ticks + u128::from(packet.ts_usec);
                take(self.packet(0, time, packet.data, packet.origlen, None));
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => self.interfaces.clear(),
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                let name = interface
                    .options
                    .iter()
                    .find(|option| option.code == pcap_parser::OptionCode::IfName);
                let name = name.map(|option| {
                    String::from_utf8_lossy(&option.value)
                        .trim_end_matches('\0')
                        .to_owned()
                });
                let name = name.unwrap_or_else(|| format!("interface{}", self.interfaces.len()));
                let resolution = ticks_a_second(interface.if_tsresol);
                self.interface(&name, interface.linktype, resolution, interface.if_tsoffset);
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let time = u128::from(packet.ts_high) << 32 | u128::from(packet.ts_low);
                let data = packet
                    .data
                    .get(..packet.caplen as usize)
                    .unwrap_or(packet.data);
                let flags = packet
                    .options
                    .iter()
                    .find(|option| option.code == EPB_FLAGS);
                let outgoing = flags.and_then(|flags| direction(&flags.value));
                take(self.packet(packet.if_id as usize, time, data, packet.origlen, outgoing));
            }
            PcapBlockOwned::NG(Block::SimplePacket(_)) => {
                take(Err("a Simple Packet Block has no timestamp".to_owned()))
            }
            PcapBlockOwned::NG(Block::DecryptionSecrets(block))
                if block.secrets_type == SecretsType::TlsKeyLog =>
            {
                let lines = block.data.get(..block.secrets_len as usize);
                self.secrets
                    .learn(&String::from_utf8_lossy(lines.unwrap_or(block.data)));
            }
            PcapBlockOwned::NG(_) => {}
        }
    }

    /// Adds an interface.
    fn interface(&mut self, name: &str, link: Linktype, resolution: u128, offset_s: i64) {
        if self.interfaces.len() >= MOST_INTERFACES {
            return self.left_out.add(Bound::Interfaces, 1);
        }
        self.left_out.add(
            Bound::InterfaceName,
            u64::from(name.chars().nth(LONGEST_INTERFACE).is_some()),
        );
        let name: String = name.chars().take(LONGEST_INTERFACE).collect();
        self.interfaces.push(CaptureFileInterface {
            name,
            link,
            resolution: resolution.max(1),
            offset_s,
        });
    }

    /// Makes a packet of the fields of its block.
    fn packet<'p>(
        &'p mut self,
        interface: usize,
        time: u128,
        bytes: &'p [u8],
        length: u32,
        outgoing: Option<bool>,
    ) -> CaptureItem<'p> {
        self.packets += 1;
        let number = self.packets;
        let interface = self.interfaces.get(interface);
        let interface = interface.ok_or_else(|| {
            format!("packet {number} refers to an interface that was not described")
        })?;
        let at_ns = nanoseconds(time, interface.resolution, interface.offset_s);
        let at_ns = at_ns.ok_or_else(|| format!("packet {number} has no valid timestamp"))?;
        Ok(CapturePacket {
            number,
            interface: &interface.name,
            at_ns,
            bytes,
            length: length.into(),
            link: interface.link,
            outgoing,
        })
    }
}

/// The direction in a packet's flags (the two lowest bits): true is outgoing. The flags are in the byte order of the file.
fn direction(flags: &[u8]) -> Option<bool> {
    let bytes = flags.first_chunk::<4>()?;
    // In the other byte order, the first byte holds reserved or link-error bits and the last one the direction.
    let bits = if bytes[0] & 3 != 0 {
        bytes[0]
    } else {
        bytes[3]
    };
    match bits & 3 {
        1 => Some(false),
        2 => Some(true),
        _ => None,
    }
}

/// How many time units make a second: `if_tsresol` is a power of 10, or of 2 if the highest bit is set.
fn ticks_a_second(resolution: u8) -> u128 {
    let (base, power) = (
        if resolution & 0x80 == 0 { 10 } else { 2_u128 },
        u32::from(resolution & 0x7f),
    );
    // A power that overflows is finer than any clock: fractions of seconds become 0 instead of being wrong by a factor.
    base.checked_pow(power).unwrap_or(u128::MAX)
}

/// Converts a time in an interface's units to ns.
fn nanoseconds(time: u128, resolution: u128, offset_s: i64) -> Option<u64> {
    // Whole seconds are converted separately, so that nothing overflows.
    let (seconds, rest) = (time / resolution, time % resolution);
    let ns = if resolution <= u128::from(u64::MAX) {
        rest * 1_000_000_000 / resolution
    } else {
        // `rest * 10^9` could overflow: a finer unit is divided first.
        rest / (resolution / 1_000_000_000)
    };
    let ns = seconds.checked_mul(1_000_000_000)?.checked_add(ns)?;
    u64::try_from(i128::try_from(ns).ok()? + i128::from(offset_s) * 1_000_000_000).ok()
}
