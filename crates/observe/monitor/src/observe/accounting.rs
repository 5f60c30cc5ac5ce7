//! Accounts for the time of threads: how long each ran, waited for a core, and waited for what, in any interval. It is fed with the
//! events of [`ThreadTrace`] and reads no clock. The observer is the program that reads these events: its own threads compete for
//! cores too.
//!
//! The cause of a wait is the system call that the thread is in, if such calls are traced. What was not seen is `unseen`: it never
//! guesses, and the parts always add up to the interval. The number of changes that are kept of each thread is bounded.
//!
//! [`ThreadTrace`]: super::threads::ThreadTrace

use super::threads::{Call, Left, ThreadChange, ThreadEvent};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

mod holders;
mod timers;

#[cfg(test)]
mod tests;

pub use holders::LockHolders;

/// The result of a call that ended because its time was over: -ETIMEDOUT.
const TIMED_OUT: i64 = -110;
/// A wait behind an observer's thread counts as caused by the observer only up to this length, ns: it never has a core for longer at
/// a time, so a longer wait has other reasons too, such as an exhausted quota.
const LONGEST_LOOK_NS: u64 = 5_000_000;
/// The most changes that are kept of a thread; beyond that the oldest are forgotten.
const MOST_CHANGES: usize = 1 << 16;
/// The most threads that are kept; beyond that, new ones are ignored.
const MOST_THREADS: usize = 1 << 14;

/// The state of a thread during a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// On a core.
    Running,
    /// Waiting for a core.
    Ready,
    /// Waiting for a core that a thread of the observer had.
    Behind,
    /// Waiting for something else.
    Blocked(Cause),
    /// It has ended.
    Gone,
    /// Not known.
    Unseen,
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A lock of the program or of a file: `flock`, or `futex` (also for conditions, channels, and the end of another thread), if
    /// another thread ends the wait.
    Lock,
    /// A disk: `fsync`, `fdatasync`, `msync`, `syncfs`, and any other uninterruptible sleep (also for locks in the kernel).
    Disk,
    /// A time: `nanosleep`, `clock_nanosleep`, any other wait that ends because its time is over, and a wait for a lock that is
    /// ended by a thread which the timer of an event loop has just woken.
    Sleep,
    /// A socket or another descriptor: `poll`, `select`, `epoll_wait`, `accept`, `connect`, and `recvfrom` where it is traced.
    Socket,
    /// A child process: its end in `wait4` and `waitid`, or its execution of a new program in `vfork` and `clone`.
    Child,
    /// It sleeps in no call that is traced; usually it reads a socket or a pipe.
    Unnamed,
    /// It is stopped by a signal, parked or traced.
    Other,
}

/// How long a thread was in each state during an interval, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// On a core.
    pub running_ns: u64,
    /// Waiting for a core.
    pub ready_ns: u64,
    /// Waiting for a core that a thread of the observer had.
    pub behind_ns: u64,
    /// Waiting for a lock.
    pub lock_ns: u64,
    /// Waiting for a disk.
    pub disk_ns: u64,
    /// Sleeping for a time.
    pub sleep_ns: u64,
    /// Waiting for a socket, in a call that is known.
    pub socket_ns: u64,
    /// Waiting for a child.
    pub child_ns: u64,
    /// Waiting in no call that is traced, as a rule in a read of a socket or a pipe.
    pub unnamed_ns: u64,
    /// Stopped.
    pub other_ns: u64,
    /// After its end.
    pub gone_ns: u64,
    /// Not known.
    pub unseen_ns: u64,
}

