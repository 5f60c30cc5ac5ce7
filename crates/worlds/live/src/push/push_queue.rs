//! A bounded queue of what is posted to a server. When it is full, the oldest gives way; what is lost is counted, with the reason.

use super::push_client::PushClient;
use super::push_url::PushUrl;
use crate::error::{Error, Result};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a request may take with its answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The first and the longest pause after a failure.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Most bytes that wait.
const MOST_BYTES: usize = 16 << 20;

/// What is posted.
#[derive(Clone, PartialEq, Eq)]
pub struct PushedPost {
    /// What stands behind the path of the server's address; may be empty.
    pub below: &'static str,
    /// The media type of the content.
    pub content_type: &'static str,
    /// The content.
    pub body: Vec<u8>,
}

/// What became of all that was pushed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushCounts {
    /// Accepted by the server.
    pub sent: u64,
    /// Given up because too much waited, or because the end came first.
    pub dropped: u64,
    /// Refused by the server for good.
    pub refused: u64,
    /// Waiting.
    pub waiting: u64,
}

/// A queue that a thread empties.
pub struct PushQueue {
    shared: Arc<PushShared>,
}

struct PushShared {
    state: Mutex<PushState>,
    changed: Condvar,
    /// Most posts that wait.
    most: usize,
    server: String,
}

#[derive(Default)]
struct PushState {
    waiting: VecDeque<PushedPost>,
    bytes: usize,
    counts: PushCounts,
    /// Whether the first of those that wait is being posted; it cannot give way.
    is_posting: bool,
    is_ending: bool,
    has_ended: bool,
    /// What has to be said and was not.
    news: Option<String>,
    /// Whether the latest attempt failed.
    has_failed: bool,
}

impl PushQueue {
    /// Starts the thread of a queue in which at most `most` posts wait.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(url: PushUrl, most: usize) -> Result<Self> {
        let shared = Arc::new(PushShared {
            state: Mutex::default(),
            changed: Condvar::new(),
            most: most.max(1),
            server: url.server(),
        });
        let of_thread = Arc::clone(&shared);
        let client = PushClient::new(url, PATIENCE);
        thread::Builder::new()
            .name("push".to_owned())
            .spawn(move || of_thread.empty(client))
            .map_err(|cause| Error::environment(format!("cannot start a thread: {cause}")))?;
        Ok(Self { shared })
    }

    /// Adds a post. It never waits.
    pub fn push(&self, post: PushedPost) {
        let mut state = self.shared.lock();
        state.bytes += post.body.len();
        state.waiting.push_back(post);
        while state.waiting.len() > self.shared.most || state.bytes > MOST_BYTES {
            let at = usize::from(state.is_posting);
            let Some(oldest) = state.waiting.remove(at) else {
                break;
            };
            state.bytes -= oldest.body.len();
            state.counts.dropped += 1;
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// What became of everything so far.
    #[must_use]
    pub fn counts(&self) -> PushCounts {
        let state = self.shared.lock();
        PushCounts {
            waiting: state.waiting.len() as u64,
            ..state.counts.clone()
        }
    }

    /// What there is to say since the last call: that the server cannot be reached, or can again.
    pub fn take_news(&self) -> Option<String> {
        self.shared.lock().news.take()
    }

    /// Posts what waits, for at most this time and not after a failure. What still waits then is dropped.
    pub fn finish(self, within: Duration) -> PushCounts {
        let mut state = self.shared.lock();
        state.is_ending = true;
        self.shared.changed.notify_all();
        let end = Instant::now() + within;
        while !state.has_ended {
            let rest = end.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                break;
            }
            let waited = self.shared.changed.wait_timeout(state, rest);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let mut counts = state.counts.clone();
        counts.dropped += state.waiting.len() as u64;
        counts
    }
}

impl PushShared {
    fn lock(&self) -> MutexGuard<'_, PushState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Posts what waits until the end.
    fn empty(&self, mut client: PushClient) {
        let mut pause = PAUSES.0;
        while let Some(post) = self.next() {
            let answer = client.post(post.below, post.content_type, &post.body);
            let outcome = match &answer {
                Ok(answer) => PushOutcome::from_status(answer.status),
                Err(_) => PushOutcome::TryAgain,
            };
            let why = match &answer {
                Ok(answer) => format!("{} answered with status {}", self.server, answer.status),
                Err(why) => why.clone(),
            };
            let retry_after = answer.ok().and_then(|answer| answer.retry_after);
            match self.settle(outcome, &why) {
                false => pause = PAUSES.0,
                true => {
                    self.pause(retry_after.unwrap_or(pause));
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
        }
        self.lock().has_ended = true;
        self.changed.notify_all();
    }

    /// Waits for a post; `None` when the end has come and nothing more is to be tried.
    fn next(&self) -> Option<PushedPost> {
        let mut state = self.lock();
        loop {
            let first = state.waiting.front().cloned();
            match first {
                _ if state.is_ending && (state.has_failed || first.is_none()) => return None,
                Some(post) => {
                    state.is_posting = true;
                    return Some(post);
                }
                None => {
                    let woken = self.changed.wait(state);
                    state = woken.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Counts what became of the first post. Returns whether it waits for another attempt.
    fn settle(&self, outcome: PushOutcome, why: &str) -> bool {
        let mut state = self.lock();
        state.is_posting = false;
        let tries_again = outcome == PushOutcome::TryAgain;
        if !tries_again && let Some(post) = state.waiting.pop_front() {
            state.bytes -= post.body.len();
        }
        match outcome {
            PushOutcome::Taken => state.counts.sent += 1,
            PushOutcome::Refused => state.counts.refused += 1,
            PushOutcome::TryAgain => {}
        }
        let fails = outcome != PushOutcome::Taken;
        match (state.has_failed, fails) {
            (false, true) => state.news = Some(format!("nothing can be pushed: {why}")),
            (true, false) => {
                state.news = Some(format!("{} takes what is pushed again", self.server))
            }
            _ => {}
        }
        state.has_failed = fails;
        tries_again
    }

    /// Waits before the next attempt; the end of all ends it.
    fn pause(&self, time: Duration) {
        let end = Instant::now() + time;
        let mut state = self.lock();
        while !state.is_ending {
            let rest = end.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return;
            }
            let waited = self.changed.wait_timeout(state, rest);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// What became of a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PushOutcome {
    Taken,
    Refused,
    TryAgain,
}

impl PushOutcome {
    /// Which answers ask for another attempt: OTLP 1.x, "Retryable Response Codes", and time-outs of the server.
    const fn from_status(status: u16) -> Self {
        match status {
            200..=299 => Self::Taken,
            408 | 429 | 502 | 503 | 504 => Self::TryAgain,
            _ => Self::Refused,
        }
    }
}

#[cfg(test)]
mod tests;
