//! PostgreSQL, version 3 of its protocol: messages of a type and a length. A simple query, or an extended one up to its Sync, is
//! answered up to ReadyForQuery, what was sent before a Flush up to as many completions as it asks for. What a connection says in TLS
//! goes to [`tls`](super::tls). Rows, values and copied data are not looked at. After bytes that were not seen it goes on with a
//! query at the beginning of a segment, unless the client pipelined before: then nothing more is known.

use super::pending_requests::{
    PendingExchange, PendingExchangeQueue, answer_begins, answer_ends, of_answer,
};
use super::record_dialogue::{RecordDialogue, RecordProtocol};
use super::records::{Extent, RecordFieldReader};
use super::statement_texts::StatementTexts;
use super::tls::TlsDissector;
use super::{DissectorEvent, ExchangeKind, ExchangeRole, LONGEST_NAME, RedactedName};
use crate::conversation::opening::{ConversationOpening, ProtocolVerdict};
use stackline_events::unit_ids::EventStreamDirection;
use stackline_redact::sql::{self, Backslash, Dialect, answer};

/// A type and a length.
const HEAD: usize = 5;
/// Bytes of a message that are held, at most.
const KEEP: usize = HEAD + 6 * LONGEST_NAME;
/// Bytes of a message, at most (`PQ_LARGE_MESSAGE_LIMIT`), and of a first one (`MAX_STARTUP_PACKET_LENGTH`).
const LONGEST: usize = 0x3fff_ffff;
const LONGEST_FIRST: usize = 10_000;
/// Types of messages of the client, and of the server.
const OF_CLIENT: &[u8] = b"BCDEFHPQSXcdfp";
const OF_SERVER: &[u8] = b"123ACDEGHIKNRSTVWZcdnstv";
/// Messages of the server that answer nothing.
const ASIDE: &[u8] = b"ANS";
/// Messages of the server that complete one of the client's.
const COMPLETIONS: &[u8] = b"123CITns";
/// What a first message is, by its number.
const VERSION: usize = 3;
const CANCEL: usize = 80_877_102;
const TLS: usize = 80_877_103;
const GSSAPI: usize = 80_877_104;

/// Whether a connection speaks it: by the client's first message.
pub(super) fn recognise(opening: &ConversationOpening<'_>) -> ProtocolVerdict {
    let mut fields = RecordFieldReader(opening.there);
    let (Some(length), Some(number)) = (fields.number(4), fields.number(4)) else {
        let numbers =
            [[0, 3, 0, 0], [4, 0xd2, 0x16, 0x2e]].map(|number| [&[0, 0][..], &number].concat());
        let there = opening.there;
        let known = [
            there.get(..2).unwrap_or(there),
            there.get(4..6).or(there.get(4..)).unwrap_or_default(),
        ]
        .concat();
        let may_be = numbers.iter().any(|number| number.starts_with(&known));
        return if may_be && opening.back.is_empty() {
            ProtocolVerdict::Perhaps
        } else {
            ProtocolVerdict::No
        };
    };
    match (length, number) {
        (8, TLS | GSSAPI) | (16.., CANCEL) => ProtocolVerdict::Yes,
        (9..=LONGEST_FIRST, _) if number >> 16 == VERSION && number & 0xffff < 16 => {
            ProtocolVerdict::Yes
        }
        _ => ProtocolVerdict::No,
    }
}

/// One connection.
#[derive(Debug, Default)]
pub struct Postgres {
    dialogue: RecordDialogue,
    phase: PostgresPhase,
    /// What is not answered yet, in its order; the last one may not be whole.
    waiting: PendingExchangeQueue<PendingPostgresExchange>,
    texts: StatementTexts,
    /// What a back-slash in a string is (`standard_conforming_strings`), as the server said it last.
    backslash: Backslash,
    /// Nothing was sent that may have changed it and that the server has not said to be done.
    settled: bool,
    /// A query came before the one before it was answered.
    pipelined: bool,
    /// Data are copied to the server: a Sync is nothing then.
    copies: bool,
    /// The server failed and skips everything up to a Sync.
    skips: bool,
    /// Nothing more will be known.
    gone: bool,
}

/// What the client's next message is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PostgresPhase {
    /// A first one, without a type.
    #[default]
    Startup,
    /// The same, once the server has answered with a byte whether the connection becomes secure.
    Asked,
    /// One with a type.
    Typed,
}

