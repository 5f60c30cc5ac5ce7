//! A bounded buffer of events that were not taken yet. The sampling thread and the threads that poll switches fill it.

use stackline_events::catalogue::rows::EventsLost;
use stackline_events::event_log::EventLogNames;
use stackline_events::{EventLog, EventSink, clock};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most bytes of events that wait; further events are dropped and counted as lost.
const MOST_BYTES: usize = 256 << 20;

/// The buffer of the events of one host.
#[derive(Debug)]
pub(crate) struct EventBuffer {
    host: String,
    waiting: Mutex<BufferedEvents>,
}

#[derive(Debug, Default)]
struct BufferedEvents {
    log: EventLog,
    /// Lost events that no `EVENTS_LOST` has recorded yet.
    unrecorded: u64,
    /// All lost events.
    lost: u64,
}

impl BufferedEvents {
    fn add(&mut self, host: &str, record: impl FnOnce(&mut EventLog)) {
        if self.log.bytes().len() > MOST_BYTES {
            let mut dropped = EventLog::default();
            dropped.host(host);
            record(&mut dropped);
            return self.lose(dropped.records().count() as u64);
        }
        if self.log.bytes().is_empty() {
            self.log.host(host);
        }
        self.record_lost();
        record(&mut self.log);
    }

    fn lose(&mut self, count: u64) {
        self.unrecorded += count;
        self.lost += count;
    }

    fn record_lost(&mut self) {
        let lost = std::mem::take(&mut self.unrecorded);
        if lost > 0 {
            EventsLost {
                count: lost.into(),
                ..EventsLost::default()
            }
            .write(&mut self.log, clock::now_ns());
        }
    }
}

impl EventBuffer {
    /// Creates an empty buffer for the events of a host.
    pub(crate) fn new(host: &str) -> Self {
        Self {
            host: host.into(),
            waiting: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BufferedEvents> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the events that `record` writes; if the buffer is full, they are counted as lost.
    pub(crate) fn add(&self, record: impl FnOnce(&mut EventLog)) {
        self.lock().add(&self.host, record);
    }

    /// As [`Self::add`], and then gives all events to a sink. Returns how many the sink took; after an error they are lost.
    pub(crate) fn add_into(
        &self,
        sink: &mut dyn EventSink,
        record: impl FnOnce(&mut EventLog),
    ) -> io::Result<u64> {
        let waiting = &mut *self.lock();
        waiting.add(&self.host, record);
        let mut count = 0;
        waiting
            .log
            .each(&mut EventLogNames::default(), |_, _, _, _| count += 1);
        match sink.take(&waiting.log) {
            Ok(()) => {
                waiting.log.clear();
                Ok(count)
            }
            Err(error) => {
                waiting.lose(count);
                waiting.log.begin_again(&self.host);
                Err(error)
            }
        }
    }

    /// Takes all events out.
    pub(crate) fn take(&self) -> EventLog {
        std::mem::take(&mut self.lock().log)
    }

    /// Takes all events out after the last was added, and returns how many were lost altogether.
    pub(crate) fn close(&self) -> (EventLog, u64) {
        let waiting = &mut *self.lock();
        waiting.record_lost();
        (std::mem::take(&mut waiting.log), waiting.lost)
    }
}
