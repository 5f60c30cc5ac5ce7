//! A distributed application in virtual time: its programs are async functions, which send whole messages to one another over simulated `tcp`,
//! PUP, blasts or V's messages, work on their hosts' processors, and sleep. What is in a message nobody here knows.
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
//! A program that is started, or called by a [`Signal`], runs at once until it waits; one that is rung runs once the present one waits. So the
//! order of all that happens at one moment is given.

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

/// An application's world.
pub struct Simulation<'n, T: Tap<SimDatagram>> {
    time: VirtualTime<'n, T>,
    marks: bool,
    /// How many connections and calls there are.
    connections: u32,
    calls: u32,
    traces: Option<Traces>,
    /// Lets go of programs, which have the simulation around them.
    programs: ProgramOwner,
}

struct ProgramOwner(Rc<SimRunState>);

impl Drop for ProgramOwner {
    fn drop(&mut self) {
        self.0.tasks.clear();
    }
}

impl<'n, T: Tap<SimDatagram>> Simulation<'n, T> {
    /// Over that network; `tap` receives every event of it. `traced`: what connections do is kept.
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

    /// What its programs have around them.
    pub fn context(&self) -> ProgramContext {
        ProgramContext::new(&self.time.shared)
    }

    /// The present.
    pub fn now(&self) -> Instant {
        self.time.shared.now()
    }

    /// A connection is asked for, with those options of `tcp` at its two ends, that of who asks first.
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

    /// The same by PUP, whose packets are as long as the path lets them be, and no longer than the options say.
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

    /// The same by `blast`, `saw` or `window`: what is handed over at once is sent when the other side has all of it.
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

    /// Two programs that ask and answer over V's message passing: the one that asks, and the one that answers.
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

    /// The largest packet that fits both ways.
    fn path_mtu(&self, from: NodeIndex, to: NodeIndex, flow: u32) -> Result<u64> {
        let path = |from, to| {
            self.time.carrier.path(from, to, flow).ok_or_else(|| {
                Error::input("no path leads from one host of the application to another")
                    .hint("with one-way links (`->`), the return path needs links of its own")
            })
        };
        Ok(path(from, to)?.mtu.min(path(to, from)?.mtu))
    }

    /// Goes on until something has happened to a program, not after `until`: when that was.
    ///
    /// # Errors
    /// That of a program; or when time stands still: something sends without end and nothing slows it down.
    pub fn next(&mut self, until: Instant) -> Result<Option<Instant>> {
        // What was sent and begun before the first step.
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

    /// What connections did since this was asked last, where they are traced.
    pub fn take_traced(&mut self) -> Vec<MessageTrace> {
        self.traces
            .as_ref()
            .map(|traces| traces.take())
            .unwrap_or_default()
    }

    /// What went through each direction of each link, and what the processor of each host has been spent on.
    pub fn usage(&self) -> UsageTotals {
        self.time.usage()
    }

    /// The tap, at the end.
    pub fn into_tap(self) -> T {
        drop(self.programs);
        self.time.carrier.into_tap().inner
    }
}