/// An exchange that is not answered yet.
#[derive(Clone, Debug, PartialEq)]
struct PendingPostgresExchange {
    exchange: u64,
    kind: ExchangeKind,
    until: PostgresAnswerEnd,
    named: bool,
    answered: bool,
    status: Option<RedactedName>,
    failed: bool,
}

impl PendingExchange for PendingPostgresExchange {
    fn exchange(&mut self) -> &mut u64 {
        &mut self.exchange
    }
}

/// What its answer goes up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PostgresAnswerEnd {
    /// It is not known yet; so many messages of it are to be completed.
    Open(u64),
    /// ReadyForQuery.
    Ready,
    /// So many messages are completed.
    Completed(u64),
}

impl RecordProtocol for Postgres {
    const FOREIGN: &'static str = "it is not PostgreSQL";

    type Phase = PostgresPhase;

    fn dialogue(&self) -> &RecordDialogue {
        &self.dialogue
    }

    fn dialogue_mut(&mut self) -> &mut RecordDialogue {
        &mut self.dialogue
    }

    fn phase(&self) -> PostgresPhase {
        self.phase
    }

    fn name(&self) -> &'static str {
        match self.dialogue.inner() {
            None => "PostgreSQL",
            Some(_) => "PostgreSQL in TLS, by turns",
        }
    }

    fn extent(phase: PostgresPhase, side: EventStreamDirection, head: &[u8]) -> Extent {
        extent(side, phase, head)
    }

    /// A query at the beginning of a segment, of a client that waits for each answer, finds the server idle.
    fn find_again(&mut self, side: EventStreamDirection, bytes: &[u8]) {
        let lost = self.dialogue.is_lost(EventStreamDirection::There)
            && side == EventStreamDirection::There
            && !self.gone;
        let begins = matches!(*bytes, [b'Q' | b'P' | b'B', 0, _, _, _, ..]);
        if lost
            && begins
            && matches!(
                extent(side, self.phase, &bytes[..HEAD]),
                Extent::Record { .. }
            )
        {
            self.dialogue.begin_anew();
        }
    }

    /// Nothing is known until a query begins, and nothing of what waits for an answer.
    fn lose(&mut self, why: &'static str, found: &mut Vec<DissectorEvent>) {
        let waiting = self.waiting.clear();
        found.extend(
            waiting
                .into_iter()
                .map(|exchange| DissectorEvent::Void { exchange, why }),
        );
        self.dialogue.lose();
        self.gone |= self.pipelined || self.phase != PostgresPhase::Typed;
        (self.copies, self.skips) = (false, false);
        self.backslash = Backslash::Unknown;
    }

    /// The head of a message is whole.
    fn headed(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(side);
        let (mark, at) = (records.held()[0], records.at());
        match side {
            EventStreamDirection::There if self.phase == PostgresPhase::Typed => match mark {
                b'S' if self.copies && self.waits_for_ready() => {}
                b'Q' | b'F' | b'P' | b'B' | b'D' | b'E' | b'C' | b'S' if !self.is_open() => {
                    self.asks(ExchangeKind::Call, at, found)
                }
                _ => {}
            },
            EventStreamDirection::There => {}
            EventStreamDirection::Back
                if ASIDE.contains(&mark) && self.phase != PostgresPhase::Asked => {}
            EventStreamDirection::Back => self.answers(mark, at, found),
        }
    }

    /// A message is whole.
    fn record(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(side);
        if side == EventStreamDirection::Back && matches!(records.held(), [b'D' | b'd', ..]) {
            return; // A row.
        }
        let (held, at, end) = (records.held().to_vec(), records.at(), records.end());
        match (side, self.phase) {
            (EventStreamDirection::There, PostgresPhase::Typed) => {
                self.of_client(&held, end, found)
            }
            (EventStreamDirection::There, _) => self.first(&held, at, end, found),
            (EventStreamDirection::Back, PostgresPhase::Asked) => {
                self.security(held[0], end, found)
            }
            (EventStreamDirection::Back, _) => self.of_server(&held, end, found),
        }
    }
}

impl Postgres {
    fn is_open(&self) -> bool {
        self.waiting
            .back()
            .is_some_and(|waiting| matches!(waiting.until, PostgresAnswerEnd::Open(_)))
    }

    fn waits_for_ready(&self) -> bool {
        self.waiting
            .front()
            .is_some_and(|waiting| waiting.until == PostgresAnswerEnd::Ready)
    }

