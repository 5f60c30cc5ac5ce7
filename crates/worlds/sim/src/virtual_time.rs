//! The loop of virtual time. Each step takes the network's next delivery or the next timer, whichever comes first (the
//! network at equal instants); then every task that can continue runs; then packets are sent. Measured runs and
//! applications use the same loop.

use crate::carrier::SimCarrier;
use crate::datagram::SimDatagram;
use crate::error::{Error, Result};
use crate::papers::imp_log::ImpLog;
use crate::port_events::SimProcessorSpending;
use crate::processor::{SimProcessor, SimProcessorTurn};
use crate::run_limits::SimRunLimits;
use crate::run_state::{SimRunState, Timer};
use crate::run_trace::SimTraceLog;
use crate::stacks::pair::SimConnectionPair;
use crate::usage::UsageTotals;
use stackline_core::error::Blame;
use stackline_core::network::Network;
use stackline_core::procedure::PairSide;
use stackline_core::time::Instant;
use stackline_net::{Delivery, NetworkPacket, NodeIndex, Tap};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The bit that is set in the numbers of pairs of a second, separate numbering.
pub(crate) const APART: u32 = 1 << 31;

/// The kind of event that happened.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NextEvent {
    /// A packet reached its host, or a timer of a connection or a processor expired.
    Inside,
    /// Something that a task waits for.
    Task,
    /// A timer of whoever drives the loop expired.
    Timer(Timer),
    /// Nothing happens up to the given instant.
    Nothing,
}

/// A pair and the nodes of its two sides.
struct PlacedPair {
    nodes: [NodeIndex; 2],
    /// The code point of differentiated services of its packets.
    dscp: u8,
    pair: Rc<dyn SimConnectionPair>,
}

impl PlacedPair {
    fn side_of(&self, node: NodeIndex) -> PairSide {
        if self.nodes[0] == node {
            PairSide::Initiator
        } else {
            PairSide::Responder
        }
    }
}

/// The loop: a network, hosts' processors, tasks, and the present time.
pub(crate) struct VirtualTime<'s, T: Tap<SimDatagram>> {
    network: &'s Network,
    limits: SimRunLimits,
    /// Set from outside to end the run early, as interrupted.
    interrupted: Option<&'s AtomicBool>,
    pub(crate) shared: Rc<SimRunState>,
    pub(crate) carrier: SimCarrier<T>,
    imp_log: ImpLog,
    /// The pairs by number: the usual numbering, then the one marked by [`APART`].
    pairs: [Vec<PlacedPair>; 2],
    /// A pair's packets have a code point of differentiated services other than 0.
    has_classes: bool,
    /// The tasks being polled; kept to reuse its memory.
    ready: Vec<u32>,
    /// The packets being handed over; kept to reuse its memory.
    packets: Vec<NetworkPacket<SimDatagram>>,
    /// Events and packets at this instant.
    steps: u64,
    /// Events so far.
    pub(crate) events: u64,
}

impl<'s, T: Tap<SimDatagram>> VirtualTime<'s, T> {
    /// A loop at instant zero. Where there is a log, IMPs report their state.
    pub(crate) fn new(
        network: &'s Network,
        limits: SimRunLimits,
        interrupted: Option<&'s AtomicBool>,
        mut carrier: SimCarrier<T>,
        log: Option<Rc<SimTraceLog>>,
    ) -> Self {
        if log.is_some() {
            carrier.report();
        }
        Self {
            network,
            limits,
            interrupted,
            shared: SimRunState::new(network, log),
            carrier,
            imp_log: ImpLog::default(),
            pairs: [Vec::new(), Vec::new()],
            has_classes: false,
            ready: Vec::new(),
            packets: Vec::new(),
            steps: 0,
            events: 0,
        }
    }

    /// The number of pairs in the usual numbering.
    pub(crate) fn pair_count(&self) -> u32 {
        self.pairs[0].len() as u32
    }

    /// Adds a pair; `number` is the next number of its numbering.
    pub(crate) fn add_pair(
        &mut self,
        number: u32,
        nodes: [NodeIndex; 2],
        pair: Rc<dyn SimConnectionPair>,
    ) {
        self.carrier.tap().departures_wanted |= pair.wants_departures();
        self.pairs[usize::from(number & APART != 0)].push(PlacedPair {
            nodes,
            dscp: 0,
            pair,
        });
    }

    /// Gives all packets of a pair of the usual numbering this code point of differentiated services.
    pub(crate) fn set_dscp(&mut self, number: u32, dscp: u8) {
        if let Some(placed) = self.pairs[0].get_mut(number as usize) {
            placed.dscp = dscp;
            self.has_classes |= dscp != 0;
        }
    }

