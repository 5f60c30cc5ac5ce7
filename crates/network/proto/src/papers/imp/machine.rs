//! The IMP as a state machine: lines, hosts and a processor, with routing, message source and reassembly. Its input is what happens
//! ([`ImpInput`]) and the time, its output what is to be done ([`ImpOutput`]).
//!
//! Every input costs processor cycles, one job after the other, and takes effect when its job is done. The interrupt levels of the real
//! machine are not modelled.

mod lines;
mod messages;

use super::line::{ImpLine, LineKind};
use super::message_source::ImpMessageSource;
use super::options::{ImpOptions, Rule};
use super::packet::{ImpDeliveryFailure, ImpFrame, ImpFrameLoad, ImpMessage, ImpPacket, WORD_BITS};
use super::processor::ImpProcessor;
use super::reassembly::{Destination, ImpReassembledMessage};
use super::routing::Routing;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use stackline_core::time::{Duration, Instant};

/// What kind of host is at an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostKind {
    /// For a fake host, a program inside the IMP: processor cycles for each word that it generates and that it discards (2.2.1: 25, 20).
    pub fake_cycles: (u64, u64),
}

/// An event for an IMP. Lines and hosts are given by their numbers at the IMP.
#[derive(Clone, Debug)]
pub enum ImpInput {
    /// A whole frame has arrived over a line.
    Frame(usize, ImpFrame),
    /// The frame on a line has been sent: the line is free.
    LineFree(usize),
    /// A host has a message to send; it offers no other until this one is accepted.
    Offer(u16, ImpMessage),
    /// The part of a message that [`ImpOutput::Read`] asked for has been read from a host.
    Part(u16),
    /// A host has accepted the first of several packets of a message that is being delivered.
    FirstTaken(u16),
    /// A host has accepted the message that was delivered to it.
    Taken(u16),
    /// A host has come up (true) or gone down.
    HostUp(u16, bool),
}

/// What an IMP wants to be done.
#[derive(Clone, Debug)]
pub enum ImpOutput {
    /// Send a frame on a line.
    Send(usize, ImpFrame),
    /// Read the next part of a host's message: this many bits.
    Read(u16, u32),
    /// A host's message, by id, was read as a whole: the host may offer another.
    Accepted(u16, u64),
    /// Deliver a message to a host.
    Deliver(u16, ImpMessage),
    /// A host's message was delivered (RFNM).
    Rfnm(u16, ImpMessage),
    /// A host's message was not delivered, and why.
    Failed(u16, ImpMessage, ImpDeliveryFailure),
}

/// A job of the processor.
#[derive(Clone, Debug)]
enum ImpJob {
    Frame(usize, ImpFrame),
    Line(usize),
    Part(u16),
    /// Giving a packet of a message to a host; true if it is the last one.
    Deliver(u16, bool),
}

/// The state of the message that a host sends.
#[derive(Clone, Copy, Debug, Default)]
enum ImpHostSending {
    #[default]
    Nothing,
    /// It waits for the window or for buffers at its destination.
    Waits(ImpMessage),
    /// It is being read: the present part, which waits in `stalled` if its line has no room.
    Reads {
        message: ImpMessage,
        number: u32,
        part: u8,
        stalled: Option<ImpPacket>,
    },
}

/// A host at this IMP.
#[derive(Debug, Default)]
struct ImpHost {
    kind: HostKind,
    is_up: bool,
    sending: ImpHostSending,
    /// Complete messages for the host.
    whole: VecDeque<ImpReassembledMessage>,
    /// Since when the first of them is being delivered.
    giving: Option<Instant>,
    /// Whether the first of them was already answered (`answers_first`).
    is_answered: bool,
}

/// Counters of an IMP, which it reports to the Network Control Center (NCC).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImpCounters {
    /// Packets that it forwarded, or that began or ended here.
    pub packets: u64,
    /// Messages that its hosts sent, and that they received.
    pub messages: (u64, u64),
    /// Packets that were dropped because their destination was unreachable.
    pub unreachable: u64,
}