impl Times {
    fn part(&mut self, place: Place) -> &mut u64 {
        match place {
            Place::Running => &mut self.running_ns,
            Place::Ready => &mut self.ready_ns,
            Place::Behind => &mut self.behind_ns,
            Place::Blocked(Cause::Lock) => &mut self.lock_ns,
            Place::Blocked(Cause::Disk) => &mut self.disk_ns,
            Place::Blocked(Cause::Sleep) => &mut self.sleep_ns,
            Place::Blocked(Cause::Socket) => &mut self.socket_ns,
            Place::Blocked(Cause::Child) => &mut self.child_ns,
            Place::Blocked(Cause::Unnamed) => &mut self.unnamed_ns,
            Place::Blocked(Cause::Other) => &mut self.other_ns,
            Place::Gone => &mut self.gone_ns,
            Place::Unseen => &mut self.unseen_ns,
        }
    }
}

/// A time for which a thread was in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its beginning, ns.
    pub from_ns: u64,
    /// Its end, ns.
    pub to_ns: u64,
    /// The state.
    pub place: Place,
}

/// The changes of all threads.
#[derive(Clone, Debug, Default)]
pub struct ThreadTimes {
    threads: BTreeMap<u32, VecDeque<Change>>,
    /// The threads of the observer.
    observers: BTreeSet<u32>,
}

/// A change of a thread, and its state from then on.
#[derive(Clone, Copy, Debug)]
struct Change {
    at_ns: u64,
    step: Step,
    stands: Standing,
}

/// The state of a thread, and the call that it is in.
#[derive(Clone, Copy, Debug)]
struct Standing {
    place: Place,
    call: Option<Call>,
}

/// A thread that waits for a lock with a time limit tries again within this after the limit, ns.
const AGAIN_NS: u64 = 100_000;

/// Whether a thread waits for the same lock again right after a wait whose time was over, as for the lock of Python's interpreter,
/// which is asked for every 5 ms until it is given. Calls for other locks in between do not count. `returned`: the index of the
/// change that ended the first wait.
fn tries_again(changes: &VecDeque<Change>, returned: usize) -> bool {
    let called = |change: &Change| match change.step {
        Step::Calls(Call::Futex | Call::FutexWait | Call::FutexWaitv, word) => Some(word),
        _ => None,
    };
    let Some(word) = changes.range(..returned).rev().find_map(called) else {
        return false;
    };
    let at_ns = changes[returned].at_ns;
    changes
        .range(returned + 1..)
        .take_while(|change| change.at_ns.saturating_sub(at_ns) <= AGAIN_NS)
        .any(|change| called(change) == Some(word))
}

/// Identifies the lock of a call by its address. The lowest 3 bits are dropped, as a condition of glibc consists of two words of 4
/// bytes side by side that are used in turns.
const fn lock_word(address: u64) -> u32 {
    (address >> 3) as u32
}

/// The part of an event that changes the state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// It gets a core; `behind`: an observer's thread had the core before.
    Runs {
        behind: bool,
    },
    Leaves(Left),
    /// The thread `by` wakes it.
    Woken {
        by: u32,
    },
    Ready,
    /// It makes a call; the number identifies its lock, if it is for one.
    Calls(Call, u32),
    /// A call returns; `in_time`: only because its time was over.
    Returns {
        in_time: bool,
    },
    Unseen,
}

impl Step {
    fn from_change(what: &ThreadChange, observers: &BTreeSet<u32>) -> Option<Self> {
        match what {
            ThreadChange::Runs { after, .. } => Some(Self::Runs {
                behind: observers.contains(after),
            }),
            ThreadChange::Leaves { state } => Some(Self::Leaves(*state)),
            ThreadChange::Ready => Some(Self::Ready),
            ThreadChange::Calls { call, argument } => {
                Some(Self::Calls(*call, lock_word(*argument)))
            }
            ThreadChange::Returns { call, result } => Some(Self::Returns {
                in_time: ended_with_its_time(*call, *result),
            }),
            ThreadChange::Executes { .. } => Some(Self::Returns { in_time: false }),
            // Thread 0 is the idle one: an interrupt has woken the thread.
            ThreadChange::Woken {
                by,
                in_interrupt: false,
            } if *by != 0 => Some(Self::Woken { by: *by }),
            ThreadChange::Woken { .. }
            | ThreadChange::Forked { .. }
            | ThreadChange::Exits { .. }
            | ThreadChange::Faults { .. }
            | ThreadChange::DiskStarts { .. }
            | ThreadChange::DiskEnds { .. } => None,
        }
    }
}

