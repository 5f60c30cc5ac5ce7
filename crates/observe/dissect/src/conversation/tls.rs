//! TLS 1.2 and 1.3 (RFC 5246, RFC 8446) without decryption ([`decryption`] decrypts where the secrets are known): finds the handshake
//! from record heads and the unencrypted hellos, then reads application data by turns of records. In TLS 1.3 the client's Finished is
//! recognised by its length; two first records of the server with equal length are session tickets and no response; a last record with
//! the length of an alert is an alert. Early data is not found.

use super::records::{
    Extent, RecordFieldReader, RecordInput, RecordParser, RecordProgress, Skipped,
};
use super::turn_dissector::TurnDissector;
use super::{
    Dissector, DissectorEvent, ExchangeKind, ExchangeRole, LONGEST_HEAD, RedactedName, renumber,
};
use crate::conversation::opening::{ConversationOpening, ProtocolVerdict};
use crate::left_out::Bound;
use hellos::{ServerHello, TlsClientOffer};
use stackline_events::unit_ids::EventStreamDirection;

pub(super) mod decryption;
pub(crate) mod hellos;
pub(crate) mod record_keys;
pub mod session_secrets;

/// Content types of records.
const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const DATA: u8 = 23;

/// The length of a record's head in bytes.
const HEAD: usize = 5;
/// The longest body of a record in bytes (RFC 5246, 6.2.3).
const LONGEST_RECORD: usize = (16 << 10) + 2048;
/// The length of a record with a Finished of TLS 1.3, in bytes, with a hash of 32 and of 48 bytes.
const FINISHED: [u64; 2] = [58, 74];
/// The most records of a client's last flight: a certificate, its proof, Finished.
const LONGEST_FLIGHT: usize = 3;
/// The length of a record that may be a session ticket, in bytes.
const TICKET: std::ops::Range<u64> = 150..400;
/// The length of a record with an alert of TLS 1.3, in bytes; its content type is that of data.
const HIDDEN_ALERT: u64 = 24;

/// Whether a connection speaks TLS: its first record holds a ClientHello.
pub(super) fn recognise(opening: &ConversationOpening<'_>) -> ProtocolVerdict {
    match *opening.there {
        [HANDSHAKE, 3, 0..=4, high, low, 1, ..] => {
            match usize::from(high) << 8 | usize::from(low) {
                4..=LONGEST_RECORD => ProtocolVerdict::Yes,
                _ => ProtocolVerdict::No,
            }
        }
        [] if !opening.back.is_empty() => ProtocolVerdict::No,
        [] | [HANDSHAKE] | [HANDSHAKE, 3] => ProtocolVerdict::Perhaps,
        [HANDSHAKE, 3, ..] if opening.there.len() <= HEAD => ProtocolVerdict::Perhaps,
        _ => ProtocolVerdict::No,
    }
}

/// Whether the bytes are the beginning of a record with a ClientHello.
pub(super) fn is_client_hello(there: &[u8]) -> bool {
    recognise(&ConversationOpening {
        there,
        back: &[],
        port: 0,
    }) == ProtocolVerdict::Yes
}

/// The dissector of one TLS connection.
#[derive(Debug)]
pub struct TlsDissector {
    sides: [TlsSide; 2],
    phase: TlsPhase,
    /// Whether the ClientHello has begun.
    begun: bool,
    /// The bytes of the ClientHello so far.
    hello: Vec<u8>,
    offer: TlsClientOffer,
    /// The offset behind the server's last byte.
    server_end: u64,
    /// Whether the response to the ClientHello has begun.
    answered: bool,
    /// The client's records after the server's flight: where each begins and ends.
    flight: Vec<(u64, u64)>,
    tickets: Tickets,
    /// Whether alerts look like data, as in TLS 1.3.
    hides_alerts: bool,
    /// Records that are alerts unless their side sends more: side, start and end.
    alerts: Vec<(EventStreamDirection, u64, u64)>,
    /// Reads application data by turns.
    turns: TurnDissector,
}

#[derive(Debug, Default)]
struct TlsSide {
    records: RecordParser,
    /// Whether the position of records is lost.
    lost: bool,
}

/// How far the handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TlsPhase {
    /// Before the end of the ClientHello.
    ClientHello,
    /// Before the ServerHello.
    ServerHello,
    /// TLS 1.2: before the server's Finished.
    Finishing(Older),
    /// TLS 1.3: before the client's last flight.
    Flight,
    /// TLS 1.3: within the client's last flight.
    LastFlight,
    /// After the handshake.
    Data,
    /// The handshake is lost. It has ended once the client sends data that does not have the length of a Finished.
    Void,
}

