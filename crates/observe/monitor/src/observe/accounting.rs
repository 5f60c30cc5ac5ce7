//! How long a thread ran, waited for a core, and waited for what, in any interval: a machine that is fed with the events of
//! [`ThreadTrace`] and reads no clock.
//!
//! A wait's cause is the call the thread is in, as far as such calls are traced. What was not seen is `unseen`: it never guesses,
//! and the parts always add up to the interval. It keeps a bounded number of changes of each thread.
//!
//! [`ThreadTrace`]: super::threads::ThreadTrace

use super::threads::{Call, Left, ThreadChange, ThreadEvent};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

mod timers;

#[cfg(test)]
mod tests;

/// What a call returns that ended with its time: -ETIMEDOUT.
const TIMED_OUT: i64 = -110;
/// Whoever looks has a core for no longer at once: who waits longer waits for others too, as one that is out of its quota does.
const LONGEST_LOOK_NS: u64 = 5_000_000;
/// Most changes that are kept of a thread; beyond that the oldest are forgotten.
const MOST_CHANGES: usize = 1 << 16;
/// Most threads that are kept; beyond that, new ones are not.
const MOST_THREADS: usize = 1 << 14;

/// Where a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// On a core.
    Running,
    /// Waiting for a core.
    Ready,
    /// Waiting for one that whoever looks had.
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
    /// A lock of the program or of a file: `futex` (a condition, a channel and a thread that is to end too) that somebody ends,
    /// `flock`.
    Lock,
    /// A disk: any other uninterruptible sleep (locks in the kernel too), or `fsync`, `fdatasync`, `msync`, `syncfs`.
    Disk,
    /// Time: `nanosleep`, `clock_nanosleep`, whatever else waits and ends with its time, and a wait for a lock that a thread ends
    /// which an event loop's timer has just woken.
    Sleep,
    /// A socket or another descriptor: `poll`, `select`, `epoll_wait`, `accept`, `connect`, and `recvfrom` where it is traced.
    Socket,
    /// A child: its end in `wait4` and `waitid`, its new program in `vfork` and `clone`.
    Child,
    /// It sleeps in no call that is traced: as a rule it reads a socket or a pipe.
    Unnamed,
    /// It is stopped.
    Other,
}

/// An interval, by where the thread was; ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// On a core.
    pub running_ns: u64,
    /// Waiting for a core.
    pub ready_ns: u64,
    /// Waiting for one that whoever looks had.
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

/// A part of an interval that a thread was in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its begin, ns.
    pub from_ns: u64,
    /// Its end, ns.
    pub to_ns: u64,
    /// The place.
    pub place: Place,
}

/// The changes of threads.
#[derive(Clone, Debug, Default)]
pub struct ThreadTimes {
    threads: BTreeMap<u32, VecDeque<Change>>,
    /// The threads of whoever looks.
    observers: BTreeSet<u32>,
}

/// A change of a thread and how it stands from then on.
#[derive(Clone, Copy, Debug)]
struct Change {
    at_ns: u64,
    step: Step,
    stands: Standing,
}

#[derive(Clone, Copy, Debug)]
struct Standing {
    place: Place,
    call: Option<Call>,
}

/// Who waits for a lock with a time limit tries again within this after it, ns.
const AGAIN_NS: u64 = 100_000;

/// Whether a thread waits for the same lock again right behind a wait that ended with its time: as for Python's interpreter lock, which
/// is asked for each 5 ms until it is given. Calls for other locks, as of what lets others go on, say nothing of this one.
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

/// Which lock a call is for. A condition of glibc is two words of four bytes side by side, used in turns.
const fn lock_word(address: u64) -> u32 {
    (address >> 3) as u32
}

