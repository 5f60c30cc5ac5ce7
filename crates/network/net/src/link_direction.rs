//! One direction of a link with the queue before it: which packets may wait, when they leave, when they arrive.
//!
//! Where the discipline decides at arrival (drop-tail, RED, PIE) only future departures are stored: they are computed
//! when a packet arrives. Where it decides at departure (drop-head, CoDel, FQ-CoDel) packets wait by their slot.

use crate::cell_sizes::Cells;
use crate::explicit_rate::{Granted, Shares};
use crate::jitter::JitterProcess;
use crate::loss::LossProcess;
use crate::packet::SegmentSizes;
use crate::queue::Admission;
use crate::queue::codel::CoDel;
use crate::queue::fifo::Fifo;
use crate::queue::fq_codel::FqCoDel;
use crate::queue::pie::Pie;
use crate::queue::red::Red;
use crate::shared_buffer::SharedBuffer;
use crate::tap::{DropReason, PortCounters};
use crate::transmitter::Transmitter;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use stackline_core::network::{
    Charge, Discipline, LinkQueue, NetworkInterface, NetworkLink, StepSchedule,
};
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};

/// The instants at which the first and the last segment of a train pass some place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrainSpan {
    pub(crate) first: Instant,
    pub(crate) last: Instant,
}

impl TrainSpan {
    /// The instant of the segment of that index among `count`, evenly spread.
    pub(crate) fn at(self, index: u32, count: u32) -> Instant {
        if count <= 1 {
            return self.last;
        }
        let width =
            u128::from((self.last - self.first).0) * u128::from(index) / u128::from(count - 1);
        self.first + Duration(width as u64)
    }

    pub(crate) fn later(self, by: Duration) -> Self {
        Self {
            first: self.first + by,
            last: self.last + by,
        }
    }
}

/// Segments that wait or are being sent, as departures that are already computed.
#[derive(Clone, Copy, Debug)]
struct DepartingTrain {
    span: TrainSpan,
    count: u32,
    each: u64,
    last: u64,
}

/// Disciplines other than drop-tail are large and rare: boxed, so that what every packet touches is close together.
#[derive(Debug)]
enum QueueKind {
    Tail,
    Red(Box<Red>),
    Pie(Box<Pie>),
    Head(Box<Fifo<u32>>),
    CoDel(Box<(Fifo<u32>, CoDel)>),
    FqCoDel(Box<FqCoDel<u32>>),
}

/// The queue's decision about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueDecision {
    /// It leaves at that instant; true if it is to be marked.
    Leaves(Instant, bool),
    /// It is dropped.
    Refused(DropReason),
}

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct LinkDirection {
    delay: Duration,
    /// How the propagation delay changes in time: rare, so boxed.
    delays: Option<Box<StepSchedule<Duration>>>,
    pub(crate) mtu: u64,
    /// Frames go over it in cells.
    pub(crate) cells: Option<Cells>,
    loss: Option<Box<LossProcess>>,
    /// The index of the buffer that its switch shares among ports.
    pub(crate) shared_buffer: Option<usize>,
    pub(crate) early_discard: bool,
    pub(crate) free_at: Instant,
    /// An event at `free_at` that sends the next packet is scheduled.
    pub(crate) send_scheduled: bool,
    packets: u64,
    bytes: u64,
    busy: Duration,
    /// Marks, duplicates and drops: rare, so boxed.
    pub(crate) counters: Box<PortCounters>,
    charge: Charge,
    transmitter: Transmitter,
    jitter: Option<Box<JitterProcess>>,
    /// Whether packets may overtake each other; `arrived` is when the last one arrives.
    overtakes: bool,
    arrived: Instant,
    queue_kind: QueueKind,
    limit_bytes: u64,
    limit_packets: u64,
    ecn: bool,
    /// Least time a byte takes, in ns; 0 without pacing.
    pace: f64,
    /// At a port of a switch that signals rates to hosts: the circuits through it.
    pub(crate) shares: Option<Box<Shares>>,
    /// At a host's port on such a switch: the rates that were granted to it.
    pub(crate) granted: Option<Box<Granted>>,
    /// The queue's length is never used, so `leaving`, `backlog` (bytes) and `waiting` (packets) are not kept.
    untracked: bool,
    leaving: VecDeque<DepartingTrain>,
    backlog: u64,
    waiting: u64,
}

