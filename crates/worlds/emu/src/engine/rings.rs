//! The rings of a port: small frames without a system call each, both ways.
//!
//! A receive ring with a slot for each frame (`TPACKET_V2`): a frame can be read as soon as the kernel has it. Blocks of
//! frames (`TPACKET_V3`) would be handed over when they are full or after a millisecond, which is late.

use super::header::{GSO_NONE, VIRTIO};
use super::options::EmulatorOptions;
use super::receive_batch::FROM_RING;
use crate::packet_sockets::sending_socket;
use crate::veth_port::VethPort;
use stackline_os::packet_socket;
use stackline_os::slot_rings::{ReceiveRing, SLOT, TransmitRing};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Most bytes of all receive rings together, and of one.
const TOGETHER: usize = 64 << 20;
const LARGEST: usize = 16 << 20;
/// A smaller ring would hold less than a socket does.
const SMALLEST: usize = 1 << 20;
/// Most ports with rings.
pub(crate) const MOST: usize = TOGETHER / SMALLEST;
/// Bytes of a transmit ring: what is sent in one call.
const TRANSMIT: usize = FROM_RING * SLOT;

/// Both rings.
pub(crate) struct PortRings {
    pub(crate) received: ReceiveRing,
    /// Whether the kernel's timestamps are wanted.
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

    /// Writes a frame to the ring; false if it must be sent otherwise, or later.
    #[inline]
    pub(crate) fn put(&mut self, frame: &[u8]) -> bool {
        let (virtio, rest) = frame.split_at(VIRTIO);
        if virtio[1] != GSO_NONE || frame.len() > TransmitRing::LONGEST {
            return false;
        }
        // Headers as long as the frame: the kernel then copies it once, into one piece.
        let mut head = [0; VIRTIO];
        head.copy_from_slice(virtio);
        head[2..4].copy_from_slice(&(rest.len() as u16).to_ne_bytes());
        self.to_send.put([&head, rest])
    }

    /// Sends what was put; returns how many frames went. An error concerns the first.
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

/// Rings for each port that can have them, and a description.
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
