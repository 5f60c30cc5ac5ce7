//! Runs an endpoint's program (`stackline_endpoint`) on real stacks: implements its traits `EndpointWorld` and `EndpointService` by
//! blocking system calls, the host's monotonic clock and the connections of a stack.
//!
//! Those traits are asynchronous, because simulated worlds implement them too. Here every future is ready when it is first polled: each
//! operation blocks its thread, or its coroutine if the thread drives several endpoints, until it is done.

use crate::barrier::Barrier;
use crate::buffers::LiveThreadBuffers;
use crate::cancel::{LimitTimer, wait_until};
use crate::clock;
use crate::cpu_placement;
use crate::error::{self, Error, Result};
use crate::readiness;
use crate::stacks::contract::{Connector, LiveConnection, LiveListener, connection_vanished};
use crate::usage::{self, Meter};
use stackline_core::plan::DataAccess;
use stackline_core::procedure::PairSide;
use stackline_core::run_record::{TransportRecord, Usage};
use stackline_core::time::Instant;
use stackline_core::units;
use stackline_endpoint::{
    BulkDirection, ConnectionFacts, ConnectionOpening, Endpoint, EndpointObservation,
    EndpointProcessor, EndpointService, EndpointStep, EndpointWorld, SequenceProgress,
};
use stackline_events::catalogue::rows::{AppStart, AppStop};
use stackline_events::unit_ids::{self, EventStreamDirection};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::control::AgentTask;

/// How an endpoint gets its connections.
pub enum LiveConnectionSource {
    /// An initiator connects.
    Connect(Box<dyn Connector>),
    /// A responder accepts.
    Accept(Box<dyn LiveListener>),
}

/// What the endpoints of a job have in common.
#[derive(Clone)]
pub struct SharedLiveJob {
    /// Where the endpoints wait for their clocks to start.
    pub barrier: Arc<Barrier>,
    /// The timer of the time limit, if there is one.
    pub limit_timer: Option<Arc<LimitTimer>>,
    /// Counts the CPU time of a thread that drives several endpoints; `None` if each endpoint has its own thread.
    pub meter: Option<Rc<Meter>>,
}

/// The live world of one endpoint.
pub struct LiveEndpointWorld {
    role: LiveConnectionSource,
    buffers: Rc<RefCell<LiveThreadBuffers>>,
    shared: SharedLiveJob,
    /// How many times this endpoint's clock was started.
    starts: Cell<u32>,
    cancel: Arc<crate::cancel::LiveCancelFlags>,
    /// Whether waiting for a moment busy-waits.
    spins: bool,
    /// ID of the stream that this endpoint sends on, if the run is traced.
    stream: Option<i64>,
}

/// Runs the program of one replica to its end, on the calling thread or coroutine, and returns what it observed.
///
/// # Errors
/// As [`Endpoint::run`].
pub fn run(
    task: &AgentTask,
    work: Arc<stackline_endpoint::EndpointTask>,
    replica: u32,
    role: LiveConnectionSource,
    buffers: LiveThreadBuffers,
    shared: SharedLiveJob,
) -> Result<EndpointObservation> {
    let direction = if work.side == PairSide::Initiator {
        EventStreamDirection::There
    } else {
        EventStreamDirection::Back
    };
    let cancel = Arc::clone(&buffers.flags);
    let buffers = Rc::new(RefCell::new(buffers));
    let world = LiveEndpointWorld {
        role,
        cancel,
        buffers: Rc::clone(&buffers),
        shared,
        starts: Cell::new(0),
        spins: task.stack.word("receive") == Some("spin"),
        stream: task
            .flow
            .map(|first| unit_ids::stream(first + replica, direction)),
    };
    let mut observation = ready(Endpoint::new(work, world).run(replica))?;
    let sent = observation.record.sent_bytes;
    if let (DataAccess::File(name), Some((_, length, _))) =
        (&task.source, buffers.borrow_mut().source.file())
        && sent > length
    {
        let (whole, sent) = (units::format_size(length), units::format_size(sent));
        observation.record.notes.push(format!(
            "FILE {name} is {whole} long and was sent repeatedly from the start: {sent} in total"
        ));
    }
    Ok(observation)
}

