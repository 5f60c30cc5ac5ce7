//! The thread that drains: takes what the rings hold, turns ticks into ns, hands event logs to the sink, counts what is lost.

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

/// How often rings are drained: seldom while there is little in them, which costs less and keeps caches of those who write.
const SELDOM: Duration = Duration::from_millis(20);
const OFTEN: Duration = Duration::from_millis(1);
/// A ring that is fuller than the first is drained more often, less often when all are emptier than the second; in parts of
/// 1024. One that is half full wakes this thread.
const FULL: u64 = 128;
const EMPTY: u64 = 32;
/// The sink gets what there is when it is so many bytes.
const BATCH: usize = 1 << 20;

/// The thread that drains.
pub(super) struct Drain {
    sink: Box<dyn EventSink>,
    stop: Arc<AtomicBool>,
    host: String,
    anchors: Anchors,
    event_log: EventLog,
    /// Records on the event log, but for those that say what was lost.
    pending_records: u64,
    /// Records lost that were not reported to the sink.
    unreported: u64,
    /// Those of them that the event log reports.
    reported: u64,
    rings: Vec<Arc<EventRing>>,
    ready: Vec<(bool, u64)>,
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

    /// Takes everything that was there when it began. How full the fullest ring was, in parts of 1024.
    fn drain(&mut self) -> u64 {
        self.rings.clear();
        self.rings.extend_from_slice(&rings().rings);
        self.ready.clear();
        // Whether it is closed comes first: what is written afterwards is not taken.
        self.ready.extend(
            self.rings
                .iter()
                .map(|ring| (ring.is_closed(), ring.written())),
        );
        // Every stamp up to there is older than this reading.
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

    fn forget_closed(&mut self) {
        if self.ready.iter().any(|(closed, _)| *closed) {
            let mut gone = self
                .rings
                .drain(..)
                .zip(&self.ready)
                .filter(|(_, (closed, _))| *closed)
                .peekable();
            // Both are in the order in which threads came.
            rings().rings.retain(|ring| {
                gone.next_if(|(other, _)| Arc::ptr_eq(ring, other))
                    .is_none()
            });
        }
    }

    fn lose(&mut self, count: u64) {
        self.totals.lost += count;
        self.unreported += count;
    }

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
