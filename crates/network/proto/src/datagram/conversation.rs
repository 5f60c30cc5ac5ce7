//! One end of a conversation (a connection over UDP) as a state machine without clock and socket: it numbers data units and calls, counts
//! losses, handles control datagrams (HELLO, START, END, BYE and their answers), and repeats those until they are answered.
//!
//! Time is an argument. The live and the simulated world provide sockets, buffers and waiting.

use super::control::{ANSWER, DatagramControl};
use super::loss_counter::Sequence;
use super::{
    COUNT_BITS, COUNT_MASK, FAREWELL, FIRST_REPEAT, LAST_PATIENCE, LAST_REPEAT, NUMBER, NUMBERS,
    PATIENCE, UnitLosses,
};
use stackline_core::time::{Duration, Instant};

/// The most calls that may be lost in a row; a call further ahead is taken for one of another conversation.
const MOST_CALLS_LOST: u64 = 1 << 16;

/// A peer's next answer may take this many times as long as its slowest one so far, before it is given up.
const PATIENCE_TRIPS: u64 = 4;

/// A control datagram that is repeated until it is answered.
#[derive(Debug)]
struct PendingControl {
    kind: DatagramControl,
    value: u64,
    /// When it was requested.
    begun: Instant,
    /// When it is given up.
    give_up: Instant,
    /// When it is sent next.
    next: Instant,
    /// The time until it is sent after that; doubles each time.
    repeat: Duration,
    sent: bool,
    answered: bool,
    /// `ahead` and `transfer` of the conversation when it was requested: if they have grown, the peer has got the request.
    ahead: u64,
    transfer: u64,
}

/// What to do about a control datagram that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlStep {
    /// Send a control datagram of that kind and value, then wait until the deadline or for a datagram.
    Send(u8, u64),
    /// Wait until the deadline or for a datagram.
    Wait,
    /// The control datagram was answered.
    Answered,
    /// The peer does not answer.
    GivenUp,
}

/// The kind of a data unit that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramUnit {
    /// A call, or the answer to one.
    Call,
    /// A data unit with this number.
    Numbered(u64),
    /// A data unit too short for a number.
    Unnumbered,
    /// A duplicate, or too late to be counted.
    Repeated,
}

/// One end of a conversation.
#[derive(Debug, Default)]
pub struct DatagramConversation {
    /// The number of the next data unit, or of the last call.
    next_number: u64,
    /// The numbers that arrived, from which losses are counted.
    sequence: Sequence,
    received_bytes: u64,
    /// Data units that arrived and were not taken yet.
    ahead: u64,
    /// The first bytes of the last call or answer, which are its number, and how many of them arrived.
    head: [u8; NUMBER],
    head_bytes: usize,
    /// Whether the conversation consists of calls.
    calling: bool,
    /// Whether a call is awaited, and no data unit.
    awaiting_call: bool,
    /// The number of the last call that arrived.
    last_call: u64,
    lost_calls: u64,
    /// The number of bulk transfers begun by either end; an END of an earlier one is ignored.
    transfer: u64,
    /// How many units the peer says it sent, in all transfers.
    peer_sent: Option<u64>,
    /// The peer's HELLO has arrived.
    greeted: bool,
    /// The peer has begun a transfer that was not taken note of yet.
    started: bool,
    /// The peer's present transfer is over.
    ended: bool,
    /// The own present transfer is over, and the peer has answered that.
    end_sent: bool,
    closed: bool,
    request: Option<PendingControl>,
    /// The longest time that the peer took to answer.
    slowest_answer: Duration,
}

impl DatagramConversation {
    /// A conversation in which nothing was sent and nothing has arrived.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    // --- control ---

    /// Notes that the peer's HELLO has arrived; the caller received it and answers it.
    pub const fn greet(&mut self) {
        self.greeted = true;
    }

    /// Requests a control datagram, which [`DatagramConversation::poll`] repeats until it is answered. START begins a transfer.
    pub fn request(&mut self, now: Instant, kind: DatagramControl) {
        let value = match kind {
            DatagramControl::Hello => 0,
            DatagramControl::Start => {
                self.transfer += 1;
                (self.ended, self.end_sent) = (false, false);
                self.transfer
            }
            DatagramControl::End => (self.transfer << COUNT_BITS) | (self.next_number & COUNT_MASK),
            DatagramControl::Bye if self.calling => 0,
            DatagramControl::Bye => self.next_number,
        };
        let patience = match kind {
            DatagramControl::Bye => FAREWELL,
            DatagramControl::End => LAST_PATIENCE,
            DatagramControl::Hello | DatagramControl::Start => PATIENCE,
        };
        self.request = Some(PendingControl {
            kind,
            value,
            begun: now,
            give_up: now + Duration(patience.0.max(PATIENCE_TRIPS * self.slowest_answer.0)),
            next: now,
            repeat: FIRST_REPEAT,
            sent: false,
            answered: false,
            ahead: self.ahead,
            transfer: self.transfer,
        });
    }

