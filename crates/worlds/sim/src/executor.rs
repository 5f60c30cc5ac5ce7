//! What all endpoints of a run share: the virtual time, timers, who is polled next, packets on their way to an interface.

use crate::datagram::SimDatagram;
use crate::run_trace::SimTraceLog;
use bytes::BytesMut;
use stackline_core::network::WorkKind;
use stackline_core::procedure::PairSide;
use stackline_core::time::{Duration, Instant};
use stackline_net::NetworkPacket;
use stackline_net::event_queue::EventQueue;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

/// What happens at a later moment. A timer that is no longer wanted finds nothing to do when its moment comes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Timer {
    /// An endpoint wants to be polled.
    Endpoint(u32),
    /// One end of a connection has something to do.
    End {
        pair: u32,
        connection: u32,
        side: PairSide,
    },
    /// The time limit of a job.
    Alarm(u32),
    /// The run goes on to what comes next.
    Stage(u32),
    /// The processor of a host may have done a piece of work.
    Processor(u32),
}

/// Work that an endpoint wants of its host's processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessorRequest {
    pub(crate) host: usize,
    pub(crate) kind: WorkKind,
    pub(crate) takes: Duration,
    pub(crate) endpoint: u32,
}

/// One end of a connection, of whichever stack, as far as it sends by itself.
pub(crate) trait ConnectionEnd: fmt::Debug {
    /// Its pair's number.
    fn pair(&self) -> u32;
    /// Its side of the pair.
    fn side(&self) -> PairSide;
    /// It is off the list of those that may have something to send.
    fn untouch(&self);
    /// Sends what there is to send and sets the next timer.
    fn flush(&self, executor: &Executor);
    /// Nobody needs it any more.
    fn is_over(&self) -> bool;
}

/// Largest packet of the network layer.
const LARGEST_PACKET: usize = 1 << 16;

/// What all endpoints of a run share.
#[derive(Debug)]
pub(crate) struct Executor {
    now: Cell<Instant>,
    timers: RefCell<EventQueue<Timer>>,
    /// Endpoints to be polled, in order.
    ready: RefCell<Vec<u32>>,
    /// Ends of connections that may have something to send.
    touched: RefCell<Vec<Rc<dyn ConnectionEnd>>>,
    outgoing: RefCell<Vec<NetworkPacket<SimDatagram>>>,
    /// Work that processors have not been told of.
    wanted: RefCell<Vec<ProcessorRequest>>,
    /// A job came to its barrier, or an endpoint is done.
    news: Cell<bool>,
    /// Endpoints that wait for a packet of theirs to leave.
    pub(crate) blocked: Cell<u32>,
    /// Where packets are put together and taken apart.
    pub(crate) frames: RefCell<SimPacketBuffers>,
    /// Where events go, when the run is traced.
    pub(crate) log: Option<Rc<SimTraceLog>>,
}

/// Room for one packet each way, and what real packets on their way are kept in.
#[derive(Debug)]
pub(crate) struct SimPacketBuffers {
    pub(crate) arriving: Vec<u8>,
    pub(crate) leaving: Vec<u8>,
    /// A packet that was just made, as long as it is.
    pub(crate) made: Vec<u8>,
    pub(crate) room: BytesMut,
}

impl Executor {
    pub(crate) fn new(log: Option<Rc<SimTraceLog>>) -> Rc<Self> {
        Rc::new(Self {
            log,
            now: Cell::new(Instant(0)),
            timers: RefCell::default(),
            ready: RefCell::default(),
            touched: RefCell::default(),
            outgoing: RefCell::default(),
            wanted: RefCell::default(),
            news: Cell::new(false),
            blocked: Cell::new(0),
            frames: RefCell::new(SimPacketBuffers {
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
    pub(crate) fn send(&self, packet: NetworkPacket<SimDatagram>) {
        self.outgoing.borrow_mut().push(packet);
    }

    pub(crate) const fn outgoing(&self) -> &RefCell<Vec<NetworkPacket<SimDatagram>>> {
        &self.outgoing
    }

    /// Wants work of a host's processor.
    pub(crate) fn want(&self, wanted: ProcessorRequest) {
        self.wanted.borrow_mut().push(wanted);
    }

    pub(crate) fn take_wanted(&self) -> Vec<ProcessorRequest> {
        // An empty list takes no memory.
        self.wanted.take()
    }

    /// The end of a connection may have something to send. It sees to it that it is not on the list yet.
    pub(crate) fn touch(&self, end: Rc<dyn ConnectionEnd>) {
        self.touched.borrow_mut().push(end);
    }

    pub(crate) fn take_touched(&self) -> Option<Rc<dyn ConnectionEnd>> {
        let end = self.touched.borrow_mut().pop()?;
        end.untouch();
        Some(end)
    }

    /// The endpoint has to be polled.
    pub(crate) fn wake(&self, endpoint: u32) {
        self.ready.borrow_mut().push(endpoint);
    }

    /// Whether no endpoint has to be polled.
    pub(crate) fn is_idle(&self) -> bool {
        let idle = self.ready.borrow().is_empty() && self.touched.borrow().is_empty();
        idle && self.outgoing.borrow().is_empty() && self.wanted.borrow().is_empty()
    }

    /// Swaps the endpoints to be polled for an empty list.
    pub(crate) fn take_ready(&self, into: &mut Vec<u32>) {
        std::mem::swap(&mut *self.ready.borrow_mut(), into);
    }

    pub(crate) fn signal_news(&self) {
        self.news.set(true);
    }

    pub(crate) fn take_news(&self) -> bool {
        self.news.replace(false)
    }
}
