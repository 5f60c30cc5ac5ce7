//! Networks of IMPs in virtual time: the machines of `stackline_proto::papers::imp`, lines with a rate and a delay between them, hosts at
//! interfaces. Hosts' programs are not here but in [`traffic`]; nothing is drawn but what a line loses.
//!
//! ```text
//! offer(now, message)    a host has a message; it has no other until this one is accepted
//! poll(until)            what hosts learn next: accepted, delivered, answered, failed
//! ```

mod passage;
pub mod plan;
pub mod traffic;

pub use passage::{ImpPacketPassage, ImpPassagePoint};
pub use plan::{
    ImpSubnetHost, ImpSubnetLine, ImpSubnetNode, ImpSubnetPlan, OVERHEAD_BITS,
    OVERHEAD_WITH_CHECKSUM_BITS,
};

use passage::ImpPassageWatch;
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};
use stackline_net::event_queue::EventQueue;
use stackline_net::loss::LossProcess;
use stackline_proto::papers::imp::line::LineKind;
use stackline_proto::papers::imp::packet::FULL_BITS;
use stackline_proto::papers::imp::{
    HostKind, ImpDeliveryFailure, ImpFrame, ImpFrameLoad, ImpHostAddress, ImpInput, ImpMessage,
    ImpNode, ImpOutput,
};

/// A packet is recorded to come this much later than it has left the place before, so that both have an order.
const AFTER: Duration = Duration(1);
/// Bits that precede a message at a host's interface: its leader (BBN 1822).
const LEADER_BITS: u32 = 32;

/// What a host learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImpHostNotice {
    /// Its message was read: it may offer another.
    Accepted(ImpMessage),
    /// It has a message.
    Delivered(ImpMessage),
    /// Its message was delivered.
    Answered(ImpMessage),
    /// Its message was not.
    Failed(ImpMessage, ImpDeliveryFailure),
    /// A timer that was asked for.
    Timer(u32),
}

#[derive(Clone, Copy, Debug)]
enum ImpSubnetEvent {
    Wake(u16),
    Frame { imp: u16, line: u16, slot: u32 },
    Free { imp: u16, line: u16 },
    Part { imp: u16, host: u16 },
    First { imp: u16, host: u16, id: u64 },
    Taken { imp: u16, host: u16 },
    Timer(u32),
}

/// One direction of a line.
#[derive(Debug)]
struct ImpLineDirection {
    to: (u16, u16),
    bit_s: f64,
    delay: Duration,
    loss: LossProcess,
    is_cut: bool,
    /// How long something was on it, and how much of that data of hosts.
    busy: Duration,
    data_bits: u64,
}

