//! The trait of sinks, which receive drained records; a sink in memory; and the totals of a recorder.

use crate::event_log::{self, EventLog};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// A receiver of drained records.
pub trait EventSink: Send {
    /// Takes records; the log is cleared after it returns.
    ///
    /// # Errors
    /// When the records cannot be kept. The recorder counts them as lost, goes on, and reports the error at its end.
    fn take(&mut self, event_log: &EventLog) -> io::Result<()>;
}

impl<S: EventSink + ?Sized> EventSink for Box<S> {
    fn take(&mut self, event_log: &EventLog) -> io::Result<()> {
        (**self).take(event_log)
    }
}

/// A sink that keeps all records in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryEventSink(Arc<Mutex<Vec<u8>>>);

impl MemoryEventSink {
    /// Takes the records kept so far. The definitions of names stay, so that the next event log defines them again.
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

/// The totals of a recorder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of records that the sink kept.
    pub recorded: u64,
    /// Number of records for which a ring had no room, or that the sink did not keep.
    pub lost: u64,
    /// The first reason for which the sink did not keep records.
    pub fault: Option<String>,
    /// The largest error of a time stamp against the monotonic clock, ns; 0 where each event was stamped with that
    /// clock.
    pub clock_error_ns: u64,
}
