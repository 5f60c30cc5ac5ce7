//! What a layered protocol is spoken over: one end of a TCP connection, with TLS on it if it is asked for.
//!
//! Nobody carries bytes. What one end writes stands in the connection's ledger, as records and pieces with their lengths, and the other end
//! takes it from there when TCP has brought as many bytes.

use crate::run_state::SimRunState;
use crate::stacks::byte_stream::{Got, StreamEnd};
use crate::stacks::stream::INTRODUCTION;
use crate::stacks::tcp::SimTcpEnd;
use stackline_core::connection_count::HandshakeOutcome;
use stackline_core::procedure::PairSide;
use stackline_core::run_record::TransportRecord;
use stackline_core::time::Instant;
use stackline_proto::http::HttpPiece;
use stackline_proto::tls::{TlsEnd, TlsRecord, TlsTerms, TlsVersion};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::{Rc, Weak};

/// Bytes that are received at a time, as the live world does.
const READ_BYTES: usize = 128 << 10;
/// Most bytes of data that TLS turns into records before the socket has taken the last ones.
const UNSENT_BYTES: u64 = 256 << 10;

/// What the ends of a connection have written and not read; arrays are by the side that wrote it.
#[derive(Debug)]
pub(super) struct WireLedger {
    records: [RefCell<VecDeque<TlsRecord>>; 2],
    pieces: [RefCell<VecDeque<HttpPiece>>; 2],
    /// Whether the session of TLS is that of an earlier connection; known when the initiator begins the handshake.
    pub(super) resumed: Cell<bool>,
}

impl WireLedger {
    pub(super) fn new() -> Rc<Self> {
        Rc::new(Self {
            records: Default::default(),
            pieces: Default::default(),
            resumed: Cell::new(false),
        })
    }
}

/// One end of a connection, with its end of TLS.
pub(crate) struct SimLayerWire {
    tcp: Rc<SimTcpEnd>,
    ledger: Rc<WireLedger>,
    side: PairSide,
    shared: Rc<SimRunState>,
    tls: Option<SimTlsSession>,
    /// Bytes on the wire that TCP has not taken.
    unsent: Cell<u64>,
    /// Bytes on the wire in all.
    written: Cell<u64>,
    /// Bytes of the introduction that go before what is written first.
    introduction: Cell<u64>,
    /// Whether data or the end of it was read, so that no ticket is left unread.
    has_read: Cell<bool>,
    /// Who keeps this end when the initiator has left it.
    farewells: Weak<WireFarewells>,
    kept: Cell<bool>,
    abandoned: Cell<bool>,
}

/// TLS at one end.
struct SimTlsSession {
    end: RefCell<TlsEnd>,
    terms: TlsTerms,
    /// Bytes that have come of a record that is not complete.
    partial: Cell<u64>,
    /// Sessions that the initiator can resume; the responder counts none.
    sessions: Option<Rc<Cell<u32>>>,
}

impl SimTlsSession {
    /// Whether the server sends tickets to this end behind the handshake (RFC 8446, 4.6.1).
    fn awaits_tickets(&self) -> bool {
        self.sessions.is_some() && self.terms.resumes && self.terms.version == TlsVersion::Tls13
    }

    /// The version, as rustls names it, and whether the session was resumed, in a word.
    fn agreed(&self) -> (&'static str, &'static str) {
        let version = match self.terms.version {
            TlsVersion::Tls12 => "TLSv1_2",
            TlsVersion::Tls13 => "TLSv1_3",
        };
        let handshake = match self.end.borrow().is_resumed() {
            true => "resumed",
            false => "full",
        };
        (version, handshake)
    }
}

/// Ends that initiators have left, and whose responders may still send.
pub(super) type WireFarewells = RefCell<Vec<Rc<SimLayerWire>>>;

impl fmt::Debug for SimLayerWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wire over {:?}", self.tcp)
    }
}

impl Drop for SimLayerWire {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl SimLayerWire {
    pub(super) fn new(
        tcp: Rc<SimTcpEnd>,
        ledger: &Rc<WireLedger>,
        side: PairSide,
        shared: &Rc<SimRunState>,
        tls: Option<TlsTerms>,
        sessions: &Rc<Cell<u32>>,
        farewells: &Rc<WireFarewells>,
    ) -> Rc<Self> {
        let is_client = side == PairSide::Initiator;
        let tls = tls.map(|terms| SimTlsSession {
            end: RefCell::new(TlsEnd::new(terms, is_client, ledger.resumed.get())),
            terms,
            partial: Cell::new(0),
            sessions: is_client.then(|| Rc::clone(sessions)),
        });
        Rc::new(Self {
            tcp,
            ledger: Rc::clone(ledger),
            side,
            shared: Rc::clone(shared),
            tls,
            unsent: Cell::new(0),
            written: Cell::new(0),
            introduction: Cell::new(0),
            has_read: Cell::new(false),
            farewells: Rc::downgrade(farewells),
            kept: Cell::new(false),
            abandoned: Cell::new(false),
        })
    }