/// A network at work.
#[derive(Debug)]
pub struct ImpSubnet {
    plan: ImpSubnetPlan,
    imps: Vec<ImpNode>,
    epochs: Vec<u16>,
    /// When each IMP is woken, the earliest last: none is there twice.
    wakes: Vec<Vec<Instant>>,
    /// Which direction each line of each IMP is.
    out: Vec<Vec<usize>>,
    directions: Vec<ImpLineDirection>,
    /// Interface speeds by IMP and host, and whether the host takes what it gets; the message it offered and gets.
    hosts: Vec<Vec<ImpHostInterface>>,
    events: EventQueue<ImpSubnetEvent>,
    frames: Vec<Option<ImpFrame>>,
    free: Vec<u32>,
    now: Instant,
    news: std::collections::VecDeque<(ImpHostAddress, ImpHostNotice)>,
    hops: u64,
    watch: Option<ImpPassageWatch>,
    /// When what is planned in time begins: losses.
    begins: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct ImpHostInterface {
    bit_s: Option<f64>,
    takes: bool,
    /// The message that it offered, and the one that it is getting.
    offered: Option<ImpMessage>,
    getting: Option<ImpMessage>,
    /// When it was offered, and how many of its parts were read.
    offered_at: Instant,
    parts: u8,
    /// The first part of a message comes behind its leader.
    begins: bool,
}

impl ImpSubnet {
    /// At rest; losses are drawn from `seed`.
    #[must_use]
    pub fn new(plan: &ImpSubnetPlan, seed: Seed) -> Self {
        let count = plan.imps.len();
        let (mut out, mut kinds_of_lines) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        let mut directions = Vec::new();
        for (number, line) in plan.lines.iter().enumerate() {
            let (a, b) = (usize::from(line.ends.0), usize::from(line.ends.1));
            let (at_a, at_b) = (out[a].len() as u16, out[b].len() as u16);
            for (from, to) in [(a, (line.ends.1, at_b)), (b, (line.ends.0, at_a))] {
                let loss = LossProcess::new(
                    &line.loss,
                    seed.index(2 * number as u64 + u64::from(from == b)),
                );
                out[from].push(directions.len());
                kinds_of_lines[from].push(kind(plan, line));
                let (bit_s, delay) = (line.bit_s, line.delay);
                directions.push(ImpLineDirection {
                    to,
                    bit_s,
                    delay,
                    loss,
                    is_cut: false,
                    busy: Duration::ZERO,
                    data_bits: 0,
                });
            }
        }
        let mut kinds = vec![Vec::new(); count];
        let mut hosts = vec![Vec::new(); count];
        for host in &plan.hosts {
            kinds[usize::from(host.imp)].push(host.kind);
            let interface = ImpHostInterface {
                bit_s: host.bit_s,
                takes: true,
                ..ImpHostInterface::default()
            };
            hosts[usize::from(host.imp)].push(interface);
        }
        let mut network = Self {
            plan: plan.clone(),
            imps: Vec::new(),
            epochs: vec![0; count],
            wakes: vec![Vec::new(); count],
            out,
            directions,
            hosts,
            events: EventQueue::default(),
            frames: Vec::new(),
            free: Vec::new(),
            now: Instant(0),
            news: std::collections::VecDeque::new(),
            hops: 0,
            watch: None,
            begins: Duration::ZERO,
        };
        for (imp, (lines, kinds)) in kinds_of_lines.iter().zip(&kinds).enumerate() {
            network.imps.push(network.imp(imp, lines, kinds));
            network.wake(imp as u16);
        }
        network
    }

    fn imp(&self, imp: usize, lines: &[LineKind], kinds: &[HostKind]) -> ImpNode {
        let ImpSubnetNode { options, splits } = self.plan.imps[imp];
        let new = ImpNode::new(
            imp as u16,
            self.plan.imps.len(),
            options,
            lines,
            kinds,
            self.epochs[imp],
        );
        if splits { new.splitting() } else { new }
    }

    /// The same; what packets pass is reported by [`ImpSubnet::passages`].
    #[must_use]
    pub fn watched(mut self) -> Self {
        self.watch = Some(ImpPassageWatch::default());
        self
    }

    /// The same; losses that are planned in time are so from then on.
    #[must_use]
    pub const fn beginning_after(mut self, begins: Duration) -> Self {
        self.begins = begins;
        self
    }

    // --- what is known ---

    /// What packets passed since this was asked last.
    pub fn passages(&mut self) -> impl Iterator<Item = ImpPacketPassage> {
        self.watch
            .iter_mut()
            .flat_map(|watch| watch.passages.drain(..))
    }

    /// The IMPs.
    #[must_use]
    pub fn imps(&self) -> &[ImpNode] {
        &self.imps
    }

    /// How often a packet or a word about one crossed a line so far.
    #[must_use]
    pub const fn hops(&self) -> u64 {
        self.hops
    }

    /// The time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Which direction of all a line of an IMP is, as [`ImpSubnet::lines`] counts them.
    #[must_use]
    pub fn direction(&self, imp: usize, line: usize) -> Option<usize> {
        self.out.get(imp)?.get(line).copied()
    }

    /// When something happens next.
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        if self.news.is_empty() {
            self.events.next()
        } else {
            Some(self.now)
        }
    }

    /// How long each direction of each line was in use, and data bits that crossed it: two a line, the first from its first end.
    pub fn lines(&self) -> impl Iterator<Item = (Duration, u64)> {
        self.directions
            .iter()
            .map(|direction| (direction.busy, direction.data_bits))
    }

    // --- what happens from outside ---

    /// A host has a message.
    pub fn offer(&mut self, now: Instant, message: ImpMessage) {
        self.now = self.now.max(now);
        let ImpHostAddress { imp, host } = message.from;
        if let Some(interface) = self.interface(imp, host) {
            interface.offered = Some(message);
            interface.begins = true;
            (interface.offered_at, interface.parts) = (now, 0);
        }
        self.handle(imp, ImpInput::Offer(host, message));
    }

