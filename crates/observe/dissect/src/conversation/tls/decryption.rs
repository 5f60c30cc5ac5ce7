//! Decrypts TLS with the secrets of its sessions: [`TlsDissector`] finds the handshake, and the decrypted contents of records go to a
//! conversation of their own, in whatever protocol they are. Without the session's secrets, or with a cipher that is not a [`Suite`], the
//! connection is read by turns as without decryption.
//!
//! Offsets of the inner messages are those of the records that hold them: a message begins where its first record begins, and ends where
//! its last record ends.

use super::record_keys::{DecryptedTlsRecord, Opener, Suite};
use super::session_secrets::{Secrets, TlsSessionSecrets};
use super::{CHANGE_CIPHER_SPEC, DATA, HANDSHAKE, HEAD, LONGEST_RECORD, ServerHello, TlsDissector};
use crate::conversation::connection::Conversation;
use crate::conversation::records::{
    Extent, RecordFieldReader, RecordInput, RecordParser, RecordProgress, Skipped,
};
use crate::conversation::{Dissector, DissectorEvent, ExchangeKind, renumber};
use crate::left_out::Bound;
use stackline_events::unit_ids::EventStreamDirection;
use std::collections::VecDeque;

/// The most records of a side whose offsets are remembered.
const MOST_PLACES: usize = Bound::Places.most();
/// The TLS 1.3 handshake message after which the sender uses its next key.
const KEY_UPDATE: u8 = 24;

/// The dissector of one TLS connection that is decrypted.
#[derive(Debug)]
pub(in super::super) struct Deciphered {
    /// Finds the handshake, and turns while nothing is decrypted.
    outer: TlsDissector,
    secrets: Secrets,
    client_random: Option<[u8; 32]>,
    /// The server's choice, once its ServerHello was seen.
    server: Option<TlsServerChoice>,
    state: TlsDecryptionState,
    sides: [DecipheredTlsSide; 2],
    /// The conversation within TLS.
    inner: Conversation,
}

/// Whether records can be decrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TlsDecryptionState {
    /// Nothing encrypted has been seen yet.
    Waits,
    /// Records cannot be decrypted.
    Closed,
    /// Records are decrypted.
    Open,
}

/// What the ServerHello says.
#[derive(Clone, Copy, Debug)]
struct TlsServerChoice {
    random: [u8; 32],
    suite: u16,
    /// Whether the version is TLS 1.3.
    is_newer: bool,
}

/// The records of one side.
#[derive(Debug, Default)]
struct DecipheredTlsSide {
    records: RecordParser,
    /// Whether the position in the stream is lost.
    lost: bool,
    /// Whether the side has sent ChangeCipherSpec, after which TLS 1.2 encrypts all its records.
    encrypts: bool,
    /// The key in use.
    opener: Option<Opener>,
    /// The key for application data, while the handshake key is in use (TLS 1.3).
    then: Option<Opener>,
    /// The offset behind the last decrypted byte.
    end: u64,
    /// For each record: where its contents begin and end in the decrypted stream, and where the record begins and ends in the
    /// connection's stream.
    places: VecDeque<[u64; 4]>,
}

impl Deciphered {
    pub(in super::super) fn new(secrets: Secrets, port: u16) -> Self {
        Self {
            outer: TlsDissector::default(),
            secrets,
            client_random: None,
            server: None,
            state: TlsDecryptionState::Waits,
            sides: Default::default(),
            inner: Conversation::new(port),
        }
    }

