//! Collects when each unit began and ended on each host, and pairs the hosts that have units in common. `clocks.rs` decides what
//! that says about their clocks.

use crate::assemble::unit_id_index::ByNumber;
use stackline_core::trace_index::{ClockExchange, Index};
use stackline_events::{EventTable, EventValue};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The data fields that are read: the unit's id; of spans also their own id and their parent's.
pub(super) const FIELDS: [usize; 3] = [UNIT, SPAN, PARENT];
const UNIT: usize = 0;
const SPAN: usize = 1;
const PARENT: usize = 2;

/// Most units that are kept. If there are more, every second (then every fourth, and so on) is kept, chosen by hash so that all
/// hosts keep the same units.
const MOST: usize = 1 << 17;

/// The time range of a unit's events on one host.
#[derive(Clone, Copy, Debug)]
struct HostStay {
    /// Time of the first event, ns.
    from_ns: u64,
    /// Time of the last event, ns.
    to_ns: u64,
    /// The number of events.
    events: u32,
    /// Whether its request began here (APP_CALL).
    asks: bool,
    /// Whether its response came here (APP_RESPONSE).
    is_answered: bool,
}

impl HostStay {
    const fn at(at_ns: u64) -> Self {
        Self {
            from_ns: at_ns,
            to_ns: at_ns,
            events: 1,
            asks: false,
            is_answered: false,
        }
    }

    /// Whether the host may have waited for what another host did. A response without a request (a push) is not waited for, nor a
    /// request without a response.
    const fn may_enclose(&self) -> bool {
        self.events > 1 && self.asks == self.is_answered
    }

    fn extend_by(&mut self, more: Self) {
        self.from_ns = self.from_ns.min(more.from_ns);
        self.to_ns = self.to_ns.max(more.to_ns);
        self.events = self.events.saturating_add(more.events);
        self.asks |= more.asks;
        self.is_answered |= more.is_answered;
    }
}

/// A span of a unit: its host, its time range and its parent.
#[derive(Clone, Copy, Debug)]
struct SpanSighting {
    /// The number of the host.
    host: u32,
    stay: HostStay,
    /// The key of the parent in [`UnitSightings::spans`].
    parent: Option<u64>,
}

/// The time range of every unit on every host. Units and spans are identified by a hash of their ids.
#[derive(Debug, Default)]
pub(super) struct UnitSightings {
    /// Names of the hosts by their numbers.
    hosts: Vec<String>,
    /// By hash of the unit's id: its hosts with its time range on each.
    units: ByNumber<u64, Vec<(u32, HostStay)>>,
    /// A mask: a unit is kept if these bits of its hash are zero.
    left_out: u64,
    /// Spans of units, by a hash of both ids.
    spans: ByNumber<u64, SpanSighting>,
    /// Hosts that call others.
    calls: BTreeSet<u32>,
    /// Hosts that are called by others.
    called: BTreeSet<u32>,
}

/// The units that two hosts have in common. The outer host has more than one event of each unit, so its stay has a length.
#[derive(Debug)]
pub(super) struct HostPairExchanges {
    pub(super) outer: String,
    pub(super) inner: String,
    /// In the order of time: when each unit began on the outer host, began and ended on the inner host, and ended on the outer host.
    pub(super) exchanges: Vec<ClockExchange>,
    /// The same for spans of the inner host and their parent spans on the outer host, which lie closer around them than whole units do.
    pub(super) of_parents: Vec<ClockExchange>,
    /// Whether the events themselves (calls, or spans with parents) say that the outer host waits for the inner one; else only their
    /// times suggest it.
    pub(super) is_known: bool,
}

impl UnitSightings {
    pub(super) fn add(&mut self, table: &EventTable, index: &Index) {
        let mut places: HashMap<u32, u32> = HashMap::new();
        for row in 0..table.len() {
            if stackline_events::catalogue::is_monitor(table.keyword(row)) {
                continue;
            }
            let id = table.value(row, UNIT);
            if id == EventValue::Absent || hash(id) & self.left_out != 0 {
                continue;
            }
            let host = *places
                .entry(table.host[row])
                .or_insert_with(|| self.place(table.host(row)));
            let clock = index.hosts.get(table.host(row)).map(|trace| &trace.clock);
            let at_ns = clock.map_or(table.at_ns[row], |clock| {
                clock.reference_ns(table.at_ns[row])
            });
            let stay = HostStay {
                asks: table.keyword(row) == "APP_CALL",
                is_answered: table.keyword(row) == "APP_RESPONSE",
                ..HostStay::at(at_ns)
            };
            self.stay(hash(id), host, stay);
            self.span(table, row, host, at_ns);
            match table.keyword(row) {
                "APP_CALL" | "APP_RESPONSE" => drop(self.calls.insert(host)),
                "APP_INDICATION" | "APP_REPLY" => drop(self.called.insert(host)),
                _ => {}
            }
        }
    }

