//! What an emulated network did to traced requests: in which queue their packets waited and behind whose packets, where they were dropped,
//! and how full the slowest link of their path was. Without events of a network there are no results.

use crate::findings::event_log::{FindingEventLog, FlowByteRange};
use crate::findings::finding::{Evidence, counted, percent};
use crate::findings::measured::path::on_the_link;
use crate::findings::packets::{PacketEventFields, packet_range, read_port_name};
use crate::findings::requests::path_rates::FULL;
use crate::findings::requests::request::{TracedRequest, client_name, server_name};
use crate::statistics::to_f64;
use stackline_core::trace_index::RunFlow;
use stackline_core::units;
use stackline_events::unit_ids::{self, EventStreamDirection, stream, stream_parts};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The most packets for which the contents of the queue before them are computed.
const MOST_PACKETS: usize = 4096;
/// One connection is named alone if it has at least this share of the bytes of all other connections.
const NEARLY_ALL: f64 = 0.8;

/// The messages (requests and answers) of some requests: stream and offset of the first byte, with the offset behind the last byte.
#[derive(Debug, Default)]
pub(crate) struct RequestMessages(BTreeMap<(i64, i64), i64>);

/// A queue, and what was in it ahead of packets that arrived.
#[derive(Debug, Default)]
pub(crate) struct ContendedQueue {
    /// The port behind it.
    pub(crate) port: String,
    /// How long all packets together waited there for those ahead of them.
    pub(crate) waited_ns: f64,
    /// The rows of their `NET_ENQUEUE` events.
    rows: Vec<u32>,
    /// The bytes that were ahead of them.
    before: QueuedBytesAhead,
}

/// The bytes ahead of packets that arrived at a queue, by connection.
#[derive(Debug, Default)]
struct QueuedBytesAhead {
    /// The number of packets that arrived.
    packets: u64,
    /// The sum of bytes of their own connection.
    own: u64,
    /// The sum of bytes of other connections, by stream (`None` for packets without one).
    others: BTreeMap<Option<i64>, u64>,
}

/// The place where most packets of some messages were dropped.
#[derive(Debug)]
pub(crate) struct Drops {
    /// The number of packets dropped there.
    count: u64,
    /// The number of packets dropped anywhere.
    all: u64,
    /// The rows of the drops there.
    rows: Vec<u32>,
    /// The port.
    place: String,
    /// Why they were dropped.
    reason: String,
    /// The bytes queued ahead of them; empty if the link lost them.
    before: QueuedBytesAhead,
}

/// The slowest link of the paths of some messages.
#[derive(Debug)]
pub(crate) struct Slowest {
    /// The port.
    port: String,
    /// Its rate.
    bit_s: f64,
    /// The share of the time in which it was transmitting while messages crossed it, 0 to 1.
    full: f64,
    /// The share of other connections in the bytes that crossed it meanwhile, 0 to 1.
    others: f64,
    /// The rows of the messages' packets that left through it.
    rows: Vec<u32>,
}

impl RequestMessages {
    /// The messages of requests with these units.
    pub(crate) fn from_log(log: &FindingEventLog<'_>, units: &BTreeSet<i64>) -> Self {
        let mut all = BTreeMap::new();
        for row in ["APP_CALL", "APP_REPLY"]
            .into_iter()
            .flat_map(|keyword| log.rows(keyword))
        {
            if log
                .number(*row, "unit")
                .is_some_and(|unit| units.contains(&unit))
                && let Some(range) = log.range(*row)
            {
                all.insert((range.stream, range.from), range.to);
            }
        }
        Self(all)
    }

    /// Keeps only messages of at least that many bytes.
    pub(crate) fn of_length(mut self, least: i64) -> Self {
        self.0.retain(|(_, from), to| *to - *from >= least);
        self
    }

    /// The message of which a packet carries bytes, as stream and offset of its first byte.
    fn met(&self, packet: &FlowByteRange) -> Option<(i64, i64)> {
        let last = self.0.range(..(packet.stream, packet.to)).next_back();
        last.filter(|((stream, _), to)| *stream == packet.stream && **to > packet.from)
            .map(|(key, _)| *key)
    }

