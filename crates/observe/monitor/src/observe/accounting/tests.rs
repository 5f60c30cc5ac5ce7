//! What threads are known to have done, by events made by hand.

use super::*;
use proptest::prelude::*;

impl Times {
    /// All parts together: the length of the interval.
    pub(crate) fn total_ns(&self) -> u64 {
        let Self {
            running_ns,
            ready_ns,
            behind_ns,
            lock_ns,
            disk_ns,
            sleep_ns,
            ..
        } = self;
        let Self {
            socket_ns,
            child_ns,
            unnamed_ns,
            other_ns,
            gone_ns,
            unseen_ns,
            ..
        } = self;
        running_ns
            + ready_ns
            + behind_ns
            + lock_ns
            + disk_ns
            + sleep_ns
            + socket_ns
            + child_ns
            + unnamed_ns
            + other_ns
            + gone_ns
            + unseen_ns
    }
}

fn event(at_ns: u64, what: ThreadChange) -> ThreadEvent {
    ThreadEvent {
        at_ns,
        thread: 1,
        what,
    }
}

fn leaves(at_ns: u64, state: Left) -> ThreadEvent {
    event(at_ns, ThreadChange::Leaves { state })
}

fn runs(at_ns: u64) -> ThreadEvent {
    event(at_ns, ThreadChange::Runs { core: 0, after: 0 })
}

fn ready(at_ns: u64) -> ThreadEvent {
    event(at_ns, ThreadChange::Ready)
}

fn calls(at_ns: u64, call: Call) -> ThreadEvent {
    event(at_ns, ThreadChange::Calls { call, argument: 0 })
}

fn returns(at_ns: u64, call: Call) -> ThreadEvent {
    event(at_ns, ThreadChange::Returns { call, result: 0 })
}

/// It waits for a lock from 20 to 50, for a core until 60, and ends at 90.
fn a_life() -> [ThreadEvent; 8] {
    [
        ready(5),
        runs(10),
        calls(15, Call::Futex),
        leaves(20, Left::Sleeping),
        ready(50),
        runs(60),
        returns(61, Call::Futex),
        leaves(90, Left::Dead),
    ]
}

fn seen(events: &[ThreadEvent]) -> ThreadTimes {
    let mut times = ThreadTimes::default();
    events.iter().for_each(|event| times.see(event));
    times
}

#[test]
fn an_interval_is_divided_by_where_the_thread_was() {
    let times = seen(&a_life());
    let whole = times.times(1, 0, 100);
    let expected = Times {
        unseen_ns: 5,
        ready_ns: 15,
        running_ns: 40,
        lock_ns: 30,
        gone_ns: 10,
        ..Times::default()
    };
    assert_eq!(whole, expected);
    assert_eq!(
        times.times(1, 30, 55),
        Times {
            lock_ns: 20,
            ready_ns: 5,
            ..Times::default()
        }
    );
    assert_eq!(times.times(1, 60, 60), Times::default());
    assert_eq!(
        times.times(2, 0, 7),
        Times {
            unseen_ns: 7,
            ..Times::default()
        },
        "another thread"
    );
    let places = times
        .spans(1, 12, 60)
        .into_iter()
        .map(|span| (span.from_ns, span.place));
    let expected = [
        (12, Place::Running),
        (20, Place::Blocked(Cause::Lock)),
        (50, Place::Ready),
    ];
    assert!(places.eq(expected));
}

