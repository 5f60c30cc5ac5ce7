//! memcached: the text protocol with its meta commands, and the binary protocol. Responses follow the order of commands. Keys are
//! redacted like those of Redis, values are dropped. Commands with `noreply` and quiet commands are one-way; an answer that the server
//! sends to a quiet command all the same is a message of its own. After bytes that were not captured, it resumes at a command that begins
//! a segment, unless the client had pipelined commands: then nothing more is known.

mod binary;

use super::pending_requests::{PendingExchange, PendingExchangeQueue, answer_begins, answer_ends};
use super::record_dialogue::{RecordDialogue, RecordProtocol, dialogue_getters};
use super::records::Extent;
use super::text_lines::{is_too_long, line_extent, number, words_of};
use super::{DissectorEvent, ExchangeKind, ExchangeRole, RedactedName};
use crate::conversation::opening::{ConversationOpening, ProtocolVerdict};
use crate::left_out::Bound;
use stackline_events::unit_ids::EventStreamDirection;
use stackline_redact::operation;

/// The commands of the text protocol by which it is recognised.
const COMMANDS: [&str; 22] = [
    "get",
    "gets",
    "set",
    "add",
    "replace",
    "append",
    "prepend",
    "cas",
    "delete",
    "incr",
    "decr",
    "touch",
    "gat",
    "gats",
    "mg",
    "ms",
    "md",
    "ma",
    "mn",
    "stats",
    "version",
    "flush_all",
];
/// Commands whose line is followed by a value; the fifth word is its length.
const STORING: [&str; 6] = ["set", "add", "replace", "append", "prepend", "cas"];
/// The first words of response lines after which the response continues.
const PARTS: [&[u8]; 4] = [b"VALUE", b"STAT", b"ITEM", b"PREFIX"];
/// Responses that are kept.
const ANSWERS: [&str; 16] = [
    "STORED",
    "NOT_STORED",
    "EXISTS",
    "NOT_FOUND",
    "DELETED",
    "TOUCHED",
    "OK",
    "HD",
    "VA",
    "EN",
    "NS",
    "NF",
    "EX",
    "MN",
    "VERSION",
    "RESET",
];

/// Whether a connection speaks memcached: it begins with a line with a known command, or the head of a binary request.
pub(super) fn recognise(opening: &ConversationOpening<'_>) -> ProtocolVerdict {
    let bytes = opening.there;
    if bytes.is_empty() && !opening.back.is_empty() {
        return ProtocolVerdict::No;
    }
    if bytes.first() == Some(&binary::REQUEST) {
        return binary::recognise(bytes);
    }
    let word = bytes
        .iter()
        .position(|byte| !matches!(byte, b'a'..=b'z' | b'_'));
    match (word, bytes.contains(&b'\n')) {
        (Some(word), is_line) if command(&bytes[..word]).is_some() => {
            let is_end = matches!(bytes[word], b' ' | b'\r' | b'\n');
            let is_known = behind_line(
                EventStreamDirection::There,
                bytes
                    .split_inclusive(|byte| *byte == b'\n')
                    .next()
                    .unwrap_or_default(),
            );
            match (is_end, is_line) {
                (false, _) => ProtocolVerdict::No,
                (true, true) if is_known.is_none() => ProtocolVerdict::No,
                (true, true) => ProtocolVerdict::Yes,
                (true, false) if bytes.len() >= super::protocol_recognition::ENOUGH => {
                    ProtocolVerdict::Yes
                }
                (true, false) => ProtocolVerdict::Perhaps,
            }
        }
        (Some(_), _) => ProtocolVerdict::No,
        (None, _)
            if COMMANDS
                .iter()
                .any(|command| command.as_bytes().starts_with(bytes)) =>
        {
            ProtocolVerdict::Perhaps
        }
        (None, _) => ProtocolVerdict::No,
    }
}

/// The known command that a word is.
fn command(word: &[u8]) -> Option<&'static str> {
    COMMANDS
        .iter()
        .copied()
        .find(|command| command.as_bytes() == word)
}

/// How many bytes of a value follow a line of one side, with the value's line end; `None` if the line is not of the protocol.
fn behind_line(side: EventStreamDirection, line: &[u8]) -> Option<u64> {
    let mut words = words_of(line);
    let first = words.next().unwrap_or_default();
    let value = |length: Option<&[u8]>| number(length?)?.checked_add(2);
    match side {
        EventStreamDirection::There
            if STORING.iter().any(|storing| storing.as_bytes() == first) =>
        {
            value(words.nth(3))
        }
        EventStreamDirection::There if first == b"ms" => value(words.nth(1)),
        EventStreamDirection::There => first.is_ascii().then_some(0),
        EventStreamDirection::Back if first == b"VALUE" => value(words.nth(2)),
        EventStreamDirection::Back if first == b"VA" => value(words.next()),
        EventStreamDirection::Back => (first.is_ascii() && !first.is_empty()).then_some(0),
    }
}

