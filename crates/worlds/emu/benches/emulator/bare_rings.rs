//! What a data path of rings costs on this machine: frames of one port's receive ring (`TPACKET_V3`) are copied to the
//! other port's transmit ring (`TPACKET_V2`).
//!
//! It carries no trains of segments. A frame may wait for a millisecond, until its block is full or its time is over.

use crate::bare_forwarding::{PortWaiter, VIRTIO};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use stackline_core::time::Duration;
use stackline_emu::veth_port::VethPort;
use stackline_os::block_ring::{BLOCK, BlockRing};
use stackline_os::packet_socket::{self, NO_PROTOCOL};
use stackline_os::slot_rings::TransmitRing;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Bytes of a transmit ring.
const RING: usize = 4 << 20;
/// Blocks of a receive ring.
const BLOCKS: usize = 16;
/// Longest time until a block that is not full is handed over, in ms: the shortest possible.
const RETIRE_MS: u32 = 1;

/// From one port to the other.
struct BarePortForwarder {
    from: BlockRing,
    to: TransmitRing,
    socket: OwnedFd,
    mac: [u8; 6],
    /// Frames in the transmit ring that the kernel has not taken.
    waiting: usize,
}

/// Forwards between two ports until `stop` is readable; the number of frames and the processor time used.
pub(crate) fn forward(ports: &[VethPort; 2], stop: BorrowedFd<'_>) -> io::Result<(u64, Duration)> {
    let waiter = PortWaiter::new(ports, stop)?;
    let mut forwarders = [
        BarePortForwarder::new(&ports[0], &ports[1])?,
        BarePortForwarder::new(&ports[1], &ports[0])?,
    ];
    waiter.serve(|from| Ok(forwarders[from].pass()))
}

impl BarePortForwarder {
    fn new(from: &VethPort, to: &VethPort) -> io::Result<Self> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, None)?;
        packet_socket::set_virtio_header(socket.as_fd(), true)?;
        let interface = packet_socket::bound_interface(to.socket.as_fd())?;
        packet_socket::bind(socket.as_fd(), interface, NO_PROTOCOL)?;
        packet_socket::bypass_queue(socket.as_fd())?;
        let ring = TransmitRing::open(socket.as_fd(), RING)?;
        Ok(Self {
            from: BlockRing::open(from.socket.as_fd(), BLOCKS * BLOCK, RETIRE_MS)?,
            to: ring,
            socket,
            mac: to.host_mac,
            waiting: 0,
        })
    }

    /// Passes the frames of all blocks that are there; returns how many.
    fn pass(&mut self) -> u64 {
        let Self {
            from,
            to,
            socket,
            mac,
            waiting,
        } = self;
        let mut total = 0;
        while let Some(packets) = from.read_block(VIRTIO, |packet| {
            let frame = packet.bytes;
            let mut head = [0; VIRTIO + 6];
            head[..VIRTIO].copy_from_slice(&frame[..VIRTIO]);
            // Headers as long as the frame: the kernel then copies it once, into one piece.
            head[2..4].copy_from_slice(&((frame.len() - VIRTIO) as u16).to_ne_bytes());
            head[VIRTIO..].copy_from_slice(mac);
            while !to.put([&head, &frame[VIRTIO + 6..]]) {
                send(to, socket, waiting);
            }
            *waiting += 1;
        }) {
            total += packets as u64;
            send(to, socket, waiting);
        }
        total
    }
}

/// What the kernel does not take at once is tried again.
fn send(to: &mut TransmitRing, socket: &OwnedFd, waiting: &mut usize) {
    while *waiting > 0 {
        *waiting -= to.send(socket.as_fd()).0;
    }
}
