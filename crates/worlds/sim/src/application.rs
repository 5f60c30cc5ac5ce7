//! A distributed application in virtual time. Its programs are async functions that send whole messages to each other
//! over simulated `tcp`, PUP, blasts or V's messages, work on their hosts' processors, and sleep. The contents of a
//! message (type `M`) are opaque here.
//!
//! ```text
//! let mut simulation = Simulation::new(network, seed, (), false);
//! let [near, far] = simulation.connect(from, to, stacks)?;
//! let context = simulation.context();
//! context.spawn(async move { near.send(100, "words").await; Ok(()) });
//! context.spawn(async move { far.receive().await; .. });
//! while simulation.next(until)?.is_some() {}
//! ```
//!
//! A program that is started, or called by a [`Signal`], runs at once until it waits; one that is rung runs once the
//! present program waits. This fixes the order of everything that happens at one moment.

mod context;
mod signal;

pub use context::ProgramContext;
pub use signal::{Mailbox, Signal};

use crate::carrier::SimCarrier;
use crate::datagram::SimDatagram;
use crate::error::{Error, Result};
use crate::messages::{CallPort, MessagePort, MessageTrace, Traces, callers, connections};
use crate::run_limits::SimRunLimits;
use crate::run_state::SimRunState;
use crate::usage::UsageTotals;
use crate::virtual_time::{APART, NextEvent, VirtualTime};
use stackline_core::network::Network;
use stackline_core::plan::Stack;
use stackline_core::random::Seed;
use stackline_core::time::Instant;
use stackline_net::{NodeIndex, Tap};
use stackline_proto::papers::pup::PupOptions;
use std::rc::Rc;

/// The simulated world of an application.
pub struct Simulation<'n, T: Tap<SimDatagram>> {
    time: VirtualTime<'n, T>,
    marks: bool,
    /// The number of connections made so far.
    connections: u32,
    /// The number of pairs of asking and answering programs made so far.
    calls: u32,
    /// What connections did; `None` when they are not traced.
    traces: Option<Traces>,
    /// Drops the programs with the simulation; they hold references to its shared state.
    programs: ProgramOwner,
}

/// Drops all tasks when it is dropped.
struct ProgramOwner(Rc<SimRunState>);

impl Drop for ProgramOwner {
    fn drop(&mut self) {
        self.0.tasks.clear();
    }
}

impl<'n, T: Tap<SimDatagram>> Simulation<'n, T> {
    /// A simulation over that network; `tap` receives every network event. With `traced`, what connections do is
    /// recorded.
    pub fn new(network: &'n Network, seed: Seed, tap: T, traced: bool) -> Self {
        let carrier = SimCarrier::of_links(network, seed.child("network"), tap);
        let time = VirtualTime::new(network, SimRunLimits::default(), None, carrier, None);
        Self {
            programs: ProgramOwner(Rc::clone(&time.shared)),
            time,
            marks: network.marks(),
            connections: 0,
            calls: 0,
            traces: traced.then(Traces::default),
        }
    }

    /// The context that programs use: time, processors, signals.
    pub fn context(&self) -> ProgramContext {
        ProgramContext::new(&self.time.shared)
    }

    /// The present virtual time.
    pub fn now(&self) -> Instant {
        self.time.shared.now()
    }