#[test]
fn a_wait_is_for_what_the_call_is_for() {
    let causes = [
        (Call::Flock, Cause::Lock),
        (Call::Fdatasync, Cause::Disk),
        (Call::ClockNanosleep, Cause::Sleep),
        (Call::EpollWait, Cause::Socket),
        (Call::Recvfrom, Cause::Socket),
        (Call::Wait4, Cause::Child),
    ];
    for (call, cause) in causes {
        let times = seen(&[calls(0, call), leaves(1, Left::Sleeping)]);
        assert_eq!(
            times.spans(1, 1, 2),
            [Span {
                from_ns: 1,
                to_ns: 2,
                place: Place::Blocked(cause)
            }]
        );
    }
    let vfork = seen(&[calls(0, Call::Vfork), leaves(1, Left::Disk)]);
    assert_eq!(vfork.spans(1, 1, 2)[0].place, Place::Blocked(Cause::Child));
    for (left, place) in [
        (Left::Sleeping, Place::Blocked(Cause::Unnamed)),
        (Left::Disk, Place::Blocked(Cause::Disk)),
        (Left::Stopped, Place::Blocked(Cause::Other)),
        (Left::Preempted, Place::Ready),
    ] {
        assert_eq!(
            seen(&[runs(0), leaves(1, left)]).spans(1, 1, 2)[0].place,
            place
        );
    }
}

#[test]
fn a_thread_woken_before_it_sleeps_goes_on() {
    let times = seen(&[
        runs(0),
        calls(1, Call::Futex),
        ready(2),
        returns(3, Call::Futex),
    ]);
    assert_eq!(
        times.times(1, 0, 10),
        Times {
            running_ns: 10,
            ..Times::default()
        }
    );
}

#[test]
fn a_wait_that_ends_with_its_time_is_a_sleep() {
    let waits = |call, result| {
        let ends = event(64, ThreadChange::Returns { call, result });
        let events = [
            runs(0),
            calls(1, call),
            leaves(2, Left::Sleeping),
            ready(62),
            runs(63),
            ends,
        ];
        let times = seen(&events).times(1, 0, 70);
        (times.lock_ns, times.socket_ns, times.sleep_ns)
    };
    let (lock, socket, sleep) = ((60, 0, 0), (0, 60, 0), (0, 0, 60));
    assert_eq!(
        [-110, 0, -11].map(|result| waits(Call::Futex, result)),
        [sleep, lock, lock]
    );
    assert_eq!(
        [0, 1, -4].map(|result| waits(Call::EpollPwait, result)),
        [sleep, socket, socket]
    );
}

#[test]
fn a_lock_that_is_asked_for_again_and_again_is_no_sleep() {
    let timed_out = |at_ns| {
        event(
            at_ns,
            ThreadChange::Returns {
                call: Call::Futex,
                result: -110,
            },
        )
    };
    let waits_from = |again_ns| {
        let events = [
            runs(0),
            calls(1, Call::Futex),
            leaves(2, Left::Sleeping),
            ready(5_000_000),
            runs(5_000_001),
            timed_out(5_000_002),
            calls(again_ns, Call::Futex),
            leaves(again_ns + 1, Left::Sleeping),
            ready(again_ns + 1_000),
            runs(again_ns + 1_001),
            returns(again_ns + 1_002, Call::Futex),
        ];
        let times = seen(&events).times(1, 0, 5_000_003);
        (times.lock_ns, times.sleep_ns)
    };
    assert_eq!(waits_from(5_000_010), (4_999_998, 0));
    assert_eq!(waits_from(6_000_000), (0, 4_999_998));
}

#[test]
fn a_thread_that_sleeps_and_then_takes_or_lets_go_another_lock_slept() {
    const SLEEPS_AT: u64 = 0x7f00_0000_1028;
    let slept = |next: u64| {
        let call = |at_ns, argument| {
            let call = Call::Futex;
            event(at_ns, ThreadChange::Calls { call, argument })
        };
        let timed_out = ThreadChange::Returns {
            call: Call::Futex,
            result: -110,
        };
        let events = [
            runs(0),
            call(1, SLEEPS_AT),
            leaves(2, Left::Sleeping),
            ready(60_000_000),
            runs(60_000_001),
            event(60_000_002, timed_out),
            call(60_000_010, next),
            returns(60_000_012, Call::Futex),
        ];
        seen(&events).times(1, 0, 60_000_003).sleep_ns
    };
    // `Thread.sleep` of Java, and what it does next: it wakes another thread.
    assert_eq!(slept(0x7f00_0000_2000), 59_999_998);
    // The other word of its own condition: it asks again.
    assert_eq!(slept(SLEEPS_AT + 4), 0);
}

