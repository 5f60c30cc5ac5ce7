//! Bounds the number of connections of a server: each connection takes a place in a pool, and if all are taken, a new connection may close
//! the one that has been idle longest.
//!
//! A server keeps strangers in a pool of their own, so that however many connect, a peer that has proved who it is gets a place.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Closes the connection of a place.
type ConnectionSlotCloser = Box<dyn FnOnce() + Send>;

/// A pool with a bounded number of places.
#[derive(Debug)]
pub struct ConnectionSlotPool {
    /// Number of places.
    most: usize,
    places: Mutex<ConnectionSlotTable>,
}

#[derive(Default)]
struct ConnectionSlotTable {
    /// The next turn: a number that grows with every activity, so that a lower turn means idle for longer.
    next: u64,
    /// The taken places by turn, so the longest idle first; `None` for one that cannot be closed to make room.
    taken: BTreeMap<u64, Option<ConnectionSlotCloser>>,
}

impl fmt::Debug for ConnectionSlotTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Places")
            .field("taken", &self.taken.len())
            .finish_non_exhaustive()
    }
}

impl ConnectionSlotTable {
    /// Removes the longest idle place whose connection may be closed; returns the function that closes it.
    fn idlest(&mut self) -> Option<ConnectionSlotCloser> {
        let turn = self
            .taken
            .iter()
            .find(|(_, end)| end.is_some())
            .map(|(turn, _)| *turn)?;
        self.taken.remove(&turn).flatten()
    }

    /// Adds a place as the one most recently active; returns its turn.
    fn take(&mut self, end: Option<ConnectionSlotCloser>) -> u64 {
        let turn = self.next;
        self.next += 1;
        self.taken.insert(turn, end);
        turn
    }
}

impl ConnectionSlotPool {
    /// A pool with `most` places, at least one.
    #[must_use]
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most: most.max(1),
            places: Mutex::default(),
        })
    }

    /// Takes a place that never has to make room; `None` if all are taken.
    #[must_use]
    pub fn enter(self: &Arc<Self>) -> Option<ConnectionSlot> {
        let mut places = self.places();
        (places.taken.len() < self.most).then(|| ConnectionSlot {
            pool: Arc::clone(self),
            turn: places.take(None),
            end: None,
        })
    }

    /// Takes a place in any case: if all are taken, closes the connection that has been idle longest, if any may be closed. `end` closes
    /// the new connection, from another thread; it should shut its socket down in both directions, so that the thread that serves it
    /// wakes.
    #[must_use]
    pub fn enter_or_replace(
        self: &Arc<Self>,
        end: impl FnOnce() + Send + 'static,
    ) -> ConnectionSlot {
        let mut places = self.places();
        let ended = if places.taken.len() >= self.most {
            places.idlest()
        } else {
            None
        };
        self.entered(places, Box::new(end), ended)
    }

    /// The same, but returns `None` if all places are taken by connections that are busy ([`ConnectionSlot::busy`]).
    #[must_use]
    pub fn enter_or_replace_idle(
        self: &Arc<Self>,
        end: impl FnOnce() + Send + 'static,
    ) -> Option<ConnectionSlot> {
        let mut places = self.places();
        let ended = if places.taken.len() >= self.most {
            Some(places.idlest()?)
        } else {
            None
        };
        Some(self.entered(places, Box::new(end), ended))
    }

    fn entered(
        self: &Arc<Self>,
        mut places: MutexGuard<'_, ConnectionSlotTable>,
        end: ConnectionSlotCloser,
        ended: Option<ConnectionSlotCloser>,
    ) -> ConnectionSlot {
        let turn = places.take(Some(end));
        drop(places);
        // Called without the lock, because closing a connection may take a while.
        if let Some(end) = ended {
            end();
        }
        ConnectionSlot {
            pool: Arc::clone(self),
            turn,
            end: None,
        }
    }

    /// Closes all connections that may be closed to make room, for instance at the end of a server.
    pub fn close_all(&self) {
        // One at a time, because each is closed without the lock.
        while let Some(end) = {
            let mut places = self.places();
            places.idlest()
        } {
            end();
        }
    }

    /// How many places are taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.places().taken.len()
    }

    fn places(&self) -> MutexGuard<'_, ConnectionSlotTable> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place that is taken until this is dropped.
pub struct ConnectionSlot {
    pool: Arc<ConnectionSlotPool>,
    turn: u64,
    /// The function that closes its connection, kept here while the connection is busy.
    end: Option<ConnectionSlotCloser>,
}

impl ConnectionSlot {
    /// Notes that its connection was active, so that others have been idle for longer.
    pub fn touch(&mut self) {
        let mut places = self.pool.places();
        if let Some(end) = places.taken.remove(&self.turn) {
            self.turn = places.take(end);
        }
    }

    /// Notes that its connection is busy from here on, so that it is not closed to make room.
    pub fn busy(&mut self) {
        if let Some(end) = self.pool.places().taken.get_mut(&self.turn) {
            self.end = self.end.take().or(end.take());
        }
    }

    /// Notes that its connection is idle from here on, so that it may be closed to make room.
    pub fn idle(&mut self) {
        let mut places = self.pool.places();
        if let Some(end) = places.taken.remove(&self.turn) {
            self.turn = places.take(end.or(self.end.take()));
        }
    }

    /// Whether its connection was closed to make room.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        !self.pool.places().taken.contains_key(&self.turn)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let end = self.pool.places().taken.remove(&self.turn);
        drop(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn the_idlest_connection_is_closed() {
        let (ended, hears) = channel();
        let pool = ConnectionSlotPool::new(2);
        let enter = |name: &'static str| {
            let ended = ended.clone();
            pool.enter_or_replace(move || ended.send(name).unwrap())
        };
        let mut first = enter("first");
        let second = enter("second");
        first.touch();
        let third = enter("third");
        assert_eq!(hears.try_iter().collect::<Vec<_>>(), ["second"]);
        assert!(second.is_lost() && !first.is_lost());
        drop(second);
        assert_eq!(
            pool.taken(),
            2,
            "a place that was lost is not given back twice"
        );
        drop((first, third));
        assert_eq!(pool.taken(), 0);
    }

    #[test]
    fn a_busy_connection_is_never_closed_for_another() {
        let (ended, hears) = channel();
        let pool = ConnectionSlotPool::new(2);
        let enter = |name: &'static str| {
            let ended = ended.clone();
            pool.enter_or_replace_idle(move || ended.send(name).unwrap())
        };
        let mut first = enter("first").unwrap();
        first.busy();
        let mut second = enter("second").unwrap();
        let _third = enter("third").unwrap();
        assert!(
            second.is_lost() && !first.is_lost(),
            "the idle one gave way, not the older one"
        );
        second.busy();
        first.idle();
        let mut fourth = enter("fourth").unwrap();
        assert_eq!(hears.try_iter().collect::<Vec<_>>(), ["second", "third"]);
        first.busy();
        fourth.busy();
        assert!(enter("fifth").is_none(), "all are busy");
        first.idle();
        assert!(enter("sixth").is_some() && first.is_lost());
    }

    #[test]
    fn a_pool_without_replacement_is_full() {
        let pool = ConnectionSlotPool::new(1);
        let only = pool.enter();
        assert!(only.is_some() && pool.enter().is_none());
        drop(only);
        assert!(pool.enter().is_some());
    }
}
