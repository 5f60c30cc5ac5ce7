//! The loop: the network's next delivery or the next timer, whichever comes first (the network at equal instants), then
//! every endpoint that may go on, then what they send. And how a run goes on: endpoints connect, loads start, the measured
//! parts start, everything ends.

use crate::carrier::SimCarrier;
use crate::clock::SimHostClock;
use crate::context::SimEndpointContext;
use crate::datagram::SimDatagram;
use crate::error::{Error, Result};
use crate::executor::{Executor, ProcessorRequest, Timer};
use crate::host_work::HostWorkCosts;
use crate::imp_log::ImpLog;
use crate::job::SimJob;
use crate::outcome::SimRunOutcome;
use crate::processor::{SimProcessor, SimProcessorTurn};
use crate::records;
use crate::run_trace::{SimEndpointTrace, SimTraceLog, SimTraceParameters};
use crate::scene::SimRunScene;
use crate::stacks;
use crate::stacks::pair::{SimEndpointPair, SimPairRoute};
use crate::start_phase;
use crate::world::SimEndpointFuture;
use stackline_core::error::Blame;
use stackline_core::procedure::{PairSide, both_ways};
use stackline_core::time::{Duration, Instant};
use stackline_endpoint::{EndpointObservation, EndpointTask};
use stackline_net::{Delivery, NetworkPacket, NodeIndex, RouteProperties, Tap};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::{self, Poll, Waker};

/// Loads run this long before the measured parts start their clocks.
const SETTLE: Duration = Duration(100_000_000);
/// What a run may take beyond its time limit before it is given up: what is on its way over a slow line takes minutes.
const GRACE: Duration = Duration(600_000_000_000);
/// What responders and loads may take after the measured initiators are done; patience costs nothing in virtual time.
const FINISH: Duration = Duration(10_000_000_000);

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SimRunStage {
    /// The endpoints of that part are connecting.
    Connecting(usize),
    /// All are connected; what they said to one another is still on its way. No clock starts with anything in transit.
    Quieting,
    /// Loads run alone.
    Settling,
    /// The measured parts run.
    Running,
    /// What loops is ending.
    Ending,
    Done,
}

/// What a [`Timer::SimRunStage`] says.
const SETTLED: u32 = 0;
const OVERDUE: u32 = 1;
const END_NOW: u32 = 2;

/// One endpoint.
struct SimEndpointSlot {
    context: Rc<SimEndpointContext>,
    work: Option<SimEndpointFuture>,
}

/// One run being carried out.
pub(crate) struct SimRunEngine<'s, T: Tap<SimDatagram>> {
    scene: &'s SimRunScene<'s>,
    executor: Rc<Executor>,
    carrier: SimCarrier<T>,
    imp_log: ImpLog,
    clocks: Vec<Rc<SimHostClock>>,
    /// By host.
    processors: Vec<SimProcessor<u32>>,
    /// Two a part: initiators, responders.
    jobs: Vec<Rc<SimJob>>,
    pairs: Vec<Rc<dyn SimEndpointPair>>,
    slots: Vec<SimEndpointSlot>,
    /// By job.
    observed: Vec<Vec<EndpointObservation>>,
    /// What a packet takes on the narrowest link.
    phase: Duration,
    stage: SimRunStage,
    /// Lists that are filled and emptied again and again.
    ready: Vec<u32>,
    packets: Vec<NetworkPacket<SimDatagram>>,
    /// Steps taken at this instant.
    steps: u64,
    events: u64,
}

