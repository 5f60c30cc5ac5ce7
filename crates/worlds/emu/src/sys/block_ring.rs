//! A receive ring of blocks (`TPACKET_V3`), for the bare forwarder that the emulator is measured beside.
//!
//! It decides nothing. A block belongs to the kernel until it is full or its time is over.

use super::packet::set_option;
use super::ring::{RingMapping, set_ring};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};

const BLOCK: usize = 256 << 10;
const BLOCKS: usize = 16;
/// Longest time until a block that is not full is handed over, in ms: the shortest possible.
const RETIRE_MS: u32 = 1;

/// Frames that the kernel has received, a block at a time.
pub(crate) struct BlockRing {
    mapping: RingMapping,
    next: usize,
}

impl BlockRing {
    pub(crate) fn open(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: 2048,
            tp_frame_nr: (BLOCK / 2048 * BLOCKS) as u32,
            tp_retire_blk_tov: RETIRE_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set_option(
            socket,
            libc::SOL_PACKET,
            libc::PACKET_VERSION,
            libc::tpacket_versions::TPACKET_V3 as i32,
        )?;
        set_ring(socket, libc::PACKET_RX_RING, &request)?;
        Ok(Self {
            mapping: RingMapping::new(socket, BLOCK * BLOCKS)?,
            next: 0,
        })
    }

    /// Hands over the frames of the next block, each behind a virtio-net header of so many bytes; false if there is none.
    pub(crate) fn read(&mut self, before: usize, mut frame: impl FnMut(&[u8])) -> bool {
        let start = self.next * BLOCK;
        let Some(block) = self.mapping.at::<libc::tpacket_block_desc>(start) else {
            return false;
        };
        // SAFETY: a block begins with its description, aligned; both sides write its status whole.
        let status = unsafe { AtomicU32::from_ptr(&raw mut (*block).hdr.bh1.block_status) };
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return false;
        }
        // SAFETY: the block is ours, and the kernel has written its description.
        let (count, mut offset) = unsafe {
            (
                (*block).hdr.bh1.num_pkts,
                (*block).hdr.bh1.offset_to_first_pkt as usize,
            )
        };
        for _ in 0..count {
            let Some(header) = self.mapping.at::<libc::tpacket3_hdr>(start + offset) else {
                break;
            };
            // SAFETY: as above, of a frame.
            let (next, mac, length) = unsafe {
                (
                    (*header).tp_next_offset,
                    usize::from((*header).tp_mac),
                    (*header).tp_snaplen,
                )
            };
            frame(self.mapping.bytes(
                start + offset + mac.saturating_sub(before),
                length as usize + before,
            ));
            offset += next as usize;
        }
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % BLOCKS;
        true
    }
}