/// What of an event changes how a thread stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// On a core, which whoever looks had before it or not.
    Runs {
        behind: bool,
    },
    Leaves(Left),
    /// That thread wakes it.
    Woken {
        by: u32,
    },
    Ready,
    /// A call, and the word of its lock where it is for one.
    Calls(Call, u32),
    /// From a call, since its time was over and for nothing else, or not.
    Returns {
        in_time: bool,
    },
    Unseen,
}

impl Step {
    fn of(what: &ThreadChange, observers: &BTreeSet<u32>) -> Option<Self> {
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
            // Woken before it slept.
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

/// Whether a call that waits returned since its time was over, and for nothing else: `Thread.sleep` of Java and timed waits for
/// conditions are made of the first, timers of event loops of the others.
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
    /// Takes an event into account. Events may come somewhat out of the order of time.
    pub fn see(&mut self, event: &ThreadEvent) {
        let Some(step) = Step::of(&event.what, &self.observers) else {
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

    /// These threads look: whoever waits until one of them leaves a core waits for being looked at.
    pub fn observed_by(&mut self, threads: impl IntoIterator<Item = u32>) {
        self.observers.extend(threads);
    }

    /// Says that events between two times were lost: nothing is known of any thread from the first until its next event after the
    /// second.
    pub fn lost(&mut self, from_ns: u64, to_ns: u64) {
        for changes in self.threads.values_mut() {
            let later = changes.split_off(changes.partition_point(|change| change.at_ns <= to_ns));
            changes.truncate(changes.partition_point(|change| change.at_ns < from_ns));
            insert(changes, from_ns, Step::Unseen);
            later
                .into_iter()
                .for_each(|change| insert(changes, change.at_ns, change.step));
        }
    }

    /// Forgets what was before a time. Nothing is known then of earlier intervals.
    pub fn forget(&mut self, before_ns: u64) {
        self.threads.retain(|_, changes| {
            // The last change before it says how the thread stood at that time.
            let kept = changes
                .partition_point(|change| change.at_ns <= before_ns)
                .saturating_sub(1);
            changes.drain(..kept);
            let ended =
                |change: &Change| change.at_ns < before_ns && change.stands.place == Place::Gone;
            !(changes.len() == 1 && changes.front().is_some_and(ended))
        });
    }

    /// The threads that were seen.
    pub fn threads(&self) -> impl Iterator<Item = u32> {
        self.threads.keys().copied()
    }

    /// Where a thread was from `from_ns` until before `to_ns`, without gaps. It is right up to the last events that were seen.
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

    /// Where a thread was from a change on, as its next ones tell: a wait that ended with its time was a sleep, one for a core that ended
    /// when whoever looks left it was for that.
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
                    // Some kernels do not say that an idle core goes on with a thread: what it does then, it does on that core.
                    Some(Step::Leaves(_) | Step::Calls(..) | Step::Returns { .. }) if is_woken => {
                        Place::Running
                    }
                    _ => place,
                }
            }
            _ => place,
        }
    }

    /// How much of the time a thread waited for something of unknown kind, a socket or a descriptor, during intervals; ns.
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

    /// How much of the time a thread waited for a lock, while any of some others had work: they ran or wanted a core; ns.
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

    /// How long a thread was where, from `from_ns` until before `to_ns`. It is right up to the last events that were seen.
    #[must_use]
    pub fn times(&self, thread: u32, from_ns: u64, to_ns: u64) -> Times {
        let mut times = Times::default();
        for span in self.spans(thread, from_ns, to_ns) {
            *times.part(span.place) += span.to_ns - span.from_ns;
        }
        times
    }
}

/// How much of some spans lies within any of some intervals, which are in order.
fn common(spans: impl Iterator<Item = (u64, u64)>, intervals: &[(u64, u64)]) -> u64 {
    let mut sum = 0;
    for (from, to) in spans {
        let mut until = from;
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

/// Inserts a change in the order of time, and says again how the thread stands after each later one.
fn insert(changes: &mut VecDeque<Change>, at_ns: u64, step: Step) {
    // Nearly all come in order.
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
