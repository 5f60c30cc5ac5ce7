//! DNS (RFC 1035): the head of a message and its first question, of a datagram by [`parse_message`], of a connection (RFC 7766) as a
//! dissector. A response answers the question of its number and name, in any order; a transfer of a zone has several responses, of
//! which each is a part. Records are not looked at.

use super::record_dialogue::{RecordDialogue, RecordProtocol, dialogue_getters};
use super::records::{Extent, RecordFieldReader};
use super::{DissectorEvent, ExchangeKind, ExchangeRole, MOST_WAITING, RedactedName, TOO_MANY};
use crate::conversation::opening::{ConversationOpening, ProtocolVerdict};
use crate::left_out::Bound;
use stackline_events::unit_ids::EventStreamDirection;
use stackline_redact::printable;

/// Bytes of a message's head.
const HEAD: usize = 12;
/// Bytes of a name as it is sent, at most (RFC 1035, 2.3.4).
const LONGEST: usize = 255;
/// Pointers of a name that are followed, at most.
const MOST_POINTERS: usize = Bound::Pointers.most();
/// Bytes of a message that are held, at most: its head and a question, which comes first.
const KEEP: usize = HEAD + LONGEST + 4;
/// A question for all of a zone, and for what changed in it.
const ZONE: u16 = 252;
const CHANGES: u16 = 251;
/// The mark of a response, and which bits say what it is about.
const RESPONSE: u16 = 1 << 15;

/// A message, as far as it says what answers what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsMessage {
    /// Of a question and its response.
    pub id: u16,
    /// Whether it is a response.
    pub response: bool,
    /// The name of the first question, as `www.example.org`; empty where there is none, `.` of the root.
    pub question: String,
    /// The type of the first question: 1 is `A`, 28 is `AAAA`.
    pub kind: u16,
    /// The code of a response: 0 is no error, 3 no such name.
    pub code: u8,
}

/// Why bytes are no message that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DnsReadError {
    /// They are no DNS, or the question was cut off.
    Foreign,
    /// A name has more pointers than are followed.
    Pointers,
}

/// What a datagram says, or what of it was captured; `None`: it is not DNS, or its question was cut off.
#[must_use]
pub fn parse_message(bytes: &[u8]) -> Option<DnsMessage> {
    read_message(bytes).ok()
}

/// The same, with the reason where it cannot be read.
///
/// # Errors
/// Why it cannot be read.
pub fn read_message(bytes: &[u8]) -> Result<DnsMessage, DnsReadError> {
    let (id, bits, questions) = head(bytes).ok_or(DnsReadError::Foreign)?;
    let (question, kind) = if questions == 1 {
        question(bytes)?
    } else {
        (String::new(), 0)
    };
    Ok(DnsMessage {
        id,
        response: bits & RESPONSE != 0,
        question,
        kind,
        code: (bits & 15) as u8,
    })
}

/// Number, flags and count of questions of what may be a message.
fn head(bytes: &[u8]) -> Option<(u16, u16, u16)> {
    let mut fields = RecordFieldReader(bytes);
    let mut number = || {
        fields
            .number(2)
            .and_then(|number| u16::try_from(number).ok())
    };
    let (id, bits, questions) = (number()?, number()?, number()?);
    let counts = [number()?, number()?, number()?];
    let operation = bits >> 11 & 15;
    // A question holds no answers, and one bit is always 0.
    let is_dns = operation <= 6
        && bits & 0x40 == 0
        && questions <= 1
        && (questions == 1 || bits & RESPONSE != 0);
    let is_question = bits & RESPONSE == 0 && operation == 0;
    if !is_dns || (is_question && bits & 15 != 0) || (is_question && counts[0] > 0) {
        return None;
    }
    Some((id, bits, questions))
}

/// The first question: its name and type.
fn question(bytes: &[u8]) -> Result<(String, u16), DnsReadError> {
    let (name, behind) = name(bytes, HEAD)?;
    let [high, low, _, _] = *bytes
        .get(behind..)
        .and_then(<[u8]>::first_chunk::<4>)
        .ok_or(DnsReadError::Foreign)?;
    Ok((name, u16::from_be_bytes([high, low])))
}

