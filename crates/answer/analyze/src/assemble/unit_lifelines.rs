//! The end of the assembly: joins the events that carry bytes to their units, makes the lifelines of each unit, orders the points,
//! groups the lines and classifies their outcomes.

use super::chains::Chains;
use super::connection_order::connections_by_first_byte;
use super::line_rows::{LifelineRows, RawLifeline};
use super::path_order::{ClockErrors, cast_votes};
use super::points::{self, ClassifiedPoint};
use super::ranges::{Ranges, UnitByteRange};
use super::{Assembler, CarrierEvent, LifelineGroupKey, NO_ID, UnitEvents, gathered};
use crate::clock_error::clock_error;
use crate::lifelines::{Id, Lifeline, LifelinePassage, LifelinePoint, Lifelines};
use crate::outcomes;
use stackline_core::trace_index::{Index, RunFlow};
use stackline_events::unit_ids;
use std::collections::{BTreeMap, BTreeSet, HashSet};

impl Assembler<'_> {
    /// The lifelines of all events that were added.
    #[must_use]
    pub fn finish(mut self) -> Lifelines {
        let bytes = self.join();
        let known = std::mem::take(&mut self.points).into_known();
        let (names, own) = (
            std::mem::take(&mut self.ids).into_names(),
            std::mem::take(&mut self.own),
        );
        let met = std::mem::take(&mut self.met);
        let ties = points::order_points(&known);
        let flows: Vec<Option<u32>> = names
            .iter()
            .enumerate()
            .map(|(at, name)| flow(name, own.get(at)))
            .collect();
        let leave_out = |id: u32| self.is_warmup(flows[id as usize]);
        let mut drawn = Draw::new(&met, &known, &ties, &own).all(names.len(), leave_out);
        let error = ClockErrors::new(self.index, &known);
        let chains = Chains::new(&drawn, &met, &self.parents, &self.traces);
        let mut votes = cast_votes(&drawn, &met, &known, &error);
        chains.vote(&drawn, &met, &known, &mut votes);
        let ranks = votes.ranks(&ties);
        order_passages(&mut drawn, &met, &ranks);
        if self.is_of_other_programs() {
            drawn = chains.join(&drawn, &met, &known, error.is_one_clock());
        }
        sort_by_beginning(&mut drawn, &met, &names);
        let mut lifelines = Labels {
            index: self.index,
            by: self.options.by,
            names: &names,
            flows: &flows,
            bytes: &bytes,
        }
        .lifelines(&drawn, &met, &known, &ranks);
        let in_memory =
            |line: &RawLifeline| self.in_memory.get(line.id as usize).copied().flatten();
        let in_memory: Vec<Option<bool>> = drawn.raw.iter().map(in_memory).collect();
        outcomes::classify(&mut lifelines, self.index, self.until_ns, &in_memory);
        lifelines
    }

    /// Gives the events that carry bytes to the units that own these bytes. Returns the size of each unit in bytes, there and back, by
    /// place of its id.
    fn join(&mut self) -> Vec<[u64; 2]> {
        let mut bytes = vec![[0_u64; 2]; self.ids.len()];
        let mut known_bytes = vec![[false; 2]; self.ids.len()];
        let framed = std::mem::take(&mut self.framed);
        let flow = |range: &UnitByteRange| unit_ids::stream_parts(range.stream).0;
        let framed_flows: HashSet<u32> = framed.iter().map(|unit| flow(&unit.range)).collect();
        let framed = framed
            .into_iter()
            .map(|unit| (unit.range, unit.id, unit.payload));
        let as_they_are = std::mem::take(&mut self.sent)
            .into_iter()
            .chain(std::mem::take(&mut self.received))
            .map(|(range, id)| (range, id, (range.end - range.start) as u64));
        let begins = self.met.first_times(self.ids.len());
        // The receiver's range counts only where the sender recorded none.
        let owners = framed.chain(as_they_are);
        let units = owners.filter_map(|(mut range, id, payload)| {
            // A responder may note what it has sent when the next connection has been requested.
            range.at_ns = range.at_ns.min(begins[id as usize]);
            let direction = (range.stream & 1) as usize;
            let first = !std::mem::replace(&mut known_bytes[id as usize][direction], true);
            bytes[id as usize][direction] += if first { payload } else { 0 };
            (first && !self.carriers.is_empty()).then_some((range, id))
        });
        let ranges = Ranges::new(units, std::mem::take(&mut self.connects));
        let carriers = std::mem::take(&mut self.carriers);
        let has_layouts = |event: &CarrierEvent| {
            let flow = flow(&event.range);
            self.points.is_on_path(event.point)
                && framed_flows.contains(&flow)
                && ranges.has_several_connections(flow)
        };
        let connections = connections_by_first_byte(&carriers, &ranges, has_layouts);
        for (event, connection) in carriers.into_iter().zip(connections) {
            let CarrierEvent {
                range,
                point,
                row,
                id,
            } = event;
            let connection = connection.unwrap_or_else(|| ranges.connection(&range));
            let (mut found, row) = (false, self.rows.then_some(row));
            let beside = !self.points.is_on_path(point);
            ranges.carried(&range, connection, |of, whole| {
                found = true;
                if whole || beside {
                    self.met.push(of, point, range.at_ns, row);
                }
            });
            // Bytes outside of frames are the protocol's own, such as enlarged windows, whatever unit the thread works for.
            if !found && id != NO_ID && !framed_flows.contains(&flow(&range)) {
                self.met.push(id, point, range.at_ns, row);
            }
            // The direction of a port is that of the units that pass it; other traffic does not count.
            if found && id == NO_ID && self.points.is_network(point) {
                self.points.lean(point, range.stream);
            }
        }
        bytes
    }

    /// Whether the run traced requests of other programs: their flows name a service.
    fn is_of_other_programs(&self) -> bool {
        let flows = self.index.map_or(&[][..], |index| &index.flows);
        flows.iter().any(|flow| !flow.service.is_empty())
    }

    fn is_warmup(&self, flow: Option<u32>) -> bool {
        !self.options.warmup && found(self.index, flow).is_some_and(|flow| flow.warmup)
    }
}