    fn asks(&mut self, kind: ExchangeKind, at: u64, found: &mut Vec<DissectorEvent>) {
        self.pipelined |= !self.waiting.is_empty();
        let exchange = self.dialogue.asks(kind, at, found);
        let (until, named, answered, status, failed) =
            (PostgresAnswerEnd::Open(0), false, false, None, false);
        self.waiting.push_back(PendingPostgresExchange {
            exchange,
            kind,
            until,
            named,
            answered,
            status,
            failed,
        });
    }

    /// The exchange that is not whole gets its name, if it has none.
    fn name(&mut self, name: RedactedName, found: &mut Vec<DissectorEvent>) {
        if let Some(waiting) = self
            .waiting
            .back_mut()
            .filter(|waiting| !waiting.named && !name.is_empty())
        {
            waiting.named = true;
            found.push(DissectorEvent::named(
                waiting.exchange,
                ExchangeRole::Request,
                name,
            ));
        }
    }

    /// It is whole.
    fn asked(&mut self, until: PostgresAnswerEnd, at: u64, found: &mut Vec<DissectorEvent>) {
        let Some(waiting) = self.waiting.back_mut() else {
            return;
        };
        waiting.until = until;
        let exchange = waiting.exchange;
        found.push(DissectorEvent::ends(exchange, ExchangeRole::Request, at));
        if !self.waiting.settle(exchange, found) {
            self.dialogue.lose_side(EventStreamDirection::Back);
        }
    }

    /// What the server says answers what waits longest.
    fn answers(&mut self, mark: u8, at: u64, found: &mut Vec<DissectorEvent>) {
        match self.waiting.front_mut() {
            Some(waiting) => {
                let (exchange, kind) = (waiting.exchange, waiting.kind);
                if !std::mem::replace(&mut waiting.answered, true) {
                    answer_begins(exchange, kind, at, found);
                }
            }
            // The server ends the connection.
            None if mark == b'E' => {}
            None => self.lose("nothing asked for it", found),
        }
    }

    /// A message without a type.
    fn first(&mut self, held: &[u8], at: u64, end: u64, found: &mut Vec<DissectorEvent>) {
        let number = RecordFieldReader(held.get(4..).unwrap_or_default()).number(4);
        let (name, phase, kind) = match number {
            Some(TLS) => (
                RedactedName::fixed("SSLRequest"),
                PostgresPhase::Asked,
                ExchangeKind::Handshake,
            ),
            Some(GSSAPI) => (
                RedactedName::fixed("GSSENCRequest"),
                PostgresPhase::Asked,
                ExchangeKind::Handshake,
            ),
            Some(CANCEL) => {
                return self.dialogue.one_way(
                    ExchangeRole::Request,
                    RedactedName::fixed("CancelRequest"),
                    found,
                );
            }
            Some(number) if number >> 16 == VERSION => (
                login(&held[8..]),
                PostgresPhase::Typed,
                ExchangeKind::Handshake,
            ),
            _ => return self.lose(Self::FOREIGN, found),
        };
        self.asks(kind, at, found);
        self.name(name, found);
        self.phase = phase;
        self.pipelined = false;
        self.asked(PostgresAnswerEnd::Ready, end, found);
    }

    /// The server says whether the connection becomes secure.
    fn security(&mut self, mark: u8, end: u64, found: &mut Vec<DissectorEvent>) {
        self.phase = PostgresPhase::Startup;
        self.status(
            RedactedName::fixed(if mark == b'S' {
                "S"
            } else if mark == b'G' {
                "G"
            } else {
                "N"
            }),
            false,
        );
        self.whole(end, found);
        match mark {
            b'S' => self.dialogue.hand_over(Box::<TlsDissector>::default()),
            b'G' => self.lose("it is enciphered", found),
            b'E' => self.gone = true,
            _ => {}
        }
    }

