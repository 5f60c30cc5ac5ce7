//! RESP2 and RESP3, the protocol of Redis and its relatives. A command is an array of strings or a line; commands are answered in order.
//! Pushes and messages of channels answer nothing. Of values only types and lengths are read, of a command its first words. After bytes
//! that were not captured, it resumes at a command that begins a segment, unless the client had pipelined commands: then nothing more is
//! known. What follows PSYNC is not read.

mod value;

use super::pending_requests::{PendingExchange, PendingExchangeQueue, answer_begins, answer_ends};
use super::records::RecordInput;
use super::{Dissector, DissectorEvent, ExchangeKind, ExchangeRole, RedactedName};
use crate::conversation::opening::{ConversationOpening, ProtocolVerdict};
use crate::left_out::Bound;
use stackline_events::unit_ids::EventStreamDirection;
use stackline_redact::redis;
use value::{RespProgress, RespValueParser};

/// Commands by which a connection is recognised if they come as a line.
const INLINE: [&str; 6] = ["PING", "INFO", "AUTH", "ECHO", "SELECT", "COMMAND"];
/// Commands that are answered once for each channel.
const OF_CHANNELS: &str = " PSUBSCRIBE PUNSUBSCRIBE SSUBSCRIBE SUBSCRIBE SUNSUBSCRIBE UNSUBSCRIBE ";

/// Whether a connection speaks RESP: it begins with an array of strings, or a line with a known command.
pub(super) fn recognise(opening: &ConversationOpening<'_>) -> ProtocolVerdict {
    if opening.there.is_empty() && !opening.back.is_empty() {
        return ProtocolVerdict::No;
    }
    match array_of_strings(opening.there) {
        ProtocolVerdict::No => inline(opening.there),
        verdict => verdict,
    }
}

/// Recognises the beginning of an array of strings: `*3`, `$4`.
fn array_of_strings(bytes: &[u8]) -> ProtocolVerdict {
    let mut left = bytes;
    for mark in [b'*', b'$'] {
        let Some(rest) = left.strip_prefix(&[mark]) else {
            return ProtocolVerdict::begins(left, &[mark]);
        };
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        match (digits, &rest[digits..]) {
            (_, []) if digits <= 9 => return ProtocolVerdict::Perhaps,
            (_, [b'\r']) => return ProtocolVerdict::Perhaps,
            (1..=9, [b'\r', b'\n', next @ ..]) => left = next,
            _ => return ProtocolVerdict::No,
        }
    }
    ProtocolVerdict::Yes
}

/// Recognises a line with a known command.
fn inline(bytes: &[u8]) -> ProtocolVerdict {
    let bytes = bytes.to_ascii_uppercase();
    let ends = |command: &&str| {
        bytes
            .get(command.len())
            .is_none_or(|byte| matches!(byte, b' ' | b'\r' | b'\n'))
    };
    let verdicts =
        INLINE.iter().map(
            |command| match ProtocolVerdict::begins(&bytes, command.as_bytes()) {
                ProtocolVerdict::Yes if !ends(command) => ProtocolVerdict::No,
                ProtocolVerdict::Yes if !bytes.contains(&b'\n') => ProtocolVerdict::Perhaps,
                verdict => verdict,
            },
        );
    verdicts.fold(ProtocolVerdict::No, |one, other| match (one, other) {
        (ProtocolVerdict::Yes, _) | (_, ProtocolVerdict::Yes) => ProtocolVerdict::Yes,
        (ProtocolVerdict::Perhaps, _) | (_, ProtocolVerdict::Perhaps) => ProtocolVerdict::Perhaps,
        _ => ProtocolVerdict::No,
    })
}

/// The dissector of one RESP connection.
#[derive(Debug, Default)]
pub struct Resp {
    sides: [RespSide; 2],
    /// Commands without a complete response, in order.
    waiting: PendingExchangeQueue<PendingRespCommand>,
    /// The number of the next exchange.
    next: u64,
    /// Whether a command came before the previous one was answered.
    pipelined: bool,
    replies: Replies,
    /// Whether channels are subscribed, so that their messages may come.
    subscribed: bool,
    /// Whether MONITOR was sent, so that commands of other clients may come.
    monitors: bool,
    /// Why nothing more can be known, if that is so.
    gone: Option<&'static str>,
}