/// Thread 1 waits for a lock from 2 us until thread 2 wakes it at 60 us, which has just come back from a call with a result.
fn woken_after(call: Call, result: i64) -> (u64, u64) {
    let woken = ThreadChange::Woken {
        by: 2,
        in_interrupt: false,
    };
    let events = [
        does(2, 0, ThreadChange::Calls { call, argument: 0 }),
        does(
            2,
            1,
            ThreadChange::Leaves {
                state: Left::Sleeping,
            },
        ),
        does(
            1,
            1,
            ThreadChange::Calls {
                call: Call::Futex,
                argument: 0,
            },
        ),
        does(
            1,
            2,
            ThreadChange::Leaves {
                state: Left::Sleeping,
            },
        ),
        does(2, 50, ThreadChange::Ready),
        does(2, 51, ThreadChange::Runs { core: 0, after: 0 }),
        does(2, 52, ThreadChange::Returns { call, result }),
        does(
            2,
            58,
            ThreadChange::Calls {
                call: Call::Futex,
                argument: 0,
            },
        ),
        does(1, 60, woken),
        does(1, 60, ThreadChange::Ready),
        does(1, 61, ThreadChange::Runs { core: 1, after: 0 }),
    ];
    let times = seen(&events).times(1, 2_000, 60_000);
    (times.lock_ns, times.sleep_ns)
}

#[test]
fn a_lock_that_a_timer_of_an_event_loop_ends_is_a_sleep() {
    assert_eq!(
        woken_after(Call::EpollPwait, 0),
        (0, 58_000),
        "the runtime's timer"
    );
    assert_eq!(
        woken_after(Call::EpollPwait, 1),
        (58_000, 0),
        "a descriptor was ready"
    );
    assert_eq!(
        woken_after(Call::Futex, -110),
        (58_000, 0),
        "it slept with the lock"
    );
    assert_eq!(
        woken_after(Call::ClockNanosleep, 0),
        (58_000, 0),
        "it slept with the lock"
    );
}

#[test]
fn a_core_that_whoever_looks_had_is_not_blamed_on_others() {
    let runs_after = |at_ns, after| event(at_ns, ThreadChange::Runs { core: 0, after });
    let events = [
        runs(0),
        leaves(10, Left::Preempted),
        runs_after(30, 77),
        leaves(40, Left::Preempted),
        runs_after(45, 8),
    ];
    let mut times = ThreadTimes::default();
    times.observed_by([77]);
    events.iter().for_each(|event| times.see(event));
    let expected = Times {
        running_ns: 25,
        behind_ns: 20,
        ready_ns: 5,
        ..Times::default()
    };
    assert_eq!(times.times(1, 0, 50), expected);
    let long_ns = 80_000_000;
    let mut throttled = ThreadTimes::default();
    throttled.observed_by([77]);
    [
        runs(0),
        leaves(10, Left::Preempted),
        runs_after(long_ns, 77),
    ]
    .iter()
    .for_each(|event| throttled.see(event));
    let expected = Times {
        running_ns: 10,
        ready_ns: long_ns - 10,
        ..Times::default()
    };
    assert_eq!(
        throttled.times(1, 0, long_ns),
        expected,
        "it had no core for longer than anybody looks"
    );
}

#[test]
fn who_is_woken_and_leaves_a_core_was_on_it() {
    let events = [
        leaves(0, Left::Sleeping),
        ready(10),
        leaves(30, Left::Sleeping),
        ready(40),
        runs(45),
        leaves(50, Left::Preempted),
    ];
    let times = seen(&events);
    let expected = Times {
        unnamed_ns: 20,
        running_ns: 25,
        ready_ns: 15,
        ..Times::default()
    };
    assert_eq!(
        times.times(1, 0, 60),
        expected,
        "it is not said when an idle core went on with it at first"
    );
}

