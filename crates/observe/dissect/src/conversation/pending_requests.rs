//! A queue of requests that wait for their responses, in order. At most [`MOST_WAITING`] are kept in full. Of those beyond, only what is
//! needed to find the end of the response is kept, and equal ones are counted together, so that each response still goes to its own
//! request.

use super::{DissectorEvent, ExchangeKind, ExchangeRole, MOST_WAITING, RedactedName, TOO_MANY};
use crate::left_out::Bound;
use std::collections::VecDeque;

/// Stands for the exchange of a request that was left out: no events are made of its response.
const LEFT_OUT: u64 = u64::MAX;
/// The most requests that are left out and differ from the one before; with more, responses can no longer be matched.
const MOST_UNLIKE: usize = 8 * Bound::Waiting.most();

/// A request that waits for its response.
pub(super) trait PendingExchange: Clone + PartialEq {
    /// The number of its exchange.
    fn exchange(&mut self) -> &mut u64;

    /// Drops what would take memory in a request that is left out; returns the limit at which that counts, if any.
    fn shrink(&mut self) -> Option<Bound> {
        None
    }
}

/// The waiting requests of one connection.
#[derive(Debug)]
pub(super) struct PendingExchangeQueue<W> {
    /// Each request, with the number of equal ones that follow it; those are all left out.
    waiting: VecDeque<(W, u64)>,
    /// The number of requests that are not left out.
    known: usize,
    /// Whether there were too many different ones, so that responses can no longer be matched.
    is_out_of_step: bool,
}

impl<W> Default for PendingExchangeQueue<W> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            known: 0,
            is_out_of_step: false,
        }
    }
}

impl<W: PendingExchange> PendingExchangeQueue<W> {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The number of records in the queue.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn push_back(&mut self, waiting: W) {
        self.waiting.push_back((waiting, 0));
        self.known += 1;
    }

    pub(super) fn front(&self) -> Option<&W> {
        self.waiting.front().map(|(waiting, _)| waiting)
    }

    /// The first request, separated from equal ones so that it can be changed.
    pub(super) fn front_mut(&mut self) -> Option<&mut W> {
        // A change of the first request must not affect the equal ones behind it.
        if let Some((waiting, more @ 1..)) = self.waiting.front_mut() {
            *more -= 1;
            let first = waiting.clone();
            self.waiting.push_front((first, 0));
        }
        self.waiting.front_mut().map(|(waiting, _)| waiting)
    }

    pub(super) fn back(&self) -> Option<&W> {
        self.waiting.back().map(|(waiting, _)| waiting)
    }

    /// The last request, unless it is left out.
    pub(super) fn back_mut(&mut self) -> Option<&mut W> {
        let (waiting, _) = self.waiting.back_mut()?;
        (*waiting.exchange() != LEFT_OUT).then_some(waiting)
    }

    pub(super) fn pop_front(&mut self) -> Option<W> {
        self.front_mut()?;
        let (mut waiting, _) = self.waiting.pop_front()?;
        self.known -= usize::from(*waiting.exchange() != LEFT_OUT);
        Some(waiting)
    }

    /// Removes the last request, unless it is left out.
    pub(super) fn pop_back(&mut self) {
        if self.back_mut().is_some() {
            self.waiting.pop_back();
            self.known -= 1;
        }
    }

    /// Empties the queue; returns the exchanges that are not left out.
    pub(super) fn clear(&mut self) -> Vec<u64> {
        self.known = 0;
        let exchanges = self
            .waiting
            .drain(..)
            .map(|(mut waiting, _)| *waiting.exchange());
        exchanges.filter(|exchange| *exchange != LEFT_OUT).collect()
    }

    /// Called when the last request is complete: leaves it out if too many wait. Returns whether responses can still be matched; if not,
    /// the other side must be ignored from here on.
    pub(super) fn settle(&mut self, exchange: u64, found: &mut Vec<DissectorEvent>) -> bool {
        if self.known <= MOST_WAITING && !self.is_out_of_step {
            return true;
        }
        let is_last = self
            .back_mut()
            .is_some_and(|last| *last.exchange() == exchange);
        let Some((mut last, _)) = is_last.then(|| self.waiting.pop_back()).flatten() else {
            return !self.is_out_of_step;
        };
        self.known -= 1;
        found.push(DissectorEvent::Void {
            exchange,
            why: TOO_MANY,
        });
        found.push(DissectorEvent::LeftOut(Bound::Waiting, 1));
        if self.is_out_of_step {
            return false;
        }
        *last.exchange() = LEFT_OUT;
        found.extend(last.shrink().map(|bound| DissectorEvent::LeftOut(bound, 1)));
        match self.waiting.back_mut() {
            Some((before, more)) if *before == last => *more += 1,
            _ => self.waiting.push_back((last, 0)),
        }
        self.is_out_of_step = self.waiting.len() > MOST_WAITING + MOST_UNLIKE;
        if self.is_out_of_step {
            let known = self.clear();
            found.push(DissectorEvent::LeftOut(Bound::Waiting, known.len() as u64));
            found.extend(known.into_iter().map(|exchange| DissectorEvent::Void {
                exchange,
                why: TOO_MANY,
            }));
        }
        !self.is_out_of_step
    }
}

/// Adds an event of a response, unless its request was left out.
pub(super) fn of_answer(one: DissectorEvent, found: &mut Vec<DissectorEvent>) {
    found.extend((one.exchange() != Some(LEFT_OUT)).then_some(one));
}

/// Adds the event that a response begins.
pub(super) fn answer_begins(
    exchange: u64,
    kind: ExchangeKind,
    at: u64,
    found: &mut Vec<DissectorEvent>,
) {
    of_answer(
        DissectorEvent::begins(exchange, ExchangeRole::Response, kind, at),
        found,
    );
}

/// Adds the events that a response is complete, with its status.
pub(super) fn answer_ends(
    exchange: u64,
    status: RedactedName,
    at: u64,
    found: &mut Vec<DissectorEvent>,
) {
    let role = ExchangeRole::Response;
    of_answer(DissectorEvent::named(exchange, role, status), found);
    of_answer(DissectorEvent::ends(exchange, role, at), found);
}

/// The exchange of a response, unless its request was left out.
pub(super) const fn known_exchange(exchange: u64) -> Option<u64> {
    if exchange == LEFT_OUT {
        None
    } else {
        Some(exchange)
    }
}

#[cfg(test)]
mod tests;
