//! A table of flows of limited size whose entries are forgotten when they are idle, as in firewalls and address
//! translators.

use alloc::collections::BTreeMap;
use stackline_core::time::{Duration, Instant};

/// A table is looked through for idle entries at most this often in a time-out: so a flood of new flows costs little.
const LOOKS: u64 = 64;

/// Entries by key, each with the instant of its last use.
#[derive(Clone, Debug)]
pub struct FlowTable<K, V> {
    entries: BTreeMap<K, TableEntry<V>>,
    idle: Duration,
    most: usize,
    /// Before this instant a full table is not looked through again.
    next_look: Instant,
}

#[derive(Clone, Debug)]
struct TableEntry<V> {
    value: V,
    used: Instant,
}

/// A table that takes no more entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableFull;

impl<K: Ord, V> FlowTable<K, V> {
    /// An empty table with at most `most` entries, which are forgotten after `idle` without use.
    #[must_use]
    pub const fn new(idle: Duration, most: u32) -> Self {
        Self {
            entries: BTreeMap::new(),
            idle,
            most: most as usize,
            next_look: Instant(0),
        }
    }

    /// Number of entries, idle ones that have not been removed yet included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entry with that key, used now; `None` if there is none or it has been idle for too long.
    pub fn use_entry(&mut self, now: Instant, key: &K) -> Option<&V> {
        let entry = self.entries.get_mut(key)?;
        if now.since(entry.used) >= self.idle {
            return None;
        }
        entry.used = now;
        Some(&entry.value)
    }

    /// The entry with that key, idle for however long, removed.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.entries.remove(key).map(|entry| entry.value)
    }

    /// Puts in an entry, used now. `forget` receives the idle entries that are removed to make room.
    ///
    /// # Errors
    /// All entries are in use and the table is full.
    pub fn put(
        &mut self,
        now: Instant,
        key: K,
        value: V,
        mut forget: impl FnMut(&K, V),
    ) -> Result<(), TableFull> {
        if self.entries.len() >= self.most {
            self.make_room(now, &mut forget);
        }
        if self.entries.len() >= self.most {
            return Err(TableFull);
        }
        self.entries.insert(key, TableEntry { value, used: now });
        Ok(())
    }

    /// Removes the idle entries, unless that was tried a moment ago.
    fn make_room(&mut self, now: Instant, forget: &mut impl FnMut(&K, V)) {
        if now < self.next_look {
            return;
        }
        self.next_look = now + Duration(self.idle.0 / LOOKS);
        let idle = self.idle;
        let gone = self
            .entries
            .extract_if(.., |_, entry| now.since(entry.used) >= idle);
        gone.for_each(|(key, entry)| forget(&key, entry.value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration(1_000);

    fn put(table: &mut FlowTable<u32, char>, now: u64, key: u32) -> Result<(), TableFull> {
        table.put(Instant(now), key, 'x', |_, _| {})
    }

    #[test]
    fn an_entry_lives_as_long_as_it_is_used() {
        let mut table = FlowTable::new(IDLE, 2);
        put(&mut table, 0, 1).unwrap();
        assert_eq!(table.use_entry(Instant(999), &1), Some(&'x'));
        assert_eq!(table.use_entry(Instant(1_998), &1), Some(&'x'));
        assert_eq!(table.use_entry(Instant(2_998), &1), None, "idle for 1,000");
        assert_eq!(table.use_entry(Instant(0), &2), None);
    }

    #[test]
    fn a_full_table_forgets_only_what_is_idle() {
        let mut table = FlowTable::new(IDLE, 2);
        put(&mut table, 0, 1).unwrap();
        put(&mut table, 500, 2).unwrap();
        assert_eq!(put(&mut table, 999, 3), Err(TableFull));
        // It was looked through at 999, and is again a 64th of the time-out later.
        let mut forgotten = alloc::vec::Vec::new();
        let put = table.put(Instant(1_014), 3, 'y', |key, _| forgotten.push(*key));
        assert_eq!((put, table.len()), (Ok(()), 2));
        assert_eq!(forgotten, [1]);
    }
}
