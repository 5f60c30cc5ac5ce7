//! PostgreSQL, protocol version 3: messages have a type and a length. A simple query, or an extended query up to its Sync, is answered up
//! to ReadyForQuery; what was sent before a Flush is answered by as many completions as it asks for. After a TLS request the connection
//! goes to [`tls`](super::tls). If several statements are pipelined up to one Sync, each executed statement is an exchange; if a driver
//! sends one statement in several round trips, these are linked. Rows, values and copied data are not read. After bytes that were not
//! captured, it resumes at a query that begins a segment, unless the client had pipelined queries: then nothing more is known.

mod messages;
mod statement_rounds;

use super::pending_requests::{
    PendingExchange, PendingExchangeQueue, answer_begins, answer_ends, of_answer,
};
use super::record_dialogue::{RecordDialogue, RecordProtocol, dialogue_getters};
use super::records::{Extent, RecordFieldReader};
use super::statement_texts::StatementTexts;
use super::tls::TlsDissector;
use super::{DissectorEvent, ExchangeKind, ExchangeRole, RedactedName};
use crate::conversation::opening::{ConversationOpening, ProtocolVerdict};
use messages::{HEAD, LONGEST_FIRST, extent, read_error, read_login, read_statement};
use stackline_events::unit_ids::EventStreamDirection;
use stackline_redact::sql::{Backslash, Dialect, answer};
use statement_rounds::{StatementMessage, StatementRounds};

/// Types of the server's messages that answer nothing.
const ASIDE: &[u8] = b"ANS";
/// Types of the server's messages that complete one of the client's.
const COMPLETIONS: &[u8] = b"123CITns";
/// The number in a first message: the major protocol version, or the code of another request.
const VERSION: usize = 3;
const CANCEL: usize = 80_877_102;
const TLS: usize = 80_877_103;
const GSSAPI: usize = 80_877_104;
/// The reason of the void for a statement behind one that failed.
const SKIPPED: &str = "the server skipped it";

/// Whether a connection speaks PostgreSQL: by the client's first message.
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

/// The dissector of one PostgreSQL connection.
#[derive(Debug, Default)]
pub struct Postgres {
    dialogue: RecordDialogue,
    phase: PostgresPhase,
    /// Requests without a complete response, in order; the last one may be in progress.
    waiting: PendingExchangeQueue<PendingPostgresExchange>,
    texts: StatementTexts,
    rounds: StatementRounds,
    /// The meaning of a backslash in strings (`standard_conforming_strings`), as the server last reported it.
    backslash: Backslash,
    /// Whether the server has completed everything that may have changed it.
    settled: bool,
    /// Whether a query came before the previous one was answered.
    pipelined: bool,
    /// Whether data is being copied to the server; it ignores a Sync then.
    copies: bool,
    /// Whether a statement failed, so that the server skips everything up to a Sync.
    skips: bool,
    /// Whether nothing more can be known.
    gone: bool,
}

/// The form of the client's next message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PostgresPhase {
    /// A first message, which has no type.
    #[default]
    Startup,
    /// The same, after the server has answered with one byte whether the connection becomes encrypted.
    Asked,
    /// A message with a type.
    Typed,
}

/// An exchange without a complete response.
#[derive(Clone, Debug, PartialEq)]
struct PendingPostgresExchange {
    exchange: u64,
    kind: ExchangeKind,
    until: PostgresAnswerEnd,
    named: bool,
    answered: bool,
    status: Option<RedactedName>,
    failed: bool,
    /// Whether it is a statement of its own, which the server skips behind one that fails.
    is_statement: bool,
}

impl PendingExchange for PendingPostgresExchange {
    fn exchange(&mut self) -> &mut u64 {
        &mut self.exchange
    }
}

/// Where the response to a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PostgresAnswerEnd {
    /// Not known yet; this many of its messages will be completed.
    Open(u64),
    /// With ReadyForQuery.
    Ready,
    /// When this many messages are completed.
    Completed(u64),
}