    fn of_client(&mut self, held: &[u8], end: u64, found: &mut Vec<DissectorEvent>) {
        let mut fields = RecordFieldReader(&held[HEAD..]);
        let dialect = Dialect::Postgres(if self.settled {
            self.backslash
        } else {
            Backslash::Unknown
        });
        self.settled &= !b"BEFQ".contains(&held[0]);
        match held[0] {
            b'Q' => {
                self.name(text_of(&mut fields, dialect), found);
                self.name(RedactedName::fixed("empty query"), found);
                self.asked(PostgresAnswerEnd::Ready, end, found);
            }
            b'F' => {
                self.name(RedactedName::fixed("FunctionCall"), found);
                self.asked(PostgresAnswerEnd::Ready, end, found);
            }
            b'P' => {
                let (statement, text) = (fields.text(), text_of(&mut fields, dialect));
                self.texts.learn(statement, &text, found);
                self.sends(text, found);
            }
            b'B' => {
                fields.text();
                let text = self.texts.of(fields.text());
                self.sends(text, found);
            }
            b'C' => {
                if fields.number(1) == Some(usize::from(b'S')) {
                    self.texts.forget(fields.text());
                }
                self.sends(RedactedName::default(), found);
            }
            b'D' | b'E' => self.sends(RedactedName::default(), found),
            b'S' if self.is_open() => {
                let is_alone = self
                    .waiting
                    .back()
                    .is_some_and(|waiting| waiting.until == PostgresAnswerEnd::Open(0));
                self.name(
                    RedactedName::fixed(if is_alone { "Sync" } else { "extended query" }),
                    found,
                );
                self.asked(PostgresAnswerEnd::Ready, end, found);
            }
            b'H' => self.flush(end, found),
            b'X' => self.dialogue.one_way(
                ExchangeRole::Request,
                RedactedName::fixed("Terminate"),
                found,
            ),
            _ => {}
        }
    }

    /// A message of an extended query, which the server completes.
    fn sends(&mut self, name: RedactedName, found: &mut Vec<DissectorEvent>) {
        self.name(name, found);
        if let Some(PendingPostgresExchange {
            until: PostgresAnswerEnd::Open(count),
            ..
        }) = self.waiting.back_mut()
        {
            *count += 1;
        }
    }

    /// What was sent so far is answered before the Sync.
    fn flush(&mut self, end: u64, found: &mut Vec<DissectorEvent>) {
        let Some(&PendingPostgresExchange {
            until: PostgresAnswerEnd::Open(count @ 1..),
            exchange,
            answered,
            ..
        }) = self.waiting.back()
        else {
            return;
        };
        if answered {
            return; // Its answer began before: it goes on to the Sync.
        }
        self.name(RedactedName::fixed("extended query"), found);
        if self.skips {
            self.waiting.pop_back();
            return found.push(DissectorEvent::Void {
                exchange,
                why: "the server skipped it",
            });
        }
        self.asked(PostgresAnswerEnd::Completed(count), end, found);
    }

    fn of_server(&mut self, held: &[u8], end: u64, found: &mut Vec<DissectorEvent>) {
        let body = &held[HEAD..];
        match held[0] {
            b'A' => {
                let channel = RecordFieldReader(body.get(4..).unwrap_or_default()).text();
                let name = RedactedName::identifier("notification ", channel);
                return self.dialogue.one_way(ExchangeRole::Response, name, found);
            }
            b'E' => return self.error(body, end, found),
            b'S' => return self.parameter(body),
            b'Z' => return self.ready(end, found),
            b'C' => self.status(answer::tag(RecordFieldReader(body).text()), false),
            b'I' => self.status(RedactedName::fixed("empty"), false),
            b'G' | b'W' => self.copies = true,
            _ => {}
        }
        if COMPLETIONS.contains(&held[0]) {
            self.completes(end, found);
        }
    }

    /// The server says what it is set to.
    fn parameter(&mut self, body: &[u8]) {
        let mut fields = RecordFieldReader(body);
        if fields.text() == b"standard_conforming_strings" {
            self.backslash = if fields.text() == b"on" {
                Backslash::Plain
            } else {
                Backslash::Escapes
            };
        }
    }

    fn status(&mut self, status: RedactedName, failed: bool) {
        if let Some(waiting) = self.waiting.front_mut().filter(|waiting| !waiting.failed) {
            (waiting.status, waiting.failed) = (Some(status), failed);
        }
    }

    fn error(&mut self, body: &[u8], end: u64, found: &mut Vec<DissectorEvent>) {
        let status = error(body);
        // One that had begun before anything was asked answers nothing.
        let Some(waiting) = self.waiting.front().filter(|waiting| waiting.answered) else {
            return self.dialogue.one_way(ExchangeRole::Response, status, found);
        };
        let (kind, until) = (waiting.kind, waiting.until);
        self.status(status, true);
        if kind == ExchangeKind::Handshake {
            return self.whole(end, found);
        }
        if matches!(until, PostgresAnswerEnd::Completed(_)) {
            self.whole(end, found);
            self.skip(found);
        }
    }

