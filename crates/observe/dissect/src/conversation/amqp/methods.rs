//! The methods of AMQP 0-9-1, by class and number: which one answers which, and what each is about.

use super::super::records::RecordFieldReader;
use super::super::{ExchangeKind, RedactedName};
use stackline_redact::operation;

/// The class of a method and its number within the class.
pub(super) type MethodId = (usize, usize);

pub(super) const START: MethodId = (10, 10);
pub(super) const CONNECTION_CLOSE: MethodId = (10, 50);
pub(super) const CHANNEL_CLOSE: MethodId = (20, 40);
pub(super) const PUBLISH: MethodId = (60, 40);
const RETURN: MethodId = (60, 50);
const DELIVER: MethodId = (60, 60);
const GET: MethodId = (60, 70);
pub(super) const GET_OK: MethodId = (60, 71);
pub(super) const GET_EMPTY: MethodId = (60, 72);
pub(super) const ACK: MethodId = (60, 80);
pub(super) const REJECT: MethodId = (60, 90);
pub(super) const NACK: MethodId = (60, 120);
pub(super) const CONFIRM_OK: MethodId = (85, 11);

/// The methods that a client asks with: the method that answers, the name, and the mask of the `no-wait` bit, if it has one.
const ASKED: [(MethodId, MethodId, &str, Option<u8>); 22] = [
    ((10, 11), (10, 30), "connection.start-ok", None),
    ((10, 40), (10, 41), "connection.open", None),
    ((10, 50), (10, 51), "connection.close", None),
    ((20, 10), (20, 11), "channel.open", None),
    ((20, 20), (20, 21), "channel.flow", None),
    ((20, 40), (20, 41), "channel.close", None),
    ((40, 10), (40, 11), "exchange.declare", Some(0x10)),
    ((40, 20), (40, 21), "exchange.delete", Some(2)),
    ((40, 30), (40, 31), "exchange.bind", Some(1)),
    ((40, 40), (40, 51), "exchange.unbind", Some(1)),
    ((50, 10), (50, 11), "queue.declare", Some(0x10)),
    ((50, 20), (50, 21), "queue.bind", Some(1)),
    ((50, 30), (50, 31), "queue.purge", Some(1)),
    ((50, 40), (50, 41), "queue.delete", Some(4)),
    ((50, 50), (50, 51), "queue.unbind", None),
    ((60, 10), (60, 11), "basic.qos", None),
    ((60, 20), (60, 21), "basic.consume", Some(8)),
    ((60, 30), (60, 31), "basic.cancel", Some(1)),
    (GET, GET_OK, "basic.get", None),
    ((60, 110), (60, 111), "basic.recover", None),
    ((85, 10), CONFIRM_OK, "confirm.select", Some(1)),
    ((90, 10), (90, 11), "tx.select", None),
];
/// The same for the methods that end transactions.
const COMMITS: [(MethodId, MethodId, &str, Option<u8>); 2] = [
    ((90, 20), (90, 21), "tx.commit", None),
    ((90, 30), (90, 31), "tx.rollback", None),
];
/// Methods that nothing answers, with their names.
const OTHERS: [(MethodId, &str); 12] = [
    ((10, 30), "connection.tune"),
    ((10, 31), "connection.tune-ok"),
    ((10, 51), "connection.close-ok"),
    ((10, 60), "connection.blocked"),
    ((10, 61), "connection.unblocked"),
    ((20, 41), "channel.close-ok"),
    (PUBLISH, "basic.publish"),
    (RETURN, "basic.return"),
    (DELIVER, "basic.deliver"),
    (ACK, "basic.ack"),
    (REJECT, "basic.reject"),
    (NACK, "basic.nack"),
];

/// A method with its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Method<'b> {
    pub(super) id: MethodId,
    arguments: RecordFieldReader<'b>,
}

impl<'b> Method<'b> {
    pub(super) fn read(mut fields: RecordFieldReader<'b>) -> Option<Self> {
        let id = (fields.number(2)?, fields.number(2)?);
        Some(Self {
            id,
            arguments: fields,
        })
    }

