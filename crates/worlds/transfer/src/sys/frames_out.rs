//! Sends many frames a call on a packet socket: prefix, payload from where it lies, padding.

use super::length;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Most frames of one call.
pub(crate) const FRAMES: usize = 64;
/// Room for prefix and head.
pub(crate) const FRONT: usize = 128;
/// Bytes of the shortest frame, without the check sequence that the device adds.
pub(crate) const LEAST: usize = 60;

const ZEROS: [u8; LEAST] = [0; LEAST];

/// Prefix and head of a frame.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Front(pub(crate) [u8; FRONT]);

/// Fronts, vectors and message headers of one call, kept so that no call allocates.
pub(crate) struct FramesOut {
    /// Written by the caller before [`FramesOut::send`].
    pub(crate) fronts: Box<[Front; FRAMES]>,
    vectors: Box<[[libc::iovec; 3]; FRAMES]>,
    messages: Box<[libc::mmsghdr; FRAMES]>,
}

// SAFETY: the raw pointers inside are written at the beginning of every call and used by none but that.
unsafe impl Send for FramesOut {}

impl FramesOut {
    /// Nothing prepared.
    pub(crate) fn new() -> Self {
        // SAFETY: iovec and mmsghdr are plain data, for which all bytes zero is a value.
        let (vectors, messages) = unsafe { (Box::new(zeroed()), Box::new(zeroed())) };
        Self {
            fronts: Box::new([Front([0; FRONT]); FRAMES]),
            vectors,
            messages,
        }
    }

    /// Sends the first `front` bytes of each front with its payload behind; returns how many frames went. Never waits.
    pub(crate) fn send<'a>(
        &mut self,
        fd: BorrowedFd<'_>,
        front: usize,
        payloads: impl Iterator<Item = &'a [u8]>,
    ) -> io::Result<usize> {
        let mut frames = 0;
        let rooms = self
            .fronts
            .iter()
            .zip(self.vectors.iter_mut())
            .zip(self.messages.iter_mut());
        for (bytes, ((before, vectors), message)) in payloads.zip(rooms) {
            let before = &before.0[..front];
            let behind = &ZEROS[..LEAST.saturating_sub(front + bytes.len())];
            *vectors = [vector(before), vector(bytes), vector(behind)];
            message.msg_hdr.msg_iov = vectors.as_mut_ptr();
            message.msg_hdr.msg_iovlen = if behind.is_empty() { 2 } else { 3 };
            frames += 1;
        }
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: the first `frames` messages point at live vectors, these into memory borrowed for this call, only read.
        let sent = unsafe {
            libc::sendmmsg(
                fd.as_raw_fd(),
                self.messages.as_mut_ptr(),
                frames,
                flags as _,
            )
        };
        length(sent as isize)
    }
}

fn vector(bytes: &[u8]) -> libc::iovec {
    libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    }
}
