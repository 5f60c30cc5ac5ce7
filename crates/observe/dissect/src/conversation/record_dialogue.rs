//! What protocols of records share: bytes of both sides to whole records, one number for each exchange, and another protocol that
//! takes over. A protocol says where its records end and what each means.

use super::records::{Extent, RecordInput, RecordParser, RecordProgress, Skipped};
use super::{Dissector, DissectorEvent, ExchangeKind, ExchangeRole, RedactedName, renumber};
use stackline_events::unit_ids::EventStreamDirection;
use std::fmt;

/// Both sides of one connection.
#[derive(Debug, Default)]
pub(super) struct RecordDialogue {
    sides: [RecordSide; 2],
    next: u64,
    /// The protocol that took over, and how many exchanges were before it.
    inner: Option<(Box<dyn Dissector>, u64)>,
}

#[derive(Debug, Default)]
struct RecordSide {
    records: RecordParser,
    /// Where records begin is not known.
    lost: bool,
}

impl RecordDialogue {
    /// The record of one side that goes on, or was whole last.
    pub(super) const fn records(&self, side: EventStreamDirection) -> &RecordParser {
        &self.sides[side as usize].records
    }

    /// The number of the next exchange.
    const fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// The client's next request begins: its exchange.
    pub(super) fn begin_request(
        &mut self,
        kind: ExchangeKind,
        at: u64,
        found: &mut Vec<DissectorEvent>,
    ) -> u64 {
        let exchange = self.number();
        found.push(DissectorEvent::begins(
            exchange,
            ExchangeRole::Request,
            kind,
            at,
        ));
        exchange
    }

    /// The server says something that answers nothing: its exchange.
    pub(super) fn begin_notice(&mut self, at: u64, found: &mut Vec<DissectorEvent>) -> u64 {
        let (exchange, kind) = (self.number(), ExchangeKind::OneWay);
        let role = ExchangeRole::Response;
        found.push(DissectorEvent::begins(exchange, role, kind, at));
        exchange
    }

    /// The record of one side that is whole answers nothing and is not answered.
    pub(super) fn one_way(
        &mut self,
        role: ExchangeRole,
        name: RedactedName,
        found: &mut Vec<DissectorEvent>,
    ) {
        let exchange = self.number();
        let records = self.records(role.sender());
        let (at, end) = (records.at(), records.end());
        found.extend(DissectorEvent::one_way(exchange, role, name, at, end));
    }

    /// Bytes of the records that go on.
    #[cfg(test)]
    pub(super) fn held(&self) -> [usize; 2] {
        self.sides.each_ref().map(|side| side.records.held().len())
    }

    /// Whether nothing is known of what one side says.
    pub(super) const fn is_lost(&self, side: EventStreamDirection) -> bool {
        self.sides[side as usize].lost
    }

    /// Whether nobody asked anything yet, and no record has begun.
    pub(super) fn is_untouched(&self) -> bool {
        self.next == 0 && self.sides.iter().all(|side| side.records.is_between())
    }

    /// A record begins on one side.
    pub(super) fn begin_side_anew(&mut self, side: EventStreamDirection) {
        self.sides[side as usize] = RecordSide::default();
    }

    /// What one side says from now on is not looked at.
    pub(super) const fn lose_side(&mut self, side: EventStreamDirection) {
        self.sides[side as usize].lost = true;
    }

    /// Nothing is known of both sides until a record is found again.
    pub(super) fn lose(&mut self) {
        self.sides = Default::default();
        self.sides.iter_mut().for_each(|side| side.lost = true);
    }

    /// A record begins on both sides.
    pub(super) fn begin_anew(&mut self) {
        self.sides = Default::default();
    }

    /// The rest is said in another protocol.
    pub(super) fn hand_over(&mut self, inner: Box<dyn Dissector>) {
        self.inner = Some((inner, self.next));
    }

    /// The protocol that took over.
    pub(super) fn inner(&self) -> Option<&dyn Dissector> {
        self.inner.as_ref().map(|(inner, _)| inner.as_ref())
    }