    fn place(&mut self, host: &str) -> u32 {
        let found = self.hosts.iter().position(|other| other == host);
        found.unwrap_or_else(|| {
            self.hosts.push(host.to_owned());
            self.hosts.len() - 1
        }) as u32
    }

    fn stay(&mut self, id: u64, host: u32, event: HostStay) {
        let stays = self.units.entry(id).or_default();
        match stays.iter_mut().find(|(other, _)| *other == host) {
            Some((_, stay)) => stay.extend_by(event),
            None => stays.push((host, event)),
        }
        if self.units.len() > MOST {
            self.left_out = self.left_out << 1 | 1;
            self.units.retain(|id, _| *id & self.left_out == 0);
        }
    }

    /// Notes the span of an event that has one: foreign spans have texts as ids, stackline's own events have numbers in that field.
    fn span(&mut self, table: &EventTable, row: usize, host: u32, at_ns: u64) {
        let (span, parent) = (table.value(row, SPAN), table.value(row, PARENT));
        if span.text().is_none() || self.spans.len() > 4 * MOST {
            return;
        }
        let unit = hash(table.value(row, UNIT));
        // Rotated, so that a span with its unit's own id does not cancel out.
        let of_unit = |id: EventValue<'_>| unit ^ hash(id).rotate_left(1);
        let new = SpanSighting {
            host,
            stay: HostStay::at(at_ns),
            parent: parent.text().map(|_| of_unit(parent)),
        };
        let sighting = self.spans.entry(of_unit(span)).or_insert(new);
        sighting.stay.extend_by(HostStay::at(at_ns));
    }

    /// By pair of hosts, the parent's host first: exchanges between spans and their parents on another host.
    fn exchanges_of_parents(&self) -> BTreeMap<(u32, u32), Vec<ClockExchange>> {
        let mut found: BTreeMap<(u32, u32), Vec<ClockExchange>> = BTreeMap::new();
        for span in self.spans.values() {
            if let Some(parent) = span.parent.and_then(|parent| self.spans.get(&parent))
                && parent.host != span.host
            {
                found
                    .entry((parent.host, span.host))
                    .or_default()
                    .push(exchange(parent.stay, span.stay));
            }
        }
        found
    }

    /// All pairs of hosts that have units in common, the outer one first.
    pub(super) fn pairs(&self) -> Vec<HostPairExchanges> {
        let mut exchanges: BTreeMap<(u32, u32), Vec<ClockExchange>> = BTreeMap::new();
        for stays in self.units.values() {
            for ((outer, around), (inner, within)) in stays
                .iter()
                .flat_map(|a| stays.iter().map(move |b| (*a, *b)))
            {
                if outer != inner && around.may_enclose() {
                    exchanges
                        .entry((outer, inner))
                        .or_default()
                        .push(exchange(around, within));
                }
            }
        }
        let mut of_parents = self.exchanges_of_parents();
        let parents: BTreeSet<(u32, u32)> = of_parents.keys().copied().collect();
        let in_order = |exchange: &ClockExchange| (exchange.asked_ns, exchange.heard_ns);
        let pair = |((outer, inner), mut exchanges): ((u32, u32), Vec<ClockExchange>)| {
            exchanges.sort_by_key(in_order);
            let mut of_parents = of_parents.remove(&(outer, inner)).unwrap_or_default();
            of_parents.sort_by_key(in_order);
            let calls = self.calls.contains(&outer)
                && self.called.contains(&inner)
                && !self.calls.contains(&inner);
            let name = |host: u32| self.hosts[host as usize].clone();
            let is_known =
                calls || parents.contains(&(outer, inner)) && !parents.contains(&(inner, outer));
            HostPairExchanges {
                outer: name(outer),
                inner: name(inner),
                exchanges,
                of_parents,
                is_known,
            }
        };
        exchanges.into_iter().map(pair).collect()
    }
}

fn hash(id: EventValue<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    match id {
        EventValue::Number(number) => number.hash(&mut hasher),
        EventValue::Text(text) => text.hash(&mut hasher),
        EventValue::Absent => {}
    }
    hasher.finish()
}