    /// The events with that keyword of packets that carry bytes of these messages: row, and the message.
    fn rows<'m>(
        &'m self,
        log: &'m FindingEventLog<'_>,
        keyword: &str,
    ) -> impl Iterator<Item = (u32, (i64, i64))> + 'm {
        let of = |row: &u32| Some((*row, self.met(&packet_range(log, *row)?)?));
        log.rows(keyword).iter().filter_map(of)
    }
}

impl ContendedQueue {
    /// The queue in which packets of these messages waited longest behind others; `None` if queues were not recorded.
    pub(crate) fn from_log(log: &FindingEventLog<'_>, messages: &RequestMessages) -> Option<Self> {
        let fields = PacketEventFields::new()?;
        let number = |row: u32, field| log.input.events.number(row as usize, field).unwrap_or(0);
        let mut came: HashMap<(&str, i64), (u32, f64)> = HashMap::new();
        for (row, _) in messages.rows(log, "NET_ENQUEUE") {
            let (queued, own) = (number(row, fields.queued), number(row, fields.length));
            // The share of its time there that is due to packets ahead; in the rest it was transmitted itself.
            let before =
                to_f64((queued - own).max(0).unsigned_abs()) / to_f64(queued.max(1).unsigned_abs());
            came.insert(
                (read_port_name(log, row, fields), number(row, fields.number)),
                (row, before),
            );
        }
        let mut queues: BTreeMap<&str, Self> = BTreeMap::new();
        for row in log.rows("NET_DEQUEUE") {
            let Some((came, before)) = came.get(&(
                read_port_name(log, *row, fields),
                number(*row, fields.number),
            )) else {
                continue;
            };
            let queue = queues.entry(read_port_name(log, *row, fields)).or_default();
            queue.waited_ns += before * to_f64(log.at(*row).saturating_sub(log.at(*came)));
            queue.rows.push(*came);
        }
        let (port, mut queue) = queues
            .into_iter()
            .max_by(|a, b| a.1.waited_ns.total_cmp(&b.1.waited_ns))?;
        port.clone_into(&mut queue.port);
        queue.before = QueuedBytesAhead::from_log(log, fields, port, &queue.rows);
        Some(queue)
    }

    /// Whose packets were ahead: `of the 84 kB queued ahead of them there, 92 % belonged to another connection: ...`.
    pub(crate) fn words(&self, log: &FindingEventLog<'_>) -> Option<String> {
        self.before.words(log)
    }

    pub(crate) fn evidence(&self, log: &FindingEventLog<'_>) -> Evidence {
        let packets = counted(self.rows.len() as u64, "packet");
        let waited = units::format_time(self.waited_ns / 1e9);
        log.evidence(
            format!("{packets} waited {waited} in total before {}", self.port),
            &self.rows,
        )
    }
}