#[test]
fn waits_during_intervals_are_counted_once() {
    let times = seen(&[
        runs(0),
        calls(1, Call::EpollWait),
        leaves(10, Left::Sleeping),
        ready(60),
        runs(60),
    ]);
    assert_eq!(times.waited_during(1, &[(40, 100), (20, 50)], 0, 100), 40);
    assert_eq!(times.waited_during(1, &[], 0, 100), 0);
}

#[test]
fn a_lock_is_waited_for_while_others_work() {
    let other = |thread, event: ThreadEvent| ThreadEvent { thread, ..event };
    let mut events = a_life().to_vec();
    // Its lock is waited for from 20 to 50.
    events.extend([
        other(2, runs(10)),
        other(2, leaves(30, Left::Sleeping)),
        other(2, ready(45)),
        other(2, runs(47)),
    ]);
    events.extend([other(3, runs(25)), other(3, leaves(35, Left::Sleeping))]);
    events.sort_by_key(|event| event.at_ns);
    let times = seen(&events);
    assert_eq!(
        times.locked_while(1, &[2, 3], 0, 100),
        15 + 5,
        "both are counted once"
    );
    assert_eq!(times.locked_while(1, &[3], 0, 100), 10);
    assert_eq!(times.locked_while(1, &[2, 3], 28, 32), 4);
    assert_eq!(
        (
            times.locked_while(1, &[], 0, 100),
            times.locked_while(1, &[9], 0, 100)
        ),
        (0, 0)
    );
}

#[test]
fn what_was_lost_is_unseen_until_the_next_event() {
    let mut times = seen(&a_life());
    times.lost(30, 55);
    let expected = Times {
        lock_ns: 10,
        unseen_ns: 30,
        running_ns: 30,
        ..Times::default()
    };
    assert_eq!(times.times(1, 20, 90), expected);
}

#[test]
fn a_forgotten_past_is_unseen_and_an_ended_thread_is_gone() {
    let mut times = seen(&a_life());
    times.forget(55);
    let expected = Times {
        unseen_ns: 20,
        ready_ns: 10,
        running_ns: 30,
        ..Times::default()
    };
    assert_eq!(
        times.times(1, 30, 90),
        expected,
        "what was then is kept from its begin at 50"
    );
    times.forget(91);
    assert_eq!(times.threads().count(), 0);
}

#[test]
fn changes_of_a_thread_are_bounded() {
    let mut times = ThreadTimes::default();
    for at in 0..MOST_CHANGES as u64 + 10 {
        times.see(&if at % 2 == 0 {
            runs(at)
        } else {
            leaves(at, Left::Preempted)
        });
    }
    assert_eq!(times.threads[&1].len(), MOST_CHANGES);
    assert_eq!(
        times.times(1, 0, 20),
        Times {
            unseen_ns: 10,
            ready_ns: 5,
            running_ns: 5,
            ..Times::default()
        }
    );
}

