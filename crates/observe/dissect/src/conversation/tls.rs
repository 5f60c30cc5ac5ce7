//! TLS 1.2 and 1.3 (RFC 5246, RFC 8446): its handshake by the heads of records and what the two hellos say in clear, then application
//! data by turns of records. Nothing is deciphered ([`decryption`] does where secrets are known). In TLS 1.3 the client's Finished is recognised by its length, and two first records of
//! the server that are of one length are session tickets, no response; a last record of an alert's length is an alert. Data that a
//! client sends early are not found.

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

const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const DATA: u8 = 23;

const HEAD: usize = 5;
/// Bytes of a record's body, at most (RFC 5246, 6.2.3).
const LONGEST_RECORD: usize = (16 << 10) + 2048;
/// Bytes of a record that holds a Finished of TLS 1.3, with a hash of 32 and of 48 bytes.
const FINISHED: [u64; 2] = [58, 74];
/// Records of a client's last flight: a certificate, its proof, Finished.
const LONGEST_FLIGHT: usize = 3;
/// Bytes of a record that may be a session ticket.
const TICKET: std::ops::Range<u64> = 150..400;
/// Bytes of a record that holds an alert of TLS 1.3, which looks like data.
const HIDDEN_ALERT: u64 = 24;

/// Whether a connection speaks it: its first record holds a ClientHello.
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

/// Whether the first bytes of a side are those of a ClientHello's record.
pub(super) fn is_client_hello(there: &[u8]) -> bool {
    recognise(&ConversationOpening {
        there,
        back: &[],
        port: 0,
    }) == ProtocolVerdict::Yes
}

/// One connection.
#[derive(Debug)]
pub struct TlsDissector {
    sides: [TlsSide; 2],
    phase: TlsPhase,
    /// Whether a ClientHello has begun.
    begun: bool,
    /// What is held of it.
    hello: Vec<u8>,
    offer: TlsClientOffer,
    /// Behind the last byte of the server.
    server_end: u64,
    /// Whether the response to the ClientHello has begun.
    answered: bool,
    /// Records of the client after the server's flight, where each begins and ends.
    flight: Vec<(u64, u64)>,
    tickets: Tickets,
    /// Alerts look like data: it is TLS 1.3.
    hides_alerts: bool,
    /// Records that are alerts if their side says nothing more.
    alerts: Vec<(EventStreamDirection, u64, u64)>,
    turns: TurnDissector,
}

#[derive(Debug, Default)]
struct TlsSide {
    records: RecordParser,
    /// Where records begin is not known.
    lost: bool,
}

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
    /// TLS 1.3: within it.
    LastFlight,
    /// Behind the handshake.
    Data,
    /// Of the handshake nothing is known; data of the client, which are no Finished, are behind it.
    Void,
}

/// How far a server of TLS 1.2 is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Older {
    /// Bytes of a handshake message that goes on in the next record.
    owed: usize,
    /// It sent a certificate, or it is not known whether it did.
    certificate: bool,
    /// It sent its ChangeCipherSpec.
    ciphers: bool,
}