/// A name that begins at that byte of a message, and where it ends.
fn name(bytes: &[u8], at: usize) -> Result<(String, usize), DnsReadError> {
    let (mut text, mut at, mut behind, mut pointers) = (Vec::new(), at, None, 0);
    loop {
        let length = usize::from(*bytes.get(at).ok_or(DnsReadError::Foreign)?);
        match length {
            0 => break,
            1..=63 => {
                text.extend_from_slice(
                    bytes
                        .get(at + 1..at + 1 + length)
                        .ok_or(DnsReadError::Foreign)?,
                );
                text.push(b'.');
                at += 1 + length;
            }
            0xc0.. if pointers < MOST_POINTERS => {
                pointers += 1;
                behind = behind.or(Some(at + 2));
                at = (length & 0x3f) << 8
                    | usize::from(*bytes.get(at + 1).ok_or(DnsReadError::Foreign)?);
            }
            0xc0.. => return Err(DnsReadError::Pointers),
            _ => return Err(DnsReadError::Foreign),
        }
        if text.len() > LONGEST {
            return Err(DnsReadError::Foreign);
        }
    }
    if text.len() > 1 {
        text.pop();
    }
    let text = if text.is_empty() {
        ".".into()
    } else {
        printable(&text)
    };
    Ok((text, behind.unwrap_or(at + 1)))
}

/// What a type is called.
fn name_of_kind(kind: u16) -> String {
    let name = match kind {
        1 => "A",
        2 => "NS",
        5 => "CNAME",
        6 => "SOA",
        12 => "PTR",
        15 => "MX",
        16 => "TXT",
        28 => "AAAA",
        33 => "SRV",
        43 => "DS",
        48 => "DNSKEY",
        64 => "SVCB",
        65 => "HTTPS",
        CHANGES => "IXFR",
        ZONE => "AXFR",
        255 => "ANY",
        _ => return format!("TYPE{kind}"),
    };
    name.into()
}

fn name_of_code(code: u8) -> RedactedName {
    let name = match code {
        0 => "NOERROR",
        1 => "FORMERR",
        2 => "SERVFAIL",
        3 => "NXDOMAIN",
        4 => "NOTIMP",
        5 => "REFUSED",
        9 => "NOTAUTH",
        _ => return RedactedName::number("RCODE", code.into()),
    };
    RedactedName::fixed(name)
}

impl DnsMessage {
    /// `A www.example.org` of a question, `NXDOMAIN` of a response.
    #[must_use]
    pub fn name(&self) -> RedactedName {
        match self.response {
            true => name_of_code(self.code),
            false => {
                RedactedName::host(&format!("{} ", name_of_kind(self.kind)), &self.question, "")
            }
        }
    }
}

/// Whether a connection speaks it: it begins with a length and a question of just that length.
pub(super) fn recognise(opening: &ConversationOpening<'_>) -> ProtocolVerdict {
    let there = opening.there;
    let begins = match *there {
        [] => opening.back.is_empty(),
        [0..=1] => true,
        [0..=1, _] => true,
        // No operation but a query, one question, no answers.
        [0..=1, _, _, _, ref rest @ ..] => {
            let known = [0, 0, 0, 1, 0, 0];
            let marks = rest
                .iter()
                .zip(known)
                .zip([0xfe, 0x4f, 0xff, 0xff, 0xff, 0xff]);
            marks
                .into_iter()
                .all(|((byte, wanted), mask)| byte & mask == wanted)
        }
        [0..=1, _, _] => true,
        _ => false,
    };
    match (begins, parse_message(there.get(2..).unwrap_or_default())) {
        (true, Some(message)) if !message.response => ProtocolVerdict::Yes,
        (true, None) if opening.back.is_empty() => ProtocolVerdict::Perhaps,
        _ => ProtocolVerdict::No,
    }
}

/// One connection.
#[derive(Debug, Default)]
pub struct Dns {
    dialogue: RecordDialogue,
    /// The exchange of the question that is not whole.
    asked: Option<u64>,
    /// Questions that are not answered yet.
    waiting: Vec<PendingDnsQuestion>,
}

/// A question that is not answered yet.
#[derive(Debug)]
struct PendingDnsQuestion {
    exchange: u64,
    id: u16,
    question: String,
    kind: u16,
    /// Behind the last response of a transfer so far.
    end: Option<u64>,
}

impl PendingDnsQuestion {
    /// Whether a response may be one of several.
    const fn is_transfer(&self) -> bool {
        matches!(self.kind, ZONE | CHANGES)
    }
}

impl RecordProtocol for Dns {
    const NAME: &'static str = "DNS";
    const FOREIGN: &'static str = "it is not DNS";

    type Phase = ();

    dialogue_getters!();

    fn phase(&self) {}

    fn extent(_: (), _: EventStreamDirection, head: &[u8]) -> Extent {
        extent(head)
    }

