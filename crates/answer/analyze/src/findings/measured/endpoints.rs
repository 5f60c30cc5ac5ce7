//! How each endpoint (one side of a flow) spent its time, by its own host's clock: inside operations of the specification language, where
//! it waits for the transport and the other side, or outside of them, where the others wait for it.

use crate::findings::event_log::{FlowByteRange, MOST};
use crate::findings::finding::LEAST;
use crate::findings::measured::measurement::FindingMeasurement;
use crate::findings::measured::part::opposite_side;
use crate::statistics::to_f64;
use stackline_core::procedure::PairSide;
use stackline_events::unit_ids::{EventStreamDirection, stream_parts};
use std::collections::BTreeMap;

/// Whether an event marks the begin or the end of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OperationEdge {
    Begin,
    End,
}

/// The events of operations: keyword, whether it begins or ends the operation, and which side emits it.
const EDGES: &[(&str, OperationEdge, OperationActor)] = &[
    (
        "APP_CONNECT",
        OperationEdge::Begin,
        OperationActor::Is(PairSide::Initiator),
    ),
    (
        "APP_CONNECTED",
        OperationEdge::End,
        OperationActor::Is(PairSide::Initiator),
    ),
    ("APP_START", OperationEdge::End, OperationActor::Sends),
    (
        "APP_CALL",
        OperationEdge::Begin,
        OperationActor::Is(PairSide::Initiator),
    ),
    (
        "APP_RESPONSE",
        OperationEdge::End,
        OperationActor::Is(PairSide::Initiator),
    ),
    (
        "APP_LOST",
        OperationEdge::End,
        OperationActor::Is(PairSide::Initiator),
    ),
    ("APP_STOP", OperationEdge::Begin, OperationActor::Sends),
    (
        "APP_DISCONNECT",
        OperationEdge::Begin,
        OperationActor::Is(PairSide::Initiator),
    ),
    (
        "APP_DISCONNECTED",
        OperationEdge::End,
        OperationActor::Is(PairSide::Initiator),
    ),
    (
        "APP_ACCEPTED",
        OperationEdge::End,
        OperationActor::Is(PairSide::Responder),
    ),
    (
        "APP_INDICATION",
        OperationEdge::End,
        OperationActor::Is(PairSide::Responder),
    ),
    (
        "APP_REPLY",
        OperationEdge::Begin,
        OperationActor::Is(PairSide::Responder),
    ),
    (
        "APP_REPLIED",
        OperationEdge::End,
        OperationActor::Is(PairSide::Responder),
    ),
    ("APP_SEND", OperationEdge::Begin, OperationActor::Sends),
    ("APP_SENT", OperationEdge::End, OperationActor::Sends),
    ("APP_AWAIT", OperationEdge::Begin, OperationActor::Receives),
    ("APP_RECEIVED", OperationEdge::End, OperationActor::Receives),
];

/// Which side emits an event: always the same one, or the sender or receiver of the event's stream.
#[derive(Clone, Copy, Debug)]
enum OperationActor {
    Is(PairSide),
    Sends,
    Receives,
}

impl OperationActor {
    /// The side that emits the event, given the event's stream.
    fn side_of_stream(self, stream: i64) -> PairSide {
        let sender = if stream_parts(stream).1 == EventStreamDirection::There {
            PairSide::Initiator
        } else {
            PairSide::Responder
        };
        match self {
            Self::Is(side) => side,
            Self::Sends => sender,
            Self::Receives => opposite_side(sender),
        }
    }
}

/// The time that the endpoints of one side spent outside of all operations and so held the others up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outside {
    /// All of it, s.
    pub(crate) total_s: f64,
    /// The longest periods, longest first: seconds, and the rows of the events before and after.
    pub(crate) longest: Vec<(f64, u32, u32)>,
    /// The number of periods.
    pub(crate) times: u64,
}

impl Outside {
    /// The rows of the events around the longest periods.
    pub(crate) fn rows(&self) -> Vec<u32> {
        self.longest
            .iter()
            .flat_map(|(_, end, begin)| [*end, *begin])
            .collect()
    }
}

