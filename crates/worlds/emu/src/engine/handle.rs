//! Controls a data path (the loop that forwards frames) that runs in another thread: requests reports, restarts and changes of links.
//!
//! A request gets a number, wakes the data path, and waits until the data path has answered that number.

use super::machine::NetworkEventRecorder;
use super::report::EmulatorReport;
use nix::sys::eventfd::{EfdFlags, EventFd};
use stackline_core::network::NetworkLink;
use stackline_core::random::Seed;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Handle of a running data path.
#[derive(Clone)]
pub struct Handle(Arc<SharedEngineState>);

/// What the handles and the data path share.
pub(crate) struct SharedEngineState {
    state: Mutex<EngineHandleState>,
    /// Notified when the stage changes or requests are answered.
    changed: Condvar,
    /// Wakes the data path when there is a request.
    wakeup: EventFd,
}

/// Whether the data path has not started yet, forwards frames, or has ended.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum EngineStage {
    #[default]
    Ready,
    Running,
    Ended,
}

/// Parameters of a restart.
pub(crate) struct Restart {
    /// The seed of all randomness from then on.
    pub(crate) seed: Seed,
    /// Receives all events from then on, if there is one.
    pub(crate) record: Option<Box<dyn NetworkEventRecorder>>,
}

/// The number of a link in the network, and its new properties.
pub(crate) type EmulatedLinkChange = (usize, NetworkLink);

/// The state behind the mutex.
#[derive(Default)]
struct EngineHandleState {
    stage: EngineStage,
    /// Number of the last request.
    requested: u64,
    /// Number of the last request that was answered.
    answered: u64,
    restart: Option<Restart>,
    changes: Vec<EmulatedLinkChange>,
    /// Whether the recording is to end.
    ends_recording: bool,
    /// Why the last recording could not be kept.
    record_error: Option<String>,
    report: EmulatorReport,
}

impl Handle {
    pub(crate) fn new() -> io::Result<Self> {
        let wakeup = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        Ok(Self(Arc::new(SharedEngineState {
            state: Mutex::default(),
            changed: Condvar::new(),
            wakeup,
        })))
    }

    /// Waits until the data path forwards frames. Returns false if it has ended already.
    #[must_use]
    pub fn started(&self) -> bool {
        let ready = |state: &mut EngineHandleState| state.stage == EngineStage::Ready;
        let state = self
            .0
            .changed
            .wait_while(self.0.lock(), ready)
            .unwrap_or_else(PoisonError::into_inner);
        state.stage == EngineStage::Running
    }

    /// The report up to now, or the final one after the end.
    #[must_use]
    pub fn report(&self) -> EmulatorReport {
        self.0.request(self.0.lock()).report.clone()
    }

    /// Replaces the network by one at rest with that seed; packets in transit are lost. It is done on return, or,
    /// before the data path runs, when it starts. `record` receives all events from then on; the previous recording is
    /// finished.
    ///
    /// # Errors
    /// One sentence, when the previous recording could not be kept.
    pub fn restart(
        &self,
        seed: Seed,
        record: Option<Box<dyn NetworkEventRecorder>>,
    ) -> Result<(), String> {
        let mut state = self.0.lock();
        state.restart = Some(Restart { seed, record });
        self.0
            .request(state)
            .record_error
            .take()
            .map_or(Ok(()), Err)
    }

    /// Ends the recording; the network goes on. It is done on return.
    ///
    /// # Errors
    /// One sentence, when the recording could not be kept.
    pub fn end_recording(&self) -> Result<(), String> {
        let mut state = self.0.lock();
        state.ends_recording = true;
        self.0
            .request(state)
            .record_error
            .take()
            .map_or(Ok(()), Err)
    }

    /// Replaces the properties of a link, by its number in the network. It is done on return.
    pub fn change(&self, link: usize, new: NetworkLink) {
        let mut state = self.0.lock();
        state.changes.push((link, new));
        drop(self.0.request(state));
    }

    /// Stores why the last recording could not be kept, `None` if it was kept.
    pub(crate) fn set_record_error(&self, record_error: Option<String>) {
        self.0.lock().record_error = record_error;
    }

    /// A descriptor that is readable when there is a request.
    pub(crate) fn wakeup(&self) -> BorrowedFd<'_> {
        self.0.wakeup.as_fd()
    }

    /// The restart requested before the data path ran.
    pub(crate) fn take_restart(&self) -> Option<Restart> {
        self.0.lock().restart.take()
    }

    /// The data path runs: from now on it answers requests.
    pub(crate) fn begin(&self) {
        self.0.lock().stage = EngineStage::Running;
        self.0.changed.notify_all();
    }

    /// Whether the recording is to end; the request is taken.
    pub(crate) fn take_end_of_recording(&self) -> bool {
        std::mem::take(&mut self.0.lock().ends_recording)
    }

    /// The requested restart, the requested changes, and the number of the last request.
    pub(crate) fn take_requests(&self) -> (Option<Restart>, Vec<EmulatedLinkChange>, u64) {
        // An error means that there is nothing to read: an earlier call has taken this wakeup as well.
        let _ = self.0.wakeup.read();
        let mut state = self.0.lock();
        (
            state.restart.take(),
            std::mem::take(&mut state.changes),
            state.requested,
        )
    }

    /// Answers all requests up to and including that number.
    pub(crate) fn answer(&self, number: u64, report: EmulatorReport) {
        let mut state = self.0.lock();
        state.answered = number;
        state.report = report;
        self.0.changed.notify_all();
    }

    /// The report returned while the data path does not run.
    pub(crate) fn set_report(&self, report: EmulatorReport) {
        self.0.lock().report = report;
    }

    /// The data path has ended: waiting and later requests get this report, or the last one.
    pub(crate) fn end(&self, report: Option<EmulatorReport>) {
        let mut state = self.0.lock();
        state.stage = EngineStage::Ended;
        if let Some(report) = report {
            state.report = report;
        }
        self.0.changed.notify_all();
    }
}

impl SharedEngineState {
    fn lock(&self) -> MutexGuard<'_, EngineHandleState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a request of what the caller has put into the state, and waits until it is answered; returns at once when the data path
    /// does not run.
    fn request<'a>(
        &'a self,
        mut state: MutexGuard<'a, EngineHandleState>,
    ) -> MutexGuard<'a, EngineHandleState> {
        if state.stage != EngineStage::Running {
            return state;
        }
        state.requested += 1;
        let number = state.requested;
        // The counter cannot be full: it is read whenever it is not zero.
        let _ = self.wakeup.write(1);
        self.changed
            .wait_while(state, |state| {
                state.stage == EngineStage::Running && state.answered < number
            })
            .unwrap_or_else(PoisonError::into_inner)
    }
}
