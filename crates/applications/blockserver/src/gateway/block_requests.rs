//! The desk: it records which requests wait for which block. A block that several wait for is requested once; one that nobody waits for any
//! more is not requested.
//!
//! It limits the blocks that are requested and have not come ([`limits::FLIGHT`]): further blocks wait here, where giving them up costs
//! nothing.

use super::limits;
use super::memory_limit::{GatewayMemoryGrant, Room};
use crate::client::ReceivedBlock;
use bytes::Bytes;
use stackline_blocks::wire::message::Why;
use stackline_blocks::wire::server_messages::BlockHead;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// A block that has come.
#[derive(Clone, Debug)]
pub(super) struct GatewayBlock {
    /// The block's head: what it is, and its time stamps.
    pub(super) head: BlockHead,
    /// The block's data.
    pub(super) data: Bytes,
    /// When the whole block had come, ns.
    pub(super) at: u64,
}

/// Why a block does not come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GatewayBlockFailure {
    /// For the block server's reason.
    Why(Why),
    /// It could not be requested, for this reason.
    Words(String),
    /// Nothing came for too long.
    Late,
}

/// The outcome for a block.
pub(super) type GatewayBlockOutcome = Result<GatewayBlock, GatewayBlockFailure>;

/// An event of a list. It has a variant of its own for the end, since a client may ask for any block number.
#[derive(Debug)]
pub(super) enum GatewayListEvent {
    /// The number of a block, and its outcome.
    Block(u64, GatewayBlockOutcome),
    /// A newer list of the same viewer has come.
    Superseded,
}

/// A request that waits for a block.
#[derive(Debug)]
pub(super) enum GatewayBlockWaiter {
    /// It waits for this block alone.
    One(oneshot::Sender<GatewayBlockOutcome>),
    /// It waits for this block among others, until its list is over.
    Among(mpsc::UnboundedSender<GatewayListEvent>, Arc<AtomicBool>),
}

impl GatewayBlockWaiter {
    fn is_gone(&self) -> bool {
        match self {
            Self::One(to) => to.is_closed(),
            Self::Among(to, over) => over.load(Ordering::Relaxed) || to.is_closed(),
        }
    }

    fn deliver(self, number: u64, outcome: GatewayBlockOutcome) {
        // Sending fails if the request has ended; then nobody needs the block.
        match self {
            Self::One(to) => drop(to.send(outcome)),
            Self::Among(to, _) => drop(to.send(GatewayListEvent::Block(number, outcome))),
        }
    }
}

struct QueuedGatewayBlock {
    set: u32,
    number: u64,
    length: u32,
    since: Instant,
    waiter: GatewayBlockWaiter,
}

struct GatewayBlockInFlight {
    length: u32,
    taken: GatewayMemoryGrant,
    since: Instant,
    waiters: Vec<GatewayBlockWaiter>,
}

#[derive(Default)]
struct GatewayDeskState {
    queue: VecDeque<QueuedGatewayBlock>,
    flights: BTreeMap<(u32, u64), GatewayBlockInFlight>,
    bytes: u64,
    /// Whether wanted blocks wait for memory.
    is_crowded: bool,
    over: bool,
}

/// The waiting requests and wanted blocks of one session.
pub(super) struct Desk {
    state: Mutex<GatewayDeskState>,
    changed: Condvar,
    room: Arc<Room>,
}

