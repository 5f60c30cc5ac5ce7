//! Sessions of TLS 1.2 and 1.3 (rustls) on a TCP socket. The responder makes a key and a certificate for the run; its fingerprint goes to the
//! initiator with the port, and the initiator accepts no other certificate.

use super::socket::{LayeredSocket, SharedSocket};
use crate::error::Result;
use crate::stacks::certificate::{
    NAME, RunCertificate, client_of, handshake_round_trips, session_settings, unavailable,
};
use crate::stacks::ip;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{
    ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection,
    SupportedProtocolVersion, version,
};
use stackline_core::plan::Stack;
use std::collections::BTreeMap;
use std::io::{self, BufReader, IoSlice, Read, Write};
use std::sync::Arc;

pub(super) use stackline_proto::tls::OPTIONS;

/// Bytes that are received at a time: rustls by itself takes 4 KiB.
const READ_BYTES: usize = 128 << 10;
/// Bytes in records that may wait to be sent.
const UNSENT_BYTES: usize = 256 << 10;

/// The initiator's side of TLS for the connections of a pair.
pub(super) struct TlsClient {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    /// Whether sessions are resumed: then servers send tickets.
    resumes: bool,
}

impl TlsClient {
    /// A client that accepts the certificate with that fingerprint alone.
    pub(super) fn new(stack: &Stack, alpn: &str, fingerprint: &str) -> Result<Self> {
        let mut config = client_of(fingerprint, &versions(stack))?;
        config.alpn_protocols = protocols(alpn);
        if !stack.flag("resume") {
            config.resumption = Resumption::disabled();
        }
        let name = ServerName::try_from(NAME).map_err(|e| unavailable(&e))?;
        Ok(Self {
            config: Arc::new(config),
            name,
            resumes: stack.flag("resume"),
        })
    }

    /// Shakes hands over a new connection.
    pub(super) fn shake_hands(&self, socket: LayeredSocket) -> Result<TlsSession> {
        let session = ClientConnection::new(Arc::clone(&self.config), self.name.clone());
        let session = session.map_err(|e| unavailable(&e))?;
        let mut open = opened(session.into(), socket)?;
        open.has_unread_tickets = self.resumes;
        Ok(open)
    }
}

/// The responder's side of TLS for the connections of a pair.
pub(super) struct TlsServer {
    config: Arc<ServerConfig>,
    fingerprint: String,
}

impl TlsServer {
    /// A server with a certificate of its own (ECDSA, P-256).
    pub(super) fn new(stack: &Stack, alpn: &str) -> Result<Self> {
        let certificate = RunCertificate::new()?;
        let fingerprint = certificate.fingerprint();
        let mut config = certificate.server(&versions(stack))?;
        config.alpn_protocols = protocols(alpn);
        if !stack.flag("resume") {
            config.send_tls13_tickets = 0;
        }
        Ok(Self {
            config: Arc::new(config),
            fingerprint,
        })
    }

    /// The SHA-256 of the certificate in hexadecimal digits.
    pub(super) fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Shakes hands over an accepted connection.
    pub(super) fn shake_hands(&self, socket: LayeredSocket) -> Result<TlsSession> {
        let session = ServerConnection::new(Arc::clone(&self.config));
        opened(session.map_err(|e| unavailable(&e))?.into(), socket)
    }
}

fn versions(stack: &Stack) -> [&'static SupportedProtocolVersion; 1] {
    match stack.word("version") {
        Some("tls12") => [&version::TLS12],
        _ => [&version::TLS13],
    }
}

fn protocols(alpn: &str) -> Vec<Vec<u8>> {
    let names = (!alpn.is_empty()).then(|| alpn.as_bytes().to_vec());
    names.into_iter().collect()
}

/// The session of an end of a run.
fn opened(session: Connection, socket: LayeredSocket) -> Result<TlsSession> {
    let shared = Arc::clone(socket.shared());
    TlsSession::open(session, socket).map_err(|e| shared.failure("the TLS handshake", &e))
}

/// An open session of either side.
pub(crate) struct TlsSession {
    session: Connection,
    socket: BufReader<LayeredSocket>,
    /// Whether the server may have sent tickets behind the handshake that were not read.
    has_unread_tickets: bool,
}

impl TlsSession {
    /// Shakes hands. The error is one of the socket, or of rustls within one of invalid data.
    pub(crate) fn open(mut session: Connection, socket: LayeredSocket) -> io::Result<Self> {
        session.set_buffer_limit(Some(UNSENT_BYTES));
        let mut open = Self {
            session,
            socket: BufReader::with_capacity(READ_BYTES, socket),
            has_unread_tickets: false,
        };
        while open.session.is_handshaking() {
            open.flush()?;
            // The server's last flight may have been the last of the handshake.
            if open.session.is_handshaking() && !open.read_records()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        open.flush()?;
        Ok(open)
    }

    pub(super) fn shared(&self) -> &Arc<SharedSocket> {
        self.socket.get_ref().shared()
    }

    /// Receives and deciphers; false when the peer has closed the connection.
    fn read_records(&mut self) -> io::Result<bool> {
        let got = self.session.read_tls(&mut self.socket)?;
        if let Err(error) = self.session.process_new_packets() {
            // The alert that says why this side leaves.
            let _ = self.write_records();
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
        Ok(got > 0)
    }

    fn write_records(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            self.session.write_tls(self.socket.get_mut())?;
        }
        Ok(())
    }

    /// Says that nothing more is sent (close_notify; RFC 8446, 6.1).
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.session.send_close_notify();
        self.flush()
    }

    /// Reads to the end of the connection if there may be tickets: closing a socket with unread bytes resets the connection, and what was
    /// sent last would be lost.
    pub(super) fn take_tickets(&mut self) {
        if self.has_unread_tickets {
            let shared = self.shared();
            let patience = shared.socket.set_read_timeout(Some(ip::PATIENCE));
            while patience.is_ok() && matches!(self.read(&mut [0; 256]), Ok(1..)) {}
        }
    }

    /// The protocol that both sides have agreed on (ALPN).
    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        self.session.alpn_protocol()
    }

    /// The round trips that the handshake took.
    pub(crate) fn round_trips(&self) -> u32 {
        handshake_round_trips(&self.session)
    }

    /// The version, the cipher, and whether the session was resumed.
    pub(super) fn settings(&self) -> BTreeMap<String, String> {
        session_settings(&self.session)
    }
}

impl Read for TlsSession {
    #[inline]
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(room) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => {
                    self.has_unread_tickets = false;
                    return done;
                }
            }
            self.read_records()?;
            // An answer to what was read, such as new keys.
            if self.session.wants_write() {
                sent_later(self.write_records())?;
            }
        }
    }
}

impl Write for TlsSession {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_records()?;
        let taken = self.session.writer().write(bytes)?;
        sent_later(self.write_records())?;
        Ok(taken)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.write_records()?;
        let taken = self.session.writer().write_vectored(slices)?;
        sent_later(self.write_records())?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_records()?;
        self.socket.get_mut().flush()
    }
}

/// Records that the socket has no room for are sent before the next ones: their bytes are taken.
fn sent_later(sent: io::Result<()>) -> io::Result<()> {
    match sent {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        done => done,
    }
}
