//! The stages of a measured run in virtual time: endpoints connect, loads start, the measured parts start, everything
//! ends. A job is one side of one part ([`SimJob`]).

use crate::carrier::SimCarrier;
use crate::clock::SimHostClock;
use crate::context::{SimEndpointContext, SimEndpointHost};
use crate::datagram::SimDatagram;
use crate::error::{Error, Result};
use crate::job::SimJob;
use crate::outcome::SimRunOutcome;
use crate::program_costs::HostWorkCosts;
use crate::records;
use crate::run_state::Timer;
use crate::run_trace::{SimEndpointTrace, SimTraceLog, SimTraceParameters};
use crate::scene::SimRunScene;
use crate::stacks;
use crate::stacks::pair::{SimEndpointPair, SimPairPlan, SimPairRoute};
use crate::start_phase;
use crate::virtual_time::{NextEvent, VirtualTime};
use stackline_core::procedure::{PairSide, both_ways};
use stackline_core::time::{Duration, Instant};
use stackline_endpoint::EndpointTask;
use stackline_net::{NodeIndex, RouteProperties, Tap};
use std::rc::Rc;

/// Loads run this long before the measured parts start their clocks.
const SETTLE: Duration = Duration(100_000_000);
/// The virtual time that a run may take beyond its time limit before it is given up: data in flight on a slow line
/// takes minutes.
const GRACE: Duration = Duration(600_000_000_000);
/// The virtual time that responders and loads may take after the measured initiators are done. It is generous because
/// waiting costs nothing in virtual time.
const FINISH: Duration = Duration(10_000_000_000);

/// The stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SimRunStage {
    /// The endpoints of that part are connecting.
    Connecting(usize),
    /// All endpoints are connected, and their packets are still in transit. No clock starts before the network is
    /// empty.
    Quieting,
    /// Only loads run.
    Settling,
    /// The measured parts run.
    Running,
    /// Loads and responders are ending.
    Ending,
    /// All endpoints are done.
    Done,
}

/// Values of [`Timer::Stage`]: loads have run alone long enough.
const SETTLED: u32 = 0;
/// The run has exceeded its time limit and [`GRACE`].
const OVERDUE: u32 = 1;
/// Endpoints that are not done by now are ended at once.
const END_NOW: u32 = 2;

