//! A host's port in service: its socket, and the frames that wait to be sent on it.

use super::clock::Origin;
use super::frame::Frame;
use super::header::VIRTIO;
use super::statistics::{Foreign, Statistics, count};
use crate::sys::packet::{self, BATCH};
use crate::veth_port::VethPort;
use stackline_core::time::Instant;
use stackline_net::Segments;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// One host's socket and its transmit queue.
pub(crate) struct TransmitQueue {
    pub(crate) port: VethPort,
    /// Whether the kernel puts a virtio-net header before every frame.
    pub(crate) header: bool,
    /// In the order in which they are due.
    out: VecDeque<Leaving>,
}

struct Leaving {
    due: Instant,
    segments: Segments,
    frame: Frame,
}

impl TransmitQueue {
    pub(crate) const fn new(port: VethPort, header: bool) -> Self {
        Self { port, header, out: VecDeque::new() }
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.port.socket.as_fd()
    }

    /// Queues a frame for this host; true if it is the only one waiting.
    pub(crate) fn put(&mut self, due: Instant, segments: Segments, mut frame: Frame) -> bool {
        frame.address(self.port.host_mac, self.port.gateway_mac);
        self.out.push_back(Leaving { due, segments, frame });
        self.out.len() == 1
    }

    /// Discards what waits.
    pub(crate) fn clear(&mut self) {
        self.out.clear();
    }

    /// Sends what waits; false when the kernel takes no more for now.
    pub(crate) fn send(&mut self, origin: &Origin, statistics: &mut Statistics) -> bool {
        let skip = if self.header { 0 } else { VIRTIO };
        let mut before = origin.now();
        while !self.out.is_empty() {
            let frames = self.out.iter().take(BATCH).map(|leaving| &leaving.frame.bytes()[skip..]);
            match packet::send(self.port.socket.as_fd(), frames) {
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

    /// Departures of frames sent in one call are spread evenly between the call's beginning and its end.
    fn settle(&mut self, sent: usize, before: Instant, after: Instant, statistics: &mut Statistics) {
        let each = after.since(before).0 / sent.max(1) as u64;
        for (turn, leaving) in (0..).zip(self.out.drain(..sent)) {
            let left = before.0 + turn * each;
            statistics.lateness.record(left.saturating_sub(leaving.due.0));
            count(&mut statistics.sent, leaving.segments);
        }
    }

    /// Drops the first frame, which cannot be sent.
    fn drop_first(&mut self, error: &io::Error, statistics: &mut Statistics) {
        self.out.pop_front();
        match error.raw_os_error() {
            // The receiving side had no room in its queue.
            Some(libc::ENOBUFS | libc::ENOMEM) => statistics.lost.refused += 1,
            _ => statistics.count_foreign(Foreign::Refused),
        }
    }
}
