//! Readings that wait for their analysis, and the worker thread that analyses them. The worker has the lowest priority, so that
//! traced programs get the cores first. Waiting readings take memory, which is bounded: at the bound the worker gets normal priority
//! (the queue is urgent), and the reading thread analyses too, until half of the queue is done. The queue is also urgent if a few
//! bytes have waited for long, as other threads want all cores then.

use crate::source_reading::SourceReading;
use crate::thread_directory::own_thread;
use crate::trace_analysis::TraceAnalysis;
use stackline_core::error::Result;
use stackline_monitor::clock::thread_cpu_s;
use stackline_os::thread::{ThreadSchedule, schedule, set_schedule, set_schedule_of};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// Waiting readings may take the memory that is available when the trace begins divided by this, within the two limits below.
const PART_OF_MEMORY: usize = 8;
/// The smallest bound of waiting readings, bytes.
const LEAST_BYTES: usize = 32 << 20;
/// The largest bound of waiting readings, bytes.
const MOST_BYTES: usize = 1 << 30;
/// If readings have waited for longer than this (ns) although fewer than [`LITTLE_BYTES`] a second come, the queue becomes urgent:
/// that little is analysed quickly.
const LONG_NS: u64 = 2_000_000_000;
/// Bytes a second.
const LITTLE_BYTES: u64 = 4 << 20;
/// The niceness of the worker where this process may not lower a niceness again.
const LAST_NICE: i32 = 19;

/// The queue of readings, and the analysis that they are given to.
pub(crate) struct AnalysisQueue {
    analysis: Mutex<TraceAnalysis>,
    waiting: Mutex<WaitingReadings>,
    /// Signalled when a reading was added or the trace is over.
    came: Condvar,
    /// At this size the queue becomes urgent.
    most_bytes: usize,
    /// The normal schedule of threads here; `None` if it cannot be read.
    before: Option<ThreadSchedule>,
    /// The worker thread, once it runs.
    worker: OnceLock<AnalysisThread>,
}

/// The worker thread, and its schedule of lowest priority.
struct AnalysisThread {
    number: u32,
    behind: ThreadSchedule,
}

/// The readings that wait.
#[derive(Default)]
struct WaitingReadings {
    readings: VecDeque<SourceReading>,
    /// Their approximate size.
    bytes: usize,
    /// Whether no further reading comes.
    is_over: bool,
    /// Whether the worker has normal priority, and the reading thread helps.
    is_urgent: bool,
}

impl WaitingReadings {
    /// Whether the oldest reading has waited for longer than `long_ns` although few bytes come.
    fn is_little_and_late(&self, long_ns: u64) -> bool {
        let ends = self.readings.front().zip(self.readings.back());
        let age_ns = ends.map_or(0, |(first, last)| last.now_ns.saturating_sub(first.now_ns));
        age_ns > long_ns && self.bytes as u64 / (age_ns / 1_000_000_000).max(1) < LITTLE_BYTES
    }
}

impl AnalysisQueue {
    /// An empty queue.
    pub(crate) fn new(analysis: TraceAnalysis) -> Self {
        Self {
            analysis: Mutex::new(analysis),
            waiting: Mutex::default(),
            came: Condvar::new(),
            most_bytes: most_bytes(),
            before: schedule().ok(),
            worker: OnceLock::new(),
        }
    }

