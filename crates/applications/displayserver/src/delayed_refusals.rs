//! Delayed answers to wrong secrets over V's messages, so that guessing is slow, while no other client has to wait.

use stackline_guard::attempts::Attempts;
use stackline_transfer::ikp::{IkpUdpServer, Ticket};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The limit on delayed answers. Beyond it, the oldest request is never answered.
const MOST: usize = 64;

/// Answers that are delayed.
#[derive(Debug, Default)]
pub(crate) struct DelayedDisplayRefusals {
    attempts: Attempts,
    /// When each answer is due, the request, and the answer.
    waiting: VecDeque<(Instant, Ticket, Vec<u8>)>,
}

impl DelayedDisplayRefusals {
    /// Delays the answer to a request with a wrong secret.
    pub(crate) fn refuse(&mut self, ticket: Ticket, reply: Vec<u8>, now: Instant) {
        if self.waiting.len() >= MOST {
            self.waiting.pop_front();
        }
        self.waiting
            .push_back((now + self.attempts.failed(now), ticket, reply));
    }

    /// Sends the answers that are due.
    pub(crate) fn answer(&mut self, messages: &mut IkpUdpServer, now: Instant) {
        while self.waiting.front().is_some_and(|(due, ..)| *due <= now)
            && let Some((_, ticket, reply)) = self.waiting.pop_front()
        {
            let request = messages.again(ticket);
            let _ = request.map(|request| request.reply(&reply));
        }
    }

    /// The time until the next answer is due, but at most `most`.
    pub(crate) fn pause(&self, now: Instant, most: Duration) -> Duration {
        self.waiting.front().map_or(most, |(due, ..)| {
            due.saturating_duration_since(now).min(most)
        })
    }
}
