//! Events to lifelines: those of one unit together, in reference time.

use crate::lifelines::{Lifelines, Line, Outcome, Passage, Point};
use stackline_core::trace::Index;
use stackline_events::Table;
use std::collections::BTreeMap;

/// What lifelines are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which data field holds the unit's id, from 0.
    pub unit_field: usize,
}

impl Default for Options {
    /// The first, as in every event of stackline.
    fn default() -> Self {
        Self { unit_field: 0 }
    }
}

/// Assembles the lifelines of all units in a table, by their ids.
#[must_use]
pub fn lifelines(table: &Table, index: Option<&Index>, options: &Options) -> Lifelines {
    let mut units: BTreeMap<(u64, String), Vec<Passage>> = BTreeMap::new();
    let mut points: BTreeMap<(u32, u32), (u32, u64)> = BTreeMap::new();
    for row in table.by_time() {
        let unit = table.value(row as usize, options.unit_field);
        let id = unit.number().map_or(u64::MAX, |number| number as u64);
        if unit.number().is_none() && unit.text().is_none() {
            continue;
        }
        let (keyword, host) = (table.keyword[row as usize], table.host[row as usize]);
        let next = points.len() as u32;
        let point = points.entry((keyword, host)).or_insert((next, table.at_ns[row as usize])).0;
        let clock = index.and_then(|index| index.hosts.get(table.host(row as usize)));
        let at_ns = table.at_ns[row as usize];
        let at_ns = clock.map_or(at_ns, |trace| trace.clock.reference_ns(at_ns));
        units.entry((id, unit.to_string())).or_default().push(Passage { at_ns, point, row });
    }
    let mut ordered: Vec<((u32, u32), u32)> = points.iter().map(|(names, (point, _))| (*names, *point)).collect();
    ordered.sort_by_key(|(_, point)| *point);
    let point = |((keyword, host), _): &((u32, u32), u32)| Point {
        keyword: table.names.text(*keyword).to_owned(),
        host: table.names.text(*host).to_owned(),
        place: String::new(),
    };
    let mut lifelines = Lifelines { points: ordered.iter().map(point).collect(), ..Lifelines::default() };
    for ((_, unit), mut passages) in units {
        passages.sort_by_key(|passage| passage.at_ns);
        let (first, count) = (lifelines.passages.len() as u32, passages.len() as u32);
        lifelines.passages.append(&mut passages);
        let (group, flow, bytes, outcome) = (0, None, None, Outcome::Complete);
        lifelines.lines.push(Line { unit, group, flow, first, count, bytes, outcome, ..Line::default() });
    }
    lifelines.lines.sort_by_key(|line| lifelines.passages[line.first as usize].at_ns);
    lifelines
}
