//! What all endpoints of a run share: the virtual time, timers, who is to be looked at next, packets on their way to an
//! interface. And each endpoint's desk: its job, its clock, and how it waits.

use crate::clock::HostClock;
use crate::datagram::Datagram;
use crate::fault::{Fault, Result};
use crate::job::Job;
use crate::stacks::end::End;
use crate::trace::{Line, Log};
use bytes::BytesMut;
use stackline_core::program::Side;
use stackline_core::time::{Duration, Instant};
use stackline_net::Packet;
use stackline_net::event_queue::EventQueue;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// What happens at a later moment. A timer that is no longer wanted finds nothing to do when its moment comes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Timer {
    /// An endpoint wants to be looked at.
    Endpoint(u32),
    /// One end of a connection has something to do.
    End { pair: u32, connection: u32, side: Side },
    /// The time limit of a job.
    Alarm(u32),
    /// The run goes on to what comes next.
    Stage(u32),
}

/// Largest packet of the network layer.
const LARGEST_PACKET: usize = 1 << 16;

/// What all endpoints of a run share.
#[derive(Debug)]
pub(crate) struct World {
    now: Cell<Instant>,
    timers: RefCell<EventQueue<Timer>>,
    /// Endpoints to be looked at, in order.
    ready: RefCell<Vec<u32>>,
    /// Ends of connections that may have something to send.
    touched: RefCell<Vec<End>>,
    outgoing: RefCell<Vec<Packet<Datagram>>>,
    /// A job came to its gate, or an endpoint is done.
    news: Cell<bool>,
    /// Endpoints that wait for a packet of theirs to leave.
    pub(crate) blocked: Cell<u32>,
    /// Where packets are put together and taken apart.
    pub(crate) frames: RefCell<Frames>,
    /// Where events go, when the run is traced.
    pub(crate) log: Option<Log>,
}

/// Room for one packet each way, and what real packets on their way are kept in.
#[derive(Debug)]
pub(crate) struct Frames {
    pub(crate) arriving: Vec<u8>,
    pub(crate) leaving: Vec<u8>,
    /// A packet that was just made, as long as it is.
    pub(crate) made: Vec<u8>,
    pub(crate) room: BytesMut,
}

impl World {
    pub(crate) fn new(log: Option<Log>) -> Rc<Self> {
        Rc::new(Self {
            log,
            now: Cell::new(Instant(0)),
            timers: RefCell::default(),
            ready: RefCell::default(),
            touched: RefCell::default(),
            outgoing: RefCell::default(),
            news: Cell::new(false),
            blocked: Cell::new(0),
            frames: RefCell::new(Frames {
                arriving: vec![0; LARGEST_PACKET],
                leaving: vec![0; LARGEST_PACKET],
                made: Vec::new(),
                room: BytesMut::new(),
            }),
        })
    }

    /// The virtual time.
    pub(crate) const fn now(&self) -> Instant {
        self.now.get()
    }

    pub(crate) fn set_now(&self, now: Instant) {
        self.now.set(now);
    }

    pub(crate) fn set_timer(&self, at: Instant, timer: Timer) {
        self.timers.borrow_mut().put(at, timer);
    }

    pub(crate) fn next_timer(&self) -> Option<Instant> {
        self.timers.borrow().next()
    }

    pub(crate) fn take_timer(&self, until: Instant) -> Option<(Instant, Timer)> {
        self.timers.borrow_mut().take(until)
    }

    /// Hands a packet to its host's interface, at this instant.
    pub(crate) fn send(&self, packet: Packet<Datagram>) {
        self.outgoing.borrow_mut().push(packet);
    }

    pub(crate) const fn outgoing(&self) -> &RefCell<Vec<Packet<Datagram>>> {
        &self.outgoing
    }

    /// The end of a connection may have something to send. It sees to it that it is not on the list yet.
    pub(crate) fn touch(&self, end: End) {
        self.touched.borrow_mut().push(end);
    }

    pub(crate) fn take_touched(&self) -> Option<End> {
        let end = self.touched.borrow_mut().pop()?;
        end.untouch();
        Some(end)
    }