/// The dissector of one memcached connection.
#[derive(Debug, Default)]
pub struct Memcached {
    dialogue: RecordDialogue,
    /// Commands without a complete response, in order.
    waiting: PendingExchangeQueue<PendingMemcachedCommand>,
    /// The command in progress.
    open_request: Option<PendingMemcachedCommand>,
    /// Whether the connection uses the binary protocol.
    is_binary: bool,
    /// Whether quiet commands were sent and no command after them has marked their end.
    is_quiet: bool,
    /// Whether a command came before the previous one was answered.
    pipelined: bool,
    /// Whether nothing more can be known.
    gone: bool,
}

/// A command without a complete response.
#[derive(Clone, Debug, PartialEq)]
struct PendingMemcachedCommand {
    exchange: u64,
    is_answered: bool,
    /// Whether it is `mn`, whose response marks the end of quiet commands.
    is_mark: bool,
    /// The number of values in its response so far.
    values: u64,
}

impl PendingExchange for PendingMemcachedCommand {
    fn exchange(&mut self) -> &mut u64 {
        &mut self.exchange
    }
}

impl RecordProtocol for Memcached {
    const NAME: &'static str = "memcached";
    const FOREIGN: &'static str = "it is not memcached";

    type Phase = bool;

    dialogue_getters!();

    fn phase(&self) -> bool {
        self.is_binary
    }

    fn extent(is_binary: bool, side: EventStreamDirection, head: &[u8]) -> Extent {
        if is_binary {
            binary::extent(side, head)
        } else {
            line_extent(head, |line| behind_line(side, line))
        }
    }

    fn find_again(&mut self, side: EventStreamDirection, bytes: &[u8]) {
        if side == EventStreamDirection::Back {
            return;
        }
        self.is_binary |= bytes.first() == Some(&binary::REQUEST) && self.dialogue.is_untouched();
        let opening = ConversationOpening {
            there: bytes,
            back: &[],
            port: 0,
        };
        if self.dialogue.is_lost(side) && !self.gone && recognise(&opening) == ProtocolVerdict::Yes
        {
            self.dialogue.begin_anew();
        }
    }

    fn headed(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(side);
        let at = records.at();
        if side == EventStreamDirection::There {
            let is_answered = if self.is_binary {
                binary::is_answered(records.held())
            } else {
                is_text_answered(records.held())
            };
            let is_empty = words_of(records.held()).next().is_none() && !self.is_binary;
            if !is_empty {
                self.begin_request(is_answered, at, found);
            }
        } else if self.is_answer() {
            self.answers(at, found);
        }
    }

    fn record(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        match (side, self.is_binary) {
            (EventStreamDirection::There, _) => self.command(found),
            (EventStreamDirection::Back, _) if !self.is_answer() => {
                if self.is_quiet || self.is_binary {
                    let name = RedactedName::fixed("answer to a quiet command");
                    return self.dialogue.one_way(ExchangeRole::Response, name, found);
                }
                self.lose("it answers no known request", found);
            }
            (EventStreamDirection::Back, true) => self.binary_answer(found),
            (EventStreamDirection::Back, false) => self.text_answer(found),
        }
    }

    fn lose(&mut self, why: &'static str, found: &mut Vec<DissectorEvent>) {
        let is_long = |side| is_too_long(self.dialogue.records(side).held()) && !self.is_binary;
        if why == Self::FOREIGN
            && (is_long(EventStreamDirection::There) || is_long(EventStreamDirection::Back))
        {
            found.push(DissectorEvent::LeftOut(Bound::Head, 1));
        }
        let open_request = self
            .open_request
            .take()
            .map(|open_request| open_request.exchange);
        let lost = self.waiting.clear().into_iter().chain(open_request);
        found.extend(lost.map(|exchange| DissectorEvent::Void { exchange, why }));
        self.dialogue.lose();
        self.gone |= self.pipelined || self.is_quiet;
        self.is_quiet = false;
    }
}

impl Memcached {
    /// A command begins.
    fn begin_request(&mut self, is_answered: bool, at: u64, found: &mut Vec<DissectorEvent>) {
        let kind = if is_answered {
            ExchangeKind::Call
        } else {
            ExchangeKind::OneWay
        };
        let exchange = self.dialogue.begin_request(kind, at, found);
        self.pipelined |= is_answered && !self.waiting.is_empty();
        self.open_request = Some(PendingMemcachedCommand {
            exchange,
            is_answered: !is_answered,
            is_mark: false,
            values: 0,
        });
    }

