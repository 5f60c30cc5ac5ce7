//! Finds, from the events of traced requests, what the spans of lifelines need: names, services, the trace and the parent span of each. A
//! request belongs to the trace that its `traceparent` names, or to the trace of the request that caused it, on whose lifeline it may be.

use super::fnv;
use stackline_analyze::findings::{generalise_request_name, is_failure_status};
use stackline_analyze::lifelines::{Lifeline, LifelinePassage, Lifelines};
use stackline_events::{EventTable, catalogue, unit_ids};
use std::collections::BTreeMap;

/// The longest chain of requests that caused one another.
const DEEPEST: usize = 64;
/// The index of the server's span among the spans of a unit; segments have the indices from 1 on.
const SERVER_SPAN: u64 = u64::MAX;

/// A request, as its events describe it.
#[derive(Clone, Debug, Default)]
struct RequestFacts {
    is_call: bool,
    protocol: String,
    name: String,
    status: String,
    unknown: String,
    /// The hosts of client and server.
    hosts: [String; 2],
    /// The programs of client and server.
    programs: [String; 2],
    /// The unit of the request that caused it.
    parent: Option<i64>,
    /// The ids of the trace and the span that its `traceparent` names.
    context: Option<(String, String)>,
}

/// What is needed for the spans of one unit: their ids, and what its request adds.
#[derive(Clone, Debug, Default)]
pub(super) struct UnitSpans {
    /// The index of the lifeline it is on.
    pub(super) line: usize,
    /// Whether it is the lifeline's own unit, rather than a request on it.
    pub(super) is_of_line: bool,
    /// Its events on the lifeline.
    pub(super) passages: Vec<LifelinePassage>,
    /// When it began, if that was before its first event: at the start of its connection, ns.
    pub(super) began_ns: Option<u64>,
    /// The trace id.
    pub(super) trace: [u8; 16],
    /// The id of the root span's parent; empty if there is none.
    pub(super) parent: Vec<u8>,
    /// The span name, for a request or a connection.
    pub(super) name: Option<String>,
    /// Whether the unit is a request.
    pub(super) is_request: bool,
    /// Why the request failed, if it did.
    pub(super) failure: Option<String>,
    /// The request's attributes: name and value.
    pub(super) texts: Vec<(&'static str, String)>,
    /// The first and the last passage at the server, if the client was captured too.
    pub(super) server: Option<(usize, usize)>,
    /// The unit's number, if it has one.
    unit: Option<i64>,
    /// The seed of its span ids.
    seed: [u8; 16],
    hosts: [String; 2],
    services: [String; 2],
    is_of_server: bool,
}

impl UnitSpans {
    /// The id of a span of this unit: 0 is the root, segment `n` has index `n + 1`. Ids of different units differ.
    pub(super) fn span(&self, index: u64) -> Vec<u8> {
        let seed = [&self.seed[..], &index.to_be_bytes()].concat();
        fnv(&seed).max(1).to_be_bytes().to_vec()
    }

    /// The unit's id as text; a unit without a number has that of its lifeline.
    pub(super) fn id(&self, line: &Lifeline) -> String {
        self.unit
            .map_or_else(|| line.unit.to_string(), |unit| unit.to_string())
    }

    /// The id of the server's span.
    pub(super) fn server_span(&self) -> Vec<u8> {
        self.span(SERVER_SPAN)
    }

    /// The id of the span under which the requests are that this request caused.
    fn span_of_server(&self) -> Vec<u8> {
        match self.server {
            Some(_) => self.server_span(),
            None => self.span(0),
        }
    }

    /// Whether the root span is the server's, because the client was not captured.
    pub(super) const fn is_of_server(&self) -> bool {
        self.is_of_server
    }