/// Settings that a direction takes from the nodes at its ends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PortConfig<'p> {
    pub(crate) queue: Option<&'p LinkQueue>,
    pub(crate) port_bytes: Option<u64>,
    pub(crate) shared_buffer: Option<usize>,
    pub(crate) cells: Option<Cells>,
    pub(crate) early_discard: bool,
    /// The switch at either end signals rates to hosts (ATM's available bit rate).
    pub(crate) abr: bool,
    pub(crate) interface: Option<&'p NetworkInterface>,
    /// The tap records queue lengths.
    pub(crate) lengths_wanted: bool,
}

impl LinkDirection {
    pub(crate) fn new(link: &NetworkLink, port_config: PortConfig<'_>, seed: Seed) -> Self {
        let plain = LinkQueue::default();
        let queue = link.queue.as_ref().or(port_config.queue).unwrap_or(&plain);
        let least =
            |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min().unwrap_or(u64::MAX);
        let (limit_bytes, limit_packets) = (
            least(queue.limit_bytes, port_config.port_bytes),
            queue.limit_packets.unwrap_or(u64::MAX),
        );
        let queue_kind = queue_kind(queue, link.mtu(), seed);
        let bounded = limit_bytes != u64::MAX
            || limit_packets != u64::MAX
            || port_config.shared_buffer.is_some();
        // A delay that changes could let packets overtake: the process keeps their order.
        let wanders = link.jitter.is_some() || link.duplicate > 0.0 || link.delays.is_some();
        Self {
            delay: link.least_delay(),
            delays: link.delays.clone().map(Box::new),
            mtu: link.mtu(),
            cells: port_config.cells,
            loss: Some(LossProcess::new(&link.loss, seed.child("loss")))
                .filter(|loss| !loss.is_none())
                .map(Box::new),
            shared_buffer: port_config.shared_buffer,
            early_discard: port_config.early_discard,
            free_at: Instant::default(),
            send_scheduled: false,
            packets: 0,
            bytes: 0,
            busy: Duration::ZERO,
            counters: Box::default(),
            charge: link.charge,
            transmitter: Transmitter::new(&link.rate),
            jitter: wanders.then(|| {
                Box::new(JitterProcess::new(
                    link.jitter.as_ref(),
                    link.duplicate,
                    seed.child("wander"),
                ))
            }),
            overtakes: link.jitter.as_ref().is_some_and(|jitter| jitter.reorder),
            arrived: Instant::default(),
            untracked: !bounded
                && matches!(queue_kind, QueueKind::Tail)
                && !port_config.lengths_wanted,
            queue_kind,
            limit_bytes,
            limit_packets,
            ecn: queue.ecn,
            pace: port_config
                .interface
                .and_then(|card| card.pace_bit_s)
                .map_or(0.0, |bit_s| 8e9 / bit_s),
            shares: (port_config.abr && port_config.interface.is_none()).then(Box::default),
            granted: (port_config.abr && port_config.interface.is_some()).then(Box::default),
            leaving: VecDeque::new(),
            backlog: 0,
            waiting: 0,
        }
    }