    /// A timer.
    pub fn timer(&mut self, at: Instant, number: u32) {
        self.events.put(at, ImpSubnetEvent::Timer(number));
    }

    /// A host stops to take what it gets, or takes it again.
    pub fn takes(&mut self, now: Instant, host: ImpHostAddress, takes: bool) {
        self.now = self.now.max(now);
        let Some(interface) = self.interface(host.imp, host.host) else {
            return;
        };
        interface.takes = takes;
        if takes && interface.getting.is_some() {
            self.events.put(
                self.now,
                ImpSubnetEvent::Taken {
                    imp: host.imp,
                    host: host.host,
                },
            );
        }
    }

    /// A host is there, or is not.
    pub fn host_up(&mut self, now: Instant, host: ImpHostAddress, is_up: bool) {
        self.now = self.now.max(now);
        if let Some(interface) = self.interface(host.imp, host.host) {
            interface.getting = None;
        }
        self.handle(host.imp, ImpInput::HostUp(host.host, is_up));
    }

    /// A line is cut, or joined again. What is on it is lost.
    pub fn cut(&mut self, line: usize, is_cut: bool) {
        for direction in self.directions.iter_mut().skip(2 * line).take(2) {
            direction.is_cut = is_cut;
        }
    }

    /// An IMP is started anew: what it held is lost.
    pub fn restart(&mut self, now: Instant, imp: u16) {
        self.now = self.now.max(now);
        let at = usize::from(imp);
        self.epochs[at] += 1;
        let of = |direction: &usize| kind(&self.plan, &self.plan.lines[direction / 2]);
        let lines: Vec<LineKind> = self.out[at].iter().map(of).collect();
        let kinds: Vec<HostKind> = self
            .plan
            .hosts
            .iter()
            .filter(|host| host.imp == imp)
            .map(|host| host.kind)
            .collect();
        // Its hosts learn that their interface was reset, and know what they had under way.
        let mut lost: Vec<ImpMessage> = self.imps[at].unanswered().collect();
        self.imps[at] = self.imp(at, &lines, &kinds);
        for interface in &mut self.hosts[at] {
            interface.getting = None;
            if let Some(message) = interface.offered.take() {
                if !lost.contains(&message) {
                    lost.push(message);
                }
                self.news
                    .push_back((message.from, ImpHostNotice::Accepted(message)));
            }
        }
        self.news.extend(lost.into_iter().map(|message| {
            (
                message.from,
                ImpHostNotice::Failed(message, ImpDeliveryFailure::Incomplete),
            )
        }));
        self.settle(imp);
    }

    /// What a host learns next, not after `until`.
    pub fn poll(&mut self, until: Instant) -> Option<(Instant, ImpHostAddress, ImpHostNotice)> {
        loop {
            if let Some((host, news)) = self.news.pop_front() {
                return Some((self.now, host, news));
            }
            let (at, event) = self.events.take(until)?;
            self.now = at;
            self.happens(event);
        }
    }

    // --- inside ---

    fn interface(&mut self, imp: u16, host: u16) -> Option<&mut ImpHostInterface> {
        self.hosts
            .get_mut(usize::from(imp))?
            .get_mut(usize::from(host))
    }

    fn happens(&mut self, event: ImpSubnetEvent) {
        match event {
            ImpSubnetEvent::Wake(imp) => {
                let wakes = &mut self.wakes[usize::from(imp)];
                wakes.pop_if(|at| *at <= self.now);
                self.settle(imp);
            }
            ImpSubnetEvent::Frame { imp, line, slot } => {
                self.free.push(slot);
                if let Some(frame) = self.frames[slot as usize].take() {
                    self.comes_to(imp, &frame);
                    self.handle(imp, ImpInput::Frame(usize::from(line), frame));
                }
            }
            ImpSubnetEvent::Free { imp, line } => {
                self.handle(imp, ImpInput::LineFree(usize::from(line)))
            }
            ImpSubnetEvent::Part { imp, host } => {
                self.is_read(imp, host);
                self.handle(imp, ImpInput::Part(host));
            }
            ImpSubnetEvent::First { imp, host, id } => {
                let getting = self
                    .interface(imp, host)
                    .filter(|interface| interface.takes)
                    .and_then(|one| one.getting);
                if getting.is_some_and(|message| message.id == id) {
                    self.handle(imp, ImpInput::FirstTaken(host));
                }
            }
            ImpSubnetEvent::Taken { imp, host } => {
                let Some(interface) = self
                    .interface(imp, host)
                    .filter(|interface| interface.takes)
                else {
                    return;
                };
                if let Some(message) = interface.getting.take() {
                    self.is_given(imp, &message);
                    self.news
                        .push_back((message.to, ImpHostNotice::Delivered(message)));
                    self.handle(imp, ImpInput::Taken(host));
                }
            }
            ImpSubnetEvent::Timer(number) => self
                .news
                .push_back((ImpHostAddress::default(), ImpHostNotice::Timer(number))),
        }
    }

