//! The limit on memory for all clients together: blocks in flight and in answers, pictures, texts. Without room, what is wanted waits.
//! While others wait, clients that take nothing are closed, the one that has taken nothing for the longest time first.

use super::block_requests::Desk;
use super::limits;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How often a task that waits for memory looks for a client that has to give way.
const LOOK: Duration = Duration::from_millis(250);

/// The memory for all clients, as a counter of bytes.
#[derive(Debug)]
pub(super) struct Room {
    most: u64,
    held: AtomicU64,
    peak: AtomicU64,
    /// Clients that were closed because others waited.
    closed: AtomicU64,
    changed: Notify,
    desks: Mutex<Vec<Weak<Desk>>>,
    clients: Mutex<GatewayClients>,
}

#[derive(Debug, Default)]
struct GatewayClients {
    next: u64,
    all: BTreeMap<u64, Arc<GatewayClientStall>>,
}

/// Since when a client has taken nothing.
#[derive(Debug, Default)]
struct GatewayClientStall {
    since: Mutex<Option<Instant>>,
    end: Notify,
}

/// Bytes that count as held until this is dropped.
#[derive(Debug)]
pub(super) struct GatewayMemoryGrant {
    room: Arc<Room>,
    bytes: u64,
}

impl Drop for GatewayMemoryGrant {
    fn drop(&mut self) {
        self.room.held.fetch_sub(self.bytes, Ordering::SeqCst);
        self.room.released();
    }
}

/// Bytes of an answer together with the grant for their memory.
struct GatewayChargedBytes {
    data: Vec<u8>,
    _taken: GatewayMemoryGrant,
}

impl AsRef<[u8]> for GatewayChargedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl GatewayMemoryGrant {
    /// Ties the grant to these bytes: it is held as long as anybody has them.
    pub(super) fn holding(self, data: Vec<u8>) -> Bytes {
        Bytes::from_owner(GatewayChargedBytes { data, _taken: self })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Room {
    /// A limit of `most` bytes.
    pub(super) fn new(most: u64) -> Arc<Self> {
        Arc::new(Self {
            most,
            held: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            closed: AtomicU64::new(0),
            changed: Notify::new(),
            desks: Mutex::default(),
            clients: Mutex::default(),
        })
    }

    /// The most bytes that were held at once.
    pub(super) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// The number of clients that were closed because others waited for memory.
    pub(super) fn closed(&self) -> u64 {
        self.closed.load(Ordering::Relaxed)
    }

    /// Takes this many bytes if there is room, or if nothing else is held.
    pub(super) fn take(self: &Arc<Self>, bytes: u64) -> Option<GatewayMemoryGrant> {
        let fits = |held: u64| {
            (held == 0 || held.saturating_add(bytes) <= self.most)
                .then_some(held.saturating_add(bytes))
        };
        let held = self
            .held
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits)
            .ok()?;
        self.peak.fetch_max(held + bytes, Ordering::Relaxed);
        Some(GatewayMemoryGrant {
            room: Arc::clone(self),
            bytes,
        })
    }

    /// Takes this many bytes even without room, for something made from other held bytes that are about to be released.
    pub(super) fn take_anyway(self: &Arc<Self>, bytes: u64) -> GatewayMemoryGrant {
        let held = self.held.fetch_add(bytes, Ordering::SeqCst);
        self.peak.fetch_max(held + bytes, Ordering::Relaxed);
        GatewayMemoryGrant {
            room: Arc::clone(self),
            bytes,
        }
    }

    /// Waits for room for this many bytes; `None` if there is none for too long.
    pub(super) async fn wait(self: &Arc<Self>, bytes: u64) -> Option<GatewayMemoryGrant> {
        let began = Instant::now();
        loop {
            let changed = self.changed.notified();
            if let Some(taken) = self.take(bytes) {
                return Some(taken);
            }
            let waited = began.elapsed();
            if waited >= limits::ANSWER {
                return None;
            }
            self.close_stalled(waited);
            let _ = tokio::time::timeout(LOOK, changed).await;
        }
    }

    /// Registers a desk that waits for memory too.
    pub(super) fn serves(&self, desk: &Arc<Desk>) {
        let mut desks = lock(&self.desks);
        desks.retain(|desk| desk.strong_count() > 0);
        desks.push(Arc::downgrade(desk));
    }

    fn released(&self) {
        let desks: Vec<Arc<Desk>> = lock(&self.desks).iter().filter_map(Weak::upgrade).collect();
        desks.iter().for_each(|desk| desk.look());
        self.changed.notify_waiters();
    }

    /// Handles that somebody has waited for memory for `waited`: closes the client that has taken nothing for the longest time, and all
    /// that have taken nothing for long. Clients could hold the memory in turns for minutes; so after [`limits::LONG_WAIT`], half of those
    /// that take nothing are closed at once.
    pub(super) fn close_stalled(&self, waited: Duration) {
        let clients = lock(&self.clients);
        let stalled = clients
            .all
            .values()
            .filter_map(|stall| Some(((*lock(&stall.since))?, stall)));
        let mut stalled: Vec<_> = stalled.collect();
        stalled.sort_by_key(|(since, _)| *since);
        let (first, least) = if waited < limits::LONG_WAIT {
            (1, limits::IDLE)
        } else {
            (stalled.len().div_ceil(2), LOOK)
        };
        for (place, (since, stall)) in stalled.into_iter().enumerate() {
            let least = if place < first {
                least
            } else {
                limits::LONG_IDLE
            };
            if since.elapsed() >= least {
                *lock(&stall.since) = None;
                self.closed.fetch_add(1, Ordering::Relaxed);
                stall.end.notify_one();
            }
        }
    }

    /// Registers a client.
    pub(super) fn enter(self: &Arc<Self>) -> GatewayClient {
        let mut clients = lock(&self.clients);
        let number = clients.next;
        clients.next += 1;
        let stall = Arc::<GatewayClientStall>::default();
        clients.all.insert(number, Arc::clone(&stall));
        GatewayClient {
            room: Arc::clone(self),
            number,
            stall,
        }
    }
}

/// A registered client that may have to give way.
#[derive(Debug)]
pub(super) struct GatewayClient {
    room: Arc<Room>,
    number: u64,
    stall: Arc<GatewayClientStall>,
}

impl GatewayClient {
    /// Notes that the client takes nothing from here on, unless that is noted already.
    pub(super) fn stalls(&self) {
        lock(&self.stall.since).get_or_insert_with(Instant::now);
    }