    /// Passes to the protocol that took over, if one did, and numbers what it finds behind the exchanges before it.
    fn within(
        &mut self,
        found: &mut Vec<DissectorEvent>,
        pass: impl FnOnce(&mut dyn Dissector, &mut Vec<DissectorEvent>),
    ) -> bool {
        let Some((inner, before)) = &mut self.inner else {
            return false;
        };
        let from = found.len();
        pass(inner.as_mut(), found);
        renumber(&mut found[from..], *before);
        true
    }
}

/// A protocol of records. What implements it is a [`Dissector`].
pub(super) trait RecordProtocol: fmt::Debug + Send {
    /// The protocol's name.
    const NAME: &'static str;
    /// What is said of bytes of another protocol.
    const FOREIGN: &'static str;

    /// What the form of a record depends on.
    type Phase: Copy;

    /// What it shares with other protocols of records: `dialogue_getters!` gives both.
    fn dialogue(&self) -> &RecordDialogue;

    /// The same, to change it.
    fn dialogue_mut(&mut self) -> &mut RecordDialogue;

    /// How far the connection is.
    fn phase(&self) -> Self::Phase;

    /// What the connection is called, within another protocol too.
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// What the head of a record says.
    fn extent(phase: Self::Phase, side: EventStreamDirection, head: &[u8]) -> Extent;

    /// Looks whether bytes at the beginning of a segment begin a record, where none is known.
    fn find_again(&mut self, _side: EventStreamDirection, _bytes: &[u8]) {}

    /// The head of a record is whole.
    fn headed(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>);

    /// A record is whole.
    fn record(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>);

    /// Nothing is known until a record is found again, and nothing of what waits for an answer.
    fn lose(&mut self, why: &'static str, found: &mut Vec<DissectorEvent>);

    /// A side says nothing more.
    fn side_ended(&mut self, _side: EventStreamDirection, _found: &mut Vec<DissectorEvent>) {}
}

/// The getters of a protocol that keeps its dialogue in a field of that name.
macro_rules! dialogue_getters {
    () => {
        fn dialogue(&self) -> &RecordDialogue {
            &self.dialogue
        }

        fn dialogue_mut(&mut self) -> &mut RecordDialogue {
            &mut self.dialogue
        }
    };
}
pub(super) use dialogue_getters;

impl<P: RecordProtocol> Dissector for P {
    fn bytes(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        bytes: &[u8],
        found: &mut Vec<DissectorEvent>,
    ) {
        self.find_again(side, bytes);
        let mut input = RecordInput { at, bytes };
        loop {
            let RecordInput { at, bytes } = input;
            let phase = self.phase();
            let dialogue = self.dialogue_mut();
            if dialogue.within(found, |inner, found| inner.bytes(side, at, bytes, found))
                || dialogue.is_lost(side)
            {
                return;
            }
            let records = &mut dialogue.sides[side as usize].records;
            match records.next(&mut input, |head| P::extent(phase, side, head)) {
                None => return,
                Some(RecordProgress::Head) => self.headed(side, found),
                Some(RecordProgress::Whole) => self.record(side, found),
                Some(RecordProgress::Wrong) => self.lose(P::FOREIGN, found),
            }
        }
    }

    fn unseen(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        count: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        let dialogue = self.dialogue_mut();
        if dialogue.within(found, |inner, found| inner.unseen(side, at, count, found))
            || dialogue.is_lost(side)
        {
            return;
        }
        let skipped = dialogue.sides[side as usize].records.unseen(count);
        if matches!(skipped, Skipped::Whole | Skipped::Beyond) {
            self.record(side, found);
        }
        if matches!(skipped, Skipped::Beyond | Skipped::Lost) {
            self.lose("some of its bytes were not captured", found);
        }
    }

    fn end(&mut self, side: EventStreamDirection, at: u64, found: &mut Vec<DissectorEvent>) {
        let dialogue = self.dialogue_mut();
        if dialogue.within(found, |inner, found| inner.end(side, at, found)) {
            return;
        }
        if !dialogue.is_lost(side) && !dialogue.records(side).is_between() {
            self.lose("the connection ended in the middle of it", found);
        }
        self.side_ended(side, found);
    }

    fn protocol(&self) -> &'static str {
        self.name()
    }

    fn is_exact(&self) -> bool {
        self.dialogue().inner().is_none_or(Dissector::is_exact)
    }
}