    /// Takes the analysis out when all readings are analysed.
    pub(crate) fn into_analysis(self) -> TraceAnalysis {
        self.analysis
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the threads of the observer itself, by the kernel's numbers.
    pub(crate) fn observed_by(&self, threads: Vec<u32>) {
        let mut analysis = self.analysis.lock().unwrap_or_else(PoisonError::into_inner);
        analysis.recorder.observed_by(threads);
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingReadings> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a reading; if the queue becomes urgent, the worker gets normal priority.
    pub(crate) fn push(&self, reading: SourceReading) {
        let mut waiting = self.waiting();
        waiting.bytes += reading.bytes();
        waiting.readings.push_back(reading);
        let is_full = waiting.bytes > self.most_bytes || waiting.is_little_and_late(LONG_NS);
        let raises = is_full && !waiting.is_urgent;
        waiting.is_urgent |= is_full;
        drop(waiting);
        self.came.notify_one();
        if raises {
            self.raise();
        }
    }

    /// If the queue is urgent, analyses readings on the calling thread for at most `time`.
    ///
    /// # Errors
    /// When events cannot be written.
    pub(crate) fn relieve(&self, time: Duration) -> Result<()> {
        let until = Instant::now() + time;
        while self.waiting().is_urgent && Instant::now() < until {
            let mut analysis = match self.analysis.try_lock() {
                Ok(analysis) => analysis,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                // The worker is at it already.
                Err(TryLockError::WouldBlock) => return Ok(()),
            };
            if !self.step(&mut analysis)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Analyses one reading; returns whether there was one.
    fn step(&self, analysis: &mut TraceAnalysis) -> Result<bool> {
        let mut waiting = self.waiting();
        let Some(reading) = waiting.readings.pop_front() else {
            return Ok(false);
        };
        waiting.bytes -= reading.bytes();
        let is_less =
            waiting.bytes < self.most_bytes / 2 && !waiting.is_little_and_late(LONG_NS / 2);
        let calms = waiting.is_urgent && !waiting.is_over && is_less;
        waiting.is_urgent &= !calms;
        drop(waiting);
        if calms {
            self.lower();
        }
        analysis.take(reading).map(|()| true)
    }

    /// Runs the worker: analyses readings at the lowest priority until no more come. Returns the CPU seconds that this took.
    ///
    /// # Errors
    /// When events cannot be written.
    pub(crate) fn work(&self) -> Result<f64> {
        let began = thread_cpu_s();
        if let Some(before) = self.before {
            let number = own_thread();
            let behind = behind_all(before);
            self.worker
                .get_or_init(|| AnalysisThread { number, behind });
            self.lower();
        }
        loop {
            // Locked before a reading is taken, so that readings are analysed in their order.
            let mut analysis = self.analysis.lock().unwrap_or_else(PoisonError::into_inner);
            if self.step(&mut analysis)? {
                continue;
            }
            drop(analysis);
            let waiting = self.waiting();
            let nothing =
                |waiting: &mut WaitingReadings| waiting.readings.is_empty() && !waiting.is_over;
            let waiting = self.came.wait_while(waiting, nothing);
            let waiting = waiting.unwrap_or_else(PoisonError::into_inner);
            if waiting.readings.is_empty() {
                return Ok(thread_cpu_s() - began);
            }
        }
    }

    /// No further reading comes: analyses the rest at normal priority, on the calling thread too.
    ///
    /// # Errors
    /// When events cannot be written.
    pub(crate) fn finish(&self) -> Result<()> {
        let mut waiting = self.waiting();
        (waiting.is_over, waiting.is_urgent) = (true, true);
        drop(waiting);
        self.came.notify_all();
        self.raise();
        loop {
            let mut analysis = self.analysis.lock().unwrap_or_else(PoisonError::into_inner);
            if !self.step(&mut analysis)? {
                return Ok(());
            }
        }
    }

    /// Gives the worker the lowest priority. An error is ignored: it keeps its priority then.
    fn lower(&self) {
        if let Some(AnalysisThread { number, behind }) = self.worker.get() {
            let _ = set_schedule_of(*number, *behind);
        }
    }

    /// Gives the worker its normal priority.
    fn raise(&self) {
        if let (Some(before), Some(worker)) = (self.before, self.worker.get()) {
            let _ = set_schedule_of(worker.number, before);
        }
    }
}

/// The schedule of lowest priority for this thread: SCHED_IDLE if the process may raise the priority again, else the highest
/// niceness, which still gets a small share of a core.
fn behind_all(before: ThreadSchedule) -> ThreadSchedule {
    let better = before.with(before.nice.saturating_sub(1), 0);
    match set_schedule(better) {
        Ok(()) => before.idle(),
        Err(_) => before.with(LAST_NICE, 0),
    }
}

/// The bound of waiting readings, bytes.
fn most_bytes() -> usize {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = |line: &str| {
        let size = line.strip_prefix("MemAvailable:")?.trim();
        size.strip_suffix("kB")?.trim().parse::<usize>().ok()
    };
    let available = meminfo.lines().find_map(kib).unwrap_or(0) << 10;
    (available / PART_OF_MEMORY).clamp(LEAST_BYTES, MOST_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_order::EventOrder;
    use crate::recorder::RequestRecorder;
    use crate::thread_directory::ThreadDirectory;
    use stackline_monitor::capture::Packet;
    use stackline_runs::events::Spooling;
    use std::sync::Arc;

    /// Readings of ten packets each.
    fn push(queue: &AnalysisQueue, count: u64) {
        for now_ns in 1..=count {
            let mut reading = SourceReading {
                now_ns,
                is_last: now_ns == count,
                ..SourceReading::default()
            };
            let packet = Packet {
                at_ns: now_ns,
                interface: 1,
                outgoing: false,
                length: 20,
                bytes: &[0; 20],
            };
            (0..10).for_each(|_| reading.packets.push(0, &packet));
            queue.push(reading);
            queue.relieve(Duration::from_millis(1)).unwrap();
        }
    }

    #[test]
    fn whatever_waits_is_analysed_also_where_it_is_too_much() {
        for most_bytes in [0, 10_000, MOST_BYTES] {
            let run = tempfile::tempdir().unwrap();
            let analysis = TraceAnalysis {
                order: EventOrder::new(None, None, Vec::new()),
                recorder: RequestRecorder::new(
                    Vec::new(),
                    false,
                    false,
                    false,
                    ThreadDirectory::default(),
                ),
                keys: None,
                spool: Spooling::start(run.path()).unwrap(),
            };
            let mut queue = AnalysisQueue::new(analysis);
            queue.most_bytes = most_bytes;
            let queue = Arc::new(queue);
            let working = Arc::clone(&queue);
            let worker = std::thread::spawn(move || working.work());
            push(&queue, 200);
            queue.finish().unwrap();
            worker.join().unwrap().unwrap();
            let analysis = Arc::into_inner(queue).unwrap().into_analysis();
            assert_eq!(analysis.order.packets, 2_000);
        }
    }

    #[test]
    fn memory_for_what_waits_has_limits() {
        assert!((LEAST_BYTES..=MOST_BYTES).contains(&most_bytes()));
    }
}
