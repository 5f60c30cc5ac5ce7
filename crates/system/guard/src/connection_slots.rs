//! Places of connections: a bounded number of them, of which the idlest gives way where that is wanted.
//!
//! A server keeps strangers in a pool of their own, so that however many come, whoever has proven that it belongs gets a place.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How the connection of a place is ended.
type ConnectionSlotCloser = Box<dyn FnOnce() + Send>;

/// A bounded number of places.
#[derive(Debug)]
pub struct ConnectionSlotPool {
    most: usize,
    places: Mutex<ConnectionSlotTable>,
}

#[derive(Default)]
struct ConnectionSlotTable {
    /// The turn that is given next.
    next: u64,
    /// Taken places, the idlest first.
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
    /// Takes the idlest place away that may be ended: how.
    fn idlest(&mut self) -> Option<ConnectionSlotCloser> {
        let turn = self
            .taken
            .iter()
            .find(|(_, end)| end.is_some())
            .map(|(turn, _)| *turn)?;
        self.taken.remove(&turn).flatten()
    }

    fn take(&mut self, end: Option<ConnectionSlotCloser>) -> u64 {
        let turn = self.next;
        self.next += 1;
        self.taken.insert(turn, end);
        turn
    }
}

impl ConnectionSlotPool {
    /// With so many places.
    #[must_use]
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most: most.max(1),
            places: Mutex::default(),
        })
    }

    /// A place; `None` where all are taken.
    #[must_use]
    pub fn enter(self: &Arc<Self>) -> Option<ConnectionSlot> {
        let mut places = self.places();
        (places.taken.len() < self.most).then(|| ConnectionSlot {
            pool: Arc::clone(self),
            turn: places.take(None),
            end: None,
        })
    }

    /// A place in any case: where all are taken, the idlest that may be ended is ended and gives way. `end` ends the connection of this one,
    /// from another thread; it should close its socket in both directions, so that the thread that serves it wakes.
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

    /// The same, but `None` where all places are taken by connections that are busy ([`ConnectionSlot::busy`]).
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
        // Not under the lock: what ends a connection may take a while.
        if let Some(end) = ended {
            end();
        }
        ConnectionSlot {
            pool: Arc::clone(self),
            turn,
            end: None,
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
    /// How its connection is ended, while it is busy.
    end: Option<ConnectionSlotCloser>,
}

impl ConnectionSlot {
    /// Its connection did something: others are idler now.
    pub fn touch(&mut self) {
        let mut places = self.pool.places();
        if let Some(end) = places.taken.remove(&self.turn) {
            self.turn = places.take(end);
        }
    }

    /// Its connection is busy from now on, and gives way to nobody.
    pub fn busy(&mut self) {
        if let Some(end) = self.pool.places().taken.get_mut(&self.turn) {
            self.end = self.end.take().or(end.take());
        }
    }

    /// Its connection is idle from now on.
    pub fn idle(&mut self) {
        let mut places = self.pool.places();
        if let Some(end) = places.taken.remove(&self.turn) {
            self.turn = places.take(end.or(self.end.take()));
        }
    }

    /// Whether it had to give way.
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
