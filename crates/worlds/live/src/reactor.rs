//! Drives many endpoints on one thread: each is a coroutine that is suspended while it waits for a socket, a moment or the barrier, and
//! resumed when epoll reports an event of its socket or the wait is over.
//!
//! The reactor knows neither stacks nor protocols, and is not used if each endpoint has a thread of its own.

use crate::barrier::Barrier;
use crate::cancel::LiveCancelFlags;
use crate::clock;
use crate::error::{self, Result};
use crate::readiness;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use stackline_core::time::{Duration, Instant, NANOS_PER_SECOND};
use stackline_events::scope;
use stackline_os::coroutine::{Coroutine, CoroutineWait, Wake};
use std::collections::{BTreeSet, VecDeque};

/// Most events from one call of `epoll_wait`.
const EVENTS: usize = 256;

/// One endpoint that has not finished.
struct ReactorEndpoint<T: 'static> {
    work: Coroutine<T>,
    /// What it waits for; `Turn` while it is queued to run.
    waits: CoroutineWait,
    /// An event of one of its sockets that came while it did not wait for a socket; delivered when it next does.
    missed: Option<Wake>,
    /// Which data unit it works on, for the events of a traced run; swapped in while it runs.
    scope: scope::KeptScope,
}

/// The endpoints of one thread.
pub(crate) struct Reactor<'a, T: 'static> {
    /// The endpoints by index; `None` once one is done.
    seats: Vec<Option<ReactorEndpoint<T>>>,
    /// The endpoints to resume, in order, and what to tell each of its wait.
    ready: VecDeque<(usize, Wake)>,
    /// Endpoints that yielded to let the others run; they run again after the next poll.
    later: Vec<usize>,
    /// When waits end, with the endpoint's index.
    moments: BTreeSet<(Instant, usize)>,
    /// How many endpoints wait at the barrier.
    waiting_at_barrier: usize,
    /// How many endpoints are not done.
    running: usize,
    barrier: &'a Barrier,
    flags: &'a LiveCancelFlags,
}

