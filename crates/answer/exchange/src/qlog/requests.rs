//! Turns streams of logged connections into requests with points on lifelines, as packets of captures do. The log of one end shows what
//! that end sent and received; the logs of both ends show the time on the way too.

use super::streams::{QlogConnection, QlogSide, QlogStream, join_ends};
use crate::capture::FIRST_LOOKUP;
use stackline_core::trace_index::{Index, RunFlow};
use stackline_dissect::conversation::{ExchangeKind, RESET_BEFORE, UNANSWERED};
use stackline_dissect::left_out::LeftOut;
use stackline_events::EventTable;
use stackline_requests::Exchange;
use stackline_requests::collector::{ExchangeThreads, RequestCollector};
use stackline_requests::exchange::{ExchangeEnd, ExchangeMessage};
use stackline_requests::exchange_events::{ExchangeContext, HostsElsewhere};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Reasons of the void for a request without a complete response.
const CUT_OFF: &str = "its answer was cut off";
const SERVER_CLOSED: &str = "the server closed its connection";

/// The requests of all qlog files of an import.
#[derive(Debug)]
pub(crate) struct QlogRequests {
    pub(crate) table: EventTable,
    pub(crate) flows: Vec<RunFlow>,
    /// The number of requests, by protocol.
    pub(crate) counts: BTreeMap<&'static str, u64>,
    /// What was left out because a limit was reached.
    pub(crate) left_out: LeftOut,
}

impl QlogRequests {
    /// Puts connections, and what was left out of them, into the index.
    pub(crate) fn record_in(&self, index: &mut Index) {
        index.flows.extend(self.flows.iter().cloned());
        for (bound, count) in self.left_out.names() {
            *index.left_out.entry(bound).or_default() += count;
        }
    }
}

/// Finds the requests of connections. Their flows are numbered from `first_flow` on, or above; with `contents`, names are kept
/// unredacted.
pub(crate) fn find_requests(
    connections: Vec<QlogConnection>,
    first_flow: u32,
    contents: bool,
) -> QlogRequests {
    let connections = join_ends(connections);
    let first_flow = first_flow.max(behind_streams(&connections));
    let hosts: BTreeSet<&String> = connections
        .iter()
        .flat_map(|connection| connection.hosts.iter().flatten())
        .collect();
    let hosts: Vec<String> = hosts.into_iter().cloned().collect();
    let elsewhere: HostsElsewhere = [QlogSide::Client, QlogSide::Server]
        .map(|side| {
            // A host of another connection may have that name.
            let is_taken = hosts.iter().any(|host| host == side.name());
            let other = if is_taken { "other " } else { "" };
            (stand_in(side), format!("{other}{}", side.name()))
        })
        .into();
    let mut collector = RequestCollector::new(hosts.clone()).naming(elsewhere);
    let mut table = EventTable::default();
    for (flow, connection) in (first_flow..).zip(&connections) {
        let ends = [QlogSide::Client, QlogSide::Server].map(|side| ExchangeEnd {
            host: connection.hosts[side as usize]
                .as_ref()
                .and_then(|name| hosts.iter().position(|host| host == name)),
            address: SocketAddr::new(stand_in(side), 0),
        });
        let exchanges = exchanges_of(connection, flow, &ends);
        for exchange in &exchanges {
            collector.add(
                exchange,
                &ExchangeContext {
                    contents,
                    ..ExchangeContext::default()
                },
                ExchangeThreads::default(),
                &mut table.emitter(),
            );
        }
    }
    collector.finish(&mut table.emitter());
    let mut left_out = LeftOut::default();
    let streams = connections.iter().flat_map(|one| one.streams.values());
    streams
        .flat_map(|stream| &stream.directions)
        .for_each(|direction| direction.passed.left_out(&mut left_out));
    left_out.merge(collector.left_out());
    QlogRequests {
        table,
        flows: collector.flows().cloned().collect(),
        counts: collector.by_protocol().clone(),
        left_out,
    }
}

/// The first flow number whose stream ids cannot be confused with the streams of the logs' packets, which have QUIC's own ids.
fn behind_streams(connections: &[QlogConnection]) -> u32 {
    const LAST: u64 = FIRST_LOOKUP as u64 / 2;
    let streams = connections.iter().map(|connection| connection.last_stream);
    let last = streams.filter(|stream| *stream / 2 < LAST).max();
    last.map_or(0, |last| u32::try_from(last / 2 + 1).unwrap_or(0))
}