impl<'s, T: Tap<SimDatagram>> SimRunEngine<'s, T> {
    /// # Errors
    /// An [`Error`] that names what is not simulated.
    pub(crate) fn new(
        scene: &'s SimRunScene<'s>,
        tap: T,
        trace: Option<SimTraceParameters>,
    ) -> Result<Self> {
        let clocks: Vec<_> = scene
            .network
            .hosts
            .iter()
            .map(|host| Rc::new(SimHostClock::new(&host.clock)))
            .collect();
        let log = trace.map(|trace| Rc::new(SimTraceLog::new(trace, clocks.clone())));
        let mut carrier = SimCarrier::new(scene.network, scene.seed.child("network"), tap);
        if log.is_some() {
            carrier.report();
        }
        Ok(Self {
            scene,
            executor: Executor::new(log),
            carrier,
            imp_log: ImpLog::default(),
            clocks,
            processors: scene.network.hosts.iter().map(SimProcessor::new).collect(),
            jobs: Vec::new(),
            pairs: Vec::new(),
            slots: Vec::new(),
            observed: Vec::new(),
            phase: start_phase::packet_time(scene.network),
            stage: SimRunStage::Connecting(0),
            ready: Vec::new(),
            packets: Vec::new(),
            steps: 0,
            events: 0,
        })
    }

    /// # Errors
    /// See [`crate::carry_out`].
    pub(crate) fn carry_out(mut self) -> Result<(SimRunOutcome, T)> {
        // A run may be over before it looks again.
        self.not_interrupted()?;
        self.begin_part(0)?;
        self.settle()?;
        while self.stage != SimRunStage::Done {
            self.step()?;
        }
        // Endpoints hold their ends of connections, and those notify the world that they go.
        self.slots.clear();
        let records =
            records::gather_records(self.scene, &self.jobs, std::mem::take(&mut self.observed));
        let ports = self.carrier.counters();
        let (virtual_time, events) = (self.executor.now(), self.events);
        if let Some(log) = &self.executor.log {
            self.carrier.report_last(virtual_time);
            for (at, reports) in self.carrier.reports() {
                self.imp_log.put(log, self.scene.network, at, reports);
            }
            log.finish().map_err(Error::environment)?;
        }
        let watch = self.carrier.into_tap();
        let (digest, events) = (watch.digest, watch.events + events);
        Ok((
            SimRunOutcome {
                records,
                digest,
                events,
                virtual_time,
                ports,
            },
            watch.inner,
        ))
    }

    // --- the loop ---

    /// The next thing that happens.
    #[inline]
    fn step(&mut self) -> Result<()> {
        if self.stage == SimRunStage::Quieting && self.carrier.deadline().is_none() {
            self.begin();
            return self.settle();
        }
        let cap = Instant(0) + self.scene.limits.virtual_time;
        let mut until = self
            .executor
            .next_timer()
            .map_or(cap, |timer| timer.min(cap));
        if self.executor.blocked.get() > 0 {
            // Somebody waits for a packet to leave, which is notified only when its moment has been computed.
            until = self.carrier.deadline().map_or(until, |at| at.min(until));
        }
        if let Some(Delivery { due, mut packet }) = self.carrier.poll(until) {
            self.come_to(due)?;
            self.deliver(&mut packet);
        } else if let Some((at, timer)) = self.executor.take_timer(until) {
            self.come_to(at)?;
            self.ring(at, timer)?;
        } else if until == cap {
            return Err(self.stuck(cap));
        }
        self.announce_departures();
        self.settle()
    }

    fn come_to(&mut self, at: Instant) -> Result<()> {
        if let Some(log) = &self.executor.log {
            self.sample(log, at);
            for (at, reports) in self.carrier.reports() {
                self.imp_log.put(log, self.scene.network, at, reports);
            }
        }
        self.events += 1;
        self.steps = if at > self.executor.now() {
            0
        } else {
            self.steps + 1
        };
        self.executor.set_now(at);
        self.not_for_ever(at)
    }

    /// Connections are sampled now and then, as they were before what happens at `until`.
    fn sample(&self, log: &SimTraceLog, until: Instant) {
        while let Some(at) = log.look_before(until) {
            let emitted: usize = self.pairs.iter().map(|pair| pair.sample(at, log)).sum();
            let emitted = emitted + self.sample_processors(log, at);
            if emitted == 0 {
                // Nothing has happened, and nothing will before.
                log.skip_to(until);
            }
        }
    }

