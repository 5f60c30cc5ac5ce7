//! Watches over the plug-in of a job: what does not return is named, and a connection that never shows the token is given up. The agent's
//! loop looks twice a second, and more often once the job is ended.

use crate::error::Error;
use crate::foreign_call::{ForeignCall, ForeignFunction};
use crate::silence_limits::silence_limit;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Time between two looks at a job that was not ended.
pub(crate) const LOOK: Duration = Duration::from_millis(500);

/// The endpoints of a job over a plug-in.
#[derive(Debug)]
pub(crate) struct ForeignWatch {
    /// The plug-in, as errors name it.
    name: String,
    /// What each endpoint's thread is in, by replica.
    calls: Vec<Arc<ForeignCall>>,
    /// The call that each endpoint was in at the last look, and since when it is known to be in it.
    seen: Vec<Option<SeenCall>>,
    /// Whether listening, or connecting before the clock starts, is over.
    is_prepared: bool,
    /// When the job was ended.
    ended: OnceLock<Instant>,
    /// What [`silence_limit`] was when the job began; all patience here is a part of it.
    silence: Duration,
}

/// A call that was seen.
#[derive(Clone, Copy, Debug)]
struct SeenCall {
    call: u64,
    since: Instant,
}

impl ForeignWatch {
    pub(crate) fn new(name: String, calls: Vec<Arc<ForeignCall>>) -> Self {
        Self {
            name,
            seen: vec![None; calls.len()],
            calls,
            is_prepared: false,
            ended: OnceLock::new(),
            silence: silence_limit(),
        }
    }

    /// What this endpoint's thread writes.
    pub(crate) fn call(&self, replica: u32) -> Arc<ForeignCall> {
        let known = self.calls.get(replica as usize);
        known.cloned().unwrap_or_default()
    }

    /// How long `listen` and `connect` may take: 10 s by default.
    fn prepares(&self) -> Duration {
        self.silence / 6
    }

    /// How long a connection may take to show the token: 5 s by default.
    fn shows(&self) -> Duration {
        self.silence / 12
    }

    /// How long a function may take to return when the job was ended: 3 s by default.
    fn returns(&self) -> Duration {
        self.silence / 20
    }

    /// Notes that all endpoints listen, or wait at the start of their clocks.
    pub(crate) const fn prepared(&mut self) {
        self.is_prepared = true;
    }

    /// Notes that the job was ended; what waits for a token is to stop too.
    pub(crate) fn end(&self) {
        self.ended.get_or_init(Instant::now);
        for call in &self.calls {
            call.expired.store(1, Ordering::Relaxed);
        }
    }

    /// Looks at all endpoints. Returns whether one waits for a token that does not come, so that its thread has to be interrupted.
    pub(crate) fn look(&mut self, now: Instant) -> bool {
        let shows = self.shows();
        let mut expires = false;
        for (call, seen) in self.calls.iter().zip(&mut self.seen) {
            let present = call.present();
            let since = seen
                .filter(|seen| Some(seen.call) == present)
                .map_or(now, |seen| seen.since);
            *seen = present.map(|call| SeenCall { call, since });
            let awaits = call.function() == Some(ForeignFunction::ReceiveToken);
            if awaits && now.duration_since(since) >= shows {
                call.expired.store(1, Ordering::Relaxed);
                expires = true;
            }
        }
        expires
    }

    /// The error for a function that has not returned in its time. `runs` is the replica whose thread still runs, by index.
    pub(crate) fn overdue(&self, now: Instant, runs: impl Fn(usize) -> bool) -> Option<Error> {
        let running = || (0..self.calls.len()).filter(|replica| runs(*replica));
        if let Some(ended) = self.ended.get() {
            let limit = self.returns();
            if now.duration_since(*ended) < limit {
                return None;
            }
            let function = running().find_map(|replica| self.calls[replica].function())?;
            return Some(self.error(function, limit, " after the run was ended"));
        }
        if self.is_prepared {
            return None;
        }
        let limit = self.prepares();
        let is_late = |replica: &usize| {
            self.seen[*replica].is_some_and(|seen| now.duration_since(seen.since) >= limit)
        };
        let late = running().find(is_late)?;
        Some(self.error(self.calls[late].function()?, limit, ""))
    }

    fn error(&self, function: ForeignFunction, limit: Duration, after: &str) -> Error {
        let (name, function) = (&self.name, function.name());
        let limit = limit.as_secs_f64();
        let message = format!("{name} did not return from {function} within {limit} s{after}");
        Error::environment(message).hint(
            "its functions have to return soon once *stop is not 0, when a signal interrupts their system calls; see clients/c/stackline_stack.h",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> (ForeignWatch, Arc<ForeignCall>) {
        let call = Arc::<ForeignCall>::default();
        let mut watch = ForeignWatch::new("the plug-in x".into(), vec![Arc::clone(&call)]);
        watch.silence = Duration::from_secs(60);
        (watch, call)
    }

    fn message(error: Option<Error>) -> Option<String> {
        error.map(|error| error.message)
    }

    #[test]
    fn what_prepares_for_too_long_is_named() {
        let (mut watch, call) = watch();
        let begun = Instant::now();
        call.within(ForeignFunction::Connect, || {
            watch.look(begun);
            let before = begun + Duration::from_millis(9_999);
            assert_eq!(watch.overdue(before, |_| true), None);
            let late = begun + Duration::from_secs(10);
            let error = message(watch.overdue(late, |_| true)).unwrap();
            assert_eq!(
                error,
                "the plug-in x did not return from `connect` within 10 s"
            );
            assert_eq!(watch.overdue(late, |_| false), None, "the thread is over");
            watch.prepared();
            assert_eq!(watch.overdue(late, |_| true), None, "the clock runs");
        });
    }

    #[test]
    fn each_call_has_a_time_of_its_own() {
        let (mut watch, call) = watch();
        let begun = Instant::now();
        call.within(ForeignFunction::Send, || watch.look(begun));
        call.within(ForeignFunction::Send, || {
            watch.look(begun + Duration::from_secs(9));
            let now = begun + Duration::from_secs(18);
            assert_eq!(watch.overdue(now, |_| true), None);
        });
    }

    #[test]
    fn what_does_not_stop_is_named() {
        let (watch, call) = watch();
        watch.end();
        assert_eq!(call.expired.load(Ordering::Relaxed), 1);
        let late = Instant::now() + Duration::from_secs(3);
        assert_eq!(
            watch.overdue(late, |_| true),
            None,
            "it is in none of its functions"
        );
        let error = call.within(ForeignFunction::AwaitCall, || watch.overdue(late, |_| true));
        assert_eq!(
            message(error).unwrap(),
            "the plug-in x did not return from `await_call` within 3 s after the run was ended"
        );
    }

    #[test]
    fn a_stranger_who_shows_nothing_is_given_up() {
        let (mut watch, call) = watch();
        let begun = Instant::now();
        call.within(ForeignFunction::ReceiveToken, || {
            assert!(!watch.look(begun));
            assert!(!watch.look(begun + Duration::from_millis(4_999)));
            assert!(watch.look(begun + Duration::from_secs(5)));
            assert_eq!(call.expired.load(Ordering::Relaxed), 1);
        });
    }
}
