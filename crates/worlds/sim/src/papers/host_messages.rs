//! Carries the hosts' packets as messages over a simulated network of IMPs (the packet switches of the ARPANET). A host offers one
//! message after the other and learns whether each was delivered. The places that packets pass are recorded as network events, by port.
//!
//! The IMPs run for `BEFORE` before the simulation begins, so that lines are up and routes are known; `+ BEFORE` and `- BEFORE`
//! convert between the run's time and the IMPs' time. While no message is under way the IMPs are not simulated; the time that was
//! skipped is caught up when the next message is offered.

use crate::datagram::{ImpDeliveryVerdict, SimDatagram};
use crate::digest::RunDigestTap;
use crate::papers::imps::{ImpHostNotice, ImpPacketPassage, ImpPassagePoint, ImpSubnet, plan};
use stackline_core::network as language;
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};
use stackline_net::{
    Delivery, DropReason, NetworkEvent, NetworkLocation, NetworkPacket, NodeIndex, PortCounters,
    PortIndex, RouteProperties, Tap,
};
use stackline_proto::papers::imp::line::{ImpLine, LineCounts};
use stackline_proto::papers::imp::machine::ImpCounters;
use stackline_proto::papers::imp::{ImpHostAddress, ImpMessage, ImpNode};
use stackline_proto::papers::ncp::{HEADER_BITS, MESSAGE_BYTES};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// How long the IMPs run before the simulation begins: the IMPs' time is the run's time plus this (ns).
const BEFORE: Duration = Duration(60_000_000_000);

/// The hosts' messages under way, and the network of IMPs that carries them.
pub(crate) struct HostMessages<T> {
    imps: ImpSubnet,
    /// The IMP address of each host, by host number.
    addresses: Vec<ImpHostAddress>,
    /// The host number at each address.
    hosts: BTreeMap<ImpHostAddress, usize>,
    /// By host: the ids of messages that wait until its IMP has read the earlier ones.
    waiting: Vec<VecDeque<u64>>,
    /// By host: whether its IMP is reading a message from it.
    is_reading: Vec<bool>,
    /// Messages under way, by id: not yet delivered, or not yet answered.
    packets: HashMap<u64, NetworkPacket<SimDatagram>>,
    /// Messages that were answered before all of them had reached their host (`ImpOptions::answers_first`).
    answered: HashSet<u64>,
    /// Messages that were delivered and are not yet answered.
    delivered: HashSet<u64>,
    /// The id of the last message that was handed over.
    numbered: u64,
    tap: RunDigestTap<T>,
    /// The port of each direction of the IMPs' lines.
    lines: Vec<PortIndex>,
    /// The port from each host to its IMP.
    interfaces: BTreeMap<ImpHostAddress, PortIndex>,
    /// By port: packets, bytes and drops so far.
    counters: Vec<PortCounters>,
    /// Deliveries that [`HostMessages::poll`] has not returned yet.
    out: VecDeque<Delivery<SimDatagram>>,
    /// The IMPs' status reports; `None` where nobody wants them.
    reports: Option<ImpReportSchedule>,
    /// When a host goes down (false) or comes up (true); the latest first, so that the next one is popped from the end.
    outages: Vec<(Instant, ImpHostAddress, bool)>,
}

/// The interval of the IMPs' status reports. Real IMPs reported to the Network Control Center every 52 s; a short run needs more.
const REPORT_EVERY: Duration = Duration(1_000_000_000);

/// The status reports made so far, and when the next is due.
#[derive(Debug)]
struct ImpReportSchedule {
    next: Instant,
    /// Reports of all IMPs, by the time they were made, which nobody has taken yet.
    made: Vec<(Instant, Vec<ImpStatusReport>)>,
}

/// The status report of an IMP: counts since the network began, and its present state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImpStatusReport {
    /// Packets and messages that it has handled.
    pub(crate) counts: ImpCounters,
    /// How long its processor has worked.
    pub(crate) busy: Duration,
    /// Buffers: reassembly buffers free, promised and in all; then packets that are passing through.
    pub(crate) buffers: (u32, u32, u32, u32),
    /// A report for each of its lines.
    pub(crate) lines: Vec<LineReport>,
}

/// An IMP's report on one of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineReport {
    /// The number of the port that sends to this line.
    pub(crate) port: u32,
    /// Whether the IMP uses the line (it is dead otherwise).
    pub(crate) is_up: bool,
    /// Packets, bits and repetitions on the line so far.
    pub(crate) counts: LineCounts,
    /// How long the line has been transmitting.
    pub(crate) busy: Duration,
}