/// A wait: an operation that receives data, a response or a connection, with the bytes that it needed.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveWait {
    /// When it began and ended, reference time, ns; both by one host's clock.
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    /// The bytes it waited for; for a call those of the request and of the response.
    pub(crate) needs: Vec<FlowByteRange>,
    /// The id of the call it waited for: events of datagrams give the call, but no offset in a stream.
    pub(crate) call: Option<i64>,
    /// The flow whose connection it waited for: the packets that open a connection carry no bytes of the stream.
    pub(crate) opens: Option<u32>,
    /// The event that ended it.
    pub(crate) row: u32,
}

impl ReceiveWait {
    /// Its length, s.
    pub(crate) fn seconds(&self) -> f64 {
        to_f64(self.to_ns.saturating_sub(self.from_ns)) / 1e9
    }
}

/// The operation events of each endpoint in the order of time, as row and edge; the key is the flow and whether it is the responder.
fn walks(measurement: &FindingMeasurement<'_>) -> BTreeMap<(u32, bool), Vec<(u32, OperationEdge)>> {
    let log = measurement.log;
    let mut walks: BTreeMap<(u32, bool), Vec<(u32, OperationEdge)>> = BTreeMap::new();
    for (keyword, edge, who) in EDGES {
        for row in measurement.rows(keyword) {
            let Some(stream) = log.number(row, "stream") else {
                continue;
            };
            let flow = stream_parts(stream).0;
            let side = on_one_side(measurement, flow, log.host(row))
                .unwrap_or_else(|| who.side_of_stream(stream));
            walks
                .entry((flow, side == PairSide::Responder))
                .or_default()
                .push((row, *edge));
        }
    }
    // Events of the same instant keep the order of their rows, in which the host emitted them.
    walks
        .values_mut()
        .for_each(|walk| walk.sort_by_key(|(row, _)| (log.at(*row), *row)));
    walks
}

/// Whether so many events of a host were lost that the absence of an event proves nothing.
fn misses(measurement: &FindingMeasurement<'_>, host: &str) -> bool {
    let trace = measurement.log.input.index.hosts.get(host);
    trace.is_some_and(|trace| {
        to_f64(trace.lost) >= LEAST * to_f64(trace.lost.saturating_add(trace.recorded))
    })
}

/// The side of a flow that runs on a host; `None` if both sides or neither do.
fn on_one_side(measurement: &FindingMeasurement<'_>, flow: u32, host: &str) -> Option<PairSide> {
    let (initiator, responder) = &measurement.log.input.index.flow(flow)?.hosts;
    match (initiator == host, responder == host) {
        (true, false) => Some(PairSide::Initiator),
        (false, true) => Some(PairSide::Responder),
        _ => None,
    }
}

/// The time that the endpoints of a part spent outside operations, by side, over all flows of the part.
pub(crate) fn measure_outside_time(
    measurement: &FindingMeasurement<'_>,
    part: usize,
) -> BTreeMap<PairSide, Outside> {
    let log = measurement.log;
    let clocks = clocks(measurement);
    let mut by_side: BTreeMap<PairSide, Outside> = BTreeMap::new();
    for ((flow, responder), walk) in walks(measurement) {
        if measurement
            .log
            .input
            .index
            .flow(flow)
            .is_none_or(|flow| flow.part != part)
        {
            continue;
        }
        let side = if responder {
            PairSide::Responder
        } else {
            PairSide::Initiator
        };
        let host = walk.first().map_or("", |(row, _)| log.host(*row));
        if misses(measurement, host) {
            continue;
        }
        let outside = by_side.entry(side).or_default();
        let (first, last) = clocks.get(&flow).copied().unwrap_or((0, u64::MAX));
        for (at, pair) in walk.windows(2).enumerate() {
            let ((end, OperationEdge::End), (begin, edge)) = (pair[0], pair[1]) else {
                continue;
            };
            let (from, to) = (log.at(end).max(first), log.at(begin).min(last));
            let next = walk.get(at + 2).map_or(to, |(row, _)| log.at(*row));
            // If the next operation then waits longer than the endpoint was away, the endpoint held nothing up. Data that is received
            // without waiting was already there.
            let held_up = match edge {
                OperationEdge::Begin => next.saturating_sub(to) <= to.saturating_sub(from),
                OperationEdge::End => log.input.events.keyword(begin as usize) == "APP_RECEIVED",
            };
            // Between its last unit and the stop of the clock a sender waits for the receipt, which is an operation too.
            let keyword = |row: u32| log.input.events.keyword(row as usize);
            let receipt = keyword(end) == "APP_SENT" && keyword(begin) == "APP_STOP";
            if to > from && held_up && !receipt {
                let seconds = to_f64(to - from) / 1e9;
                outside.total_s += seconds;
                outside.times += 1;
                outside.longest.push((seconds, end, begin));
            }
        }
    }
    for outside in by_side.values_mut() {
        outside.longest.sort_by(|a, b| b.0.total_cmp(&a.0));
        outside.longest.truncate(MOST);
    }
    by_side
}