    /// Takes the rate, delay, loss and limits of `link` from now on; what they were is `before`. What waits already leaves
    /// when it would have left, and nothing overtakes what is on its way.
    pub(crate) fn change(
        &mut self,
        before: &NetworkLink,
        link: &NetworkLink,
        port_bytes: Option<u64>,
        seed: Seed,
    ) {
        if before.rate != link.rate {
            self.transmitter = Transmitter::new(&link.rate);
        }
        if before.loss != link.loss {
            self.loss = Some(LossProcess::new(&link.loss, seed))
                .filter(|loss| !loss.is_none())
                .map(Box::new);
        }
        if (before.delay, &before.delays) != (link.delay, &link.delays) {
            let most = self
                .delays
                .iter()
                .flat_map(|delays| &delays.steps)
                .map(|(_, delay)| *delay)
                .max();
            let jitter = || Box::new(JitterProcess::new(None, 0.0, seed));
            self.jitter.get_or_insert_with(jitter);
            self.arrived = self
                .arrived
                .max(self.free_at + most.unwrap_or(self.delay).max(self.delay));
            (self.delay, self.delays) = (link.least_delay(), link.delays.clone().map(Box::new));
        }
        if let (true, Some(queue)) = (before.queue != link.queue, &link.queue) {
            self.limit_bytes = queue
                .limit_bytes
                .into_iter()
                .chain(port_bytes)
                .min()
                .unwrap_or(u64::MAX);
            self.limit_packets = queue.limit_packets.unwrap_or(u64::MAX);
            self.untracked &= self.limit_bytes == u64::MAX && self.limit_packets == u64::MAX;
        }
    }

    /// Whether the discipline decides at departure, so that packets wait by their slot.
    pub(crate) const fn holds(&self) -> bool {
        matches!(
            self.queue_kind,
            QueueKind::Head(_) | QueueKind::CoDel(_) | QueueKind::FqCoDel(_)
        )
    }

    /// Bytes these segments take on the link.
    #[inline]
    pub(crate) fn charged(&self, segments: SegmentSizes) -> u64 {
        match (self.cells, self.charge) {
            (Some(cells), _) => cells.wire_bytes_of(segments),
            (None, Charge::Packet) => segments.bytes(),
            (None, charge) => {
                let all_but_last =
                    u64::from(segments.count - 1) * charge.bytes(segments.bytes_of(0));
                all_but_last + charge.bytes(segments.bytes_of(segments.count - 1))
            }
        }
    }

    /// Time that `bytes` charged bytes take at the current rate; `None` when they take none.
    #[expect(clippy::cast_precision_loss, reason = "less than 2^52 bytes")]
    pub(crate) fn airtime(&self, now: Instant, bytes: u64) -> Option<Duration> {
        let bit_s = self.transmitter.bit_s(now).filter(|bit_s| *bit_s > 0.0)?;
        Some(Duration::from_seconds(bytes as f64 * 8.0 / bit_s))
    }

    /// The bytes that wait or are being sent.
    pub(crate) fn backlog(&mut self, now: Instant) -> u64 {
        self.settle(now);
        self.backlog + self.held().0
    }

    fn held(&self) -> (u64, u64) {
        match &self.queue_kind {
            QueueKind::Head(fifo) => (fifo.bytes(), fifo.len() as u64),
            QueueKind::CoDel(held) => (held.0.bytes(), held.0.len() as u64),
            QueueKind::FqCoDel(queues) => (queues.bytes(), queues.len() as u64),
            _ => (0, 0),
        }
    }

    /// Removes segments that have left by now from `leaving`, `backlog` and `waiting`.
    fn settle(&mut self, now: Instant) {
        while let Some(train) = self.leaving.front_mut() {
            if train.span.first > now {
                return;
            }
            let gone = if train.span.last <= now {
                train.count
            } else {
                let passed = u128::from((now - train.span.first).0) * u128::from(train.count - 1);
                1 + (passed / u128::from((train.span.last - train.span.first).0.max(1))) as u32
            };
            if gone >= train.count {
                self.backlog -= u64::from(train.count - 1) * train.each + train.last;
                self.waiting -= u64::from(train.count);
                self.leaving.pop_front();
            } else {
                self.backlog -= u64::from(gone) * train.each;
                self.waiting -= u64::from(gone);
                let first = train.span.at(gone, train.count);
                train.span.first = first;
                train.count -= gone;
                return;
            }
        }
    }

    /// Sends a whole train that arrives over `arrival` if the queue cannot drop or mark any part of it.
    #[inline]
    pub(crate) fn send_whole(
        &mut self,
        arrival: TrainSpan,
        segments: SegmentSizes,
    ) -> Option<TrainSpan> {
        if !self.untracked {
            if self.shared_buffer.is_some() || !matches!(self.queue_kind, QueueKind::Tail) {
                return None;
            }
            self.settle(arrival.first);
            let fits = self.backlog + segments.bytes() <= self.limit_bytes
                && self.waiting + u64::from(segments.count) <= self.limit_packets;
            if !fits {
                return None;
            }
        }
        Some(self.send(arrival.first, segments))
    }

