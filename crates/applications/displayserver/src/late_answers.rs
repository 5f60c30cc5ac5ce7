//! Answers to wrong secrets in V's messages: they wait, so that guessing is slow, and nobody else waits for them.

use stackline_guard::attempts::Attempts;
use stackline_transfer::ikp::{IkpUdpServer, Ticket};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Wrong secrets whose answers wait; of more the oldest is never answered.
const MOST: usize = 64;

/// Answers that wait.
#[derive(Debug, Default)]
pub(crate) struct LateDisplayAnswers {
    attempts: Attempts,
    waiting: VecDeque<(Instant, Ticket, Vec<u8>)>,
}

impl LateDisplayAnswers {
    /// A request said a wrong secret: it gets this answer, later.
    pub(crate) fn refuse(&mut self, ticket: Ticket, reply: Vec<u8>, now: Instant) {
        if self.waiting.len() >= MOST {
            self.waiting.pop_front();
        }
        self.waiting
            .push_back((now + self.attempts.failed(now), ticket, reply));
    }

    /// Sends answers that have waited.
    pub(crate) fn answer(&mut self, messages: &mut IkpUdpServer, now: Instant) {
        while self.waiting.front().is_some_and(|(due, ..)| *due <= now)
            && let Some((_, ticket, reply)) = self.waiting.pop_front()
        {
            let request = messages.again(ticket);
            let _ = request.map(|request| request.reply(&reply));
        }
    }

    /// How long nothing has to be done here: at most so long.
    pub(crate) fn pause(&self, now: Instant, most: Duration) -> Duration {
        self.waiting.front().map_or(most, |(due, ..)| {
            due.saturating_duration_since(now).min(most)
        })
    }
}