/// Makes the lines: takes each unit's events in the order of time and cuts them where the unit is requested again.
struct Draw<'a> {
    met: &'a UnitEvents,
    known: &'a [ClassifiedPoint],
    /// Ranks of points for events at the same time.
    ties: &'a [u32],
    /// By place of the id: whether stackline's own application events name the unit.
    own: &'a [bool],
    /// By point: whether at least half of the ids that pass it begin there.
    starts: Vec<bool>,
    /// By point: the latest line that passed it, so that a line passes a point only once.
    met_by: Vec<u32>,
    drawn: LifelineRows,
}

impl<'a> Draw<'a> {
    fn new(
        met: &'a UnitEvents,
        known: &'a [ClassifiedPoint],
        ties: &'a [u32],
        own: &'a [bool],
    ) -> Self {
        let (starts, met_by) = (vec![false; known.len()], vec![u32::MAX; known.len()]);
        Self {
            met,
            known,
            ties,
            own,
            starts,
            met_by,
            drawn: LifelineRows::default(),
        }
    }

    fn all(mut self, ids: usize, leave_out: impl Fn(u32) -> bool) -> LifelineRows {
        let (starts, mut rows) = gathered(&self.met.id, ids);
        let of = |id: usize| starts[id] as usize..starts[id + 1] as usize;
        let key = |row: &u32| {
            (
                self.met.at_ns[*row as usize],
                self.ties[self.met.point[*row as usize] as usize],
            )
        };
        for id in 0..ids {
            let rows = &mut rows[of(id)];
            if !rows.is_sorted_by_key(key) {
                rows.sort_by_key(key);
            }
        }
        self.starts = self.beginnings((0..ids).map(|id| &rows[of(id)]));
        for id in 0..ids {
            if !leave_out(id as u32) {
                self.id(id as u32, &rows[of(id)]);
            }
        }
        self.drawn
    }