    /// Sends segments on the link behind all earlier ones; returns when they leave.
    pub(crate) fn send(&mut self, from: Instant, segments: SegmentSizes) -> TrainSpan {
        let start = from.max(self.free_at);
        let charged = self.charged(segments);
        let first = if segments.count == 1 {
            self.finish(start, charged)
        } else {
            let one = self.charged(SegmentSizes {
                count: 1,
                last: segments.full,
                ..segments
            });
            self.finish(start, one)
        };
        let last = if segments.count == 1 {
            first
        } else {
            let one = self.charged(SegmentSizes {
                count: 1,
                last: segments.full,
                ..segments
            });
            self.finish(first, charged - one)
        };
        self.free_at = last;
        self.busy += last.since(start);
        let span = TrainSpan { first, last };
        if !self.untracked {
            let bytes = segments.bytes();
            let (each, tail) = (segments.bytes_of(0), segments.bytes_of(segments.count - 1));
            self.leaving.push_back(DepartingTrain {
                span,
                count: segments.count,
                each,
                last: tail,
            });
            self.backlog += bytes;
            self.waiting += u64::from(segments.count);
        }
        self.packets += u64::from(segments.count);
        self.bytes += segments.bytes();
        span
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a pause of less than 2^52 ns"
    )]
    fn finish(&mut self, start: Instant, charged: u64) -> Instant {
        let granted = match (&mut self.granted, self.transmitter.bit_s(start)) {
            (Some(granted), Some(bit_s)) => 8e9 / granted.rate(start, bit_s),
            _ => 0.0,
        };
        let pace = self.pace.max(granted);
        let sent = self.transmitter.finish(start, charged);
        if pace > 0.0 {
            sent.max(start + Duration((pace * charged as f64) as u64))
        } else {
            sent
        }
    }

    /// Offers one segment that arrives at `at`, with the shared buffer of its switch.
    pub(crate) fn offer(
        &mut self,
        at: Instant,
        bytes: u64,
        can_mark: bool,
        shared_buffer: Option<&mut SharedBuffer>,
    ) -> QueueDecision {
        self.settle(at);
        if self.backlog + bytes > self.limit_bytes || self.waiting + 1 > self.limit_packets {
            return QueueDecision::Refused(DropReason::QueueFull);
        }
        let mark = match self.decide(at, bytes) {
            Admission::Take => false,
            Admission::Early if can_mark && self.ecn => true,
            Admission::Early => return QueueDecision::Refused(self.reason(DropReason::RedEarly)),
            Admission::Forced => return QueueDecision::Refused(self.reason(DropReason::RedForced)),
        };
        if let Some(shared_buffer) = shared_buffer {
            if !shared_buffer.take(at, bytes) {
                return QueueDecision::Refused(DropReason::SharedBufferFull);
            }
            let span = self.send(at, SegmentSizes::one(bytes as u32));
            shared_buffer.release(span.last, bytes);
            return QueueDecision::Leaves(span.last, mark);
        }
        QueueDecision::Leaves(self.send(at, SegmentSizes::one(bytes as u32)).last, mark)
    }

    /// The link's rate in bit/s at that moment; `None` where it is unlimited.
    pub(crate) fn transmitter_bit_s(&self, at: Instant) -> Option<f64> {
        self.transmitter.bit_s(at)
    }

    /// Whether more than half of the buffer is in use.
    pub(crate) fn half_full(&mut self, now: Instant) -> bool {
        self.backlog(now) > self.limit_bytes / 2
    }

    /// Offers a cell; cell switches support drop-tail only.
    pub(crate) fn offer_cell(
        &mut self,
        at: Instant,
        shared_buffer: Option<&mut SharedBuffer>,
    ) -> Result<Instant, DropReason> {
        self.settle(at);
        let bytes = self.cells.map_or(0, |cells| cells.bytes);
        if self.backlog + bytes > self.limit_bytes || self.waiting + 1 > self.limit_packets {
            return Err(DropReason::QueueFull);
        }
        let start = at.max(self.free_at);
        if let Some(shared_buffer) = shared_buffer {
            if !shared_buffer.take(at, bytes) {
                return Err(DropReason::SharedBufferFull);
            }
            self.free_at = self.finish(start, bytes);
            shared_buffer.release(self.free_at, bytes);
        } else {
            self.free_at = self.finish(start, bytes);
        }
        let departure = self.free_at;
        self.busy += departure.since(start);
        let span = TrainSpan {
            first: departure,
            last: departure,
        };
        self.leaving.push_back(DepartingTrain {
            span,
            count: 1,
            each: bytes,
            last: bytes,
        });
        self.backlog += bytes;
        self.waiting += 1;
        self.packets += 1;
        self.bytes += bytes;
        Ok(departure)
    }

    /// The decision of a discipline that decides at arrival.
    fn decide(&mut self, at: Instant, bytes: u64) -> Admission {
        let idle_since = (self.waiting == 0).then_some(self.free_at);
        let typical = self.airtime(at, self.mtu).map_or(1, |time| time.0.max(1));
        match &mut self.queue_kind {
            QueueKind::Red(red) => red.admit(at, self.backlog, idle_since, typical),
            QueueKind::Pie(pie) => pie.admit(at, self.free_at.since(at), self.backlog, bytes),
            _ => Admission::Take,
        }
    }

    const fn reason(&self, of_red: DropReason) -> DropReason {
        if matches!(self.queue_kind, QueueKind::Pie(_)) {
            DropReason::Pie
        } else {
            of_red
        }
    }

    /// Queues a packet by its slot. `displaced` is called for each packet that loses its place, perhaps the new one.
    pub(crate) fn hold(
        &mut self,
        now: Instant,
        flow: u32,
        bytes: u64,
        slot: u32,
        mut displaced: impl FnMut(u32, DropReason),
    ) {
        self.settle(now);
        let full = |direction: &Self, more: u64, packets: u64| {
            let (held, count) = direction.held();
            direction.backlog + held + more > direction.limit_bytes
                || direction.waiting + count + packets > direction.limit_packets
        };
        match &self.queue_kind {
            QueueKind::FqCoDel(_) => {
                if let QueueKind::FqCoDel(queues) = &mut self.queue_kind {
                    queues.push(now, flow, bytes, slot);
                }
                while full(self, 0, 0) {
                    let QueueKind::FqCoDel(queues) = &mut self.queue_kind else {
                        return;
                    };
                    let Some(longest) = queues.drop_from_longest() else {
                        return;
                    };
                    displaced(longest, DropReason::QueueFull);
                }
            }
            QueueKind::Head(_) => {
                while full(self, bytes, 1) {
                    let QueueKind::Head(fifo) = &mut self.queue_kind else {
                        return;
                    };
                    let Some((_, _, oldest)) = fifo.pop() else {
                        // It is larger than the whole limit: nothing is left to displace.
                        return displaced(slot, DropReason::QueueFull);
                    };
                    displaced(oldest, DropReason::Displaced);
                }
                if let QueueKind::Head(fifo) = &mut self.queue_kind {
                    fifo.push(now, bytes, slot);
                }
            }
            _ if full(self, bytes, 1) => displaced(slot, DropReason::QueueFull),
            _ => {
                if let QueueKind::CoDel(held) = &mut self.queue_kind {
                    held.0.push(now, bytes, slot);
                }
            }
        }
    }

    /// Removes the oldest packet of a queue that drops at its head; its slot and bytes.
    pub(crate) fn displace(&mut self) -> Option<(u32, u64)> {
        let QueueKind::Head(fifo) = &mut self.queue_kind else {
            return None;
        };
        fifo.pop().map(|(_, bytes, slot)| (slot, bytes))
    }

    /// The next packet to leave when the link is free. `marks` is called for one that waited too long: false drops it.
    pub(crate) fn release(
        &mut self,
        now: Instant,
        mut marks: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let mtu = self.mtu;
        match &mut self.queue_kind {
            QueueKind::Head(fifo) => fifo.pop().map(|(.., slot)| slot),
            QueueKind::CoDel(held) => loop {
                let (fifo, codel) = &mut **held;
                let (since, _, slot) = fifo.pop()?;
                let waited_too_long =
                    codel.signals_congestion(now, now.since(since), fifo.bytes(), mtu);
                if !waited_too_long || marks(slot) {
                    return Some(slot);
                }
            },
            QueueKind::FqCoDel(queues) => queues.pop(now, |slot, _| marks(slot).then_some(slot)),
            _ => None,
        }
    }

    /// Whether a packet waits by its slot.
    pub(crate) fn has_waiting(&self) -> bool {
        self.held().1 > 0
    }

    /// Whether packets that waited too long are marked.
    pub(crate) const fn marks(&self) -> bool {
        self.ecn
    }

    /// When segments that leave over `departure` arrive at the other end. Without reordering they arrive after all
    /// earlier ones.
    #[inline]
    pub(crate) fn arrival(&mut self, departure: TrainSpan) -> TrainSpan {
        let undelayed = departure.later(self.delay_at(departure.last));
        let Some(jitter) = &mut self.jitter else {
            return undelayed;
        };
        let mut delayed = undelayed.later(jitter.arrival(undelayed.last).since(undelayed.last));
        if !self.overtakes && delayed.first <= self.arrived {
            delayed = delayed.later(self.arrived.since(delayed.first) + Duration(1));
        }
        self.arrived = delayed.last;
        delayed
    }

    /// The propagation delay of what leaves then.
    #[inline]
    fn delay_at(&self, at: Instant) -> Duration {
        self.delays
            .as_ref()
            .and_then(|delays| delays.at(at).copied())
            .unwrap_or(self.delay)
    }

    /// The least propagation delay.
    pub(crate) const fn least_delay(&self) -> Duration {
        self.delay
    }

    /// Whether the packet is duplicated.
    #[inline]
    pub(crate) fn duplicated(&mut self) -> bool {
        self.jitter
            .as_mut()
            .is_some_and(|jitter| jitter.duplicated())
    }

    /// Counters of everything that went through.
    pub(crate) fn counters(&self) -> PortCounters {
        PortCounters {
            packets: self.packets,
            bytes: self.bytes,
            busy: self.busy,
            ..*self.counters
        }
    }

    /// Whether the link loses nothing.
    #[inline]
    pub(crate) const fn loses_nothing(&self) -> bool {
        self.loss.is_none()
    }

    /// Whether the link loses the next packet or cell, of that size, which leaves at `at`; the reason if it does.
    pub(crate) fn lost(&mut self, at: Instant, bytes: u64) -> Option<DropReason> {
        self.loss.as_mut()?.lost(at, bytes)
    }

    /// Counts a drop.
    pub(crate) fn count_drop(&mut self, reason: DropReason, packets: u64) {
        self.counters.drops[reason as usize] += packets;
    }
}

fn queue_kind(queue: &LinkQueue, mtu: u64, seed: Seed) -> QueueKind {
    match queue.discipline {
        Discipline::DropTail => QueueKind::Tail,
        Discipline::DropHead => QueueKind::Head(Box::default()),
        Discipline::Red {
            min_bytes,
            max_bytes,
            most,
            weight,
        } => QueueKind::Red(Box::new(Red::new(
            min_bytes,
            max_bytes,
            most,
            weight,
            seed.child("red"),
        ))),
        Discipline::CoDel { target, interval } => {
            QueueKind::CoDel(Box::new((Fifo::default(), CoDel::new(target, interval))))
        }
        Discipline::Pie { target, update } => {
            QueueKind::Pie(Box::new(Pie::new(target, update, seed.child("pie"))))
        }
        Discipline::FqCoDel {
            target,
            interval,
            flows,
            quantum,
        } => {
            let perturbation = seed.child("fq_codel").0;
            QueueKind::FqCoDel(Box::new(FqCoDel::new(
                target,
                interval,
                flows,
                quantum,
                mtu,
                perturbation,
            )))
        }
    }
}