    fn expected_answer(&self) -> Option<&'static (MethodId, MethodId, &'static str, Option<u8>)> {
        ASKED.iter().chain(&COMMITS).find(|(id, ..)| *id == self.id)
    }

    /// Whether the method answers another one.
    pub(super) fn is_answer(&self) -> bool {
        self.id == GET_EMPTY
            || ASKED
                .iter()
                .chain(&COMMITS)
                .any(|(_, answer, ..)| *answer == self.id)
    }

    /// The method that answers this one, unless its `no-wait` bit is set.
    pub(super) fn answer(&self) -> Option<MethodId> {
        let (_, answer, _, silent) = self.expected_answer()?;
        let is_silent = silent.is_some_and(|bit| self.bits().is_some_and(|bits| bits & bit != 0));
        (!is_silent).then_some(*answer)
    }

    pub(super) const fn kind(&self) -> ExchangeKind {
        match self.id {
            (10, 11 | 40) => ExchangeKind::Handshake,
            _ => ExchangeKind::Call,
        }
    }

    /// Whether content frames follow, among the methods that a server sends unasked.
    pub(super) const fn has_content(&self) -> bool {
        matches!(self.id, RETURN | DELIVER)
    }

    /// The short texts at the beginning of its arguments, up to its bits.
    fn texts(&self) -> [&'b [u8]; 3] {
        let mut fields = self.arguments;
        // Most methods begin with a reserved number of two bytes.
        if !matches!(self.id, (60, 30) | (85 | 90, _)) {
            let _ = fields.take(2);
        }
        let count = match self.id {
            (40, 30 | 40) | (50, 20) => 3,
            (40, 10) | PUBLISH | (60, 20) => 2,
            _ => 1,
        };
        let mut texts = [&b""[..]; 3];
        for text in &mut texts[..count] {
            *text = fields.vector(1).unwrap_or_default();
        }
        texts
    }

    /// The byte with the method's bits, behind its texts.
    fn bits(&self) -> Option<u8> {
        let texts: usize = match self.id {
            (85, _) => return self.arguments.0.first().copied(),
            (60, 30) => 1 + self.texts()[0].len(),
            (40, 30 | 40) | (50, 20) => {
                5 + self.texts().iter().map(|text| text.len()).sum::<usize>()
            }
            (40, 10) | (60, 20) => 4 + self.texts().iter().map(|text| text.len()).sum::<usize>(),
            _ => 3 + self.texts()[0].len(),
        };
        self.arguments.0.get(texts).copied()
    }

    /// `queue.declare orders`, `basic.publish orders`: the method and its exchange, or the routing key if the exchange has no name.
    pub(super) fn name(&self) -> RedactedName {
        let other = OTHERS
            .iter()
            .find(|(id, _)| *id == self.id)
            .map(|(_, name)| *name);
        let name = self
            .expected_answer()
            .map(|(_, _, name, _)| *name)
            .or(other)
            .unwrap_or("method");
        let of = match self.id {
            DELIVER => {
                let mut fields = self.arguments;
                let _ = fields.vector(1);
                let _ = fields.take(9);
                let exchange = fields.vector(1).unwrap_or_default();
                if exchange.is_empty() {
                    fields.vector(1).unwrap_or_default()
                } else {
                    exchange
                }
            }
            PUBLISH => {
                let [exchange, key, _] = self.texts();
                if exchange.is_empty() { key } else { exchange }
            }
            (40 | 50, _) | (60, 20) | GET => self.texts()[0],
            _ => &[],
        };
        operation::redact_at_subject(name, of)
    }

    /// The status that the method gives: the code of a method that closes, or whether it rejects.
    pub(super) fn status(&self) -> RedactedName {
        let mut arguments = self.arguments;
        match self.id {
            CONNECTION_CLOSE | CHANNEL_CLOSE => {
                RedactedName::number("ERROR ", arguments.number(2).unwrap_or(0) as u64)
            }
            NACK | REJECT => RedactedName::fixed("ERROR rejected"),
            GET_EMPTY => RedactedName::fixed("empty"),
            _ => RedactedName::fixed("OK"),
        }
    }

    /// The delivery tag that it confirms, and whether it confirms all up to that one.
    pub(super) fn confirmation(&self) -> Option<(u64, bool)> {
        let mut arguments = self.arguments;
        let tag = arguments.number(8)? as u64;
        Some((tag, arguments.number(1).unwrap_or(0) & 1 != 0))
    }
}