/// The progress of a server's handshake in TLS 1.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Older {
    /// How many bytes of a handshake message continue in the next record.
    owed: usize,
    /// Whether it sent a certificate, or this is not known.
    certificate: bool,
    /// Whether it sent ChangeCipherSpec.
    ciphers: bool,
}

/// Whether data records of the server are session tickets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tickets {
    /// They may be, since the client has not sent data; `seen` says whether there was one.
    Before { seen: bool },
    /// They may be, since none came before the client's data.
    Expected,
    /// The record from the first to the second offset is one if another of its length follows.
    Held(u64, u64),
    /// They are not.
    Over,
}

impl Default for TlsDissector {
    fn default() -> Self {
        Self {
            sides: Default::default(),
            phase: TlsPhase::ClientHello,
            begun: false,
            hello: Vec::new(),
            offer: TlsClientOffer::default(),
            server_end: 0,
            answered: false,
            flight: Vec::new(),
            tickets: Tickets::Over,
            hides_alerts: false,
            alerts: Vec::new(),
            turns: TurnDissector::new("TLS, alternating", EventStreamDirection::There),
        }
    }
}

impl Dissector for TlsDissector {
    fn bytes(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        bytes: &[u8],
        found: &mut Vec<DissectorEvent>,
    ) {
        let own = &mut self.sides[side as usize];
        if own.lost && begins_record(bytes) {
            own.lost = false;
        }
        if own.lost {
            return self.unknown(side, at, bytes.len() as u64, found);
        }
        let mut input = RecordInput { at, bytes };
        while let Some(taken) = self.sides[side as usize].records.next(&mut input, extent) {
            match taken {
                RecordProgress::Head => self.headed(side, found),
                RecordProgress::Whole => self.record(side, found),
                RecordProgress::Wrong => {
                    let from = self.sides[side as usize].records.at();
                    self.lose(side, "it is not TLS", found);
                    return self.unknown(side, from, at + bytes.len() as u64 - from, found);
                }
            }
        }
    }

    fn unseen(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        count: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        let own = &mut self.sides[side as usize];
        if own.lost {
            return self.unknown(side, at, count, found);
        }
        let skipped = own.records.unseen(count);
        if matches!(skipped, Skipped::Whole | Skipped::Beyond) {
            self.record(side, found);
        }
        if matches!(skipped, Skipped::Beyond | Skipped::Lost) {
            self.lose(side, "some of its bytes were not captured", found);
            self.unknown(side, at, count, found);
        }
    }

    fn end(&mut self, side: EventStreamDirection, at: u64, found: &mut Vec<DissectorEvent>) {
        self.alerts.retain(|(from, ..)| *from != side);
        self.settle(found);
        match self.phase {
            TlsPhase::Data | TlsPhase::Void => {}
            TlsPhase::LastFlight => self.data_begin(found),
            _ => self.void("the connection ended in the middle of it", found),
        }
        self.turned(|turns, found| turns.end(side, at, found), found);
    }

    fn protocol(&self) -> &'static str {
        "TLS, alternating"
    }

    fn is_exact(&self) -> bool {
        !matches!(
            self.phase,
            TlsPhase::Data | TlsPhase::LastFlight | TlsPhase::Void
        )
    }
}

impl TlsDissector {
    /// The head of a record was read.
    fn headed(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        let records = &self.sides[side as usize].records;
        let (kind, at) = (records.held()[0], records.at());
        match (self.phase, side) {
            (TlsPhase::ClientHello, EventStreamDirection::There)
                if !self.begun && kind == HANDSHAKE =>
            {
                self.begun = true;
                let (role, kind) = (ExchangeRole::Request, ExchangeKind::Handshake);
                found.push(DissectorEvent::begins(0, role, kind, at));
            }
            (TlsPhase::ServerHello, EventStreamDirection::Back) if !self.answered => {
                self.answered = true;
                let (role, kind) = (ExchangeRole::Response, ExchangeKind::Handshake);
                found.push(DissectorEvent::begins(0, role, kind, at));
            }
            _ => {}
        }
    }

