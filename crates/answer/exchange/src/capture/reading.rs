//! Reads captures together: takes their packets in the order of time and makes events of segments, connections and requests.

use super::captured_request::CapturedRequest;
use super::clock_steps::InterfaceClocks;
use super::connection_accounts::Accounts;
use super::host_addresses::CapturePlan;
use super::packet_copies::PacketCopies;
use super::packet_words::{StreamEndTexts, why_unread};
use crate::{Error, ImportMistakes, Imported};
use stackline_core::trace_index::RunFlow;
use stackline_dissect::connections::{CaptureConnections, Location, StreamRegistry};
use stackline_dissect::fragments::{FragmentOutcome, FragmentReassembly};
use stackline_dissect::left_out::Bound;
use stackline_dissect::pcapng::{self, CapturePacket, OwnedCapturePacket};
use stackline_dissect::segment::{DissectedSegment, PacketReadError, PacketTransport, of_ip};
use stackline_events::catalogue::rows::{NetSeen, TcpRetransmit};
use stackline_events::unit_ids::{self, EventStreamDirection};
use stackline_events::{EmittedEvent, EventTable, EventValue};
use stackline_requests::collector::{ExchangeThreads, RequestCollector};
use stackline_requests::exchange_events::{self, HostsElsewhere};
use stackline_requests::{
    Builder, Exchange, OfDatagram, PacketPassage, Secrets, SegmentPassage, Unknown,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::io::Read;

/// The number of events in a batch.
const BATCH: usize = 1 << 13;
/// The most packets of one capture that wait for packets of the others.
const WAITING: usize = 256;
/// After how many packets, or how much time of the captures (ns), ended requests are looked for.
const LOOK: u64 = 1 << 14;
const LOOK_NS: u64 = 250_000_000;
/// The fewest packets between two such looks, as each look goes through all connections.
const SELDOM: u64 = 1 << 8;
/// The most requests that are remembered for access logs.
const MOST_ASKED: usize = Bound::Asked.most();

/// Flow numbers from this one on are for DNS lookups, those below for connections. A connection that would get a larger number has no
/// requests.
pub const FIRST_LOOKUP: u32 = unit_ids::LAST_FLOW / 2;
const _: () = assert!(Bound::Numbers.most() == FIRST_LOOKUP as usize);

/// What the reader should do.
#[derive(Clone, Debug, Default)]
pub struct CaptureReadOptions {
    /// Whether names of requests are kept unredacted.
    pub contents: bool,
    /// Whether requests are remembered, to be matched with access logs.
    pub asked: bool,
    /// Secrets with which TLS is decrypted.
    pub secrets: Option<Secrets>,
    /// Names of hosts that were not captured, by address.
    pub elsewhere: HostsElsewhere,
    /// The first free flow number for DNS lookups, if it is above [`FIRST_LOOKUP`].
    pub first_lookup: u32,
}

/// The results after all packets were read.
#[derive(Clone, Debug, Default)]
pub struct Finished {
    /// What could not be read, for each capture.
    pub mistakes: Vec<ImportMistakes>,
    /// The number of requests, by protocol.
    pub requests: BTreeMap<&'static str, u64>,
    /// The number of requests of which nothing more is known than that they existed.
    pub void: u64,
    /// What is not known of connections.
    pub unknown: Unknown,
    /// Connections with requests, by flow number.
    pub flows: Vec<RunFlow>,
    /// The requests, if [`CaptureReadOptions::asked`] is set.
    pub asked: Vec<CapturedRequest>,
    /// The stream ids, for further captures of the same connections.
    pub known: StreamRegistry,
}

/// One capture that is being read.
struct CaptureSource<'r> {
    from: pcapng::CaptureReader<'r>,
    /// Packets that were read ahead, with their times by the first host's clock, ns.
    waiting: VecDeque<(u64, OwnedCapturePacket)>,
    clocks: InterfaceClocks,
    ended: bool,
    /// What its packets have shown so far.
    seen: CapturePacketState,
}

/// The state of one capture that its packets change.
#[derive(Default)]
struct CapturePacketState {
    imported: Imported,
    connections: CaptureConnections,
    accounts: Accounts,
    /// The number of packets that were not read, by reason.
    others: Others,
    /// Whether the capture has both copies of packets that a host sends to itself: outgoing and incoming.
    sees_both: bool,
    stream_ends: StreamEndTexts,
    copies: PacketCopies,
    fragments: FragmentReassembly,
}

/// Numbers of packets by the reason why they were not read.
type Others = BTreeMap<Cow<'static, str>, u64>;

/// Reads captures of any length and returns their events in batches.
pub struct CaptureEventReader<'r> {
    sources: Vec<CaptureSource<'r>>,
    together: SharedCaptureState<'r>,
}

/// The state that all captures share.
struct SharedCaptureState<'r> {
    plan: &'r CapturePlan,
    /// The names of the plan's hosts.
    names: Vec<String>,
    collector: RequestCollector,
    /// For each host, the capture that its request events are counted to.
    source_of: Vec<usize>,
    options: CaptureReadOptions,
    /// Flows below this one were imported earlier; their requests are known.
    first_flow: u32,
    known: StreamRegistry,
    builder: Builder,
    /// The number of packets so far.
    packets: u64,
    /// The latest time by the first host's clock, ns.
    now_ns: u64,
    /// The values of `packets` and `now_ns` when ended requests were last looked for.
    looked: (u64, u64),
    finished: Finished,
    /// Whether all packets were read.
    over: bool,
}

