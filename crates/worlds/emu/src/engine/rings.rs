//! The packet-socket rings of a port, one for each direction: memory shared with the kernel, through which small frames pass without a
//! system call each.
//!
//! The receive ring has a slot for each frame (`TPACKET_V2`): a frame can be read as soon as the kernel has it. `TPACKET_V3` would hand
//! over blocks of frames, when they are full or after a millisecond, which is late.

use super::header::{GSO_NONE, VIRTIO};
use super::options::EmulatorOptions;
use super::receive_batch::FROM_RING;
use crate::packet_sockets::sending_socket;
use crate::veth_port::VethPort;
use stackline_os::packet_socket;
use stackline_os::slot_rings::{ReceiveRing, SLOT, TransmitRing};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Most bytes of all receive rings together.
const TOGETHER: usize = 64 << 20;
/// Most bytes of one receive ring.
const LARGEST: usize = 16 << 20;
/// Fewest bytes of a receive ring: a smaller one would hold less than a socket does.
const SMALLEST: usize = 1 << 20;
/// In a network with more ports than this, no port has rings.
pub(crate) const MOST: usize = TOGETHER / SMALLEST;
/// Bytes of a transmit ring: a slot for each frame that is sent in one call.
const TRANSMIT: usize = FROM_RING * SLOT;

/// Both rings of a port.
pub(crate) struct PortRings {
    pub(crate) received: ReceiveRing,
    /// Whether the kernel's timestamps of received frames are used.
    pub(crate) stamps: bool,
    to_send: TransmitRing,
    sending: OwnedFd,
}

impl PortRings {
    fn open(port: &VethPort, bytes: usize, stamps: bool) -> io::Result<Self> {
        let sending = sending_socket(port.socket.as_fd())?;
        packet_socket::bypass_queue(sending.as_fd())?;
        let to_send = TransmitRing::open(sending.as_fd(), TRANSMIT)?;
        Ok(Self {
            received: ReceiveRing::open(port.socket.as_fd(), bytes)?,
            stamps,
            to_send,
            sending,
        })
    }

    /// Writes a frame, with its virtio-net header, to the transmit ring. Returns false if it must be sent through the socket (a train of
    /// segments, or longer than a slot) or later (the ring is full).
    #[inline]
    pub(crate) fn put(&mut self, frame: &[u8]) -> bool {
        let (virtio, rest) = frame.split_at(VIRTIO);
        if virtio[1] != GSO_NONE || frame.len() > TransmitRing::LONGEST {
            return false;
        }
        // Bytes 2 and 3 say how long the headers are. With the length of the whole frame, the kernel copies it once, into one piece.
        let mut head = [0; VIRTIO];
        head.copy_from_slice(virtio);
        head[2..4].copy_from_slice(&(rest.len() as u16).to_ne_bytes());
        self.to_send.put([&head, rest])
    }

    /// Sends the frames in the transmit ring; returns how many were sent. An error concerns the first.
    pub(crate) fn send(&mut self) -> io::Result<usize> {
        let (sent, result) = self.to_send.send(self.sending.as_fd());
        self.to_send.take_back();
        match (sent, result) {
            (0, Ok(())) => Err(io::ErrorKind::WouldBlock.into()),
            (0, Err(error)) => Err(error),
            (sent, _) => Ok(sent),
        }
    }
}

/// Opens rings for each port that can have them; returns them in the order of the ports, with a description for the report.
pub(crate) fn open(
    ports: &[VethPort],
    header: bool,
    options: &EmulatorOptions,
) -> (Vec<Option<PortRings>>, String) {
    let bytes = (TOGETHER / ports.len().max(1)).min(LARGEST);
    let without = |why: &str| {
        (
            ports.iter().map(|_| None).collect(),
            format!("without rings: {why}"),
        )
    };
    if !header {
        return without("no virtio-net header");
    }
    if ports.len() > MOST {
        return without("too many hosts");
    }
    let mut refused = None;
    let open = |port| {
        PortRings::open(port, bytes, options.stamps)
            .map_err(|error| refused = Some(error))
            .ok()
    };
    let rings = ports.iter().map(open).collect();
    let description = match refused {
        None => format!(
            "small frames go through rings (TPACKET_V2), {} MiB per host",
            bytes >> 20
        ),
        Some(error) => format!("no rings for some hosts: {error}"),
    };
    (rings, description)
}
