//! TLS with the secrets of its sessions: the handshake as [`TlsDissector`] tells it, then what its records hold, by whatever protocol that is.
//! Where a session's secrets are not known, or its cipher is none of [`Suite`], it goes by turns as any other.
//!
//! Offsets of what is found within are those of the records that hold it: a message begins where its first record does, and ends
//! behind its last.

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

/// Records of a side whose places are remembered.
const MOST_PLACES: usize = Bound::Places.most();
/// The message of TLS 1.3 that says that the next key is used from here on.
const KEY_UPDATE: u8 = 24;

/// One connection.
#[derive(Debug)]
pub(in super::super) struct Deciphered {
    outer: TlsDissector,
    secrets: Secrets,
    client_random: Option<[u8; 32]>,
    server: Option<TlsServerChoice>,
    state: TlsDecryptionState,
    sides: [DecipheredTlsSide; 2],
    inner: Conversation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TlsDecryptionState {
    /// Nothing encrypted has come.
    Waits,
    /// It cannot be opened.
    Closed,
    Open,
}

/// What a server chose.
#[derive(Clone, Copy, Debug)]
struct TlsServerChoice {
    random: [u8; 32],
    suite: u16,
    is_newer: bool,
}

#[derive(Debug, Default)]
struct DecipheredTlsSide {
    records: RecordParser,
    /// It cannot be followed any more.
    lost: bool,
    /// It encrypts: TLS 1.2.
    encrypts: bool,
    opener: Option<Opener>,
    /// The key of data, while that of the handshake is used.
    then: Option<Opener>,
    /// Behind the last byte of contents.
    end: u64,
    /// Where contents begin and end, and the record that held them does.
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

    /// A record is whole, with all its bytes; without them, where some were not seen.
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

    /// Whether records of a side are encrypted whatever their kind is: TLS 1.2.
    fn is_encrypted(&self, side: EventStreamDirection) -> bool {
        self.sides[side as usize].encrypts && self.server.is_none_or(|server| !server.is_newer)
    }

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

    /// A record that holds what is encrypted.
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
            // Before data, it may be of another key: an early one, or that of a handshake that is not known.
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

    /// Finds the session's keys.
    fn unlock(&mut self) -> Option<()> {
        let (random, chosen) = (self.client_random?, self.server?);
        let (session, suite) = (self.secrets.of(&random)?, Suite::of(chosen.suite)?);
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

    /// Contents of a record, to whatever is spoken within.
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

    /// A record whose bytes were not seen: as many contents as it has room for are missing.
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

    /// What is found within, at the places of records and with numbers behind that of the handshake.
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

    /// What the handshake's teller says: all of it, or the handshake alone where records are opened.
    fn outer(&mut self, found: &mut Vec<DissectorEvent>, handshake_events: Vec<DissectorEvent>) {
        let is_open = self.state == TlsDecryptionState::Open;
        found.extend(
            handshake_events
                .into_iter()
                .filter(|found| !is_open || found.exchange().is_none_or(|exchange| exchange == 0)),
        );
    }

    fn lose(&mut self, side: EventStreamDirection) {
        self.sides[side as usize].lost = true;
        if self.state == TlsDecryptionState::Waits {
            self.state = TlsDecryptionState::Closed;
        }
    }
}

impl DecipheredTlsSide {
    fn open(&mut self, record: &[u8]) -> Option<DecryptedTlsRecord> {
        if let Some(opened) = self.opener.as_mut().and_then(|opener| opener.open(record)) {
            return Some(opened);
        }
        let opened = self.then.as_mut()?.open(record)?;
        self.opener = self.then.take();
        Some(opened)
    }

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

    /// Whether the record that holds an offset is remembered no longer.
    fn is_gone(&self, offset: u64) -> bool {
        self.places.front().is_some_and(|[from, ..]| offset < *from)
    }

    /// Where the record begins that holds the contents from an offset on, or ends that holds those before it.
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

/// Records with all their bytes.
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