/// When each host goes down (false) or comes up (true), as the network file says; the latest first.
fn outages(
    network: &language::Network,
    places: &BTreeMap<String, ImpHostAddress>,
) -> Vec<(Instant, ImpHostAddress, bool)> {
    let mut all = Vec::new();
    for host in &network.hosts {
        let (Some(down), Some(place)) = (host.down, places.get(&host.name)) else {
            continue;
        };
        all.push((Instant(0) + down.from, *place, false));
        all.extend(down.to.map(|to| (Instant(0) + to, *place, true)));
    }
    all.sort_by_key(|(at, ..)| std::cmp::Reverse(*at));
    all
}

impl<T: Tap<SimDatagram>> HostMessages<T> {
    pub(crate) fn new(network: &language::Network, seed: Seed, tap: RunDigestTap<T>) -> Self {
        let (imps, places) = plan::plan_of_network(network);
        let addresses: Vec<ImpHostAddress> = network
            .hosts
            .iter()
            .map(|host| places.get(&host.name).copied().unwrap_or_default())
            .collect();
        let is_host = |name: &str| network.host(name).is_some();
        let (mut lines, mut interfaces) = (Vec::new(), BTreeMap::new());
        for (link, one) in (0..).zip(&network.links) {
            let port = 2 * link;
            match [is_host(&one.ends.0), is_host(&one.ends.1)] {
                [false, false] => lines.extend([PortIndex(port), PortIndex(port + 1)]),
                [first, _] => {
                    let name = if first { &one.ends.0 } else { &one.ends.1 };
                    let address = places.get(name).copied().unwrap_or_default();
                    interfaces.insert(address, PortIndex(if first { port } else { port + 1 }));
                }
            }
        }
        let mut imps = ImpSubnet::new(&imps, seed)
            .watched()
            .beginning_after(BEFORE);
        imps.run(Instant(0) + BEFORE, |_, _, _, _| {});
        Self {
            imps,
            hosts: addresses
                .iter()
                .enumerate()
                .map(|(number, address)| (*address, number))
                .collect(),
            waiting: vec![VecDeque::new(); addresses.len()],
            is_reading: vec![false; addresses.len()],
            addresses,
            packets: HashMap::new(),
            answered: HashSet::new(),
            delivered: HashSet::new(),
            numbered: 0,
            tap,
            counters: vec![PortCounters::default(); 2 * network.links.len()],
            lines,
            interfaces,
            out: VecDeque::new(),
            reports: None,
            outages: outages(network, &places),
        }
    }

    /// Turns status reports on; the first is made at once, at time 0.
    pub(crate) fn report(&mut self) {
        self.reports = Some(ImpReportSchedule {
            next: Instant(0) + REPORT_EVERY,
            made: vec![(Instant(0), self.state())],
        });
    }

    /// Makes a last report at the end of the run, `at`, for the incomplete interval.
    pub(crate) fn report_last(&mut self, at: Instant) {
        let state = self.state();
        let last = |(made, _): &(Instant, Vec<ImpStatusReport>)| *made;
        if let Some(reports) = self
            .reports
            .as_mut()
            .filter(|reports| reports.made.last().map(last) != Some(at))
        {
            reports.made.push((at, state));
        }
    }

    /// Takes the reports made since the last call: for each time, one report per IMP in the IMPs' order.
    pub(crate) fn reports(&mut self) -> Vec<(Instant, Vec<ImpStatusReport>)> {
        self.reports
            .as_mut()
            .map(|reports| std::mem::take(&mut reports.made))
            .unwrap_or_default()
    }

    /// The present status reports of all IMPs.
    fn state(&self) -> Vec<ImpStatusReport> {
        let busy: Vec<Duration> = self.imps.lines().map(|(busy, _)| busy).collect();
        let imp = |(number, imp): (usize, &ImpNode)| {
            let line = |(at, line): (usize, &ImpLine)| {
                let direction = self.imps.direction(number, at)?;
                let port = self.lines.get(direction)?.0;
                Some(LineReport {
                    port,
                    is_up: imp.is_up(at),
                    counts: line.counts,
                    busy: *busy.get(direction)?,
                })
            };
            let lines = imp.lines().iter().enumerate().filter_map(line).collect();
            ImpStatusReport {
                counts: imp.counts,
                busy: imp.busy(),
                buffers: imp.buffers(),
                lines,
            }
        };
        self.imps.imps().iter().enumerate().map(imp).collect()
    }

