//! Requests that wait for their turn, the one that is being carried out, and how either is cancelled.

use super::requests::SessionWork;
use stackline_core::error::{Error, Result};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Requests that may wait at a time.
const MOST_WAITING: usize = 1024;

/// The flags that end a request early.
#[derive(Clone, Debug, Default)]
pub(super) struct CancelFlags {
    /// Ends the runs. Worlds may raise it themselves.
    pub(super) interrupted: Arc<AtomicBool>,
    /// Raised only by whoever wants the end.
    pub(super) signalled: Arc<AtomicBool>,
}

impl CancelFlags {
    fn raise(&self) {
        self.signalled.store(true, Ordering::Relaxed);
        self.interrupted.store(true, Ordering::Relaxed);
    }
}

/// What was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cancelled {
    /// The request that is being carried out, which will be answered.
    Running,
    /// A request that waited; it will not be carried out.
    Waiting,
    /// No request has this id, or it is over.
    Unknown,
}

/// The requests of a session, in their order.
#[derive(Debug, Default)]
pub(super) struct RequestQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    waiting: VecDeque<(u64, SessionWork)>,
    running: Option<(u64, CancelFlags)>,
    /// No other request comes.
    is_whole: bool,
}

impl RequestQueue {
    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request.
    ///
    /// # Errors
    /// When too many wait, or its id is that of a request that is not over.
    pub(super) fn push(&self, id: u64, work: SessionWork) -> Result<()> {
        let mut state = self.state();
        let is_running = state
            .running
            .as_ref()
            .is_some_and(|(other, _)| *other == id);
        if is_running || state.waiting.iter().any(|(other, _)| *other == id) {
            return Err(Error::input(format!("request {id} is not over yet"))
                .hint("give each request an id of its own"));
        }
        if state.waiting.len() >= MOST_WAITING {
            return Err(
                Error::input(format!("{MOST_WAITING} requests are waiting already"))
                    .hint("wait for answers, or send many specifications as one `simulate`"),
            );
        }
        state.waiting.push_back((id, work));
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// The next request, which is then the running one; waits for it. `None` when no other one comes.
    pub(super) fn next(&self) -> Option<(u64, SessionWork, CancelFlags)> {
        let mut state = self.state();
        loop {
            if let Some((id, work)) = state.waiting.pop_front() {
                let cancel = CancelFlags::default();
                state.running = Some((id, cancel.clone()));
                return Some((id, work, cancel));
            }
            if state.is_whole {
                return None;
            }
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The running request is over; `answer` prints its answer, with no cancellation between the two.
    pub(super) fn done(&self, answer: impl FnOnce()) {
        let mut state = self.state();
        state.running = None;
        answer();
    }

    /// Cancels a request; `answer` prints what happened, before the request's own answer can be printed.
    pub(super) fn cancel(&self, id: u64, answer: impl FnOnce(Cancelled)) {
        let mut state = self.state();
        let running = state.running.as_ref().filter(|(other, _)| *other == id);
        let how = if let Some((_, flags)) = running {
            flags.raise();
            Cancelled::Running
        } else {
            let before = state.waiting.len();
            state.waiting.retain(|(other, _)| *other != id);
            match state.waiting.len() < before {
                true => Cancelled::Waiting,
                false => Cancelled::Unknown,
            }
        };
        answer(how);
    }

    /// No other request comes; those that wait are carried out.
    pub(super) fn finish(&self) {
        self.state().is_whole = true;
        self.changed.notify_all();
    }

    /// Ends the queue: what waits is dropped, what runs is cancelled.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.is_whole = true;
        state.waiting.clear();
        state.running.iter().for_each(|(_, flags)| flags.raise());
        drop(state);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::super::requests::SessionRequest;
    use super::*;

    fn work(id: u64) -> SessionWork {
        let line = format!("{{\"id\": {id}, \"check\": {{\"specification\": \"1 rr 32*5\"}}}}");
        match SessionRequest::parse(line.as_bytes()) {
            Ok(SessionRequest::Work { work, .. }) => *work,
            other => panic!("{other:?}"),
        }
    }

    fn cancel(queue: &RequestQueue, id: u64) -> Cancelled {
        let mut seen = None;
        queue.cancel(id, |how| seen = Some(how));
        seen.unwrap()
    }

    #[test]
    fn what_waits_is_dropped_what_runs_gets_its_flags_and_what_is_over_is_unknown() {
        let queue = RequestQueue::default();
        for id in 1..=3 {
            queue.push(id, work(id)).unwrap();
        }
        assert!(queue.push(2, work(2)).is_err());
        let (id, _, flags) = queue.next().unwrap();
        assert_eq!(id, 1);
        assert!(queue.push(1, work(1)).is_err());
        assert_eq!(cancel(&queue, 2), Cancelled::Waiting);
        assert!(!flags.interrupted.load(Ordering::Relaxed));
        assert_eq!(cancel(&queue, 1), Cancelled::Running);
        assert!(flags.interrupted.load(Ordering::Relaxed));
        assert!(flags.signalled.load(Ordering::Relaxed));
        queue.done(|| {});
        assert_eq!(cancel(&queue, 1), Cancelled::Unknown);
        queue.finish();
        let (id, _, flags) = queue.next().unwrap();
        assert_eq!(id, 3);
        assert!(!flags.interrupted.load(Ordering::Relaxed));
        queue.end();
        assert!(flags.interrupted.load(Ordering::Relaxed));
        assert!(queue.next().is_none());
    }

    #[test]
    fn a_bounded_number_of_requests_waits() {
        let queue = RequestQueue::default();
        for id in 0..MOST_WAITING as u64 {
            queue.push(id, work(id)).unwrap();
        }
        let refused = queue.push(u64::MAX, work(1)).unwrap_err();
        assert_eq!(refused.message, "1024 requests are waiting already");
    }
}
