//! The IMP: lines, hosts and one processor around the rooms beside this one. It takes what happens and the time, and says what to do.
//!
//! Everything that comes costs its processor cycles, one thing after the other, and takes effect when they are over. What the levels of
//! interrupts of the real one did is left out.

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
    /// Cycles of the IMP's own processor for a word that it generates, and for one that it discards: a fake host's (2.2.1: 25 and 20).
    pub fake_cycles: (u64, u64),
}

/// What happens.
#[derive(Clone, Debug)]
pub enum ImpInput {
    /// A frame has come whole over a line.
    Frame(usize, ImpFrame),
    /// What was on a line has left.
    LineFree(usize),
    /// A host has a message to send; it has none else until this is accepted or refused.
    Offer(u16, ImpMessage),
    /// The part that was to be read from a host is here.
    Part(u16),
    /// A host has taken the first packet of the message that it was given, which has several.
    FirstTaken(u16),
    /// A host has taken the message that it was given.
    Taken(u16),
    /// A host is there from now on, or is not.
    HostUp(u16, bool),
}

/// What is to be done.
#[derive(Clone, Debug)]
pub enum ImpOutput {
    /// Puts a frame on a line.
    Send(usize, ImpFrame),
    /// So many bits of a host's message are to be read.
    Read(u16, u32),
    /// All of a host's message was read: it may offer another.
    Accepted(u16, u64),
    /// A message is to be given to a host.
    Deliver(u16, ImpMessage),
    /// A host's message was delivered (RFNM).
    Rfnm(u16, ImpMessage),
    /// A host's message was not.
    Failed(u16, ImpMessage, ImpDeliveryFailure),
}

/// What the processor has to do.
#[derive(Clone, Debug)]
enum ImpJob {
    Frame(usize, ImpFrame),
    Line(usize),
    Part(u16),
    /// A packet of the message that a host gets, or the last of them.
    Deliver(u16, bool),
}

/// Where a host's message is.
#[derive(Clone, Copy, Debug, Default)]
enum ImpHostSending {
    #[default]
    Nothing,
    /// It waits until it may go.
    Waits(ImpMessage),
    /// So many parts were read; one of them may wait for room on its way.
    Reads {
        message: ImpMessage,
        number: u32,
        part: u8,
        stalled: Option<ImpPacket>,
    },
}

#[derive(Debug, Default)]
struct ImpHost {
    kind: HostKind,
    is_up: bool,
    sending: ImpHostSending,
    /// What it is to get, the first of them being given since then.
    whole: VecDeque<ImpReassembledMessage>,
    giving: Option<Instant>,
    /// The first of them was answered already.
    is_answered: bool,
}

/// What an IMP did, for whoever reports (the NCC).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImpCounters {
    /// Packets that it passed on, or that began or ended here.
    pub packets: u64,
    /// Messages that its hosts sent and got.
    pub messages: (u64, u64),
    /// Packets that could not be placed anywhere and were dropped: their destination cannot be reached.
    pub unreachable: u64,
}

/// An IMP.
#[derive(Debug)]
pub struct ImpNode {
    own: u16,
    epoch: u16,
    options: ImpOptions,
    lines: Vec<ImpLine>,
    /// Whether a job of each line waits already.
    line_jobs: Vec<bool>,
    hosts: Vec<ImpHost>,
    processor: ImpProcessor<ImpJob>,
    routing: Routing,
    source: ImpMessageSource,
    destination: Destination,
    /// Packets of its own, and such that were on a line that went down, for which no line had room.
    waiting: VecDeque<ImpPacket>,
    next_tick: Instant,
    /// When the first of the other timers is due; absent where anything has happened since that was looked for.
    next_timer: Option<Instant>,
    out: VecDeque<ImpOutput>,
    /// Lists that are filled and emptied again and again.
    words: Vec<ImpPacket>,
    wholes: Vec<ImpReassembledMessage>,
    /// What it did.
    pub counts: ImpCounters,
    splits: bool,
}

impl ImpNode {
    /// One of so many, with lines and hosts. `epoch` says which time this is that it was started.
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
            // Its neighbours learn first that it was gone.
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
        // They do not all tick at once.
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

    /// Divides packets among lines that lead as near, by their queues.
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

    /// Its ways.
    #[must_use]
    pub const fn routing(&self) -> &Routing {
        &self.routing
    }

    /// How long its processor worked.
    #[must_use]
    pub const fn busy(&self) -> Duration {
        self.processor.busy()
    }

    /// Buffers for messages that are put together: free, promised, all; and packets on their way through.
    #[must_use]
    pub fn buffers(&self) -> (u32, u32, u32, u32) {
        let (free, all) = self.destination.buffers();
        (free, self.destination.promised(), all, self.through())
    }

    /// Messages of one packet for which there is room, now and at most.
    #[must_use]
    pub const fn singles(&self) -> (u32, u32) {
        (self.destination.singles(), self.options.pending)
    }

    /// Messages of its hosts that were not answered: when it is started anew their hosts know that they will not be.
    pub fn unanswered(&self) -> impl Iterator<Item = ImpMessage> {
        self.source.unanswered()
    }

    /// Messages of its hosts that were not answered, and messages for its hosts that they did not take yet.
    #[must_use]
    pub fn outstanding(&self) -> (usize, usize) {
        (
            self.source.outstanding(),
            self.hosts.iter().map(|host| host.whole.len()).sum(),
        )
    }

    // --- the four verbs ---

    /// When something is to be done although nothing happens.
    #[must_use]
    pub fn deadline(&mut self) -> Option<Instant> {
        if !self.out.is_empty() {
            return Some(Instant(0));
        }
        let timer = self.next_timer.unwrap_or_else(|| self.first_timer());
        let processor = self.processor.deadline().unwrap_or(timer);
        Some(processor.min(timer).min(self.next_tick))
    }

    /// When a packet has to go again, or a word about a message is due.
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

    /// Something happens.
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

    /// The next thing to be done by now.
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

    /// Whether any timer came.
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

    /// Packets of others on their way through, and of its own.
    fn through(&self) -> u32 {
        self.lines.iter().map(|line| line.held() as u32).sum()
    }

    /// What a line's delay is reckoned by.
    fn load(&self, line: &ImpLine) -> usize {
        match self.options.rule {
            Rule::January => line.queued(),
            Rule::September => line.held(),
        }
    }

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

    /// Lets the processor put something on a line, if that is free and has something.
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

    /// A host is given what the processor has made ready for it.
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
