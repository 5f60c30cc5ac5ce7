//! A TCP connection that always has something to send: the machine of this crate.

use crate::tcp::{TcpConnection, TcpOptions, TcpReceived, TcpSegment};
use alloc::vec::Vec;
use stackline_core::time::Instant;

/// Both ends.
pub(super) struct Tcp {
    pub(super) ends: [TcpConnection; 2],
    /// Bytes that arrived in order.
    pub(super) got: u64,
    pub(super) stopped: bool,
}

impl Tcp {
    pub(super) fn new(now: Instant) -> Self {
        let options = TcpOptions {
            send_buffer: Some(4 << 20),
            receive_buffer: Some(16 << 20),
            ..TcpOptions::default()
        };
        let ends = [
            TcpConnection::connect(now, options, (1, 2), 1000),
            TcpConnection::listen(now, options, 2, 2000),
        ];
        Self {
            ends,
            got: 0,
            stopped: false,
        }
    }

    /// Segments that this end sends now, and its next deadline.
    pub(super) fn poll(&mut self, now: Instant, end: usize) -> (Vec<TcpSegment>, Option<Instant>) {
        if end == 0 && !self.stopped && self.ends[0].has_room() {
            self.ends[0].send(now, 64 << 20);
        }
        if let TcpReceived::Bytes(bytes) = self.ends[1].receive(now, u64::MAX) {
            self.got += bytes;
        }
        let mut segments = Vec::new();
        while let Some(segment) = self.ends[end].poll(now) {
            segments.push(segment);
        }
        (segments, self.ends[end].deadline())
    }
}
