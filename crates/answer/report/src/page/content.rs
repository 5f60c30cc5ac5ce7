//! Packs the data of a run's page: names and small tables as JSON, lines and events as columns.
//!
//! Events on lifelines come first, each line's passages and then its marks. Then follow, by time, the *loose* events that the page
//! shows (on no lifeline: monitors, drops of unknown packets) and those that findings name. Further packets of a unit that are on no
//! line are left out. Lines are sorted by their earliest passage, because `page/visible.js` searches them by it.
//! Times are reference times in ns since the first event, so that JavaScript holds them exactly.

use super::packed_columns::{EXACT, PageColumn};
use super::request_trees::PageRequests;
use super::requests_by_name::requests_by_name;
use super::{Content, markup_safe_data};
use crate::colours;
use crate::lifeline_selection::select_lifelines;
use crate::request_names::request_names;
use serde_json::{Map, Value, json};
use stackline_analyze::blocked::{Blocked, blocked, measure_concurrency};
use stackline_analyze::colouring::{Colouring, MOST_COLOURS};
use stackline_analyze::findings::{Advice, Finding, is_about_failures};
use stackline_analyze::lifelines::{Lifeline, LifelineOutcome, LifelinePoint, Lifelines};
use stackline_analyze::names::{point_name, segment_name, segment_place};
use stackline_analyze::profile::{HostStretch, Profile, profiles};
use stackline_analyze::stages::Stages;
use stackline_core::trace_index::HostTrace;
use stackline_events::EventValue;
use stackline_events::catalogue::{self, DataFate, Layer};
use stackline_events::table::FIELDS;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// The data of a page as one block of base64.
pub(super) fn pack_content(content: &Content<'_>) -> String {
    let mut writer = PageContentWriter::new(content);
    let mut lines = select_lifelines(content.lifelines, content.findings, content.most_events);
    lines.retain(|line| begins(content.lifelines, *line).is_some());
    lines.sort_by_key(|line| begins(content.lifelines, *line));
    let named = named(content);
    writer.named = named.values().copied().collect();
    let mut on_lines = vec![false; content.events.len()];
    for passage in content
        .lifelines
        .passages
        .iter()
        .chain(&content.lifelines.marks)
    {
        if let Some(on) = on_lines.get_mut(passage.row as usize) {
            *on = true;
        }
    }
    for line in &lines {
        writer.line(*line as usize);
    }
    let loose = loose(content, &on_lines);
    let step = loose.len().div_ceil(content.most_events.max(1)).max(1);
    let mut kept: Vec<u32> = loose.iter().copied().step_by(step).collect();
    let regular: HashSet<u32> = kept.iter().copied().collect();
    kept.extend(
        writer
            .named
            .iter()
            .filter(|row| !writer.placed.contains_key(row) && !regular.contains(row)),
    );
    kept.sort_by_key(|row| (content.events.at_ns[*row as usize], *row));
    kept.iter().for_each(|row| writer.loose(*row as usize));
    let mut head = head(content, &writer, &named);
    let requests = PageRequests::from_requests(content.requests, content.lifelines, &lines);
    head.insert("accounts".into(), requests.accounts());
    head.insert(
        "requests".into(),
        requests.trees(&writer.requests, writer.origin_ns),
    );
    head.insert(
        "named".into(),
        requests_by_name(content.named, content.lifelines, &lines),
    );
    head.insert(
        "kept".into(),
        json!({
            "lines": lines.len(), "of_lines": content.lifelines.lines.len(),
            "loose": regular.len(), "of_loose": loose.len(),
        }),
    );
    markup_safe_data::pack(head, &writer.columns())
}

/// The time of a line's earliest passage (with wrong clocks it is not the first one), or else of its first mark.
fn begins(lifelines: &Lifelines, line: u32) -> Option<u64> {
    let line = &lifelines.lines[line as usize];
    let passages = lifelines
        .passages_of(line)
        .iter()
        .map(|passage| passage.at_ns)
        .min();
    passages.or_else(|| lifelines.marks_of(line).first().map(|mark| mark.at_ns))
}

