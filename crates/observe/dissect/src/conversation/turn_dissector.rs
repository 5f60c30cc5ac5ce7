//! The dissector for unknown protocols: a request is what one side says until the other side speaks, and its response what that side says
//! until the first one speaks again. It works for every protocol that takes turns, encrypted or not, and is wrong where requests are
//! pipelined.

use super::{Dissector, DissectorEvent, ExchangeKind, ExchangeRole};
use stackline_events::unit_ids::EventStreamDirection;

/// The dissector of one connection that takes turns.
#[derive(Debug)]
pub struct TurnDissector {
    /// The name of the protocol.
    name: &'static str,
    /// The side that sends requests.
    asks: EventStreamDirection,
    /// The message in progress.
    speaks: Option<Speech>,
    /// The exchange whose request is complete and whose response has not begun.
    open: Option<u64>,
    /// The number of the next exchange.
    next: u64,
}

/// The message of one side.
#[derive(Debug)]
struct Speech {
    exchange: u64,
    role: ExchangeRole,
    side: EventStreamDirection,
    /// The offset behind its last byte so far.
    end: u64,
}

impl TurnDissector {
    /// A dissector for a protocol with this name, in which the side `asks` sends requests.
    #[must_use]
    pub const fn new(name: &'static str, asks: EventStreamDirection) -> Self {
        Self {
            name,
            asks,
            speaks: None,
            open: None,
            next: 0,
        }
    }

    /// Takes bytes of a side, captured or not.
    fn add_bytes(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        count: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        if count == 0 {
            return;
        }
        match &mut self.speaks {
            Some(speech) if speech.side == side => speech.end = at + count,
            _ => self.turn(side, at, at + count, found),
        }
    }

    /// The other side speaks: its message begins.
    fn turn(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        end: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        self.finish(found);
        let role = if side == self.asks {
            ExchangeRole::Request
        } else {
            ExchangeRole::Response
        };
        let answered = self.open.take().filter(|_| role == ExchangeRole::Response);
        // If the side that is asked speaks first, its message is a greeting or the like.
        let kind = if role == ExchangeRole::Response && answered.is_none() {
            ExchangeKind::OneWay
        } else {
            ExchangeKind::Call
        };
        let exchange = answered.unwrap_or(self.next);
        self.next = self.next.max(exchange + 1);
        found.push(DissectorEvent::Begins {
            exchange,
            role,
            kind,
            side,
            at,
        });
        self.speaks = Some(Speech {
            exchange,
            role,
            side,
            end,
        });
    }

    /// Ends the message in progress.
    fn finish(&mut self, found: &mut Vec<DissectorEvent>) {
        if let Some(Speech {
            exchange,
            role,
            side,
            end,
        }) = self.speaks.take()
        {
            found.push(DissectorEvent::Ends {
                exchange,
                role,
                side,
                at: end,
            });
            self.open = (role == ExchangeRole::Request).then_some(exchange);
        }
    }
}

impl Dissector for TurnDissector {
    fn bytes(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        bytes: &[u8],
        found: &mut Vec<DissectorEvent>,
    ) {
        self.add_bytes(side, at, bytes.len() as u64, found);
    }

    fn unseen(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        count: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        self.add_bytes(side, at, count, found);
    }

    fn end(&mut self, side: EventStreamDirection, _: u64, found: &mut Vec<DissectorEvent>) {
        if self
            .speaks
            .as_ref()
            .is_some_and(|speech| speech.side == side)
        {
            self.finish(found);
        }
    }

    fn protocol(&self) -> &'static str {
        self.name
    }

    fn is_exact(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::script_testing::{DialogueScript, run_script};
    use super::*;

    #[test]
    fn a_side_speaks_until_the_other_does() {
        let mut turns = TurnDissector::new("turns", EventStreamDirection::There);
        let script: DialogueScript<'_> = &[
            ('>', b"one"),
            ('>', b"more"),
            ('<', b"answer"),
            ('>', b"two"),
            ('<', b"x"),
            ('<', b""),
        ];
        assert_eq!(
            run_script(&mut turns, script),
            [
                "0 request begins > 0",
                "0 request ends > 7",
                "0 response begins < 0",
                "0 response ends < 6",
                "1 request begins > 7",
                "1 request ends > 10",
                "1 response begins < 6",
                "1 response ends < 7",
            ]
        );
    }

    #[test]
    fn a_greeting_answers_nothing() {
        let mut turns = TurnDissector::new("turns", EventStreamDirection::There);
        let script: DialogueScript<'_> = &[
            ('<', b"220 ready"),
            ('>', b"HELO"),
            ('<', b"250"),
            ('<', b""),
        ];
        assert_eq!(
            run_script(&mut turns, script),
            [
                "0 response begins < 0 (one way)",
                "0 response ends < 9",
                "1 request begins > 0",
                "1 request ends > 4",
                "1 response begins < 9",
                "1 response ends < 12",
            ]
        );
    }
}