impl Standing {
    const UNSEEN: Self = Self {
        place: Place::Unseen,
        call: None,
    };

    fn after(self, step: Step) -> Self {
        let Self { place, call } = self;
        match step {
            Step::Runs { .. } => Self {
                place: Place::Running,
                call,
            },
            // It was woken before it slept.
            Step::Ready if place == Place::Running => self,
            Step::Woken { .. } => self,
            Step::Ready => Self {
                place: Place::Ready,
                call,
            },
            Step::Leaves(Left::Dead) => Self {
                place: Place::Gone,
                call: None,
            },
            Step::Leaves(left) => Self {
                place: left_for(left, call),
                call,
            },
            Step::Calls(call, _) => Self {
                place: Place::Running,
                call: Some(call),
            },
            Step::Returns { .. } => Self {
                place: Place::Running,
                call: None,
            },
            Step::Unseen => Self::UNSEEN,
        }
    }
}

/// Whether a waiting call returned only because its time was over. `futex` with a time is used by `Thread.sleep` of Java and by
/// timed waits for conditions, the other calls by the timers of event loops.
const fn ended_with_its_time(call: Call, result: i64) -> bool {
    match call {
        Call::Futex | Call::FutexWait | Call::FutexWaitv => result == TIMED_OUT,
        Call::EpollWait | Call::EpollPwait | Call::EpollPwait2 => result == 0,
        Call::Poll | Call::Ppoll | Call::Select | Call::Pselect6 => result == 0,
        _ => false,
    }
}

fn left_for(left: Left, call: Option<Call>) -> Place {
    match left {
        Left::Preempted => Place::Ready,
        // `vfork` and `clone` wait for the child in an uninterruptible sleep.
        Left::Disk if cause(call) != Cause::Child => Place::Blocked(Cause::Disk),
        Left::Disk | Left::Sleeping => Place::Blocked(cause(call)),
        Left::Stopped => Place::Blocked(Cause::Other),
        Left::Dead => Place::Gone,
    }
}

fn cause(call: Option<Call>) -> Cause {
    match call {
        None => Cause::Unnamed,
        Some(Call::Futex | Call::FutexWait | Call::FutexWaitv | Call::Flock) => Cause::Lock,
        Some(Call::Fsync | Call::Fdatasync | Call::Msync | Call::Syncfs) => Cause::Disk,
        Some(Call::Nanosleep | Call::ClockNanosleep) => Cause::Sleep,
        Some(Call::Wait4 | Call::Waitid | Call::Vfork | Call::Clone | Call::Clone3) => Cause::Child,
        Some(
            Call::EpollWait
            | Call::EpollPwait
            | Call::EpollPwait2
            | Call::Poll
            | Call::Ppoll
            | Call::Select
            | Call::Pselect6
            | Call::Accept
            | Call::Accept4
            | Call::Connect
            | Call::Recvfrom
            | Call::Recvmsg,
        ) => Cause::Socket,
    }
}

impl ThreadTimes {
    /// Takes an event. Events may be slightly out of order of time.
    pub fn see(&mut self, event: &ThreadEvent) {
        let Some(step) = Step::from_change(&event.what, &self.observers) else {
            return;
        };
        if self.threads.len() < MOST_THREADS || self.threads.contains_key(&event.thread) {
            insert(
                self.threads.entry(event.thread).or_default(),
                event.at_ns,
                step,
            );
        }
    }

    /// Sets the threads of the observer: a thread that waits until one of them leaves a core waits because it is observed.
    pub fn observed_by(&mut self, threads: impl IntoIterator<Item = u32>) {
        self.observers.extend(threads);
    }

