//! What protocols of records (heads that announce bodies) share: it splits the bytes of both sides into records, numbers exchanges, and
//! lets another protocol take over. A [`RecordProtocol`] only says where its records end and what they mean.

use super::records::{Extent, RecordInput, RecordParser, RecordProgress, Skipped};
use super::{Dissector, DissectorEvent, ExchangeKind, ExchangeRole, RedactedName, renumber};
use stackline_events::unit_ids::EventStreamDirection;
use std::fmt;

/// Both sides of one connection.
#[derive(Debug, Default)]
pub(super) struct RecordDialogue {
    sides: [RecordSide; 2],
    /// The number of the next exchange.
    next: u64,
    /// The protocol that took over, and how many exchanges came before it.
    inner: Option<(Box<dyn Dissector>, u64)>,
}

/// One side of the connection.
#[derive(Debug, Default)]
struct RecordSide {
    records: RecordParser,
    /// Whether the position of record boundaries is lost.
    lost: bool,
}

impl RecordDialogue {
    /// The parser of one side, with the record that is in progress or was completed last.
    pub(super) const fn records(&self, side: EventStreamDirection) -> &RecordParser {
        &self.sides[side as usize].records
    }

    /// Takes the number for a new exchange.
    const fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Begins a request of the client; returns its exchange.
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

    /// Begins a message of the server that answers nothing; returns its exchange.
    pub(super) fn begin_notice(&mut self, at: u64, found: &mut Vec<DissectorEvent>) -> u64 {
        let (exchange, kind) = (self.number(), ExchangeKind::OneWay);
        let role = ExchangeRole::Response;
        found.push(DissectorEvent::begins(exchange, role, kind, at));
        exchange
    }

    /// Reports the complete record of a side as a message that neither answers nor is answered.
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

    /// For tests: the bytes held of each side's record.
    #[cfg(test)]
    pub(super) fn held(&self) -> [usize; 2] {
        self.sides.each_ref().map(|side| side.records.held().len())
    }

    /// Whether one side is given up.
    pub(super) const fn is_lost(&self, side: EventStreamDirection) -> bool {
        self.sides[side as usize].lost
    }

    /// Whether no exchange and no record has begun.
    pub(super) fn is_untouched(&self) -> bool {
        self.next == 0 && self.sides.iter().all(|side| side.records.is_between())
    }

    /// A record begins on one side: its parser starts anew.
    pub(super) fn begin_side_anew(&mut self, side: EventStreamDirection) {
        self.sides[side as usize] = RecordSide::default();
    }

    /// Ignores what one side says from here on.
    pub(super) const fn lose_side(&mut self, side: EventStreamDirection) {
        self.sides[side as usize].lost = true;
    }

    /// Gives up both sides until a record is found again.
    pub(super) fn lose(&mut self) {
        self.sides = Default::default();
        self.sides.iter_mut().for_each(|side| side.lost = true);
    }

    /// A record begins on both sides: their parsers start anew.
    pub(super) fn begin_anew(&mut self) {
        self.sides = Default::default();
    }

    /// Another protocol takes over the rest of the connection.
    pub(super) fn hand_over(&mut self, inner: Box<dyn Dissector>) {
        self.inner = Some((inner, self.next));
    }

    /// The protocol that took over.
    pub(super) fn inner(&self) -> Option<&dyn Dissector> {
        self.inner.as_ref().map(|(inner, _)| inner.as_ref())
    }

    /// Calls the protocol that took over, if there is one, and renumbers the exchanges it finds; returns whether there is one.
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

/// A protocol of records. Every implementation is a [`Dissector`].
pub(super) trait RecordProtocol: fmt::Debug + Send {
    /// The protocol's name.
    const NAME: &'static str;
    /// The reason of the void if bytes are not of the protocol.
    const FOREIGN: &'static str;

    /// The state on which the form of the next record depends.
    type Phase: Copy;

    /// The state that all protocols of records share; `dialogue_getters!` implements both getters.
    fn dialogue(&self) -> &RecordDialogue;

    /// The same, to change it.
    fn dialogue_mut(&mut self) -> &mut RecordDialogue;

    /// The state of the connection.
    fn phase(&self) -> Self::Phase;

    /// The protocol's name, also if another protocol has taken over.
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// Reads the extent of a record from its head.
    fn extent(phase: Self::Phase, side: EventStreamDirection, head: &[u8]) -> Extent;

    /// Checks, after a gap, whether the bytes at the beginning of a segment begin a record.
    fn find_again(&mut self, _side: EventStreamDirection, _bytes: &[u8]) {}

    /// The head of a record was read.
    fn headed(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>);

    /// A record is complete.
    fn record(&mut self, side: EventStreamDirection, found: &mut Vec<DissectorEvent>);

    /// Gives up until a record is found again, and voids all requests that wait for a response.
    fn lose(&mut self, why: &'static str, found: &mut Vec<DissectorEvent>);

    /// A side sends nothing more.
    fn side_ended(&mut self, _side: EventStreamDirection, _found: &mut Vec<DissectorEvent>) {}
}

/// Implements the getters for a protocol with a field `dialogue`.
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