    /// Opens a `tcp` connection, with the options of one stack for each end, the asking end first.
    ///
    /// # Errors
    /// When no path leads there and back, or the stack is not `tcp`.
    pub fn connect<M: 'static>(
        &mut self,
        from: NodeIndex,
        to: NodeIndex,
        stacks: [&Stack; 2],
    ) -> Result<[MessagePort<M>; 2]> {
        let mtu = self.path_mtu(from, to, self.connections)?;
        let machines =
            connections::tcp_ends(self.now(), self.connections, stacks, mtu, self.marks)?;
        Ok(self.connection([from, to], machines))
    }

    /// Opens a PUP connection, whose packets are as large as the path and the options allow.
    ///
    /// # Errors
    /// When no path leads there and back.
    pub fn connect_pup<M: 'static>(
        &mut self,
        from: NodeIndex,
        to: NodeIndex,
        options: PupOptions,
    ) -> Result<[MessagePort<M>; 2]> {
        let mtu = self.path_mtu(from, to, self.connections)?;
        let machines = connections::pup_ends(self.now(), self.connections, options, mtu);
        Ok(self.connection([from, to], machines))
    }

    /// Opens a connection of `blast`, `saw` or `window`: a message counts as sent when the other end has all of it.
    ///
    /// # Errors
    /// When no path leads there and back, or its packets are too small.
    pub fn connect_blast<M: 'static>(
        &mut self,
        from: NodeIndex,
        to: NodeIndex,
        stack: &Stack,
    ) -> Result<[MessagePort<M>; 2]> {
        let mtu = self.path_mtu(from, to, self.connections)?;
        let machines =
            connections::blast_ends(self.now(), self.connections, [from, to], stack, mtu)?;
        Ok(self.connection([from, to], machines))
    }

    fn connection<M: 'static>(
        &mut self,
        nodes: [NodeIndex; 2],
        machines: connections::EndMachines,
    ) -> [MessagePort<M>; 2] {
        let number = self.connections;
        self.connections += 1;
        let shared = Rc::clone(&self.time.shared);
        let (pair, ports) =
            connections::connection(number, nodes, machines, shared, self.traces.clone());
        self.time.add_pair(number, nodes, pair);
        ports
    }

    /// Makes the two ends of V's message passing: the end that asks, and the end that answers.
    ///
    /// # Errors
    /// When no path leads there and back.
    pub fn call<M: 'static>(&mut self, from: NodeIndex, to: NodeIndex) -> Result<[CallPort<M>; 2]> {
        let number = APART + self.calls;
        let mtu = self.path_mtu(from, to, number)?;
        self.calls += 1;
        let (pair, ports) = callers::calls(number, [from, to], mtu, &self.time.shared);
        self.time.add_pair(number, [from, to], pair);
        Ok(ports)
    }

    /// The largest packet that fits the paths in both directions, in bytes.
    fn path_mtu(&self, from: NodeIndex, to: NodeIndex, flow: u32) -> Result<u64> {
        let path = |from, to| {
            self.time.carrier.path(from, to, flow).ok_or_else(|| {
                Error::input("no path leads from one host of the application to another")
                    .hint("with one-way links (`->`), the return path needs links of its own")
            })
        };
        Ok(path(from, to)?.mtu.min(path(to, from)?.mtu))
    }

    /// Advances until something has happened to a program. Returns the instant of that, or `None` when nothing has
    /// happened up to `until`.
    ///
    /// # Errors
    /// The error of a program; or an error when virtual time stands still because something sends without end and
    /// nothing slows it down.
    pub fn next(&mut self, until: Instant) -> Result<Option<Instant>> {
        // Programs may have sent and begun something before the first step.
        self.time.settle()?;
        loop {
            let event = self.time.next(until)?;
            if let NextEvent::Nothing = event {
                let shared = &self.time.shared;
                shared.set_now(shared.now().max(until));
                return Ok(None);
            }
            self.time.settle()?;
            if let NextEvent::Task = event {
                return Ok(Some(self.now()));
            }
        }
    }

    /// What traced connections did since the last call.
    pub fn take_traced(&mut self) -> Vec<MessageTrace> {
        self.traces
            .as_ref()
            .map(|traces| traces.take())
            .unwrap_or_default()
    }

    /// What went through each direction of each link, and what the processor of each host has been used for.
    pub fn usage(&self) -> UsageTotals {
        self.time.usage()
    }

    /// Ends the simulation and returns the tap.
    pub fn into_tap(self) -> T {
        drop(self.programs);
        self.time.carrier.into_tap().inner
    }
}
