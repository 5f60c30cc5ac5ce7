//! An open session of TLS of either side on a TCP socket. With early data (RFC 8446, 2.3) its handshake goes on while data is sent: what
//! the server rejects is sent again.

use super::socket::{LayeredSocket, SharedSocket};
use super::tls_farewells::TlsFarewells;
use crate::stacks::certificate::{
    handshake_round_trips, session_handshake, session_settings, session_version,
};
use crate::stacks::handshake_counts::{HandshakeCounts, handshake_outcome};
use rustls::{Connection, ProtocolVersion};
use stackline_core::connection_count::HandshakeOutcome;
use stackline_events::scope::ConnectionStep;
use std::collections::BTreeMap;
use std::io::{self, BufReader, IoSlice, Read, Write};
use std::sync::{Arc, Weak};

/// Bytes that are received at a time: rustls by itself takes 4 KiB.
const READ_BYTES: usize = 128 << 10;
/// Bytes in records that may wait to be sent.
const UNSENT_BYTES: usize = 256 << 10;

/// Bytes of early data that a responder takes on a connection: what OpenSSL's servers take, and the most in one record (RFC 8446, 5.1).
pub(super) const EARLY_DATA_BYTES: usize = 16 << 10;
/// Bytes of early data that a client sends. With 16 KiB, a server of rustls that rejected them ended the handshake (`bad_record_mac`).
const EARLY_SENT_BYTES: usize = EARLY_DATA_BYTES / 2;
/// Bytes that a record may add to its data where a server counts what it skips: the header, the content type and the tag of the cipher
/// (RFC 8446, 5.2), and some to spare.
const RECORD_ADDS: usize = 64;

/// An open session of either side.
pub(crate) struct TlsSession {
    shared: Arc<SharedSocket>,
    /// `None` once it was left.
    open: Option<Box<OpenTls>>,
    /// Who keeps it when a client has left it while the server may still send tickets.
    farewells: Weak<TlsFarewells>,
}

/// A session, and the socket that carries it.
pub(super) struct OpenTls {
    session: Connection,
    socket: BufReader<LayeredSocket>,
    counts: Arc<HandshakeCounts>,
    /// Whether the handshake is over and counted.
    is_shaken: bool,
    /// What a client has sent as early data, until it is known whether the server takes it.
    early_sent: Option<EarlyDataSent>,
    /// Whether a server may still have early data to read.
    reads_early: bool,
    /// Whether this side has said that it sends no more.
    is_finished: bool,
}

/// Early data of a client.
struct EarlyDataSent {
    bytes: Vec<u8>,
    /// How many more bytes of records may be sent, with what ciphers add: a server that rejects early data skips only so many.
    room: usize,
}

impl TlsSession {
    /// Shakes hands. The error is one of the socket, or of rustls within one of invalid data.
    pub(crate) fn open(
        session: Connection,
        socket: LayeredSocket,
        counts: &Arc<HandshakeCounts>,
    ) -> io::Result<Self> {
        let shared = Arc::clone(socket.shared());
        let mut open = OpenTls::new(session, socket, counts);
        open.begin()?;
        Ok(Self {
            shared,
            open: Some(Box::new(open)),
            farewells: Weak::new(),
        })
    }

    /// Keeps the session there when it is left, until its server has sent everything.
    pub(super) fn kept_by(mut self, farewells: &Arc<TlsFarewells>) -> Self {
        self.farewells = Arc::downgrade(farewells);
        self
    }

    pub(super) const fn shared(&self) -> &Arc<SharedSocket> {
        &self.shared
    }

    /// The session, which is open as long as anybody has it.
    fn open_mut(&mut self) -> io::Result<&mut OpenTls> {
        let open = self.open.as_deref_mut();
        open.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Says that nothing more is sent (close_notify; RFC 8446, 6.1).
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.open_mut()?.finish()
    }

    /// Notes that the protocol above has said that nothing more is sent.
    pub(super) fn leaves(&mut self) {
        if let Some(open) = &mut self.open {
            open.is_finished = true;
        }
    }

    /// The protocol that both sides have agreed on (ALPN).
    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        self.open.as_ref()?.session.alpn_protocol()
    }

    /// The round trips that the handshake took.
    pub(crate) fn round_trips(&self) -> u32 {
        let open = self.open.as_ref();
        open.map_or(1, |open| handshake_round_trips(&open.session))
    }

    /// The handshake as a step of opening a traced connection; with early data it is not over yet.
    pub(crate) fn step(&self) -> ConnectionStep<'static> {
        let open = self.open.as_deref();
        let handshake = |open: &OpenTls| match open.is_shaken {
            true => session_handshake(&open.session),
            false => Some("early"),
        };
        ConnectionStep::Tls {
            version: open.and_then(|open| session_version(&open.session)),
            handshake: open.and_then(handshake),
        }
    }

    /// The version and the cipher.
    pub(super) fn settings(&self) -> BTreeMap<String, String> {
        let open = self.open.as_ref();
        open.map(|open| session_settings(&open.session))
            .unwrap_or_default()
    }
}

impl Drop for TlsSession {
    fn drop(&mut self) {
        if let (Some(open), Some(farewells)) = (self.open.take(), self.farewells.upgrade())
            && open.awaits_tickets()
        {
            farewells.keep(*open);
        }
    }
}

