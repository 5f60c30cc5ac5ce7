//! A connection of QUIC of which bytes decide what is sent and what its opened packets hold: for the fuzz target and the tests.
//!
//! The first byte chooses what is spoken within. Then each step is a byte, a length of two, and so many bytes: the lowest bit is the
//! side, the next says whether they are a datagram or the payload of an opened packet. Whatever comes: nothing panics, a message ends
//! once and after it began, of what is void nothing more is found, and what is held is bounded.

use stackline_dissect::conversation::reassembly::MOST_HELD;
use stackline_dissect::conversation::{DissectorEvent, ExchangeRole};
use stackline_dissect::left_out::Bound;
use stackline_dissect::quic::dissector::{QuicDissector, QuicEvent};
use stackline_events::unit_ids::EventStreamDirection;
use std::collections::BTreeSet;

/// What is spoken within.
const PROTOCOLS: [&[u8]; 3] = [b"h3", b"doq", b"?"];
/// Bytes that a connection may hold: behind holes, of streams that are not whole, of tables of header fields, of heads.
const MOST_BYTES: usize = 2 * MOST_HELD + (4 << 20) + 4 * Bound::Head.most();

#[derive(Default)]
struct FoundExchanges {
    begun: BTreeSet<(u64, ExchangeRole)>,
    ended: BTreeSet<(u64, ExchangeRole)>,
    void: BTreeSet<u64>,
}

/// Plays the steps that the bytes encode; how many messages ended.
///
/// # Panics
/// When what is found cannot be true.
pub fn fuzz_quic(bytes: &[u8]) -> usize {
    let Some((first, mut rest)) = bytes.split_first() else {
        return 0;
    };
    let mut dissector = QuicDissector::speaking(PROTOCOLS[usize::from(*first) % PROTOCOLS.len()]);
    let (mut judged, mut found) = (FoundExchanges::default(), Vec::new());
    while let [what, high, low, behind @ ..] = rest {
        let length = usize::from(*high) << 8 | usize::from(*low);
        let (said, behind) = behind.split_at(length.min(behind.len()));
        rest = behind;
        let side = match what & 1 {
            0 => EventStreamDirection::There,
            _ => EventStreamDirection::Back,
        };
        match what & 2 {
            0 => dissector.opened(side, said, &mut found),
            _ => dissector.datagram(side, said, &mut found),
        }
        found.drain(..).for_each(|event| judged.judge(&event));
        let held = dissector.held();
        assert!(held <= MOST_BYTES, "{held} bytes are held");
    }
    dissector.close(&mut found);
    found.drain(..).for_each(|event| judged.judge(&event));
    judged.ended.len()
}

impl FoundExchanges {
    fn judge(&mut self, event: &QuicEvent) {
        let found = match event {
            QuicEvent::Passes { from, end, .. } => return assert!(from <= end, "{event:?}"),
            QuicEvent::LeftOut(_, count) => return assert!(*count > 0, "{event:?}"),
            QuicEvent::Exchange(found) => found,
            _ => return,
        };
        let is_void = found
            .exchange()
            .is_some_and(|exchange| self.void.contains(&exchange));
        assert!(!is_void, "{found:?} of what is void");
        match found {
            DissectorEvent::Begins { exchange, role, .. } => {
                assert!(self.begun.insert((*exchange, *role)), "{found:?} twice");
            }
            DissectorEvent::Ends { exchange, role, .. } => {
                assert!(
                    self.begun.contains(&(*exchange, *role)),
                    "{found:?} and never began"
                );
                assert!(self.ended.insert((*exchange, *role)), "{found:?} twice");
            }
            DissectorEvent::Void { exchange, .. } => {
                assert!(self.void.insert(*exchange), "{found:?} twice");
            }
            _ => {}
        }
    }
}