impl<'a, T: 'static> Reactor<'a, T> {
    /// A reactor for these coroutines, none of which has begun. It belongs to the calling thread.
    ///
    /// # Errors
    /// When the system refuses an epoll descriptor.
    pub(crate) fn new(
        works: Vec<Coroutine<T>>,
        barrier: &'a Barrier,
        flags: &'a LiveCancelFlags,
    ) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|e| error::io_error("epoll_create", &e.into()))?;
        readiness::begin_reactor(epoll);
        let seat = |work| {
            Some(ReactorEndpoint {
                work,
                waits: CoroutineWait::Turn,
                missed: None,
                scope: scope::KeptScope::default(),
            })
        };
        Ok(Self {
            ready: (0..works.len())
                .map(|index| (index, Wake::default()))
                .collect(),
            running: works.len(),
            seats: works.into_iter().map(seat).collect(),
            later: Vec::new(),
            moments: BTreeSet::new(),
            waiting_at_barrier: 0,
            barrier,
            flags,
        })
    }

    /// Runs all endpoints until they are done; `done` gets the result of each.
    ///
    /// # Errors
    /// When epoll fails.
    pub(crate) fn run(mut self, mut done: impl FnMut(T)) -> Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        while self.running > 0 {
            while let Some((index, wake)) = self.ready.pop_front() {
                if let Some(result) = self.resume(index, wake) {
                    done(result);
                }
            }
            if self.running > 0 && self.waiting_at_barrier == self.running {
                // The error (the job was ended) is ignored: each endpoint checks the flags itself after it is woken.
                let _ = self.barrier.wait_open(self.flags);
                self.wake_all();
            } else if self.running > 0 {
                self.poll(&mut events)?;
            }
        }
        Ok(())
    }

    /// Runs an endpoint until it waits again or is done; returns its result if it is done.
    fn resume(&mut self, index: usize, wake: Wake) -> Option<T> {
        let seat = self.seats[index].as_mut()?;
        readiness::enter_endpoint(index);
        scope::swap_scope(&mut seat.scope);
        let result = seat.work.resume(wake);
        scope::swap_scope(&mut seat.scope);
        match result {
            Ok(result) => {
                self.seats[index] = None;
                self.running -= 1;
                Some(result)
            }
            Err(wait) => {
                self.set_aside(index, wait);
                None
            }
        }
    }

    /// Notes what a suspended endpoint waits for.
    fn set_aside(&mut self, index: usize, wait: CoroutineWait) {
        let Some(seat) = &mut self.seats[index] else {
            return;
        };
        seat.waits = wait;
        match wait {
            CoroutineWait::Socket(until) => {
                if let Some(wake) = seat.missed.take() {
                    self.ready.push_back((index, wake));
                } else if let Some(moment) = until {
                    self.moments.insert((moment, index));
                }
            }
            CoroutineWait::Until(moment) => drop(self.moments.insert((moment, index))),
            CoroutineWait::Barrier => self.waiting_at_barrier += 1,
            CoroutineWait::Turn => self.later.push(index),
        }
    }

    /// Waits for events of sockets, or until the first moment that an endpoint waits for, and queues the endpoints to resume.
    fn poll(&mut self, events: &mut Vec<epoll::Event>) -> Result<()> {
        events.clear();
        let timeout = self.timeout();
        let polled = readiness::of_thread(|epoll| {
            epoll::wait(epoll, spare_capacity(events), timeout.as_ref())
        });
        match polled {
            None | Some(Ok(_)) => {}
            // A signal: all endpoints are woken to check the flags.
            Some(Err(Errno::INTR)) => self.wake_all(),
            Some(Err(error)) => return Err(error::io_error("epoll_wait", &error.into())),
        }
        for event in &*events {
            let (flags, data) = (event.flags, event.data);
            let ends = epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
            self.happened(
                data.u64() as usize,
                Wake {
                    hangup: flags.intersects(ends),
                },
            );
        }
        self.pass_moments();
        self.ready
            .extend(self.later.drain(..).map(|index| (index, Wake::default())));
        Ok(())
    }

    /// How long to wait for events: not at all if an endpoint has only yielded; `None` without end.
    fn timeout(&self) -> Option<Timespec> {
        let wait = match self.moments.first() {
            _ if !self.later.is_empty() => Duration::default(),
            Some((moment, _)) => moment.since(clock::now()),
            None => return None,
        };
        let (seconds, nanos) = (wait.0 / NANOS_PER_SECOND, wait.0 % NANOS_PER_SECOND);
        Some(Timespec {
            tv_sec: seconds.cast_signed(),
            tv_nsec: nanos.cast_signed(),
        })
    }

    /// Handles an event of a socket of the endpoint with this index.
    fn happened(&mut self, index: usize, wake: Wake) {
        let Some(Some(seat)) = self.seats.get_mut(index) else {
            return;
        };
        match seat.waits {
            CoroutineWait::Socket(until) => {
                if let Some(moment) = until {
                    self.moments.remove(&(moment, index));
                }
                // Queued from here on: a further event, of another of its sockets, is kept in `missed`.
                seat.waits = CoroutineWait::Turn;
                self.ready.push_back((index, wake));
            }
            _ => {
                let hangup = wake.hangup || seat.missed.is_some_and(|missed| missed.hangup);
                seat.missed = Some(Wake { hangup });
            }
        }
    }

    /// Queues the endpoints whose moments have passed.
    fn pass_moments(&mut self) {
        if self.moments.is_empty() {
            return;
        }
        let now = clock::now();
        while let Some((moment, index)) = self.moments.pop_first() {
            if moment > now {
                self.moments.insert((moment, index));
                break;
            }
            if let Some(Some(seat)) = self.seats.get_mut(index) {
                seat.waits = CoroutineWait::Turn;
                self.ready.push_back((index, Wake::default()));
            }
        }
    }

    /// Queues every endpoint that waits for a socket, a moment or the barrier, so that it checks the flags.
    fn wake_all(&mut self) {
        self.moments.clear();
        self.waiting_at_barrier = 0;
        for (index, seat) in self.seats.iter_mut().enumerate() {
            if let Some(seat) = seat
                && seat.waits != CoroutineWait::Turn
            {
                seat.waits = CoroutineWait::Turn;
                self.ready.push_back((index, Wake::default()));
            }
        }
    }
}