impl OpenTls {
    fn new(mut session: Connection, socket: LayeredSocket, counts: &Arc<HandshakeCounts>) -> Self {
        session.set_buffer_limit(Some(UNSENT_BYTES));
        let offers_early = match &mut session {
            Connection::Client(client) => client.early_data().is_some(),
            Connection::Server(_) => false,
        };
        Self {
            session,
            socket: BufReader::with_capacity(READ_BYTES, socket),
            counts: Arc::clone(counts),
            is_shaken: false,
            early_sent: offers_early.then(|| EarlyDataSent {
                bytes: Vec::new(),
                room: EARLY_SENT_BYTES,
            }),
            reads_early: false,
            is_finished: false,
        }
    }

    pub(super) fn socket(&mut self) -> &mut LayeredSocket {
        self.socket.get_mut()
    }

    /// Shakes hands, until data can be exchanged: a client may send early data at once, and a server takes it before the client's Finished.
    fn begin(&mut self) -> io::Result<()> {
        self.flush()?;
        if self.early_sent.is_some() {
            return Ok(());
        }
        while !self.is_shaken && !self.reads_early {
            self.go_on()?;
        }
        Ok(())
    }

    /// Shakes hands to the end.
    fn shake_hands(&mut self) -> io::Result<()> {
        while !self.is_shaken {
            self.go_on()?;
        }
        Ok(())
    }

    /// Takes more of the handshake, and answers it.
    fn go_on(&mut self) -> io::Result<()> {
        // The server's last flight may have been the last of the handshake.
        if self.session.is_handshaking() && !self.read_records()? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.note_handshake()?;
        self.flush()
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

    /// Notes how far the handshake has come. Once it is over, it is counted, and a client sends again what was rejected.
    fn note_handshake(&mut self) -> io::Result<()> {
        if self.is_shaken {
            return Ok(());
        }
        let accepted = match &mut self.session {
            Connection::Client(client) => client.is_early_data_accepted(),
            Connection::Server(server) => server.early_data().is_some(),
        };
        let is_server = matches!(self.session, Connection::Server(_));
        self.reads_early |= is_server && accepted;
        if self.session.is_handshaking() {
            return Ok(());
        }
        self.is_shaken = true;
        if accepted {
            self.early_sent = None;
            self.counts.add(HandshakeOutcome::Early);
            return Ok(());
        }
        self.counts.add(handshake_outcome(&self.session));
        if let Some(sent) = self.early_sent.take() {
            self.counts.reject_early_data();
            self.session.writer().write_all(&sent.bytes)?;
        }
        Ok(())
    }

    /// Early data that has come and was not read.
    #[cold]
    fn read_early(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let Connection::Server(server) = &mut self.session else {
            return Ok(0);
        };
        let got = server
            .early_data()
            .map_or(Ok(0), |mut early| early.read(room))?;
        // What comes behind the end of the handshake is no early data.
        self.reads_early = got > 0 || !self.is_shaken;
        Ok(got)
    }

    /// Sends as early data what may be sent so; 0 once the handshake is over.
    #[cold]
    fn write_early(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (Connection::Client(client), Some(sent)) = (&mut self.session, &mut self.early_sent)
        else {
            return Ok(0);
        };
        let most = bytes.len().min(sent.room.saturating_sub(RECORD_ADDS));
        let taken = match client.early_data().filter(|_| most > 0) {
            Some(mut early) => early.write(&bytes[..most])?,
            None => 0,
        };
        if taken > 0 {
            sent.bytes.extend_from_slice(&bytes[..taken]);
            sent.room -= taken + RECORD_ADDS;
        } else if !bytes.is_empty() {
            // The server takes no more before it has answered.
            self.shake_hands()?;
        }
        Ok(taken)
    }

    fn write_records(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            self.session.write_tls(self.socket.get_mut())?;
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.shake_hands()?;
        self.session.send_close_notify();
        self.is_finished = true;
        self.flush()
    }

    /// Whether this is a client that has finished, and the server's tickets (RFC 8446, 4.6.1) have not come.
    fn awaits_tickets(&self) -> bool {
        let Connection::Client(client) = &self.session else {
            return false;
        };
        self.is_finished
            && client.protocol_version() == Some(ProtocolVersion::TLSv1_3)
            && client.tls13_tickets_received() == 0
    }
}

impl Read for OpenTls {
    #[inline]
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.reads_early {
                let got = self.read_early(room)?;
                if got > 0 {
                    return Ok(got);
                }
            }
            match self.session.reader().read(room) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            let more = self.read_records()?;
            if !self.is_shaken {
                self.note_handshake()?;
                if !more && !self.is_shaken {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            // An answer to what was read, such as new keys.
            if self.session.wants_write() {
                sent_later(self.write_records())?;
            }
        }
    }
}

impl Write for OpenTls {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_records()?;
        let taken = match self.early_sent {
            Some(_) => self.write_early(bytes)?,
            None => 0,
        };
        let taken = match taken {
            0 => self.session.writer().write(bytes)?,
            taken => taken,
        };
        sent_later(self.write_records())?;
        Ok(taken)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.early_sent.is_some() {
            let first = slices.iter().find(|slice| !slice.is_empty());
            return first.map_or(Ok(0), |slice| self.write(slice));
        }
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

impl Read for TlsSession {
    #[inline]
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.open_mut()?.read(room)
    }
}

impl Write for TlsSession {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.open_mut()?.write(bytes)
    }

    #[inline]
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.open_mut()?.write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.open_mut()?.flush()
    }
}

/// Records that the socket has no room for are sent before the next ones: their bytes are taken.
fn sent_later(sent: io::Result<()>) -> io::Result<()> {
    match sent {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        done => done,
    }
}
