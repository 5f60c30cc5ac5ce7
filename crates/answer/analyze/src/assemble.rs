//! Makes lifelines of events: collects the events of each unit (a data unit, a call, a connection), in the reference host's time.
//!
//! A unit's events are found by its id and by the bytes they carry. An event of a system call, a protocol or the network
//! belongs to every unit that has some of its bytes; the unit has passed that point when its last byte first passes. Tables and
//! their events can be added in any order; the result is the same.

mod chains;
mod connection_order;
mod line_rows;
pub(crate) mod order;
mod path_order;
mod points;
mod ranges;
pub(crate) mod roles;
mod services;
pub(crate) mod unit_id_index;
mod unit_lifelines;

use crate::lifelines::Lifelines;
use points::{DirectionOrPort, NOWHERE, Points};
use ranges::UnitByteRange;
use roles::{EventClass, KeywordRole};
use services::{FlowServices, ServiceNumber};
use stackline_core::trace_index::{ClockCorrection, Index};
use stackline_events::EventTable;
use stackline_events::EventValue;
use stackline_events::catalogue::Layer;
use stackline_events::catalogue::block_rows::{FROM_DISK, FROM_MEMORY, SOURCE_FIELD};
use stackline_events::table::EventColumn;
use stackline_events::unit_ids;
use unit_id_index::UnitIdIndex;

/// How lifelines are assembled and grouped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LifelineOptions {
    /// Which data field holds the unit's id in events that are not stackline's own, from 0.
    pub unit_field: usize,
    /// Whether events that are not stackline's own hold their unit's stream, offset and number of bytes in the second to fourth
    /// data field, as stackline's own do. Then the unit's lifeline includes what the network did to these bytes.
    pub ranges: bool,
    /// What lifelines are grouped by.
    pub by: LifelineGroupKey,
    /// Whether the units of warm-up runs get lifelines too.
    pub warmup: bool,
}

/// What lifelines are grouped by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LifelineGroupKey {
    /// The host that answers. For stackline's own flows this is the responder, or the initiator if several hosts begin flows that
    /// all end at one host. In other logs it is the first host other than the one where the lifeline begins; a host that is on every
    /// lifeline (such as a name server) is taken only if there is no other.
    #[default]
    Server,
    /// The host where the line begins.
    Host,
    /// The stack, with its options.
    Stack,
    /// The flow: one initiator with one responder in one run.
    Flow,
}

stackline_core::named_values!(LifelineGroupKey,
    Server = "server", "The host that answers";
    Host = "host", "The host where the lifeline begins";
    Stack = "stack", "The stack with its options";
    Flow = "flow", "One initiator-responder pair in one run");

/// Assembles the lifelines of all units in a table.
#[must_use]
pub fn lifelines(
    table: &EventTable,
    index: Option<&Index>,
    options: &LifelineOptions,
) -> Lifelines {
    let mut assembler = Assembler::new(index, options);
    assembler.add(table, Some(0));
    assembler.finish()
}

/// The numbers of the data fields that [`Assembler::add`] reads; a reader of event files can skip all others.
#[must_use]
pub fn fields(options: &LifelineOptions) -> Vec<usize> {
    vec![
        UNIT,
        STREAM,
        OFFSET,
        BYTES,
        PLACE,
        SOURCE_FIELD,
        options.unit_field,
    ]
}

/// Data field with the unit's id; this and the fields below are counted from 0.
const UNIT: usize = 0;
/// Data field of REQUEST_PARENT with the id of the unit that this one was made for.
const PARENT: usize = 1;
/// Data field of REQUEST_TRACE with the id of the foreign trace (such as an OpenTelemetry trace).
const TRACE: usize = 1;
/// Data field with the stream: twice the flow's number, plus 1 for the direction back.
const STREAM: usize = 1;
/// Data field with the offset in the stream of the first byte.
const OFFSET: usize = 2;
/// Data field with the number of bytes.
const BYTES: usize = 3;
/// Data field with the port of the network.
const PLACE: usize = 4;
/// Data field of UNIT_FRAMED with the number of bytes of the unit itself.
const PAYLOAD: usize = 4;

