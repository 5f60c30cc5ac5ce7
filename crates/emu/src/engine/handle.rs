//! Asking a data path that runs in another thread: how it is going, and to begin anew.

use super::machine::Record;
use super::report::Report;
use nix::sys::eventfd::{EfdFlags, EventFd};
use stackline_core::random::Seed;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What a running data path can be asked.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

pub(crate) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    wakeup: EventFd,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Ready,
    Running,
    Ended,
}

/// What to begin anew with.
pub(crate) struct Restart {
    pub(crate) seed: Seed,
    pub(crate) record: Option<Box<dyn Record>>,
}

#[derive(Default)]
struct State {
    stage: Stage,
    /// Numbers of the last question and of the last that was answered.
    requested: u64,
    answered: u64,
    restart: Option<Restart>,
    /// Why what was recorded last could not be kept.
    record_error: Option<String>,
    report: Report,
}

impl Handle {
    pub(crate) fn new() -> io::Result<Self> {
        let wakeup = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(Self(Arc::new(Shared { state: Mutex::default(), changed: Condvar::new(), wakeup })))
    }

    /// Waits until frames are carried; false when that is over already.
    #[must_use]
    pub fn started(&self) -> bool {
        let ready = |state: &mut State| state.stage == Stage::Ready;
        let state = self.0.changed.wait_while(self.0.lock(), ready).unwrap_or_else(PoisonError::into_inner);
        state.stage == Stage::Running
    }

    /// How it is going, up to now; how it went, once it has stopped.
    #[must_use]
    pub fn report(&self) -> Report {
        self.0.request(self.0.lock()).report.clone()
    }

    /// Puts a network at rest and with that seed in place of the one there is, whose packets are gone. It has been done
    /// when this returns; before the data path runs, it is done when it begins. `record` is told of what happens from then
    /// on; whoever was told of what happened before has finished.
    ///
    /// # Errors
    /// One sentence, when what had been recorded could not be kept.
    pub fn restart(&self, seed: Seed, record: Option<Box<dyn Record>>) -> Result<(), String> {
        let mut state = self.0.lock();
        state.restart = Some(Restart { seed, record });
        self.0.request(state).record_error.take().map_or(Ok(()), Err)
    }

    /// Keeps what became of a record.
    pub(crate) fn set_record_error(&self, record_error: Option<String>) {
        self.0.lock().record_error = record_error;
    }

    /// Can be read when something was asked.
    pub(crate) fn wakeup(&self) -> BorrowedFd<'_> {
        self.0.wakeup.as_fd()
    }

    /// The seed to begin with, if one was asked for.
    pub(crate) fn take_restart(&self) -> Option<Restart> {
        self.0.lock().restart.take()
    }

    /// From now on there is somebody to answer.
    pub(crate) fn begin(&self) {
        self.0.lock().stage = Stage::Running;
        self.0.changed.notify_all();
    }

    /// The seed to begin anew with, if that was asked, and the number of the last question.
    pub(crate) fn take_requests(&self) -> (Option<Restart>, u64) {
        // Nothing to read means that another ring has been answered already.
        let _ = self.0.wakeup.read();
        let mut state = self.0.lock();
        (state.restart.take(), state.requested)
    }

    /// Answers all questions up to that number.
    pub(crate) fn answer(&self, number: u64, report: Report) {
        let mut state = self.0.lock();
        state.answered = number;
        state.report = report;
        self.0.changed.notify_all();
    }

    /// What is told while nobody answers.
    pub(crate) fn set_report(&self, report: Report) {
        self.0.lock().report = report;
    }

    /// Nobody answers from now on but with this.
    pub(crate) fn end(&self, report: Option<Report>) {
        let mut state = self.0.lock();
        state.stage = Stage::Ended;
        if let Some(report) = report {
            state.report = report;
        }
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        if state.stage != Stage::Running {
            return state;
        }
        state.requested += 1;
        let number = state.requested;
        // The counter cannot be full: it is read whenever it is not zero.
        let _ = self.wakeup.write(1);
        self.changed
            .wait_while(state, |state| state.stage == Stage::Running && state.answered < number)
            .unwrap_or_else(PoisonError::into_inner)
    }
}
