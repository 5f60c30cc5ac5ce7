//! Captures that are read together: packets in the order of time, to events of segments, of connections and of requests.

use super::captured_request::CapturedRequest;
use super::clock_steps::InterfaceClocks;
use super::connection_accounts::Accounts;
use super::host_addresses::CapturePlan;
use super::packet_copies::PacketCopies;
use super::packet_words::{StreamEndTexts, why_unread};
use crate::{Error, ImportMistakes, Imported};
use stackline_core::trace_index::RunFlow;
use stackline_dissect::connections::{CaptureConnections, StreamRegistry};
use stackline_dissect::fragments::{FragmentOutcome, FragmentReassembly};
use stackline_dissect::left_out::Bound;
use stackline_dissect::pcapng::{self, CapturePacket, OwnedCapturePacket};
use stackline_dissect::segment::{DissectedSegment, PacketReadError, PacketTransport, of_ip};
use stackline_events::unit_ids::{self, EventStreamDirection};
use stackline_events::{EventTable, EventValue};
use stackline_requests::collector::{ExchangeThreads, RequestCollector};
use stackline_requests::exchange_events::{self, HostsElsewhere};
use stackline_requests::{
    Builder, Exchange, OfDatagram, PacketPassage, Secrets, SegmentPassage, Unknown,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::io::Read;

/// Events that are given at a time.
const BATCH: usize = 1 << 13;
/// Packets of one capture that wait for those of others.
const WAITING: usize = 256;
/// Packets after which it is looked which requests are over, and sooner if so much time of the capture has gone by.
const LOOK: u64 = 1 << 14;
const LOOK_NS: u64 = 250_000_000;
/// No sooner than after so many, as that looks at all connections.
const SELDOM: u64 = 1 << 8;
/// Requests that are remembered for logs.
const MOST_ASKED: usize = Bound::Asked.most();

/// Flows from this one on are questions after names; connections have those before, and what is one more has no requests.
pub const FIRST_LOOKUP: u32 = unit_ids::LAST_FLOW / 2;
const _: () = assert!(Bound::Numbers.most() == FIRST_LOOKUP as usize);

/// What is wanted.
#[derive(Clone, Debug, Default)]
pub struct CaptureReadOptions {
    /// Names of requests with all that is in them.
    pub contents: bool,
    /// Requests are remembered for logs.
    pub asked: bool,
    /// What TLS is opened with.
    pub secrets: Option<Secrets>,
    /// What hosts are called whose captures are not here, by their addresses.
    pub elsewhere: HostsElsewhere,
    /// The first flow that is free for a question after a name, where it is behind [`FIRST_LOOKUP`].
    pub first_lookup: u32,
}

/// What is known when all was read.
#[derive(Clone, Debug, Default)]
pub struct Finished {
    /// What could not be read of each capture.
    pub mistakes: Vec<ImportMistakes>,
    /// Requests by protocol.
    pub requests: BTreeMap<&'static str, u64>,
    /// Those of which nothing more is known than that they were.
    pub void: u64,
    /// What is not known of connections.
    pub unknown: Unknown,
    /// Connections that had requests, in the order of their numbers.
    pub flows: Vec<RunFlow>,
    /// Requests, where they are wanted.
    pub asked: Vec<CapturedRequest>,
    /// What the next captures of the same connections have to know.
    pub known: StreamRegistry,
}

/// One capture.
struct CaptureSource<'r> {
    from: pcapng::CaptureReader<'r>,
    waiting: VecDeque<(u64, OwnedCapturePacket)>,
    clocks: InterfaceClocks,
    ended: bool,
    seen: CapturePacketState,
}

/// What a packet of a capture changes.
#[derive(Default)]
struct CapturePacketState {
    imported: Imported,
    connections: CaptureConnections,
    accounts: Accounts,
    /// Packets that were not read, by why.
    others: Others,
    /// It has both copies of what a host sends to itself.
    sees_both: bool,
    stream_ends: StreamEndTexts,
    copies: PacketCopies,
    fragments: FragmentReassembly,
}

/// How many packets were not read, by why: `they ...`.
type Others = BTreeMap<Cow<'static, str>, u64>;

/// Reads captures, however long they are, some events at a time.
pub struct CaptureEventReader<'r> {
    sources: Vec<CaptureSource<'r>>,
    together: SharedCaptureState<'r>,
}

