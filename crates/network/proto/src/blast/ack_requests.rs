//! Requests for answers in the order in which they were sent, and when the first open one is due.
//!
//! The list holds no blasts: its [sender](super::sender) decides whether a request is still open.

use super::answer_timeout::{BlastSenderWait, RttEstimator};
use alloc::collections::VecDeque;
use stackline_core::time::Instant;

/// The number of requests that are kept in any case.
const KEPT: usize = 64;

/// A request in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckRequest {
    pub(super) number: u32,
    pub(super) round: u16,
    /// When it was sent.
    at: Instant,
    /// Its number among all requests, from 1.
    order: u64,
}

/// All requests in flight.
#[derive(Clone, Debug, Default)]
pub(super) struct AckRequests {
    waiting: VecDeque<AckRequest>,
    /// The number of requests sent so far.
    orders: u64,
    /// The largest number of a request that was answered.
    answered: u64,
}

impl AckRequests {
    /// Adds a request about a round of a blast. Returns its number among all requests.
    pub(super) fn ask(&mut self, number: u32, round: u16, now: Instant) -> u64 {
        self.orders += 1;
        self.waiting.push_back(AckRequest {
            number,
            round,
            at: now,
            order: self.orders,
        });
        self.orders
    }

    /// Removes requests that are no longer open once there are more than the blasts in flight can have; otherwise their
    /// number would grow with the answers.
    pub(super) fn prune(&mut self, in_flight: usize, is_open: impl FnMut(&AckRequest) -> bool) {
        if self.waiting.len() > bound(in_flight) {
            self.waiting.retain(is_open);
        }
    }

    /// Notes that the request with that number was answered.
    pub(super) fn answered(&mut self, order: u64) {
        self.answered = self.answered.max(order);
    }

    /// Removes all requests.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Removes and returns the first request.
    pub(super) fn pop(&mut self) -> Option<AckRequest> {
        self.waiting.pop_front()
    }

    /// When the first open request is due; requests that are no longer open are removed.
    pub(super) fn due(
        &mut self,
        rtt: &RttEstimator,
        is_open: impl Fn(&AckRequest) -> bool,
    ) -> Option<(Instant, BlastSenderWait)> {
        while !is_open(self.waiting.front()?) {
            self.waiting.pop_front();
        }
        self.waiting
            .front()
            .map(|request| self.due_of(request, rtt))
    }

    fn due_of(&self, request: &AckRequest, rtt: &RttEstimator) -> (Instant, BlastSenderWait) {
        let timeout = request.at + rtt.timeout();
        match rtt.overtaken().filter(|_| request.order < self.answered) {
            Some(wait) if request.at + wait < timeout => {
                (request.at + wait, BlastSenderWait::Overtaken)
            }
            _ => (timeout, BlastSenderWait::Timeout),
        }
    }
}

/// The most requests that are kept with this many blasts in flight.
const fn bound(in_flight: usize) -> usize {
    KEPT + 2 * in_flight
}

#[cfg(test)]
impl AckRequests {
    /// Checks the invariants.
    pub(super) fn check(&self, in_flight: usize) {
        assert!(self.waiting.len() <= bound(in_flight));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blast::BlastTimeout;
    use stackline_core::time::Duration;

    const MS: u64 = 1_000_000;

    fn adaptive() -> RttEstimator {
        let mut rtt = RttEstimator::new(BlastTimeout::Adaptive);
        rtt.sample(Duration(8 * MS));
        rtt
    }

    #[test]
    fn the_first_that_is_open_is_due() {
        let rtt = RttEstimator::new(BlastTimeout::Fixed(Duration(10 * MS)));
        let mut ack_requests = AckRequests::default();
        ack_requests.ask(0, 0, Instant(MS));
        ack_requests.ask(1, 0, Instant(2 * MS));
        assert_eq!(
            ack_requests.due(&rtt, |_| true),
            Some((Instant(11 * MS), BlastSenderWait::Timeout))
        );
        assert_eq!(
            ack_requests.due(&rtt, |request| request.number == 1),
            Some((Instant(12 * MS), BlastSenderWait::Timeout))
        );
        assert_eq!(ack_requests.pop().map(|request| request.number), Some(1));
        assert_eq!(ack_requests.due(&rtt, |_| true), None);
    }

    #[test]
    fn an_overtaken_request_is_due_sooner() {
        let mut ack_requests = AckRequests::default();
        ack_requests.ask(0, 0, Instant(0));
        let later = ack_requests.ask(1, 0, Instant(MS));
        assert_eq!(
            ack_requests.due(&adaptive(), |_| true),
            Some((Instant(24 * MS), BlastSenderWait::Timeout))
        );
        ack_requests.answered(later);
        assert_eq!(
            ack_requests.due(&adaptive(), |_| true),
            Some((Instant(10 * MS), BlastSenderWait::Overtaken))
        );
    }

    #[test]
    fn those_that_are_not_open_any_more_are_not_gathered() {
        let mut ack_requests = AckRequests::default();
        for number in 0..10_000 {
            ack_requests.ask(number, 0, Instant(0));
            ack_requests.prune(3, |request| request.number == 0 || request.number == number);
            ack_requests.check(3);
        }
        assert_eq!(ack_requests.pop().map(|request| request.number), Some(0));
    }
}