/// The rows of the events that findings name, by host and number among the host's events.
fn named<'c>(content: &Content<'c>) -> HashMap<(&'c str, u32), u32> {
    let evidence = content
        .findings
        .iter()
        .flat_map(|finding| &finding.evidence);
    let wanted: HashSet<(&str, u32)> = evidence
        .flat_map(|evidence| &evidence.events)
        .map(|(host, place)| (host.as_str(), *place))
        .collect();
    let mut named = HashMap::new();
    if wanted.is_empty() {
        return named;
    }
    let mut met: HashMap<u32, u32> = HashMap::new();
    for row in 0..content.events.len() {
        let place = met.entry(content.events.host[row]).or_default();
        if let Some(name) = wanted.get(&(content.events.host(row), *place)) {
            named.insert(*name, row as u32);
        }
        *place += 1;
    }
    named
}

/// Rows of the events on no line that the page shows, in the order of the table: monitors, retransmissions and drops, unknown keywords.
fn loose(content: &Content<'_>, on_lines: &[bool]) -> Vec<u32> {
    let events = content.events;
    let mut known: HashMap<u32, bool> = HashMap::new();
    // Neighbouring events mostly have the same keyword, so it is looked up only when it changes.
    let (mut last, mut shown) = (None, false);
    let wanted = |row: &u32| {
        let row = *row as usize;
        if last != Some(events.keyword[row]) {
            last = Some(events.keyword[row]);
            shown = *known
                .entry(events.keyword[row])
                .or_insert_with(|| is_shown(events.keyword(row)));
        }
        shown && !on_lines[row]
    };
    (0..events.len() as u32).filter(wanted).collect()
}

/// Whether the page shows an event with this keyword that is on no line.
fn is_shown(keyword: &str) -> bool {
    catalogue::fate(keyword).is_some()
        || catalogue::find(keyword).is_none_or(|entry| {
            matches!(entry.layer, Layer::Monitor | Layer::Tool)
                || entry.data.first() == Some(&"interval_ns")
        })
}

/// Collects the columns of the page, and the texts that they refer to by number.
struct PageContentWriter<'c> {
    content: &'c Content<'c>,
    origin_ns: u64,
    texts: Vec<String>,
    numbers: HashMap<String, u32>,
    /// Kinds of events as (keyword, host, place): the points of lifelines, then those of marks, then those of loose events.
    kinds: Vec<(String, String, String)>,
    loose_kinds: BTreeMap<(u32, u32), u32>,
    lines: [PageColumn; LINES.len()],
    /// The names of requests, by unit.
    requests: HashMap<i64, String>,
    /// The colour of each line of the lifelines.
    colouring: Colouring,
    /// Pairs of points that follow each other on lines of the page.
    pairs: BTreeSet<(u32, u32)>,
    /// A cache by point: the one that last followed it; most often it does so again.
    latest: Vec<u32>,
    at: PageColumn,
    kind: PageColumn,
    fields: Vec<PageColumn>,
    more: Map<String, Value>,
    /// Rows of the events that findings name.
    named: HashSet<u32>,
    /// By such a row: the number of the event in the page.
    placed: HashMap<u32, u64>,
}

/// The names of the columns of lines.
const LINES: [&str; 10] = [
    "unit", "count", "marks", "group", "flow", "bytes", "outcome", "detail", "colour", "name",
];

impl<'c> PageContentWriter<'c> {
    fn new(content: &'c Content<'c>) -> Self {
        let points = content
            .lifelines
            .points
            .iter()
            .chain(&content.lifelines.marked);
        Self {
            content,
            origin_ns: super::origin_ns(content.index, content.events, content.lifelines),
            texts: Vec::new(),
            numbers: HashMap::new(),
            kinds: points
                .map(|point| (point.keyword.clone(), point.host.clone(), place_of(point)))
                .collect(),
            loose_kinds: BTreeMap::new(),
            lines: Default::default(),
            requests: request_names(content.events),
            colouring: Colouring::from_lifelines(content.lifelines, content.index),
            pairs: BTreeSet::new(),
            latest: vec![u32::MAX; content.lifelines.points.len()],
            at: PageColumn::default(),
            kind: PageColumn::default(),
            fields: (0..content.events.data.len().min(FIELDS))
                .map(|_| PageColumn::default())
                .collect(),
            more: Map::new(),
            named: HashSet::new(),
            placed: HashMap::new(),
        }
    }

