//! What a protocol is spoken over: a TCP socket, or TLS on one.

pub(crate) use super::socket::LayeredSocket;
use super::socket::SharedSocket;
pub(crate) use super::tls_session::TlsSession;
use crate::error::{Error, Result};
use crate::stacks::byte_channel::{ByteChannel, ChannelEnd};
use crate::stacks::stream::buffer_settings;
use crate::stacks::tcp;
use bytes::Bytes;
use stackline_core::run_record::TransportRecord;
use std::collections::BTreeMap;
use std::io::{self, IoSlice, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;

pub(crate) enum LayeredWire {
    Plain(LayeredSocket),
    Tls(TlsSession),
}

impl LayeredWire {
    pub(crate) fn shared(&self) -> &Arc<SharedSocket> {
        match self {
            Self::Plain(socket) => socket.shared(),
            Self::Tls(session) => session.shared(),
        }
    }

    /// Notes that the protocol above has said that nothing more is sent.
    pub(super) fn leaves(&mut self) {
        if let Self::Tls(session) = self {
            session.leaves();
        }
    }

    /// Says that nothing more is sent.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(session) => session.finish(),
        }?;
        match self.shared().socket.shutdown(std::net::Shutdown::Write) {
            // The peer has closed already and needs no notice.
            Err(error) if error.kind() != io::ErrorKind::NotConnected => Err(error),
            _ => Ok(()),
        }
    }
}

impl ChannelEnd for LayeredWire {
    fn failure(&self, what: &str, error: &io::Error) -> Error {
        self.shared().failure(what, error)
    }

    fn settle(&self) -> Result<()> {
        self.shared().settle()
    }

    fn transport(&self) -> Option<TransportRecord> {
        self.shared().transport()
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let socket = &self.shared().socket;
        let mut settings = tcp::settings(socket);
        settings.extend(buffer_settings(socket));
        if let Self::Tls(session) = self {
            settings.extend(session.settings());
        }
        settings
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        self.shared().addresses()
    }
}

impl Read for LayeredWire {
    #[inline]
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(room),
            Self::Tls(session) => session.read(room),
        }
    }
}

impl Write for LayeredWire {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(session) => session.write(bytes),
        }
    }

    #[inline]
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write_vectored(slices),
            Self::Tls(session) => session.write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(session) => session.flush(),
        }
    }
}

impl ByteChannel for LayeredWire {
    fn send(&mut self, bytes: Bytes) -> io::Result<()> {
        self.write_all(&bytes)?;
        self.flush()
    }

    fn receive(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.read(room)
    }

    fn finish(&mut self) -> io::Result<()> {
        Self::finish(self)
    }

    fn end(&self) -> &dyn ChannelEnd {
        self
    }
}
