//! The draining thread: takes the records from the rings, converts ticks to ns, passes event logs to the sink, and
//! counts lost records.

use super::state::{STRAY, rings};
use crate::Keyword;
use crate::clock::{self, Anchors};
use crate::event_log::EventLog;
use crate::ring::EventRing;
use crate::sink::{EventSink, Totals};
use crate::value::EventValue;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The longest pause between two drains: few of them cost less and disturb the writers' caches less.
const SELDOM: Duration = Duration::from_millis(20);
/// The shortest pause between two drains.
const OFTEN: Duration = Duration::from_millis(1);
/// If a ring is fuller than this, in 1/1024 of its size, the pause is halved. A ring that is half full wakes this
/// thread at once.
const FULL: u64 = 128;
/// If all rings are emptier than this, in 1/1024 of their size, the pause is doubled.
const EMPTY: u64 = 32;
/// Length in bytes at which the event log is passed to the sink during a drain.
const BATCH: usize = 1 << 20;

/// The state of the draining thread.
pub(super) struct Drain {
    sink: Box<dyn EventSink>,
    stop: Arc<AtomicBool>,
    host: String,
    anchors: Anchors,
    event_log: EventLog,
    /// Records in the event log, not counting `EVENTS_LOST`.
    pending_records: u64,
    /// Lost records that the sink has not been informed of.
    unreported: u64,
    /// Those of them that are reported in the event log that has not been passed on yet.
    reported: u64,
    /// The rings being drained.
    rings: Vec<Arc<EventRing>>,
    /// For each ring, whether it was closed and how many words had been written when the drain began.
    ready: Vec<(bool, u64)>,
    /// Buffer for the words of a ring.
    words: Vec<u64>,
    totals: Totals,
}

impl Drain {
    pub(super) fn new(host: &str, sink: Box<dyn EventSink>, stop: Arc<AtomicBool>) -> Self {
        let mut event_log = EventLog::default();
        event_log.host(host);
        let mut anchors = Anchors::default();
        if clock::counts_ticks() {
            anchors.read();
        }
        let (rings, ready, words) = (Vec::new(), Vec::new(), Vec::new());
        let totals = Totals::default();
        Self {
            sink,
            stop,
            host: host.to_owned(),
            anchors,
            event_log,
            pending_records: 0,
            unreported: 0,
            reported: 0,
            rings,
            ready,
            words,
            totals,
        }
    }

    /// Drains the rings until the recorder is stopped.
    pub(super) fn work(&mut self) -> Totals {
        let mut pause = OFTEN;
        loop {
            let last = self.stop.load(Ordering::Acquire);
            let fullest = self.drain();
            if last {
                self.totals.clock_error_ns = self.anchors.error_ns;
                return std::mem::take(&mut self.totals);
            }
            if fullest > FULL {
                pause = (pause / 2).max(OFTEN);
            } else if fullest < EMPTY {
                pause = (pause * 2).min(SELDOM);
            }
            std::thread::park_timeout(pause);
        }
    }

    /// Takes everything that had been written when it began. Returns how full the fullest ring was, in 1/1024 of its
    /// size.
    fn drain(&mut self) -> u64 {
        self.rings.clear();
        self.rings.extend_from_slice(&rings().rings);
        self.ready.clear();
        // `is_closed` is read before `written`: a closed ring then has no words after `written`.
        self.ready.extend(
            self.rings
                .iter()
                .map(|ring| (ring.is_closed(), ring.written())),
        );
        // This reading is later than every stamp that is taken, so all of them are before the newest anchor.
        if clock::counts_ticks() {
            self.anchors.read();
        }
        let mut fullest = 0;
        for index in 0..self.rings.len() {
            let ((_, until), ring) = (self.ready[index], &self.rings[index]);
            self.words.clear();
            fullest = fullest.max(ring.take(until, &mut self.words));
            self.pending_records += self
                .event_log
                .extend(&mut self.words, |ticks| self.anchors.ns(ticks));
            self.lose(self.rings[index].lost());
            if self.event_log.bytes().len() > BATCH {
                self.hand_over();
            }
        }
        self.lose(STRAY.swap(0, Ordering::Relaxed));
        self.record_lost();
        self.hand_over();
        self.forget_closed();
        fullest
    }

    /// Removes the rings of threads that have ended.
    fn forget_closed(&mut self) {
        if self.ready.iter().any(|(closed, _)| *closed) {
            let mut gone = self
                .rings
                .drain(..)
                .zip(&self.ready)
                .filter(|(_, (closed, _))| *closed)
                .peekable();
            // Both lists are in the order in which threads got their rings.
            rings().rings.retain(|ring| {
                gone.next_if(|(other, _)| Arc::ptr_eq(ring, other))
                    .is_none()
            });
        }
    }

    /// Counts lost records.
    fn lose(&mut self, count: u64) {
        self.totals.lost += count;
        self.unreported += count;
    }

    /// Adds an `EVENTS_LOST` event if records were lost.
    fn record_lost(&mut self) {
        static LOST: Keyword = Keyword::new("EVENTS_LOST");
        if self.unreported > 0 {
            self.event_log.push(
                LOST.id(),
                clock::now_ns(),
                &[EventValue::from(self.unreported)],
            );
            self.reported = self.unreported;
        }
    }

    /// Passes the event log to the sink. If the sink fails, the log's records are counted as lost.
    fn hand_over(&mut self) {
        if self.event_log.bytes().is_empty() {
            return;
        }
        match self.sink.take(&self.event_log) {
            Ok(()) => {
                self.totals.recorded += self.pending_records;
                self.unreported -= self.reported;
                self.event_log.clear();
            }
            Err(error) => {
                self.totals.fault.get_or_insert_with(|| error.to_string());
                self.lose(self.pending_records);
                self.event_log.begin_again(&self.host);
            }
        }
        (self.pending_records, self.reported) = (0, 0);
    }
}