/// One run being carried out.
pub(crate) struct SimRunEngine<'s, T: Tap<SimDatagram>> {
    scene: &'s SimRunScene<'s>,
    time: VirtualTime<'s, T>,
    clocks: Vec<Rc<SimHostClock>>,
    /// Two for each part: its initiators, then its responders.
    jobs: Vec<Rc<SimJob>>,
    /// By the number of the endpoint, which is also that of its task.
    contexts: Vec<Rc<SimEndpointContext>>,
    /// The time of a packet on the slowest link, within which endpoints start at random.
    phase: Duration,
    stage: SimRunStage,
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
        let carrier = SimCarrier::new(scene.network, scene.seed.child("network"), tap);
        let time = VirtualTime::new(scene.network, scene.limits, scene.interrupted, carrier, log);
        Ok(Self {
            scene,
            time,
            clocks,
            jobs: Vec::new(),
            contexts: Vec::new(),
            phase: start_phase::packet_time(scene.network),
            stage: SimRunStage::Connecting(0),
        })
    }

    /// # Errors
    /// See [`crate::carry_out`].
    pub(crate) fn carry_out(mut self) -> Result<(SimRunOutcome, T)> {
        // A short run may be over before the next check.
        self.time.not_interrupted()?;
        self.begin_part(0)?;
        self.settle()?;
        while self.stage != SimRunStage::Done {
            self.step()?;
        }
        // Endpoints hold their ends of connections, which notify the shared state when they are dropped.
        self.contexts.clear();
        self.time.shared.tasks.clear();
        let records = records::gather_records(self.scene, &self.jobs);
        let ports = self.time.carrier.counters();
        let (virtual_time, events) = (self.time.shared.now(), self.time.events);
        self.time.finish_log()?;
        let watch = self.time.carrier.into_tap();
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

    /// Processes the next event and everything that follows from it at the same instant.
    #[inline]
    fn step(&mut self) -> Result<()> {
        if self.stage == SimRunStage::Quieting && self.time.carrier.deadline().is_none() {
            self.begin();
            return self.settle();
        }
        let cap = Instant(0) + self.scene.limits.virtual_time;
        match self.time.next(cap)? {
            NextEvent::Inside | NextEvent::Task => {}
            NextEvent::Timer(Timer::Alarm(job)) => {
                if let Some(job) = self.jobs.get(job as usize) {
                    job.end(false, &self.time.shared);
                }
            }
            NextEvent::Timer(Timer::Stage(what)) => self.stage_timer(what)?,
            NextEvent::Timer(_) => {}
            NextEvent::Nothing => return Err(self.stuck(cap)),
        }
        self.settle()
    }

    /// Runs tasks and advances the stage until nothing more happens at this instant.
    fn settle(&mut self) -> Result<()> {
        while self.time.settle()? {
            self.advance()?;
        }
        Ok(())
    }

    /// The error for a run that does not end: which endpoints wait, and for what.
    fn stuck(&self, cap: Instant) -> Error {
        let waiting = self.contexts.iter().filter(|context| !context.is_over());
        let mut words: Vec<String> = waiting
            .map(|context| {
                format!(
                    "the {} is waiting for {}",
                    context.job.name(),
                    context.waits_for()
                )
            })
            .collect();
        words.dedup();
        if let more @ 1.. = words.len().saturating_sub(4) {
            words.truncate(4);
            words.push(format!("{more} more wait"));
        }
        let words = words.join(", ");
        if self.time.carrier.deadline().is_some() || self.time.shared.next_timer().is_some() {
            let cap = (cap - Instant(0)).seconds();
            Error::measurement(format!(
                "the run did not end within {} of virtual time: {words}",
                stackline_core::units::format_time(cap)
            ))
            .hint("set a time limit to end it earlier")
        } else {
            Error::measurement(format!("the run is deadlocked at {} s: {words}", self.time.shared.now())).hint(
                "the two sides of the procedure wait for each other, or a datagram that one of them is waiting for was lost",
            )
        }
    }

    // --- how a run goes on ---

    /// The host of that name, else the last or the first host: its node and its index.
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
            .hint("FROM and TO are hosts of the network; by default, its first and last")
        })?;
        Ok((NodeIndex(u32::try_from(at).unwrap_or(u32::MAX)), at))
    }

    /// Creates the endpoints of a part: the responders listen at once, the initiators connect.
    fn begin_part(&mut self, number: usize) -> Result<()> {
        let scene = self.scene;
        let part = &scene.measurement.parts[number];
        let (from, to) = (
            self.node(part.from.as_deref(), false)?,
            self.node(part.to.as_deref(), true)?,
        );
        if from == to {
            return Err(Error::input("a simulated host cannot send to itself")
                .hint("FROM and TO must differ"));
        }
        let stack = stacks::find_stack(&part.stack.name)?;
        stack.table.accepts(&part.stack)?;
        stack.table.goes_across(scene.network)?;
        let seed = scene.seed.child("part").index(number as u64);
        let first = self.contexts.len() as u32;
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
        }
        let [initiators, responders] =
            [&self.jobs[2 * number], &self.jobs[2 * number + 1]].map(Rc::clone);
        let first_pair = self.time.pair_count();
        let mut plans = Vec::new();
        for replica in 0..part.replicas {
            let endpoints = [first + part.replicas + replica, first + replica];
            let route = self.route(first_pair + replica, [from.0, to.0], endpoints)?;
            let seed = seed.index(u64::from(replica)).child("stack");
            if let Some(log) = &self.time.shared.log {
                log.add_pair(number, replica, [from.1, to.1]);
            }
            plans.push(SimPairPlan {
                route,
                seed: seed.0,
            });
        }
        let pairs = stack.pairs(&plans, &part.stack, part.procedure.carries_data())?;
        for (number, pair) in (first_pair..).zip(&pairs) {
            self.time
                .add_pair(number, [from.0, to.0], Rc::clone(pair) as _);
            let dscp = part
                .stack
                .number(stacks::ip_options::DSCP.name)
                .unwrap_or_default();
            self.time
                .set_dscp(number, u8::try_from(dscp).unwrap_or_default());
        }
        for (job, at) in [(responders, to.1), (initiators, from.1)] {
            for (replica, pair) in (0..).zip(&pairs) {
                self.spawn(&job, at, pair, first_pair + replica, replica);
            }
        }
        Ok(())
    }

    /// What a pair's stack has to know of the paths between its hosts.
    fn route(&self, pair: u32, nodes: [NodeIndex; 2], endpoints: [u32; 2]) -> Result<SimPairRoute> {
        let (there, back) = (
            self.path(nodes[0], nodes[1], pair)?,
            self.path(nodes[1], nodes[0], pair)?,
        );
        let rooms = [self.room(&there), self.room(&back)];
        let marks = self.scene.network.marks();
        let copies = nodes.map(|node| {
            let host = self.scene.network.hosts.get(node.0 as usize);
            host.is_some_and(|host| {
                host.interface.copy_per_packet > Duration::ZERO
                    || host.interface.copy_ns_per_byte > 0.0
            })
        });
        Ok(SimPairRoute {
            pair,
            nodes,
            endpoints,
            mtu: there.mtu.min(back.mtu),
            rooms,
            copies,
            marks,
        })
    }

    fn path(&self, from: NodeIndex, to: NodeIndex, flow: u32) -> Result<RouteProperties> {
        self.time.carrier.path(from, to, flow).ok_or_else(|| {
            let name = |node: NodeIndex| {
                self.scene
                    .network
                    .hosts
                    .get(node.0 as usize)
                    .map_or("?", |host| host.name.as_str())
            };
            Error::input(format!("no path leads from {} to {}", name(from), name(to)))
                .hint("with one-way links (`->`), the return path needs links of its own")
        })
    }

    /// The bytes that fit into the queue before the first link of a path.
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
        // A datagram is handed over while there is any room left, so the last one has to fit as well.
        bytes
            .min(packets.saturating_mul(path.mtu))
            .saturating_sub(path.mtu)
            .max(1)
    }

    /// Creates the context and the task of one endpoint.
    fn spawn(
        &mut self,
        job: &Rc<SimJob>,
        host: usize,
        pair: &Rc<dyn SimEndpointPair>,
        pair_number: u32,
        replica: u32,
    ) {
        let id = self.contexts.len() as u32;
        let line = self.time.shared.log.as_ref().map(|log| {
            SimEndpointTrace::new(log, pair_number, job.task.side, both_ways(&job.task.steps))
        });
        let begins_after = start_phase::begins_after(job, replica, self.phase);
        let plan = &self.scene.network.hosts[host];
        let costs = HostWorkCosts::from_host(plan);
        let context = SimEndpointContext::new(
            &self.time.shared,
            job,
            SimEndpointHost {
                index: host,
                clock: Rc::clone(&self.clocks[host]),
                costs,
            },
            id,
            begins_after,
            line,
        );
        let task = Rc::clone(pair).spawn(Rc::clone(&context), replica);
        self.contexts.push(context);
        let number = self.time.shared.tasks.push(task);
        debug_assert_eq!(number, id, "tasks have their endpoints' numbers");
        self.time.shared.tasks.wake(id);
    }

    /// Moves to the next stage, if all that it waits for has happened: called when an endpoint has come to its barrier
    /// or is done.
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

    /// The jobs of that side that are not loads.
    fn measured(&self, side: PairSide) -> impl Iterator<Item = &Rc<SimJob>> {
        self.jobs
            .iter()
            .filter(move |job| job.task.side == side && !job.task.background)
    }

    /// Begins the next part when all endpoints of a part are connected.
    fn connected(&mut self, part: usize) -> Result<()> {
        if part + 1 < self.scene.measurement.parts.len() {
            self.stage = SimRunStage::Connecting(part + 1);
            return self.begin_part(part + 1);
        }
        self.stage = SimRunStage::Quieting;
        Ok(())
    }

    /// Starts the loads, or the measured parts where there are no loads.
    fn begin(&mut self) {
        let mut loads = self
            .jobs
            .iter()
            .filter(|job| job.task.background)
            .peekable();
        if loads.peek().is_some() {
            loads.for_each(|job| job.go(&self.time.shared));
            self.stage = SimRunStage::Settling;
            self.time
                .shared
                .set_timer(self.time.shared.now() + SETTLE, Timer::Stage(SETTLED));
        } else {
            self.go();
        }
    }

    /// Starts the measured parts.
    fn go(&mut self) {
        self.stage = SimRunStage::Running;
        self.jobs
            .iter()
            .filter(|job| !job.task.background)
            .for_each(|job| job.go(&self.time.shared));
        if let Some(limit) = self.scene.measurement.time_limit {
            self.time.shared.set_timer(
                self.time.shared.now() + limit + GRACE,
                Timer::Stage(OVERDUE),
            );
        }
        self.time.shared.signal_news();
    }

    /// Stops loads, and sets the time at which all remaining endpoints are ended.
    fn end(&mut self) {
        self.stage = SimRunStage::Ending;
        for job in self.jobs.iter().filter(|job| job.task.background) {
            job.ending.set(true);
            job.end(false, &self.time.shared);
        }
        self.time
            .shared
            .set_timer(self.time.shared.now() + FINISH, Timer::Stage(END_NOW));
        self.time.shared.signal_news();
    }

    fn stage_timer(&mut self, what: u32) -> Result<()> {
        match (what, self.stage) {
            (SETTLED, SimRunStage::Settling) => self.go(),
            (OVERDUE, SimRunStage::Running) => {
                return Err(Error::measurement("the run did not end at its time limit")
                    .hint("the data units are so large, or the path is so slow, that the last one is still in flight"));
            }
            (END_NOW, SimRunStage::Ending) => {
                for job in self.jobs.iter().filter(|job| !job.is_done()) {
                    job.ending.set(true);
                    job.end(true, &self.time.shared);
                }
            }
            _ => {}
        }
        Ok(())
    }
}