    /// A command is complete.
    fn command(&mut self, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(EventStreamDirection::There);
        let (held, end) = (records.held(), records.end());
        let Some(mut open_request) = self.open_request.take() else {
            return;
        };
        let (exchange, role) = (open_request.exchange, ExchangeRole::Request);
        let name = if self.is_binary {
            binary::name(held)
        } else {
            text_name(held)
        };
        found.push(DissectorEvent::named(exchange, role, name));
        found.push(DissectorEvent::ends(exchange, role, end));
        let is_one_way = std::mem::replace(&mut open_request.is_answered, false);
        if is_one_way {
            self.is_quiet |= !self.is_binary && held.starts_with(b"m");
            return;
        }
        open_request.is_mark = held.starts_with(b"mn");
        self.waiting.push_back(open_request);
        if !self.waiting.settle(exchange, found) {
            self.dialogue.lose_side(EventStreamDirection::Back);
        }
    }

    /// Whether the server's record answers the command that has waited longest.
    fn is_answer(&self) -> bool {
        let held = self.dialogue.records(EventStreamDirection::Back).held();
        match self.waiting.front() {
            None => false,
            Some(_) if self.is_binary => binary::is_answered(held),
            Some(front) => !(self.is_quiet && front.is_mark) || held.starts_with(b"MN"),
        }
    }

    /// The response to the command that has waited longest begins.
    fn answers(&mut self, at: u64, found: &mut Vec<DissectorEvent>) {
        if self.is_quiet && !self.waiting.front().is_some_and(|front| front.is_mark) {
            return self.lose("the command that it answers is unknown", found);
        }
        if let Some(front) = self.waiting.front_mut()
            && !std::mem::replace(&mut front.is_answered, true)
        {
            answer_begins(front.exchange, ExchangeKind::Call, at, found);
        }
    }

    /// A line of a text response.
    fn text_answer(&mut self, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(EventStreamDirection::Back);
        let first = words_of(records.held()).next().unwrap_or_default();
        let Some(front) = self.waiting.front_mut() else {
            return;
        };
        if PARTS.contains(&first) {
            front.values += 1;
            return;
        }
        let status = match front.values {
            0 => text_status(first),
            1 => RedactedName::fixed("1 value"),
            values => RedactedName::count(values, " values"),
        };
        self.is_quiet &= first != b"MN";
        self.whole(status, found);
    }

    /// A record of a binary response. STAT has several; the last one has no key.
    fn binary_answer(&mut self, found: &mut Vec<DissectorEvent>) {
        let held = self.dialogue.records(EventStreamDirection::Back).held();
        if !binary::goes_on(held) {
            self.whole(binary::status(held), found);
        }
    }

    /// The response to the command that has waited longest is complete.
    fn whole(&mut self, status: RedactedName, found: &mut Vec<DissectorEvent>) {
        let end = self.dialogue.records(EventStreamDirection::Back).end();
        if let Some(front) = self.waiting.pop_front() {
            answer_ends(front.exchange, status, end, found);
        }
    }
}

/// Whether a line asks for a response.
fn is_text_answered(line: &[u8]) -> bool {
    let is_meta = matches!(line, [b'm', b'g' | b's' | b'd' | b'a', b' ', ..]);
    let words = || words_of(line);
    let is_quit = matches!(words().next(), Some(b"quit" | b"shutdown"));
    let is_quiet = is_meta && words().skip(2).any(|word| word.first() == Some(&b'q'));
    !(is_quit || is_quiet || words().last() == Some(b"noreply"))
}

/// The name of a command, such as `get user:7`.
fn text_name(line: &[u8]) -> RedactedName {
    let mut words = words_of(line);
    let known = words.next().and_then(command);
    match known {
        None => RedactedName::fixed("command"),
        Some(command @ ("stats" | "version" | "flush_all" | "mn")) => RedactedName::fixed(command),
        Some(command @ ("gat" | "gats")) => {
            operation::redact_at_key(command, words.nth(1).unwrap_or_default())
        }
        Some(command) => operation::redact_at_key(command, words.next().unwrap_or_default()),
    }
}

/// The status in the first word of a response.
fn text_status(word: &[u8]) -> RedactedName {
    let fixed = |text: &'static str| RedactedName::fixed(text);
    match word {
        b"ERROR" => fixed("ERROR"),
        b"CLIENT_ERROR" => fixed("ERROR (client)"),
        b"SERVER_ERROR" => fixed("ERROR (server)"),
        b"END" => fixed("no value"),
        _ if word.iter().all(u8::is_ascii_digit) => fixed("number"),
        _ => fixed(
            ANSWERS
                .iter()
                .find(|answer| answer.as_bytes() == word)
                .copied()
                .unwrap_or("text"),
        ),
    }
}

#[cfg(test)]
mod tests;