    /// Takes a complete record; `is_seen` is false if not all its bytes were captured.
    fn record(
        &mut self,
        side: EventStreamDirection,
        is_seen: bool,
        found: &mut Vec<DissectorEvent>,
    ) {
        let own = &mut self.sides[side as usize];
        let kind = own.records.held()[0];
        let record = own.records.held().to_vec();
        let place = [own.records.at(), own.records.end()];
        match kind {
            CHANGE_CIPHER_SPEC => {
                let is_older = self.server.is_some_and(|server| !server.is_newer);
                self.sides[side as usize].encrypts |= is_older || self.server.is_none();
            }
            HANDSHAKE if !self.is_encrypted(side) => self.hello(side, &record[HEAD..]),
            DATA | HANDSHAKE => self.encrypted(side, place, is_seen.then_some(&record[..]), found),
            _ if self.is_encrypted(side) => {
                self.encrypted(side, place, is_seen.then_some(&record[..]), found)
            }
            _ => {}
        }
    }

    /// Whether all records of a side are encrypted, whatever their type: TLS 1.2 after ChangeCipherSpec.
    fn is_encrypted(&self, side: EventStreamDirection) -> bool {
        self.sides[side as usize].encrypts && self.server.is_none_or(|server| !server.is_newer)
    }

    /// Reads the random numbers and the cipher suite of the hellos.
    fn hello(&mut self, side: EventStreamDirection, body: &[u8]) {
        match side {
            EventStreamDirection::There if self.client_random.is_none() => {
                let mut fields = RecordFieldReader(body);
                self.client_random = fields
                    .take(4 + 2)
                    .and_then(|_| fields.take(32))
                    .and_then(|random| random.try_into().ok());
            }
            EventStreamDirection::Back if self.server.is_none() => {
                let Some(hello) = ServerHello::read(body).filter(|hello| !hello.retry) else {
                    return;
                };
                self.server = Some(TlsServerChoice {
                    random: hello.random,
                    suite: hello.suite,
                    is_newer: hello.version >= 0x304,
                });
            }
            _ => {}
        }
    }

    /// Takes an encrypted record; `None` if its bytes were not all captured.
    fn encrypted(
        &mut self,
        side: EventStreamDirection,
        place: [u64; 2],
        record: Option<&[u8]>,
        found: &mut Vec<DissectorEvent>,
    ) {
        if self.state == TlsDecryptionState::Waits {
            self.state = if self.unlock().is_some() {
                TlsDecryptionState::Open
            } else {
                TlsDecryptionState::Closed
            };
        }
        let own = &mut self.sides[side as usize];
        if self.state == TlsDecryptionState::Closed || own.lost {
            return;
        }
        let Some(record) = record else {
            return self.missed(side, place, found);
        };
        let Some(opened) = own.open(record) else {
            // Before application data the record may use another key: that of early data, or a handshake key that is not known.
            own.lost = own.then.is_none();
            return;
        };
        match opened.kind {
            DATA => self.contents(side, place, &opened.contents, found),
            HANDSHAKE if opened.contents.first() == Some(&KEY_UPDATE) => {
                own.opener.iter_mut().for_each(Opener::update)
            }
            _ => {}
        }
    }

    /// Derives the session's keys; `None` if they are not known.
    fn unlock(&mut self) -> Option<()> {
        let (random, chosen) = (self.client_random?, self.server?);
        let (session, suite) = (
            self.secrets.session_of(&random)?,
            Suite::from_number(chosen.suite)?,
        );
        let TlsSessionSecrets {
            master,
            handshake,
            data,
        } = &session;
        if !chosen.is_newer {
            let [client, server] = Opener::older(suite, master.as_ref()?, &random, &chosen.random)?;
            (self.sides[0].opener, self.sides[1].opener) = (Some(client), Some(server));
            return Some(());
        }
        for (at, side) in self.sides.iter_mut().enumerate() {
            side.then = Some(Opener::newer(suite, data[at].as_ref()?)?);
            side.opener = handshake[at]
                .as_ref()
                .and_then(|secret| Opener::newer(suite, secret));
        }
        Some(())
    }

    /// Passes the contents of a record to the inner conversation.
    fn contents(
        &mut self,
        side: EventStreamDirection,
        place: [u64; 2],
        contents: &[u8],
        found: &mut Vec<DissectorEvent>,
    ) {
        let own = &mut self.sides[side as usize];
        let (from, length) = (own.end, contents.len() as u64);
        own.holds(length, place);
        self.within(found, |inner, found| {
            inner.segment(side, from, contents, length, found)
        });
    }

