//! What the carrier is measured against: packet sockets without anything around them.
#![allow(unsafe_code)]

use socket2::{Domain, Socket, Type};
use stackline_transfer::frames::ETHERTYPE;
use std::ffi::CString;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Frames sent in one call.
pub(crate) const BATCH: usize = 64;

/// Room of a socket, in bytes.
const BUFFER: i32 = 16 << 20;

/// A packet socket of an interface.
pub(crate) struct Bare(Socket);

impl Bare {
    /// For frames of the carrier's ethertype.
    pub(crate) fn new(interface: &str) -> io::Result<Self> {
        let socket = Socket::new(Domain::PACKET, Type::RAW, None)?;
        let bytes = BUFFER;
        for name in [libc::SO_RCVBUFFORCE, libc::SO_SNDBUFFORCE] {
            // SAFETY: the pointer is to a live i32 of that length. Refused, the buffer is what it is.
            unsafe {
                libc::setsockopt(
                    socket.as_raw_fd(),
                    libc::SOL_SOCKET,
                    name,
                    (&raw const bytes).cast(),
                    4,
                )
            };
        }
        let name = CString::new(interface)?;
        // SAFETY: all bytes zero are a value of this type.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = ETHERTYPE.to_be();
        // SAFETY: the pointer is to a live string that ends with zero.
        address.sll_ifindex = unsafe { libc::if_nametoindex(name.as_ptr()) } as i32;
        let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the pointer is to a value of that length, alive for the call.
        match unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) } {
            0 => Ok(Self(socket)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Sends a frame.
    pub(crate) fn send(&self, frame: &[u8]) -> io::Result<usize> {
        self.0.send(frame)
    }

    /// Takes a frame, or 0 bytes when none comes in that time.
    pub(crate) fn receive(&self, into: &mut [u8], wait: Duration) -> io::Result<usize> {
        // SAFETY: the pointer is to that many writable bytes.
        let mut take = |flags| unsafe {
            libc::recv(
                self.0.as_raw_fd(),
                into.as_mut_ptr().cast(),
                into.len(),
                flags,
            )
        };
        match take(libc::MSG_DONTWAIT) {
            -1 if self.wait(wait) => Ok(usize::try_from(take(libc::MSG_DONTWAIT)).unwrap_or(0)),
            bytes => Ok(usize::try_from(bytes).unwrap_or(0)),
        }
    }

    fn wait(&self, wait: Duration) -> bool {
        let mut poll = libc::pollfd {
            fd: self.0.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: the pointer is to one live pollfd.
        unsafe { libc::poll(&raw mut poll, 1, wait.as_millis() as i32) > 0 }
    }
}

/// Messages of many frames: prefix, and payload in place.
pub(crate) struct Many {
    fronts: Vec<[u8; 64]>,
    vectors: Vec<[libc::iovec; 2]>,
    messages: Vec<libc::mmsghdr>,
    front: usize,
    payload: usize,
    at: usize,
}

// SAFETY: the raw pointers inside are written at the beginning of every call and used by none but that.
unsafe impl Send for Many {}

impl Many {
    /// For frames of `front` bytes and a payload; frames are 60 bytes at least.
    pub(crate) fn new(front: usize, payload: usize) -> Self {
        let mut bytes = [0; 64];
        bytes[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
        // SAFETY: iovec and mmsghdr are plain data, for which all bytes zero is a value.
        let (vectors, messages) = unsafe { (zeroed(), zeroed()) };
        Self {
            fronts: vec![bytes; BATCH],
            vectors: vec![vectors; BATCH],
            messages: vec![messages; BATCH],
            front: front.max(60_usize.saturating_sub(payload)),
            payload,
            at: 0,
        }
    }

    fn fill(&mut self, memory: *mut u8) {
        for (index, vectors) in self.vectors.iter_mut().enumerate() {
            let front = libc::iovec {
                iov_base: self.fronts[index].as_mut_ptr().cast(),
                iov_len: self.front,
            };
            let base = memory.wrapping_add(index * self.payload).cast();
            *vectors = [
                front,
                libc::iovec {
                    iov_base: base,
                    iov_len: self.payload,
                },
            ];
            self.messages[index].msg_hdr.msg_iov = vectors.as_mut_ptr();
            self.messages[index].msg_hdr.msg_iovlen = 2;
        }
    }

    /// Sends a batch of frames out of `data`.
    pub(crate) fn send(&mut self, socket: &Bare, data: &[u8]) -> io::Result<usize> {
        self.fill(data[..BATCH * self.payload].as_ptr().cast_mut());
        // SAFETY: the messages point at live vectors, these into live memory that is only read.
        let sent = unsafe {
            libc::sendmmsg(
                socket.0.as_raw_fd(),
                self.messages.as_mut_ptr(),
                BATCH as u32,
                0,
            )
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// Takes up to a batch of frames, their payloads straight into `into`; none when none comes in that time.
    pub(crate) fn receive(
        &mut self,
        socket: &Bare,
        into: &mut [u8],
        wait: Duration,
    ) -> io::Result<usize> {
        self.fill(into[self.at..][..BATCH * self.payload].as_mut_ptr());
        let mut take = || {
            let (messages, flags) = (self.messages.as_mut_ptr(), libc::MSG_DONTWAIT);
            // SAFETY: the messages point at live vectors, these into live memory borrowed for this call.
            unsafe {
                libc::recvmmsg(
                    socket.0.as_raw_fd(),
                    messages,
                    BATCH as u32,
                    flags as _,
                    std::ptr::null_mut(),
                )
            }
        };
        let frames = match take() {
            -1 if socket.wait(wait) => take(),
            frames => frames,
        };
        let frames = usize::try_from(frames).unwrap_or(0);
        self.at = (self.at + frames * self.payload) % (into.len() / 2);
        Ok(frames)
    }
}
