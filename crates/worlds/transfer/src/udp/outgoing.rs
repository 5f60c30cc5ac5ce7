//! Sends runs of packets on a UDP socket. Heads and payloads are taken from where they lie, and many packets are joined to a message that
//! the kernel cuts again (`UDP_SEGMENT`).

use crate::carrier::PacketRun;
use socket2::{SockAddr, SockRef};
use stackline_os::message_batch::MessageBatch;
use stackline_os::stream_socket::SendFlags;
use std::io;
use std::os::fd::BorrowedFd;

/// Most messages of one call.
const MESSAGES: usize = 64;
/// Most packets of one call.
pub(super) const PACKETS: usize = 512;
/// A single packet of at most so many bytes is copied together: that costs less than a description of its parts for the kernel.
const SHORT: usize = 1 << 11;

/// Memory for what one call sends, kept so that no call allocates.
pub(super) struct UdpSendBuffers {
    messages: MessageBatch,
    /// Where a short packet is put together.
    short: Box<[u8]>,
    /// The destination; `None` for a connected socket.
    pub(super) to: Option<SockAddr>,
}

impl UdpSendBuffers {
    /// Nothing is prepared.
    pub(super) fn new() -> Self {
        Self {
            messages: MessageBatch::new(MESSAGES, 2 * PACKETS),
            short: vec![0; SHORT].into(),
            to: None,
        }
    }

    /// Sends a run as messages of `joined` packets, which the kernel cuts into packets again; returns how many packets it
    /// took. Never waits.
    pub(super) fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        run: PacketRun<'_>,
        joined: usize,
    ) -> io::Result<usize> {
        if let [head] = run.heads
            && run.head + run.payload.len() <= SHORT
        {
            return self.send_short(socket, &head.0[..run.head], run.payload);
        }
        let joined = joined.clamp(1, PACKETS);
        let packets = run.heads.len().min(PACKETS).min(joined * MESSAGES);
        // The last payload may be empty, or longer than the others where it is the only one.
        let each = if run.heads.len() == 1 {
            run.payload.len()
        } else {
            run.each
        };
        let mut payloads = run.payload.chunks(each.max(1));
        let segment = (run.head + run.each).min(usize::from(u16::MAX)) as u16;
        let mut writer = self.messages.write().to(self.to.as_ref());
        for heads in run.heads[..packets].chunks(joined) {
            for head in heads {
                writer.push(&head.0[..run.head]);
                writer.push(payloads.next().unwrap_or_default());
            }
            writer.end_message(if heads.len() > 1 { segment } else { 0 });
        }
        let sent = writer.send(socket, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
        // All messages but the last have this many packets.
        Ok((sent * joined).min(packets))
    }

    /// Sends one packet, which is copied together.
    fn send_short(
        &mut self,
        socket: BorrowedFd<'_>,
        head: &[u8],
        payload: &[u8],
    ) -> io::Result<usize> {
        let packet = &mut self.short[..head.len() + payload.len()];
        let (to_head, to_payload) = packet.split_at_mut(head.len());
        to_head.copy_from_slice(head);
        to_payload.copy_from_slice(payload);
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        let socket = SockRef::from(&socket);
        match &self.to {
            Some(to) => socket.send_to_with_flags(packet, to, flags),
            None => socket.send_with_flags(packet, flags),
        }
        .map(|_| 1)
    }
}