    /// The endpoint has to be looked at.
    pub(crate) fn wake(&self, endpoint: u32) {
        self.ready.borrow_mut().push(endpoint);
    }

    /// Whether nobody has to be looked at.
    pub(crate) fn is_idle(&self) -> bool {
        self.ready.borrow().is_empty() && self.touched.borrow().is_empty() && self.outgoing.borrow().is_empty()
    }

    /// Swaps the endpoints to be looked at for an empty list.
    pub(crate) fn take_ready(&self, into: &mut Vec<u32>) {
        std::mem::swap(&mut *self.ready.borrow_mut(), into);
    }

    pub(crate) fn tell_news(&self) {
        self.news.set(true);
    }

    pub(crate) fn take_news(&self) -> bool {
        self.news.replace(false)
    }
}

/// An endpoint's desk.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) world: Rc<World>,
    pub(crate) job: Rc<Job>,
    pub(crate) clock: Rc<HostClock>,
    pub(crate) id: u32,
    /// Its place in the trace, when there is one.
    pub(crate) line: Option<Line>,
    /// Words for what it waits for.
    waiting: Cell<&'static str>,
    /// The earliest timer of its own that has not come yet.
    alarm: Cell<Option<Instant>>,
}

impl Desk {
    pub(crate) fn new(
        world: &Rc<World>,
        job: &Rc<Job>,
        clock: &Rc<HostClock>,
        id: u32,
        line: Option<Line>,
    ) -> Rc<Self> {
        let (world, job, clock) = (Rc::clone(world), Rc::clone(job), Rc::clone(clock));
        Rc::new(Self { world, job, clock, id, line, waiting: Cell::new("its turn"), alarm: Cell::new(None) })
    }

    pub(crate) fn now(&self) -> Instant {
        self.world.now()
    }

    /// The time between two moments as this host reads it.
    pub(crate) fn between(&self, from: Instant, to: Instant) -> Duration {
        self.clock.between(from, to)
    }

    pub(crate) const fn waits_for(&self) -> &'static str {
        self.waiting.get()
    }

    /// Looks at the endpoint not later than `moment`.
    pub(crate) fn wake_at(&self, moment: Instant) {
        if self.alarm.get().is_none_or(|earlier| moment < earlier) {
            self.alarm.set(Some(moment));
            self.world.set_timer(moment, Timer::Endpoint(self.id));
        }
    }

    /// A timer of its own came.
    pub(crate) fn rang(&self, at: Instant) {
        if self.alarm.get() == Some(at) {
            self.alarm.set(None);
        }
    }

    /// Waits until `look` finds something.
    pub(crate) async fn until<R>(&self, what: &'static str, mut look: impl FnMut() -> Option<R>) -> Result<R> {
        poll_fn(|_| {
            if let Some(found) = look() {
                return Poll::Ready(Ok(found));
            }
            self.stand(what)
        })
        .await
    }

    /// Waits until `look` finds something, at most until `moment`.
    pub(crate) async fn until_or<R>(
        &self,
        what: &'static str,
        moment: Instant,
        mut look: impl FnMut() -> Option<R>,
    ) -> Result<Option<R>> {
        poll_fn(|_| {
            if let Some(found) = look() {
                return Poll::Ready(Ok(Some(found)));
            }
            if self.now() >= moment {
                return Poll::Ready(Ok(None));
            }
            self.wake_at(moment);
            self.stand(what)
        })
        .await
    }

    /// Waits until `moment` or until the limit comes: then it is false.
    pub(crate) async fn sleep(&self, moment: Instant) -> Result<bool> {
        let early = self.until_or("a moment", moment, || self.job.flags.limit().then_some(())).await?;
        Ok(early.is_none())
    }

    fn stand<R>(&self, what: &'static str) -> Poll<Result<R>> {
        if self.job.flags.ended() {
            return Poll::Ready(Err(Fault::Ended));
        }
        self.waiting.set(what);
        Poll::Pending
    }
}
