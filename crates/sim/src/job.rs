//! One side of one part: what its endpoints do, the flags that end them, the gate before their clocks, and what they saw
//! together.

use crate::world::{Timer, World};
use stackline_core::plan::{Count, Data, Measurement, Part};
use stackline_core::program::{self, Side, Step};
use stackline_core::random::Seed;
use stackline_core::record::{Histogram, SideRecord};
use stackline_core::time::{Duration, Instant};
use std::cell::Cell;

/// What one side of one part does, for all its replicas.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) side: Side,
    pub(crate) steps: Vec<Step>,
    /// Whether connections carry data units.
    pub(crate) carries_data: bool,
    pub(crate) data: Data,
    /// The run's and part's node in the tree of seeds; replicas are its numbered children.
    pub(crate) seed: Seed,
    pub(crate) replicas: u32,
    pub(crate) time_limit: Option<Duration>,
    /// Load: begins again until it is told to end.
    pub(crate) background: bool,
    /// Whether the stack brings everything, once and in order.
    pub(crate) reliable: bool,
    pub(crate) host: String,
}

/// What tells endpoints to stop.
#[derive(Debug, Default)]
pub(crate) struct Flags {
    limit: Cell<bool>,
    ended: Cell<bool>,
}

impl Flags {
    /// Whether the limit was reached, or a load is no longer wanted: end cleanly.
    pub(crate) const fn limit(&self) -> bool {
        self.limit.get()
    }

    /// Whether to end at once.
    pub(crate) const fn ended(&self) -> bool {
        self.ended.get()
    }
}

/// One side of one part.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) number: u32,
    pub(crate) part: usize,
    pub(crate) task: Task,
    pub(crate) flags: Flags,
    /// Its endpoints: the first one's number; they follow one another.
    pub(crate) first: u32,
    /// Endpoints that have come to the gate.
    pub(crate) waiting: Cell<u32>,
    pub(crate) open: Cell<bool>,
    /// Endpoints that are done.
    pub(crate) done: Cell<u32>,
    /// What goes wrong from now on in a load is no failure.
    pub(crate) ending: Cell<bool>,
    armed: Cell<bool>,
}

impl Job {
    pub(crate) fn new(number: u32, part: usize, task: Task, first: u32) -> Self {
        Self {
            number,
            part,
            task,
            flags: Flags::default(),
            first,
            waiting: Cell::new(0),
            open: Cell::new(false),
            done: Cell::new(0),
            ending: Cell::new(false),
            armed: Cell::new(false),
        }
    }

    /// Starts counting the time limit; a second time does nothing. A side that only awaits follows the other's limit.
    pub(crate) fn arm(&self, world: &World) {
        if let Some(limit) = self.task.time_limit
            && drives(&self.task.steps)
            && !self.armed.replace(true)
        {
            world.set_timer(world.now() + limit, Timer::Alarm(self.number));
        }
    }

    /// Ends it: cleanly where it loops; at once when `now`.
    pub(crate) fn end(&self, now: bool, world: &World) {
        self.flags.limit.set(true);
        if now {
            self.flags.ended.set(true);
            self.open.set(true);
        }
        self.wake_all(world);
    }

    /// Lets its endpoints through the gate.
    pub(crate) fn go(&self, world: &World) {
        self.open.set(true);
        self.wake_all(world);
    }

    fn wake_all(&self, world: &World) {
        (self.first..self.first + self.task.replicas).for_each(|endpoint| world.wake(endpoint));
    }

    /// All its endpoints stand at the gate, or are done already.
    pub(crate) fn is_ready(&self) -> bool {
        self.waiting.get().max(self.done.get()) >= self.task.replicas
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done.get() == self.task.replicas
    }

    /// In words: `initiator on khons`.
    pub(crate) fn name(&self) -> String {
        let side = if self.task.side == Side::Initiator { "initiator" } else { "responder" };
        format!("{side} on {}", self.task.host)
    }
}

/// Whether a side begins anything by itself that a time limit can keep it from going on with.
fn drives(steps: &[Step]) -> bool {
    program::any(steps, &|call| call.drives() == Some(true))
}

/// The task of one side of a part.
pub(crate) fn task(measurement: &Measurement, part: &Part, side: Side, seed: Seed, host: &str) -> Task {
    Task {
        side,
        steps: part.procedure.side(side).to_vec(),
        carries_data: part.procedure.carries_data(),
        // A load goes on until it is told to end, on the connection it has.
        data: if part.background { Data { count: Count::Unlimited, ..part.data.clone() } } else { part.data.clone() },
        seed,
        replicas: part.replicas,
        time_limit: if part.background { None } else { measurement.time_limit },
        background: part.background,
        reliable: crate::stacks::table(&part.stack.name).is_ok_and(|table| table.reliable),
        host: host.to_string(),
    }
}

/// What one endpoint saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) record: SideRecord,
    /// When its clock started and stopped, as its host reads it.
    pub(crate) period: Option<(Instant, Instant)>,
    pub(crate) limited: bool,
    pub(crate) calls: Histogram,
    pub(crate) connects: Histogram,
    pub(crate) lateness: Histogram,
}

/// What all endpoints of a side saw.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) record: SideRecord,
    pub(crate) elapsed_ns: u64,
    pub(crate) span_ns: u64,
    pub(crate) limited: bool,
    pub(crate) calls: Histogram,
    pub(crate) connects: Histogram,
    pub(crate) lateness: Histogram,
}

/// All endpoints together: counters summed, gauges of the first.
pub(crate) fn gather(all: Vec<Seen>) -> Gathered {
    let mut gathered = Gathered {
        calls: Histogram::merged(all.iter().map(|seen| &seen.calls)),
        connects: Histogram::merged(all.iter().map(|seen| &seen.connects)),
        lateness: Histogram::merged(all.iter().map(|seen| &seen.lateness)),
        ..Gathered::default()
    };
    let mut period: Option<(Instant, Instant)> = None;
    for seen in all {
        if let Some((start, stop)) = seen.period {
            gathered.elapsed_ns = gathered.elapsed_ns.max((stop - start).0);
            let (first, last) = period.unwrap_or((start, stop));
            period = Some((first.min(start), last.max(stop)));
        }
        gathered.limited |= seen.limited;
        gathered.record.add(seen.record);
    }
    gathered.span_ns = period.map_or(0, |(first, last)| (last - first).0);
    gathered
}