    fn line(&mut self, number: usize) {
        let line: &Lifeline = &self.content.lifelines.lines[number];
        let (outcome, detail) = outcome(line.outcome);
        let known =
            |number: Option<u64>| number.map_or(0, |number| number.min(EXACT as u64 - 1) + 1);
        let (texts, numbers) = (&mut self.texts, &mut self.numbers);
        self.lines[0].field(line.unit.to_string().as_str().into(), |text| {
            self::number(texts, numbers, text)
        });
        let name = line.unit.number().and_then(|unit| self.requests.get(&unit));
        let name = name.map_or(EventValue::Absent, |name| EventValue::Text(name));
        self.lines[9].field(name, |text| self::number(texts, numbers, text));
        let plain = [
            u64::from(line.count),
            u64::from(line.mark_count),
            u64::from(line.group),
            known(line.flow.map(u64::from)),
            known(line.bytes),
            outcome,
            u64::from(detail),
            self.colouring.of.get(number).copied().unwrap_or(0).into(),
        ];
        for (column, value) in self.lines[1..].iter_mut().zip(plain) {
            column.plain(value);
        }
        let lifelines = self.content.lifelines;
        for pair in lifelines.passages_of(line).windows(2) {
            let (from, to) = (pair[0].point, pair[1].point);
            if std::mem::replace(&mut self.latest[from as usize], to) != to {
                self.pairs.insert((from, to));
            }
        }
        for passage in lifelines.passages_of(line) {
            self.event(passage.at_ns, passage.point, passage.row as usize);
        }
        let points = lifelines.points.len() as u32;
        for mark in lifelines.marks_of(line) {
            self.event(mark.at_ns, points + mark.point, mark.row as usize);
        }
    }

    fn loose(&mut self, row: usize) {
        let events = self.content.events;
        let names = (events.keyword[row], events.host[row]);
        let next = self.kinds.len() as u32;
        let kind = *self.loose_kinds.entry(names).or_insert(next);
        if kind == next {
            self.kinds.push((
                events.keyword(row).to_owned(),
                events.host(row).to_owned(),
                String::new(),
            ));
        }
        self.event(
            super::reference_ns(self.content.index, events, row),
            kind,
            row,
        );
    }

    fn event(&mut self, at_ns: u64, kind: u32, row: usize) {
        let events = self.content.events;
        if self.named.contains(&(row as u32)) {
            self.placed.insert(row as u32, self.at.count as u64);
        }
        self.at
            .difference(at_ns.saturating_sub(self.origin_ns).min(EXACT as u64) as i64);
        self.kind.plain(u64::from(kind));
        let (texts, numbers) = (&mut self.texts, &mut self.numbers);
        for (field, column) in self.fields.iter_mut().enumerate() {
            column.field(events.value(row, field), |text| {
                number(texts, numbers, text)
            });
        }
        if let Ok(at) = events
            .more
            .binary_search_by_key(&(row as u32), |(row, _)| *row)
        {
            self.more.insert(
                (self.at.count - 1).to_string(),
                events.more[at].1.as_str().into(),
            );
        }
    }

    fn columns(self) -> Vec<(String, PageColumn)> {
        let lines = LINES
            .iter()
            .map(|name| format!("line.{name}"))
            .zip(self.lines);
        let fields = self
            .fields
            .into_iter()
            .enumerate()
            .map(|(field, column)| (format!("event.{field}"), column));
        lines
            .chain([
                ("event.at".into(), self.at),
                ("event.kind".into(), self.kind),
            ])
            .chain(fields)
            .collect()
    }
}

/// The number of a text, given at its first use.
fn number(texts: &mut Vec<String>, numbers: &mut HashMap<String, u32>, text: &str) -> u32 {
    if let Some(number) = numbers.get(text) {
        return *number;
    }
    let number = texts.len() as u32;
    texts.push(text.to_owned());
    numbers.insert(text.to_owned(), number);
    number
}

/// The number of an outcome in `page/model.js`, with its detail: a point, or how often.
pub(super) const fn outcome(outcome: LifelineOutcome) -> (u64, u32) {
    match outcome {
        LifelineOutcome::Complete => (0, 0),
        LifelineOutcome::CacheHit => (1, 0),
        LifelineOutcome::Retried { times } => (2, times),
        LifelineOutcome::Flushed { after } => (3, after),
        LifelineOutcome::NeverArrived { after } => (4, after),
        LifelineOutcome::Headless { before } => (5, before),
        LifelineOutcome::Unfinished { after } => (6, after),
    }
}