/// Takes events, table by table, and makes lifelines of them: [`Assembler::add`], then [`Assembler::finish`].
#[derive(Debug)]
pub struct Assembler<'i> {
    index: Option<&'i Index>,
    options: LifelineOptions,
    ids: UnitIdIndex,
    points: Points,
    /// All events that are known to belong to a unit.
    met: UnitEvents,
    /// Events that carry bytes.
    carriers: Vec<CarrierEvent>,
    /// The bytes that a protocol between application and stream made of each unit, as its sender recorded them.
    framed: Vec<UnitFrames>,
    /// The bytes of each unit as its sender recorded them, with the place of the unit's id.
    sent: Vec<(UnitByteRange, u32)>,
    /// The bytes of each unit as its receiver recorded them, with the place of the unit's id.
    received: Vec<(UnitByteRange, u32)>,
    /// By place of the unit's id: bits that say which ranges are recorded in `sent` and `received`, in each direction.
    owned: Vec<u8>,
    /// The flow and the time in ns of each connection request.
    connects: Vec<(u32, u64)>,
    /// Units that were made for another one: (this unit, that one), by places of their ids.
    parents: Vec<(u32, u32)>,
    /// Foreign traces and units that belong to a span of them: (trace, unit), by places of their ids.
    traces: Vec<(u32, u32)>,
    /// By place of the unit's id: whether stackline's own application events name the unit.
    own: Vec<bool>,
    /// By place of the unit's id: whether a server had the unit in memory, if an event says so.
    in_memory: Vec<Option<bool>>,
    /// Reference time of the latest event of all, ns.
    until_ns: u64,
    /// Whether the rows of events are kept, so that passages can name them.
    rows: bool,
}

/// Events that belong to a unit, stored column by column.
#[derive(Debug, Default)]
struct UnitEvents {
    /// The place of the unit's id in the [`UnitIdIndex`].
    id: Vec<u32>,
    /// The number of the monitor point.
    point: Vec<u32>,
    at_ns: Vec<u64>,
    /// The row of the event in its table; empty if rows are not kept.
    row: Vec<u32>,
}

/// The frames of a unit: records of TLS, or frames of HTTP.
#[derive(Clone, Copy, Debug)]
struct UnitFrames {
    range: UnitByteRange,
    /// The place of the unit's id.
    id: u32,
    /// Bytes of the unit itself.
    payload: u64,
}

/// An event that carries bytes of a stream; its units are found by these bytes once all events are read.
#[derive(Clone, Copy, Debug)]
struct CarrierEvent {
    range: UnitByteRange,
    point: u32,
    row: u32,
    /// The unit that the event also names, or [`NO_ID`].
    id: u32,
}

/// Marks that an event names no unit.
const NO_ID: u32 = u32::MAX;

/// What was looked up for one table, by number of a name in that table: the role of a keyword, the clock of a host, the id of a
/// unit that is a text.
#[derive(Debug)]
struct AssemblerTableCache<'i> {
    roles: Vec<Option<KeywordRole>>,
    clocks: Vec<Option<Option<&'i ClockCorrection>>>,
    texts: Vec<u32>,
}

impl<'i> Assembler<'i> {
    /// An assembler without events. `index` gives the clock corrections, flows and runs.
    #[must_use]
    pub fn new(index: Option<&'i Index>, options: &LifelineOptions) -> Self {
        Self {
            index,
            options: options.clone(),
            ids: UnitIdIndex::default(),
            points: Points::new(FlowServices::of_run(index)),
            met: UnitEvents::default(),
            carriers: Vec::new(),
            framed: Vec::new(),
            sent: Vec::new(),
            received: Vec::new(),
            owned: Vec::new(),
            connects: Vec::new(),
            parents: Vec::new(),
            traces: Vec::new(),
            own: Vec::new(),
            in_memory: Vec::new(),
            until_ns: 0,
            rows: true,
        }
    }

    /// Adds the events of a table. Passages record the row of their event, counted from `first_row`; without `first_row` they
    /// record none.
    pub fn add(&mut self, table: &EventTable, first_row: Option<u32>) {
        self.rows &= first_row.is_some();
        self.points.forget_table();
        let names = table.names.len();
        let mut here = AssemblerTableCache {
            roles: vec![None; names],
            clocks: vec![None; names],
            texts: vec![NO_ID; names],
        };
        for row in 0..table.len() {
            let role = *here.roles[table.keyword[row] as usize]
                .get_or_insert_with(|| KeywordRole::from_keyword(table.keyword(row)));
            let at_ns = self.reference_ns(table, row, &mut here);
            self.until_ns = self.until_ns.max(at_ns);
            let number = first_row.unwrap_or(0).saturating_add(row as u32);
            match role.class {
                EventClass::Elsewhere if role.is_framing => self.frames(table, row, at_ns),
                EventClass::Elsewhere => {}
                EventClass::Parent if table.keyword(row) == "REQUEST_TRACE" => {
                    self.trace(table, row, &mut here)
                }
                EventClass::Parent => self.parent(table, row),
                _ => self.event(table, row, role, at_ns, number, &mut here),
            }
        }
    }