    /// What to do about the requested control datagram. The first repetitions are quick, since a transfer is timed until its END.
    pub fn poll(&mut self, now: Instant) -> ControlStep {
        let answered = self.is_answered();
        let Some(request) = &mut self.request else {
            return ControlStep::Answered;
        };
        // It goes out at least once: the peer may wait for it.
        if request.sent && answered {
            self.slowest_answer = self.slowest_answer.max(now.since(request.begun));
            self.end_sent |= request.kind == DatagramControl::End;
            self.request = None;
            return ControlStep::Answered;
        }
        if now < request.next {
            return ControlStep::Wait;
        }
        if now >= request.give_up {
            self.request = None;
            return ControlStep::GivenUp;
        }
        request.sent = true;
        request.next = now + request.repeat;
        request.repeat = Duration((request.repeat.0 * 2).min(LAST_REPEAT.0));
        ControlStep::Send(request.kind as u8, request.value)
    }

    /// When the requested control datagram is sent again or given up.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.request.as_ref().map(|request| request.next)
    }

    /// Whether the request was answered. The answer may be lost: then anything that the peer sends only after the request counts as one.
    fn is_answered(&self) -> bool {
        let Some(request) = &self.request else {
            return true;
        };
        request.answered
            || match request.kind {
                DatagramControl::Hello => false,
                DatagramControl::Start => self.ahead > request.ahead || self.ended || self.closed,
                DatagramControl::End => self.transfer > request.transfer || self.closed,
                DatagramControl::Bye => self.closed,
            }
    }

    /// Handles a control datagram. Returns the kind of the answer to send, if it needs one.
    pub fn handle_control(&mut self, kind: u8, value: u64) -> Option<u8> {
        if kind & ANSWER != 0 {
            if let Some(request) = &mut self.request {
                request.answered |= request.sent && request.kind as u8 == kind & !ANSWER;
            }
            return None;
        }
        let kind = DatagramControl::from_kind(kind)?;
        match kind {
            DatagramControl::Hello if self.greeted => {}
            // Everything that arrived before belongs to an earlier connection.
            DatagramControl::Hello => {
                self.greeted = true;
                (
                    self.started,
                    self.ended,
                    self.closed,
                    self.peer_sent,
                    self.transfer,
                ) = (false, false, false, None, 0);
                (
                    self.ahead,
                    self.received_bytes,
                    self.sequence,
                    self.last_call,
                ) = (0, 0, Sequence::new(), 0);
            }
            // The number distinguishes a new transfer from a repeated START of the present one.
            DatagramControl::Start if value > self.transfer => {
                (self.started, self.ended, self.end_sent, self.transfer) =
                    (true, false, false, value);
            }
            DatagramControl::End if value >> COUNT_BITS == self.transfer => {
                (self.ended, self.peer_sent) = (true, Some(value & COUNT_MASK));
            }
            DatagramControl::Start | DatagramControl::End => {}
            DatagramControl::Bye => {
                self.closed = true;
                // 0 says nothing: an end with calls does not count units.
                self.peer_sent = self.peer_sent.or(Some(value).filter(|sent| *sent > 0));
            }
        }
        Some(kind as u8 | ANSWER)
    }

    /// The peer's socket is gone: its BYE or the answer to it was lost. Before HELLO is answered it may not be there yet.
    pub fn refused(&mut self) {
        self.closed |= self
            .request
            .as_ref()
            .is_none_or(|request| request.kind != DatagramControl::Hello);
    }

    // --- data units ---

    /// Handles a data unit of `bytes` bytes; `head` holds its first 8 bytes, or all of a shorter one.
    #[inline]
    pub fn handle_unit(&mut self, head: &[u8], bytes: u64) -> DatagramUnit {
        if self.calling {
            return self.handle_call(&head[..head.len().min(NUMBER)]);
        }
        let unit = match head.first_chunk::<NUMBER>() {
            Some(number) => DatagramUnit::Numbered(u64::from_le_bytes(*number) % NUMBERS),
            None => DatagramUnit::Unnumbered,
        };
        if let DatagramUnit::Numbered(number) = unit
            && !self.sequence.arrived(number)
        {
            return DatagramUnit::Repeated;
        }
        self.ahead += 1;
        self.received_bytes += bytes;
        unit
    }

    /// Handles a call, an answer, or a data unit between calls; `head` holds the bytes of its number. Calls are numbered one after the
    /// other, so a call that is not slightly ahead of the last one is a duplicate, or belongs to another conversation.
    #[inline]
    fn handle_call(&mut self, head: &[u8]) -> DatagramUnit {
        let mut number = [0; NUMBER];
        number[..head.len()].copy_from_slice(head);
        let (arrived, shown) = (u64::from_le_bytes(number), 8 * head.len() as u32);
        // A short call carries only the low bits of its number: at most half of their values count as ahead, the others as behind.
        let mask = u64::MAX.checked_shr(u64::BITS - shown).unwrap_or(0);
        let ahead = (arrived.wrapping_sub(self.last_call) % NUMBERS) & mask;
        if self.awaiting_call {
            if ahead == 0 || ahead > MOST_CALLS_LOST.min(mask / 2) {
                return DatagramUnit::Repeated;
            }
            self.last_call = arrived;
        }
        (self.head, self.head_bytes) = (number, head.len());
        self.ahead += 1;
        DatagramUnit::Call
    }

    /// Whether `units` data units have arrived, or no more will come.
    #[inline]
    #[must_use]
    pub const fn has_units(&self, units: u64) -> bool {
        self.ahead >= units || self.has_ended()
    }

    /// How many data units have arrived and were not taken, at most `units`.
    #[inline]
    #[must_use]
    pub fn units(&self, units: u64) -> u64 {
        self.ahead.min(units)
    }

    /// Takes at most `units` data units. Returns how many.
    #[inline]
    pub fn take_units(&mut self, units: u64) -> u64 {
        let units = self.units(units);
        self.ahead -= units;
        units
    }

    /// The number of the next data unit to be sent.
    #[inline]
    #[must_use]
    pub const fn next_number(&self) -> u64 {
        self.next_number
    }

    /// Notes that `units` data units were sent.
    #[inline]
    pub const fn sent(&mut self, units: u64) {
        self.next_number += units;
    }

    // --- calls ---

    /// Begins a call. Returns its number; calls are numbered from 1.
    #[inline]
    pub const fn call(&mut self) -> u64 {
        self.calling = true;
        self.next_number = (self.next_number + 1) % NUMBERS;
        self.next_number
    }

    /// From here on, arriving units are calls, until data units are awaited again.
    #[inline]
    pub const fn await_call(&mut self) {
        (self.calling, self.awaiting_call) = (true, true);
    }

    /// From here on, arriving units are data units; the conversation may still consist of calls.
    #[inline]
    pub const fn await_units(&mut self) {
        self.awaiting_call = false;
    }

    /// Takes all units that have arrived. Whether the first `bytes` bytes of the last one are those of `number`.
    #[inline]
    pub fn take_answer(&mut self, number: u64, bytes: usize) -> bool {
        core::mem::take(&mut self.ahead) > 0 && self.head[..bytes] == number.to_le_bytes()[..bytes]
    }

    /// Notes that a call got no answer.
    pub const fn call_lost(&mut self) {
        self.lost_calls += 1;
    }

    /// The first bytes of the last call or answer.
    #[inline]
    #[must_use]
    pub const fn head(&self) -> &[u8; NUMBER] {
        &self.head
    }

    /// How many bytes of [`DatagramConversation::head`] arrived.
    #[must_use]
    pub const fn head_bytes(&self) -> usize {
        self.head_bytes
    }

    // --- what is known ---

    /// Whether the conversation consists of calls.
    #[must_use]
    pub const fn is_calling(&self) -> bool {
        self.calling
    }

    /// Whether the peer has said HELLO.
    #[must_use]
    pub const fn is_greeted(&self) -> bool {
        self.greeted
    }

    /// Whether the peer has closed the conversation.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether the peer has begun a transfer or closed the conversation.
    #[must_use]
    pub const fn has_started(&self) -> bool {
        self.started || self.closed
    }

    /// Whether the peer has begun a transfer, once for each.
    pub const fn take_started(&mut self) -> bool {
        core::mem::replace(&mut self.started, false)
    }

    /// Whether the peer's transfer is over.
    #[inline]
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.ended || self.closed
    }

    /// Whether the peer has answered the END of this end's transfer.
    #[must_use]
    pub const fn end_sent(&self) -> bool {
        self.end_sent
    }

    /// How many data units the peer says it sent.
    #[must_use]
    pub const fn peer_sent(&self) -> Option<u64> {
        self.peer_sent
    }

    /// What was lost, as far as it is known.
    #[must_use]
    pub fn losses(&self) -> Option<UnitLosses> {
        if self.calling {
            return Some(UnitLosses {
                lost: self.lost_calls,
                ..UnitLosses::default()
            });
        }
        self.peer_sent.map(|sent| self.sequence.losses(sent))
    }

    /// One more than the highest number of a data unit that arrived, and how many different ones have; `None` in a conversation of calls.
    #[must_use]
    pub fn progress(&self) -> Option<(u64, u64)> {
        (!self.calling).then(|| self.sequence.progress())
    }

    /// Bytes of the data units that arrived; `None` in a conversation of calls, where they are not counted.
    #[must_use]
    pub fn received_bytes(&self) -> Option<u64> {
        (!self.calling).then_some(self.received_bytes)
    }
}

#[cfg(test)]
mod tests;