    /// Notes that events between two times were lost: nothing is known of a thread from the first time until its next event after
    /// the second.
    pub fn lost(&mut self, from_ns: u64, to_ns: u64) {
        for changes in self.threads.values_mut() {
            let later = changes.split_off(changes.partition_point(|change| change.at_ns <= to_ns));
            changes.truncate(changes.partition_point(|change| change.at_ns < from_ns));
            insert(changes, from_ns, Step::Unseen);
            // Put in again, so that their states follow from the unseen one.
            later
                .into_iter()
                .for_each(|change| insert(changes, change.at_ns, change.step));
        }
    }

    /// Forgets changes before a time; earlier intervals are not known any more.
    pub fn forget(&mut self, before_ns: u64) {
        self.threads.retain(|_, changes| {
            // The last change before the time gives the thread's state at that time.
            let kept = changes
                .partition_point(|change| change.at_ns <= before_ns)
                .saturating_sub(1);
            changes.drain(..kept);
            let ended =
                |change: &Change| change.at_ns < before_ns && change.stands.place == Place::Gone;
            !(changes.len() == 1 && changes.front().is_some_and(ended))
        });
    }

    /// The threads of which events were seen.
    pub fn threads(&self) -> impl Iterator<Item = u32> {
        self.threads.keys().copied()
    }

    /// The states of a thread from `from_ns` until before `to_ns`, without gaps. They are right up to the latest events that were
    /// seen.
    #[must_use]
    pub fn spans(&self, thread: u32, from_ns: u64, to_ns: u64) -> Vec<Span> {
        let nothing = VecDeque::new();
        let changes = self.threads.get(&thread).unwrap_or(&nothing);
        let first = changes.partition_point(|change| change.at_ns <= from_ns);
        let mut spans = Vec::new();
        let (mut since_ns, mut was) = (
            from_ns,
            first
                .checked_sub(1)
                .map_or(Place::Unseen, |before| self.place(changes, before)),
        );
        for (at, change) in changes
            .iter()
            .enumerate()
            .skip(first)
            .take_while(|(_, change)| change.at_ns < to_ns)
        {
            let is = self.place(changes, at);
            if is != was {
                push(
                    &mut spans,
                    Span {
                        from_ns: since_ns,
                        to_ns: change.at_ns,
                        place: was,
                    },
                );
                (since_ns, was) = (change.at_ns, is);
            }
        }
        push(
            &mut spans,
            Span {
                from_ns: since_ns,
                to_ns,
                place: was,
            },
        );
        spans
    }

    /// The state of a thread from a change on, corrected by the later changes: a wait that ended because its time was over was a
    /// sleep, and a wait for a core that ended when the observer left it was caused by the observer.
    fn place(&self, changes: &VecDeque<Change>, at: usize) -> Place {
        let place = changes[at].stands.place;
        match place {
            Place::Blocked(Cause::Lock | Cause::Socket) => {
                let end = changes.iter().enumerate().skip(at + 1).find(|(_, change)| {
                    matches!(
                        change.step,
                        Step::Returns { .. } | Step::Calls(..) | Step::Unseen
                    )
                });
                let is_lock = place == Place::Blocked(Cause::Lock);
                let is_over = end.is_some_and(|(end, change)| {
                    change.step == Step::Returns { in_time: true }
                        && !(is_lock && tries_again(changes, end))
                });
                let is_timed =
                    is_over || (is_lock && timers::ends_by_timer(&self.threads, changes, at));
                if is_timed {
                    Place::Blocked(Cause::Sleep)
                } else {
                    place
                }
            }
            Place::Ready => {
                let is_woken = changes[at].step == Step::Ready;
                let end = changes
                    .range(at + 1..)
                    .find(|change| !matches!(change.step, Step::Ready | Step::Woken { .. }));
                let waited_ns = end.map_or(0, |end| end.at_ns - changes[at].at_ns);
                match end.map(|end| end.step) {
                    Some(Step::Runs { behind: true }) if waited_ns <= LONGEST_LOOK_NS => {
                        Place::Behind
                    }
                    // Some kernels do not report that an idle core goes on with a thread: if it then does something, it does so on
                    // that core.
                    Some(Step::Leaves(_) | Step::Calls(..) | Step::Returns { .. }) if is_woken => {
                        Place::Running
                    }
                    _ => place,
                }
            }
            _ => place,
        }
    }

