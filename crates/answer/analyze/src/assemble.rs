//! Events to lifelines: those of one unit together, in reference time.
//!
//! A unit's events are found by its id and by the bytes they carry: an event of a system call, a protocol or the network
//! belongs to every unit of whose bytes it carries some, and the unit is past that point when its last byte first is. Events
//! can come in any order and in any number of tables; the result is the same.

mod chains;
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

/// What lifelines are made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LifelineOptions {
    /// Which data field holds the unit's id in events that are not stackline's own, from 0.
    pub unit_field: usize,
    /// Whether events that are not stackline's own carry the stream, the offset and the bytes of their unit as these do, in the
    /// second to fourth field: then what the network did to these bytes is on the unit's line.
    pub ranges: bool,
    /// What lines are grouped by.
    pub by: LifelineGroupKey,
    /// Whether the units of warm-up runs have lines too.
    pub warmup: bool,
}

/// What lines are grouped by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LifelineGroupKey {
    /// The host that answers: a flow's responder, or its initiator where several begin flows that all end at one; in logs of others
    /// the first host beside the one where the line begins, but one that is on every line only where there is no further.
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

/// Which data fields of events are read: all that [`Assembler::add`] looks at.
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

const UNIT: usize = 0;
/// Of REQUEST_PARENT, and of REQUEST_TRACE.
const PARENT: usize = 1;
const TRACE: usize = 1;
const STREAM: usize = 1;
const OFFSET: usize = 2;
const BYTES: usize = 3;
const PLACE: usize = 4;

/// Takes events, table by table, and makes lifelines of them.
#[derive(Debug)]
pub struct Assembler<'i> {
    index: Option<&'i Index>,
    options: LifelineOptions,
    ids: UnitIdIndex,
    points: Points,
    /// One of each event that names a unit.
    met: UnitEvents,
    /// Events that carry bytes.
    carriers: Vec<CarrierEvent>,
    /// Bytes that are a unit's, from who sent them and from who got them.
    sent: Vec<(UnitByteRange, u32)>,
    received: Vec<(UnitByteRange, u32)>,
    /// Which of them every unit has, by number of its id.
    owned: Vec<u8>,
    /// When each flow requested a connection.
    connects: Vec<(u32, u64)>,
    /// Units that were made for another one, with it.
    parents: Vec<(u32, u32)>,
    /// Traces of others, with units that were made for a span of theirs.
    traces: Vec<(u32, u32)>,
    /// Units of the application's own events, by number of their ids.
    own: Vec<bool>,
    /// Of which units an event says whether they were in a server's memory, by number of their ids.
    in_memory: Vec<Option<bool>>,
    until_ns: u64,
    rows: bool,
}

/// Events that name a unit, column by column.
#[derive(Debug, Default)]
struct UnitEvents {
    id: Vec<u32>,
    point: Vec<u32>,
    at_ns: Vec<u64>,
    /// Empty where rows are not kept.
    row: Vec<u32>,
}

/// An event that carries bytes.
#[derive(Clone, Copy, Debug)]
struct CarrierEvent {
    range: UnitByteRange,
    point: u32,
    row: u32,
    /// The unit that it names beside, or none.
    id: u32,
}

const NO_ID: u32 = u32::MAX;

/// What is the same for all rows of a table with one keyword, or one host.
#[derive(Debug)]
struct AssemblerTableCache<'i> {
    roles: Vec<Option<KeywordRole>>,
    clocks: Vec<Option<Option<&'i ClockCorrection>>>,
    texts: Vec<u32>,
}

impl<'i> Assembler<'i> {
    /// With nothing in it.
    #[must_use]
    pub fn new(index: Option<&'i Index>, options: &LifelineOptions) -> Self {
        Self {
            index,
            options: options.clone(),
            ids: UnitIdIndex::default(),
            points: Points::new(FlowServices::of_run(index)),
            met: UnitEvents::default(),
            carriers: Vec::new(),
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

    /// Adds events. Passages record the row of their event, counted from `first_row`; without it none.
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
                .get_or_insert_with(|| KeywordRole::of(table.keyword(row)));
            let at_ns = self.reference_ns(table, row, &mut here);
            self.until_ns = self.until_ns.max(at_ns);
            let number = first_row.unwrap_or(0).saturating_add(row as u32);
            match role.class {
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

    /// Spans of others have their trace as their unit.
    fn trace(&mut self, table: &EventTable, row: usize, here: &mut AssemblerTableCache<'i>) {
        let trace = self.id(table, row, TRACE, here);
        if let Some(unit) = table.number(row, UNIT).filter(|_| trace != NO_ID) {
            self.traces.push((trace, self.ids.place_of_number(unit)));
        }
    }

    /// The service that the flow of a row asks.
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
        if id == NO_ID && range.is_none() {
            return;
        }
        let service = if role.is_own() {
            self.service(table, row, stream)
        } else {
            services::NO_SERVICE
        };
        let at = place(table, row, role, stream);
        let point = self.points.number(table, row, role, at, service);
        // Of what carries bytes it is not known yet whether they are a unit's.
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

    /// What a block's message says of where it came from.
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
        // Once of each unit, end and direction.
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
}

/// The bytes of its stream that an event carries.
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

/// Which of several points of one keyword and host a row is at.
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

/// The events of each number of `of`, as ranges of the rows that are given back: a counting sort.
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