impl RecordProtocol for Postgres {
    const NAME: &'static str = "PostgreSQL";
    const FOREIGN: &'static str = "it is not PostgreSQL";

    type Phase = PostgresPhase;

    dialogue_getters!();

    fn phase(&self) -> PostgresPhase {
        self.phase
    }

    fn name(&self) -> &'static str {
        match self.dialogue.inner() {
            None => Self::NAME,
            Some(_) => "PostgreSQL over TLS, alternating",
        }
    }

    fn extent(phase: PostgresPhase, side: EventStreamDirection, head: &[u8]) -> Extent {
        extent(side, phase, head)
    }

    /// Resumes at a query that begins a segment: since this client waits for each response, the server is idle then.
    fn find_again(&mut self, side: EventStreamDirection, bytes: &[u8]) {
        let lost = self.dialogue.is_lost(EventStreamDirection::There)
            && side == EventStreamDirection::There
            && !self.gone;
        // The first byte of a length below 16 MiB is 0.
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

    /// Gives up until a query begins, and voids all requests that wait for a response.
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
        self.rounds = StatementRounds::default();
    }

    /// The head of a message was read.
    fn headed(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(side);
        let (mark, at) = (records.held()[0], records.at());
        match side {
            EventStreamDirection::There if self.phase == PostgresPhase::Typed => match mark {
                b'S' if self.copies && self.waits_for_ready() => {}
                b'P' | b'B' if self.is_open() && self.rounds.is_executed() => {
                    self.part(at, found);
                    if !self.is_open() {
                        self.begin_request(ExchangeKind::Call, at, found);
                    }
                }
                b'Q' | b'F' | b'P' | b'B' | b'D' | b'E' | b'C' | b'S' if !self.is_open() => {
                    self.begin_request(ExchangeKind::Call, at, found)
                }
                _ => {}
            },
            EventStreamDirection::There => {}
            EventStreamDirection::Back
                if ASIDE.contains(&mark) && self.phase != PostgresPhase::Asked => {}
            EventStreamDirection::Back => self.answers(mark, at, found),
        }
    }

    /// A message is complete.
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
    /// Whether the last request is in progress.
    fn is_open(&self) -> bool {
        self.waiting
            .back()
            .is_some_and(|waiting| matches!(waiting.until, PostgresAnswerEnd::Open(_)))
    }

    /// Whether the response of the first request ends with ReadyForQuery.
    fn waits_for_ready(&self) -> bool {
        self.waiting
            .front()
            .is_some_and(|waiting| waiting.until == PostgresAnswerEnd::Ready)
    }

    fn begin_request(&mut self, kind: ExchangeKind, at: u64, found: &mut Vec<DissectorEvent>) {
        self.pipelined |= !self.waiting.is_empty();
        let exchange = self.dialogue.begin_request(kind, at, found);
        self.rounds.begin(exchange);
        self.waiting.push_back(PendingPostgresExchange {
            exchange,
            kind,
            until: PostgresAnswerEnd::Open(0),
            named: false,
            answered: false,
            status: None,
            failed: false,
            is_statement: false,
        });
    }

    /// Names the request in progress, if it has no name.
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

    /// The request in progress is complete.
    fn finish_request(
        &mut self,
        until: PostgresAnswerEnd,
        at: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
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

    /// The response to the request that has waited longest begins.
    fn answers(&mut self, mark: u8, at: u64, found: &mut Vec<DissectorEvent>) {
        match self.waiting.front_mut() {
            Some(waiting) => {
                let (exchange, kind) = (waiting.exchange, waiting.kind);
                if !std::mem::replace(&mut waiting.answered, true) {
                    answer_begins(exchange, kind, at, found);
                }
            }
            // The server ends the connection with an error.
            None if mark == b'E' => {}
            None => self.lose("it answers no known request", found),
        }
    }

    /// A message without a type is complete.
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
                read_login(&held[8..]),
                PostgresPhase::Typed,
                ExchangeKind::Handshake,
            ),
            _ => return self.lose(Self::FOREIGN, found),
        };
        self.begin_request(kind, at, found);
        self.name(name, found);
        self.phase = phase;
        self.pipelined = false;
        self.finish_request(PostgresAnswerEnd::Ready, end, found);
    }

    /// The server says whether the connection becomes encrypted.
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
            b'G' => self.lose("it is encrypted", found),
            // A server that does not know the request refuses it and closes.
            b'E' => self.gone = true,
            _ => {}
        }
    }

    /// A message of the client with a type is complete.
    fn of_client(&mut self, held: &[u8], end: u64, found: &mut Vec<DissectorEvent>) {
        let mut fields = RecordFieldReader(&held[HEAD..]);
        let dialect = Dialect::Postgres(if self.settled {
            self.backslash
        } else {
            Backslash::Unknown
        });
        // These may change the setting before the server reports it.
        self.settled &= !b"BEFQ".contains(&held[0]);
        match held[0] {
            b'Q' => {
                self.name(read_statement(&mut fields, dialect), found);
                // Counts only if the statement before gave no name.
                self.name(RedactedName::fixed("empty query"), found);
                self.finish_request(PostgresAnswerEnd::Ready, end, found);
            }
            b'F' => {
                self.name(RedactedName::fixed("FunctionCall"), found);
                self.finish_request(PostgresAnswerEnd::Ready, end, found);
            }
            b'P' => {
                let (statement, text) = (fields.text(), read_statement(&mut fields, dialect));
                self.texts.learn(statement, &text, found);
                self.sends(StatementMessage::Parse(statement), text, found);
            }
            b'B' => {
                let (portal, statement) = (fields.text(), fields.text());
                let text = self.texts.name_of(statement);
                self.sends(StatementMessage::Bind { portal, statement }, text, found);
            }
            b'C' | b'D' => {
                let is_statement = fields.number(1) == Some(usize::from(b'S'));
                let name = fields.text();
                let text = self
                    .texts
                    .get(name)
                    .filter(|_| is_statement)
                    .unwrap_or_default();
                let message = match (held[0], is_statement) {
                    (b'C', true) => StatementMessage::CloseStatement(name),
                    (b'C', false) => StatementMessage::ClosePortal(name),
                    (_, true) => StatementMessage::DescribeStatement(name),
                    (_, false) => StatementMessage::DescribePortal(name),
                };
                self.sends(message, text, found);
                if let StatementMessage::CloseStatement(name) = message {
                    self.texts.forget(name);
                }
            }
            b'E' => {
                let portal = fields.text();
                let message = StatementMessage::Execute(portal);
                self.sends(message, RedactedName::default(), found);
            }
            b'S' if self.is_open() => self.sync(end, found),
            b'H' => self.flush(end, found),
            b'X' => self.dialogue.one_way(
                ExchangeRole::Request,
                RedactedName::fixed("Terminate"),
                found,
            ),
            _ => {}
        }
    }

    /// A message of an extended query, which the server will complete.
    fn sends(
        &mut self,
        message: StatementMessage<'_>,
        text: RedactedName,
        found: &mut Vec<DissectorEvent>,
    ) {
        let name = self.rounds.take(message, &text, found);
        self.name(name, found);
        let is_statement = !self.rounds.goes_on();
        if let Some(PendingPostgresExchange {
            until: PostgresAnswerEnd::Open(count),
            is_statement: own,
            ..
        }) = self.waiting.back_mut()
        {
            *count += 1;
            *own = is_statement;
        }
    }

    /// A Sync: everything up to here is one unit to the server, which resumes here after an error and reports ReadyForQuery.
    fn sync(&mut self, end: u64, found: &mut Vec<DissectorEvent>) {
        let is_alone = self
            .waiting
            .back()
            .is_some_and(|waiting| waiting.until == PostgresAnswerEnd::Open(0));
        self.rounds
            .take(StatementMessage::Sync, &RedactedName::default(), found);
        if is_alone && !self.rounds.goes_on() {
            self.name(RedactedName::fixed("Sync"), found);
        }
        self.name_whole(found);
        self.finish_request(PostgresAnswerEnd::Ready, end, found);
    }

    /// Names the request that is complete by what it did; a request that continues another one needs no name.
    fn name_whole(&mut self, found: &mut Vec<DissectorEvent>) {
        if let Some(name) = self.rounds.name_unexecuted()
            && let Some(waiting) = self.waiting.back_mut()
        {
            waiting.named = true;
            let role = ExchangeRole::Request;
            found.push(DissectorEvent::named(waiting.exchange, role, name));
        } else if !self.rounds.goes_on() {
            self.name(RedactedName::fixed("extended query"), found);
        }
    }

    /// A Flush: what was sent so far is answered before the Sync.
    fn flush(&mut self, end: u64, found: &mut Vec<DissectorEvent>) {
        if self
            .waiting
            .back()
            .is_some_and(|waiting| matches!(waiting.until, PostgresAnswerEnd::Open(1..)))
        {
            self.part(end, found);
        }
    }

    /// Completes the request in progress; its response ends with its completions, before the server answers the Sync.
    fn part(&mut self, end: u64, found: &mut Vec<DissectorEvent>) {
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
            return; // Its response has begun and lasts until the Sync.
        }
        self.name_whole(found);
        if self.skips {
            self.waiting.pop_back();
            return found.push(DissectorEvent::Void {
                exchange,
                why: SKIPPED,
            });
        }
        self.finish_request(PostgresAnswerEnd::Completed(count), end, found);
    }

    /// A message of the server is complete.
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
            b'Z' => return self.ready(body, end, found),
            b'C' => self.status(answer::tag(RecordFieldReader(body).text()), false),
            b'I' => self.status(RedactedName::fixed("empty"), false),
            b'G' | b'W' => self.copies = true,
            _ => {}
        }
        if COMPLETIONS.contains(&held[0]) {
            self.completes(end, found);
        }
    }

    /// The server reports a setting.
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

    /// Sets the status of the first request, unless it has failed.
    fn status(&mut self, status: RedactedName, failed: bool) {
        if let Some(waiting) = self.waiting.front_mut().filter(|waiting| !waiting.failed) {
            (waiting.status, waiting.failed) = (Some(status), failed);
        }
    }

    /// An error of the server.
    fn error(&mut self, body: &[u8], end: u64, found: &mut Vec<DissectorEvent>) {
        let status = read_error(body);
        // An error that began before any request answers nothing.
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

    /// The server skips everything before the next Sync.
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
                    why: SKIPPED,
                },
                found,
            );
            self.waiting.pop_front();
        }
    }

    /// One message of the first request is completed.
    fn completes(&mut self, end: u64, found: &mut Vec<DissectorEvent>) {
        if let Some(PendingPostgresExchange {
            until: PostgresAnswerEnd::Completed(count),
            ..
        }) = self.waiting.front_mut()
        {
            // Not 0: the exchange is removed as soon as it is.
            *count -= 1;
            if *count == 0 {
                self.whole(end, found);
            }
        }
    }

    /// ReadyForQuery.
    fn ready(&mut self, body: &[u8], end: u64, found: &mut Vec<DissectorEvent>) {
        let skipped = std::mem::take(&mut self.skips);
        self.copies = false;
        match self.waiting.front() {
            Some(&PendingPostgresExchange {
                until: PostgresAnswerEnd::Ready,
                is_statement: true,
                exchange,
                ..
            }) if skipped => {
                self.waiting.pop_front();
                of_answer(
                    DissectorEvent::Void {
                        exchange,
                        why: SKIPPED,
                    },
                    found,
                );
            }
            Some(waiting) if waiting.until == PostgresAnswerEnd::Ready => self.whole(end, found),
            _ => return self.lose("its answer is out of order", found),
        }
        self.settled = self.waiting.is_empty();
        // Portals last until the end of their transaction.
        if self.settled && body == b"I" {
            self.rounds.forget_portals();
        }
    }

    /// The response to the request that has waited longest is complete.
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

#[cfg(test)]
mod round_tests;
#[cfg(test)]
mod tests;