    /// What processors of hosts did since they were looked at last; how many did something.
    fn sample_processors(&self, log: &SimTraceLog, at: Instant) -> usize {
        let copies: BTreeMap<u32, u64> = self
            .carrier
            .processors(at)
            .map(|(host, spent)| (host.0, spent))
            .collect();
        let of = |(host, processor): (u32, &SimProcessor<u32>)| {
            let copied = copies.get(&host).copied();
            let worked = processor.spent_ns(at);
            (copied.is_some() || worked > 0)
                && log.processor(NodeIndex(host), at, copied.unwrap_or(0), worked)
        };
        (0..)
            .zip(&self.processors)
            .filter(|processor| of(*processor))
            .count()
    }

    fn not_interrupted(&self) -> Result<()> {
        match self.scene.interrupted {
            Some(flag) if flag.load(Ordering::Relaxed) => {
                Err(Error::new(Blame::Interrupted, "interrupted"))
            }
            _ => Ok(()),
        }
    }

    fn not_for_ever(&self, at: Instant) -> Result<()> {
        // Looked at now and then: a thousand events take about a millisecond.
        let looks = (self.events + self.steps).is_multiple_of(1024);
        if looks {
            self.not_interrupted()?;
        }
        if self.steps > self.scene.limits.steps_an_instant {
            return Err(Error::measurement(format!("time stands still at {at} s"))
                .hint("an endpoint sends without end, and no link, buffer or pace slows it down: give a link a rate"));
        }
        Ok(())
    }

    #[inline]
    fn deliver(&mut self, packet: &mut NetworkPacket<SimDatagram>) {
        if let Some(pair) = self.pairs.get(packet.payload.pair as usize) {
            pair.arrived(pair.route().side_of(packet.to), packet, &self.executor);
        }
    }

    fn ring(&mut self, at: Instant, timer: Timer) -> Result<()> {
        match timer {
            Timer::Endpoint(endpoint) => {
                if let Some(slot) = self.slots.get(endpoint as usize) {
                    slot.context.rang(at);
                }
                self.executor.wake(endpoint);
            }
            Timer::End {
                pair,
                connection,
                side,
            } => {
                if let Some(pair) = self.pairs.get(pair as usize) {
                    pair.timer(connection, side, &self.executor);
                }
            }
            Timer::Alarm(job) => {
                if let Some(job) = self.jobs.get(job as usize) {
                    job.end(false, &self.executor);
                }
            }
            Timer::Stage(what) => self.stage_timer(what)?,
            Timer::Processor(host) => self.worked(at, host),
        }
        Ok(())
    }

    /// The processor of a host may have done a piece of work, or has something to do.
    fn worked(&mut self, at: Instant, host: u32) {
        let copied_ns = self.carrier.copied_ns(NodeIndex(host), at);
        let Some(processor) = self.processors.get_mut(host as usize) else {
            return;
        };
        match processor.turn(at, copied_ns) {
            SimProcessorTurn::Done(endpoint) => {
                if let Some(slot) = self.slots.get(endpoint as usize) {
                    slot.context.has_worked();
                    self.executor.wake(slot.context.id());
                }
                self.executor.set_timer(at, Timer::Processor(host));
            }
            SimProcessorTurn::Until(ends) => self.executor.set_timer(ends, Timer::Processor(host)),
            SimProcessorTurn::Nothing => {}
        }
    }

    /// Tells processors what endpoints want of them.
    #[inline]
    fn put_to_work(&mut self) {
        for ProcessorRequest {
            host,
            kind,
            takes,
            endpoint,
        } in self.executor.take_wanted()
        {
            let Some(processor) = self.processors.get_mut(host) else {
                continue;
            };
            processor.want(endpoint, (kind, takes), endpoint);
            if processor.is_idle() {
                self.executor
                    .set_timer(self.executor.now(), Timer::Processor(host as u32));
            }
        }
    }

    /// Polls endpoints and sends what they send until nothing more happens at this instant.
    fn settle(&mut self) -> Result<()> {
        loop {
            let mut ready = std::mem::take(&mut self.ready);
            self.executor.take_ready(&mut ready);
            for endpoint in ready.drain(..) {
                self.poll_endpoint(endpoint)?;
            }
            self.ready = ready;
            self.flush();
            self.hand_over();
            self.put_to_work();
            self.not_for_ever(self.executor.now())?;
            if self.executor.take_news() {
                self.advance()?;
            } else if self.executor.is_idle() {
                return Ok(());
            }
        }
    }

