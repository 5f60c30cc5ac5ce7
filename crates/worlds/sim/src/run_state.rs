//! The state that all tasks of a run share: virtual time, timers, hosts' processors, packets to be handed to
//! interfaces.

use crate::datagram::SimDatagram;
use crate::processor::{SimProcessor, SimProcessorTurn};
use crate::run_trace::SimTraceLog;
use crate::tasks::Tasks;
use crate::usage::UsageTotals;
use bytes::BytesMut;
use stackline_core::network::{Network, WorkKind};
use stackline_core::procedure::PairSide;
use stackline_core::time::{Duration, Instant};
use stackline_net::NetworkPacket;
use stackline_net::event_queue::EventQueue;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

/// A timer. It is never cancelled: one that is no longer wanted finds nothing to do when it expires.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Timer {
    /// A task, by its number, is polled.
    Task(u32),
    /// One end of a connection has something to do.
    End {
        pair: u32,
        connection: u32,
        side: PairSide,
    },
    /// The time limit of a job, by its number, has passed.
    Alarm(u32),
    /// Whoever drives the loop is called; the value says why.
    Stage(u32),
    /// The processor of a host, by the host's index, may have finished a piece of work.
    Processor(u32),
}

/// A piece of work that a task wants of a processor.
#[derive(Debug)]
pub(crate) struct ProcessorTicket {
    /// The task that waits for the work.
    pub(crate) task: u32,
    /// Whether the work is done.
    pub(crate) done: Cell<bool>,
}

/// A task's request for the use of ports and processors until now.
#[derive(Debug)]
pub(crate) struct UsageLook {
    /// The task that waits for the answer.
    pub(crate) task: u32,
    /// The answer.
    pub(crate) usage: RefCell<Option<UsageTotals>>,
}

/// One end of a connection of any stack that sends by itself, as the loop of virtual time sees it.
pub(crate) trait ConnectionEnd: fmt::Debug {
    /// Its pair's number.
    fn pair(&self) -> u32;
    /// Its side of the pair.
    fn side(&self) -> PairSide;
    /// Called when the end is taken off the list of ends that may have something to send.
    fn untouch(&self);
    /// Sends what there is to send and sets the next timer.
    fn flush(&self, shared: &SimRunState);
    /// Whether the end is no longer needed.
    fn is_over(&self) -> bool;
}

/// The largest packet of the network layer, in bytes.
const LARGEST_PACKET: usize = 1 << 16;

/// The state that all tasks of a run share.
#[derive(Debug)]
pub(crate) struct SimRunState {
    now: Cell<Instant>,
    timers: RefCell<EventQueue<Timer>>,
    pub(crate) tasks: Tasks,
    /// Ends of connections that may have something to send.
    touched: RefCell<Vec<Rc<dyn ConnectionEnd>>>,
    /// Packets to be handed to their hosts' interfaces at this instant.
    outgoing: RefCell<Vec<NetworkPacket<SimDatagram>>>,
    /// By host: its processor.
    pub(crate) processors: RefCell<Vec<SimProcessor<Rc<ProcessorTicket>>>>,
    /// Requests for usage that were not answered yet.
    looks: RefCell<Vec<Rc<UsageLook>>>,
    /// A job came to its barrier, or an endpoint is done.
    news: Cell<bool>,
    /// The number of endpoints that wait for one of their packets to leave its host.
    pub(crate) blocked: Cell<u32>,
    /// Buffers in which packets are put together and taken apart.
    pub(crate) frames: RefCell<SimPacketBuffers>,
    /// Where events go, when the run is traced.
    pub(crate) log: Option<Rc<SimTraceLog>>,
}

/// Reusable buffers for one packet in each direction, and memory for real packets in transit.
#[derive(Debug)]
pub(crate) struct SimPacketBuffers {
    pub(crate) arriving: Vec<u8>,
    pub(crate) leaving: Vec<u8>,
    /// The packet that was just made, with its exact length.
    pub(crate) made: Vec<u8>,
    pub(crate) room: BytesMut,
}

impl SimRunState {
    pub(crate) fn new(network: &Network, log: Option<Rc<SimTraceLog>>) -> Rc<Self> {
        let processors = network.hosts.iter().map(SimProcessor::new).collect();
        Rc::new(Self {
            log,
            now: Cell::new(Instant(0)),
            timers: RefCell::default(),
            tasks: Tasks::default(),
            touched: RefCell::default(),
            outgoing: RefCell::default(),
            processors: RefCell::new(processors),
            looks: RefCell::default(),
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

    /// A task wants work of a host's processor, for a program by its number.
    pub(crate) fn want(
        &self,
        host: usize,
        program: u32,
        kind: WorkKind,
        takes: Duration,
        task: u32,
    ) -> Rc<ProcessorTicket> {
        let done = Cell::new(false);
        let ticket = Rc::new(ProcessorTicket { task, done });
        if let Some(processor) = self.processors.borrow_mut().get_mut(host) {
            processor.want(program, kind, takes, Rc::clone(&ticket));
            if processor.is_idle() {
                self.set_timer(self.now(), Timer::Processor(host as u32));
            }
        }
        ticket
    }

    /// What is next at a host's processor, of whose time so much went into copying by now.
    pub(crate) fn turn(&self, host: u32, copied_ns: u64) -> SimProcessorTurn<Rc<ProcessorTicket>> {
        let mut processors = self.processors.borrow_mut();
        let processor = processors.get_mut(host as usize);
        processor.map_or(SimProcessorTurn::Nothing, |processor| {
            processor.turn(self.now(), copied_ns)
        })
    }

    /// The running task looks at ports and processors.
    pub(crate) fn look(&self) -> Rc<UsageLook> {
        let look = Rc::new(UsageLook {
            task: self.tasks.running(),
            usage: RefCell::new(None),
        });
        self.looks.borrow_mut().push(Rc::clone(&look));
        look
    }

    pub(crate) fn take_looks(&self) -> Vec<Rc<UsageLook>> {
        // An empty list takes no memory.
        self.looks.take()
    }

    /// Polls a task not later than `moment`.
    pub(crate) fn set_alarm(&self, task: u32, moment: Instant) {
        if self.tasks.wants_alarm(task, moment) {
            self.set_timer(moment, Timer::Task(task));
        }
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

    /// The task has to be polled.
    pub(crate) fn wake(&self, task: u32) {
        self.tasks.wake(task);
    }

    /// Whether no task has to be polled and nothing to be sent.
    pub(crate) fn is_idle(&self) -> bool {
        let idle = self.tasks.is_idle() && self.touched.borrow().is_empty();
        idle && self.outgoing.borrow().is_empty() && self.looks.borrow().is_empty()
    }

    pub(crate) fn signal_news(&self) {
        self.news.set(true);
    }

    pub(crate) fn take_news(&self) -> bool {
        self.news.replace(false)
    }
}