/// What captures have in common.
struct SharedCaptureState<'r> {
    plan: &'r CapturePlan,
    names: Vec<String>,
    collector: RequestCollector,
    /// The capture that events of a host count to.
    source_of: Vec<usize>,
    options: CaptureReadOptions,
    /// Flows of the run from before: their units are known.
    first_flow: u32,
    known: StreamRegistry,
    builder: Builder,
    packets: u64,
    now_ns: u64,
    /// Packets and time when it was looked last.
    looked: (u64, u64),
    finished: Finished,
    over: bool,
}

impl<'r> CaptureEventReader<'r> {
    /// Begins to read captures, which are those that were surveyed for the plan, in that order.
    ///
    /// # Errors
    /// When one does not begin as a capture.
    pub fn open(
        captures: Vec<Box<dyn Read + Send + 'r>>,
        plan: &'r CapturePlan,
        known: StreamRegistry,
        options: CaptureReadOptions,
    ) -> Result<Self, Error> {
        let open = |from| {
            let from = pcapng::CaptureReader::open(from);
            let from =
                from.map_err(|cause| Error::new("this is neither pcapng nor pcap", cause))?;
            Ok(CaptureSource {
                from,
                waiting: VecDeque::new(),
                clocks: InterfaceClocks::default(),
                ended: false,
                seen: CapturePacketState::default(),
            })
        };
        let sources = captures
            .into_iter()
            .map(open)
            .collect::<Result<Vec<_>, Error>>()?;
        let source_of = |host: usize| {
            plan.places
                .iter()
                .position(|places| places.values().any(|of| *of == host))
        };
        let mut builder = Builder::new(plan.hosts.clone());
        if let Some(secrets) = &options.secrets {
            builder = builder.with_secrets(secrets.clone());
        }
        builder.number_from(options.first_lookup.max(FIRST_LOOKUP));
        let names: Vec<String> = plan.hosts.iter().map(|host| host.name.clone()).collect();
        let together = SharedCaptureState {
            plan,
            collector: RequestCollector::new(names.clone()).naming(options.elsewhere.clone()),
            names,
            source_of: (0..plan.hosts.len())
                .map(|host| source_of(host).unwrap_or(0))
                .collect(),
            options,
            first_flow: known.next_flow(),
            known,
            builder,
            packets: 0,
            now_ns: 0,
            looked: (0, 0),
            finished: Finished::default(),
            over: false,
        };
        Ok(Self { sources, together })
    }

    /// The next events, by capture; `None` when there are no more.
    pub fn next_batch(&mut self) -> Option<impl ExactSizeIterator<Item = &EventTable>> {
        let Self { sources, together } = self;
        sources
            .iter_mut()
            .for_each(|source| source.seen.imported.table.clear());
        while !together.over
            && sources
                .iter()
                .map(|source| source.seen.imported.table.len())
                .sum::<usize>()
                < BATCH
        {
            together.step(sources);
            if together.over {
                together.finish(sources);
            }
        }
        let is_more = sources
            .iter()
            .any(|source| !source.seen.imported.table.is_empty());
        is_more.then(|| sources.iter().map(|source| &source.seen.imported.table))
    }

    /// What is known when all was read.
    #[must_use]
    pub fn finish(self) -> Finished {
        let mistakes = self
            .sources
            .into_iter()
            .map(|source| source.seen.imported.mistakes)
            .collect();
        let SharedCaptureState {
            finished,
            collector,
            known,
            ..
        } = self.together;
        Finished {
            mistakes,
            requests: collector.by_protocol().clone(),
            void: collector.void(),
            flows: collector.flows().cloned().collect(),
            known,
            ..finished
        }
    }
}