    /// A record is complete.
    fn record(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        let records = &self.sides[side as usize].records;
        let (kind, at, end) = (records.held()[0], records.at(), records.end());
        match (self.phase, side, kind) {
            (TlsPhase::Data, _, DATA) => self.data(side, at, end, found),
            (TlsPhase::Void, EventStreamDirection::There, DATA)
                if !FINISHED.contains(&(end - at)) =>
            {
                self.phase = TlsPhase::Data;
                self.data(side, at, end, found);
            }
            (TlsPhase::ClientHello, EventStreamDirection::There, HANDSHAKE) => {
                self.client_hello(end, found)
            }
            (TlsPhase::ServerHello, EventStreamDirection::Back, HANDSHAKE) => {
                self.server_hello(found)
            }
            (TlsPhase::ServerHello | TlsPhase::Finishing(_), EventStreamDirection::Back, ALERT)
            | (TlsPhase::Finishing(_) | TlsPhase::Flight, EventStreamDirection::There, ALERT) => {
                self.alert(side, found)
            }
            (TlsPhase::Finishing(older), EventStreamDirection::Back, _) => {
                self.older(older, kind, found)
            }
            (TlsPhase::Flight, EventStreamDirection::There, DATA) => {
                self.last_flight(at, end, found)
            }
            (TlsPhase::LastFlight, EventStreamDirection::There, DATA) => self.flies(at, end, found),
            (TlsPhase::LastFlight, EventStreamDirection::Back, DATA) => {
                self.data_begin(found);
                self.data(side, at, end, found);
            }
            _ => {}
        }
        if side == EventStreamDirection::Back {
            self.server_end = end;
        }
    }

    /// A record of the ClientHello is complete.
    fn client_hello(&mut self, end: u64, found: &mut Vec<DissectorEvent>) {
        let records = &self.sides[EventStreamDirection::There as usize].records;
        let room = LONGEST_HEAD.saturating_sub(self.hello.len());
        let body = &records.held()[HEAD..];
        self.hello.extend_from_slice(&body[..body.len().min(room)]);
        found.extend((body.len() > room).then_some(DissectorEvent::LeftOut(Bound::Head, 1)));
        let cut = (body.len() as u64) < records.end() - records.at() - HEAD as u64;
        let wanted = RecordFieldReader(self.hello.get(1..).unwrap_or_default())
            .number(3)
            .unwrap_or(0)
            + 4;
        // The ClientHello continues in the next record.
        if self.hello.len() < wanted && self.hello.len() < LONGEST_HEAD && !cut {
            return;
        }
        self.offer = TlsClientOffer::read(&self.hello).unwrap_or_default();
        self.hello = Vec::new();
        self.phase = TlsPhase::ServerHello;
        found.push(DissectorEvent::ends(0, ExchangeRole::Request, end));
        self.named(false, found);
    }

    /// Reports the handshake's name: the server's name, and whether the session is resumed.
    fn named(&self, resumed: bool, found: &mut Vec<DissectorEvent>) {
        let words = if self.offer.name.is_empty() {
            "TLS handshake"
        } else {
            "TLS handshake "
        };
        let resumed = if resumed { ", resumed" } else { "" };
        let name = RedactedName::host(words, &self.offer.name, resumed);
        found.push(DissectorEvent::named(0, ExchangeRole::Request, name));
    }

    /// The record of the ServerHello is complete.
    fn server_hello(&mut self, found: &mut Vec<DissectorEvent>) {
        let body = &self.sides[EventStreamDirection::Back as usize]
            .records
            .held()[HEAD..];
        let Some(hello) = ServerHello::read(body) else {
            return self.void("its ServerHello cannot be read", found);
        };
        if hello.retry {
            return;
        }
        let newer = hello.version >= 0x304;
        let name = match hello.version {
            0x304.. => "TLS 1.3",
            0x303 => "TLS 1.2",
            _ => "TLS before 1.2",
        };
        found.push(DissectorEvent::named(
            0,
            ExchangeRole::Response,
            RedactedName::fixed(name),
        ));
        // A server that resumes repeats the client's session id (RFC 5246, section 7.4.1.3); in TLS
        // 1.3 it is always repeated, and means nothing.
        let same = !hello.session.is_empty() && hello.session == self.offer.session;
        let resumed = if newer {
            hello.key_known && self.offer.ticket
        } else {
            same
        };
        self.hides_alerts = newer;
        if newer {
            self.phase = TlsPhase::Flight;
        } else {
            // A resumed session has no certificate in any case, so it must not be named as resumed twice.
            self.older(
                Older {
                    certificate: same,
                    ..Older::default()
                },
                HANDSHAKE,
                found,
            );
        }
        if resumed {
            self.named(true, found);
        }
    }