    /// How long a thread waited for a socket, a descriptor or something unknown during any of the intervals, ns.
    #[must_use]
    pub fn waited_during(
        &self,
        thread: u32,
        intervals: &[(u64, u64)],
        from_ns: u64,
        to_ns: u64,
    ) -> u64 {
        let waits = |place| matches!(place, Place::Blocked(Cause::Socket | Cause::Unnamed));
        let waits = self
            .spans(thread, from_ns, to_ns)
            .into_iter()
            .filter(|span| waits(span.place));
        let mut intervals = intervals.to_vec();
        intervals.sort_unstable();
        common(waits.map(|span| (span.from_ns, span.to_ns)), &intervals)
    }

    /// How long a thread waited for a lock while any of the other threads had work (it ran or waited for a core), ns.
    #[must_use]
    pub fn locked_while(&self, thread: u32, others: &[u32], from_ns: u64, to_ns: u64) -> u64 {
        let in_place = |thread: u32, of: fn(Place) -> bool| {
            let spans = self.spans(thread, from_ns, to_ns).into_iter();
            spans
                .filter(move |span| of(span.place))
                .map(|span| (span.from_ns, span.to_ns))
                .collect::<Vec<_>>()
        };
        let locked = in_place(thread, |place| place == Place::Blocked(Cause::Lock));
        if locked.is_empty() {
            return 0;
        }
        let at_work = |place| matches!(place, Place::Running | Place::Ready | Place::Behind);
        let mut work: Vec<(u64, u64)> = others
            .iter()
            .flat_map(|other| in_place(*other, at_work))
            .collect();
        work.sort_unstable();
        common(locked.into_iter(), &work)
    }

    /// How long a thread was in each state from `from_ns` until before `to_ns`. It is right up to the latest events that were seen.
    #[must_use]
    pub fn times(&self, thread: u32, from_ns: u64, to_ns: u64) -> Times {
        let mut times = Times::default();
        for span in self.spans(thread, from_ns, to_ns) {
            *times.part(span.place) += span.to_ns - span.from_ns;
        }
        times
    }
}

/// How much of the spans lies within any of the intervals, which are in order, ns.
fn common(spans: impl Iterator<Item = (u64, u64)>, intervals: &[(u64, u64)]) -> u64 {
    let mut sum = 0;
    for (from, to) in spans {
        let mut until = from;
        // Intervals may overlap: what an earlier one has covered is not counted again.
        for (begin, end) in intervals {
            sum += (*end).min(to).saturating_sub((*begin).max(until));
            until = until.max((*end).min(to));
        }
    }
    sum
}

fn push(spans: &mut Vec<Span>, span: Span) {
    spans.extend((span.from_ns < span.to_ns).then_some(span));
}

/// Inserts a change in order of time, and computes the state after each later one again.
fn insert(changes: &mut VecDeque<Change>, at_ns: u64, step: Step) {
    // Almost all changes come in order.
    let is_last = changes.back().is_none_or(|last| last.at_ns <= at_ns);
    let at = match is_last {
        true => changes.len(),
        false => changes.partition_point(|change| change.at_ns <= at_ns),
    };
    changes.insert(
        at,
        Change {
            at_ns,
            step,
            stands: Standing::UNSEEN,
        },
    );
    let before = at.checked_sub(1).and_then(|before| changes.get(before));
    let mut stands = before.map_or(Standing::UNSEEN, |change| change.stands);
    for change in changes.range_mut(at..) {
        stands = stands.after(change.step);
        change.stands = stands;
    }
    if changes.len() > MOST_CHANGES {
        changes.pop_front();
    }
}