/// The name of a fate for the page.
const fn fate(fate: DataFate) -> &'static str {
    match fate {
        DataFate::SentAgain => "retransmitted",
        DataFate::Dropped => "dropped",
        DataFate::GivenUp => "given up",
        DataFate::Flushed => "flushed",
    }
}

fn head(
    content: &Content<'_>,
    writer: &PageContentWriter<'_>,
    named: &HashMap<(&str, u32), u32>,
) -> Map<String, Value> {
    let since = |at_ns: u64| at_ns.saturating_sub(writer.origin_ns).min(EXACT as u64);
    let runs = content.index.runs.iter().map(|run| {
        json!({
            "measurement": run.measurement, "run": run.run, "warmup": run.warmup,
            "from": since(run.from_ns), "to": since(run.to_ns),
        })
    });
    let keywords: BTreeSet<&str> = writer
        .kinds
        .iter()
        .map(|(keyword, ..)| keyword.as_str())
        .collect();
    let rows = keywords.into_iter().filter_map(catalogue::find);
    let entry = |entry: &catalogue::CatalogueEntry| json!({ "layer": layer(entry.layer), "data": entry.data, "help": entry.help });
    let event = |(host, place): &(String, u32)| {
        writer
            .placed
            .get(named.get(&(host.as_str(), *place))?)
            .copied()
    };
    let head = json!({
        "title": content.title,
        "started": content.started,
        "colours": colours::json(),
        "run": once(content.run),
        "printed": content.printed,
        "specification": content.specification,
        "environment": content.environment,
        "findings": content.findings.iter().map(|f| finding(f, &since, &event)).collect::<Vec<_>>(),
        "origin_ns": writer.origin_ns.to_string(),
        "reference": content.index.reference,
        "clock_error_ns": content.lifelines.clock_error_ns.min(EXACT as u64),
        "hosts": content.index.hosts.iter().map(|(name, trace)| (name.clone(), host(trace))).collect::<Map<_, _>>(),
        "runs": runs.collect::<Vec<_>>(),
        "flows": content.index.flows,
        "groups": content.lifelines.groups,
        "points": content.lifelines.points.len(),
        "stages": stages(content.lifelines),
        "segments": segments(content.lifelines, &writer.pairs),
        "servers": servers(content.lifelines, &since),
        "colouring": { "by": writer.colouring.by, "names": writer.colouring.names },
        "marked": content.lifelines.marked.len(),
        "kinds": writer.kinds,
        "fates": writer.kinds.iter().map(|(keyword, ..)| catalogue::fate(keyword).map(fate)).collect::<Vec<_>>(),
        "catalogue": rows.map(|row| (row.keyword.to_owned(), entry(row))).collect::<Map<_, _>>(),
        "texts": writer.texts,
        "more": writer.more,
    });
    if let Value::Object(head) = head {
        head
    } else {
        Map::new()
    }
}

/// The run with the text of each measurement only at its first part: it can be long, and there can be many parts.
fn once(run: &Value) -> Value {
    let mut run = run.clone();
    let mut last = Value::Null;
    for row in run["measurements"]
        .as_array_mut()
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        if row.get("measurement") == Some(&last) {
            row.remove("text");
        } else {
            last = row.get("measurement").cloned().unwrap_or_default();
        }
    }
    run
}

