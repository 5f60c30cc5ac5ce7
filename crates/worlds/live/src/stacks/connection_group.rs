//! Pairs that share connections (`streams = N`): N consecutive pairs of a part are a group, and what the endpoints of one side of a group have
//! in common (a socket, a connection, the runtime that drives it) is here.
//!
//! Each endpoint of a group keeps its own thread, as those of a program whose threads share a client do.

use crate::error::{Error, Result};
use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// One side of pairs that share connections.
pub struct ConnectionGroup {
    index: u32,
    members: u16,
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
        let streams = u32::from(streams.max(1));
        let group = |index: u32| {
            let members = (pairs - index * streams).min(streams);
            Arc::new(Self {
                index,
                members: u16::try_from(members).unwrap_or(u16::MAX),
                common: Mutex::default(),
            })
        };
        (0..pairs.div_ceil(streams)).map(group).collect()
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