    /// The server answers nothing before a Sync.
    fn skip(&mut self, found: &mut Vec<DissectorEvent>) {
        self.skips = true;
        while let Some(PendingPostgresExchange {
            until: PostgresAnswerEnd::Completed(_),
            exchange,
            ..
        }) = self.waiting.front()
        {
            of_answer(
                DissectorEvent::Void {
                    exchange: *exchange,
                    why: "the server skipped it",
                },
                found,
            );
            self.waiting.pop_front();
        }
    }

    fn completes(&mut self, end: u64, found: &mut Vec<DissectorEvent>) {
        if let Some(PendingPostgresExchange {
            until: PostgresAnswerEnd::Completed(count),
            ..
        }) = self.waiting.front_mut()
        {
            *count -= 1;
            if *count == 0 {
                self.whole(end, found);
            }
        }
    }

    fn ready(&mut self, end: u64, found: &mut Vec<DissectorEvent>) {
        (self.copies, self.skips) = (false, false);
        match self.waiting.front().map(|waiting| waiting.until) {
            Some(PostgresAnswerEnd::Ready) => self.whole(end, found),
            _ => return self.lose("its answer is not in its turn", found),
        }
        self.settled = self.waiting.is_empty();
    }

    /// The answer to what waits longest is whole.
    fn whole(&mut self, at: u64, found: &mut Vec<DissectorEvent>) {
        let Some(PendingPostgresExchange {
            exchange, status, ..
        }) = self.waiting.pop_front()
        else {
            return;
        };
        let status = status.unwrap_or_else(|| RedactedName::fixed("OK"));
        answer_ends(exchange, status, at, found);
    }
}

/// Who logs in to which database.
fn login(parameters: &[u8]) -> RedactedName {
    let mut fields = RecordFieldReader(parameters);
    let (mut user, mut database) = (&[][..], None);
    while !fields.0.is_empty() {
        match (fields.text(), fields.text()) {
            (b"user", value) => user = value,
            (b"database", value) => database = Some(value),
            _ => {}
        }
    }
    // Without a name the database is called as its user.
    answer::login(user, database.unwrap_or(user), database.is_some())
}

/// `ERROR 42P01`: what an ErrorResponse says in its fields.
fn error(body: &[u8]) -> RedactedName {
    let mut fields = RecordFieldReader(body);
    let (mut severity, mut code) = (&b"ERROR"[..], &[][..]);
    while let Some(field) = fields.number(1).filter(|field| *field != 0) {
        match (u8::try_from(field), fields.text()) {
            (Ok(b'V'), value) => severity = value,
            (Ok(b'C'), value) => code = value,
            _ => {}
        }
    }
    answer::postgres_error(severity, code)
}

/// The text of a statement, which ends with a zero byte where all of it was seen and kept.
fn text_of(fields: &mut RecordFieldReader<'_>, dialect: Dialect) -> RedactedName {
    let is_whole = fields.0.contains(&0);
    let text = fields.text();
    if is_whole {
        sql::redact_statement(dialect, text)
    } else {
        sql::redact_beginning(dialect, text)
    }
}

fn extent(side: EventStreamDirection, phase: PostgresPhase, head: &[u8]) -> Extent {
    let (types, marks) = match (side, phase) {
        (EventStreamDirection::There, PostgresPhase::Typed) => (OF_CLIENT, 1),
        (EventStreamDirection::There, _) => (&[][..], 0),
        (EventStreamDirection::Back, PostgresPhase::Asked) if b"SNG".contains(&head[0]) => {
            return Extent::Record { length: 1, keep: 1 };
        }
        (EventStreamDirection::Back, _) => (OF_SERVER, 1),
    };
    if marks > 0 && !types.contains(&head[0]) {
        return Extent::Wrong;
    }
    let Some(length) = RecordFieldReader(&head[marks..]).number(4) else {
        return Extent::More;
    };
    let most = if marks == 0 { LONGEST_FIRST } else { LONGEST };
    let keep = match (side, head[0]) {
        (EventStreamDirection::There, b'B' | b'C' | b'P' | b'Q')
        | (EventStreamDirection::Back, b'A' | b'C' | b'E' | b'S') => KEEP,
        _ if marks == 0 => KEEP,
        _ => HEAD,
    };
    match length {
        _ if marks == 0 && length < 8 => Extent::Wrong,
        4.. if length <= most => Extent::Record {
            length: (marks + length) as u64,
            keep,
        },
        _ => Extent::Wrong,
    }
}

#[cfg(test)]
mod tests;