    /// The service of a host: the program of the request's end there.
    pub(super) fn service(&self, host: &str, is_server: bool) -> Option<&str> {
        self.name.as_ref()?;
        let order = if is_server { [1, 0] } else { [0, 1] };
        let end = order.into_iter().find(|end| self.hosts[*end] == host)?;
        Some(&self.services[end])
    }
}

/// All units on the lifelines, in the order of lifelines and of their first events.
pub(super) fn find_unit_spans(lifelines: &Lifelines, events: &EventTable) -> Vec<UnitSpans> {
    let facts = collect_facts(events);
    let firsts = first_calls(&facts);
    let mut all: Vec<UnitSpans> = Vec::new();
    for (at, line) in lifelines.lines.iter().enumerate() {
        for (unit, passages) in units_of(lifelines, line, events, &facts) {
            let is_of_line = unit == line.unit.number();
            let id = unit.map_or_else(|| line.unit.to_string(), |unit| unit.to_string());
            let own = own_spans(
                lifelines,
                &passages,
                at,
                &id,
                unit.and_then(|unit| facts.get(&unit)),
            );
            all.push(UnitSpans {
                line: at,
                is_of_line,
                passages,
                unit,
                ..own
            });
        }
    }
    let places: BTreeMap<i64, usize> = all
        .iter()
        .enumerate()
        .filter_map(|(at, one)| Some((one.unit?, at)))
        .collect();
    name_connections(&mut all, &facts, &firsts, &places);
    for at in 0..all.len() {
        (all[at].trace, all[at].parent) = place(at, &all, &facts, &firsts, &places);
    }
    all
}

/// The units on a lifeline, with the events of each: the lifeline's own unit, and the requests that it caused.
fn units_of(
    lifelines: &Lifelines,
    line: &Lifeline,
    events: &EventTable,
    facts: &BTreeMap<i64, RequestFacts>,
) -> Vec<(Option<i64>, Vec<LifelinePassage>)> {
    let own = line.unit.number();
    let mut units: Vec<(Option<i64>, Vec<LifelinePassage>)> = Vec::new();
    let mut by_flow: BTreeMap<u32, i64> = BTreeMap::new();
    for passage in lifelines.passages_of(line) {
        let row = passage.row as usize;
        let number = |field: usize| (row < events.len()).then(|| events.number(row, field))?;
        let named = number(0).filter(|unit| facts.contains_key(unit));
        if let Some(unit) = named {
            by_flow.insert(unit_ids::parts(unit).0, unit);
        }
        // Packets name a range of a stream, so they belong to the latest request on its connection.
        let carried = || by_flow.get(&unit_ids::stream_parts(number(1)?).0).copied();
        let unit = named.or_else(carried).or(own);
        match units.iter_mut().find(|(other, _)| *other == unit) {
            Some((_, passages)) => passages.push(*passage),
            None => units.push((unit, vec![*passage])),
        }
    }
    units
}

/// Names the units of connections `connect`, with the services of the first request on the connection; that request begins when the
/// connection begins.
fn name_connections(
    all: &mut [UnitSpans],
    facts: &BTreeMap<i64, RequestFacts>,
    firsts: &BTreeMap<u32, i64>,
    places: &BTreeMap<i64, usize>,
) {
    for at in 0..all.len() {
        let Some(unit) = all[at].unit.filter(|unit| !facts.contains_key(unit)) else {
            continue;
        };
        let above = above(unit, facts, firsts);
        if let Some((above, place)) = above.and_then(|above| Some((above, *places.get(&above)?))) {
            all[place].began_ns = all[at].passages.first().map(|first| first.at_ns);
            all[at].name = Some("connect".to_owned());
            all[at].hosts.clone_from(&facts[&above].hosts);
            all[at].services = services(&facts[&above]);
        }
    }
}

/// The trace of a unit, and the parent of its root span.
fn place(
    at: usize,
    all: &[UnitSpans],
    facts: &BTreeMap<i64, RequestFacts>,
    firsts: &BTreeMap<u32, i64>,
    places: &BTreeMap<i64, usize>,
) -> ([u8; 16], Vec<u8>) {
    let (mut now, mut parent) = (at, Vec::new());
    for step in 0..DEEPEST {
        let Some(unit) = all[now].unit else { break };
        let said = facts.get(&unit).and_then(|one| one.context.as_ref());
        let above = above(unit, facts, firsts);
        // A server that passes its client's header on unchanged made this request for that one, whose parent the header names.
        let is_there = |above: &i64| places.contains_key(above);
        let of_above = above
            .filter(is_there)
            .and_then(|above| facts.get(&above)?.context.as_ref());
        let said = said.filter(|said| of_above != Some(*said));
        if let Some((trace, span)) = said.and_then(|(trace, span)| ids_of(trace, span)) {
            return (trace, if step == 0 { span } else { parent });
        }
        let Some((above, next)) = above.and_then(|above| Some((above, *places.get(&above)?)))
        else {
            break;
        };
        if step == 0 {
            let is_made_for = facts
                .get(&unit)
                .is_some_and(|one| one.parent == Some(above));
            parent = match is_made_for {
                true => all[next].span_of_server(),
                // A connection or a handshake belongs to the client's span.
                false => all[next].span(0),
            };
        }
        now = next;
    }
    (all[now].seed, parent)
}

/// The request that caused this request, or that a handshake or a connection belongs to.
fn above(
    unit: i64,
    facts: &BTreeMap<i64, RequestFacts>,
    firsts: &BTreeMap<u32, i64>,
) -> Option<i64> {
    let (flow, _, is_connection) = unit_ids::parts(unit);
    let first = || firsts.get(&flow).copied();
    match facts.get(&unit) {
        Some(one) if one.is_call => one.parent,
        Some(one) => one.parent.or_else(first),
        None if is_connection => first(),
        None => None,
    }
    .filter(|above| *above != unit)
}

/// The first call on each connection, by flow number.
fn first_calls(facts: &BTreeMap<i64, RequestFacts>) -> BTreeMap<u32, i64> {
    let mut firsts = BTreeMap::new();
    for (unit, _) in facts.iter().filter(|(_, one)| one.is_call) {
        firsts.entry(unit_ids::parts(*unit).0).or_insert(*unit);
    }
    firsts
}

/// The bytes of the ids of a trace and a span.
fn ids_of(trace: &str, span: &str) -> Option<([u8; 16], Vec<u8>)> {
    let trace = u128::from_str_radix(trace, 16).ok()?.to_be_bytes();
    Some((
        trace,
        u64::from_str_radix(span, 16).ok()?.to_be_bytes().to_vec(),
    ))
}

/// The programs of both ends, or their hosts where the program is unknown.
fn services(one: &RequestFacts) -> [String; 2] {
    [0, 1].map(|end| match one.programs[end].is_empty() {
        true => one.hosts[end].clone(),
        false => one.programs[end].clone(),
    })
}

/// What a unit has by itself. The seed of its ids comes from its lifeline's index, its id and its times, so that traces of different runs
/// get different ids.
fn own_spans(
    lifelines: &Lifelines,
    passages: &[LifelinePassage],
    line: usize,
    id: &str,
    facts: Option<&RequestFacts>,
) -> UnitSpans {
    let mut seed = [0; 16];
    let number: u64 = id.parse().unwrap_or_else(|_| fnv(id.as_bytes()));
    let at_ns = |passage: Option<&LifelinePassage>| passage.map_or(0, |passage| passage.at_ns);
    let moments = [line as u64, at_ns(passages.first()), at_ns(passages.last())];
    let moments: Vec<u8> = moments.into_iter().flat_map(u64::to_be_bytes).collect();
    // An id of zeroes is not allowed.
    seed[..8].copy_from_slice(&fnv(&moments).max(1).to_be_bytes());
    seed[8..].copy_from_slice(&number.to_be_bytes());
    let own = UnitSpans {
        trace: seed,
        seed,
        ..UnitSpans::default()
    };
    let Some(one) = facts else { return own };
    let is_client = |passage: &LifelinePassage| {
        lifelines
            .points
            .get(passage.point as usize)
            .is_some_and(|point| point.host == one.hosts[0])
    };
    let has_client = passages.first().is_some_and(is_client);
    UnitSpans {
        name: Some(name_span(one)),
        is_request: true,
        failure: failure(one),
        texts: attributes(one),
        server: has_client
            .then(|| server_passages(lifelines, passages, one))
            .flatten(),
        hosts: one.hosts.clone(),
        services: services(one),
        is_of_server: !has_client,
        ..own
    }
}

/// The first and the last event at the server: those at its host, or, if both programs are on one host, those of the server program.
fn server_passages(
    lifelines: &Lifelines,
    passages: &[LifelinePassage],
    one: &RequestFacts,
) -> Option<(usize, usize)> {
    let is_one_host = one.hosts[0] == one.hosts[1];
    let is_server = |passage: &LifelinePassage| {
        let point = lifelines.points.get(passage.point as usize);
        point.is_some_and(|point| match is_one_host {
            true => matches!(&point.keyword[..], "APP_INDICATION" | "APP_REPLY"),
            false => point.host == one.hosts[1],
        })
    };
    let from = passages.iter().position(is_server)?;
    let to = passages.iter().rposition(is_server)?;
    (passages[to].at_ns >= passages[from].at_ns).then_some((from, to))
}

/// The name of the span: that of the request with its variable parts replaced, so that similar requests share it.
fn name_span(one: &RequestFacts) -> String {
    match &one.name[..] {
        "" => one.protocol.clone(),
        name => generalise_request_name(&one.protocol, name),
    }
}

/// The reason why a request failed, if it did.
fn failure(one: &RequestFacts) -> Option<String> {
    let status = &one.status;
    // In spans that other programs wrote, the protocol may not tell what an error is.
    let is_error = is_failure_status(&one.protocol, status) || status.starts_with("ERR");
    match () {
        () if !one.unknown.is_empty() => Some(one.unknown.clone()),
        () if is_error => Some(status.clone()),
        () => None,
    }
}

/// The attributes of a request, with OpenTelemetry's names where these exist.
fn attributes(one: &RequestFacts) -> Vec<(&'static str, String)> {
    let mut texts = vec![("network.protocol.name", one.protocol.clone())];
    let mut put = |key: &'static str, value: &str| {
        if !value.is_empty() {
            texts.push((key, value.to_owned()));
        }
    };
    put("stackline.request", &one.name);
    put("server.address", &one.hosts[1]);
    if one.protocol.starts_with("HTTP") {
        put("http.response.status_code", &one.status);
    } else {
        put("stackline.status", &one.status);
    }
    texts
}

