//! The recorder: each thread writes its events into a ring of its own, and one thread drains all rings into a sink.
//!
//! While no recorder runs, an event costs one load and one branch. No event is lost silently: the number of records
//! for which there was no room, or that the sink did not keep, is recorded as an event, `EVENTS_LOST`, and is part of
//! the [`Totals`]. A forked process records nothing until it starts its own recorder.

mod drain;
mod fork;
mod state;

use crate::event_log;
use crate::ring::{EventRing, EventRingWriter};
use crate::sink::EventSink;
use crate::value::EventValue;
use crate::{Keyword, clock, sys};
use drain::Drain;
use state::{STATE, STRAY, TICKS, rings};
use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

pub use crate::sink::{MemoryEventSink, Totals};

/// Words of the rings of the first threads (8 MiB); later threads get smaller ones, down to [`LEAST_WORDS`].
const RING_WORDS: usize = 1 << 20;
/// Words of the smallest rings (128 KiB).
const LEAST_WORDS: usize = 1 << 14;
/// Number of threads that get rings of the same size, before the size is halved.
const OF_A_SIZE: usize = 8;
/// Most threads that have rings at once (1.1 GiB if all are filled); events of further threads are lost.
const MOST_RINGS: usize = 1 << 13;

/// Emits an event with the present time: its keyword and its data, in the order given in [`crate::catalogue`].
///
/// `event!("APP_SEND", unit, stream, offset, bytes)`
#[macro_export]
macro_rules! event {
    ($keyword:literal $(, $value:expr)* $(,)?) => {
        if $crate::recorder::is_recording() {
            static KEYWORD: $crate::Keyword = $crate::Keyword::new($keyword);
            $crate::recorder::emit(&KEYWORD, &[$($crate::EventValue::from($value)),*]);
        }
    };
}

// The calling thread's ring.
thread_local! {
    static MINE: RefCell<Mine> = const { RefCell::new(Mine { state: 0, writer: None }) };
}

/// What the calling thread writes into. The `state` is that of the recorder to which `writer` belongs.
struct Mine {
    /// The value of `STATE` of the recorder to which the writer belongs.
    state: u64,
    /// The thread's ring; absent when there are too many.
    writer: Option<EventRingWriter>,
}

/// Whether a recorder runs in this process.
#[inline]
#[must_use]
pub fn is_recording() -> bool {
    STATE.load(Ordering::Relaxed) != 0
}