    /// Simulates until a host learns something or until `until`; outages and reports that are due before happen on the way.
    fn next(&mut self, until: Instant) -> Option<(Instant, ImpHostAddress, ImpHostNotice)> {
        loop {
            let report = self
                .reports
                .as_ref()
                .map(|reports| reports.next)
                .filter(|next| *next <= until);
            let outage = self
                .outages
                .last()
                .map(|(at, ..)| *at)
                .filter(|at| *at <= report.unwrap_or(until));
            if let Some(news) = self.imps.poll(outage.or(report).unwrap_or(until) + BEFORE) {
                return Some(news);
            }
            if let Some((at, address, is_up)) = outage.and_then(|_| self.outages.pop()) {
                self.imps.host_up(at + BEFORE, address, is_up);
                if !is_up {
                    self.host_down(address);
                }
                continue;
            }
            let at = report?;
            let state = self.state();
            if let Some(reports) = &mut self.reports {
                reports.made.push((at, state));
                reports.next = at + REPORT_EVERY;
            }
        }
    }

    /// A host sends a message: its IMP reads it once it has read the host's earlier ones.
    pub(crate) fn handle(&mut self, now: Instant, mut packet: NetworkPacket<SimDatagram>) {
        // Catch up with the time in which the IMPs were not simulated.
        while let Some((at, address, news)) = self.next(now) {
            self.learns(at, address, news);
        }
        self.numbered += 1;
        packet.number = self.numbered;
        let host = packet.from.0 as usize;
        self.packets.insert(self.numbered, packet);
        let Some(waiting) = self.waiting.get_mut(host) else {
            return;
        };
        waiting.push_back(self.numbered);
        self.offer(now + BEFORE, host);
    }

    /// Offers the host's next waiting message to its IMP, unless the IMP is still reading one. `at` is in the IMPs' time.
    fn offer(&mut self, at: Instant, host: usize) {
        if self.is_reading[host] {
            return;
        }
        let Some(id) = self.waiting[host].pop_front() else {
            return;
        };
        let Some(packet) = self.packets.get(&id) else {
            return;
        };
        let place = |node: NodeIndex| {
            self.addresses
                .get(node.0 as usize)
                .copied()
                .unwrap_or_default()
        };
        let message = ImpMessage {
            from: place(packet.from),
            to: place(packet.to),
            bits: 8 * packet.bytes() as u32,
            id,
        };
        self.is_reading[host] = true;
        self.imps.offer(at, message);
    }

    /// The next message that reaches its host, or the next verdict that reaches a sender; `None` if there is none before `until`.
    pub(crate) fn poll(&mut self, until: Instant) -> Option<Delivery<SimDatagram>> {
        loop {
            if let Some(delivery) = self.out.pop_front() {
                return Some(delivery);
            }
            if self.packets.is_empty() {
                return None;
            }
            let (at, address, news) = self.next(until)?;
            self.learns(at, address, news);
        }
    }

