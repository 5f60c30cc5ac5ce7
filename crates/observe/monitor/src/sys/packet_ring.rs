//! Packet sockets with a receive ring of blocks (`TPACKET_V3`) in memory that is shared with the kernel.
//!
//! It decides nothing. A block belongs to the kernel until it is full or its time is over, then to the caller until it is
//! released; only the caller's are read, and nothing is copied.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr::{NonNull, from_ref, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

/// A block takes the largest packet that the kernel makes without being told to, 64 KiB, and many small ones.
pub(crate) const BLOCK: usize = 256 << 10;
/// The kernel wants to know how many of them a block has; with blocks of this kind it makes no use of it.
const FRAME: usize = 2048;
/// Where the address of a packet begins, behind its header.
const ADDRESS: usize = (size_of::<libc::tpacket3_hdr>() + 15) & !15;

/// Memory shared with the kernel.
struct PacketRingMapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory belongs to this value alone, wherever that is.
unsafe impl Send for PacketRingMapping {}

impl PacketRingMapping {
    fn new(socket: BorrowedFd<'_>, length: usize) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let start = unsafe {
            libc::mmap(
                null_mut(),
                length,
                access,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length })
    }

    /// The place of a value; `None` outside the memory.
    fn at<T>(&self, offset: usize) -> Option<*mut T> {
        let fits = offset.checked_add(size_of::<T>())? <= self.length
            && offset.is_multiple_of(align_of::<T>());
        // SAFETY: inside the mapping, as checked just now.
        fits.then(|| unsafe { self.start.as_ptr().add(offset).cast() })
    }

    /// Bytes that the caller owns; empty outside the memory.
    fn bytes(&self, offset: usize, length: usize) -> &[u8] {
        match offset.checked_add(length) {
            // SAFETY: inside the mapping; the kernel does not write to what the caller owns.
            Some(end) if end <= self.length => unsafe {
                std::slice::from_raw_parts(self.start.as_ptr().add(offset), length)
            },
            _ => &[],
        }
    }
}

impl Drop for PacketRingMapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by this value, and nothing borrows from it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// A packet in the ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingPacket<'a> {
    /// The kernel's timestamp, in ns of `CLOCK_REALTIME`.
    pub(crate) stamp_ns: u64,
    pub(crate) interface: u32,
    pub(crate) outgoing: bool,
    /// Its length before it was cut.
    pub(crate) length: u32,
    pub(crate) bytes: &'a [u8],
}

/// Packets that the kernel has seen, a block at a time.
pub(crate) struct PacketRing {
    mapping: PacketRingMapping,
    blocks: usize,
    next: usize,
}

