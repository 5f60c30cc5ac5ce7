//! A connection of which bytes decide what is said: for the fuzz target and the tests, which share it.
//!
//! The first byte chooses what was said before. Then each step is a byte, a length, and where it says so that many bytes. The byte's
//! lowest bit is the side, the next three say what happens: a segment comes, one that was not captured, a hole, something again, an
//! acknowledgement or the end. Whatever is said: nothing panics, a message ends once and after it began, of what is void nothing more
//! is found, nothing is found behind what was given, and what is held is bounded.

use stackline_dissect::conversation::connection::Conversation;
use stackline_dissect::conversation::reassembly::MOST_HELD;
use stackline_dissect::conversation::{DissectorEvent, ExchangeRole, LONGEST_NAME};
use stackline_events::unit_ids::EventStreamDirection;
use std::collections::BTreeSet;

/// Bytes that a connection may hold: behind holes, and of all that is not whole.
const BOUND: usize = 2 * MOST_HELD + (2 << 20);
/// What was said before.
const BEFORE: [&[u8]; 3] = [
    b"",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
];

struct FuzzedConversation {
    conversation: Conversation,
    /// Where the next segment of each side begins.
    at: [u64; 2],
    /// Where what was given of each side ends.
    given: [u64; 2],
    begun: BTreeSet<(u64, ExchangeRole)>,
    ended: BTreeSet<(u64, ExchangeRole)>,
    /// Exchanges of which nothing more can be known.
    void: BTreeSet<u64>,
}

/// Plays the steps that the bytes encode; how many messages ended.
///
/// # Panics
/// When what is found cannot be true.
pub fn fuzz_conversation(bytes: &[u8]) -> usize {
    let mut played = FuzzedConversation {
        conversation: Conversation::new(80),
        at: [0; 2],
        given: [0; 2],
        begun: BTreeSet::new(),
        ended: BTreeSet::new(),
        void: BTreeSet::new(),
    };
    let Some((before, mut rest)) = bytes.split_first() else {
        return 0;
    };
    played.segment(
        EventStreamDirection::There,
        BEFORE[usize::from(*before) % BEFORE.len()],
    );
    while let [what, length, behind @ ..] = rest {
        rest = behind;
        played.step(*what, *length, &mut rest);
    }
    played.ended.len()
}

impl FuzzedConversation {
    fn step(&mut self, what: u8, length: u8, rest: &mut &[u8]) {
        let side = if what & 1 == 0 {
            EventStreamDirection::There
        } else {
            EventStreamDirection::Back
        };
        let at = self.at[side as usize];
        let long = u64::from(length) << (what >> 4);
        match what >> 1 & 7 {
            0..=2 => {
                let (bytes, behind) = rest.split_at(rest.len().min(usize::from(length)));
                *rest = behind;
                self.segment(side, bytes);
            }
            3 => self.not_captured(side, long),
            4 => self.at[side as usize] = at + long,
            5 => self.at[side as usize] = at.saturating_sub(long),
            6 => self.acknowledged(side, at + (long << 20)),
            _ => self.end(side, at + long),
        }
    }

    fn segment(&mut self, side: EventStreamDirection, bytes: &[u8]) {
        let at = self.at[side as usize];
        self.reach(side, at + bytes.len() as u64);
        self.found(|conversation, found| {
            conversation.segment(side, at, bytes, bytes.len() as u64, found)
        });
    }

    fn not_captured(&mut self, side: EventStreamDirection, length: u64) {
        let at = self.at[side as usize];
        self.reach(side, at + length);
        self.found(|conversation, found| conversation.segment(side, at, &[], length, found));
    }

    fn acknowledged(&mut self, side: EventStreamDirection, to: u64) {
        self.reach(side, to);
        self.found(|conversation, found| conversation.acknowledged(side, to, found));
    }

    fn end(&mut self, side: EventStreamDirection, at: u64) {
        self.reach(side, at);
        self.found(|conversation, found| conversation.end(side, at, found));
    }

    fn reach(&mut self, side: EventStreamDirection, to: u64) {
        self.at[side as usize] = to;
        self.given[side as usize] = self.given[side as usize].max(to);
    }

    /// Lets the connection find something, and judges it.
    fn found(&mut self, find: impl FnOnce(&mut Conversation, &mut Vec<DissectorEvent>)) {
        let mut found = Vec::new();
        find(&mut self.conversation, &mut found);
        for found in &found {
            self.judge(found);
        }
        let held = self.conversation.held();
        assert!(held <= BOUND, "{held} bytes are held");
    }

    fn judge(&mut self, found: &DissectorEvent) {
        let is_void = found
            .exchange()
            .is_some_and(|exchange| self.void.contains(&exchange));
        assert!(!is_void, "{found:?} of what is void");
        match found {
            DissectorEvent::Begins {
                exchange,
                role,
                side,
                at,
                ..
            } => {
                assert!(
                    *at <= self.given[*side as usize],
                    "{found:?} behind what was given"
                );
                assert!(self.begun.insert((*exchange, *role)), "{found:?} twice");
            }
            DissectorEvent::Ends {
                exchange,
                role,
                side,
                at,
            } => {
                assert!(
                    *at <= self.given[*side as usize],
                    "{found:?} behind what was given"
                );
                assert!(
                    self.begun.contains(&(*exchange, *role)),
                    "{found:?} and never began"
                );
                assert!(self.ended.insert((*exchange, *role)), "{found:?} twice");
            }
            DissectorEvent::Part { side, at, .. } => {
                assert!(
                    *at <= self.given[*side as usize],
                    "{found:?} behind what was given"
                )
            }
            DissectorEvent::Named { name, .. } => {
                assert!(
                    name.kept().len().max(name.whole().len()) <= LONGEST_NAME,
                    "{found:?} is too long"
                )
            }
            DissectorEvent::InTrace { context, .. } => assert!(context.trace() != 0),
            DissectorEvent::GoesOn { exchange, of } => assert!(of < exchange, "{found:?}"),
            DissectorEvent::Void { exchange, .. } => {
                assert!(self.void.insert(*exchange), "{found:?} twice")
            }
            DissectorEvent::LeftOut(_, count) => assert!(*count > 0, "{found:?}"),
        }
    }
}