    /// The introduction goes before what is written first.
    pub(super) fn introduces(&self) {
        self.introduction.set(INTRODUCTION);
    }

    /// Sends the introduction alone, if nothing was written behind it.
    pub(super) fn introduce(&self) {
        self.add(0);
    }

    fn add(&self, wire_bytes: u64) {
        let more = self.introduction.replace(0) + wire_bytes;
        self.unsent.set(self.unsent.get() + more);
        self.written.set(self.written.get() + more);
    }

    /// Bytes of TCP's stream that were written: what is written next begins there.
    pub(super) const fn written(&self) -> u64 {
        self.written.get()
    }

    /// Reads at most `most` bytes of the introduction, which is not within TLS.
    pub(super) fn read_introduction(&self, most: u64) -> Got {
        self.tcp.receive(most as usize, &self.shared)
    }

    /// Whether it is ready for data; `None` when it is broken. With TLS this takes what has come of the handshake and answers it.
    pub(super) fn shake_hands(&self) -> Option<bool> {
        let Some(tls) = &self.tls else {
            return self.flush();
        };
        self.put_records();
        loop {
            self.flush()?;
            if tls.end.borrow().is_established() {
                return self.flush();
            }
            match self.tcp.receive(READ_BYTES, &self.shared) {
                Got::Bytes(bytes) => self.take_records(tls, bytes as u64),
                Got::Nothing => return Some(false),
                Got::End | Got::Broken => return None,
            }
        }
    }

    /// Takes the records of which the last byte has come, and puts down what TLS answers.
    fn take_records(&self, tls: &SimTlsSession, bytes: u64) {
        let mut come = tls.partial.get() + bytes;
        let mut records = self.ledger.records[self.side.other().index()].borrow_mut();
        while let Some(record) = records.front().copied()
            && record.wire_bytes <= come
        {
            records.pop_front();
            come -= record.wire_bytes;
            tls.end.borrow_mut().handle(record);
        }
        drop(records);
        tls.partial.set(come);
        self.keep_sessions(tls);
        self.put_records();
    }

    /// The initiator keeps what a session can be resumed with: tickets, or with TLS 1.2 the session itself (RFC 5246, 7.3).
    fn keep_sessions(&self, tls: &SimTlsSession) {
        let mut end = tls.end.borrow_mut();
        let tickets = end.take_tickets();
        let Some(sessions) = tls.sessions.as_ref().filter(|_| tls.terms.resumes) else {
            return;
        };
        if tls.terms.version == TlsVersion::Tls12 && end.is_established() {
            sessions.set(1);
        }
        sessions.set(sessions.get() + tickets);
    }

    /// Puts down the records that TLS wants to send.
    fn put_records(&self) {
        let Some(tls) = &self.tls else { return };
        let mut end = tls.end.borrow_mut();
        let mut records = self.ledger.records[self.side.index()].borrow_mut();
        while let Some(record) = end.poll() {
            self.add(record.wire_bytes);
            records.push_back(record);
        }
    }

    /// Writes data at once.
    pub(super) fn write(&self, bytes: u64) {
        match &self.tls {
            None => self.add(bytes),
            Some(tls) => {
                tls.end.borrow_mut().write(bytes);
                self.put_records();
            }
        }
    }

    /// Writes a piece of HTTP whose meaning the other end gets with its last byte; [`Self::write`] follows for all of them.
    pub(super) fn put_down(&self, piece: HttpPiece) {
        self.ledger.pieces[self.side.index()]
            .borrow_mut()
            .push_back(piece);
    }

    /// The next piece of the other end, if it has at most so many bytes.
    pub(super) fn take_piece(&self, come: u64) -> Option<HttpPiece> {
        let mut pieces = self.ledger.pieces[self.side.other().index()].borrow_mut();
        let is_whole = pieces.front().is_some_and(|piece| piece.wire_bytes <= come);
        if is_whole { pieces.pop_front() } else { None }
    }

    /// Gives TCP what it has room for. Whether it has taken everything; `None` when the connection is broken.
    pub(super) fn flush(&self) -> Option<bool> {
        let unsent = self.unsent.get();
        if unsent > 0 {
            let taken = self.tcp.send(unsent as usize, &self.shared)?;
            self.unsent.set(unsent - taken as u64);
        }
        Some(self.unsent.get() == 0)
    }

    /// Reads at most `most` bytes of data.
    pub(super) fn read(&self, most: usize) -> Got {
        let Some(tls) = &self.tls else {
            return self.tcp.receive(most, &self.shared);
        };
        loop {
            let taken = tls.end.borrow_mut().take(most as u64);
            if taken > 0 {
                return Got::Bytes(taken as usize);
            }
            if tls.end.borrow().is_ended() {
                return Got::End;
            }
            match self.tcp.receive(READ_BYTES, &self.shared) {
                Got::Bytes(bytes) => self.take_records(tls, bytes as u64),
                other => return other,
            }
        }
    }