impl<T: 'static> Drop for Reactor<'_, T> {
    fn drop(&mut self) {
        readiness::end_reactor();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readiness::*;
    use std::cell::RefCell;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::rc::Rc;

    type Log = Rc<RefCell<Vec<&'static str>>>;
    type Work = Box<dyn FnOnce(&Log)>;

    /// Drives these on this thread; what they noted, in order.
    fn driven(works: Vec<Work>) -> Vec<&'static str> {
        let log = Log::default();
        let coroutine = |work: Work| {
            let log = Rc::clone(&log);
            Coroutine::new(256 << 10, move || work(&log)).unwrap()
        };
        let (barrier, flags) = (Barrier::default(), LiveCancelFlags::default());
        barrier.open();
        Reactor::new(works.into_iter().map(coroutine).collect(), &barrier, &flags)
            .unwrap()
            .run(drop)
            .unwrap();
        assert!(!is_here(), "the thread is free again");
        log.take()
    }

    fn note(log: &Log, what: &'static str) {
        log.borrow_mut().push(what);
    }

    #[test]
    fn each_goes_on_at_its_moment() {
        let base = clock::now();
        let at = |ms: u64, name: &'static str| -> Work {
            Box::new(move |log| {
                assert!(sleep_until(base + Duration(ms * 1_000_000)));
                note(log, name);
            })
        };
        assert_eq!(
            driven(vec![at(9, "third"), at(3, "first"), at(6, "second")]),
            ["first", "second", "third"]
        );
        assert!(!sleep_until(base), "a thread of its own sleeps by itself");
    }

    #[test]
    fn a_long_job_lets_the_others_have_their_turn() {
        let long: Work = Box::new(|log| {
            (0..10 * AT_ONCE).for_each(|_| take_turns());
            note(log, "long");
        });
        assert_eq!(
            driven(vec![long, Box::new(|log| note(log, "short"))]),
            ["short", "long"]
        );
    }

    #[test]
    fn those_at_the_barrier_go_on_together_once_all_are_there() {
        let waits = |name: &'static str, pause: u64| -> Work {
            Box::new(move |log| {
                sleep_until(clock::now() + Duration(pause));
                note(log, "waits");
                assert!(wait_at_barrier());
                note(log, name);
            })
        };
        assert_eq!(
            driven(vec![waits("a", 3_000_000), waits("b", 0)]),
            ["waits", "waits", "a", "b"]
        );
    }

    #[test]
    fn an_end_that_comes_with_the_last_bytes_is_noticed() {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        let reads: Work = Box::new(move |log| {
            watch(near.as_fd()).unwrap();
            let (mut input, mut bytes) = (SocketInputState::default(), [0; 64]);
            loop {
                input.wait();
                match near.read(&mut bytes) {
                    Ok(0) => break note(log, "the end"),
                    Ok(got) => {
                        input.got(got, bytes.len());
                        note(log, "bytes");
                    }
                    Err(_) => input.nothing(),
                }
            }
        });
        let writes: Work = Box::new(move |log| {
            note(log, "writes");
            far.write_all(&[7; 10]).unwrap();
        });
        assert_eq!(driven(vec![reads, writes]), ["writes", "bytes", "the end"]);
    }

    #[test]
    fn a_full_socket_is_waited_for() {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        let writes: Work = Box::new(move |log| {
            let mut sent = 0;
            while sent < 4 << 20 {
                match near.write(&[0; 1 << 16]) {
                    Ok(bytes) => sent += bytes,
                    Err(_) => wait_for_room(near.as_fd(), None).unwrap(),
                }
            }
            note(log, "sent");
        });
        let reads: Work = Box::new(move |log| {
            far.set_nonblocking(true).unwrap();
            watch(far.as_fd()).unwrap();
            let (mut input, mut bytes, mut all) =
                (SocketInputState::default(), vec![0; 1 << 16], 0);
            while all < 4 << 20 {
                input.wait();
                match far.read(&mut bytes) {
                    Ok(got) => all += got,
                    Err(_) => input.nothing(),
                }
            }
            note(log, "received");
        });
        assert_eq!(driven(vec![writes, reads]), ["sent", "received"]);
    }
}