/// A stand-in address for an end, since logs have no addresses: 0.0.0.0 for the client, 0.0.0.1 for the server.
fn stand_in(side: QlogSide) -> IpAddr {
    Ipv4Addr::new(0, 0, 0, side as u8).into()
}

/// The requests of a connection: one for each stream that the client opened in both directions. The first one includes the set-up.
fn exchanges_of(connection: &QlogConnection, flow: u32, ends: &[ExchangeEnd; 2]) -> Vec<Exchange> {
    let protocol = match connection.is_http3 {
        true => "HTTP/3",
        false => "QUIC, by streams",
    };
    let mut found = Vec::new();
    // How many bytes of each direction earlier requests take: their streams are put one behind another.
    let mut allotted = [0, 0];
    // The client's time for the set-up is preferred.
    let set_up = connection.set_up.iter().find_map(|set_up| {
        let (first, done) = set_up.first_ns.zip(set_up.done_ns)?;
        (done > first).then_some((first, done))
    });
    for (id, stream) in &connection.streams {
        let [request, response] = [0, 1].map(|side| {
            let direction = &stream.directions[side];
            let message = direction.passed.message(direction.end);
            let from = allotted[side];
            allotted[side] = message.end.saturating_add(from);
            ExchangeMessage {
                from,
                end: allotted[side],
                ..message
            }
        });
        let is_first = found.is_empty();
        let has_answer = stream.directions[1].has_begun;
        let void = void_of(stream, connection);
        let exchange = Exchange {
            flow,
            number: id / 4 + 1,
            kind: ExchangeKind::Call,
            protocol,
            exact: true,
            name: stream.name.clone(),
            status: stream.status.clone(),
            context: None,
            client: ends[0].clone(),
            server: ends[1].clone(),
            seen_at: None,
            reversed: false,
            gave_up: void.and_then(|_| gave_up_ns(stream, connection)),
            request,
            response: has_answer.then_some(response),
            turns: Vec::new(),
            parts: 0,
            lookup: None,
            connect: None,
            connect_again: 0,
            handshake: set_up.filter(|_| is_first),
            round_trip_ns: connection.round_trip_ns,
            void,
            is_unopened: false,
        };
        // Of a stream whose headers alone were logged, no moment is known.
        if exchange.begin_ns().or(exchange.end_ns()).is_some() {
            found.push(exchange);
        }
    }
    found
}

/// Why a stream has no complete response; `None` if it has one.
fn void_of(stream: &QlogStream, connection: &QlogConnection) -> Option<&'static str> {
    let [request, response] = &stream.directions;
    // Where the client's log is there, it says what came; otherwise what left is all that is known.
    let came = match connection.hosts[QlogSide::Client as usize].is_some() {
        true => response.passed.arrived_end(),
        false => response.passed.left_end(),
    };
    let resets = request.reset_ns.iter().chain(&response.reset_ns);
    let is_reset = resets.flatten().next().is_some();
    let is_whole = match response.end {
        Some(end) => came >= end,
        // Where a log never says which frame is the last, all that came is the answer.
        None => !connection.says_ends && came > 0 && !is_reset,
    };
    if is_whole {
        return None;
    }
    if is_reset {
        return Some(RESET_BEFORE);
    }
    if closed(connection).is_some_and(|(_, by_server)| by_server) && !response.has_begun {
        return Some(SERVER_CLOSED);
    }
    Some(match response.has_begun {
        true => CUT_OFF,
        false => UNANSWERED,
    })
}

/// When the client learnt that no response, or no more of it, would come, ns.
fn gave_up_ns(stream: &QlogStream, connection: &QlogConnection) -> Option<u64> {
    // Times of one clock: the client's, if it has a log.
    let resets = [QlogSide::Client, QlogSide::Server]
        .iter()
        .find_map(|side| {
            let of_side = stream.directions.iter();
            of_side
                .filter_map(|direction| direction.reset_ns[*side as usize])
                .min()
        });
    resets.or(closed(connection).map(|(at_ns, _)| at_ns))
}

/// When the connection was closed, and whether by the server: as the client has it, or else as the server has it.
fn closed(connection: &QlogConnection) -> Option<(u64, bool)> {
    connection.closed.into_iter().flatten().next()
}

impl QlogSide {
    /// The name of an end whose log was not imported.
    const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

#[cfg(test)]
mod tests;