/// When servers were blocked, how often several at once, and how each host spent its time.
fn servers(lifelines: &Lifelines, since: &impl Fn(u64) -> u64) -> Value {
    let mut blocked = blocked(lifelines);
    let together = measure_concurrency(&blocked);
    blocked.retain(|one| !one.intervals.is_empty());
    // The servers that were blocked longest, in the order of groups.
    blocked.sort_by_key(|one| (std::cmp::Reverse(one.blocked_ns), one.group));
    blocked.truncate(MOST_COLOURS);
    blocked.sort_by_key(|one| one.group);
    let of_group = |one: &Blocked| {
        json!({
            "group": one.group,
            "intervals": one.intervals.iter().map(|(from, to)| [since(*from), since(*to)]).collect::<Vec<_>>(),
            "blocked_ns": one.blocked_ns, "busy_ns": one.busy_ns, "threshold_ns": one.threshold_ns,
        })
    };
    let name = |point: u32| point_name(&lifelines.points[point as usize]);
    let profiles = profiles(lifelines);
    let stretch = |profile: &Profile, (at, one): (usize, &HostStretch)| {
        json!({
            "name": format!("{} to {}", name(one.from), name(one.to)), "units": one.units, "flushed": one.flushed,
            "share": profile.share(one.busy_ns), "at_once": one.at_once(), "waits": one.waits_for.is_some(),
            "limits": profile.limits(at),
        })
    };
    let of_host = |profile: &Profile| {
        json!({
            "host": profile.host, "idle": profile.share(profile.idle_ns), "answers": profile.answers(),
            "stretches": profile.stretches.iter().enumerate().map(|one| stretch(profile, one)).collect::<Vec<_>>(),
        })
    };
    json!({
        "blocked": blocked.iter().map(of_group).collect::<Vec<_>>(),
        "together": together,
        "profiles": profiles.iter().filter(|profile| profile.stretches.len() > 1).take(MOST_HOSTS).map(of_host).collect::<Vec<_>>(),
    })
}

/// The port or direction of a point, and its service if it has one.
fn place_of(point: &LifelinePoint) -> String {
    match (point.place.as_str(), point.service.as_str()) {
        (place, "") => place.to_owned(),
        ("", service) => format!("for {service}"),
        (place, service) => format!("{place} for {service}"),
    }
}

/// Most hosts whose profiles a page has.
const MOST_HOSTS: usize = 32;

/// The rows of the picture: the row of each point, and the names and places of rows.
fn stages(lifelines: &Lifelines) -> Value {
    const ROOM: usize = 60;
    let stages = Stages::from_lifelines(lifelines);
    let places: Vec<String> = (0..stages.names.len())
        .map(|stage| stages.place(stage as u32, ROOM))
        .collect();
    json!({ "of": stages.of, "names": stages.names, "places": places })
}

/// The names of the segments between points, and where each is spent.
fn segments(lifelines: &Lifelines, pairs: &BTreeSet<(u32, u32)>) -> Map<String, Value> {
    let point = |at: u32| &lifelines.points[at as usize];
    let named = |(from, to): &(u32, u32)| {
        let (a, b) = (point(*from), point(*to));
        (
            format!("{from}>{to}"),
            json!([segment_name(a, b), segment_place(a, b)]),
        )
    };
    pairs.iter().map(named).collect()
}

fn finding(
    finding: &Finding,
    since: &impl Fn(u64) -> u64,
    event: &impl Fn(&(String, u32)) -> Option<u64>,
) -> Value {
    let evidence = finding.evidence.iter().map(|evidence| {
        json!({
            "what": evidence.what, "from": since(evidence.from_ns), "to": since(evidence.to_ns),
            "units": evidence.units, "events": evidence.events.iter().filter_map(event).collect::<Vec<_>>(),
        })
    });
    json!({
        "kind": finding.kind, "sentence": finding.sentence, "confidence": finding.confidence, "share": (!is_about_failures(finding)).then_some(finding.share), "gain": finding.takes.as_ref().map(stackline_analyze::findings::CauseTimeShare::gain),
        "tries": finding.tries.iter().map(Advice::text).collect::<Vec<_>>(), "measurement": finding.measurement, "evidence": evidence.collect::<Vec<_>>(),
    })
}

fn host(trace: &HostTrace) -> Value {
    let clock = &trace.clock;
    json!({
        "offset_ns": clock.offset_ns, "drift_ppm": clock.drift_ppm, "error_ns": clock.error_ns,
        "exchanges": clock.exchanges.len(), "steps": clock.steps.len(), "kernel": clock.kernel,
        "recorded": trace.recorded, "lost": trace.lost, "cost_s": trace.cost_s, "absent": trace.absent,
        "notes": trace.notes,
    })
}

const fn layer(layer: Layer) -> &'static str {
    match layer {
        Layer::Application => "application",
        Layer::Socket => "socket",
        Layer::Protocol => "protocol",
        Layer::Network => "network",
        Layer::Display => "display",
        Layer::Monitor => "monitor",
        Layer::Tool => "tool",
    }
}

#[cfg(test)]
mod tests;