proptest! {
    #[test]
    fn the_parts_add_up_and_the_order_of_events_does_not_matter(
        kinds in proptest::collection::vec((0..100_u64, 0..6_u8), 0..30),
        interval in (0..120_u64, 0..120_u64),
        lost in proptest::option::of((0..100_u64, 0..100_u64)),
        turned: usize,
    ) {
        let mut kinds = kinds;
        kinds.sort_by_key(|(at, _)| *at);
        kinds.dedup_by_key(|(at, _)| *at);
        let events: Vec<ThreadEvent> = kinds.iter().map(|(at, kind)| match kind {
            0 => runs(*at),
            1 => ready(*at),
            2 => leaves(*at, Left::Sleeping),
            3 => leaves(*at, Left::Preempted),
            4 => calls(*at, Call::Poll),
            _ => returns(*at, Call::Poll),
        }).collect();
        let mut other = events.clone();
        other.rotate_left(turned % events.len().max(1));
        let (from, to) = (interval.0.min(interval.1), interval.0.max(interval.1));
        let [mut times, mut other] = [seen(&events), seen(&other)];
        prop_assert_eq!(times.times(1, from, to), other.times(1, from, to));
        if let Some((one, another)) = lost {
            times.lost(one.min(another), one.max(another));
            other.lost(one.min(another), one.max(another));
        }
        prop_assert_eq!(times.times(1, from, to).total_ns(), to - from);
        let spans = times.spans(1, from, to);
        prop_assert!(spans.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns));
        times.forget(from);
        prop_assert_eq!(times.times(1, from, to), other.times(1, from, to), "what is forgotten is before it");
    }
}

/// What a thread does at a moment, us.
fn does(thread: u32, at_us: u64, what: ThreadChange) -> ThreadEvent {
    ThreadEvent {
        at_ns: at_us * 1000,
        thread,
        what,
    }
}

/// A thread waits in a call from one moment until another thread wakes it, us; `by` 0: an interrupt does.
fn waits(thread: u32, call: Call, from_us: u64, to_us: u64, by: u32) -> Vec<ThreadEvent> {
    let state = Left::Sleeping;
    let woken = ThreadChange::Woken {
        by,
        in_interrupt: by == 0,
    };
    vec![
        does(thread, from_us, ThreadChange::Calls { call, argument: 64 }),
        does(thread, from_us, ThreadChange::Leaves { state }),
        does(thread, to_us, woken),
        does(thread, to_us, ThreadChange::Ready),
        does(thread, to_us, ThreadChange::Runs { core: 0, after: 0 }),
        does(thread, to_us, ThreadChange::Returns { call, result: 0 }),
    ]
}

#[test]
fn holders_of_a_lock_did_what_their_own_holders_did_while_they_waited() {
    // Thread 3 computes until 100 us, sleeps until 400, and lets 2 go on; 2 reads a socket until 700, and lets 1 go on.
    let events = [
        vec![does(3, 0, ThreadChange::Runs { core: 0, after: 0 })],
        waits(1, Call::Futex, 0, 800, 2),
        waits(2, Call::Futex, 0, 450, 3),
        waits(3, Call::Nanosleep, 100, 400, 0),
        waits(2, Call::Recvfrom, 500, 700, 0),
    ];
    let mut events = events.concat();
    events.sort_by_key(|event| event.at_ns);
    let all = seen(&events);
    let held = all.holders(1, 0, 900_000).unwrap();
    assert_eq!(held.thread, 3);
    assert_eq!(held.times.running_ns, 100_000 + 50_000 + 50_000 + 100_000);
    assert_eq!(held.times.sleep_ns, 300_000);
    assert_eq!(held.times.socket_ns, 200_000);
    assert_eq!(held.times.total_ns(), 800_000);
    // A part of the wait; who waited for no lock; whose wait an interrupt ended.
    let part = all.holders(1, 600_000, 750_000).unwrap();
    assert_eq!((part.thread, part.times.total_ns()), (2, 150_000));
    assert_eq!(all.holders(3, 0, 900_000), None);
    assert_eq!(
        seen(&waits(1, Call::Futex, 0, 10, 0)).holders(1, 0, 10_000),
        None
    );
}

#[test]
fn threads_that_wait_for_one_another_have_holders_too() {
    let events = [
        waits(1, Call::Futex, 0, 100, 2),
        waits(2, Call::Futex, 0, 100, 1),
    ];
    let mut events = events.concat();
    events.sort_by_key(|event| event.at_ns);
    assert_eq!(
        seen(&events)
            .holders(1, 0, 100_000)
            .unwrap()
            .times
            .total_ns(),
        100_000
    );
}