impl QueuedBytesAhead {
    /// Replays the events of a port to find the bytes ahead of packets whose events are `came` (at most [`MOST_PACKETS`] of them).
    fn from_log(
        log: &FindingEventLog<'_>,
        fields: PacketEventFields,
        port: &str,
        came: &[u32],
    ) -> Self {
        let number = |row: u32, field| log.input.events.number(row as usize, field);
        let came: BTreeSet<u32> = came.iter().copied().take(MOST_PACKETS).collect();
        // Of events at the same moment, departures and drops count before arrivals.
        let kinds = [("NET_DEQUEUE", 0_u8), ("NET_DROP", 1), ("NET_ENQUEUE", 2)];
        let at_port = |(keyword, kind): (&str, u8)| {
            let rows = log
                .rows(keyword)
                .iter()
                .filter(|row| read_port_name(log, **row, fields) == port);
            rows.map(|row| (log.at(*row), kind, *row))
                .collect::<Vec<_>>()
        };
        let mut happened: Vec<(u64, u8, u32)> = kinds.into_iter().flat_map(at_port).collect();
        happened.sort_unstable();
        let mut queue: HashMap<i64, (Option<i64>, u64)> = HashMap::new();
        let mut queued: BTreeMap<Option<i64>, u64> = BTreeMap::new();
        let mut before = Self::default();
        for (_, kind, row) in happened {
            let of = number(row, fields.stream);
            let (id, bytes) = (
                number(row, fields.number).unwrap_or(-1),
                number(row, fields.length).unwrap_or(0),
            );
            let bytes = bytes.max(0).unsigned_abs();
            if came.contains(&row) {
                before.add(&queued, of);
            }
            if kind == 2 {
                queue.entry(id).or_insert((of, 0)).1 += bytes;
                *queued.entry(of).or_default() += bytes;
            } else if let Some((of, left)) = queue.get_mut(&id) {
                let gone = bytes.min(*left);
                *left -= gone;
                let all = queued.entry(*of).or_default();
                *all = all.saturating_sub(gone);
                let (of, is_gone, is_empty) = (*of, *left == 0, *all == 0);
                if is_gone {
                    queue.remove(&id);
                }
                if is_empty {
                    queued.remove(&of);
                }
            }
        }
        before
    }

    fn add(&mut self, queued: &BTreeMap<Option<i64>, u64>, own: Option<i64>) {
        let flow = |of: Option<i64>| of.map(|of| stream_parts(of).0);
        self.packets += 1;
        for (of, bytes) in queued {
            let is_own = of.is_some() && flow(*of) == flow(own);
            *(if is_own {
                &mut self.own
            } else {
                self.others.entry(*of).or_default()
            }) += bytes;
        }
    }

    fn words(&self, log: &FindingEventLog<'_>) -> Option<String> {
        let others: u64 = self.others.values().sum();
        let all = others + self.own;
        let size = units::format_size(all / self.packets.max(1));
        if all == 0 {
            return None;
        }
        let share = to_f64(others) / to_f64(all);
        let text = format!("of the {size} queued ahead of them there, ");
        if share < 0.5 {
            return Some(format!(
                "{text}{} belonged to their own connection",
                percent(1.0 - share)
            ));
        }
        let (most, bytes) = self.others.iter().max_by_key(|(_, bytes)| **bytes)?;
        let name = most.and_then(|most| flow_name(log, most));
        let is_one = to_f64(*bytes) >= NEARLY_ALL * to_f64(others);
        let words = match (is_one, name) {
            (true, Some(name)) => format!(
                "{} belonged to another connection: {name}",
                percent(to_f64(*bytes) / to_f64(all))
            ),
            (true, None) => format!(
                "{} belonged to another connection",
                percent(to_f64(*bytes) / to_f64(all))
            ),
            (false, name) => {
                let most = name.map_or_else(String::new, |name| format!(", mostly {name}"));
                format!(
                    "{} belonged to {} other connections{most}",
                    percent(share),
                    self.others.len()
                )
            }
        };
        Some(text + &words)
    }
}

impl Drops {
    /// The place and reason for which most packets of these messages were dropped; `None` if none was.
    pub(crate) fn from_log(log: &FindingEventLog<'_>, messages: &RequestMessages) -> Option<Self> {
        let fields = PacketEventFields::new()?;
        let mut by_place: BTreeMap<(&str, &str), Vec<u32>> = BTreeMap::new();
        let mut all = 0;
        for (row, _) in messages.rows(log, "NET_DROP") {
            let reason = log.text(row, "reason").unwrap_or_default();
            by_place
                .entry((read_port_name(log, row, fields), reason))
                .or_default()
                .push(row);
            all += 1;
        }
        let ((place, reason), rows) = by_place.into_iter().max_by_key(|(_, rows)| rows.len())?;
        let before = if on_the_link(reason) {
            QueuedBytesAhead::default()
        } else {
            QueuedBytesAhead::from_log(log, fields, place, &rows)
        };
        let (count, place, reason) = (rows.len() as u64, place.to_owned(), reason.to_owned());
        Some(Self {
            count,
            all,
            rows,
            place,
            reason,
            before,
        })
    }

