//! Received frames: a ring shared with the kernel, and a second socket that receives only frames with the wake flag.
//!
//! A receiver that sleeps on the ring's own socket is woken for every frame, which costs both ends more than all else. So it sleeps on
//! the second socket, the waker, whose filter keeps one byte of frames with the wake flag and nothing of others.

use super::bpf_filter::{BpfFrameKeep, Filter};
use super::unusable;
use socket2::{Domain, Socket, Type};
use stackline_os::frame_ring::{FrameRing, FrameRingSlot};
use stackline_os::packet_socket;
use stackline_os::readiness::wait_until_ready;
use stackline_os::socket_option;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Slots of the waker's ring.
const WAKES: usize = 64;

/// The two sockets on which frames are received, each with a ring.
pub(super) struct RxRing {
    /// Receives all accepted frames, into `ring`; also sends.
    socket: Socket,
    ring: FrameRing,
    /// Receives only frames with the wake flag, into `wakes`.
    waker: Socket,
    wakes: FrameRing,
}

/// A packet socket that receives nothing yet.
pub(crate) fn raw() -> io::Result<Socket> {
    let socket = unusable::explain_denied_socket(Socket::new(Domain::PACKET, Type::RAW, None))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

impl RxRing {
    /// A ring of `slots` slots for frames of up to `room` bytes; it is not bound yet.
    pub(super) fn new(room: usize, slots: usize) -> io::Result<Self> {
        let (socket, waker) = (raw()?, raw()?);
        let ring = FrameRing::open(socket.as_fd(), room, slots)?;
        let wakes = FrameRing::open(waker.as_fd(), 1, WAKES)?;
        Ok(Self {
            socket,
            ring,
            waker,
            wakes,
        })
    }

    /// Binds both sockets to an interface and ethertype. The kernel delivers a frame first to the socket that was bound last, which is
    /// the ring's: so when the waker wakes this process, the frame is in the ring.
    pub(super) fn bind(&self, interface: u32, ethertype: u16) -> io::Result<()> {
        packet_socket::bind(self.waker.as_fd(), interface, ethertype)?;
        packet_socket::bind(self.socket.as_fd(), interface, ethertype)
    }

    /// From now on only frames that this filter accepts are received.
    pub(super) fn set_filter(&self, filter: &Filter) -> io::Result<()> {
        filter.attach(&self.socket, BpfFrameKeep::Whole)?;
        filter.attach(&self.waker, BpfFrameKeep::Wake)
    }

    /// From now on nothing is received.
    pub(super) fn block_all(&self, filter: &Filter) -> io::Result<()> {
        filter.attach(&self.socket, BpfFrameKeep::Nothing)?;
        filter.attach(&self.waker, BpfFrameKeep::Nothing)
    }

    /// The ring's socket, which sends as well.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The ring.
    pub(super) const fn ring(&self) -> &FrameRing {
        &self.ring
    }

    /// Takes the next frame, if there is one; returns its index for [`RxRing::frame`].
    pub(super) fn take(&mut self) -> Option<usize> {
        self.ring.take().then(|| self.ring.taken() - 1)
    }

    /// The frame with this index among those taken and not released.
    pub(super) fn frame(&self, index: usize) -> FrameRingSlot<'_> {
        self.ring.frame(index)
    }

    /// Gives the slots of the frames that were taken back to the kernel.
    pub(super) fn release(&mut self) {
        self.ring.release();
    }

    /// Frames dropped for lack of room since the last call.
    pub(super) fn take_lost(&self) -> u64 {
        packet_socket::take_counts(self.socket()).map_or(0, |counts| counts.drops)
    }

    /// Sleeps until a frame with the wake flag arrives, at most for `most`. Returns whether one did; an error of the socket, such as an
    /// interface that went down, ends the sleep too.
    pub(super) fn sleep(&mut self, most: Duration) -> io::Result<bool> {
        let woken = wait_until_ready(self.waker.as_fd(), false, most)?;
        if woken && self.clear_wakes() == 0 {
            let error =
                socket_option::read_option(self.waker.as_fd(), libc::SOL_SOCKET, libc::SO_ERROR)?;
            return if error == 0 {
                Ok(true)
            } else {
                Err(io::Error::from_raw_os_error(error))
            };
        }
        Ok(woken)
    }

    /// Discards the pending wake frames, so that only later ones end a sleep; returns how many there were.
    pub(super) fn clear_wakes(&mut self) -> usize {
        while self.wakes.take() {}
        let frames = self.wakes.taken();
        self.wakes.release();
        frames
    }

    /// Number of pending wake frames, which stay pending.
    #[cfg(test)]
    pub(super) fn wakes(&mut self) -> usize {
        while self.wakes.take() {}
        self.wakes.taken()
    }
}