    /// Skips a record that was not captured: as many contents are missing as it has room for.
    fn missed(
        &mut self,
        side: EventStreamDirection,
        place: [u64; 2],
        found: &mut Vec<DissectorEvent>,
    ) {
        let own = &mut self.sides[side as usize];
        let Some(opener) = own.opener.as_mut().filter(|_| own.then.is_none()) else {
            own.lost = true;
            return;
        };
        opener.skip();
        let (from, length) = (own.end, opener.contents_of(place[1] - place[0]));
        own.holds(length, place);
        self.within(found, |inner, found| {
            inner.segment(side, from, &[], length, found);
            inner.acknowledged(side, from + length, found);
        });
    }

    /// Runs the inner conversation; moves the offsets it finds to those of records, and its exchange numbers behind the handshake's.
    fn within(
        &mut self,
        found: &mut Vec<DissectorEvent>,
        pass: impl FnOnce(&mut Conversation, &mut Vec<DissectorEvent>),
    ) {
        let from = found.len();
        pass(&mut self.inner, found);
        renumber(&mut found[from..], 1);
        let mut gone = 0;
        for found in &mut found[from..] {
            if let DissectorEvent::Begins { side, at, .. }
            | DissectorEvent::Ends { side, at, .. }
            | DissectorEvent::Part { side, at, .. } = found
            {
                gone += u64::from(self.sides[*side as usize].is_gone(*at));
            }
            match found {
                DissectorEvent::Begins { side, at, .. } => {
                    *at = self.sides[*side as usize].place(*at, true)
                }
                DissectorEvent::Ends { side, at, .. } | DissectorEvent::Part { side, at, .. } => {
                    *at = self.sides[*side as usize].place(*at, false);
                }
                DissectorEvent::Named { .. }
                | DissectorEvent::InTrace { .. }
                | DissectorEvent::GoesOn { .. }
                | DissectorEvent::Void { .. }
                | DissectorEvent::LeftOut(..) => {}
            }
        }
        found.extend((gone > 0).then_some(DissectorEvent::LeftOut(Bound::Places, gone)));
    }

    /// Adds the events of the handshake's dissector: only those of the handshake (exchange 0) if records are decrypted.
    fn outer(&mut self, found: &mut Vec<DissectorEvent>, handshake_events: Vec<DissectorEvent>) {
        let is_open = self.state == TlsDecryptionState::Open;
        found.extend(
            handshake_events
                .into_iter()
                .filter(|found| !is_open || found.exchange().is_none_or(|exchange| exchange == 0)),
        );
    }

    /// Gives up one side.
    fn lose(&mut self, side: EventStreamDirection) {
        self.sides[side as usize].lost = true;
        if self.state == TlsDecryptionState::Waits {
            self.state = TlsDecryptionState::Closed;
        }
    }
}

impl DecipheredTlsSide {
    /// Decrypts a record with the key in use, or with the next one, which then is in use.
    fn open(&mut self, record: &[u8]) -> Option<DecryptedTlsRecord> {
        if let Some(opened) = self.opener.as_mut().and_then(|opener| opener.open(record)) {
            return Some(opened);
        }
        let opened = self.then.as_mut()?.open(record)?;
        self.opener = self.then.take();
        Some(opened)
    }

    /// Remembers where a record's contents are.
    fn holds(&mut self, length: u64, [at, end]: [u64; 2]) {
        if length == 0 {
            return;
        }
        if self.places.len() >= MOST_PLACES {
            self.places.pop_front();
        }
        self.places
            .push_back([self.end, self.end + length, at, end]);
        self.end += length;
    }

    /// Whether the record that holds an offset is no longer remembered.
    fn is_gone(&self, offset: u64) -> bool {
        self.places.front().is_some_and(|[from, ..]| offset < *from)
    }