    #[inline]
    fn pair(&self, number: u32) -> Option<&PlacedPair> {
        self.pairs[usize::from(number & APART != 0)].get((number & !APART) as usize)
    }

    /// Processes the next event, not later than `cap`. Afterwards [`VirtualTime::settle`] runs what follows from it.
    ///
    /// # Errors
    /// When the run is interrupted, or virtual time stands still.
    #[inline]
    pub(crate) fn next(&mut self, cap: Instant) -> Result<NextEvent> {
        if let Some(notice) = self.shared.tasks.take_notice() {
            notice();
            return Ok(NextEvent::Task);
        }
        let mut until = self.shared.next_timer().map_or(cap, |timer| timer.min(cap));
        if self.shared.blocked.get() > 0 {
            // A task waits for a packet to leave. It is notified only when the departure has been computed, so timers
            // wait for network events.
            until = self.carrier.deadline().map_or(until, |at| at.min(until));
        }
        let event = if let Some(Delivery { due, mut packet }) = self.carrier.poll(until) {
            self.come_to(due)?;
            self.deliver(&mut packet);
            NextEvent::Inside
        } else if let Some((at, timer)) = self.shared.take_timer(until) {
            self.come_to(at)?;
            self.ring(at, timer)
        } else if until == cap {
            return Ok(NextEvent::Nothing);
        } else {
            NextEvent::Inside
        };
        self.notify_departures();
        Ok(event)
    }

    /// Advances the time to an event, and counts it.
    fn come_to(&mut self, at: Instant) -> Result<()> {
        if let Some(log) = &self.shared.log {
            self.sample(log, at);
            for (at, reports) in self.carrier.reports() {
                self.imp_log.emit_reports(log, self.network, at, reports);
            }
        }
        self.events += 1;
        self.steps = if at > self.shared.now() {
            0
        } else {
            self.steps + 1
        };
        self.shared.set_now(at);
        self.not_for_ever(at)
    }

    /// Samples connections for the trace at regular instants before `until`, as they were before what happens at
    /// `until`.
    fn sample(&self, log: &SimTraceLog, until: Instant) {
        while let Some(at) = log.look_before(until) {
            let emitted: usize = self.pairs[0]
                .iter()
                .map(|placed| placed.pair.sample(at, log))
                .sum();
            let emitted = emitted + self.sample_processors(log, at);
            if emitted == 0 {
                // Nothing has happened since the last sample, and nothing will before `until`.
                log.skip_to(until);
            }
        }
    }

    /// Samples what processors of hosts did since the last sample. Returns how many did something.
    fn sample_processors(&self, log: &SimTraceLog, at: Instant) -> usize {
        let copies: BTreeMap<u32, u64> = self
            .carrier
            .processors(at)
            .map(|(host, spent)| (host.0, spent))
            .collect();
        let of = |(host, processor): (u32, &SimProcessor<_>)| {
            let copied = copies.get(&host).copied();
            let worked = processor.spent_ns(at);
            (copied.is_some() || worked > 0)
                && log.processor(NodeIndex(host), at, copied.unwrap_or(0), worked)
        };
        let processors = self.shared.processors.borrow();
        (0..)
            .zip(processors.iter())
            .filter(|processor| of(*processor))
            .count()
    }

    /// Writes the rest of the log, at the end.
    ///
    /// # Errors
    /// When the events cannot be kept.
    pub(crate) fn finish_log(&mut self) -> Result<()> {
        let Some(log) = &self.shared.log else {
            return Ok(());
        };
        self.carrier.report_last(self.shared.now());
        for (at, reports) in self.carrier.reports() {
            self.imp_log.emit_reports(log, self.network, at, reports);
        }
        log.finish().map_err(Error::environment)
    }

    /// # Errors
    /// When the run was ended from outside.
    pub(crate) fn not_interrupted(&self) -> Result<()> {
        match self.interrupted {
            Some(flag) if flag.load(Ordering::Relaxed) => {
                Err(Error::new(Blame::Interrupted, "interrupted"))
            }
            _ => Ok(()),
        }
    }

    /// Checks the limits of events and of steps at one instant, and from time to time the interruption.
    fn not_for_ever(&self, at: Instant) -> Result<()> {
        // Checked rarely: a thousand events take about a millisecond.
        let looks = (self.events + self.steps).is_multiple_of(1024);
        if looks {
            self.not_interrupted()?;
        }
        if self.events > self.limits.events {
            let most = self.limits.events;
            let words = format!("the run takes more than {most} simulated events");
            return Err(Error::new(Blame::Interrupted, words));
        }
        if self.steps > self.limits.steps_an_instant {
            return Err(Error::measurement(format!("virtual time is stuck at {at} s"))
                .hint("an endpoint sends endlessly, and no link, buffer or pace slows it down: give a link a rate"));
        }
        Ok(())
    }