impl Desk {
    /// A desk whose blocks take memory from `room`.
    pub(super) fn new(room: Arc<Room>) -> Arc<Self> {
        let desk = Arc::new(Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            room,
        });
        desk.room.serves(&desk);
        desk
    }

    /// Wakes the requesting thread, since there may be memory for what waits.
    pub(super) fn look(&self) {
        // Taking the lock makes sure that a thread that is about to wait is notified.
        drop(self.state());
        self.changed.notify_one();
    }

    /// Closes clients that take nothing, if wanted blocks wait for memory.
    pub(super) fn close_stalled(&self) {
        let waited = {
            let state = self.state();
            let first = state.queue.front().filter(|_| state.is_crowded);
            first.map(|wanted| wanted.since.elapsed())
        };
        if let Some(waited) = waited {
            self.room.close_stalled(waited);
        }
    }

    fn state(&self) -> MutexGuard<'_, GatewayDeskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers requests for blocks of a set, each of this many bytes. Blocks that are wanted at the same time go into one list.
    pub(super) fn want(
        &self,
        set: u32,
        blocks: impl IntoIterator<Item = (u64, u32, GatewayBlockWaiter)>,
    ) {
        let mut state = self.state();
        let since = Instant::now();
        for (number, length, waiter) in blocks {
            if let Some(flight) = state.flights.get_mut(&(set, number)) {
                flight.waiters.push(waiter);
            } else {
                state.queue.push_back(QueuedGatewayBlock {
                    set,
                    number,
                    length,
                    since,
                    waiter,
                });
            }
        }
        self.changed.notify_one();
    }

    /// Registers a request for one block.
    pub(super) fn one(
        &self,
        set: u32,
        number: u64,
        length: u32,
    ) -> oneshot::Receiver<GatewayBlockOutcome> {
        let (to, from) = oneshot::channel();
        self.want(set, [(number, length, GatewayBlockWaiter::One(to))]);
        from
    }

    /// Waits for blocks that have to be requested, and returns them by set; `None` once the desk is closed.
    pub(super) fn next(&self) -> Option<BTreeMap<u32, Vec<u64>>> {
        let mut state = self.state();
        loop {
            if state.over {
                return None;
            }
            let now = state.take(&self.room);
            if !now.is_empty() {
                return Some(now);
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Delivers a block that came.
    pub(super) fn came(&self, block: ReceivedBlock) {
        let ReceivedBlock { head, data, at, .. } = block;
        let (set, number) = (head.set, head.number);
        let Some(GatewayBlockInFlight { taken, waiters, .. }) = self.land(set, number) else {
            return;
        };
        let outcome = Ok(GatewayBlock {
            head,
            data: taken.holding(data),
            at: at.0,
        });
        waiters
            .into_iter()
            .for_each(|waiter| waiter.deliver(number, outcome.clone()));
    }

    /// Reports that a block will not come.
    pub(super) fn failed(&self, set: u32, number: u64, failure: GatewayBlockFailure) {
        let Some(GatewayBlockInFlight { waiters, .. }) = self.land(set, number) else {
            return;
        };
        waiters
            .into_iter()
            .for_each(|waiter| waiter.deliver(number, Err(failure.clone())));
    }

    /// Removes a block from those in flight.
    fn land(&self, set: u32, number: u64) -> Option<GatewayBlockInFlight> {
        let mut state = self.state();
        let flight = state.flights.remove(&(set, number))?;
        state.bytes -= u64::from(flight.length);
        self.changed.notify_one();
        Some(flight)
    }

    /// Gives up requests that have waited longer than `after`. Returns whether there were any.
    pub(super) fn give_up(&self, after: Duration) -> bool {
        let (mut late, mut room) = (Vec::new(), Vec::new());
        let mut state = self.state();
        let is_late = |since: Instant| since.elapsed() >= after;
        while state
            .queue
            .front()
            .is_some_and(|wanted| is_late(wanted.since))
        {
            late.extend(
                state
                    .queue
                    .pop_front()
                    .map(|wanted| (wanted.number, wanted.waiter)),
            );
        }
        let over: Vec<(u32, u64)> = state
            .flights
            .iter()
            .filter(|(_, flight)| is_late(flight.since))
            .map(|(block, _)| *block)
            .collect();
        for block in over {
            let Some(flight) = state.flights.remove(&block) else {
                continue;
            };
            state.bytes -= u64::from(flight.length);
            late.extend(flight.waiters.into_iter().map(|waiter| (block.1, waiter)));
            room.push(flight.taken);
        }
        drop(state);
        // Only after the lock is released: dropping memory wakes tasks that look at this desk.
        drop(room);
        self.changed.notify_one();
        let any = !late.is_empty();
        for (number, waiter) in late {
            waiter.deliver(number, Err(GatewayBlockFailure::Late));
        }
        any
    }

    /// Closes the desk: no request waits any more.
    pub(super) fn end(&self) {
        self.state().over = true;
        self.changed.notify_all();
    }

    /// Whether the desk is closed.
    pub(super) fn is_over(&self) -> bool {
        self.state().over
    }
}

impl GatewayDeskState {
    /// Takes wanted blocks from the queue as far as there is memory.
    fn take(&mut self, room: &Arc<Room>) -> BTreeMap<u32, Vec<u64>> {
        let mut now: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        self.is_crowded = false;
        while self.bytes < limits::FLIGHT && self.flights.len() < limits::FLIGHT_BLOCKS {
            let Some(wanted) = self.queue.pop_front() else {
                break;
            };
            if wanted.waiter.is_gone() {
                continue;
            }
            let QueuedGatewayBlock {
                set,
                number,
                length,
                since,
                waiter,
            } = wanted;
            if let Some(flight) = self.flights.get_mut(&(set, number)) {
                flight.waiters.push(waiter);
                continue;
            }
            let Some(taken) = room.take(length.into()) else {
                self.queue.push_front(QueuedGatewayBlock {
                    set,
                    number,
                    length,
                    since,
                    waiter,
                });
                self.is_crowded = true;
                break;
            };
            self.flights.insert(
                (set, number),
                GatewayBlockInFlight {
                    length,
                    taken,
                    since: Instant::now(),
                    waiters: vec![waiter],
                },
            );
            self.bytes += u64::from(length);
            now.entry(set).or_default().push(number);
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u32 = 1 << 20;

    #[test]
    fn what_several_wait_for_is_asked_for_once() {
        let desk = Desk::new(Room::new(limits::ROOM));
        let mut waiting: Vec<_> = [7, 8, 7]
            .iter()
            .map(|number| desk.one(1, *number, MIB))
            .collect();
        assert_eq!(desk.next().unwrap(), BTreeMap::from([(1, vec![7, 8])]));
        let mut late = desk.one(1, 7, MIB);
        assert_eq!(desk.state().take(&desk.room), BTreeMap::new());
        desk.failed(1, 7, GatewayBlockFailure::Late);
        assert_eq!(
            late.try_recv().unwrap().unwrap_err(),
            GatewayBlockFailure::Late
        );
        assert!(
            waiting[0].try_recv().is_ok()
                && waiting[1].try_recv().is_err()
                && waiting[2].try_recv().is_ok()
        );
        assert_eq!(desk.state().bytes, u64::from(MIB));
    }

    #[test]
    fn what_nobody_waits_for_is_not_asked_for() {
        let desk = Desk::new(Room::new(limits::ROOM));
        let given_up = desk.one(1, 1, MIB);
        let kept = desk.one(1, 2, MIB);
        drop(given_up);
        assert_eq!(desk.next().unwrap(), BTreeMap::from([(1, vec![2])]));
        drop(kept);
        let over = Arc::new(AtomicBool::new(false));
        let (to, _from) = mpsc::unbounded_channel();
        desk.want(
            1,
            [(
                3,
                MIB,
                GatewayBlockWaiter::Among(to.clone(), Arc::clone(&over)),
            )],
        );
        over.store(true, Ordering::Relaxed);
        desk.want(1, [(4, MIB, GatewayBlockWaiter::Among(to, Arc::default()))]);
        assert_eq!(desk.next().unwrap(), BTreeMap::from([(1, vec![4])]));
    }

    #[test]
    fn no_more_is_in_flight_than_is_allowed() {
        let desk = Desk::new(Room::new(limits::ROOM));
        let waiting: Vec<_> = (0..40).map(|number| desk.one(1, number, MIB)).collect();
        assert_eq!(desk.next().unwrap()[&1].len(), 16);
        assert_eq!(desk.state().take(&desk.room), BTreeMap::new());
        desk.failed(1, 3, GatewayBlockFailure::Late);
        assert_eq!(desk.next().unwrap(), BTreeMap::from([(1, vec![16])]));
        drop(waiting);
    }

    #[test]
    fn a_waiter_gets_late_after_too_long() {
        let desk = Desk::new(Room::new(limits::ROOM));
        let mut waiting: Vec<_> = (0..20).map(|number| desk.one(1, number, MIB)).collect();
        assert_eq!(desk.next().unwrap()[&1].len(), 16);
        assert!(!desk.give_up(Duration::from_secs(3600)));
        assert!(desk.give_up(Duration::ZERO));
        assert!(
            waiting.iter_mut().all(
                |waiting| waiting.try_recv().unwrap().unwrap_err() == GatewayBlockFailure::Late
            )
        );
        assert!(desk.state().queue.is_empty() && desk.state().bytes == 0);
    }
}
