//! Recording: each thread writes into a ring of its own, one thread drains them all into a sink.
//!
//! While no recorder runs, an event costs one load and one branch. A full ring loses nothing silently: how many records it
//! had no room for is an event, `EVENTS_LOST`.

use crate::ring::Ring;
use crate::tape::{self, Tape};
use crate::value::Value;
use crate::{Keyword, clock};
use std::cell::RefCell;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Words of a thread's ring: 2 MiB.
const RING_WORDS: usize = 1 << 18;
/// How often rings are drained.
const DRAIN_EVERY: Duration = Duration::from_millis(5);

/// Emits an event now: its keyword and its data, in the order [`crate::catalogue`] has them.
///
/// `event!("APP_SEND", unit, stream, offset, bytes)`
#[macro_export]
macro_rules! event {
    ($keyword:literal $(, $value:expr)* $(,)?) => {
        if $crate::recorder::on() {
            static KEYWORD: $crate::Keyword = $crate::Keyword::new($keyword);
            $crate::recorder::emit(&KEYWORD, &[$($crate::Value::from($value)),*]);
        }
    };
}

static ON: AtomicBool = AtomicBool::new(false);
/// Grows with every recorder, so that a thread leaves the ring of an earlier one.
static GENERATION: AtomicU64 = AtomicU64::new(0);
static RINGS: Mutex<Vec<Arc<Ring>>> = Mutex::new(Vec::new());

thread_local! {
    static MINE: RefCell<Mine> = const { RefCell::new(Mine { generation: 0, ring: None }) };
}

/// The calling thread's ring.
struct Mine {
    generation: u64,
    ring: Option<Arc<Ring>>,
}

impl Drop for Mine {
    fn drop(&mut self) {
        if let Some(ring) = &self.ring {
            ring.close();
        }
    }
}

/// Whether anybody records.
#[inline]
#[must_use]
pub fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Emits an event with the present time; use [`event!`].
#[inline]
pub fn emit(keyword: &Keyword, values: &[Value<'_>]) {
    emit_at(keyword.id(), clock::now_ns(), values);
}

/// Emits an event with a time and the number of its keyword.
#[inline]
pub fn emit_at(keyword: u32, at_ns: u64, values: &[Value<'_>]) {
    // A thread that is being taken down emits nothing any more.
    let _ = MINE.try_with(|mine| {
        let mut mine = mine.borrow_mut();
        if mine.generation != GENERATION.load(Ordering::Relaxed) {
            renew(&mut mine);
        }
        if let Some(ring) = &mine.ring {
            ring.put(tape::words_of(values), |put| tape::words(keyword, at_ns, values, put));
        }
    });
}

#[cold]
fn renew(mine: &mut Mine) {
    let mut rings = RINGS.lock().unwrap_or_else(PoisonError::into_inner);
    mine.generation = GENERATION.load(Ordering::Relaxed);
    let ring = Arc::new(Ring::new(RING_WORDS));
    rings.push(Arc::clone(&ring));
    mine.ring = Some(ring);
}

/// Where drained records go.
pub trait Sink: Send {
    /// Takes records; they are gone when it returns.
    ///
    /// # Errors
    /// When they cannot be kept: the recorder goes on counting and tells at its end.
    fn take(&mut self, tape: &Tape) -> io::Result<()>;
}

/// Keeps everything in memory.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    /// What was kept so far, which is then forgotten here.
    #[must_use]
    pub fn tape(&self) -> Tape {
        Tape::from_bytes(std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Sink for Memory {
    fn take(&mut self, tape: &Tape) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(tape.bytes());
        Ok(())
    }
}

/// What a recorder did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Records handed to the sink.
    pub recorded: u64,
    /// Records for which a ring had no room.
    pub lost: u64,
    /// Why the sink kept no more, when it did not.
    pub fault: Option<String>,
}

/// Records until it is stopped or dropped. There is one at a time in a process.
#[derive(Debug)]
pub struct Recorder {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Totals>>,
}

impl Recorder {
    /// Starts to record into a sink; `host` is whose the events are.
    ///
    /// # Errors
    /// When another records already, or no thread is to be had.
    pub fn start(host: &str, sink: impl Sink + 'static) -> io::Result<Self> {
        if ON.swap(true, Ordering::AcqRel) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "this process records events already"));
        }
        RINGS.lock().unwrap_or_else(PoisonError::into_inner).clear();
        GENERATION.fetch_add(1, Ordering::AcqRel);
        let stop = Arc::new(AtomicBool::new(false));
        let mut drain = Drain::new(host, Box::new(sink), Arc::clone(&stop));
        let thread = std::thread::Builder::new().name("events".into()).spawn(move || drain.work());
        match thread {
            Ok(thread) => Ok(Self { stop, thread: Some(thread) }),
            Err(error) => {
                ON.store(false, Ordering::Release);
                Err(error)
            }
        }
    }

    /// Ends it, when everything emitted before is with the sink.
    #[must_use]
    pub fn stop(mut self) -> Totals {
        self.end()
    }

    fn end(&mut self) -> Totals {
        let Some(thread) = self.thread.take() else { return Totals::default() };
        ON.store(false, Ordering::Release);
        self.stop.store(true, Ordering::Release);
        thread.thread().unpark();
        thread.join().unwrap_or_default()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.end();
    }
}