    fn parent(&mut self, table: &EventTable, row: usize) {
        let ids = table.number(row, UNIT).zip(table.number(row, PARENT));
        if let Some((child, parent)) = ids {
            let pair = (
                self.ids.place_of_number(child),
                self.ids.place_of_number(parent),
            );
            self.parents.push(pair);
        }
    }

    /// Notes the bytes that the frames of a unit occupy (UNIT_FRAMED).
    fn frames(&mut self, table: &EventTable, row: usize, at_ns: u64) {
        let stream = table.number(row, STREAM).filter(|stream| *stream >= 0);
        let range = stream.and_then(|stream| range(table, row, stream, at_ns));
        if let (Some(range), Some(unit)) = (range, table.number(row, UNIT)) {
            let payload = table.number(row, PAYLOAD).unwrap_or(0);
            self.framed.push(UnitFrames {
                range,
                id: self.ids.place_of_number(unit),
                payload: u64::try_from(payload).unwrap_or(0),
            });
        }
    }

    /// Notes which unit belongs to a foreign trace (REQUEST_TRACE): foreign spans have their trace's id as their unit.
    fn trace(&mut self, table: &EventTable, row: usize, here: &mut AssemblerTableCache<'i>) {
        let trace = self.id(table, row, TRACE, here);
        if let Some(unit) = table.number(row, UNIT).filter(|_| trace != NO_ID) {
            self.traces.push((trace, self.ids.place_of_number(unit)));
        }
    }

    /// The service that the flow of a row calls.
    #[inline]
    fn service(&self, table: &EventTable, row: usize, stream: Option<i64>) -> ServiceNumber {
        let flow = match stream {
            Some(stream) => Some(unit_ids::stream_parts(stream).0),
            None => table.number(row, UNIT).map(|unit| unit_ids::parts(unit).0),
        };
        flow.map_or(services::NO_SERVICE, |flow| self.points.service(flow))
    }

    #[inline]
    fn reference_ns(
        &self,
        table: &EventTable,
        row: usize,
        here: &mut AssemblerTableCache<'i>,
    ) -> u64 {
        let known = || {
            let trace = self
                .index
                .and_then(|index| index.hosts.get(table.host(row)));
            trace
                .map(|trace| &trace.clock)
                .filter(|clock| clock.offset_ns != 0 || clock.drift_ppm != 0.0)
        };
        let clock = *here.clocks[table.host[row] as usize].get_or_insert_with(known);
        clock.map_or(table.at_ns[row], |clock| {
            clock.reference_ns(table.at_ns[row])
        })
    }

    #[inline]
    fn event(
        &mut self,
        table: &EventTable,
        row: usize,
        role: KeywordRole,
        at_ns: u64,
        number: u32,
        here: &mut AssemblerTableCache<'i>,
    ) {
        let field = if role.is_own() {
            UNIT
        } else {
            self.options.unit_field
        };
        let id = self.id(table, row, field, here);
        let has_ranges = role.is_own() || self.options.ranges;
        let stream = if has_ranges {
            table.number(row, STREAM).filter(|stream| *stream >= 0)
        } else {
            None
        };
        let range = stream.and_then(|stream| range(table, row, stream, at_ns));
        if id == NO_ID && range.is_none() || moves_nothing(table, row, role) {
            return;
        }
        let service = if role.is_own() {
            self.service(table, row, stream)
        } else {
            services::NO_SERVICE
        };
        let at = place(table, row, role, stream);
        let point = self.points.number(table, row, role, at, service);
        // Whether an event without an id carries a unit's bytes is known only in `join`, which counts it there.
        if let Some(stream) = stream.filter(|_| role.layer == Some(Layer::Network) && id != NO_ID) {
            self.points.lean(point, stream);
        }
        match range {
            Some(range) if role.carries_bytes() => self.carriers.push(CarrierEvent {
                range,
                point,
                row: number,
                id,
            }),
            Some(range) if id != NO_ID => self.owns(role, range, id),
            _ => {}
        }
        if id == NO_ID || range.is_some() && role.carries_bytes() {
            return;
        }
        if role.says_source {
            self.note_source(id, table.value(row, SOURCE_FIELD));
        }
        if role.layer == Some(Layer::Application) {
            self.own.resize(self.own.len().max(id as usize + 1), false);
            self.own[id as usize] = true;
            if table.keyword(row) == "APP_CONNECT" {
                self.connected(table, row, at_ns);
            }
        }
        self.met.push(id, point, at_ns, self.rows.then_some(number));
    }