    /// Takes what has come at an end that the initiator has left; false at the end of the stream.
    pub(super) fn take_rest(&self) -> bool {
        loop {
            match self.read(READ_BYTES) {
                Got::Bytes(_) => {}
                Got::Nothing => return true,
                Got::End | Got::Broken => return false,
            }
        }
    }

    /// How the handshake came about, once it is done; `None` without TLS.
    pub(super) fn handshake(&self) -> Option<HandshakeOutcome> {
        let end = self.tls.as_ref()?.end.borrow();
        Some(match end.is_resumed() {
            true => HandshakeOutcome::Resumed,
            false => HandshakeOutcome::Full,
        })
    }

    /// Says that nothing more is sent, and closes the own half of the connection.
    pub(super) fn finish(&self) {
        if let Some(tls) = &self.tls {
            tls.end.borrow_mut().close();
            self.put_records();
        } else {
            self.introduce();
        }
        // A broken connection has nobody to inform.
        let _ = self.flush();
        self.tcp.close(&self.shared);
    }

    /// The application leaves the end, which says so unless the peer has left before.
    fn give_up(&self) {
        if self.abandoned.replace(true) {
            return;
        }
        let leaves = |tls: &SimTlsSession| {
            let end = tls.end.borrow();
            !end.is_ended() && !end.is_closed()
        };
        if self.tls.as_ref().is_some_and(leaves) {
            self.finish();
        }
        self.tcp.abandon(&self.shared);
    }

    pub(super) fn transport(&self) -> Option<TransportRecord> {
        self.tcp.transport(self.shared.now())
    }

    pub(super) fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = self.tcp.settings(self.shared.now());
        if let Some(tls) = &self.tls {
            let cipher = match tls.terms.version {
                TlsVersion::Tls12 => "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
                TlsVersion::Tls13 => "TLS13_AES_256_GCM_SHA384",
            };
            let (version, _) = tls.agreed();
            let words = [("tls", version), ("cipher", cipher)];
            settings.extend(words.map(|(name, word)| (name.to_string(), word.to_string())));
        }
        settings
    }

    /// The version of TLS and whether its session was resumed, in words; `None` without TLS.
    pub(super) fn agreed(&self) -> Option<(&'static str, &'static str)> {
        self.tls.as_ref().map(SimTlsSession::agreed)
    }

    pub(super) fn notes(&self) -> Vec<String> {
        self.tcp.notes(self.shared.now())
    }

    /// Why the network broke the connection, if that is known.
    pub(super) fn why_broken(&self) -> Option<&'static str> {
        self.tcp.broken_by()
    }
}

impl StreamEnd for Rc<SimLayerWire> {
    fn answered(&self) -> Option<bool> {
        Some(true)
    }

    fn send(&self, bytes: usize, _: &SimRunState) -> Option<usize> {
        let mut done = 0;
        while self.flush()? && done < bytes {
            let here = (bytes - done).min(UNSENT_BYTES as usize);
            self.write(here as u64);
            done += here;
        }
        Some(done)
    }

    fn receive(&self, most: usize, _: &SimRunState) -> Got {
        let got = self.read(most);
        if got != Got::Nothing {
            self.has_read.set(true);
        }
        got
    }

    fn broken_by(&self) -> Option<&'static str> {
        self.why_broken()
    }

    fn is_handed_over(&self, _: &SimRunState) -> Option<bool> {
        self.flush()
    }

    fn shows_positions(&self) -> bool {
        false
    }

    fn framed_bytes(&self) -> Option<u64> {
        Some(self.written())
    }

    fn is_kept(&self) -> bool {
        // Tickets that come later would reset the connection, and what was sent last would be lost.
        let tls = self.tls.as_ref();
        let awaits = tls.is_some_and(SimTlsSession::awaits_tickets) && !self.has_read.get();
        awaits
            && self.farewells.upgrade().is_some_and(|farewells| {
                farewells.borrow_mut().push(Self::clone(self));
                self.kept.set(true);
                true
            })
    }

    fn close(&self, _: &SimRunState) {
        self.finish();
    }

    fn abandon(&self, _: &SimRunState) {
        if !self.kept.get() {
            self.give_up();
        }
    }

    fn push(&self, shared: &SimRunState) {
        self.tcp.push(shared);
    }

    fn transport(&self, _: Instant) -> Option<TransportRecord> {
        SimLayerWire::transport(self)
    }

    fn settings(&self, _: Instant) -> BTreeMap<String, String> {
        SimLayerWire::settings(self)
    }

    fn notes(&self, _: Instant) -> Vec<String> {
        SimLayerWire::notes(self)
    }
}