/// The thread that drains.
struct Drain {
    sink: Box<dyn Sink>,
    stop: Arc<AtomicBool>,
    tape: Tape,
    words: Vec<u64>,
    totals: Totals,
}

impl Drain {
    fn new(host: &str, sink: Box<dyn Sink>, stop: Arc<AtomicBool>) -> Self {
        let mut tape = Tape::default();
        tape.host(host);
        Self { sink, stop, tape, words: Vec::new(), totals: Totals::default() }
    }

    fn work(&mut self) -> Totals {
        loop {
            let last = self.stop.load(Ordering::Acquire);
            self.drain();
            if last {
                return std::mem::take(&mut self.totals);
            }
            std::thread::park_timeout(DRAIN_EVERY);
        }
    }

    fn drain(&mut self) {
        let rings: Vec<Arc<Ring>> = RINGS.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for ring in &rings {
            let closed = ring.is_closed();
            self.words.clear();
            ring.take(&mut self.words);
            self.totals.recorded += self.tape.extend(&self.words);
            self.tell_lost(ring.lost());
            if closed {
                let mut rings = RINGS.lock().unwrap_or_else(PoisonError::into_inner);
                rings.retain(|other| !Arc::ptr_eq(other, ring));
            }
        }
        if self.tape.bytes().is_empty() {
            return;
        }
        if self.totals.fault.is_none() {
            self.totals.fault = self.sink.take(&self.tape).err().map(|error| error.to_string());
        }
        self.tape.clear();
    }

    fn tell_lost(&mut self, lost: u64) {
        if lost > 0 {
            static LOST: Keyword = Keyword::new("EVENTS_LOST");
            self.totals.lost += lost;
            self.tape.push(LOST.id(), clock::now_ns(), &[Value::from(lost)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_emit_arrives_in_the_order_of_each() {
        let kept = Memory::default();
        event!("BEFORE", 1);
        let recorder = Recorder::start("khons", kept.clone()).unwrap();
        assert!(Recorder::start("udjat", Memory::default()).is_err());
        std::thread::scope(|scope| {
            for thread in 0..2 {
                scope.spawn(move || (0..1000).for_each(|n| event!("APP_SEND", thread, n, "some text")));
            }
        });
        event!("LAST");
        let totals = recorder.stop();
        event!("AFTER");
        assert_eq!(totals, Totals { recorded: 2001, lost: 0, fault: None });
        let tape = kept.tape();
        let records: Vec<_> = tape.records().collect();
        assert_eq!(records.len(), 2001);
        for thread in 0..2 {
            let numbers = records.iter().filter(|record| record.values.first() == Some(&Value::Number(thread)));
            let numbers: Vec<i64> = numbers.filter_map(|record| record.values[1].number()).collect();
            assert_eq!(numbers, (0..1000).collect::<Vec<i64>>());
        }
        assert!(records.iter().all(|record| record.host == "khons"));
        again();
    }

    fn again() {
        let kept = Memory::default();
        let recorder = Recorder::start("udjat", kept.clone()).unwrap();
        event!("APP_SEND", 1);
        drop(recorder);
        assert_eq!(kept.tape().records().map(|record| record.host.to_owned()).collect::<Vec<_>>(), ["udjat"]);
    }
}