impl CaptureSource<'_> {
    /// Reads on until some packets wait.
    fn fill(&mut self, together: &SharedCaptureState<'_>, at: usize) {
        if !self.waiting.is_empty() {
            return;
        }
        while !self.ended && self.waiting.len() < WAITING {
            let Self {
                from,
                waiting,
                clocks,
                seen,
                ..
            } = self;
            let step = from.step(|packet| match packet {
                Ok(packet) => {
                    if let Some(set_back) = clocks.take(packet.interface, packet.at_ns) {
                        seen.imported.mistake(set_back.describe(packet.number));
                    }
                    let host = together.host(at, packet.interface);
                    waiting.push_back((
                        together.plan.reference_ns(host, packet.at_ns),
                        packet.keep(),
                    ));
                }
                Err(mistake) => seen.imported.mistake(mistake),
            });
            if let Err(cause) = step {
                self.end(cause);
            }
        }
    }

    fn end(&mut self, cause: Option<&str>) {
        self.ended = true;
        if let Some(cause) = cause {
            self.seen
                .imported
                .mistake(format!("reading stopped: {cause}"));
        }
    }

    /// What is to be said when all packets were there.
    fn finish(&mut self) {
        for ((from, to), stream) in self.seen.connections.without_beginning() {
            self.seen.imported.mistake(format!("the beginning of {from}>{to} was not captured: its offsets (stream {stream}) are relative to the first segment seen"));
        }
        let all = self.from.packets();
        let waiting = self.seen.fragments.waiting();
        if waiting > 0 {
            self.seen
                .others
                .insert("are IP fragments of incomplete packets".into(), waiting);
        }
        self.seen
            .imported
            .left_out
            .merge(self.seen.fragments.left_out());
        for (why, count) in &self.seen.others {
            self.seen.imported.mistake(format!(
                "packets not read because they {why}: {count} of {all}"
            ));
        }
        self.seen
            .imported
            .left_out
            .merge(self.seen.connections.left_out());
        self.seen.imported.left_out.merge(self.from.left_out());
        let Imported {
            table, left_out, ..
        } = &mut self.seen.imported;
        std::mem::take(&mut self.seen.accounts).finish(table, left_out);
    }
}

impl CapturePacketState {
    /// Whether a packet of a host to itself was seen when it was sent.
    fn is_seen_again(&mut self, packet: &CapturePacket<'_>) -> bool {
        match packet.outgoing() {
            Some(true) => {
                self.sees_both = true;
                false
            }
            Some(false) => self.sees_both,
            None => false,
        }
    }

    fn unread(&mut self, why: impl Into<Cow<'static, str>>) {
        *self.others.entry(why.into()).or_default() += 1;
    }
}