    /// By point: whether at least half of the ids that pass it begin there.
    fn beginnings<'r>(&self, ids: impl Iterator<Item = &'r [u32]>) -> Vec<bool> {
        let mut counts = vec![(0_u64, 0_u64); self.known.len()];
        let mut met_by = vec![u32::MAX; self.known.len()];
        for (id, rows) in ids.enumerate() {
            let path = rows
                .iter()
                .map(|row| self.met.point[*row as usize] as usize);
            for (index, point) in path
                .filter(|point| points::is_on_path(&self.known[*point]))
                .enumerate()
            {
                if met_by[point] != id as u32 {
                    met_by[point] = id as u32;
                    counts[point].0 += 1;
                    counts[point].1 += u64::from(index == 0);
                }
            }
        }
        counts
            .iter()
            .map(|(met, first)| *first > 0 && first * 2 >= *met)
            .collect()
    }

    /// Makes the lines of one id: a new one begins where the first point comes again, or where a usual first point comes after events
    /// without one. Ids of stackline's own are unique, so each has one line.
    fn id(&mut self, id: u32, rows: &[u32]) {
        let own = self.own.get(id as usize) == Some(&true);
        let mut from = 0;
        let mut begun = None;
        let mut met_start = false;
        for (at, row) in rows.iter().enumerate() {
            let point = self.met.point[*row as usize];
            if !points::is_on_path(&self.known[point as usize]) {
                continue;
            }
            let again = begun == Some(point)
                || self.starts[point as usize] && !met_start && self.is_over(&rows[from..at]);
            if begun.is_some() && again && !own {
                self.line(id, &rows[from..at]);
                (from, begun, met_start) = (at, None, false);
            }
            begun = begun.or(Some(point));
            met_start |= self.starts[point as usize];
        }
        self.line(id, &rows[from..]);
    }

    /// Whether a line whose beginning is missing has more than one point on its path: then a usual first point begins another line.
    fn is_over(&self, rows: &[u32]) -> bool {
        rows.iter()
            .filter(|row| points::is_on_path(&self.known[self.met.point[**row as usize] as usize]))
            .count()
            > 1
    }

    fn line(&mut self, id: u32, rows: &[u32]) {
        let number = self.drawn.raw.len() as u32;
        let (first, first_mark) = (self.drawn.kept.len(), self.drawn.marks.len());
        let mut beyond_ns = [u64::MAX; 3];
        for row in rows {
            let known = &self.known[self.met.point[*row as usize] as usize];
            if points::is_on_path(known) && known.role.is_beyond() {
                let earliest = &mut beyond_ns[direction(known)];
                *earliest = self.met.at_ns[*row as usize].min(*earliest);
            }
        }
        let any_ns = beyond_ns.into_iter().min().unwrap_or(u64::MAX);
        for row in rows {
            let point = self.met.point[*row as usize] as usize;
            let known = &self.known[point];
            // A call that returns after its unit has gone further is no longer on the unit's path: it becomes a mark.
            let beyond_ns = known
                .direction
                .map_or(any_ns, |_| beyond_ns[direction(known)]);
            let late = known.role.returns() && self.met.at_ns[*row as usize] > beyond_ns;
            if !points::is_on_path(known) || late {
                self.drawn.marks.push(*row);
            } else if std::mem::replace(&mut self.met_by[point], number) != number {
                self.drawn.kept.push(*row);
            }
        }
        let count = (self.drawn.kept.len() - first) as u32;
        if count == 0 {
            // Without an event on the path there is no line.
            self.drawn.marks.truncate(first_mark);
            return;
        }
        let mark_count = (self.drawn.marks.len() - first_mark) as u32;
        self.drawn.raw.push(RawLifeline {
            id,
            first: first as u32,
            count,
            first_mark: first_mark as u32,
            mark_count,
        });
    }
}