/// Collects what the events say about requests, by unit.
fn collect_facts(events: &EventTable) -> BTreeMap<i64, RequestFacts> {
    let mut facts: BTreeMap<i64, RequestFacts> = BTreeMap::new();
    for row in 0..events.len() {
        let keyword = events.keyword(row);
        if !matches!(keyword, "REQUEST" | "REQUEST_PARENT" | "REQUEST_TRACE") {
            continue;
        }
        let entry = catalogue::find(keyword);
        let value = |field: &str| {
            let at = entry.and_then(|entry| entry.field(field))?;
            Some(events.value(row, at))
        };
        let text = |field: &str| value(field).map_or_else(String::new, |value| value.to_string());
        let number = |field: &str| value(field).and_then(|value| value.number());
        let Some(unit) = number("unit") else { continue };
        let one = facts.entry(unit).or_default();
        match keyword {
            "REQUEST_PARENT" => one.parent = number("parent"),
            "REQUEST_TRACE" => one.context = Some((text("trace"), text("span"))),
            _ => {
                one.is_call = text("kind") == "call";
                one.protocol = text("protocol");
                (one.name, one.status) = (text("name"), text("status"));
                one.unknown = text("unknown");
                one.hosts = ["client", "server"].map(text);
                one.programs = ["client_program", "server_program"].map(text);
            }
        }
    }
    // Units without an event REQUEST are not requests.
    facts.retain(|_, one| !one.protocol.is_empty());
    facts
}