impl SharedCaptureState<'_> {
    fn host(&self, at: usize, interface: &str) -> usize {
        self.plan
            .places
            .get(at)
            .and_then(|places| places.get(interface))
            .copied()
            .unwrap_or(0)
    }

    fn packet(&mut self, see: &mut CapturePacketState, at: usize, packet: &CapturePacket<'_>) {
        let host = self.host(at, packet.interface);
        let at_ns = self.plan.reference_ns(host, packet.at_ns);
        self.now_ns = self.now_ns.max(at_ns);
        match packet.carried() {
            Some(transport) => self.transport(see, host, at_ns, packet, &transport),
            None if packet.unread() == Some(PacketReadError::Fragment) => {
                match packet.ip().map(|packet| see.fragments.add(packet)) {
                    Some(FragmentOutcome::Waits) => {}
                    Some(FragmentOutcome::Whole(whole)) => {
                        match of_ip(&whole, whole.len() as u64) {
                            Some(transport) => self.transport(see, host, at_ns, packet, &transport),
                            None => see.unread("carry neither TCP nor UDP"),
                        }
                    }
                    _ => see.unread(why_unread(packet)),
                }
            }
            None => see.unread(why_unread(packet)),
        }
    }

    fn transport(
        &mut self,
        see: &mut CapturePacketState,
        host: usize,
        at_ns: u64,
        packet: &CapturePacket<'_>,
        transport: &PacketTransport<'_>,
    ) {
        match transport {
            PacketTransport::Tcp(segment, data) => {
                self.segment(see, host, at_ns, packet, segment, data)
            }
            PacketTransport::Udp(datagram, data) => {
                let (from, to) = (datagram.ends.0.ip(), datagram.ends.1.ip());
                let door = self.plan.door(host, from, to);
                match self.builder.datagram(host, door, at_ns, datagram, data) {
                    OfDatagram::Read => {}
                    OfDatagram::Foreign => see.unread(
                        "carry UDP but neither DNS nor a QUIC connection captured from its beginning",
                    ),
                    OfDatagram::Unreadable => see.unread("are not complete DNS messages"),
                }
            }
        }
    }

    fn segment(
        &mut self,
        see: &mut CapturePacketState,
        host: usize,
        at_ns: u64,
        packet: &CapturePacket<'_>,
        segment: &DissectedSegment,
        data: &[u8],
    ) {
        let (number, place) = (packet.number, packet.interface);
        let (from, to) = (segment.ends.0.ip(), segment.ends.1.ip());
        let door = self.plan.door(host, from, to);
        // What a host sends to itself comes out and in again where a capture sees all interfaces.
        let is_own = door == PacketPassage::Leaves
            && self.plan.door(host, to, from) == PacketPassage::Leaves;
        if is_own && see.is_seen_again(packet) {
            return;
        }
        if !is_own && see.copies.is_copy(packet, segment) {
            return see.unread(
                "are copies of earlier packets, as seen with several interfaces or a mirror port",
            );
        }
        let Some(known) = see.connections.locate(&mut self.known, segment) else {
            return see.imported.mistake(format!(
                "packet {number} belongs to a connection beyond the supported number of connections"
            ));
        };
        let name = &self.names[host];
        let fills_late = see.accounts.take(name, packet.at_ns, segment, &known);
        let (flow, direction) = unit_ids::stream_parts(known.stream);
        if flow >= FIRST_LOOKUP {
            see.imported.left_out.add(Bound::Numbers, 1);
        } else if flow >= self.first_flow {
            self.builder.located(
                SegmentPassage {
                    host,
                    door,
                    at_ns,
                    direction,
                },
                flow,
                segment,
                data,
            );
        }
        if segment.bytes == 0 {
            return;
        }
        let [from, to, both_ends] = see.stream_ends.of(known.stream, segment);
        let [unit, stream, offset, bytes] = [
            EventValue::Absent,
            EventValue::from(known.stream),
            EventValue::from(known.offset),
            EventValue::from(segment.bytes),
        ];
        let values = [
            unit,
            stream,
            offset,
            bytes,
            EventValue::from(place),
            EventValue::from(both_ends),
            EventValue::from(i64::from(flow)),
            EventValue::from(number),
            EventValue::from(1),
            EventValue::from(segment.length),
        ];
        let table = &mut see.imported.table;
        table.push("NET_SEEN", name, packet.at_ns, &values);
        if known.repeated || fills_late {
            let why = if known.repeated {
                "seen before"
            } else {
                "lost before the capture"
            };
            let repeated = [
                unit,
                stream,
                offset,
                bytes,
                EventValue::Text(why),
                EventValue::from(1),
                EventValue::from(from),
                EventValue::from(to),
            ];
            table.push("TCP_RETRANSMIT", name, packet.at_ns, &repeated);
        }
    }

    /// Takes the next packet: of the one capture, or the earliest of several.
    fn step(&mut self, sources: &mut [CaptureSource<'_>]) {
        match &mut sources[..] {
            [] => self.over = true,
            // One by itself needs no copies.
            [source] => {
                let CaptureSource { from, seen, .. } = source;
                let mut fresh = 0;
                let step = from.step(|packet| match packet {
                    Ok(packet) => {
                        fresh += 1;
                        self.packet(seen, 0, &packet);
                    }
                    Err(mistake) => seen.imported.mistake(mistake),
                });
                if let Err(cause) = step {
                    source.end(cause);
                    self.over = true;
                }
                self.look(sources, fresh);
            }
            sources => {
                sources
                    .iter_mut()
                    .enumerate()
                    .for_each(|(at, source)| source.fill(self, at));
                let next = sources
                    .iter()
                    .enumerate()
                    .filter_map(|(at, source)| Some((source.waiting.front()?.0, at)));
                match next.min() {
                    Some((_, at)) => {
                        let Some((_, kept)) = sources[at].waiting.pop_front() else {
                            return;
                        };
                        self.packet(&mut sources[at].seen, at, &kept.packet());
                        self.look(sources, 1);
                    }
                    None => self.over = true,
                }
            }
        }
    }

    /// Requests that are over after some more packets.
    fn look(&mut self, sources: &mut [CaptureSource<'_>], packets: u64) {
        self.packets += packets;
        let (at, then_ns) = self.looked;
        let (since, since_ns) = (self.packets - at, self.now_ns.saturating_sub(then_ns));
        if since >= LOOK || (since >= SELDOM && since_ns >= LOOK_NS) {
            self.looked = (self.packets, self.now_ns);
            for exchange in self.builder.advance(self.now_ns) {
                self.record_exchange(sources, &exchange);
            }
            self.record_quic(sources);
        } else if self.builder.is_full() {
            for exchange in self.builder.take_done() {
                self.record_exchange(sources, &exchange);
            }
        }
    }

    fn finish(&mut self, sources: &mut [CaptureSource<'_>]) {
        let (left, unknown) = self.builder.finish();
        for exchange in left {
            self.record_exchange(sources, &exchange);
        }
        self.record_quic(sources);
        self.finished.unknown.left_out.merge(&unknown.left_out);
        self.finished.unknown = Unknown {
            left_out: std::mem::take(&mut self.finished.unknown.left_out),
            ..unknown
        };
        let (plan, names, source_of) = (self.plan, &self.names, &self.source_of);
        self.collector
            .finish(&mut own_events(plan, names, source_of, sources));
        sources.iter_mut().for_each(CaptureSource::finish);
        let left_out = &mut self.finished.unknown.left_out;
        sources
            .iter()
            .for_each(|source| left_out.merge(&source.seen.imported.left_out));
        left_out.merge(self.collector.left_out());
        left_out.merge(&self.plan.left_out);
        left_out.merge(self.known.left_out());
    }

    /// A request that is over.
    fn record_exchange(&mut self, sources: &mut [CaptureSource<'_>], exchange: &Exchange) {
        let context = exchange_events::ExchangeContext {
            contents: self.options.contents,
            segments: !exchange.is_over_quic(),
            ..exchange_events::ExchangeContext::default()
        };
        let (plan, names, source_of) = (self.plan, &self.names, &self.source_of);
        self.collector.add(
            exchange,
            &context,
            ExchangeThreads::default(),
            &mut own_events(plan, names, source_of, sources),
        );
        self.remember(exchange);
    }

    /// Connections of QUIC that are over.
    fn record_quic(&mut self, sources: &mut [CaptureSource<'_>]) {
        let (plan, names, source_of) = (self.plan, &self.names, &self.source_of);
        for account in self.builder.take_quic_accounts() {
            account.emit(names, &mut own_events(plan, names, source_of, sources));
        }
    }

    /// A log may tell of it.
    fn remember(&mut self, exchange: &Exchange) {
        let (Some(begin), Some(end)) = (exchange.asked_ns(), exchange.end_ns()) else {
            return;
        };
        let Some(response) = &exchange.response else {
            return;
        };
        let from = exchange.request.arrived.map_or(begin, |(first, _)| first);
        let to = response.left.map_or(end, |(_, last)| last);
        if self.options.asked && self.finished.asked.len() >= MOST_ASKED {
            self.finished.unknown.left_out.add(Bound::Asked, 1);
        } else if self.options.asked {
            let direction = if exchange.reversed {
                EventStreamDirection::There
            } else {
                EventStreamDirection::Back
            };
            let stream = unit_ids::stream(exchange.flow & unit_ids::LAST_FLOW, direction);
            let own = |at_ns| {
                exchange
                    .server
                    .host
                    .map_or(at_ns, |host| self.plan.own_ns(host, at_ns))
            };
            self.finished.asked.push(CapturedRequest {
                unit: exchange_events::unit_of(exchange),
                answer: (stream, response.from, response.end - response.from),
                server: self.collector.place_name(&exchange.server),
                name: exchange.name.whole().to_owned(),
                status: exchange.status.kept().to_owned(),
                at_ns: (own(from), own(to)),
            });
        }
    }
}

/// Puts events into the tables of the captures that they are of, in the time of each host's own clock.
fn own_events<'s>(
    plan: &'s CapturePlan,
    names: &'s [String],
    source_of: &'s [usize],
    sources: &'s mut [CaptureSource<'_>],
) -> impl FnMut(&str, &str, u64, &[EventValue<'_>]) {
    move |name, keyword, at_ns, values| {
        let Some(host) = names.iter().position(|known| known == name) else {
            return;
        };
        let table = &mut sources[source_of[host]].seen.imported.table;
        table.push(keyword, name, plan.own_ns(host, at_ns), values);
    }
}

#[cfg(test)]
pub(super) mod testing;