impl PacketRing {
    /// A ring of at least so many bytes and two blocks. A block that is not full is handed over after `retire_ms`.
    pub(crate) fn open(socket: BorrowedFd<'_>, bytes: usize, retire_ms: u32) -> io::Result<Self> {
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
        set_option(socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        Ok(Self {
            mapping: PacketRingMapping::new(socket, BLOCK * blocks)?,
            blocks,
            next: 0,
        })
    }

    pub(crate) const fn blocks(&self) -> usize {
        self.blocks
    }

    /// Whether the next block is the caller's.
    pub(crate) fn is_ready(&self) -> bool {
        self.status()
            .is_some_and(|status| status.load(Ordering::Acquire) & libc::TP_STATUS_USER != 0)
    }

    fn status(&self) -> Option<&AtomicU32> {
        let block = self
            .mapping
            .at::<libc::tpacket_block_desc>(self.next * BLOCK)?;
        // SAFETY: a block begins with its description, aligned; both sides write its status whole.
        Some(unsafe { AtomicU32::from_ptr(&raw mut (*block).hdr.bh1.block_status) })
    }

    /// Hands over the packets of the next block and releases it; `None` if it is still the kernel's.
    pub(crate) fn read_block(&mut self, mut each: impl FnMut(RingPacket<'_>)) -> Option<usize> {
        if !self.is_ready() {
            return None;
        }
        let start = self.next * BLOCK;
        let block = self.mapping.at::<libc::tpacket_block_desc>(start)?;
        // SAFETY: the block is the caller's, and the kernel has written its description.
        let (count, first) = unsafe {
            (
                (*block).hdr.bh1.num_pkts,
                (*block).hdr.bh1.offset_to_first_pkt,
            )
        };
        let mut offset = start + first as usize;
        let mut done = 0;
        while done < count as usize {
            let Some((frame, next)) = self.frame(offset) else {
                break;
            };
            each(frame);
            offset += next;
            done += 1;
        }
        self.status()?
            .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.blocks;
        Some(done)
    }

    /// The packet at an offset in a block that is the caller's, and how far behind it the next one is.
    fn frame(&self, offset: usize) -> Option<(RingPacket<'_>, usize)> {
        let header = self.mapping.at::<libc::tpacket3_hdr>(offset)?;
        let address = self.mapping.at::<libc::sockaddr_ll>(offset + ADDRESS)?;
        // SAFETY: both are inside the memory and aligned; the block is the caller's, and the kernel has written both.
        let (header, address) = unsafe { (&*header, &*address) };
        let frame = RingPacket {
            stamp_ns: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
            interface: address.sll_ifindex.cast_unsigned(),
            outgoing: address.sll_pkttype == libc::PACKET_OUTGOING,
            length: header.tp_len,
            bytes: self.mapping.bytes(
                offset + usize::from(header.tp_mac),
                header.tp_snaplen as usize,
            ),
        };
        Some((frame, header.tp_next_offset as usize))
    }
}

/// Has the kernel give the socket what the program keeps, cut to what it returns.
pub(crate) fn attach_filter(
    socket: BorrowedFd<'_>,
    program: &[libc::sock_filter],
) -> io::Result<()> {
    let length = program
        .len()
        .try_into()
        .map_err(|_| io::ErrorKind::InvalidInput)?;
    // The kernel copies the program before the call returns, and does not write to it.
    let program = libc::sock_fprog {
        len: length,
        filter: program.as_ptr().cast_mut(),
    };
    set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// Begins to receive: every protocol, every interface of the socket's network namespace.
pub(crate) fn bind_everywhere(socket: BorrowedFd<'_>) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: 0,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the pointer is to a value of that length, alive for the call.
    succeeded(unsafe { libc::bind(socket.as_raw_fd(), from_ref(&address).cast(), length) })
}

/// Packets that the filter kept and those of them that found no room, since the last call.
pub(crate) fn take_statistics(socket: BorrowedFd<'_>) -> io::Result<(u32, u32)> {
    let mut value = libc::tpacket_stats_v3 {
        tp_packets: 0,
        tp_drops: 0,
        tp_freeze_q_cnt: 0,
    };
    let mut length = size_of::<libc::tpacket_stats_v3>() as libc::socklen_t;
    let room = (&raw mut value).cast();
    // SAFETY: both pointers are to live values, the length is that of the first, and any bytes written to it are a value.
    succeeded(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            room,
            &raw mut length,
        )
    })?;
    Ok((value.tp_packets, value.tp_drops))
}

/// The name of an interface in the socket's network namespace.
pub(crate) fn interface_name(socket: BorrowedFd<'_>, index: u32) -> io::Result<String> {
    let ifr_ifru = libc::__c_anonymous_ifr_ifru {
        ifru_ifindex: index.cast_signed(),
    };
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru,
    };
    // SAFETY: the pointer is to a live request, which the kernel reads and writes.
    succeeded(unsafe {
        libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFNAME as _, &raw mut request)
    })?;
    let name: Vec<u8> = request
        .ifr_name
        .iter()
        .map(|c| c.cast_unsigned())
        .take_while(|byte| *byte != 0)
        .collect();
    Ok(String::from_utf8_lossy(&name).into_owned())
}

/// The number of an interface in the socket's network namespace.
pub(crate) fn interface_index(socket: BorrowedFd<'_>, name: &str) -> io::Result<u32> {
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_ifindex: 0 },
    };
    if name.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = byte.cast_signed();
    }
    // SAFETY: as above.
    succeeded(unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCGIFINDEX as _,
            &raw mut request,
        )
    })?;
    // SAFETY: the kernel has written this field.
    Ok(unsafe { request.ifr_ifru.ifru_ifindex }.cast_unsigned())
}

/// Only with options whose value is of this type: the kernel reads as many bytes as it has.
fn set_option<T>(socket: BorrowedFd<'_>, level: i32, name: i32, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer is to a value of that length, alive for the call.
    succeeded(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            from_ref(value).cast(),
            length,
        )
    })
}

fn succeeded(result: i32) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