    /// Gives a packet to the pair that it belongs to.
    #[inline]
    fn deliver(&self, packet: &mut NetworkPacket<SimDatagram>) {
        if let Some(placed) = self.pair(packet.payload.pair) {
            let side = placed.side_of(packet.to);
            placed.pair.arrived(side, packet, &self.shared);
        }
    }

    /// Handles a timer that has expired.
    fn ring(&mut self, at: Instant, timer: Timer) -> NextEvent {
        match timer {
            Timer::Task(task) => {
                self.shared.tasks.ring(task, at);
                NextEvent::Task
            }
            Timer::End {
                pair,
                connection,
                side,
            } => {
                if let Some(placed) = self.pair(pair) {
                    placed.pair.timer(connection, side, &self.shared);
                }
                NextEvent::Inside
            }
            Timer::Processor(host) => self.worked(at, host),
            timer => NextEvent::Timer(timer),
        }
    }

    /// Handles a processor that may have finished a piece of work, or has work to begin.
    fn worked(&self, at: Instant, host: u32) -> NextEvent {
        let copied_ns = self.carrier.copied_ns(NodeIndex(host), at);
        match self.shared.turn(host, copied_ns) {
            SimProcessorTurn::Done(ticket) => {
                ticket.done.set(true);
                self.shared.tasks.wake(ticket.task);
                self.shared.set_timer(at, Timer::Processor(host));
                return NextEvent::Task;
            }
            SimProcessorTurn::Until(ends) => {
                self.shared.set_timer(ends, Timer::Processor(host));
            }
            SimProcessorTurn::Nothing => {}
        }
        NextEvent::Inside
    }

    /// Polls tasks and sends their packets until nothing more happens at this instant, or there is news (an endpoint
    /// came to its barrier or is done). Returns whether there is news.
    ///
    /// # Errors
    /// The error of a task; or an error when virtual time stands still.
    pub(crate) fn settle(&mut self) -> Result<bool> {
        loop {
            let mut ready = std::mem::take(&mut self.ready);
            self.shared.tasks.take_ready(&mut ready);
            for task in ready.drain(..) {
                self.shared.tasks.resume(task);
            }
            self.ready = ready;
            if let Some(error) = self.shared.tasks.take_failure() {
                return Err(error);
            }
            self.flush();
            self.hand_over();
            self.answer_looks();
            self.not_for_ever(self.shared.now())?;
            if self.shared.take_news() {
                return Ok(true);
            }
            if self.shared.is_idle() {
                return Ok(false);
            }
        }
    }

    /// Lets ends of connections send, and drops those that are over.
    #[inline]
    fn flush(&self) {
        while let Some(end) = self.shared.take_touched() {
            end.flush(&self.shared);
            if end.is_over()
                && let Some(placed) = self.pair(end.pair())
            {
                placed.pair.forget(end);
            }
        }
    }

    /// Hands packets to their hosts' interfaces.
    #[inline]
    fn hand_over(&mut self) {
        let mut packets = std::mem::take(&mut self.packets);
        std::mem::swap(&mut *self.shared.outgoing().borrow_mut(), &mut packets);
        for mut packet in packets.drain(..) {
            self.steps += 1;
            if self.has_classes {
                packet.remark(self.pair(packet.payload.pair).map_or(0, |pair| pair.dscp));
            }
            self.carrier.handle(self.shared.now(), packet);
        }
        self.packets = packets;
        self.notify_departures();
    }

    /// Answers the requests of tasks for the use of ports and processors.
    fn answer_looks(&self) {
        for look in self.shared.take_looks() {
            look.usage.replace(Some(self.usage()));
            self.shared.tasks.wake(look.task);
        }
    }

    /// What went through ports, and what processors have been used for, until now.
    pub(crate) fn usage(&self) -> UsageTotals {
        let now = self.shared.now();
        let of = |(host, processor): (u32, &SimProcessor<_>)| SimProcessorSpending {
            copied_ns: self.carrier.copied_ns(NodeIndex(host), now),
            worked_ns: processor.spent_ns(now),
        };
        let processors = self.shared.processors.borrow();
        UsageTotals {
            ports: self.carrier.counters(),
            processors: (0..).zip(processors.iter()).map(of).collect(),
        }
    }

    /// Notifies waiting senders which of their packets have left, or when they will have.
    #[inline]
    fn notify_departures(&mut self) {
        let watch = self.carrier.tap();
        for left in watch.departures.drain(..) {
            let pairs = &self.pairs[usize::from(left.pair & APART != 0)];
            if let Some(placed) = pairs.get((left.pair & !APART) as usize) {
                let side = placed.side_of(left.from);
                placed
                    .pair
                    .departed(side, left.at, left.bytes, &self.shared);
            }
        }
    }
}