/// An IMP.
#[derive(Debug)]
pub struct ImpNode {
    /// Its number.
    own: u16,
    /// How often it was restarted.
    epoch: u16,
    options: ImpOptions,
    lines: Vec<ImpLine>,
    /// By line: whether a job to send on it is already queued.
    line_jobs: Vec<bool>,
    hosts: Vec<ImpHost>,
    processor: ImpProcessor<ImpJob>,
    routing: Routing,
    source: ImpMessageSource,
    destination: Destination,
    /// Packets for which no line had room: its own, and those of a line that went down.
    waiting: VecDeque<ImpPacket>,
    next_tick: Instant,
    /// When the earliest other timer is due; `None` if it has to be computed again.
    next_timer: Option<Instant>,
    out: VecDeque<ImpOutput>,
    /// Lists that are kept only to reuse their memory.
    words: Vec<ImpPacket>,
    wholes: Vec<ImpReassembledMessage>,
    /// Its counters.
    pub counts: ImpCounters,
    /// Whether it splits traffic among lines with equally short routes.
    splits: bool,
}

impl ImpNode {
    /// IMP number `own` of `imps`, with its lines and hosts. `epoch` counts its restarts.
    #[must_use]
    pub fn new(
        own: u16,
        imps: usize,
        options: ImpOptions,
        lines: &[LineKind],
        hosts: &[HostKind],
        epoch: u16,
    ) -> Self {
        let mut lines: Vec<ImpLine> = lines
            .iter()
            .map(|kind| ImpLine::new(&options, *kind))
            .collect();
        if epoch > 0 {
            // After a restart its lines begin as down, so that its neighbours notice that it was gone.
            lines.iter_mut().for_each(|line| drop(line.down()));
        }
        let hosts = hosts
            .iter()
            .map(|kind| ImpHost {
                kind: *kind,
                is_up: true,
                ..ImpHost::default()
            })
            .collect();
        // Spread the ticks of different IMPs over the interval.
        let next_tick = Instant(options.tick.0 * (u64::from(own) * 37 % 64) / 64);
        Self {
            own,
            epoch,
            line_jobs: alloc::vec![false; lines.len()],
            routing: Routing::new(&options, own, imps, lines.len()),
            source: ImpMessageSource::new(own, epoch),
            destination: Destination::new(&options, own, epoch),
            options,
            lines,
            hosts,
            processor: ImpProcessor::new(),
            waiting: VecDeque::new(),
            next_tick,
            next_timer: None,
            out: VecDeque::new(),
            words: Vec::new(),
            wholes: Vec::new(),
            counts: ImpCounters::default(),
            splits: false,
        }
    }

    /// The same IMP, which splits traffic among lines with equally short routes, by their load.
    #[must_use]
    pub const fn splitting(mut self) -> Self {
        self.splits = true;
        self
    }

    // --- what is known of it ---

    /// Its lines.
    #[must_use]
    pub fn lines(&self) -> &[ImpLine] {
        &self.lines
    }

    /// Whether a line is used.
    #[must_use]
    pub fn is_up(&self, line: usize) -> bool {
        self.lines.get(line).is_some_and(|line| line.is_up)
    }

    /// Its routes.
    #[must_use]
    pub const fn routing(&self) -> &Routing {
        &self.routing
    }

    /// How long its processor has worked.
    #[must_use]
    pub const fn busy(&self) -> Duration {
        self.processor.busy()
    }

    /// Reassembly buffers free, promised and in all; then packets that are passing through.
    #[must_use]
    pub fn buffers(&self) -> (u32, u32, u32, u32) {
        let (free, all) = self.destination.buffers();
        (free, self.destination.promised(), all, self.through())
    }

    /// Buffers for messages of one packet: free, and in all.
    #[must_use]
    pub const fn singles(&self) -> (u32, u32) {
        (self.destination.singles(), self.options.pending)
    }

    /// Messages of its hosts that were not answered; if it restarts, they never will be.
    pub fn unanswered(&self) -> impl Iterator<Item = ImpMessage> {
        self.source.unanswered()
    }

    /// How many messages of its hosts were not answered, and how many messages for its hosts they have not accepted yet.
    #[must_use]
    pub fn outstanding(&self) -> (usize, usize) {
        (
            self.source.outstanding(),
            self.hosts.iter().map(|host| host.whole.len()).sum(),
        )
    }

    // --- the four verbs ---

