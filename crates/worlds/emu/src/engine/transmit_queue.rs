//! A host's port in use: its socket and its rings, from which the host's frames are received, and the queue of frames that are due and
//! wait to be sent to the host.

use super::clock::EmulatorTimeOrigin;
use super::frame::VnetFrame;
use super::header::VIRTIO;
use super::receive_batch::ReceiveBatch;
use super::rings::PortRings;
use super::statistics::{EmulatorStatistics, ForeignFrameReason, count};
use crate::veth_port::VethPort;
use stackline_core::time::Instant;
use stackline_net::SegmentSizes;
use stackline_os::frame_batch::BATCH;
use stackline_os::message_batch::MessageBatch;
use stackline_os::stream_socket::SendFlags;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Most batches that [`TransmitQueue::discard`] reads: together they have more frames than rings hold.
const MOST_DISCARDED: usize = 1024;

/// One host's socket and its transmit queue.
pub(crate) struct TransmitQueue {
    pub(crate) port: VethPort,
    /// Whether the kernel puts a virtio-net header before every frame.
    pub(crate) header: bool,
    rings: Option<PortRings>,
    /// Number of frames that wait in the socket and arrived before the next one of the ring: they are too long for a slot.
    in_socket: usize,
    /// The frames that wait to be sent, in the order in which they are due.
    out: VecDeque<QueuedFrame>,
    /// The messages of one `sendmmsg` call, kept so that no call allocates.
    messages: MessageBatch,
}

/// A frame that waits to be sent.
struct QueuedFrame {
    /// When it left the emulated network.
    due: Instant,
    segments: SegmentSizes,
    frame: VnetFrame,
}

impl TransmitQueue {
    pub(crate) fn new(port: VethPort, header: bool, rings: Option<PortRings>) -> Self {
        Self {
            port,
            header,
            rings,
            in_socket: 0,
            out: VecDeque::new(),
            messages: MessageBatch::new(BATCH, BATCH),
        }
    }

    /// Whether the port has rings.
    pub(crate) const fn has_rings(&self) -> bool {
        self.rings.is_some()
    }

    /// Whether a frame is known to wait, without a system call: only frames of the ring are seen so. False does not mean that the socket
    /// is empty.
    #[inline]
    pub(crate) fn has_frame(&self) -> bool {
        self.in_socket > 0
            || self
                .rings
                .as_ref()
                .is_some_and(|rings| rings.received.next(VIRTIO).is_some())
    }

    /// Receives at most a batch of frames; returns how many.
    pub(crate) fn receive(&mut self, batch: &mut ReceiveBatch) -> io::Result<usize> {
        let Some(rings) = &mut self.rings else {
            return batch.receive(self.port.socket.as_fd(), self.header, BATCH);
        };
        if self.in_socket == 0 {
            let count = batch.copy_from(&mut rings.received, rings.stamps);
            if count > 0 {
                return Ok(count);
            }
            while self.in_socket < BATCH
                && rings
                    .received
                    .next(VIRTIO)
                    .is_some_and(|seen| seen.in_socket)
            {
                rings.received.release();
                self.in_socket += 1;
            }
        }
        // With nothing in the ring one frame is asked for, because the socket may have an error to report.
        let received = batch.receive(self.port.socket.as_fd(), self.header, self.in_socket.max(1));
        match &received {
            Ok(count) => self.in_socket = self.in_socket.saturating_sub(*count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.in_socket = 0,
            Err(_) => {}
        }
        received
    }

    /// Discards the frames that wait to be received. The number of batches is limited, so that it ends while a host goes on sending.
    pub(crate) fn discard(&mut self, batch: &mut ReceiveBatch) {
        for _ in 0..MOST_DISCARDED {
            if !self.receive(batch).is_ok_and(|count| count > 0) {
                return;
            }
            batch.frames.clear();
        }
    }

    /// The port's packet socket.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.port.socket.as_fd()
    }

    /// Queues a frame for this host. Returns true if the queue was empty before: the caller then has to list it as one to send on.
    pub(crate) fn put(
        &mut self,
        due: Instant,
        segments: SegmentSizes,
        mut frame: VnetFrame,
    ) -> bool {
        frame.address(self.port.host_mac, self.port.gateway_mac);
        self.out.push_back(QueuedFrame {
            due,
            segments,
            frame,
        });
        self.out.len() == 1
    }

    /// Discards the frames that wait to be sent.
    pub(crate) fn clear(&mut self) {
        self.out.clear();
    }

    /// Sends the frames that wait. Returns false when the kernel takes no more for now.
    pub(crate) fn send(
        &mut self,
        origin: &EmulatorTimeOrigin,
        statistics: &mut EmulatorStatistics,
    ) -> bool {
        let mut before = origin.now();
        while !self.out.is_empty() {
            match self.hand_over() {
                Ok(sent) => {
                    let after = origin.now();
                    self.settle(sent, before, after, statistics);
                    before = after;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.drop_first(&error, statistics),
            }
        }
        true
    }

    /// Sends some of the frames at the front of the queue in one call, through the ring as far as they are small; returns how many.
    fn hand_over(&mut self) -> io::Result<usize> {
        if let Some(rings) = &mut self.rings {
            let small = self
                .out
                .iter()
                .take_while(|leaving| rings.put(leaving.frame.bytes()));
            if small.count() > 0 {
                return rings.send();
            }
        }
        let skip = if self.header { 0 } else { VIRTIO };
        let frames = self.out.iter().map(|waits| &waits.frame.bytes()[skip..]);
        self.messages
            .send_each(self.port.socket.as_fd(), frames, SendFlags::DONTWAIT)
    }

    /// Removes the `sent` frames of one call from the queue and records their lateness. Their departures are taken as spread evenly
    /// between the call's beginning and its end.
    fn settle(
        &mut self,
        sent: usize,
        before: Instant,
        after: Instant,
        statistics: &mut EmulatorStatistics,
    ) {
        let each = after.since(before).0 / sent.max(1) as u64;
        for (turn, leaving) in (0..).zip(self.out.drain(..sent)) {
            let left = before.0 + turn * each;
            statistics
                .lateness
                .record(left.saturating_sub(leaving.due.0));
            count(&mut statistics.sent, leaving.segments);
        }
    }

    /// Drops the first frame, which cannot be sent, and counts it.
    fn drop_first(&mut self, error: &io::Error, statistics: &mut EmulatorStatistics) {
        self.out.pop_front();
        match error.raw_os_error() {
            // The receiving side had no room in its queue.
            Some(nix::libc::ENOBUFS | nix::libc::ENOMEM) => statistics.lost.refused += 1,
            _ => statistics.count_foreign(ForeignFrameReason::Refused),
        }
    }
}