const fn exchange(around: HostStay, within: HostStay) -> ClockExchange {
    ClockExchange {
        asked_ns: around.from_ns,
        heard_ns: within.from_ns,
        answered_ns: within.to_ns,
        returned_ns: around.to_ns,
    }
}

/// The time on the outer host minus the time on the inner, ns: if the outer encloses the inner, the time of both ways together.
fn transit_ns(exchange: &ClockExchange) -> i128 {
    stackline_core::clock_offset::delay_ns(exchange)
}

impl HostPairExchanges {
    /// Whether every unit's stay on the inner host lies within its stay on the outer host, by their clocks.
    pub(super) fn fits(&self) -> bool {
        self.exchanges
            .iter()
            .all(|e| e.heard_ns >= e.asked_ns && e.answered_ns <= e.returned_ns)
    }

    /// Whether every unit's stay on the outer host is at least as long as that on the inner, so that some offset of the clocks puts the
    /// one within the other.
    pub(super) fn encloses(&self) -> bool {
        self.exchanges
            .iter()
            .all(|exchange| transit_ns(exchange) >= 0)
    }

    /// Whether the length of the stay on the outer host follows that on the inner from unit to unit: their difference varies less than
    /// a quarter as much as the stay on the inner host.
    pub(super) fn follows(&self) -> bool {
        let inner = spread(
            self.exchanges
                .iter()
                .map(|e| i128::from(e.answered_ns) - i128::from(e.heard_ns)),
        );
        let left = spread(self.exchanges.iter().map(transit_ns));
        inner > 0.0 && left < inner / 4.0
    }

    /// The least gap between the stays of a unit on the two hosts, ns, if all gaps are nearly equal (within a quarter) and more than
    /// four times as long as the longest stay.
    pub(super) fn apart_ns(&self) -> Option<u64> {
        let gap = |e: &ClockExchange| match self.is_earlier() {
            true => i128::from(e.asked_ns) - i128::from(e.answered_ns),
            false => i128::from(e.heard_ns) - i128::from(e.returned_ns),
        };
        let stay = self
            .exchanges
            .iter()
            .map(|e| i128::from(e.returned_ns) - i128::from(e.asked_ns))
            .max()?;
        let least = self.exchanges.iter().map(gap).min()?;
        let most = self.exchanges.iter().map(gap).max()?;
        (least > 4 * stay && most - least < least / 4)
            .then(|| u64::try_from(least).ok())
            .flatten()
    }

    /// The offset by which the inner host's clock would be ahead if its stay lay in the middle of the outer's, in the fastest exchange,
    /// ns.
    pub(super) fn middle_ns(&self) -> i128 {
        let fastest = self
            .exchanges
            .iter()
            .min_by_key(|e| transit_ns(e))
            .map(stackline_core::clock_offset::offset_bounds);
        fastest.map_or(0, |(least, most)| i128::midpoint(least, most))
    }

    /// Whether the inner host's events come before the outer's, by the first exchange.
    pub(super) fn is_earlier(&self) -> bool {
        self.exchanges
            .first()
            .is_some_and(|e| e.heard_ns < e.asked_ns)
    }

    /// The exchanges between spans and parents in which the parent lasts at least as long as the span. A parent that does not wait for
    /// its span may be shorter.
    pub(super) fn enclosed_by_parents(&self) -> Vec<ClockExchange> {
        let enclosed = self.of_parents.iter().filter(|e| transit_ns(e) >= 0);
        enclosed.copied().collect()
    }
}

/// Divides the exchanges into at most `parts` parts of equal number, in order, and returns the fastest of each.
pub(super) fn fastest(exchanges: &[ClockExchange], parts: usize) -> Vec<ClockExchange> {
    let size = exchanges.len().div_ceil(parts).max(1);
    exchanges
        .chunks(size)
        .filter_map(|part| part.iter().min_by_key(|e| transit_ns(e)).copied())
        .collect()
}

/// The standard deviation.
fn spread(values: impl Iterator<Item = i128> + Clone) -> f64 {
    let (count, sum) = values.clone().fold((0.0, 0.0), |(count, sum), value| {
        (count + 1.0, sum + value as f64)
    });
    let mean = sum / f64::max(count, 1.0);
    (values
        .map(|value| (value as f64 - mean).powi(2))
        .sum::<f64>()
        / f64::max(count, 1.0))
    .sqrt()
}