/// The result of a future that is ready when it is first polled.
fn ready<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err(Error::measurement(
            "an operation in the live world did not finish at once: this is a bug in stackline",
        )),
    }
}

impl EndpointWorld for LiveEndpointWorld {
    type Service = OpenLiveConnection;

    #[inline]
    fn now(&self) -> Instant {
        clock::now()
    }

    async fn connect(&mut self) -> Result<OpenLiveConnection> {
        let LiveConnectionSource::Connect(connector) = &mut self.role else {
            return Err(Error::input("a responder cannot connect"));
        };
        let connection = connector.connect(&mut self.buffers.borrow_mut())?;
        Ok(OpenLiveConnection {
            connection,
            buffers: Rc::clone(&self.buffers),
        })
    }

    async fn accept(&mut self) -> Result<OpenLiveConnection> {
        let LiveConnectionSource::Accept(listener) = &mut self.role else {
            return Err(Error::input("an initiator cannot accept connections"));
        };
        let connection = listener.accept(&mut self.buffers.borrow_mut())?;
        Ok(OpenLiveConnection {
            connection,
            buffers: Rc::clone(&self.buffers),
        })
    }

    async fn sleep_until(&mut self, moment: Instant) -> Result<bool> {
        wait_until(moment, &self.cancel, self.spins)
    }

    async fn barrier(&mut self) -> Result<()> {
        let barrier = &self.shared.barrier;
        if !readiness::is_here() {
            return barrier.wait(&self.cancel);
        }
        barrier.arrive();
        // Wait at least once, even if the barrier is open already: the reactor goes on only when all its endpoints wait here.
        loop {
            readiness::wait_at_barrier();
            self.cancel.interrupted()?;
            if barrier.is_open() {
                return Ok(());
            }
        }
    }

    async fn read_file(&mut self, bytes: u64) -> Result<()> {
        self.buffers
            .borrow_mut()
            .read_file(bytes as usize)
            .map_err(|e| error::io_error("reading the source", &e))
    }

    async fn write_file(&mut self, bytes: u64) -> Result<()> {
        self.buffers
            .borrow_mut()
            .write_file(bytes as usize)
            .map_err(|e| error::io_error("writing the destination", &e))
    }

    #[inline]
    fn limit_reached(&self) -> bool {
        self.cancel.limit()
    }

    fn start_time_limit(&self) {
        if let Some(timer) = &self.shared.limit_timer {
            timer.start();
        }
    }

    fn processor(&self, at: EndpointStep) -> Option<EndpointProcessor> {
        let usage = match (&self.shared.meter, at) {
            (None, _) => usage::of_thread(),
            (Some(meter), EndpointStep::ClockStops) => meter.stop(),
            (Some(meter), _) => {
                self.starts.update(|starts| starts + 1);
                meter.start(self.starts.get());
                Usage::default()
            }
        };
        let (core, pinned) = cpu_placement::current_core();
        Some(EndpointProcessor {
            usage,
            core,
            pinned,
        })
    }

    /// Emits events for the start and stop of the clock only; those of connections and data units come from `stacks::traced_connection`.
    fn emit(&self, step: EndpointStep) {
        match step {
            EndpointStep::ClockStarts => AppStart {
                stream: self.stream.into(),
                ..AppStart::default()
            }
            .emit(),
            EndpointStep::ClockStops => AppStop {
                stream: self.stream.into(),
                ..AppStop::default()
            }
            .emit(),
            _ => {}
        }
    }

    fn counts(&self) -> BTreeMap<String, u64> {
        match &self.role {
            LiveConnectionSource::Connect(connector) => connector.counts(),
            LiveConnectionSource::Accept(listener) => listener.counts(),
        }
    }