/// The parser of one side.
#[derive(Debug, Default)]
struct RespSide {
    value: RespValueParser,
    /// The exchange of the message in progress, once it is known.
    exchange: Option<u64>,
    /// Whether everything is skipped until a command begins.
    lost: bool,
}

/// A command without a complete response.
#[derive(Clone, Debug, PartialEq)]
struct PendingRespCommand {
    exchange: u64,
    kind: ExchangeKind,
    answered: bool,
    /// For a command that is answered per channel: its name and how many channels are still to be answered.
    channels: Option<(String, usize)>,
}

impl PendingExchange for PendingRespCommand {
    fn exchange(&mut self) -> &mut u64 {
        &mut self.exchange
    }
}

/// Whether the server answers commands (`CLIENT REPLY`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Replies {
    #[default]
    On,
    Off,
    /// The next command is not answered.
    Skip,
}

impl Dissector for Resp {
    fn bytes(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        bytes: &[u8],
        found: &mut Vec<DissectorEvent>,
    ) {
        self.find_again(side, bytes);
        let mut input = RecordInput { at, bytes };
        while !self.sides[side as usize].lost {
            let Some(token) = self.sides[side as usize]
                .value
                .next(&mut input, side == EventStreamDirection::There)
            else {
                return;
            };
            if self.sides[side as usize].value.take_cut() {
                found.push(DissectorEvent::LeftOut(Bound::Line, 1));
            }
            match (token, side) {
                (RespProgress::Deep, _) => {
                    found.push(DissectorEvent::LeftOut(Bound::Depth, 1));
                    self.lose("it has values nested more than 64 levels deep", found);
                }
                (RespProgress::Wrong, _) => self.lose("it is not RESP", found),
                (RespProgress::More, EventStreamDirection::There) => self.command_begins(found),
                (RespProgress::Whole, EventStreamDirection::There) => self.command(input.at, found),
                (RespProgress::More, EventStreamDirection::Back) => self.reply_begins(found),
                (RespProgress::Whole, EventStreamDirection::Back) => self.reply(input.at, found),
            }
        }
    }

    fn unseen(
        &mut self,
        side: EventStreamDirection,
        _: u64,
        count: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        let own = &mut self.sides[side as usize];
        if !own.lost && !own.value.unseen(count) {
            self.lose("some of its bytes were not captured", found);
        }
    }

    fn end(&mut self, side: EventStreamDirection, _: u64, found: &mut Vec<DissectorEvent>) {
        let own = &mut self.sides[side as usize];
        if !own.lost && !own.value.is_between() {
            self.lose("the connection ended in the middle of it", found);
        }
    }

    fn protocol(&self) -> &'static str {
        "RESP"
    }
}

impl Resp {
    /// Resumes at a command that begins a segment: since this client waits for each response, the server is idle then.
    fn find_again(&mut self, side: EventStreamDirection, bytes: &[u8]) {
        let lost = self.sides[0].lost;
        if lost
            && side == EventStreamDirection::There
            && self.gone.is_none()
            && array_of_strings(bytes) == ProtocolVerdict::Yes
        {
            self.sides = Default::default();
        }
    }

    /// Gives up until a command begins, and voids all commands that wait for a response.
    fn lose(&mut self, why: &'static str, found: &mut Vec<DissectorEvent>) {
        let begun = self.sides[0].exchange.take();
        let waiting = self.waiting.clear();
        found.extend(
            waiting
                .into_iter()
                .chain(begun)
                .map(|exchange| DissectorEvent::Void { exchange, why }),
        );
        self.sides = Default::default();
        self.sides.iter_mut().for_each(|side| side.lost = true);
        if self.pipelined || self.subscribed || self.monitors || self.replies != Replies::On {
            self.gone = Some(why);
        }
    }