    /// The start of the record that holds the byte at an offset of the contents, or the end of the one that holds the byte before it.
    fn place(&self, offset: u64, begins: bool) -> u64 {
        let of = if begins {
            offset
        } else {
            offset.saturating_sub(1)
        };
        let at = self
            .places
            .partition_point(|[_, end, ..]| *end <= of)
            .min(self.places.len().saturating_sub(1));
        self.places
            .get(at)
            .map_or(0, |[.., begin, end]| if begins { *begin } else { *end })
    }
}

impl Dissector for Deciphered {
    fn bytes(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        bytes: &[u8],
        found: &mut Vec<DissectorEvent>,
    ) {
        let mut handshake_events = Vec::new();
        self.outer.bytes(side, at, bytes, &mut handshake_events);
        let mut inner = Vec::new();
        if self.state != TlsDecryptionState::Closed && !self.sides[side as usize].lost {
            let mut input = RecordInput { at, bytes };
            while let Some(taken) = self.sides[side as usize].records.next(&mut input, extent) {
                match taken {
                    RecordProgress::Head => {}
                    RecordProgress::Whole => {
                        let records = &self.sides[side as usize].records;
                        let is_seen = records.held().len() as u64 == records.end() - records.at();
                        self.record(side, is_seen, &mut inner);
                    }
                    RecordProgress::Wrong => {
                        self.lose(side);
                        break;
                    }
                }
            }
        }
        self.outer(found, handshake_events);
        found.extend(inner);
    }

    fn unseen(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        count: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        let mut handshake_events = Vec::new();
        self.outer.unseen(side, at, count, &mut handshake_events);
        let mut inner = Vec::new();
        if self.state != TlsDecryptionState::Closed && !self.sides[side as usize].lost {
            let skipped = self.sides[side as usize].records.unseen(count);
            if matches!(skipped, Skipped::Whole | Skipped::Beyond) {
                self.record(side, false, &mut inner);
            }
            if matches!(skipped, Skipped::Beyond | Skipped::Lost) {
                self.lose(side);
            }
        }
        self.outer(found, handshake_events);
        found.extend(inner);
    }

    fn end(&mut self, side: EventStreamDirection, at: u64, found: &mut Vec<DissectorEvent>) {
        let mut handshake_events = Vec::new();
        self.outer.end(side, at, &mut handshake_events);
        self.outer(found, handshake_events);
        if self.state == TlsDecryptionState::Open {
            let end = self.sides[side as usize].end;
            self.within(found, |inner, found| inner.end(side, end, found));
        }
    }

    fn protocol(&self) -> &'static str {
        match self.state {
            TlsDecryptionState::Open => self.inner.protocol().unwrap_or("TLS"),
            _ => self.outer.protocol(),
        }
    }

    fn protocol_of(&self, kind: ExchangeKind, number: u64) -> &'static str {
        match (self.state, kind, number) {
            (TlsDecryptionState::Open, ExchangeKind::Handshake, 0) => "TLS",
            _ => self.protocol(),
        }
    }

    fn is_exact(&self) -> bool {
        match self.state {
            TlsDecryptionState::Open => self.inner.protocol().is_none() || self.inner.is_exact(),
            _ => self.outer.is_exact(),
        }
    }

    fn held(&self) -> usize {
        let places = |side: &DecipheredTlsSide| {
            side.places.len() * size_of::<[u64; 4]>() + side.records.held().len()
        };
        self.outer.held() + self.inner.held() + self.sides.iter().map(places).sum::<usize>()
    }
}

/// The length of a record; all its bytes are kept.
fn extent(head: &[u8]) -> Extent {
    match super::extent(head) {
        Extent::Record { length, .. } => Extent::Record {
            length,
            keep: HEAD + LONGEST_RECORD,
        },
        other => other,
    }
}

#[cfg(test)]
mod tests;