    /// A record of a TLS 1.2 server during the handshake.
    fn older(&mut self, older: Older, kind: u8, found: &mut Vec<DissectorEvent>) {
        let records = &self.sides[EventStreamDirection::Back as usize].records;
        let (held, end) = (records.held(), records.end());
        match (kind, older.ciphers) {
            (CHANGE_CIPHER_SPEC, false) => {
                self.phase = TlsPhase::Finishing(Older {
                    ciphers: true,
                    ..older
                });
                // Without a certificate, it resumes what the client offered.
                if !older.certificate && (self.offer.ticket || !self.offer.session.is_empty()) {
                    self.named(true, found);
                }
            }
            (HANDSHAKE, true) => {
                self.finish(end, found);
                self.phase = TlsPhase::Data;
            }
            (HANDSHAKE, false) => {
                let cut = (held.len() as u64) < end - records.at();
                self.phase = TlsPhase::Finishing(older.messages(&held[HEAD..], cut));
            }
            _ => {}
        }
    }

    /// Reports that the handshake's response is complete.
    fn finish(&mut self, at: u64, found: &mut Vec<DissectorEvent>) {
        found.push(DissectorEvent::ends(0, ExchangeRole::Response, at));
    }

    /// A side ends the handshake with an alert.
    fn alert(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        let records = &self.sides[side as usize].records;
        let (held, end) = (records.held(), records.end());
        if let Some(what) = held.get(HEAD + 1) {
            let what_ends = match side {
                EventStreamDirection::There => "client alert ",
                EventStreamDirection::Back => "alert ",
            };
            let name = RedactedName::number(what_ends, (*what).into());
            found.push(DissectorEvent::named(0, ExchangeRole::Response, name));
        }
        let at = if side == EventStreamDirection::Back {
            end
        } else {
            self.server_end
        };
        self.finish(at, found);
        self.phase = TlsPhase::Data;
    }

    /// The first record of the client's last flight; the server's flight is complete.
    fn last_flight(&mut self, at: u64, end: u64, found: &mut Vec<DissectorEvent>) {
        if self.offer.early && !FINISHED.contains(&(end - at)) {
            return; // Data before the handshake is over.
        }
        if end - at == HIDDEN_ALERT {
            // An alert in place of the client's Finished rejects the server's flight; the reason is encrypted.
            let name = RedactedName::fixed("client alert (encrypted)");
            found.push(DissectorEvent::named(0, ExchangeRole::Response, name));
            self.finish(self.server_end, found);
            self.phase = TlsPhase::Data;
            return;
        }
        self.finish(self.server_end, found);
        self.phase = TlsPhase::LastFlight;
        self.flies(at, end, found);
    }

    /// A record of the client's last flight.
    fn flies(&mut self, at: u64, end: u64, found: &mut Vec<DissectorEvent>) {
        self.flight.push((at, end));
        if FINISHED.contains(&(end - at)) {
            self.flight.clear();
            (self.phase, self.tickets) = (TlsPhase::Data, Tickets::Before { seen: false });
        } else if self.flight.len() > LONGEST_FLIGHT {
            self.data_begin(found);
        }
    }

    /// No record of the client had the length of a Finished, so its first record is taken as its whole flight; the others are data.
    fn data_begin(&mut self, found: &mut Vec<DissectorEvent>) {
        (self.phase, self.tickets) = (TlsPhase::Data, Tickets::Before { seen: false });
        for (at, end) in std::mem::take(&mut self.flight).into_iter().skip(1) {
            self.data(EventStreamDirection::There, at, end, found);
        }
    }

    /// A record of application data, or an alert that looks like one.
    fn data(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        end: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        let is_first = self.alerts.iter().all(|(from, ..)| *from != side);
        if self.hides_alerts && end - at == HIDDEN_ALERT && is_first {
            return self.alerts.push((side, at, end));
        }
        self.release(found);
        self.data_or_ticket(side, at, end, found);
    }

    /// Records that were held as possible alerts are data.
    fn release(&mut self, found: &mut Vec<DissectorEvent>) {
        for (side, at, end) in std::mem::take(&mut self.alerts) {
            self.data_or_ticket(side, at, end, found);
        }
    }