    /// Notes that the client takes something.
    pub(super) fn moves(&self) {
        *lock(&self.stall.since) = None;
    }

    /// Waits until the client has to give way.
    pub(super) fn has_to_go(&self) -> impl Future<Output = ()> + use<> {
        let stall = Arc::clone(&self.stall);
        async move { stall.end.notified().await }
    }
}

impl Drop for GatewayClient {
    fn drop(&mut self) {
        lock(&self.room.clients).all.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_held_than_there_is_room_for() {
        let room = Room::new(100);
        let (first, second) = (room.take(60), room.take(40));
        assert!(first.is_some() && second.is_some() && room.take(1).is_none());
        let bytes = first.unwrap().holding(vec![7; 60]);
        let part = bytes.slice(..1);
        drop(bytes);
        assert!(room.take(1).is_none(), "a part of it is still held");
        drop(part);
        assert!(room.take(60).is_some());
        drop(second);
        // What is larger than all of it goes alone.
        let large = room.take(1000);
        assert!(large.is_some() && room.take(1).is_none());
        assert_eq!(room.peak(), 1000);
    }

    #[test]
    fn the_client_that_takes_nothing_for_longest_is_closed() {
        let room = Room::new(1);
        let (first, second, moving) = (room.enter(), room.enter(), room.enter());
        moving.stalls();
        moving.moves();
        second.stalls();
        first.stalls();
        room.close_stalled(Duration::ZERO);
        assert_eq!(room.closed(), 0, "it may just be slow");
        *lock(&first.stall.since) = Instant::now().checked_sub(limits::IDLE);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        room.close_stalled(Duration::ZERO);
        runtime.block_on(first.has_to_go());
        assert_eq!(room.closed(), 1);
        // All that have stalled for long go at once.
        for client in [&first, &second, &moving] {
            *lock(&client.stall.since) = Instant::now().checked_sub(limits::LONG_IDLE);
        }
        room.close_stalled(Duration::ZERO);
        assert_eq!(room.closed(), 4);
    }

    #[test]
    fn where_somebody_waits_for_long_half_of_those_that_take_nothing_are_closed() {
        let room = Room::new(1);
        let clients: Vec<GatewayClient> = (0..5).map(|_| room.enter()).collect();
        for client in &clients {
            *lock(&client.stall.since) = Instant::now().checked_sub(LOOK);
        }
        room.close_stalled(Duration::ZERO);
        assert_eq!(room.closed(), 0);
        room.close_stalled(limits::LONG_WAIT);
        assert_eq!(room.closed(), 3);
    }
}