    // --- what is watched ---

    /// A packet comes to an IMP.
    fn comes_to(&mut self, imp: u16, frame: &ImpFrame) {
        if let (Some(watch), Some((id, part))) = (&mut self.watch, frame.part()) {
            // What comes again has been here since it came first.
            watch
                .came
                .entry((imp, id, part))
                .or_insert(self.now + AFTER);
        }
    }

    /// A packet leaves an IMP for the first time.
    fn leaves(
        &mut self,
        imp: u16,
        frame: &ImpFrame,
        place: ImpPassagePoint,
        left: Instant,
        is_lost: bool,
    ) {
        let (Some(watch), Some((id, part))) = (&mut self.watch, frame.part()) else {
            return;
        };
        if let Some(came) = watch.came.remove(&(imp, id, part)) {
            watch.passages.push(ImpPacketPassage {
                id,
                part,
                bits: frame.bits(),
                place,
                came,
                left,
                is_lost,
            });
        }
    }

    /// A part of a host's message was read.
    fn is_read(&mut self, imp: u16, host: u16) {
        let (now, Some(interface)) = (self.now, self.interface(imp, host)) else {
            return;
        };
        let (came, part, Some(message)) =
            (interface.offered_at, interface.parts, interface.offered)
        else {
            return;
        };
        interface.parts += 1;
        if let Some(watch) = &mut self.watch {
            let (id, bits, place) = (
                message.id,
                message.bits_of(part),
                ImpPassagePoint::FromHost(message.from),
            );
            watch.passages.push(ImpPacketPassage {
                id,
                part,
                bits,
                place,
                came,
                left: now,
                is_lost: false,
            });
            watch.came.insert((imp, id, part), now + AFTER);
        }
    }

    /// A host has a message.
    fn is_given(&mut self, imp: u16, message: &ImpMessage) {
        let Some(watch) = &mut self.watch else { return };
        for part in 0..message.parts() {
            let came = watch
                .came
                .remove(&(imp, message.id, part))
                .unwrap_or(self.now);
            let (id, bits, place) = (
                message.id,
                message.bits_of(part),
                ImpPassagePoint::ToHost(message.to),
            );
            watch.passages.push(ImpPacketPassage {
                id,
                part,
                bits,
                place,
                came,
                left: self.now,
                is_lost: false,
            });
        }
    }

    /// A message is lost: nothing of it is looked for any more.
    fn is_over(&mut self, message: &ImpMessage) {
        if let Some(watch) = &mut self.watch {
            watch.came.retain(|(_, id, _), _| *id != message.id);
        }
    }

    // --- the machines ---

    fn handle(&mut self, imp: u16, input: ImpInput) {
        let now = self.now;
        if let Some(machine) = self.imps.get_mut(usize::from(imp)) {
            machine.handle(now, input);
            self.settle(imp);
        }
    }

    /// Does what an IMP says until it says no more, and wakes it when it has something to say again.
    fn settle(&mut self, imp: u16) {
        while let Some(output) = self.imps[usize::from(imp)].poll(self.now) {
            self.does(imp, output);
        }
        self.wake(imp);
    }

    fn wake(&mut self, imp: u16) {
        let at = usize::from(imp);
        let Some(due) = self.imps[at].deadline().map(|due| due.max(self.now)) else {
            return;
        };
        if self.wakes[at].last().is_none_or(|earliest| due < *earliest) {
            self.wakes[at].push(due);
            self.events.put(due, ImpSubnetEvent::Wake(imp));
        }
    }