/// When the clock of each flow started and stopped, reference time, ns.
fn clocks(measurement: &FindingMeasurement<'_>) -> BTreeMap<u32, (u64, u64)> {
    let mut clocks: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    // The initiator has the clock; the stream that it sends has the direction `There`.
    let own = |row: &u32| {
        measurement
            .log
            .number(*row, "stream")
            .is_some_and(|stream| stream_parts(stream).1 == EventStreamDirection::There)
    };
    for row in measurement.rows("APP_START").into_iter().filter(own) {
        if let Some(flow) = measurement.log.flow(row) {
            clocks
                .entry(flow)
                .or_insert((measurement.log.at(row), u64::MAX));
        }
    }
    for row in measurement.rows("APP_STOP").into_iter().filter(own) {
        if let Some(clock) = measurement
            .log
            .flow(row)
            .and_then(|flow| clocks.get_mut(&flow))
        {
            clock.1 = measurement.log.at(row);
        }
    }
    clocks
}

/// All waits of measured parts while their clocks ran, in the order in which they ended.
pub(crate) fn collect_receive_waits(measurement: &FindingMeasurement<'_>) -> Vec<ReceiveWait> {
    let log = measurement.log;
    let requests = requests(measurement);
    let clocks = clocks(measurement);
    let mut waits = Vec::new();
    let measured = |flow: u32| {
        let part = log.input.index.flow(flow).map(|flow| flow.part);
        part.is_none_or(|part| {
            measurement
                .parts
                .iter()
                .any(|measured| measured.index == part)
        })
    };
    for ((flow, responder), walk) in walks(measurement)
        .into_iter()
        .filter(|((flow, _), _)| measured(*flow))
    {
        let (first, last) = clocks.get(&flow).copied().unwrap_or((0, u64::MAX));
        for pair in walk.windows(2) {
            let ((before, before_edge), (row, OperationEdge::End)) = (pair[0], pair[1]) else {
                continue;
            };
            let keyword = log.input.events.keyword(row as usize);
            let call = log
                .number(row, "unit")
                .filter(|_| matches!(keyword, "APP_RESPONSE" | "APP_LOST"));
            let needs = match keyword {
                // Data received right after another operation ended was already there: no wait.
                "APP_RECEIVED" if before_edge == OperationEdge::End => continue,
                "APP_RECEIVED" => log.range(row).into_iter().collect(),
                "APP_RESPONSE" | "APP_LOST" => {
                    let request = call.and_then(|unit| requests.get(&unit)).copied();
                    request.into_iter().chain(log.range(row)).collect()
                }
                "APP_CONNECTED" => Vec::new(),
                // The wait for a request is part of the wait of its call.
                _ => continue,
            };
            let (from_ns, to_ns) = (log.at(before).max(first), log.at(row));
            let within = from_ns < last && (responder || to_ns <= last);
            if to_ns > from_ns && within {
                let opens = (keyword == "APP_CONNECTED").then_some(flow);
                waits.push(ReceiveWait {
                    from_ns,
                    to_ns,
                    needs,
                    call,
                    opens,
                    row,
                });
            }
        }
    }
    waits.sort_by_key(|wait| wait.to_ns);
    waits
}

/// The bytes of each call's request, by the id of the call (its unit).
fn requests(measurement: &FindingMeasurement<'_>) -> BTreeMap<i64, FlowByteRange> {
    let rows = measurement.rows("APP_CALL").into_iter();
    rows.filter_map(|row| {
        Some((
            measurement.log.number(row, "unit")?,
            measurement.log.range(row)?,
        ))
    })
    .collect()
}
