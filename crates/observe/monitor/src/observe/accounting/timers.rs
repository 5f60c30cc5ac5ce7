//! Decides whether a timer ended a thread's wait for a lock. Some runtimes park their threads by locks (Go): one of them waits for
//! descriptors and timers in an event loop, and wakes the thread that is to go on.
//!
//! A thread that sleeps and then releases a lock is not such a case: its sleep is not an event loop's, or was not over just before.

use super::{Call, Cause, Change, Left, Place, Step};
use std::collections::{BTreeMap, VecDeque};

/// The most threads in a chain of wake-ups from the timer to the thread that goes on.
const MOST_THREADS: u32 = 4;
/// The longest that a thread may run between its timer and waking the next one, ns.
const LONGEST_RUN_NS: u64 = 1_000_000;

type ThreadAccounts = BTreeMap<u32, VecDeque<Change>>;

/// Whether the wait that begins with the change `at` was ended by a thread that the timer of an event loop woke just before.
pub(super) fn ends_by_timer(
    threads: &ThreadAccounts,
    changes: &VecDeque<Change>,
    at: usize,
) -> bool {
    ended_by(changes, at + 1)
        .is_some_and(|(by, woken_ns)| is_timed(threads, by, woken_ns, MOST_THREADS))
}

/// The thread that ends a wait, and when, ns.
fn ended_by(changes: &VecDeque<Change>, after: usize) -> Option<(u32, u64)> {
    let mut later = changes
        .range(after..)
        .take_while(|change| matches!(change.step, Step::Woken { .. } | Step::Ready));
    later.find_map(|change| match change.step {
        Step::Woken { by } => Some((by, change.at_ns)),
        _ => None,
    })
}

/// Whether a thread that ran at a time has run only since a timer of its own ended, or since it was woken by a thread of which this
/// is true; at most `most` threads back.
fn is_timed(threads: &ThreadAccounts, thread: u32, at_ns: u64, most: u32) -> bool {
    let Some(changes) = threads.get(&thread).filter(|_| most > 0) else {
        return false;
    };
    let until = changes.partition_point(|change| change.at_ns <= at_ns);
    // None of these changes is later than `at_ns`.
    for at in (0..until)
        .rev()
        .take_while(|at| at_ns - changes[*at].at_ns <= LONGEST_RUN_NS)
    {
        match changes[at].step {
            Step::Returns { in_time: true } => {
                return at > 0 && waits_for_events(changes[at - 1].stands.call);
            }
            Step::Woken { by } if changes[at].stands.place == Place::Blocked(Cause::Lock) => {
                return is_timed(threads, by, changes[at].at_ns, most - 1);
            }
            Step::Leaves(Left::Preempted) => {}
            Step::Leaves(_) | Step::Unseen => return false,
            _ => {}
        }
    }
    false
}

const fn waits_for_events(call: Option<Call>) -> bool {
    use Call::{EpollPwait, EpollPwait2, EpollWait, Poll, Ppoll, Pselect6, Select};
    matches!(
        call,
        Some(EpollWait | EpollPwait | EpollPwait2 | Poll | Ppoll | Select | Pselect6)
    )
}