    /// The drops in words: `3 of 4 were lost on the link a>b`.
    pub(crate) fn words(&self, log: &FindingEventLog<'_>) -> String {
        let count = match self.count {
            1 if self.all == 1 => "it was".into(),
            all if all == self.all => "they were".into(),
            1 => format!("1 of {} was", self.all),
            several => format!("{several} of {} were", self.all),
        };
        let Self { place, reason, .. } = self;
        if on_the_link(reason) {
            let how = if reason == "lost on the link" {
                "lost".into()
            } else {
                format!("damaged ({reason})")
            };
            return format!("{count} {how} on the link {place}");
        }
        let whose = self
            .before
            .words(log)
            .map_or_else(String::new, |whose| format!("; {whose}"));
        format!("{count} dropped before {place}: {reason}{whose}")
    }

    pub(crate) fn evidence(&self, log: &FindingEventLog<'_>) -> Evidence {
        log.evidence(
            format!(
                "{} dropped at {}: {}",
                counted(self.count, "packet"),
                self.place,
                self.reason
            ),
            &self.rows,
        )
    }
}

impl Slowest {
    /// The slowest of the links that these messages crossed, of those whose rates are known.
    pub(crate) fn from_log(log: &FindingEventLog<'_>, messages: &RequestMessages) -> Option<Self> {
        let fields = PacketEventFields::new()?;
        let mut rates: BTreeMap<&str, f64> = BTreeMap::new();
        for row in log.rows("PORT_SETUP") {
            let rate = log.number(*row, "rate_bit_s").filter(|rate| *rate > 0);
            if let (Some(port), Some(rate)) = (log.text(*row, "port"), rate) {
                rates.insert(port, to_f64(rate.unsigned_abs()));
            }
        }
        let came: Vec<(u32, (i64, i64))> = messages.rows(log, "NET_ENQUEUE").collect();
        let ports: BTreeSet<&str> = came
            .iter()
            .map(|(row, _)| read_port_name(log, *row, fields))
            .collect();
        let known = ports
            .into_iter()
            .filter_map(|port| Some((port, *rates.get(port)?)));
        let (port, bit_s) = known.min_by(|a, b| a.1.total_cmp(&b.1))?;
        let here = |row: &u32| read_port_name(log, *row, fields) == port;
        // When each message crossed the link: from its first packet's arrival to its last one's departure.
        let mut spans: BTreeMap<(i64, i64), (u64, u64)> = BTreeMap::new();
        for (row, message) in came.iter().filter(|(row, _)| here(row)) {
            spans
                .entry(*message)
                .or_insert((log.at(*row), log.at(*row)));
        }
        let mut rows = Vec::new();
        for (row, message) in messages
            .rows(log, "NET_DEQUEUE")
            .filter(|(row, _)| here(row))
        {
            spans
                .entry(message)
                .and_modify(|span| span.1 = span.1.max(log.at(row)));
            rows.push(row);
        }
        let spans = united(spans.into_values().collect());
        let ns: u64 = spans.iter().map(|(from, to)| to - from).sum();
        let (mut own, mut others) = (0_u64, 0_u64);
        let flows: BTreeSet<u32> = messages
            .0
            .keys()
            .map(|(stream, _)| stream_parts(*stream).0)
            .collect();
        for row in log.rows("NET_DEQUEUE").iter().filter(|row| here(row)) {
            let at = log.at(*row);
            let next = spans.partition_point(|(from, _)| *from < at);
            if next == 0 || spans[next - 1].1 < at {
                continue;
            }
            let number = |field| log.input.events.number(*row as usize, field);
            let is_own =
                number(fields.stream).is_some_and(|stream| flows.contains(&stream_parts(stream).0));
            let sum = if is_own { &mut own } else { &mut others };
            *sum = sum.saturating_add(number(fields.length).unwrap_or(0).max(0).unsigned_abs());
        }
        if ns == 0 {
            return None;
        }
        let full = (to_f64(own + others) * 8e9 / (bit_s * to_f64(ns))).min(1.0);
        let others = to_f64(others) / to_f64((own + others).max(1));
        Some(Self {
            port: port.to_owned(),
            bit_s,
            full,
            others,
            rows,
        })
    }