    fn does(&mut self, imp: u16, output: ImpOutput) {
        match output {
            ImpOutput::Send(line, frame) => self.send(imp, line, frame),
            ImpOutput::Read(host, bits) => {
                let Some(interface) = self.interface(imp, host) else {
                    return;
                };
                let leader = if std::mem::take(&mut interface.begins) {
                    LEADER_BITS
                } else {
                    0
                };
                let takes = interface
                    .bit_s
                    .map_or(Duration::ZERO, |rate| time(bits + leader, rate));
                self.events
                    .put(self.now + takes, ImpSubnetEvent::Part { imp, host });
            }
            ImpOutput::Accepted(host, id) => {
                let offered = self
                    .interface(imp, host)
                    .and_then(|interface| interface.offered.take());
                if let Some(message) = offered.filter(|message| message.id == id) {
                    self.news
                        .push_back((message.from, ImpHostNotice::Accepted(message)));
                }
            }
            ImpOutput::Deliver(host, message) => {
                let Some(interface) = self.interface(imp, host) else {
                    return;
                };
                interface.getting = Some(message);
                let takes = |bits: u32| {
                    interface
                        .bit_s
                        .map_or(Duration::ZERO, |rate| time(bits + LEADER_BITS, rate))
                };
                let (first, all) = (takes(message.bits_of(0)), takes(message.bits));
                if message.parts() > 1 {
                    self.events.put(
                        self.now + first,
                        ImpSubnetEvent::First {
                            imp,
                            host,
                            id: message.id,
                        },
                    );
                }
                self.events
                    .put(self.now + all, ImpSubnetEvent::Taken { imp, host });
            }
            ImpOutput::Rfnm(host, message) => self.news.push_back((
                ImpHostAddress { imp, host },
                ImpHostNotice::Answered(message),
            )),
            ImpOutput::Failed(host, message, why) => {
                self.is_over(&message);
                self.news.push_back((
                    ImpHostAddress { imp, host },
                    ImpHostNotice::Failed(message, why),
                ));
            }
        }
    }

    fn send(&mut self, imp: u16, line: usize, frame: ImpFrame) {
        let Some(direction) = self.out[usize::from(imp)]
            .get(line)
            .and_then(|at| self.directions.get_mut(*at))
        else {
            return;
        };
        let is_packet = matches!(frame.load, ImpFrameLoad::Packet { .. });
        self.hops += u64::from(is_packet);
        let bits = match (&frame.load, self.plan.routing_bits) {
            (ImpFrameLoad::Routing(_), Some(bits)) => bits,
            (ImpFrameLoad::Routing(_), None) => FULL_BITS,
            _ => frame.bits(),
        };
        let is_free = self.plan.control_is_free && !frame.is_data();
        let takes = if is_free {
            Duration::ZERO
        } else {
            time(bits + self.plan.overhead_bits, direction.bit_s)
        };
        direction.busy += takes;
        direction.data_bits += if frame.is_data() { u64::from(bits) } else { 0 };
        self.events.put(
            self.now + takes,
            ImpSubnetEvent::Free {
                imp,
                line: line as u16,
            },
        );
        let planned = Instant(self.now.0.saturating_sub(self.begins.0));
        let is_lost = direction.is_cut
            || direction
                .loss
                .lost(planned, u64::from(bits.div_ceil(8)))
                .is_some();
        let (to, at) = (direction.to, self.now + takes + direction.delay);
        let place = self.out[usize::from(imp)]
            .get(line)
            .copied()
            .unwrap_or_default();
        self.leaves(
            imp,
            &frame,
            ImpPassagePoint::Line(place),
            self.now + takes,
            is_lost,
        );
        if is_lost {
            return;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.frames.push(None);
            self.frames.len() as u32 - 1
        });
        self.frames[slot as usize] = Some(frame);
        self.events.put(
            at,
            ImpSubnetEvent::Frame {
                imp: to.0,
                line: to.1,
                slot,
            },
        );
    }
}

/// The time of so many bits.
/// What both ends of a line agree on.
fn kind(plan: &ImpSubnetPlan, line: &ImpSubnetLine) -> LineKind {
    let of = |imp: u16| &plan.imps[usize::from(imp)].options;
    LineKind::between(of(line.ends.0), of(line.ends.1), line.satellite)
}

fn time(bits: u32, bit_s: f64) -> Duration {
    Duration::from_seconds(f64::from(bits) / bit_s)
}