    /// Ends of connections send what they have to send; those that are over are let go.
    #[inline]
    fn flush(&mut self) {
        while let Some(end) = self.executor.take_touched() {
            end.flush(&self.executor);
            if end.is_over()
                && let Some(pair) = self.pairs.get(end.pair() as usize)
            {
                pair.forget(end);
            }
        }
    }

    /// Hands packets to their hosts' interfaces.
    #[inline]
    fn hand_over(&mut self) {
        let mut packets = std::mem::take(&mut self.packets);
        std::mem::swap(&mut *self.executor.outgoing().borrow_mut(), &mut packets);
        for packet in packets.drain(..) {
            self.steps += 1;
            self.carrier.handle(self.executor.now(), packet);
        }
        self.packets = packets;
        self.announce_departures();
    }

    /// Senders that wait learn which of their packets have left, or when they will have.
    #[inline]
    fn announce_departures(&mut self) {
        let watch = self.carrier.tap();
        for left in watch.departures.drain(..) {
            if let Some(pair) = self.pairs.get(left.pair as usize) {
                pair.departed(
                    pair.route().side_of(left.from),
                    left.at,
                    left.bytes,
                    &self.executor,
                );
            }
        }
    }

    fn poll_endpoint(&mut self, endpoint: u32) -> Result<()> {
        let Some(slot) = self.slots.get_mut(endpoint as usize) else {
            return Ok(());
        };
        let Some(work) = &mut slot.work else {
            return Ok(());
        };
        let Poll::Ready(result) = work
            .as_mut()
            .poll(&mut task::Context::from_waker(Waker::noop()))
        else {
            return Ok(());
        };
        slot.work = None;
        let job = Rc::clone(&slot.context.job);
        job.done.set(job.done.get() + 1);
        self.executor.signal_news();
        let observation = match result {
            Ok(observation) => observation,
            // Its peer may have ended a moment earlier.
            Err(_) if job.ending.get() && job.task.background => EndpointObservation::default(),
            Err(error) if error.blame == Blame::Interrupted => EndpointObservation::default(),
            Err(error) => return Err(error.within(&job.name())),
        };
        self.observed[job.number as usize].push(observation);
        Ok(())
    }

    /// Why nothing more happens.
    fn stuck(&self, cap: Instant) -> Error {
        let waiting = self.slots.iter().filter(|slot| slot.work.is_some());
        let mut words: Vec<String> = waiting
            .map(|slot| {
                format!(
                    "the {} waits for {}",
                    slot.context.job.name(),
                    slot.context.waits_for()
                )
            })
            .collect();
        words.dedup();
        words.truncate(4);
        let words = words.join(", ");
        if self.carrier.deadline().is_some() || self.executor.next_timer().is_some() {
            let cap = (cap - Instant(0)).seconds();
            Error::measurement(format!(
                "the run did not end within {} of virtual time: {words}",
                stackline_core::units::format_time(cap)
            ))
            .hint("a time limit ends it earlier")
        } else {
            Error::measurement(format!("the run is deadlocked at {} s: {words}", self.executor.now())).hint(
                "the two sides of the procedure wait for each other, or a datagram was lost that one of them waits for",
            )
        }
    }

    // --- how a run goes on ---

    fn node(&self, name: Option<&str>, last: bool) -> Result<(NodeIndex, usize)> {
        let hosts = &self.scene.network.hosts;
        let at = match name {
            Some(name) => hosts.iter().position(|host| host.name == name),
            None if last => hosts.len().checked_sub(1),
            None => (!hosts.is_empty()).then_some(0),
        };
        let at = at.ok_or_else(|| {
            Error::input(format!(
                "the network {} has no host {}",
                self.scene.network.name,
                name.unwrap_or("at all")
            ))
            .hint(
                "FROM and TO name hosts of the network; without them its first and last are taken",
            )
        })?;
        Ok((NodeIndex(u32::try_from(at).unwrap_or(u32::MAX)), at))
    }