/// Emits an event with the present time. Called by [`event!`].
#[inline]
pub fn emit(keyword: &Keyword, values: &[EventValue<'_>]) {
    match STATE.load(Ordering::Relaxed) {
        0 => {}
        state if state & TICKS == 0 => {
            record_event(state, keyword.id(), 0, clock::now_ns(), values)
        }
        state => record_event(state, keyword.id(), event_log::TICKS, sys::ticks(), values),
    }
}

/// Emits an event with the given time (ns) and keyword number.
#[inline]
pub fn emit_at(keyword: u32, at_ns: u64, values: &[EventValue<'_>]) {
    match STATE.load(Ordering::Relaxed) {
        0 => {}
        state => record_event(state, keyword, 0, at_ns, values),
    }
}

/// Writes an event into the calling thread's ring. `mark` is [`event_log::TICKS`] if `stamp` is in ticks, otherwise 0.
#[inline(always)]
fn record_event(state: u64, keyword: u32, mark: u64, stamp: u64, values: &[EventValue<'_>]) {
    let values = &values[..values.len().min(event_log::MOST_VALUES)];
    let written = MINE.try_with(|mine| {
        // A signal handler may have interrupted this thread while it was writing an event.
        let Ok(mut mine) = mine.try_borrow_mut() else {
            return false;
        };
        if mine.state != state {
            mine.renew(state);
        }
        let Some(writer) = &mut mine.writer else {
            return false;
        };
        writer.put(event_log::words_of(values), |place| {
            place.put(event_log::head(keyword, values) | mark);
            place.put(stamp);
            event_log::body(values, |word| place.put(word));
        });
        true
    });
    // A thread whose thread-local variables have been destroyed has no ring any more.
    if written != Ok(true) {
        stray();
    }
}

/// Counts an event that found no ring.
#[cold]
fn stray() {
    STRAY.fetch_add(1, Ordering::Relaxed);
}

impl Mine {
    /// Creates a ring for this thread in the present recorder.
    #[cold]
    #[inline(never)]
    fn renew(&mut self, state: u64) {
        let mut rings = rings();
        self.state = state;
        self.writer = None;
        if rings.state == state && rings.rings.len() < MOST_RINGS {
            let words = (RING_WORDS >> (rings.rings.len() / OF_A_SIZE).min(16)).max(LEAST_WORDS);
            let ring = Arc::new(EventRing::new(words, rings.reader.clone()));
            rings.rings.push(Arc::clone(&ring));
            self.writer = Some(EventRingWriter::new(ring));
        }
    }
}

/// Records events until it is stopped or dropped. A process can have one at a time.
#[derive(Debug)]
pub struct EventRecorder {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Totals>>,
    /// The process that started it; a forked copy must not stop the parent's.
    process: u32,
}

impl EventRecorder {
    /// Starts to record into a sink; `host` is the name of the host in the events.
    ///
    /// # Errors
    /// When another recorder runs, or no thread can be started.
    pub fn start(host: &str, sink: impl EventSink + 'static) -> io::Result<Self> {
        fork::watch();
        let mut rings = rings();
        if rings.state != 0 {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "this process is already recording events",
            ));
        }
        let stop = Arc::new(AtomicBool::new(false));
        let mut drain = Drain::new(host, Box::new(sink), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("events".into())
            .spawn(move || drain.work())?;
        STRAY.store(0, Ordering::Relaxed);
        rings.recorders += 1;
        rings.state = (rings.recorders << 1) | if clock::counts_ticks() { TICKS } else { 0 };
        rings.reader = Some(thread.thread().clone());
        rings.rings.clear();
        STATE.store(rings.state, Ordering::Release);
        Ok(Self {
            stop,
            thread: Some(thread),
            process: std::process::id(),
        })
    }

    /// Stops recording after everything emitted before has been passed to the sink.
    #[must_use]
    pub fn stop(mut self) -> Totals {
        self.end()
    }

    fn end(&mut self) -> Totals {
        let Some(thread) = self.thread.take() else {
            return Totals::default();
        };
        if self.process != std::process::id() {
            // This is a copy in a forked process, which does not have the draining thread.
            std::mem::forget(thread);
            return Totals::default();
        }
        STATE.store(0, Ordering::Release);
        self.stop.store(true, Ordering::Release);
        thread.thread().unpark();
        let totals = thread.join().unwrap_or_default();
        let mut rings = rings();
        rings.state = 0;
        rings.reader = None;
        rings.rings.clear();
        totals
    }
}

impl Drop for EventRecorder {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_emit_arrives_in_the_order_of_each() {
        let kept = MemoryEventSink::default();
        event!("BEFORE", 1);
        let recorder = EventRecorder::start("khons", kept.clone()).unwrap();
        assert!(EventRecorder::start("udjat", MemoryEventSink::default()).is_err());
        std::thread::scope(|scope| {
            for thread in 0..2 {
                scope.spawn(move || {
                    (0..1000).for_each(|n| event!("APP_SEND", thread, n, "some text"))
                });
            }
        });
        event!("LAST");
        let totals = recorder.stop();
        event!("AFTER");
        assert_eq!(
            totals,
            Totals {
                recorded: 2001,
                lost: 0,
                fault: None,
                clock_error_ns: totals.clock_error_ns
            }
        );
        let event_log = kept.event_log();
        let records: Vec<_> = event_log.records().collect();
        assert_eq!(records.len(), 2001);
        for thread in 0..2 {
            let numbers = records
                .iter()
                .filter(|record| record.values.first() == Some(&EventValue::Number(thread)));
            let numbers: Vec<i64> = numbers
                .filter_map(|record| record.values[1].number())
                .collect();
            assert_eq!(numbers, (0..1000).collect::<Vec<i64>>());
        }
        assert!(records.iter().all(|record| record.host == "khons"));
        again();
    }

    fn again() {
        let kept = MemoryEventSink::default();
        let recorder = EventRecorder::start("udjat", kept.clone()).unwrap();
        event!("APP_SEND", 1);
        drop(recorder);
        assert_eq!(
            kept.event_log()
                .records()
                .map(|record| record.host.to_owned())
                .collect::<Vec<_>>(),
            ["udjat"]
        );
    }
}