impl<'r> CaptureEventReader<'r> {
    /// Starts reading. The captures must be those of the plan's surveys, in the same order.
    ///
    /// # Errors
    /// If one of them is neither pcapng nor pcap.
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

    /// The next events, one table for each capture; `None` at the end.
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

    /// The results; call it after [`CaptureEventReader::next_batch`] has returned `None`.
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
    /// Reads packets ahead if none is waiting.
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

    /// Stops reading this capture; `cause` is the reason, if it is not its end.
    fn end(&mut self, cause: Option<&str>) {
        self.ended = true;
        if let Some(cause) = cause {
            self.seen
                .imported
                .mistake(format!("reading stopped: {cause}"));
        }
    }

    /// Adds the final messages, counts and connection events of this capture.
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
    /// Whether this is the incoming copy of a packet that a host sent to itself and whose outgoing copy was captured.
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

    /// Emits that the data of a segment were seen on the host `name`, and that they were retransmitted if they were seen before or fill a
    /// gap late.
    fn emit_data(
        &mut self,
        name: &str,
        packet: &CapturePacket<'_>,
        segment: &DissectedSegment,
        known: &Location,
        fills_late: bool,
    ) {
        let [from, to, both_ends] = self.stream_ends.texts_of(known.stream, segment);
        let seen = NetSeen {
            stream: known.stream.into(),
            offset: known.offset.into(),
            bytes: segment.bytes.into(),
            place: EventValue::from(packet.interface),
            way: EventValue::from(both_ends),
            flow: i64::from(unit_ids::stream_parts(known.stream).0).into(),
            number: packet.number.into(),
            segments: 1.into(),
            length: segment.length.into(),
            ..NetSeen::default()
        };
        let mut emit = self.imported.table.emitter();
        seen.emit_on(name, packet.at_ns, &mut emit);
        if known.repeated || fills_late {
            let why = if known.repeated {
                "seen before"
            } else {
                "lost before the capture"
            };
            let again = TcpRetransmit {
                stream: seen.stream,
                offset: seen.offset,
                bytes: seen.bytes,
                cause: why.into(),
                segments: 1.into(),
                local: EventValue::from(from),
                remote: EventValue::from(to),
                ..TcpRetransmit::default()
            };
            again.emit_on(name, packet.at_ns, &mut emit);
        }
    }

    /// Counts a packet that was not read.
    fn unread(&mut self, why: impl Into<Cow<'static, str>>) {
        *self.others.entry(why.into()).or_default() += 1;
    }
}

impl SharedCaptureState<'_> {
    /// The host of an interface of a capture.
    fn host(&self, at: usize, interface: &str) -> usize {
        self.plan
            .places
            .get(at)
            .and_then(|places| places.get(interface))
            .copied()
            .unwrap_or(0)
    }

    /// Takes one packet of the capture `at`.
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

    /// Takes the TCP segment or UDP datagram of a packet.
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

    /// Takes a TCP segment.
    fn segment(
        &mut self,
        see: &mut CapturePacketState,
        host: usize,
        at_ns: u64,
        packet: &CapturePacket<'_>,
        segment: &DissectedSegment,
        data: &[u8],
    ) {
        let (from, to) = (segment.ends.0.ip(), segment.ends.1.ip());
        let door = self.plan.door(host, from, to);
        // A packet that a host sends to itself is captured twice, going out and coming in, if all interfaces are captured.
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
                "packet {} belongs to a connection beyond the supported number of connections",
                packet.number
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
        if segment.bytes > 0 {
            see.emit_data(name, packet, segment, &known, fills_late);
        }
    }

    /// Takes the next packet: of the only capture, or the earliest one of several.
    fn step(&mut self, sources: &mut [CaptureSource<'_>]) {
        match &mut sources[..] {
            [] => self.over = true,
            // With one capture, packets need not be copied to wait for others.
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

    /// After some more packets, looks for requests that have ended, and records them.
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

    /// Ends all connections and captures.
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

    /// Adds the events of a request that has ended.
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

    /// Adds the events of QUIC connections that have ended.
    fn record_quic(&mut self, sources: &mut [CaptureSource<'_>]) {
        let (plan, names, source_of) = (self.plan, &self.names, &self.source_of);
        for account in self.builder.take_quic_accounts() {
            account.emit(names, &mut own_events(plan, names, source_of, sources));
        }
    }

    /// Remembers a request to be matched with access logs.
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
                port: exchange.server.address.port(),
                name: exchange.name.whole().to_owned(),
                status: exchange.status.kept().to_owned(),
                at_ns: (own(from), own(to)),
            });
        }
    }
}

/// Returns a function that adds an event to the table of its host's capture, with its time converted to that host's own clock.
fn own_events<'s>(
    plan: &'s CapturePlan,
    names: &'s [String],
    source_of: &'s [usize],
    sources: &'s mut [CaptureSource<'_>],
) -> impl FnMut(&EmittedEvent<'_>) {
    move |event| {
        let Some(host) = names.iter().position(|known| known == event.host) else {
            return;
        };
        let table = &mut sources[source_of[host]].seen.imported.table;
        let at_ns = plan.own_ns(host, event.at_ns);
        table.push(event.keyword, event.host, at_ns, event.values);
    }
}

#[cfg(test)]
pub(super) mod testing;
