//! Receives UDP packets directly to where their payloads belong: for each expected packet there is a buffer for its head and a place for
//! its payload. Uses `UDP_GRO` (packets that the kernel joins into one message) and `recvmmsg`.
//!
//! Behind the places of every message there is spare room of 64 KiB, the most that one read can yield, so that nothing is cut off if the
//! kernel joins more packets than were expected.

use super::datagram_batch::joined_segment;
use super::length;
use socket2::SockAddr;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Bytes of the longest head that a packet may have.
pub const LONGEST_HEAD: usize = 64;

/// Room for a packet's head, on a cache line of its own; its length is passed beside it.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct PacketHeadBuffer(pub [u8; LONGEST_HEAD]);

impl PacketHeadBuffer {
    /// All zero.
    pub const EMPTY: Self = Self([0; LONGEST_HEAD]);
}

/// Where the payload of a packet that is expected belongs, in the memory lent for receiving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadPlace {
    /// Bytes from the beginning of that memory.
    pub at: usize,
    /// Bytes of the payload.
    pub length: usize,
}

/// Spare room behind every message, bytes.
pub const SPARE: usize = 1 << 16;
/// Most packets of one call that go to places.
pub const PLACES: usize = 128;
/// With fewer places than this, most packets that arrive carry no data, so as many messages as possible are received at once.
const FEW: usize = 16;
/// Most messages of one call.
pub const MESSAGES: usize = 64;

/// No timeout.
const NO_TIME: *const libc::timespec = std::ptr::null();

#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct ReceiveControlBuffer([u8; 64]);

/// One received message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceivedMessageInfo {
    /// Length of the message, bytes.
    pub bytes: usize,
    /// Length of each packet joined in it but the last, bytes; at least 1.
    pub segment: usize,
    /// Whether the kernel cut it off.
    pub cut: bool,
}

fn vector(bytes: &mut [u8]) -> libc::iovec {
    libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    }
}

/// Buffers, vectors and message headers of one call, kept so that no call allocates.
pub struct UdpReceiveBuffers {
    heads: Vec<PacketHeadBuffer>,
    spare: Vec<u8>,
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
    control: Box<[ReceiveControlBuffer]>,
    /// Room for the address of a message's sender, if needed.
    name: Option<libc::sockaddr_storage>,
    name_length: libc::socklen_t,
}

// SAFETY: the raw pointers inside are written at the beginning of every call and used by none but that.
unsafe impl Send for UdpReceiveBuffers {}