    /// Creates the endpoints of a part; the responders listen at once, the initiators connect.
    fn begin_part(&mut self, number: usize) -> Result<()> {
        let scene = self.scene;
        let part = &scene.measurement.parts[number];
        let (from, to) = (
            self.node(part.from.as_deref(), false)?,
            self.node(part.to.as_deref(), true)?,
        );
        if from == to {
            return Err(Error::input("a simulated host does not send to itself")
                .hint("FROM and TO name two hosts"));
        }
        let stack = stacks::find_stack(&part.stack.name)?;
        stack.table.accepts(&part.stack)?;
        stack.table.goes_across(scene.network)?;
        let seed = scene.seed.child("part").index(number as u64);
        let first = self.slots.len() as u32;
        let sides = [
            (PairSide::Initiator, from, first + part.replicas),
            (PairSide::Responder, to, first),
        ];
        for (side, (_, at), first) in sides {
            let task = EndpointTask::new(scene.measurement, part, side, seed, stack.table.reliable);
            let (number_of_job, host) = (self.jobs.len() as u32, &scene.network.hosts[at].name);
            self.jobs.push(Rc::new(SimJob::new(
                number_of_job,
                number,
                task,
                host,
                first,
            )));
            self.observed.push(Vec::new());
        }
        let [initiators, responders] =
            [&self.jobs[2 * number], &self.jobs[2 * number + 1]].map(Rc::clone);
        let first_pair = self.pairs.len() as u32;
        for replica in 0..part.replicas {
            let endpoints = [first + part.replicas + replica, first + replica];
            let route = self.route(first_pair + replica, [from.0, to.0], endpoints)?;
            let seed = seed.index(u64::from(replica)).child("stack");
            if let Some(log) = &self.executor.log {
                log.add_pair(number, replica, [from.1, to.1]);
            }
            self.pairs.push((stack.pair)(
                route,
                &part.stack,
                seed.0,
                part.procedure.carries_data(),
            )?);
        }
        for (job, at) in [(responders, to.1), (initiators, from.1)] {
            for replica in 0..part.replicas {
                self.spawn(&job, at, first_pair + replica, replica);
            }
        }
        let wanted = self.pairs.iter().any(|pair| pair.wants_departures());
        self.carrier.tap().departures_wanted = wanted;
        Ok(())
    }

    fn route(&self, pair: u32, nodes: [NodeIndex; 2], endpoints: [u32; 2]) -> Result<SimPairRoute> {
        let (there, back) = (
            self.path(nodes[0], nodes[1], pair)?,
            self.path(nodes[1], nodes[0], pair)?,
        );
        let rooms = [self.room(&there), self.room(&back)];
        let marks = self.scene.network.marks();
        Ok(SimPairRoute {
            pair,
            nodes,
            endpoints,
            mtu: there.mtu.min(back.mtu),
            rooms,
            marks,
        })
    }

    fn path(&self, from: NodeIndex, to: NodeIndex, flow: u32) -> Result<RouteProperties> {
        self.carrier.path(from, to, flow).ok_or_else(|| {
            let name = |node: NodeIndex| {
                self.scene
                    .network
                    .hosts
                    .get(node.0 as usize)
                    .map_or("?", |host| host.name.as_str())
            };
            Error::input(format!("no path leads from {} to {}", name(from), name(to)))
                .hint("links with `->` need others for the way back")
        })
    }

    /// Bytes that fit into the queue before the first link of a path.
    fn room(&self, path: &RouteProperties) -> u64 {
        let link = path
            .ports
            .first()
            .and_then(|port| self.scene.network.links.get(port.0 as usize / 2));
        let queue = link.and_then(|link| link.queue.as_ref());
        let bytes = queue
            .and_then(|queue| queue.limit_bytes)
            .unwrap_or(u64::MAX);
        let packets = queue
            .and_then(|queue| queue.limit_packets)
            .unwrap_or(u64::MAX);
        // A datagram is handed over while there is any room, so the last one has to fit as well.
        bytes
            .min(packets.saturating_mul(path.mtu))
            .saturating_sub(path.mtu)
            .max(1)
    }

