//! Sends many frames with one call on a packet socket. Each is put together by the kernel: prefix and head, the payload from the caller's
//! memory, padding.

use stackline_os::message_batch::MessageBatch;
use stackline_os::stream_socket::SendFlags;
use std::io;
use std::os::fd::BorrowedFd;

/// Most frames of one call.
pub(crate) const FRAMES: usize = 64;
/// Bytes of the room for prefix and head.
pub(crate) const FRONT: usize = 128;
/// Bytes of the shortest frame, without the check sequence that the device adds.
pub(crate) const LEAST: usize = 60;

/// Where padding is taken from.
const ZEROS: [u8; LEAST] = [0; LEAST];

/// Prefix and head of a frame.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct FrameFront(pub(crate) [u8; FRONT]);

/// The frames of one call, kept so that no call allocates.
pub(crate) struct FramesOut {
    /// Written by the caller before [`FramesOut::send`].
    pub(crate) fronts: Box<[FrameFront; FRAMES]>,
    messages: MessageBatch,
}

impl FramesOut {
    /// No frame is prepared.
    pub(crate) fn new() -> Self {
        Self {
            fronts: Box::new([FrameFront([0; FRONT]); FRAMES]),
            messages: MessageBatch::new(FRAMES, 3 * FRAMES),
        }
    }

    /// Sends a frame for each payload: the first `front` bytes of its front, the payload, and padding up to [`LEAST`] bytes. Returns how
    /// many frames were sent. Never waits.
    pub(crate) fn send<'a>(
        &mut self,
        socket: BorrowedFd<'_>,
        front: usize,
        payloads: impl Iterator<Item = &'a [u8]>,
    ) -> io::Result<usize> {
        let mut writer = self.messages.write();
        for (before, payload) in self.fronts.iter().zip(payloads) {
            writer.push(&before.0[..front]);
            writer.push(payload);
            let behind = &ZEROS[..LEAST.saturating_sub(front + payload.len())];
            if !behind.is_empty() {
                writer.push(behind);
            }
            writer.end_message(0);
        }
        writer.send(socket, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
    }
}
