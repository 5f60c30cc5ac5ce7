//! Questions on their way, in the order they left, and when the first that is still open is due.
//!
//! It holds no blasts: whether an answer is still waited for, its [sender](super::sender) says.

use super::interval::Patience;
use super::sender::Wait;
use alloc::collections::VecDeque;
use stackline_core::time::Instant;

/// Questions that are kept in any case.
const QUESTIONS: usize = 64;

/// A question on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    pub(super) number: u32,
    pub(super) round: u16,
    at: Instant,
    order: u64,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Questions {
    waiting: VecDeque<Question>,
    /// How many have left, and the last of them that was answered.
    orders: u64,
    answered: u64,
}

impl Questions {
    /// A question about that round of a blast leaves; which of all it is.
    pub(super) fn ask(&mut self, number: u32, round: u16, now: Instant) -> u64 {
        self.orders += 1;
        self.waiting.push_back(Question { number, round, at: now, order: self.orders });
        self.orders
    }

    /// With so many blasts on their way, as many questions are kept as they can have, and some: those behind the first that
    /// are not open any more would be as many as there are answers in its time.
    pub(super) fn thin(&mut self, flying: usize, is_open: impl FnMut(&Question) -> bool) {
        if self.waiting.len() > bound(flying) {
            self.waiting.retain(is_open);
        }
    }

    /// That one was answered.
    pub(super) fn answered(&mut self, order: u64) {
        self.answered = self.answered.max(order);
    }

    /// Nothing is waited for any more.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// The first one, which is waited for no longer.
    pub(super) fn pop(&mut self) -> Option<Question> {
        self.waiting.pop_front()
    }

    /// When the first question that is still open is due; questions that are not open any more go.
    pub(super) fn due(&mut self, patience: &Patience, is_open: impl Fn(&Question) -> bool) -> Option<(Instant, Wait)> {
        while !is_open(self.waiting.front()?) {
            self.waiting.pop_front();
        }
        self.waiting.front().map(|question| self.due_of(question, patience))
    }

    fn due_of(&self, question: &Question, patience: &Patience) -> (Instant, Wait) {
        let timeout = question.at + patience.timeout();
        match patience.overtaken().filter(|_| question.order < self.answered) {
            Some(wait) if question.at + wait < timeout => (question.at + wait, Wait::Overtaken),
            _ => (timeout, Wait::Timeout),
        }
    }
}

/// Most questions that are kept with so many blasts on their way.
const fn bound(flying: usize) -> usize {
    QUESTIONS + 2 * flying
}

#[cfg(test)]
impl Questions {
    /// What holds at any moment.
    pub(super) fn check(&self, flying: usize) {
        assert!(self.waiting.len() <= bound(flying));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blast::Interval;
    use stackline_core::time::Duration;

    const MS: u64 = 1_000_000;

    fn adaptive() -> Patience {
        let mut patience = Patience::new(Interval::Adaptive);
        patience.sample(Duration(8 * MS));
        patience
    }

    #[test]
    fn the_first_that_is_open_is_due() {
        let patience = Patience::new(Interval::Fixed(Duration(10 * MS)));
        let mut questions = Questions::default();
        questions.ask(0, 0, Instant(MS));
        questions.ask(1, 0, Instant(2 * MS));
        assert_eq!(questions.due(&patience, |_| true), Some((Instant(11 * MS), Wait::Timeout)));
        assert_eq!(questions.due(&patience, |question| question.number == 1), Some((Instant(12 * MS), Wait::Timeout)));
        assert_eq!(questions.pop().map(|question| question.number), Some(1));
        assert_eq!(questions.due(&patience, |_| true), None);
    }

    #[test]
    fn an_earlier_question_is_due_sooner_once_a_later_one_was_answered() {
        let mut questions = Questions::default();
        questions.ask(0, 0, Instant(0));
        let later = questions.ask(1, 0, Instant(MS));
        assert_eq!(questions.due(&adaptive(), |_| true), Some((Instant(24 * MS), Wait::Timeout)));
        questions.answered(later);
        assert_eq!(questions.due(&adaptive(), |_| true), Some((Instant(10 * MS), Wait::Overtaken)));
    }

    #[test]
    fn those_that_are_not_open_any_more_are_not_gathered() {
        let mut questions = Questions::default();
        for number in 0..10_000 {
            questions.ask(number, 0, Instant(0));
            questions.thin(3, |question| question.number == 0 || question.number == number);
            questions.check(3);
        }
        assert_eq!(questions.pop().map(|question| question.number), Some(0));
    }
}
