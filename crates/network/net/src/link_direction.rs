//! One direction of a link with the queue before it: which packets may wait, when they leave, when they arrive.
//!
//! Where the discipline decides at arrival (drop-tail, RED, PIE) only future departures are stored: they are computed
//! when a packet arrives. Where it decides at departure (all others) packets wait by their slot (`queue_kind`).

use crate::cell_sizes::Cells;
use crate::entry_rules::{EntryRules, EntryVerdict};
use crate::explicit_rate::{Granted, Shares};
use crate::jitter::JitterProcess;
use crate::loss::LossProcess;
use crate::packet::SegmentSizes;
use crate::queue::Admission;
use crate::queue_kind::{MayMark, QueueKind, QueueRoom, QueueState, WaitingPacket};
use crate::send_limits::SendLimits;
use crate::shared_buffer::SharedBuffer;
use crate::tap::{DropReason, PortCounters};
use crate::token_bucket::TokenClock;
use crate::transmitter::Transmitter;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use stackline_core::network::{Charge, LinkQueue, NetworkInterface, NetworkLink, StepSchedule};
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
    /// Every packet is queued as it is and whole: no cells, no slots, no rules, no single packets.
    pub(crate) is_plain: bool,
    /// What happens before the queue: rare, so boxed.
    entry_rules: Option<Box<EntryRules>>,
    /// What holds it back beside the transmitter: rare, so boxed.
    limits: Option<Box<SendLimits>>,
    /// At a port of a switch that signals rates to hosts: the circuits through it.
    pub(crate) shares: Option<Box<Shares>>,
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
        let queue_kind = QueueKind::new(queue, link.mtu(), seed);
        let bounded = limit_bytes != u64::MAX
            || limit_packets != u64::MAX
            || port_config.shared_buffer.is_some();
        // A delay that changes could let packets overtake: the process keeps their order.
        let wanders = link.jitter.is_some()
            || link.duplicate > 0.0
            || link.delays.is_some()
            || link.skipping.is_some();
        let entry_rules = EntryRules::new(link).map(Box::new);
        let limits = send_limits(link, port_config);
        Self {
            delay: link.delay,
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
                let seed = seed.child("wander");
                let jitter = JitterProcess::new(link.jitter.as_ref(), link.duplicate, seed);
                Box::new(jitter.skipping(link.skipping.as_ref()))
            }),
            overtakes: link.jitter.as_ref().is_some_and(|jitter| jitter.reorder),
            arrived: Instant::default(),
            untracked: !bounded && queue_kind.is_drop_tail() && !port_config.lengths_wanted,
            is_plain: port_config.cells.is_none()
                && !queue_kind.holds()
                && entry_rules.is_none()
                && link.shaper.is_none()
                && link.skipping.is_none(),
            queue_kind,
            limit_bytes,
            limit_packets,
            ecn: queue.ecn,
            entry_rules,
            limits,
            shares: (port_config.abr && port_config.interface.is_none()).then(Box::default),
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
            (self.delay, self.delays) = (link.delay, link.delays.clone().map(Box::new));
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
        self.queue_kind.holds()
    }

    /// Whether trains have to come packet by packet.
    pub(crate) fn takes_single_packets(&self) -> bool {
        let is_parted = |rules: &EntryRules| rules.part_trains();
        let is_shaped = |limits: &SendLimits| limits.shaper.is_some();
        let skips = |jitter: &JitterProcess| jitter.is_skipping();
        !self.is_plain
            && (self.holds()
                || self.cells.is_some()
                || self.entry_rules.as_deref().is_some_and(is_parted)
                || self.limits.as_deref().is_some_and(is_shaped)
                || self.jitter.as_deref().is_some_and(skips))
    }

    /// What happens to a packet of these segments that comes at `at`, before it joins the queue.
    pub(crate) fn admit(&mut self, at: Instant, segments: SegmentSizes) -> EntryVerdict {
        let charged = self.charged(segments);
        match &mut self.entry_rules {
            Some(rules) => rules.decide(at, charged),
            None => EntryVerdict::Enters,
        }
    }

    /// The rates that a switch has granted to this host's port, if it does.
    pub(crate) fn granted(&mut self) -> Option<&mut Granted> {
        self.limits.as_mut()?.granted.as_mut()
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
        self.backlog + self.queue_kind.held().0
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
            if self.shared_buffer.is_some() || !self.queue_kind.is_drop_tail() {
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
        let charged = self.charged(segments);
        let start = from.max(self.free_at);
        let start = match &mut self.limits {
            Some(limits) => limits.begin(start, charged),
            None => start,
        };
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

    /// When `charged` bytes that come at `from` begin to be sent.
    fn start(&self, from: Instant, charged: u64) -> Instant {
        let start = from.max(self.free_at);
        match &self.limits {
            Some(limits) => limits.start(start, charged),
            None => start,
        }
    }

    fn finish(&mut self, start: Instant, charged: u64) -> Instant {
        let sent = self.transmitter.finish(start, charged);
        match &mut self.limits {
            Some(limits) => {
                let bit_s = self.transmitter.bit_s(start);
                sent.max(limits.least_end(start, charged, bit_s))
            }
            None => sent,
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
            Admission::Early => return QueueDecision::Refused(self.queue_kind.refusal(false)),
            Admission::Forced => return QueueDecision::Refused(self.queue_kind.refusal(true)),
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
        if self.queue_kind.is_drop_tail() {
            return Admission::Take;
        }
        let state = QueueState {
            backlog: self.backlog,
            delay: self
                .start(at, self.charged(SegmentSizes::one(bytes as u32)))
                .since(at),
            idle_since: (self.waiting == 0).then_some(self.free_at),
            typical_ns: self.airtime(at, self.mtu).map_or(1, |time| time.0.max(1)),
        };
        self.queue_kind.decide(at, state, bytes)
    }

    /// Queues a packet by its slot. `displaced` is called for each packet that loses its place, perhaps the new one.
    pub(crate) fn hold(
        &mut self,
        now: Instant,
        packet: WaitingPacket,
        displaced: impl FnMut(u32, DropReason),
    ) {
        self.settle(now);
        let room = QueueRoom {
            bytes: self.limit_bytes.saturating_sub(self.backlog),
            packets: self.limit_packets.saturating_sub(self.waiting),
        };
        self.queue_kind.hold(now, packet, room, displaced);
    }

    /// Removes the oldest packet of a queue that drops at its head; its slot and bytes.
    pub(crate) fn displace(&mut self) -> Option<(u32, u64)> {
        self.queue_kind.displace()
    }

    /// The next packet to leave when the link is free. `stays` is called for one that waited too long: it marks it where
    /// it may, or returns false, which drops it.
    pub(crate) fn release(
        &mut self,
        now: Instant,
        stays: impl FnMut(u32, MayMark) -> bool,
    ) -> Option<u32> {
        self.queue_kind.release(now, self.mtu, stays)
    }

    /// Why the queue drops packets at departure.
    pub(crate) const fn lateness(&self) -> DropReason {
        self.queue_kind.lateness()
    }

    /// Whether a packet waits by its slot.
    pub(crate) fn has_waiting(&self) -> bool {
        self.queue_kind.held().1 > 0
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
        if jitter.skips() {
            return departure;
        }
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
    pub(crate) fn least_delay(&self) -> Duration {
        let skips = |jitter: &JitterProcess| jitter.is_skipping();
        if self.jitter.as_deref().is_some_and(skips) {
            return Duration::ZERO;
        }
        let steps = self.delays.iter().flat_map(|delays| &delays.steps);
        steps.map(|(_, delay)| *delay).min().unwrap_or(self.delay)
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

/// What holds a direction back beside its transmitter; `None` if nothing does.
fn send_limits(link: &NetworkLink, port_config: PortConfig<'_>) -> Option<Box<SendLimits>> {
    let pace = port_config.interface.and_then(|card| card.pace_bit_s);
    let limits = SendLimits {
        pace: pace.map_or(0.0, |bit_s| 8e9 / bit_s),
        granted: (port_config.abr && port_config.interface.is_some()).then(Granted::default),
        shaper: link.shaper.as_ref().map(TokenClock::new),
    };
    limits.are_any().then(|| Box::new(limits))
}