/// Whether records of the server are session tickets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tickets {
    /// They may be, as the client has sent no data yet.
    Before { seen: bool },
    /// They may be, as none came before the client's data.
    Expected,
    /// This one may be, if another one of its length follows.
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
    /// The head of a record is whole.
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

    /// A record is whole.
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
        // It goes on in the next record.
        if self.hello.len() < wanted && self.hello.len() < LONGEST_HEAD && !cut {
            return;
        }
        self.offer = TlsClientOffer::read(&self.hello).unwrap_or_default();
        self.hello = Vec::new();
        self.phase = TlsPhase::ServerHello;
        found.push(DissectorEvent::ends(0, ExchangeRole::Request, end));
        self.named(false, found);
    }

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
            // With a resumed session the certificate is missing anyhow.
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

    /// A record of a server of TLS 1.2.
    fn older(&mut self, older: Older, kind: u8, found: &mut Vec<DissectorEvent>) {
        let records = &self.sides[EventStreamDirection::Back as usize].records;
        let (held, end) = (records.held(), records.end());
        match (kind, older.ciphers) {
            (CHANGE_CIPHER_SPEC, false) => {
                self.phase = TlsPhase::Finishing(Older {
                    ciphers: true,
                    ..older
                });
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

    /// The response is whole.
    fn finish(&mut self, at: u64, found: &mut Vec<DissectorEvent>) {
        found.push(DissectorEvent::ends(0, ExchangeRole::Response, at));
    }

    /// One of the two refuses.
    fn alert(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        let records = &self.sides[side as usize].records;
        let (held, end) = (records.held(), records.end());
        if let Some(what) = held.get(HEAD + 1) {
            let name = RedactedName::number("alert ", (*what).into());
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

    /// The client's last flight begins: the server's is whole.
    fn last_flight(&mut self, at: u64, end: u64, found: &mut Vec<DissectorEvent>) {
        if self.offer.early && !FINISHED.contains(&(end - at)) {
            return; // Data before the handshake is over.
        }
        if end - at == HIDDEN_ALERT {
            // What stands in place of its Finished refuses the server's flight: why is encrypted.
            let name = RedactedName::fixed("alert (encrypted)");
            found.push(DissectorEvent::named(0, ExchangeRole::Response, name));
            self.finish(self.server_end, found);
            self.phase = TlsPhase::Data;
            return;
        }
        self.finish(self.server_end, found);
        self.phase = TlsPhase::LastFlight;
        self.flies(at, end, found);
    }

    fn flies(&mut self, at: u64, end: u64, found: &mut Vec<DissectorEvent>) {
        self.flight.push((at, end));
        if FINISHED.contains(&(end - at)) {
            self.flight.clear();
            (self.phase, self.tickets) = (TlsPhase::Data, Tickets::Before { seen: false });
        } else if self.flight.len() > LONGEST_FLIGHT {
            self.data_begin(found);
        }
    }

    /// No record of the client has the length of a Finished: its first one held all of its flight.
    fn data_begin(&mut self, found: &mut Vec<DissectorEvent>) {
        (self.phase, self.tickets) = (TlsPhase::Data, Tickets::Before { seen: false });
        for (at, end) in std::mem::take(&mut self.flight).into_iter().skip(1) {
            self.data(EventStreamDirection::There, at, end, found);
        }
    }

    /// A record of application data, or what looks like one.
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

    /// What was held for alerts is data.
    fn release(&mut self, found: &mut Vec<DissectorEvent>) {
        for (side, at, end) in std::mem::take(&mut self.alerts) {
            self.data_or_ticket(side, at, end, found);
        }
    }

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

    /// What was held for a ticket is none.
    fn settle(&mut self, found: &mut Vec<DissectorEvent>) {
        if let Tickets::Held(at, end) = std::mem::replace(&mut self.tickets, Tickets::Over) {
            self.turned(
                |turns, found| turns.unseen(EventStreamDirection::Back, at, end - at, found),
                found,
            );
        }
    }

    /// Bytes of which it is not known where their records begin.
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

    /// Nothing is known of this side until a segment begins with a record.
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
            // Whatever it was, it is of the server's flight.
            (TlsPhase::Data | TlsPhase::Flight, EventStreamDirection::Back)
            | (TlsPhase::Data, _) => {}
            _ => self.void(why, found),
        }
    }

    fn void(&mut self, why: &'static str, found: &mut Vec<DissectorEvent>) {
        if self.begun && self.phase != TlsPhase::Void {
            found.push(DissectorEvent::Void { exchange: 0, why });
        }
        self.phase = TlsPhase::Void;
    }

    /// What the turns find, with numbers behind that of the handshake.
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
    /// Looks through the messages of a record; `cut`: its end was not seen.
    fn messages(mut self, body: &[u8], cut: bool) -> Self {
        let skipped = self.owed.min(body.len());
        self.owed -= skipped;
        let mut fields = RecordFieldReader(&body[skipped..]);
        while !fields.0.is_empty() {
            let (kind, length) = (fields.number(1), fields.number(3));
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

fn extent(head: &[u8]) -> Extent {
    match *head {
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

/// Whether bytes begin as a record does.
fn begins_record(bytes: &[u8]) -> bool {
    matches!(*bytes, [CHANGE_CIPHER_SPEC..=DATA, 3, 1..=4, high, _, ..] if usize::from(high) << 8 <= LONGEST_RECORD)
}

#[cfg(test)]
mod tests;