    /// Nothing more is known: a length stands nowhere but between messages.
    fn lose(&mut self, why: &'static str, found: &mut Vec<DissectorEvent>) {
        let begun = self.asked.take();
        let waiting = self.waiting.drain(..).map(|waiting| waiting.exchange);
        found.extend(
            waiting
                .chain(begun)
                .map(|exchange| DissectorEvent::Void { exchange, why }),
        );
        self.dialogue.lose();
    }

    /// The length of a message is there. Which question a response answers is known when it is whole.
    fn headed(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        if side == EventStreamDirection::Back {
            return;
        }
        let at = self.dialogue.records(side).at();
        self.asked = Some(self.dialogue.begin_request(ExchangeKind::Call, at, found));
    }

    /// A message is whole.
    fn record(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        let records = self.dialogue.records(side);
        let message = read_message(records.held().get(2..).unwrap_or_default());
        if message == Err(DnsReadError::Pointers) {
            found.push(DissectorEvent::LeftOut(Bound::Pointers, 1));
        }
        let (at, end) = (records.at(), records.end());
        let Some(message) = message
            .ok()
            .filter(|message| message.response == (side == EventStreamDirection::Back))
        else {
            return self.unknown(side, found);
        };
        match side {
            EventStreamDirection::There => self.question(message, end, found),
            EventStreamDirection::Back => self.response(&message, at, end, found),
        }
    }

    fn side_ended(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        if side == EventStreamDirection::Back {
            let transfers: Vec<PendingDnsQuestion> = self
                .waiting
                .extract_if(.., |waiting| waiting.end.is_some())
                .collect();
            transfers
                .into_iter()
                .for_each(|waiting| ends(&waiting, found));
        }
    }
}

impl Dns {
    /// A message of which the question is not known; the next one may be.
    fn unknown(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        if let Some(exchange) = self.asked.take_if(|_| side == EventStreamDirection::There) {
            found.push(DissectorEvent::Void {
                exchange,
                why: "its question is unknown",
            });
        }
    }

    fn question(&mut self, message: DnsMessage, at: u64, found: &mut Vec<DissectorEvent>) {
        let Some(exchange) = self.asked.take() else {
            return;
        };
        let (role, name) = (ExchangeRole::Request, message.name());
        found.push(DissectorEvent::named(exchange, role, name));
        found.push(DissectorEvent::ends(exchange, role, at));
        let DnsMessage {
            id, question, kind, ..
        } = message;
        self.waiting.push(PendingDnsQuestion {
            exchange,
            id,
            question,
            kind,
            end: None,
        });
        if self.waiting.len() > MOST_WAITING {
            let oldest = self.waiting.remove(0);
            found.push(DissectorEvent::Void {
                exchange: oldest.exchange,
                why: TOO_MANY,
            });
            found.push(DissectorEvent::LeftOut(Bound::Waiting, 1));
        }
    }

    fn response(
        &mut self,
        message: &DnsMessage,
        at: u64,
        end: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        let answers = |waiting: &PendingDnsQuestion| {
            // Further responses of a transfer may leave the question out.
            let same = waiting.kind == message.kind
                && waiting.question.eq_ignore_ascii_case(&message.question);
            waiting.id == message.id && (same || message.question.is_empty())
        };
        let Some(index) = self.waiting.iter().position(answers) else {
            return;
        };
        let waiting = &mut self.waiting[index];
        let (exchange, side) = (waiting.exchange, EventStreamDirection::Back);
        if waiting.end.is_none() {
            let (role, kind) = (ExchangeRole::Response, ExchangeKind::Call);
            found.push(DissectorEvent::begins(exchange, role, kind, at));
            found.push(DissectorEvent::named(exchange, role, message.name()));
        }
        waiting.end = Some(end);
        if waiting.is_transfer() && message.code == 0 {
            found.push(DissectorEvent::Part {
                exchange,
                side,
                at: end,
            });
        } else {
            ends(&self.waiting.remove(index), found);
        }
    }
}

/// The response is whole.
fn ends(waiting: &PendingDnsQuestion, found: &mut Vec<DissectorEvent>) {
    if let PendingDnsQuestion {
        exchange,
        end: Some(at),
        ..
    } = *waiting
    {
        found.push(DissectorEvent::ends(exchange, ExchangeRole::Response, at));
    }
}

fn extent(head: &[u8]) -> Extent {
    match RecordFieldReader(head).number(2) {
        None => Extent::More,
        Some(length) if length >= HEAD => Extent::Record {
            length: 2 + length as u64,
            keep: 2 + KEEP,
        },
        Some(_) => Extent::Wrong,
    }
}

#[cfg(test)]
mod tests;
