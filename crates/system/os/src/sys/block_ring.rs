//! Packet sockets with a receive ring of blocks (`TPACKET_V3`) in memory that is shared with the kernel.
//!
//! A block belongs to the kernel until it is full or its time is over, then to the caller until it is released. Only blocks of the caller
//! are read, and nothing is copied.

use super::mapping::Mapping;
use super::socket_option::{set_option, set_value};
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a block, which holds the largest packet that the kernel makes by itself, 64 KiB, or many small ones.
pub const BLOCK: usize = 256 << 10;
/// Frame size, bytes, that the kernel requires in the request; `TPACKET_V3`, whose packets vary in length, does not use it.
const FRAME: usize = 2048;
/// Where the address of a packet begins, behind its header.
const ADDRESS: usize = (size_of::<libc::tpacket3_hdr>() + 15) & !15;
/// Offset, in a block, of the status word that says whether it belongs to the kernel or to the caller.
const STATUS: usize =
    offset_of!(libc::tpacket_block_desc, hdr) + offset_of!(libc::tpacket_hdr_v1, block_status);

/// A packet in the ring.
#[derive(Clone, Copy, Debug)]
pub struct BlockRingPacket<'a> {
    /// The kernel's timestamp, in ns of `CLOCK_REALTIME`.
    pub stamp_ns: u64,
    /// The number of its interface.
    pub interface: u32,
    /// Whether this machine sent it.
    pub outgoing: bool,
    /// Its length before it was cut.
    pub length: u32,
    /// The part of the packet that was kept, with the requested bytes before it.
    pub bytes: &'a [u8],
}

/// Packets that the kernel has seen, a block at a time.
#[derive(Debug)]
pub struct BlockRing {
    mapping: Mapping,
    blocks: usize,
    next: usize,
}

impl BlockRing {
    /// A ring of at least `bytes` bytes and two blocks. A block that is not full is handed over after `retire_ms` ms.
    ///
    /// # Errors
    /// The kernel's; `InvalidInput` if it would have too many blocks.
    pub fn open(socket: BorrowedFd<'_>, bytes: usize, retire_ms: u32) -> io::Result<Self> {
        let blocks = bytes.div_ceil(BLOCK).max(2);
        let too_large = |_| io::Error::from(io::ErrorKind::InvalidInput);
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: u32::try_from(blocks).map_err(too_large)?,
            tp_frame_size: FRAME as u32,
            tp_frame_nr: u32::try_from(BLOCK / FRAME * blocks).map_err(too_large)?,
            tp_retire_blk_tov: retire_ms.max(1),
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        let version = libc::tpacket_versions::TPACKET_V3 as i32;
        set_option(socket, libc::SOL_PACKET, libc::PACKET_VERSION, version)?;
        set_value(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        Ok(Self {
            mapping: Mapping::new(socket, BLOCK * blocks)?,
            blocks,
            next: 0,
        })
    }

    /// How many blocks there are.
    #[must_use]
    pub const fn blocks(&self) -> usize {
        self.blocks
    }

    /// Whether the next block is the caller's.
    #[inline]
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    #[inline]
    fn status(&self) -> &AtomicU32 {
        self.mapping.word(self.next * BLOCK + STATUS)
    }

    /// Passes the packets of the next block to `each`, with the `before` bytes before each packet, then gives the block back. Returns how
    /// many packets they were; `None` if the block still belongs to the kernel.
    #[inline]
    pub fn read_block(
        &mut self,
        before: usize,
        mut each: impl FnMut(BlockRingPacket<'_>),
    ) -> Option<usize> {
        if !self.is_ready() {
            return None;
        }
        let start = self.next * BLOCK;
        let block: libc::tpacket_block_desc = self.mapping.read(start)?;
        // SAFETY: the block is the caller's, and the kernel has written its description.
        let block = unsafe { block.hdr.bh1 };
        let mut offset = start + block.offset_to_first_pkt as usize;
        let mut done = 0;
        while done < block.num_pkts as usize {
            let Some((packet, next)) = self.packet(offset, before) else {
                break;
            };
            each(packet);
            offset += next;
            done += 1;
        }
        self.status()
            .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.blocks;
        Some(done)
    }

    /// The packet at an offset in a block that is the caller's, and how far behind it the next one is.
    #[inline]
    fn packet(&self, offset: usize, before: usize) -> Option<(BlockRingPacket<'_>, usize)> {
        let header: libc::tpacket3_hdr = self.mapping.read(offset)?;
        let address: libc::sockaddr_ll = self.mapping.read(offset + ADDRESS)?;
        let packet = BlockRingPacket {
            stamp_ns: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
            interface: address.sll_ifindex.cast_unsigned(),
            outgoing: address.sll_pkttype == libc::PACKET_OUTGOING,
            length: header.tp_len,
            bytes: self.mapping.bytes(
                offset + usize::from(header.tp_mac).saturating_sub(before),
                header.tp_snaplen as usize + before,
            ),
        };
        Some((packet, header.tp_next_offset as usize))
    }
}