/// Index of a point's direction in tables of three: 0 without one, 1 there, 2 back.
fn direction(known: &ClassifiedPoint) -> usize {
    known
        .direction
        .map_or(0, |direction| 1 + direction as usize)
}

/// Sorts each line's passages by the ranks of their points.
fn order_passages(drawn: &mut LifelineRows, met: &UnitEvents, ranks: &[u32]) {
    let rank = |row: &u32| ranks[met.point[*row as usize] as usize];
    for line in &drawn.raw {
        let rows = &mut drawn.kept[line.first as usize..(line.first + line.count) as usize];
        if !rows.is_sorted_by_key(rank) {
            rows.sort_by_key(rank);
        }
    }
}

/// Sorts lines by the time of their first passage, then by id.
fn sort_by_beginning(drawn: &mut LifelineRows, met: &UnitEvents, names: &[Id]) {
    let begun_ns = |line: &RawLifeline| met.at_ns[drawn.kept[line.first as usize] as usize];
    let mut sorted: Vec<(u64, RawLifeline)> = drawn
        .raw
        .iter()
        .map(|line| (begun_ns(line), *line))
        .collect();
    let name = |line: &RawLifeline| &names[line.id as usize];
    sorted.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| name(&a.1).cmp(name(&b.1))));
    drawn.raw = sorted.into_iter().map(|(_, line)| line).collect();
}

/// What lifelines have besides their events: the unit's id, flow, size and group.
struct Labels<'a> {
    index: Option<&'a Index>,
    by: LifelineGroupKey,
    names: &'a [Id],
    flows: &'a [Option<u32>],
    bytes: &'a [[u64; 2]],
}

