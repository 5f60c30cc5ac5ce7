//! DNS (RFC 1035): the header and the first question of a message. [`parse_message`] reads a datagram; [`Dns`] dissects a TCP connection
//! (RFC 7766). A response answers the question with the same id and name, in any order; a zone transfer has several responses, each of
//! which is a part. Resource records are not read.

use super::record_dialogue::{RecordDialogue, RecordProtocol, dialogue_getters};
use super::records::{Extent, RecordFieldReader};
use super::{DissectorEvent, ExchangeKind, ExchangeRole, MOST_WAITING, RedactedName, TOO_MANY};
use crate::conversation::opening::{ConversationOpening, ProtocolVerdict};
use crate::left_out::Bound;
use stackline_events::unit_ids::EventStreamDirection;
use stackline_redact::printable;

/// The length of a message's header in bytes.
const HEAD: usize = 12;
/// The longest encoded name in bytes (RFC 1035, 2.3.4).
const LONGEST: usize = 255;
/// The most compression pointers of a name that are followed.
const MOST_POINTERS: usize = Bound::Pointers.most();
/// The most bytes of a message that are held: the header and the question, which comes first.
const KEEP: usize = HEAD + LONGEST + 4;
/// Question types of a full zone transfer (AXFR) and an incremental one (IXFR).
const ZONE: u16 = 252;
const CHANGES: u16 = 251;
/// The QR bit of the flags: the message is a response.
const RESPONSE: u16 = 1 << 15;

/// The parts of a DNS message that match a response to its question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsMessage {
    /// The id that a question and its response share.
    pub id: u16,
    /// Whether the message is a response.
    pub response: bool,
    /// The name of the first question, such as `www.example.org`; `.` for the root, empty without a question.
    pub question: String,
    /// The type of the first question: 1 is `A`, 28 is `AAAA`.
    pub kind: u16,
    /// The response code: 0 is no error, 3 is no such name.
    pub code: u8,
}

/// Why a message could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DnsReadError {
    /// The bytes are not DNS, or the question was cut off.
    Foreign,
    /// A name has more pointers than are followed.
    Pointers,
}

/// Reads a datagram, or the captured part of it; `None` if it is not DNS or the question was cut off.
#[must_use]
pub fn parse_message(bytes: &[u8]) -> Option<DnsMessage> {
    read_message(bytes).ok()
}

/// The same, with the reason if the message cannot be read.
///
/// # Errors
/// The reason why it cannot be read.
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

/// The id, the flags and the number of questions, if the header is plausible.
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
    // A message has at most one question (a query exactly one), a known operation code, and a zero bit where one is reserved.
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

/// The name and the type of the first question.
fn question(bytes: &[u8]) -> Result<(String, u16), DnsReadError> {
    let (name, behind) = name(bytes, HEAD)?;
    let [high, low, _, _] = *bytes
        .get(behind..)
        .and_then(<[u8]>::first_chunk::<4>)
        .ok_or(DnsReadError::Foreign)?;
    Ok((name, u16::from_be_bytes([high, low])))
}

/// Reads the name at a byte of a message; returns it with the offset behind it.
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
            // A pointer may point at itself: their number is bounded.
            0xc0.. if pointers < MOST_POINTERS => {
                pointers += 1;
                // The name ends behind its first pointer, wherever that leads.
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

/// The name of a question type.
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

/// The name of a response code.
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
    /// `A www.example.org` for a question, `NXDOMAIN` for a response.
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

/// Whether a connection speaks DNS: it begins with a length prefix and a question.
pub(super) fn recognise(opening: &ConversationOpening<'_>) -> ProtocolVerdict {
    let there = opening.there;
    let begins = match *there {
        [] => opening.back.is_empty(),
        [0..=1] => true,
        [0..=1, _] => true,
        // The flags must be those of a standard query, with one question and no answers.
        [0..=1, _, _, _, ref rest @ ..] => {
            let known = [0, 0, 0, 1, 0, 0];
            let marks = rest
                .iter()
                .zip(known)
                // The masks leave out RD in the first byte; RA, AD and CD in the second.
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

/// The dissector of one DNS connection over TCP.
#[derive(Debug, Default)]
pub struct Dns {
    dialogue: RecordDialogue,
    /// The exchange of a question that is not complete.
    asked: Option<u64>,
    /// Questions without an answer so far, oldest first.
    waiting: Vec<PendingDnsQuestion>,
}

/// A question without a complete answer.
#[derive(Debug)]
struct PendingDnsQuestion {
    exchange: u64,
    id: u16,
    question: String,
    kind: u16,
    /// The offset behind the last response so far; set for zone transfers that have begun.
    end: Option<u64>,
}

impl PendingDnsQuestion {
    /// Whether the question is for a zone transfer, which may have several responses.
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

    /// After a gap nothing more can be read: length prefixes stand only between messages.
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

    /// The length prefix of a message was read. For a response, the exchange is known only when the message is complete.
    fn headed(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        if side == EventStreamDirection::Back {
            return;
        }
        let at = self.dialogue.records(side).at();
        self.asked = Some(self.dialogue.begin_request(ExchangeKind::Call, at, found));
    }

    /// A message is complete.
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
    /// A message that could not be read; the next one may be readable.
    fn unknown(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>) {
        if let Some(exchange) = self.asked.take_if(|_| side == EventStreamDirection::There) {
            found.push(DissectorEvent::Void {
                exchange,
                why: "its question is unknown",
            });
        }
    }

    /// A complete question.
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

    /// A complete response.
    fn response(
        &mut self,
        message: &DnsMessage,
        at: u64,
        end: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        let answers = |waiting: &PendingDnsQuestion| {
            // Further responses of a zone transfer may omit the question.
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

/// The event that the response is complete.
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

/// The length of the message whose length prefix this is.
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
