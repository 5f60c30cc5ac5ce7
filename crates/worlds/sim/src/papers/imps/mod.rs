//! Networks of IMPs (the packet switches of the ARPANET) in virtual time: the machines of `stackline_proto::papers::imp`, joined by
//! lines with a rate and a delay, with hosts at their interfaces. The hosts' programs are in [`traffic`]; only losses are random.
//!
//! ```text
//! offer(now, message)    a host has a message; it has no other until this one is accepted
//! poll(until)            the next notice to a host: accepted, delivered, answered, failed
//! ```
//! It is a machine, like the network of `net`: the loop of virtual time polls it, and [`ImpSubnet::run`] where hosts only react to notices.

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

/// A packet's arrival is recorded this much (1 ns) after its departure from the place before, so that the two events have an order.
const AFTER: Duration = Duration(1);
/// Bits that precede a message at a host's interface: its leader (BBN 1822).
const LEADER_BITS: u32 = 32;

/// What a host learns of its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImpHostNotice {
    /// The IMP has read its whole message: it may offer another.
    Accepted(ImpMessage),
    /// It has received this message.
    Delivered(ImpMessage),
    /// The RFNM came: the destination IMP confirms this message.
    Answered(ImpMessage),
    /// Its message could not be delivered, and why.
    Failed(ImpMessage, ImpDeliveryFailure),
    /// A timer set by [`ImpSubnet::timer`] has expired; not for a host.
    Timer(u32),
}

/// What is due at a time. `host` and `line` are numbers at the IMP, `slot` a place in `ImpSubnet::frames`.
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
    /// How long it has been transmitting, and how many data bits of hosts it has carried.
    busy: Duration,
    data_bits: u64,
}

/// A running network of IMPs.
#[derive(Debug)]
pub struct ImpSubnet {
    plan: ImpSubnetPlan,
    imps: Vec<ImpNode>,
    epochs: Vec<u16>,
    /// When each IMP is to be woken, the earliest last, no time twice.
    wakes: Vec<Vec<Instant>>,
    /// By IMP and line: the index in `directions` of the line's outgoing direction.
    out: Vec<Vec<usize>>,
    directions: Vec<ImpLineDirection>,
    /// The hosts' interfaces, by IMP and host.
    hosts: Vec<Vec<ImpHostInterface>>,
    events: EventQueue<ImpSubnetEvent>,
    frames: Vec<Option<ImpFrame>>,
    free: Vec<u32>,
    now: Instant,
    news: std::collections::VecDeque<(ImpHostAddress, ImpHostNotice)>,
    hops: u64,
    watch: Option<ImpPassageWatch>,
    /// The time from which losses planned in time are counted.
    begins: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct ImpHostInterface {
    bit_s: Option<f64>,
    /// Whether the host accepts messages from its IMP.
    takes: bool,
    /// The message that it offered, and the one that it is getting.
    offered: Option<ImpMessage>,
    getting: Option<ImpMessage>,
    /// When the message was offered, and how many of its parts (packets) the IMP has read.
    offered_at: Instant,
    parts: u8,
    /// The next part to be read is the first of its message, which the leader precedes.
    begins: bool,
}

impl ImpSubnet {
    /// A network at time 0; losses are drawn from `seed`.
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

    /// The same network, which also keeps what [`ImpSubnet::passages`] reports.
    #[must_use]
    pub fn watched(mut self) -> Self {
        self.watch = Some(ImpPassageWatch::default());
        self
    }

    /// The same network; losses planned in time are counted from `begins`.
    #[must_use]
    pub const fn beginning_after(mut self, begins: Duration) -> Self {
        self.begins = begins;
        self
    }

    // --- what is known ---

    /// Takes the passages of packets since the last call; none unless the network is watched.
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

    /// How many packets were sent on lines so far, repetitions included.
    #[must_use]
    pub const fn hops(&self) -> u64 {
        self.hops
    }

    /// The present time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// The number of the outgoing direction of an IMP's line, as [`ImpSubnet::lines`] counts them.
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

    /// For each direction: how long it was transmitting, and data bits sent on it. Two per line, the first from the line's first end.
    pub fn lines(&self) -> impl Iterator<Item = (Duration, u64)> {
        self.directions
            .iter()
            .map(|direction| (direction.busy, direction.data_bits))
    }

    // --- what happens from outside ---

    /// The host `message.from` offers a message to its IMP.
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

    /// Sets a timer: at `at`, [`ImpSubnet::run`] has a notice [`ImpHostNotice::Timer`] with this number.
    pub fn timer(&mut self, at: Instant, number: u32) {
        self.events.put(at, ImpSubnetEvent::Timer(number));
    }

    /// A host stops accepting messages from its IMP, or accepts them again.
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

    /// A host comes up or goes down.
    pub fn host_up(&mut self, now: Instant, host: ImpHostAddress, is_up: bool) {
        self.now = self.now.max(now);
        if let Some(interface) = self.interface(host.imp, host.host) {
            interface.getting = None;
        }
        self.handle(host.imp, ImpInput::HostUp(host.host, is_up));
    }

    /// A line is cut, or joined again. Frames sent while it is cut are lost.
    pub fn cut(&mut self, line: usize, is_cut: bool) {
        for direction in self.directions.iter_mut().skip(2 * line).take(2) {
            direction.is_cut = is_cut;
        }
    }

    /// An IMP restarts: all packets and state in it are lost.
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
        // Its hosts see that their interface was reset, so each counts its messages under way as failed.
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

    /// Runs until `until`, and calls `learns` for each notice to a host, with its time: what drives each experiment whose hosts only
    /// react to notices. Such a host has no time of its own; what it does later is a timer of the network.
    pub fn run(
        &mut self,
        until: Instant,
        mut learns: impl FnMut(&mut Self, Instant, ImpHostAddress, ImpHostNotice),
    ) {
        while let Some((now, host, notice)) = self.poll(until) {
            learns(self, now, host, notice);
        }
    }

    /// The next notice to a host, with its time; `None` if there is none up to `until`.
    pub(crate) fn poll(
        &mut self,
        until: Instant,
    ) -> Option<(Instant, ImpHostAddress, ImpHostNotice)> {
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

    /// Notes for the watch that a packet has come to an IMP.
    fn comes_to(&mut self, imp: u16, frame: &ImpFrame) {
        if let (Some(watch), Some((id, part))) = (&mut self.watch, frame.part()) {
            // A repeated packet keeps the time of its first arrival.
            watch
                .came
                .entry((imp, id, part))
                .or_insert(self.now + AFTER);
        }
    }

    /// Records the passage of a packet that leaves an IMP; not of a repetition, as the first departure removed its arrival.
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

    /// Records the passage of a part of a host's message that the IMP has read.
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

    /// Records the passages of a message's parts from the last IMP to the host.
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

    /// A message has failed: the watch forgets its packets.
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

    /// Carries out an IMP's outputs until there are none, and plans its next wake-up.
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

/// The kind of a line, which both its ends have to agree on.
fn kind(plan: &ImpSubnetPlan, line: &ImpSubnetLine) -> LineKind {
    let of = |imp: u16| &plan.imps[usize::from(imp)].options;
    LineKind::between(of(line.ends.0), of(line.ends.1), line.satellite)
}

/// The transmission time of `bits` at `bit_s` bit/s.
fn time(bits: u32, bit_s: f64) -> Duration {
    Duration::from_seconds(f64::from(bits) / bit_s)
}