impl Labels<'_> {
    fn lifelines(
        &self,
        drawn: &LifelineRows,
        met: &UnitEvents,
        known: &[ClassifiedPoint],
        ranks: &[u32],
    ) -> Lifelines {
        let mut lifelines = Lifelines::default();
        let on_path = numbered(
            known,
            ranks,
            |point| points::is_on_path(&known[point]),
            &mut lifelines.points,
        );
        let mut marked = vec![false; known.len()];
        drawn
            .marks
            .iter()
            .for_each(|row| marked[met.point[*row as usize] as usize] = true);
        let beside = numbered(known, ranks, |point| marked[point], &mut lifelines.marked);
        lifelines.passages.reserve_exact(drawn.kept.len());
        lifelines.marks.reserve_exact(drawn.marks.len());
        lifelines.lines.reserve_exact(drawn.raw.len());
        let passage = |row: &u32, numbers: &[u32]| LifelinePassage {
            at_ns: met.at_ns[*row as usize],
            point: numbers[met.point[*row as usize] as usize],
            row: met.row.get(*row as usize).copied().unwrap_or(u32::MAX),
        };
        let is_response = |known: &ClassifiedPoint| {
            matches!(known.point.keyword.as_str(), "APP_REPLY" | "APP_RESPONSE")
        };
        let response: Vec<bool> = known.iter().map(is_response).collect();
        for raw in &drawn.raw {
            let (first, first_mark) = (
                lifelines.passages.len() as u32,
                lifelines.marks.len() as u32,
            );
            let kept = drawn.kept_of(raw);
            lifelines
                .passages
                .extend(kept.iter().map(|row| passage(row, &on_path)));
            lifelines
                .marks
                .extend(drawn.marks_of(raw).iter().map(|row| passage(row, &beside)));
            let [there, back] = self.bytes[raw.id as usize];
            let is_call = kept
                .iter()
                .any(|row| response[met.point[*row as usize] as usize]);
            lifelines.lines.push(Lifeline {
                unit: self.names[raw.id as usize].clone(),
                flow: self.flows[raw.id as usize],
                first,
                count: raw.count,
                first_mark,
                mark_count: raw.mark_count,
                bytes: Some(there + back).filter(|bytes| *bytes > 0),
                response_bytes: Some(back).filter(|bytes| *bytes > 0 && is_call),
                ..Lifeline::default()
            });
        }
        self.group(&mut lifelines);
        lifelines.clock_error_ns = neighbours_error(&lifelines, self.index);
        lifelines
    }

    fn group(&self, lifelines: &mut Lifelines) {
        let servers = Servers::from_index(self.index, lifelines);
        let mut names: BTreeMap<String, u32> = BTreeMap::new();
        let mut known: BTreeMap<(Option<u32>, u32, u32), u32> = BTreeMap::new();
        let mut groups = Vec::with_capacity(lifelines.lines.len());
        for line in &lifelines.lines {
            let passages = lifelines.passages_of(line);
            let begins = passages.first().map_or(0, |passage| passage.point);
            let answers = servers.of_line(lifelines, passages);
            let flow = line.flow.filter(|_| found(self.index, line.flow).is_some());
            // The label of a flow holds for all of its lines.
            let key = if flow.is_some() && self.by != LifelineGroupKey::Host {
                (flow, 0, 0)
            } else {
                (None, begins, answers)
            };
            let next = names.len() as u32;
            let number = *known.entry(key).or_insert_with(|| {
                let flow = found(self.index, flow);
                *names
                    .entry(self.name(lifelines, flow, &servers, begins, answers))
                    .or_insert(next)
            });
            groups.push(number);
        }
        let order: Vec<u32> = names.values().copied().collect();
        let mut place = vec![0_u32; order.len()];
        order
            .iter()
            .enumerate()
            .for_each(|(at, number)| place[*number as usize] = at as u32);
        lifelines
            .lines
            .iter_mut()
            .zip(groups)
            .for_each(|(line, group)| line.group = place[group as usize]);
        lifelines.groups = names.into_keys().collect();
    }

    fn name(
        &self,
        lifelines: &Lifelines,
        flow: Option<&RunFlow>,
        servers: &Servers,
        begins: u32,
        answers: u32,
    ) -> String {
        let host = |point: u32| lifelines.points[point as usize].host.clone();
        match (self.by, flow) {
            (LifelineGroupKey::Server, Some(flow)) if servers.begin => flow.hosts.0.clone(),
            (LifelineGroupKey::Server, Some(flow)) => flow.hosts.1.clone(),
            (LifelineGroupKey::Stack, Some(flow)) => flow.stack.clone(),
            (LifelineGroupKey::Flow, Some(flow)) => {
                format!("{} {}>{}", flow.id, flow.hosts.0, flow.hosts.1)
            }
            (LifelineGroupKey::Host, _) => host(begins),
            (LifelineGroupKey::Server, None) if answers == begins => UNKNOWN.to_owned(),
            (LifelineGroupKey::Server, None) => host(answers),
            (LifelineGroupKey::Stack | LifelineGroupKey::Flow, None) => UNKNOWN.to_owned(),
        }
    }
}

/// Which hosts count as servers when lines are grouped by server.
struct Servers {
    /// Whether flows begin at several hosts and all end at one: then the initiators are the servers.
    begin: bool,
    /// By point: whether its host is on all lines without a flow, besides the host where they begin; a name server is an example.
    common: Vec<bool>,
}