impl UdpReceiveBuffers {
    /// The spare room is zeroed memory that is only touched where it is used.
    #[must_use]
    #[expect(
        clippy::new_without_default,
        reason = "a default should not allocate 4 MiB"
    )]
    pub fn new() -> Self {
        Self {
            heads: vec![PacketHeadBuffer::EMPTY; PLACES],
            spare: vec![0; MESSAGES * SPARE],
            vectors: Vec::with_capacity(3 * PLACES + 1),
            headers: Vec::with_capacity(MESSAGES),
            control: vec![ReceiveControlBuffer([0; 64]); MESSAGES].into(),
            name: None,
            name_length: 0,
        }
    }

    /// The same for a socket that is not connected: messages come with the address of their sender.
    pub fn named() -> Self {
        // SAFETY: an address of no family is all zeros.
        Self {
            name: Some(unsafe { zeroed() }),
            ..Self::new()
        }
    }

    /// Where the last message of [`UdpReceiveBuffers::joined`] or [`UdpReceiveBuffers::single`] came from.
    pub fn sender(&self) -> Option<SockAddr> {
        let name = self.name.filter(|_| self.name_length > 0)?;
        // SAFETY: the storage is as large as any address, and the kernel wrote one of that length.
        let made = unsafe {
            SockAddr::try_init(|storage, length| {
                storage.cast::<libc::sockaddr_storage>().write(name);
                *length = self.name_length;
                Ok(())
            })
        };
        made.ok().map(|((), address)| address)
    }

    /// The head that went to place `index`.
    pub fn head(&self, index: usize) -> &[u8; LONGEST_HEAD] {
        &self.heads[index].0
    }

    /// The spare room behind message `index`.
    pub fn spare(&self, index: usize) -> &[u8] {
        &self.spare[index * SPARE..][..SPARE]
    }

    /// One message, which may be many packets joined: packet i to head i and place i, the rest to the spare room.
    pub fn joined(
        &mut self,
        fd: BorrowedFd<'_>,
        head: usize,
        into: &mut [u8],
        places: &[PayloadPlace],
        flags: i32,
    ) -> io::Result<ReceivedMessageInfo> {
        self.vectors.clear();
        self.headers.clear();
        for (index, place) in places.iter().enumerate().take(self.heads.len()) {
            self.pair(head, index, into, *place);
        }
        self.tail(0);
        self.header(0, self.vectors.len());
        let message = &raw mut self.headers[0].msg_hdr;
        // SAFETY: the message points at live vectors, these into memory borrowed or owned for this call.
        let bytes =
            length(
                unsafe { libc::syscall(libc::SYS_recvmsg, fd.as_raw_fd(), message, flags) }
                    as isize,
            )?;
        self.headers[0].msg_len = bytes as u32;
        self.name_length = self.headers[0].msg_hdr.msg_namelen;
        Ok(self.message(0))
    }

    /// Receives one message into the spare room, on a socket whose packets the kernel does not join.
    pub fn single(&mut self, fd: BorrowedFd<'_>, flags: i32) -> io::Result<ReceivedMessageInfo> {
        let spare = &mut self.spare[..SPARE];
        let mut room = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        let name = self.name.as_mut().map(|name| &raw mut *name);
        let (to, from) = (
            spare.as_mut_ptr().cast(),
            name.unwrap_or(std::ptr::null_mut()),
        );
        let length_there = if from.is_null() {
            std::ptr::null_mut()
        } else {
            &raw mut room
        };
        // SAFETY: the pointers are to live memory of the lengths given, or null for an address that is not wanted.
        let got =
            unsafe { libc::recvfrom(fd.as_raw_fd(), to, SPARE, flags, from.cast(), length_there) };
        let bytes = length(got)?;
        self.name_length = if from.is_null() { 0 } else { room };
        Ok(ReceivedMessageInfo {
            bytes,
            segment: bytes.max(1),
            cut: false,
        })
    }

    /// Up to [`MESSAGES`] messages: message i to head i and place i (or to no place), the rest to its spare room. With
    /// `MSG_WAITFORONE` in the flags it waits for the first only.
    pub fn many(
        &mut self,
        fd: BorrowedFd<'_>,
        head: usize,
        into: &mut [u8],
        places: &[PayloadPlace],
        flags: i32,
    ) -> io::Result<usize> {
        self.vectors.clear();
        self.headers.clear();
        let mut counts = [0; MESSAGES];
        // Not more than are expected: what comes beyond would have to be copied.
        let messages = if places.len() < FEW {
            MESSAGES
        } else {
            places.len().min(MESSAGES)
        };
        for (index, count) in counts[..messages].iter_mut().enumerate() {
            let from = self.vectors.len();
            if let Some(place) = places.get(index) {
                self.pair(head, index, into, *place);
            }
            self.tail(index);
            *count = self.vectors.len() - from;
        }
        let mut from = 0;
        for count in counts.into_iter().take(messages) {
            self.header(from, count);
            from += count;
        }
        let n = self.headers.len() as u32;
        // SAFETY: as above, for each of the n messages; no timeout is given.
        let got = unsafe {
            libc::syscall(
                libc::SYS_recvmmsg,
                fd.as_raw_fd(),
                self.headers.as_mut_ptr(),
                n,
                flags,
                NO_TIME,
            )
        };
        length(got as isize)
    }

    /// Properties of message `index` of the last call.
    pub fn message(&self, index: usize) -> ReceivedMessageInfo {
        let message = &self.headers[index];
        let bytes = message.msg_len as usize;
        let segment = joined_segment(&message.msg_hdr).unwrap_or(bytes);
        ReceivedMessageInfo {
            bytes,
            segment: segment.max(1),
            cut: message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
        }
    }

    /// Adds vectors for head `index` and for a place.
    fn pair(&mut self, head: usize, index: usize, into: &mut [u8], place: PayloadPlace) {
        self.vectors.push(vector(&mut self.heads[index].0[..head]));
        self.vectors
            .push(vector(&mut into[place.at..][..place.length]));
    }

    /// Adds a vector for the spare room of message `index`.
    fn tail(&mut self, index: usize) {
        self.vectors
            .push(vector(&mut self.spare[index * SPARE..][..SPARE]));
    }

    /// Adds a message header for the `n` vectors from number `from` on. The vectors must not move afterwards.
    fn header(&mut self, from: usize, n: usize) {
        let control = &mut self.control[self.headers.len()];
        // SAFETY: mmsghdr is plain data, for which all bytes zero is a value.
        let mut message: libc::mmsghdr = unsafe { zeroed() };
        message.msg_hdr.msg_iov = &raw mut self.vectors[from];
        message.msg_hdr.msg_iovlen = n as _;
        message.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
        message.msg_hdr.msg_controllen = control.0.len() as _;
        if let Some(name) = &mut self.name {
            message.msg_hdr.msg_name = (&raw mut *name).cast();
            message.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        }
        self.headers.push(message);
    }
}
