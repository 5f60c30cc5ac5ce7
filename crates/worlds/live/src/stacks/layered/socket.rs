//! A connected TCP socket as libraries read and write it: the token of the run goes before what they write first, and a job that was ended
//! ends what blocks.

use crate::cancel::LiveCancelFlags;
use crate::error::{self, Error, Result};
use crate::stacks::contract::connection_vanished;
use crate::stacks::stream::wait_until_quiet;
use crate::stacks::tcp_record::{acknowledged_bytes, read_tcp_record};
use socket2::Socket;
use stackline_core::plan::Stack;
use stackline_core::run_record::TransportRecord;
use stackline_events::scope;
use stackline_os::stream_socket::{self as os, RecvFlags, SendFlags};
use stackline_proto::datagram::DatagramToken;
use std::io::{self, IoSlice, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A socket whose libraries and whose driver share it.
#[derive(Debug)]
pub(crate) struct SharedSocket {
    pub(crate) socket: Socket,
    /// Whether a read found nothing, or less than there was room for, and it has not been waited since.
    pub(crate) awaits_input: AtomicBool,
    /// Whether a write found no room, and it has not been waited since.
    pub(crate) awaits_room: AtomicBool,
    /// Whether a driver waits for the socket before it is read again, so that a read that would find nothing is not tried.
    pub(crate) is_waited_for: AtomicBool,
    pub(crate) flags: Arc<LiveCancelFlags>,
}

/// The end of the socket that a library reads and writes.
pub(crate) struct LayeredSocket {
    shared: Arc<SharedSocket>,
    /// The token, until it is sent.
    token: Option<DatagramToken>,
    receive_flags: RecvFlags,
}

impl LayeredSocket {
    /// Over a connected socket; `token` is sent with the first bytes.
    pub(crate) fn new(
        socket: Socket,
        stack: &Stack,
        token: Option<DatagramToken>,
        flags: &Arc<LiveCancelFlags>,
    ) -> Result<Self> {
        socket
            .set_tcp_nodelay(!stack.flag("nagle"))
            .map_err(|e| error::io_error("TCP_NODELAY", &e))?;
        if token.is_some() {
            scope::begin_byte_count();
        }
        Ok(Self {
            shared: Arc::new(SharedSocket {
                socket,
                awaits_input: AtomicBool::new(false),
                awaits_room: AtomicBool::new(false),
                is_waited_for: AtomicBool::new(false),
                flags: Arc::clone(flags),
            }),
            token,
            receive_flags: RecvFlags::empty(),
        })
    }

    pub(crate) const fn shared(&self) -> &Arc<SharedSocket> {
        &self.shared
    }

    /// How it is received from now on.
    pub(super) const fn receives_with(&mut self, flags: RecvFlags) {
        self.receive_flags = flags;
    }

    /// Calls the kernel until it moves bytes or has an error; signals end it only if the job was ended.
    fn call(
        &self,
        missing: &AtomicBool,
        mut system_call: impl FnMut() -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            match system_call() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    if self.shared.flags.ended() {
                        return Err(io::Error::other("the job was ended"));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    missing.store(true, Ordering::Relaxed);
                    return Err(error);
                }
                done => return done,
            }
        }
    }

    /// Sends the token and these slices. Returns how many bytes of the slices were sent.
    #[cold]
    fn introduce(&mut self, token: DatagramToken, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let all: Vec<IoSlice<'_>> = std::iter::once(IoSlice::new(&token))
            .chain(slices.iter().map(|slice| IoSlice::new(slice)))
            .collect();
        let bytes = all.iter().map(|slice| slice.len()).sum();
        let fd = self.shared.socket.as_fd();
        let sent = self.call(&self.shared.awaits_room, || {
            scope::sending(bytes, || os::send_vectored(fd, &all, SendFlags::empty()))
        })?;
        // A connection that was opened just now has room for more than a token.
        self.token = None;
        sent.checked_sub(token.len())
            .ok_or_else(|| io::Error::other("the kernel took only a part of the first 16 bytes"))
    }
}

impl Read for LayeredSocket {
    #[inline]
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let shared = &*self.shared;
        let is_waited_for = shared.is_waited_for.load(Ordering::Relaxed);
        if is_waited_for && shared.awaits_input.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let fd = shared.socket.as_fd();
        let got = self.call(&shared.awaits_input, || {
            scope::receiving(room.len(), || os::receive(fd, room, self.receive_flags))
        })?;
        if is_waited_for && got < room.len() {
            shared.awaits_input.store(true, Ordering::Relaxed);
        }
        Ok(got)
    }
}

impl Write for LayeredSocket {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(token) = self.token {
            return self.introduce(token, &[IoSlice::new(bytes)]);
        }
        let fd = self.shared.socket.as_fd();
        self.call(&self.shared.awaits_room, || {
            scope::sending(bytes.len(), || os::send(fd, bytes, SendFlags::empty()))
        })
    }

    #[inline]
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if let Some(token) = self.token {
            return self.introduce(token, slices);
        }
        let bytes = slices.iter().map(|slice| slice.len()).sum();
        let fd = self.shared.socket.as_fd();
        self.call(&self.shared.awaits_room, || {
            scope::sending(bytes, || os::send_vectored(fd, slices, SendFlags::empty()))
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.token {
            Some(token) => self.introduce(token, &[]).map(drop),
            None => Ok(()),
        }
    }
}

impl SharedSocket {
    /// The error of a library that reads or writes the socket: `what` was being done.
    pub(crate) fn failure(&self, what: &str, error: &io::Error) -> Error {
        match error.kind() {
            _ if self.flags.ended() => Error::interrupted(),
            io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::UnexpectedEof => connection_vanished("while data was in flight"),
            _ => error::io_error(what, error),
        }
    }

    /// Waits until nothing is in transit.
    pub(crate) fn settle(&self) -> Result<()> {
        wait_until_quiet(&self.socket, &self.flags)
    }

    pub(crate) fn transport(&self) -> Option<TransportRecord> {
        read_tcp_record(self.socket.as_fd()).ok()
    }

    /// Bytes that the peer has acknowledged.
    pub(crate) fn acknowledged(&self) -> Option<u64> {
        acknowledged_bytes(self.socket.as_fd())
    }

    /// The addresses of the two ends, the local one first.
    pub(crate) fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        Some((
            self.socket.local_addr().ok()?.as_socket()?,
            self.socket.peer_addr().ok()?.as_socket()?,
        ))
    }
}