    /// When [`ImpNode::poll`] has to be called next if nothing happens before.
    #[must_use]
    pub fn deadline(&mut self) -> Option<Instant> {
        if !self.out.is_empty() {
            return Some(Instant(0));
        }
        let timer = self.next_timer.unwrap_or_else(|| self.first_timer());
        let processor = self.processor.deadline().unwrap_or(timer);
        Some(processor.min(timer).min(self.next_tick))
    }

    /// When the earliest retransmission, or packet about a message, is due.
    fn first_timer(&mut self) -> Instant {
        let jobs = &self.line_jobs;
        let again = self
            .lines
            .iter_mut()
            .zip(jobs)
            .filter(|(line, job)| !line.is_busy && !**job);
        let again = again.filter_map(|(line, _)| line.due()).min();
        let words = [
            self.source.deadline(&self.options),
            self.destination.deadline(),
        ];
        words
            .into_iter()
            .chain([again])
            .flatten()
            .min()
            .unwrap_or(Instant(u64::MAX))
    }

    /// Handles an event: queues its job for the processor.
    pub fn handle(&mut self, now: Instant, input: ImpInput) {
        let ImpOptions { machine, .. } = self.options;
        let costs = machine.costs;
        self.next_timer = None;
        match input {
            ImpInput::Frame(line, frame) => {
                let cycles = match &frame.load {
                    ImpFrameLoad::Packet { .. } => costs.line_in + costs.task,
                    ImpFrameLoad::Routing(vector) => {
                        costs.line_in + costs.routing_entry * vector.entries.len() as u64
                    }
                    ImpFrameLoad::Null { .. } => costs.line_in / 10,
                };
                self.processor
                    .put(now, ImpJob::Frame(line, frame), machine.time(cycles));
            }
            ImpInput::LineFree(line) => {
                if let Some(line) = self.lines.get_mut(line) {
                    line.is_busy = false;
                }
                self.kick(now, line);
            }
            ImpInput::Offer(host, message) => {
                if let Some(host) = self.hosts.get_mut(usize::from(host)) {
                    host.sending = ImpHostSending::Waits(message);
                }
                self.begin(now, host);
            }
            ImpInput::Part(host) => {
                let Some(known) = self.hosts.get(usize::from(host)) else {
                    return;
                };
                let ImpHostSending::Reads { message, part, .. } = known.sending else {
                    return;
                };
                let words = u64::from(message.bits_of(part).div_ceil(WORD_BITS));
                let cycles = costs.task
                    + costs.host_in_word * words / 100
                    + known.kind.fake_cycles.0 * words;
                self.processor
                    .put_host(now, ImpJob::Part(host), machine.time(cycles));
            }
            ImpInput::FirstTaken(host) => self.first_taken(now, host),
            ImpInput::Taken(host) => self.taken(now, host, None),
            ImpInput::HostUp(host, is_up) => self.host_up(now, host, is_up),
        }
    }

    /// The next output that is due by now.
    pub fn poll(&mut self, now: Instant) -> Option<ImpOutput> {
        loop {
            if let Some(output) = self.out.pop_front() {
                return Some(output);
            }
            if let Some(job) = self.processor.take(now) {
                self.next_timer = None;
                self.work(now, job);
            } else if self.next_tick <= now {
                self.next_timer = None;
                self.next_tick += self.options.tick;
                self.tick(now);
            } else if !self.timers(now) {
                return None;
            }
        }
    }

    // --- time ---

    /// Handles the timers that are due. Whether there were any.
    fn timers(&mut self, now: Instant) -> bool {
        if self.next_timer.is_some_and(|at| now < at) {
            return false;
        }
        let mut came = false;
        let mut words = core::mem::take(&mut self.words);
        if self
            .source
            .deadline(&self.options)
            .is_some_and(|at| at <= now)
        {
            self.source.give_back(&self.options, now, &mut words);
        }
        if self.destination.deadline().is_some_and(|at| at <= now) {
            self.destination.answer(now, &mut words);
        }
        came |= !words.is_empty();
        self.put_all(now, &mut words);
        self.words = words;
        for line in 0..self.lines.len() {
            if !self.lines[line].is_busy
                && !self.line_jobs[line]
                && self.lines[line].due().is_some_and(|due| due <= now)
            {
                self.kick(now, line);
                came = true;
            }
        }
        self.next_timer = (!came).then(|| self.first_timer());
        came
    }