    fn vanished(&self, when: &str) -> Error {
        connection_vanished(when)
    }
}

/// An open connection, with the buffers of its thread.
pub struct OpenLiveConnection {
    connection: Box<dyn LiveConnection>,
    buffers: Rc<RefCell<LiveThreadBuffers>>,
}

impl EndpointService for OpenLiveConnection {
    #[inline]
    async fn send(&mut self, bytes: u64, times: u64) -> Result<u64> {
        self.connection
            .send(bytes as usize, times, &mut self.buffers.borrow_mut())
    }

    #[inline]
    async fn receive(&mut self, bytes: u64, times: u64) -> Result<u64> {
        self.connection
            .receive(bytes as usize, times, &mut self.buffers.borrow_mut())
    }

    #[inline]
    async fn call(&mut self, request: u64, response: u64, since: Instant) -> Result<bool> {
        self.connection.call(
            request as usize,
            response as usize,
            since,
            &mut self.buffers.borrow_mut(),
        )
    }

    #[inline]
    async fn await_call(&mut self, bytes: u64) -> Result<bool> {
        self.connection
            .await_call(bytes as usize, &mut self.buffers.borrow_mut())
    }

    #[inline]
    async fn reply(&mut self, bytes: u64) -> Result<()> {
        self.connection
            .reply(bytes as usize, &mut self.buffers.borrow_mut())
    }

    async fn start_bulk(&mut self, direction: BulkDirection) -> Result<()> {
        self.connection
            .start_bulk(direction, &mut self.buffers.borrow_mut())
    }

    async fn prepare_bulk(&mut self, direction: BulkDirection) -> Result<()> {
        self.connection
            .prepare_bulk(direction, &mut self.buffers.borrow_mut())
    }

    async fn conclude_bulk(&mut self) -> Result<()> {
        self.connection
            .conclude_bulk(&mut self.buffers.borrow_mut())
    }

    async fn await_start_bulk(&mut self, direction: BulkDirection) -> Result<bool> {
        self.connection
            .await_start_bulk(direction, &mut self.buffers.borrow_mut())
    }

    async fn stop_bulk(&mut self, direction: BulkDirection) -> Result<()> {
        self.connection
            .stop_bulk(direction, &mut self.buffers.borrow_mut())
    }

    async fn await_stop_bulk(&mut self, direction: BulkDirection) -> Result<()> {
        self.connection
            .await_stop_bulk(direction, &mut self.buffers.borrow_mut())
    }

    async fn end_stream(&mut self) -> Result<()> {
        self.connection.end_stream(&mut self.buffers.borrow_mut())
    }

    async fn disconnect(self) -> Result<()> {
        self.connection.disconnect(&mut self.buffers.borrow_mut())
    }

    async fn await_disconnect(&mut self) -> Result<()> {
        self.connection
            .await_disconnect(&mut self.buffers.borrow_mut())
    }

    async fn settle(&mut self) -> Result<()> {
        self.connection.settle(&mut self.buffers.borrow_mut())
    }

    fn confirms(&self) -> bool {
        self.connection.confirms()
    }

    fn is_closed(&self) -> bool {
        self.connection.closed()
    }

    fn transport(&self) -> Option<TransportRecord> {
        self.connection.transport()
    }

    fn opening(&self) -> Option<ConnectionOpening> {
        self.connection.opening()
    }

    fn settings(&self) -> BTreeMap<String, String> {
        self.connection.settings()
    }

    fn progress(&self) -> Option<SequenceProgress> {
        let (next, arrived) = self.connection.progress()?;
        Some(SequenceProgress { next, arrived })
    }

    fn facts(&self) -> ConnectionFacts {
        ConnectionFacts {
            losses: self.connection.losses(),
            received_bytes: self.connection.received_bytes(),
            notes: self.connection.notes(),
        }
    }
}