    /// The first words of a command are known. CLIENT may be about its own response, so it begins only when it is complete.
    fn command_begins(&mut self, found: &mut Vec<DissectorEvent>) {
        let own = &self.sides[0];
        let Some(command) = own.value.first_word() else {
            return;
        };
        if own.exchange.is_none()
            && self.replies == Replies::On
            && !command.eq_ignore_ascii_case(b"CLIENT")
        {
            self.begin_request(kind_of(command), found);
        }
    }

    fn begin_request(&mut self, kind: ExchangeKind, found: &mut Vec<DissectorEvent>) -> u64 {
        let own = &mut self.sides[0];
        let exchange = self.next;
        (self.next, own.exchange) = (exchange + 1, Some(exchange));
        self.pipelined |= !self.waiting.is_empty();
        let (role, at) = (ExchangeRole::Request, own.value.at());
        found.push(DissectorEvent::begins(exchange, role, kind, at));
        exchange
    }

    /// A command is complete.
    fn command(&mut self, end: u64, found: &mut Vec<DissectorEvent>) {
        let words = self.sides[0].value.words().to_vec();
        let channels = self.sides[0].value.count().saturating_sub(1).max(1);
        let Some(command) = words
            .first()
            .map(|word| String::from_utf8_lossy(word).to_uppercase())
        else {
            return;
        };
        let answered = self.is_answered(&command, &words);
        let kind = if answered {
            kind_of(command.as_bytes())
        } else {
            ExchangeKind::OneWay
        };
        let exchange = match self.sides[0].exchange {
            Some(exchange) => exchange,
            None => self.begin_request(kind, found),
        };
        let role = ExchangeRole::Request;
        found.push(DissectorEvent::named(
            exchange,
            role,
            redis::redact_command(&words),
        ));
        found.push(DissectorEvent::ends(exchange, role, end));
        self.sides[0].exchange = None;
        if answered {
            let channels = is_one_of(&command, OF_CHANNELS).then(|| (command.clone(), channels));
            self.waiting.push_back(PendingRespCommand {
                exchange,
                kind,
                answered: false,
                channels,
            });
        }
        self.monitors |= command == "MONITOR";
        if matches!(command.as_str(), "PSYNC" | "SYNC") {
            self.lose("a copy of the database follows", found);
            self.gone = Some("a copy of the database follows");
        } else if !self.waiting.settle(exchange, found) {
            self.sides[1].lost = true;
        }
    }

    /// Whether the server answers this command; remembers whether it answers the next ones.
    fn is_answered(&mut self, command: &str, words: &[Vec<u8>]) -> bool {
        let is = |index: usize, what: &str| {
            words
                .get(index)
                .is_some_and(|word| word.eq_ignore_ascii_case(what.as_bytes()))
        };
        let about_replies = command == "CLIENT" && is(1, "REPLY");
        let answered = self.replies == Replies::On;
        self.replies = match self.replies {
            _ if about_replies && is(2, "ON") => Replies::On,
            _ if about_replies && is(2, "OFF") => Replies::Off,
            Replies::On if about_replies && is(2, "SKIP") => Replies::Skip,
            Replies::Skip => Replies::On,
            replies => replies,
        };
        if about_replies {
            self.replies == Replies::On
        } else {
            answered
        }
    }

    /// Whether the server's value may be something other than a response.
    fn may_be_message(&self) -> bool {
        let channels = self
            .waiting
            .front()
            .is_some_and(|waiting| waiting.channels.is_some());
        match self.sides[1].value.kind() {
            b'>' | b'|' => true,
            b'*' => self.subscribed || channels,
            b'+' => self.monitors,
            _ => false,
        }
    }

    /// A part of the server's value was read.
    fn reply_begins(&mut self, found: &mut Vec<DissectorEvent>) {
        if self.sides[1].exchange.is_none() && !self.may_be_message() {
            self.answers(found);
        }
    }