    /// The periodic tick: checks the lines, sends routing messages, and looks after messages that wait too long.
    fn tick(&mut self, now: Instant) {
        for line in 0..self.lines.len() {
            match self.lines[line].tick(self.options.misses, self.options.good) {
                Some(true) => {
                    self.lines[line].up();
                    self.routing.mark_line_up(line);
                }
                Some(false) => self.line_down(now, line),
                None => {}
            }
        }
        let queues: Vec<Option<usize>> = self
            .lines
            .iter()
            .map(|line| line.is_up.then(|| self.load(line)))
            .collect();
        let vector = self.routing.tick(&queues);
        for line in 0..self.lines.len() {
            self.lines[line].put_routing(vector.clone());
            self.kick(now, line);
        }
        self.look_after_messages(now);
    }

    /// Packets held by the lines, which use store-and-forward buffers.
    fn through(&self) -> u32 {
        self.lines.iter().map(|line| line.held() as u32).sum()
    }

    /// The load of a line, from which routing computes its delay.
    fn load(&self, line: &ImpLine) -> usize {
        match self.options.rule {
            Rule::January => line.queued(),
            Rule::September => line.held(),
        }
    }

    /// Queries or gives up messages that wait too long, and takes them away from hosts that do not accept them.
    fn look_after_messages(&mut self, now: Instant) {
        let (mut words, mut lost) = (core::mem::take(&mut self.words), Vec::new());
        let (routing, own) = (&self.routing, self.own);
        let reaches = |imp: u16| imp == own || routing.hops(imp).is_some();
        self.source
            .tick(&self.options, now, reaches, &mut words, &mut lost);
        let mut wholes = core::mem::take(&mut self.wholes);
        self.destination
            .forget(&self.options, now, reaches, &mut wholes, &mut words);
        for one in wholes.drain(..) {
            self.whole(now, one, &mut words);
        }
        self.wholes = wholes;
        self.put_all(now, &mut words);
        self.words = words;
        for (message, why) in lost {
            self.out
                .push_back(ImpOutput::Failed(message.from.host, message, why));
        }
        for host in 0..self.hosts.len() as u16 {
            let since = self.hosts[usize::from(host)].giving;
            if since.is_some_and(|since| since + self.options.host_patience <= now) {
                self.taken(now, host, Some(ImpDeliveryFailure::HostSlow));
            }
            self.begin(now, host);
            self.unstall(now, host);
        }
        self.place_waiting(now);
    }

    // --- the processor ---

    /// Queues a job to send on a line, if the line is free and has something to send.
    fn kick(&mut self, now: Instant, line: usize) {
        let Some(known) = self.lines.get_mut(line) else {
            return;
        };
        if known.is_busy || self.line_jobs[line] || !known.wants(now) {
            return;
        }
        let cycles = self.options.machine.costs.line_out / if known.queued() > 0 { 1 } else { 4 };
        self.line_jobs[line] = true;
        self.processor
            .put(now, ImpJob::Line(line), self.options.machine.time(cycles));
    }

    fn work(&mut self, now: Instant, job: ImpJob) {
        match job {
            ImpJob::Frame(line, frame) => self.frame(now, line, &frame),
            ImpJob::Line(line) => self.put_on_line(now, line),
            ImpJob::Part(host) => self.part(now, host),
            ImpJob::Deliver(_, false) => {}
            ImpJob::Deliver(host, true) => self.hand_over(now, host),
        }
    }

    /// The processor has prepared a message for a host: delivery begins.
    fn hand_over(&mut self, now: Instant, host: u16) {
        let Some(known) = self.hosts.get_mut(usize::from(host)) else {
            return;
        };
        if let Some(one) = known.whole.front() {
            known.giving = Some(now);
            self.out.push_back(ImpOutput::Deliver(host, one.message));
        }
    }

    fn put_on_line(&mut self, now: Instant, line: usize) {
        self.line_jobs[line] = false;
        match self.lines[line].next(now) {
            Ok(Some(frame)) => {
                self.lines[line].is_busy = true;
                self.out.push_back(ImpOutput::Send(line, frame));
            }
            Ok(None) => {}
            Err(()) => self.line_down(now, line),
        }
    }
}
