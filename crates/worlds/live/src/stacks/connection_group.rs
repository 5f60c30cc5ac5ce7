//! Pairs that share connections (`streams = N`): N consecutive pairs of a part are a group, and what the endpoints of one side of a group have
//! in common (a socket, a connection, the runtime that drives it) is here.
//!
//! Each endpoint of a group keeps its own thread, as those of a program whose threads share a client do. Groups with a name
//! (`connection = NAME`) take in the pairs of several parts.

use crate::error::{Error, Result};
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// One side of pairs that share connections.
pub struct ConnectionGroup {
    index: u32,
    members: u16,
    /// How many numbers parts have taken, where several share the group.
    taken: AtomicU16,
    common: Mutex<Option<Arc<dyn Any + Send + Sync>>>,
}

impl fmt::Debug for ConnectionGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionGroup")
            .field("index", &self.index)
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}

impl ConnectionGroup {
    /// The groups of so many pairs, `streams` pairs each; the last may have fewer.
    #[must_use]
    pub fn divide(pairs: u32, streams: u16) -> Vec<Arc<Self>> {
        (0..)
            .zip(sizes(pairs, streams))
            .map(|(index, members)| Arc::new(Self::new(index, members)))
            .collect()
    }

    fn new(index: u32, members: u16) -> Self {
        Self {
            index,
            members,
            taken: AtomicU16::new(0),
            common: Mutex::default(),
        }
    }
}

/// How many of so many pairs are in each group of `streams`; the last may have fewer.
fn sizes(pairs: u32, streams: u16) -> impl Iterator<Item = u16> {
    let streams = u32::from(streams.max(1));
    let size = move |index: u32| (pairs - index * streams).min(streams);
    (0..pairs.div_ceil(streams)).map(move |index| u16::try_from(size(index)).unwrap_or(u16::MAX))
}

/// The groups of an agent's jobs that have names. A group is there as long as a pair of it is.
#[derive(Debug, Default)]
pub struct NamedConnections(BTreeMap<(String, u32), Weak<ConnectionGroup>>);

impl NamedConnections {
    /// The places of a part's pairs on the connections of that name, `streams` on each. The name has to say all in which parts with
    /// different connections may differ.
    #[must_use]
    pub fn join(&mut self, name: &str, pairs: u32, streams: u16) -> Vec<GroupMember> {
        self.0.retain(|_, group| group.strong_count() > 0);
        let mut members = Vec::new();
        for (index, size) in (0..).zip(sizes(pairs, streams)) {
            let known = self.0.entry((name.to_string(), index)).or_default();
            let group = known.upgrade().unwrap_or_else(|| {
                let made = Arc::new(ConnectionGroup::new(index, size));
                *known = Arc::downgrade(&made);
                made
            });
            let first = group.taken.fetch_add(size, Ordering::Relaxed);
            let numbers = first..first.saturating_add(size);
            members.extend(numbers.map(|number| GroupMember::new(Arc::clone(&group), number)));
        }
        members
    }
}

/// The place of a pair in its group.
#[derive(Clone, Debug)]
pub struct GroupMember {
    group: Arc<ConnectionGroup>,
    number: u16,
}

impl GroupMember {
    /// The member with that number, from 0.
    #[must_use]
    pub const fn new(group: Arc<ConnectionGroup>, number: u16) -> Self {
        Self { group, number }
    }

    /// Its number in the group, which is the same at both sides.
    pub(crate) const fn number(&self) -> u16 {
        self.number
    }

    /// How many pairs the group has.
    pub(crate) fn members(&self) -> u16 {
        self.group.members
    }

    /// The number of the group in the part, from 0: groups that listen at given ports use consecutive ones.
    pub(crate) fn group_number(&self) -> u32 {
        self.group.index
    }

    /// What the members have in common; the first that asks makes it.
    ///
    /// # Errors
    /// As `open`.
    pub(crate) fn common<T: Send + Sync + 'static>(
        &self,
        open: impl FnOnce() -> Result<T>,
    ) -> Result<Arc<T>> {
        let mut common = self
            .group
            .common
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let made = match &*common {
            Some(made) => Arc::clone(made),
            None => {
                let made: Arc<dyn Any + Send + Sync> = Arc::new(open()?);
                *common = Some(Arc::clone(&made));
                made
            }
        };
        made.downcast().map_err(|_| {
            Error::measurement("the pairs of a group disagree about their stack: this is a bug")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_pairs_on_connections_of_four_are_three_groups() {
        let groups = ConnectionGroup::divide(10, 4);
        let members: Vec<_> = groups.iter().map(|group| group.members).collect();
        assert_eq!(members, [4, 4, 2]);
    }

    #[test]
    fn parts_that_name_a_connection_share_it_as_long_as_a_pair_is_on_it() {
        let mut named = NamedConnections::default();
        let load = named.join("load", 3, 1);
        let probes = named.join("load", 4, 2);
        let places = |members: &[GroupMember]| -> Vec<(u32, u16)> {
            let place = |member: &GroupMember| (member.group_number(), member.number());
            members.iter().map(place).collect()
        };
        assert_eq!(places(&load), [(0, 0), (1, 0), (2, 0)]);
        assert_eq!(places(&probes), [(0, 1), (0, 2), (1, 1), (1, 2)]);
        let made = load[1].common(|| Ok(7)).unwrap();
        assert_eq!(*probes[3].common(|| Ok(8)).unwrap(), *made);
        assert_eq!(*probes[0].common(|| Ok(9)).unwrap(), 9);
        let other = named.join("other", 1, 1);
        assert_eq!(*other[0].common(|| Ok(10)).unwrap(), 10);
        drop((load, probes));
        // The next run has connections of its own.
        let next = named.join("load", 1, 1);
        assert_eq!(places(&next), [(0, 0)]);
        assert_eq!(*next[0].common(|| Ok(11)).unwrap(), 11);
    }

    #[test]
    fn the_first_member_makes_what_all_have_in_common() {
        let groups = ConnectionGroup::divide(2, 2);
        let member = |number| GroupMember::new(Arc::clone(&groups[0]), number);
        let refused = member(0).common(|| Err::<u8, _>(Error::measurement("refused")));
        assert!(refused.is_err(), "a failure is not kept");
        let first = member(0).common(|| Ok(7)).unwrap();
        let second = member(1).common(|| Ok(8)).unwrap();
        assert_eq!((*first, *second), (7, 7));
    }
}
