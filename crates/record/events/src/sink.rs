//! Where drained records go: the contract of sinks, memory as one of them, and the totals of what a sink kept.

use crate::event_log::{self, EventLog};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Where drained records go.
pub trait EventSink: Send {
    /// Takes records; they are gone when it returns.
    ///
    /// # Errors
    /// When they cannot be kept: the recorder goes on counting and reports it at its end.
    fn take(&mut self, event_log: &EventLog) -> io::Result<()>;
}

impl<S: EventSink + ?Sized> EventSink for Box<S> {
    fn take(&mut self, event_log: &EventLog) -> io::Result<()> {
        (**self).take(event_log)
    }
}

/// Keeps everything in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryEventSink(Arc<Mutex<Vec<u8>>>);

impl MemoryEventSink {
    /// What was kept so far, which is then dropped, but for the names: the next event log defines them again.
    #[must_use]
    pub fn event_log(&self) -> EventLog {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let event_log = EventLog::from_bytes(std::mem::take(&mut *kept));
        let mut names = event_log::EventLogNames::default();
        event_log.each(&mut names, |_, _, _, _| {});
        kept.extend_from_slice(names.to_event_log().bytes());
        event_log
    }
}

impl EventSink for MemoryEventSink {
    fn take(&mut self, event_log: &EventLog) -> io::Result<()> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend_from_slice(event_log.bytes());
        Ok(())
    }
}

/// What a recorder did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Records that the sink kept.
    pub recorded: u64,
    /// Records for which a ring had no room, or that the sink did not keep.
    pub lost: u64,
    /// Why the sink did not keep something, when it first did not.
    pub fault: Option<String>,
    /// How far a time stamp may be from the monotonic clock, ns; 0 where that clock itself was read for each.
    pub clock_error_ns: u64,
}