    /// When something happens next; `None` while no message is under way, as nothing then concerns a host.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if let Some(delivery) = self.out.front() {
            return Some(delivery.due);
        }
        let next = self.imps.next().filter(|_| !self.packets.is_empty())?;
        Some(Instant(next.0.saturating_sub(BEFORE.0)))
    }

    /// Handles what a host learns at `at`, which is in the IMPs' time.
    fn learns(&mut self, at: Instant, address: ImpHostAddress, news: ImpHostNotice) {
        self.watch();
        let due = Instant(at.0.saturating_sub(BEFORE.0));
        match news {
            ImpHostNotice::Accepted(_) => {
                if let Some(host) = self.hosts.get(&address).copied() {
                    self.is_reading[host] = false;
                    self.offer(at, host);
                }
            }
            ImpHostNotice::Delivered(message) => {
                let Some(packet) = self.packets.get(&message.id).cloned() else {
                    return;
                };
                self.tap.record(
                    due,
                    NetworkLocation::Host(packet.to),
                    NetworkEvent::Deliver,
                    &packet,
                );
                self.out.push_back(Delivery { due, packet });
                self.delivered.insert(message.id);
                if self.answered.remove(&message.id) {
                    self.forget(message.id);
                }
            }
            ImpHostNotice::Answered(message) => {
                self.ends(due, message.id, ImpDeliveryVerdict::Delivered)
            }
            ImpHostNotice::Failed(message, why) => {
                self.ends(due, message.id, ImpDeliveryVerdict::Failed(why))
            }
            ImpHostNotice::Timer(_) => {}
        }
    }

    /// Sends the verdict on a message back to its sender, as a packet in the opposite direction.
    fn ends(&mut self, due: Instant, id: u64, verdict: ImpDeliveryVerdict) {
        let Some(packet) = self.packets.get(&id).cloned() else {
            return;
        };
        if verdict == ImpDeliveryVerdict::Delivered && !self.delivered.contains(&id) {
            self.answered.insert(id);
        } else {
            self.forget(id);
        }
        let payload = packet.payload.verdict(verdict);
        self.out.push_back(Delivery {
            due,
            packet: NetworkPacket {
                from: packet.to,
                to: packet.from,
                payload,
                ..packet
            },
        });
    }

    fn forget(&mut self, id: u64) {
        self.packets.remove(&id);
        self.answered.remove(&id);
        self.delivered.remove(&id);
    }

    /// A host goes down: messages to it that were already answered but not delivered are lost, and no sender learns of it.
    fn host_down(&mut self, address: ImpHostAddress) {
        let host = self.hosts.get(&address).map(|host| NodeIndex(*host as u32));
        let is_lost = |id: &&u64| {
            self.packets
                .get(*id)
                .is_none_or(|packet| Some(packet.to) == host)
        };
        let lost: Vec<u64> = self.answered.iter().filter(is_lost).copied().collect();
        lost.into_iter().for_each(|id| self.forget(id));
    }

    /// Records the places that packets have passed since the last call.
    fn watch(&mut self) {
        let passages: Vec<ImpPacketPassage> = self.imps.passages().collect();
        for passage in passages {
            self.passes(&passage);
        }
    }

    /// Records one passage as network events (enqueue, dequeue, perhaps drop) and counts it.
    fn passes(&mut self, passage: &ImpPacketPassage) {
        let Some(packet) = self.packets.get(&passage.id) else {
            return;
        };
        let port = match passage.place {
            ImpPassagePoint::Line(direction) => self.lines.get(direction).copied(),
            ImpPassagePoint::FromHost(address) => self.interfaces.get(&address).copied(),
            // The two ports of a link differ in the lowest bit: this is the direction from the IMP to the host.
            ImpPassagePoint::ToHost(address) => self
                .interfaces
                .get(&address)
                .map(|port| PortIndex(port.0 ^ 1)),
        };
        let Some(port) = port else { return };
        let packet = part_of(packet, passage);
        let at = |at: Instant| Instant(at.0.saturating_sub(BEFORE.0));
        let (came, left, place) = (
            at(passage.came),
            at(passage.left),
            NetworkLocation::Port(port),
        );
        self.tap
            .record(came, place, NetworkEvent::Enqueue(packet.bytes()), &packet);
        self.tap.record(left, place, NetworkEvent::Dequeue, &packet);
        if let Some(counters) = self.counters.get_mut(port.0 as usize) {
            counters.packets += 1;
            counters.bytes += packet.bytes();
            let lost = DropReason::ALL
                .iter()
                .position(|reason| *reason == DropReason::Lost)
                .unwrap_or(0);
            counters.drops[lost] += u64::from(passage.is_lost);
        }
        if passage.is_lost {
            self.tap
                .record(left, place, NetworkEvent::Drop(DropReason::Lost), &packet);
        }
    }

    /// The traffic of each port: the two directions of each link.
    pub(crate) fn counters(&self) -> Vec<PortCounters> {
        let mut all = self.counters.clone();
        for (port, (busy, _)) in self.lines.iter().zip(self.imps.lines()) {
            all[port.0 as usize].busy = busy;
        }
        all
    }

    /// The route between two hosts; only the longest message (`mtu`, bytes) is known in advance, as IMPs route dynamically.
    pub(crate) fn path(&self, from: NodeIndex, to: NodeIndex) -> Option<RouteProperties> {
        let known = |node: NodeIndex| self.addresses.get(node.0 as usize);
        known(from).zip(known(to))?;
        Some(RouteProperties {
            cost: 0,
            ports: Vec::new(),
            mtu: u64::from(MESSAGE_BYTES + HEADER_BITS / 8),
            first_mtu: u64::from(MESSAGE_BYTES + HEADER_BITS / 8),
            delay: Duration::ZERO,
        })
    }

    pub(crate) const fn tap(&mut self) -> &mut RunDigestTap<T> {
        &mut self.tap
    }

    pub(crate) fn into_tap(mut self) -> RunDigestTap<T> {
        self.watch();
        self.tap
    }
}

/// The packet of a message that made this passage.
fn part_of(
    message: &NetworkPacket<SimDatagram>,
    passage: &ImpPacketPassage,
) -> NetworkPacket<SimDatagram> {
    let mut packet = message.clone();
    packet.segments = stackline_net::SegmentSizes::one(passage.bits.div_ceil(8));
    packet.payload = packet
        .payload
        .part(passage.part, passage.bits / 8, HEADER_BITS / 8);
    packet
}
