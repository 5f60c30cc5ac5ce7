//! What the holders of locks did while another thread waited for them. The holder of a lock is the thread that ends the wait by waking
//! the one that waits. A holder that waits for a lock itself is not what is waited for: then its own holder counts.

use super::{Cause, Change, Place, Span, Step, ThreadTimes, Times};
use std::collections::{BTreeMap, VecDeque};

/// The most holders in a chain, each of which waits for the next.
const MOST_HOLDERS: u32 = 8;

/// What the holders of a thread's locks did while it waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockHolders {
    /// The thread that held them longest.
    pub thread: u32,
    /// What all holders did, together as long as the waits of which it is known who ended them.
    pub times: Times,
}

/// A wait for a lock that another thread ended, ns.
struct LockWait {
    holder: u32,
    from_ns: u64,
    to_ns: u64,
}

/// The sum of what holders did.
#[derive(Default)]
struct HeldTimes {
    times: Times,
    by_holder: BTreeMap<u32, u64>,
}

impl ThreadTimes {
    /// What the holders of locks did while a thread waited for these, from `from_ns` until before `to_ns`; `None` if it is not known which
    /// threads ended its waits.
    #[must_use]
    pub fn holders(&self, thread: u32, from_ns: u64, to_ns: u64) -> Option<LockHolders> {
        let mut held = HeldTimes::default();
        for span in self.spans(thread, from_ns, to_ns) {
            if let Some(wait) = self.lock_wait(thread, &span) {
                self.hold(&wait, MOST_HOLDERS, &mut held);
            }
        }
        let (thread, _) = held.by_holder.into_iter().max_by_key(|(_, ns)| *ns)?;
        Some(LockHolders {
            thread,
            times: held.times,
        })
    }

    /// Adds what the holder did during a wait; for its own waits, what their holders did, `most` holders far.
    fn hold(&self, wait: &LockWait, most: u32, held: &mut HeldTimes) {
        for span in self.spans(wait.holder, wait.from_ns, wait.to_ns) {
            let own = self.lock_wait(wait.holder, &span);
            if let Some(own) = own.filter(|_| most > 0) {
                self.hold(&own, most - 1, held);
                continue;
            }
            let ns = span.to_ns - span.from_ns;
            *held.times.part(span.place) += ns;
            *held.by_holder.entry(wait.holder).or_default() += ns;
        }
    }

    /// The wait of a thread's span, if it waits for a lock and another thread ends that.
    fn lock_wait(&self, thread: u32, span: &Span) -> Option<LockWait> {
        let is_wait = span.place == Place::Blocked(Cause::Lock);
        let changes = self.threads.get(&thread).filter(|_| is_wait)?;
        let holder = woken_by(changes, span.from_ns)?;
        (holder != thread).then_some(LockWait {
            holder,
            from_ns: span.from_ns,
            to_ns: span.to_ns,
        })
    }
}

/// The thread that ends the wait which goes on at a moment. A wait with a time limit that is begun again ends with the last one.
fn woken_by(changes: &VecDeque<Change>, at_ns: u64) -> Option<u32> {
    let after = changes.partition_point(|change| change.at_ns <= at_ns);
    for change in changes.range(after..) {
        match change.step {
            Step::Woken { by } => return Some(by),
            Step::Returns { in_time: false } | Step::Unseen => return None,
            _ => {}
        }
    }
    None
}