    /// A record of application data or a session ticket.
    fn data_or_ticket(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        end: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        let is_ticket;
        (self.tickets, is_ticket) = match (self.tickets, side) {
            (Tickets::Before { .. }, EventStreamDirection::Back) => {
                (Tickets::Before { seen: true }, true)
            }
            (Tickets::Before { seen: false }, EventStreamDirection::There) => {
                (Tickets::Expected, false)
            }
            (Tickets::Expected, EventStreamDirection::There) => (Tickets::Expected, false),
            (Tickets::Expected, EventStreamDirection::Back) if TICKET.contains(&(end - at)) => {
                (Tickets::Held(at, end), true)
            }
            (Tickets::Held(from, to), EventStreamDirection::Back) if to - from == end - at => {
                (Tickets::Over, true)
            }
            _ => {
                self.settle(found);
                (Tickets::Over, false)
            }
        };
        if !is_ticket {
            self.turned(
                |turns, found| turns.unseen(side, at, end - at, found),
                found,
            );
        }
    }

    /// The record that was held as a possible ticket is data.
    fn settle(&mut self, found: &mut Vec<DissectorEvent>) {
        if let Tickets::Held(at, end) = std::mem::replace(&mut self.tickets, Tickets::Over) {
            self.turned(
                |turns, found| turns.unseen(EventStreamDirection::Back, at, end - at, found),
                found,
            );
        }
    }

    /// Takes bytes whose record boundaries are unknown.
    fn unknown(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        count: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        if side == EventStreamDirection::Back {
            self.server_end = self.server_end.max(at + count);
        }
        if self.phase == TlsPhase::Data {
            self.release(found);
            self.settle(found);
            self.turned(|turns, found| turns.unseen(side, at, count, found), found);
        }
    }

    /// Gives up one side until a segment begins with a record.
    fn lose(
        &mut self,
        side: EventStreamDirection,
        why: &'static str,
        found: &mut Vec<DissectorEvent>,
    ) {
        let own = &mut self.sides[side as usize];
        own.lost = true;
        own.records.begin_anew();
        match (self.phase, side) {
            (TlsPhase::LastFlight, _) => self.data_begin(found),
            // The server's missing bytes belong to its flight, whatever they are.
            (TlsPhase::Data | TlsPhase::Flight, EventStreamDirection::Back)
            | (TlsPhase::Data, _) => {}
            _ => self.void(why, found),
        }
    }

    /// Voids the handshake.
    fn void(&mut self, why: &'static str, found: &mut Vec<DissectorEvent>) {
        if self.begun && self.phase != TlsPhase::Void {
            found.push(DissectorEvent::Void { exchange: 0, why });
        }
        self.phase = TlsPhase::Void;
    }

    /// Runs the turn dissector, and moves its exchange numbers behind the handshake's.
    fn turned(
        &mut self,
        pass: impl FnOnce(&mut TurnDissector, &mut Vec<DissectorEvent>),
        found: &mut Vec<DissectorEvent>,
    ) {
        let from = found.len();
        pass(&mut self.turns, found);
        renumber(&mut found[from..], 1);
    }
}

impl Older {
    /// Walks through the messages of a record; `cut` says that its end was not captured.
    fn messages(mut self, body: &[u8], cut: bool) -> Self {
        let skipped = self.owed.min(body.len());
        self.owed -= skipped;
        let mut fields = RecordFieldReader(&body[skipped..]);
        while !fields.0.is_empty() {
            let (kind, length) = (fields.number(1), fields.number(3));
            // The head goes on in the next record: a certificate cannot be ruled out.
            let Some(length) = length else {
                self.certificate = true;
                break;
            };
            self.certificate |= kind == Some(11);
            let there = length.min(fields.0.len());
            fields.take(there);
            self.owed = length - there;
        }
        self.certificate |= cut;
        self
    }
}

/// The length of the record that begins with these bytes, and how much of it is kept.
fn extent(head: &[u8]) -> Extent {
    match *head {
        // Asked after each byte: what is before it was checked then.
        [] | [CHANGE_CIPHER_SPEC..=DATA] | [_, 3] | [_, _, 0..=4] | [_, _, _, _] => Extent::More,
        [kind, _, _, high, low] => {
            let length = usize::from(high) << 8 | usize::from(low);
            let keep = match kind {
                HANDSHAKE => HEAD + length,
                ALERT => HEAD + 2,
                _ => HEAD,
            };
            match length {
                0..=LONGEST_RECORD => Extent::Record {
                    length: (HEAD + length) as u64,
                    keep,
                },
                _ => Extent::Wrong,
            }
        }
        _ => Extent::Wrong,
    }
}

/// Whether the bytes begin like a record.
fn begins_record(bytes: &[u8]) -> bool {
    matches!(*bytes, [CHANGE_CIPHER_SPEC..=DATA, 3, 1..=4, high, _, ..] if usize::from(high) << 8 <= LONGEST_RECORD)
}

#[cfg(test)]
mod tests;