    /// The response to the command that has waited longest begins, if it has not; returns its exchange.
    fn answers(&mut self, found: &mut Vec<DissectorEvent>) -> Option<u64> {
        let own = &mut self.sides[1];
        let Some(waiting) = self.waiting.front_mut() else {
            self.lose("it answers no known request", found);
            return None;
        };
        let (exchange, kind) = (waiting.exchange, waiting.kind);
        own.exchange = Some(exchange);
        if !std::mem::replace(&mut waiting.answered, true) {
            answer_begins(exchange, kind, own.value.at(), found);
        }
        Some(exchange)
    }

    /// The server's value is complete.
    fn reply(&mut self, end: u64, found: &mut Vec<DissectorEvent>) {
        let own = &self.sides[1];
        let may_be_message = own.exchange.is_none() && self.may_be_message();
        let first = own.value.words().first().cloned().unwrap_or_default();
        let kind = own.value.kind();
        let confirms = may_be_message
            && kind != b'+'
            && (self.waiting.front())
                .and_then(|waiting| waiting.channels.as_ref())
                .is_some_and(|(command, _)| first.eq_ignore_ascii_case(command.as_bytes()));
        let is_message = kind == b'>'
            || (kind == b'*' && matches!(first.as_slice(), b"message" | b"pmessage" | b"smessage"))
            || (kind == b'*' && first.ends_with(b"unsubscribe"))
            || (kind == b'+' && self.waiting.is_empty());
        match () {
            () if confirms => self.confirms(end, found),
            () if may_be_message && is_message => self.message(end, found),
            () => {
                if let Some(exchange) = own.exchange.or_else(|| self.answers(found)) {
                    self.answered(exchange, self.sides[1].value.status(), end, found);
                }
            }
        }
        self.sides[1].exchange = None;
    }

    /// The response to the command that has waited longest is complete.
    fn answered(
        &mut self,
        exchange: u64,
        name: RedactedName,
        at: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        answer_ends(exchange, name, at, found);
        self.waiting.pop_front();
    }

    /// The server confirms one of the channels of a command.
    fn confirms(&mut self, end: u64, found: &mut Vec<DissectorEvent>) {
        self.count_channels();
        let Some(exchange) = self.answers(found) else {
            return;
        };
        let channels = self
            .waiting
            .front_mut()
            .and_then(|waiting| waiting.channels.as_mut());
        let left = channels.map_or(0, |(_, left)| {
            *left = left.saturating_sub(1);
            *left
        });
        if left == 0 {
            self.answered(exchange, RedactedName::fixed("OK"), end, found);
        }
    }

    /// The third word of a confirmation is the number of subscribed channels.
    fn count_channels(&mut self) {
        if let Some(count) = self.sides[1].value.words().get(2) {
            self.subscribed = count != b"0";
        }
    }

    /// Reports a message of the server that answers nothing.
    fn message(&mut self, end: u64, found: &mut Vec<DissectorEvent>) {
        let value = &self.sides[1].value;
        let name = match value.kind() {
            b'+' => RedactedName::fixed("monitor"),
            _ => redis::redact_message(value.words()),
        };
        let (role, exchange) = (ExchangeRole::Response, self.next);
        self.next += 1;
        found.extend(DissectorEvent::one_way(
            exchange,
            role,
            name,
            value.at(),
            end,
        ));
        if value
            .words()
            .first()
            .is_some_and(|word| word.ends_with(b"unsubscribe"))
        {
            self.count_channels();
        }
    }
}

/// The kind of exchange that a command is.
fn kind_of(command: &[u8]) -> ExchangeKind {
    if command.eq_ignore_ascii_case(b"AUTH") || command.eq_ignore_ascii_case(b"HELLO") {
        ExchangeKind::Handshake
    } else {
        ExchangeKind::Call
    }
}

fn is_one_of(command: &str, words: &str) -> bool {
    words.split_ascii_whitespace().any(|word| word == command)
}

#[cfg(test)]
mod tests;