    fn spawn(&mut self, job: &Rc<SimJob>, host: usize, pair: u32, replica: u32) {
        let id = self.slots.len() as u32;
        let line =
            self.executor.log.as_ref().map(|log| {
                SimEndpointTrace::new(log, pair, job.task.side, both_ways(&job.task.steps))
            });
        let begins_after = start_phase::begins_after(job, replica, self.phase);
        let plan = &self.scene.network.hosts[host];
        let costs = HostWorkCosts::of(plan);
        let context = SimEndpointContext::new(
            &self.executor,
            job,
            &self.clocks[host],
            (host, costs),
            id,
            begins_after,
            line,
        );
        let work = Rc::clone(&self.pairs[pair as usize]).spawn(Rc::clone(&context), replica);
        self.slots.push(SimEndpointSlot {
            context,
            work: Some(work),
        });
        self.executor.wake(id);
    }

    /// An endpoint has come to its barrier or is done.
    fn advance(&mut self) -> Result<()> {
        match self.stage {
            SimRunStage::Connecting(part) if self.jobs[2 * part].is_ready() => {
                self.connected(part)?
            }
            SimRunStage::Running if self.measured(PairSide::Initiator).all(|job| job.is_done()) => {
                self.end()
            }
            SimRunStage::Ending if self.jobs.iter().all(|job| job.is_done()) => {
                self.stage = SimRunStage::Done
            }
            _ => {}
        }
        Ok(())
    }

    fn measured(&self, side: PairSide) -> impl Iterator<Item = &Rc<SimJob>> {
        self.jobs
            .iter()
            .filter(move |job| job.task.side == side && !job.task.background)
    }

    fn connected(&mut self, part: usize) -> Result<()> {
        if part + 1 < self.scene.measurement.parts.len() {
            self.stage = SimRunStage::Connecting(part + 1);
            return self.begin_part(part + 1);
        }
        self.stage = SimRunStage::Quieting;
        Ok(())
    }

    /// Loads start, then the measured parts.
    fn begin(&mut self) {
        let mut loads = self
            .jobs
            .iter()
            .filter(|job| job.task.background)
            .peekable();
        if loads.peek().is_some() {
            loads.for_each(|job| job.go(&self.executor));
            self.stage = SimRunStage::Settling;
            self.executor
                .set_timer(self.executor.now() + SETTLE, Timer::Stage(SETTLED));
        } else {
            self.go();
        }
    }

    /// The measured parts start.
    fn go(&mut self) {
        self.stage = SimRunStage::Running;
        self.jobs
            .iter()
            .filter(|job| !job.task.background)
            .for_each(|job| job.go(&self.executor));
        if let Some(limit) = self.scene.measurement.time_limit {
            self.executor
                .set_timer(self.executor.now() + limit + GRACE, Timer::Stage(OVERDUE));
        }
        self.executor.signal_news();
    }

    /// Loads and responders that loop are stopped; the others end by themselves.
    fn end(&mut self) {
        self.stage = SimRunStage::Ending;
        for job in self.jobs.iter().filter(|job| job.task.background) {
            job.ending.set(true);
            job.end(false, &self.executor);
        }
        self.executor
            .set_timer(self.executor.now() + FINISH, Timer::Stage(END_NOW));
        self.executor.signal_news();
    }

    fn stage_timer(&mut self, what: u32) -> Result<()> {
        match (what, self.stage) {
            (SETTLED, SimRunStage::Settling) => self.go(),
            (OVERDUE, SimRunStage::Running) => {
                return Err(Error::measurement("the run did not end with its time limit")
                    .hint("data units so large, or a path so slow, that the last one is still on its way"));
            }
            (END_NOW, SimRunStage::Ending) => {
                for job in self.jobs.iter().filter(|job| !job.is_done()) {
                    job.ending.set(true);
                    job.end(true, &self.executor);
                }
            }
            _ => {}
        }
        Ok(())
    }
}