impl Servers {
    fn from_index(index: Option<&Index>, lifelines: &Lifelines) -> Self {
        let flows: BTreeSet<u32> = lifelines
            .lines
            .iter()
            .filter_map(|line| line.flow)
            .collect();
        let hosts: Vec<&(String, String)> = flows
            .iter()
            .filter_map(|flow| Some(&found(index, Some(*flow))?.hosts))
            .collect();
        let count = |end: fn(&(String, String)) -> &String| {
            hosts
                .iter()
                .map(|hosts| end(hosts))
                .collect::<BTreeSet<_>>()
                .len()
        };
        let begin = count(|hosts| &hosts.0) > 1 && count(|hosts| &hosts.1) == 1;
        let mut lines = 0_u64;
        let mut met: BTreeMap<&str, u64> = BTreeMap::new();
        for line in lifelines.lines.iter().filter(|line| line.flow.is_none()) {
            let passages = lifelines.passages_of(line);
            let others: BTreeSet<&str> =
                others(lifelines, passages).map(|(_, host)| host).collect();
            lines += u64::from(!others.is_empty());
            others
                .into_iter()
                .for_each(|host| *met.entry(host).or_default() += 1);
        }
        let common = |host: &str| met.get(host).is_some_and(|count| *count == lines);
        Self {
            begin,
            common: lifelines
                .points
                .iter()
                .map(|point| common(&point.host))
                .collect(),
        }
    }

    /// The first point that is on another host than the line's beginning and not on a host of all lines; if there is none, the first on
    /// another host; else the beginning itself.
    fn of_line(&self, lifelines: &Lifelines, passages: &[LifelinePassage]) -> u32 {
        let begins = passages.first().map_or(0, |passage| passage.point);
        let all = || others(lifelines, passages).map(|(point, _)| point);
        all()
            .find(|point| !self.common[*point as usize])
            .or_else(|| all().next())
            .unwrap_or(begins)
    }
}

/// The points of a line on other hosts than the one where it begins.
fn others<'l>(
    lifelines: &'l Lifelines,
    passages: &'l [LifelinePassage],
) -> impl Iterator<Item = (u32, &'l str)> {
    let host = |point: u32| lifelines.points[point as usize].host.as_str();
    let begins = passages.first().map_or("", |passage| host(passage.point));
    passages
        .iter()
        .map(move |passage| (passage.point, host(passage.point)))
        .filter(move |(_, host)| *host != begins)
}

/// The name of the group of lines whose group is not known.
const UNKNOWN: &str = "unknown";

/// Appends the wanted points to `list`, by rank. Returns the new number of each point.
fn numbered(
    known: &[ClassifiedPoint],
    ranks: &[u32],
    wanted: impl Fn(usize) -> bool,
    list: &mut Vec<LifelinePoint>,
) -> Vec<u32> {
    let mut order: Vec<usize> = (0..known.len()).filter(|point| wanted(*point)).collect();
    order.sort_by_key(|point| ranks[*point]);
    let mut numbers = vec![0; known.len()];
    for point in order {
        numbers[point] = list.len() as u32;
        list.push(known[point].point.clone());
    }
    numbers
}

/// The largest clock error of any two hosts that follow each other on a line, ns.
fn neighbours_error(lifelines: &Lifelines, index: Option<&Index>) -> u64 {
    let Some(index) = index.filter(|index| {
        index
            .hosts
            .values()
            .any(|host| host.clock.error_ns.unwrap_or(0) > 0)
    }) else {
        return 0;
    };
    let mut pairs: BTreeSet<(u32, u32)> = BTreeSet::new();
    for line in &lifelines.lines {
        pairs.extend(
            lifelines
                .passages_of(line)
                .windows(2)
                .map(|pair| (pair[0].point, pair[1].point)),
        );
    }
    let host = |point: u32| lifelines.points[point as usize].host.as_str();
    pairs
        .iter()
        .filter_map(|(a, b)| clock_error(Some(index), host(*a), host(*b)))
        .max()
        .unwrap_or(0)
}

/// The flow that an id of stackline's own contains; `None` for foreign ids.
fn flow(name: &Id, own: Option<&bool>) -> Option<u32> {
    match name {
        Id::Number(number) if own == Some(&true) && *number >= 0 => {
            Some(unit_ids::parts(*number).0)
        }
        _ => None,
    }
}

fn found(index: Option<&Index>, flow: Option<u32>) -> Option<&RunFlow> {
    index?.flow(flow?)
}