    /// Records whether a block came from the server's memory or its disk, as its message says.
    fn note_source(&mut self, id: u32, said: EventValue<'_>) {
        let in_memory = match said {
            EventValue::Text(FROM_MEMORY) => true,
            EventValue::Text(FROM_DISK) => false,
            _ => return,
        };
        let known = self.in_memory.len().max(id as usize + 1);
        self.in_memory.resize(known, None);
        self.in_memory[id as usize] = Some(in_memory);
    }

    fn owns(&mut self, role: KeywordRole, range: UnitByteRange, id: u32) {
        let sent = role.stage == 1;
        if role.returns() {
            return;
        }
        // Only the first range of each unit, end and direction counts.
        self.owned.resize(self.owned.len().max(id as usize + 1), 0);
        let bit = 1 << ((range.stream & 1) as u8 | u8::from(sent) << 1);
        if self.owned[id as usize] & bit == 0 {
            self.owned[id as usize] |= bit;
            if sent {
                self.sent.push((range, id))
            } else {
                self.received.push((range, id))
            }
        }
    }

    fn connected(&mut self, table: &EventTable, row: usize, at_ns: u64) {
        if let Some(id) = table.number(row, UNIT) {
            self.connects.push((unit_ids::parts(id).0, at_ns));
        }
    }

    #[inline]
    fn id(
        &mut self,
        table: &EventTable,
        row: usize,
        field: usize,
        here: &mut AssemblerTableCache<'i>,
    ) -> u32 {
        let Some(column) = table.data.get(field) else {
            return NO_ID;
        };
        match column.texts.get(row).copied() {
            Some(EventColumn::NUMBER) => self.ids.place_of_number(column.numbers[row]),
            None | Some(EventColumn::ABSENT) => NO_ID,
            Some(text) => {
                let known = &mut here.texts[text as usize];
                if *known == NO_ID {
                    *known = self.ids.place_of_text(table.names.text(text));
                }
                *known
            }
        }
    }
}

impl UnitEvents {
    #[inline]
    fn push(&mut self, id: u32, point: u32, at_ns: u64, row: Option<u32>) {
        self.id.push(id);
        self.point.push(point);
        self.at_ns.push(at_ns);
        self.row.extend(row);
    }

    /// When each unit was seen first, by place of its id, ns.
    fn first_times(&self, units: usize) -> Vec<u64> {
        let mut first = vec![u64::MAX; units];
        for (id, at_ns) in self.id.iter().zip(&self.at_ns) {
            let first = &mut first[*id as usize];
            *first = (*first).min(*at_ns);
        }
        first
    }
}

/// The bytes of its stream that an event carries; `None` if it carries none or its fields are invalid.
#[inline]
fn range(table: &EventTable, row: usize, stream: i64, at_ns: u64) -> Option<UnitByteRange> {
    let (start, bytes) = (table.number(row, OFFSET)?, table.number(row, BYTES)?);
    let end = start.checked_add(bytes)?;
    (start >= 0 && bytes > 0).then_some(UnitByteRange {
        stream,
        start,
        end,
        at_ns,
    })
}

/// Whether it is a system call that has moved no byte of its stream: there was no room, or the stream had ended.
#[inline]
fn moves_nothing(table: &EventTable, row: usize, role: KeywordRole) -> bool {
    role.layer == Some(Layer::Socket)
        && table.number(row, BYTES) == Some(0)
        && table.number(row, OFFSET).is_some()
}

/// Which of several points with one keyword and host a row is at: by port in the network, else by direction of the stream.
#[inline]
fn place(
    table: &EventTable,
    row: usize,
    role: KeywordRole,
    stream: Option<i64>,
) -> DirectionOrPort {
    let port = || table.data.get(PLACE).and_then(|column| column.text(row));
    match (role.layer, stream) {
        (Some(Layer::Network), _) if role.is_watched => {
            port().map_or(NOWHERE, |name| points::at_watched_place(name, stream))
        }
        (Some(Layer::Network), _) => port().map_or(NOWHERE, points::at_port),
        (_, Some(stream)) => points::direction_code(stream),
        (_, None) => NOWHERE,
    }
}

/// Sorts rows by their number in `of` (a counting sort). Returns `starts` and `rows`: the rows with number n are
/// `rows[starts[n]..starts[n + 1]]`.
fn gathered(of: &[u32], count: usize) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0_u32; count + 1];
    of.iter().for_each(|id| starts[*id as usize + 1] += 1);
    (1..=count).for_each(|id| starts[id] += starts[id - 1]);
    let (mut next, mut rows) = (starts.clone(), vec![0_u32; of.len()]);
    for (row, id) in of.iter().enumerate() {
        rows[next[*id as usize] as usize] = row as u32;
        next[*id as usize] += 1;
    }
    (starts, rows)
}

#[cfg(test)]
mod tests;