    /// Whether it was transmitting nearly all the time.
    pub(crate) fn is_full(&self) -> bool {
        self.full >= FULL
    }

    /// Its rate, bit/s.
    pub(crate) const fn bit_s(&self) -> f64 {
        self.bit_s
    }

    /// The share of the time in which it was transmitting, 0 to 1.
    pub(crate) const fn share(&self) -> f64 {
        self.full
    }

    /// The link in words: `the slowest link of their path, a>b (10 Mbit/s), was 97 % full while they crossed it`.
    pub(crate) fn words(&self) -> String {
        let whose = if self.others >= 0.05 {
            format!(", {} of that with other traffic", percent(self.others))
        } else {
            String::new()
        };
        format!(
            "the slowest link of their path, {} ({}), was {} full while they crossed it{whose}",
            self.port,
            units::format_rate(self.bit_s),
            percent(self.full)
        )
    }

    pub(crate) fn evidence(&self, log: &FindingEventLog<'_>) -> Evidence {
        log.evidence(
            format!(
                "{} left through {}",
                counted(self.rows.len() as u64, "packet"),
                self.port
            ),
            &self.rows,
        )
    }
}

/// The union of time spans, as disjoint spans in order.
fn united(mut spans: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    spans.sort_unstable();
    let mut all: Vec<(u64, u64)> = Vec::new();
    for (from, to) in spans {
        match all.last_mut().filter(|last| last.1 >= from) {
            Some(last) => last.1 = last.1.max(to),
            None => all.push((from, to)),
        }
    }
    all
}

/// The sender and the receiver of a stream, in words: programs, if requests on it show them, and addresses from `NET_FLOW`.
pub(crate) fn flow_name(log: &FindingEventLog<'_>, of: i64) -> Option<String> {
    let (flow, direction) = stream_parts(of);
    let there = stream(flow, EventStreamDirection::There);
    let row = *log
        .rows("NET_FLOW")
        .iter()
        .find(|row| log.number(**row, "stream") == Some(there))?;
    let (initiator, responder) = (log.text(row, "initiator")?, log.text(row, "responder")?);
    let in_order = |initiator: &str, responder: &str| match direction {
        EventStreamDirection::There => format!("{initiator} > {responder}"),
        EventStreamDirection::Back => format!("{responder} > {initiator}"),
    };
    let addresses = in_order(initiator, responder);
    Some(match programs(log, flow) {
        Some((initiator, responder)) => {
            format!("{} ({addresses})", in_order(&initiator, &responder))
        }
        None => addresses,
    })
}

/// The programs that opened a flow and accepted it, where known. If the server's program is not known from this flow, its name on other
/// connections to the same port is taken.
fn programs(log: &FindingEventLog<'_>, flow: u32) -> Option<(String, String)> {
    let requests = &log.costs()?.requests;
    let of_flow = |request: &&TracedRequest| unit_ids::parts(request.unit).0 == flow;
    let request = requests.iter().find(of_flow)?;
    let is_alike = |other: &&TracedRequest| {
        let is_there = other.server == request.server && other.port == request.port;
        is_there && !other.programs.1.is_empty()
    };
    let named = requests.iter().find(is_alike).unwrap_or(request);
    let ends = (client_name(request), server_name(named));
    let flows = &log.input.index.flows;
    let is_reversed = |known: &&RunFlow| known.id == flow && known.hosts.0 != request.client;
    let has_names = !request.programs.0.is_empty() || !named.programs.1.is_empty();
    has_names.then(|| match flows.iter().any(|known| is_reversed(&known)) {
        true => (ends.1, ends.0),
        false => ends,
    })
}
