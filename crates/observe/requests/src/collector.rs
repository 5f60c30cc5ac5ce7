//! Gathers the finished requests of one observation: emits their events, lists the connections that had them, counts them by
//! protocol, and in the end finds which requests were made for which others (their parents). A live trace and the reading of
//! captures both use it.

use crate::connection::TransferAccount;
use crate::exchange::{Exchange, ExchangeEnd, ExchangeKind};
use crate::exchange_events::{
    ExchangeContext, HostsElsewhere, RequestEventSink, emit_exchange, place_name_among, unit_of,
};
use crate::request_parents::{RequestSpan, find_parents};
use stackline_core::trace_index::RunFlow;
use stackline_dissect::left_out::{Bound, LeftOut};
use stackline_events::catalogue::rows::RequestParent;
use stackline_events::unit_ids::LAST_FLOW;
use std::collections::BTreeMap;

/// The most requests ([`RequestSpan`]s) that are remembered until their parents are looked for. When it is reached, the parents of
/// the older half are looked for and that half is forgotten.
const MOST_SPANS: usize = Bound::Spans.most();
/// The most call durations that are kept of requests that are forgotten already.
const MOST_TIMES: usize = 1 << 20;
/// The most connections that are listed in the index of the run.
const MOST_FLOWS: usize = Bound::Named.most();

/// The threads of both ends of an exchange, and their processes; 0 where one is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeThreads {
    /// The thread that asked.
    pub client: u32,
    /// The process of the thread that asked.
    pub client_process: u32,
    /// The thread that read the request.
    pub reader: u32,
    /// The thread that answered.
    pub server: u32,
    /// The process of the thread that answered.
    pub server_process: u32,
}

/// The requests of one observation.
#[derive(Clone, Debug, Default)]
pub struct RequestCollector {
    /// Names of the observed hosts, by number.
    hosts: Vec<String>,
    /// Names of hosts that are not observed, where the user gave them.
    elsewhere: HostsElsewhere,
    /// Requests whose parents are not looked for yet, or that may still be parents.
    spans: Vec<RequestSpan>,
    /// The parents of all requests that began before this moment have been looked for, ns.
    settled_ns: u64,
    /// Connections with requests, by flow.
    flows: BTreeMap<u32, RunFlow>,
    by_protocol: BTreeMap<&'static str, u64>,
    /// How many exchanges are void: nothing more is known of them than that they took place.
    void: u64,
    /// Durations of calls by unit, ns. A call that turns out to be made for another request is removed.
    call_times: BTreeMap<i64, u64>,
    /// Durations of calls whose parents have been looked for and that have none, ns.
    settled_times: Vec<u64>,
    left_out: LeftOut,
}

impl RequestCollector {
    /// Creates an empty collector. `hosts` are the names of the observed hosts, by number.
    #[must_use]
    pub fn new(hosts: Vec<String>) -> Self {
        Self {
            hosts,
            ..Self::default()
        }
    }

    /// Sets the names of hosts that are not observed.
    #[must_use]
    pub fn naming(mut self, elsewhere: HostsElsewhere) -> Self {
        self.elsewhere = elsewhere;
        self
    }

    /// The names of the observed hosts, by number.
    #[must_use]
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Emits the events of a finished exchange, and remembers it.
    pub fn add(
        &mut self,
        exchange: &Exchange,
        context: &ExchangeContext<'_>,
        threads: ExchangeThreads,
        sink: &mut RequestEventSink<'_>,
    ) {
        let context = ExchangeContext {
            elsewhere: Some(&self.elsewhere),
            ..*context
        };
        emit_exchange(exchange, &context, &self.hosts, sink);
        *self.by_protocol.entry(exchange.protocol).or_default() += 1;
        self.void += u64::from(exchange.void.is_some());
        self.name_flow(exchange);
        self.remember(exchange, threads, sink);
    }

    /// Emits the rows of a finished transfer if requests of its connection were kept; `programs` are those of its ends.
    pub fn add_transfer(
        &mut self,
        transfer: &TransferAccount,
        programs: [&str; 2],
        sink: &mut RequestEventSink<'_>,
    ) {
        let host = transfer.ends.iter().find_map(|end| end.host);
        let host = host.and_then(|host| self.hosts.get(host));
        if let Some(host) = host.filter(|_| self.has_flow(transfer.flow)) {
            transfer.emit(host, programs, sink);
        }
    }

    /// Whether requests of a connection were kept.
    #[must_use]
    pub fn has_flow(&self, flow: u32) -> bool {
        self.flows.contains_key(&(flow & LAST_FLOW))
    }

    /// The name of an end's host, or its address where it has no name.
    #[must_use]
    pub fn place_name(&self, end: &ExchangeEnd) -> String {
        place_name_among(end, &self.hosts, Some(&self.elsewhere))
    }

    /// Adds the connection of an exchange to the index, if it is not there.
    fn name_flow(&mut self, exchange: &Exchange) {
        let id = exchange.flow & LAST_FLOW;
        if self.flows.contains_key(&id) {
            return;
        }
        if self.flows.len() >= MOST_FLOWS {
            return self.left_out.add(Bound::Named, 1);
        }
        let [client, server] = [&exchange.client, &exchange.server].map(|end| self.place_name(end));
        // Logs of QUIC do not always say at which port a server listens: the port is 0 then.
        let service = match exchange.server.address.port() {
            0 => server.clone(),
            port => format!("{server}:{port}"),
        };
        // The hosts of a flow are in the order of its sides: who opened the connection first.
        let hosts = if exchange.reversed {
            (server, client)
        } else {
            (client, server)
        };
        let flow = RunFlow {
            id,
            hosts,
            stack: exchange.protocol.to_owned(),
            service,
            ..RunFlow::default()
        };
        self.flows.insert(id, flow);
    }

    /// Remembers an exchange for the search of parents; one without a beginning or an end is skipped.
    fn remember(
        &mut self,
        exchange: &Exchange,
        threads: ExchangeThreads,
        sink: &mut RequestEventSink<'_>,
    ) {
        let (Some(asked), Some(end)) = (exchange.asked_ns(), exchange.end_ns()) else {
            return;
        };
        if self.spans.len() >= MOST_SPANS {
            self.settle_older_half(sink);
        }
        let (request, unit) = (&exchange.request, unit_of(exchange));
        let begin = exchange.begin_ns().unwrap_or(asked);
        let arrived = request.arrived.map(|(_, last)| last);
        let left = exchange.response.as_ref().and_then(|answer| answer.left);
        if exchange.kind == ExchangeKind::Call && exchange.void.is_none() {
            self.call_times.insert(unit, end.saturating_sub(begin));
        }
        let span = RequestSpan {
            unit,
            client_host: exchange.client.host,
            client: (threads.client, threads.client_process),
            asked: (begin, end),
            server_host: exchange.server.host,
            service: Some(exchange.server.address),
            server: (threads.reader, threads.server, threads.server_process),
            served: (
                request.read.or(arrived).unwrap_or(asked),
                left.map_or(end, |(_, last)| last),
            ),
        };
        // The parents of requests that this one may be the parent of have been looked for already, without it.
        let is_late = span.server_host.is_some() && span.served.0 < self.settled_ns;
        self.left_out.add(Bound::Spans, u64::from(is_late));
        self.spans.push(span);
    }

    /// Looks for the parents of the older half of the requests, emits them, and forgets those requests that can be the parent of no
    /// later one.
    fn settle_older_half(&mut self, sink: &mut RequestEventSink<'_>) {
        let mut asked: Vec<u64> = self.spans.iter().map(|span| span.asked.0).collect();
        let half = asked.len() / 2;
        let (_, middle_ns, _) = asked.select_nth_unstable(half);
        // Requests that began at that very moment are included, so at least half of all are settled.
        self.settled_ns = self.settled_ns.max(middle_ns.saturating_add(1));
        self.emit_parents(sink);
        let settled_ns = self.settled_ns;
        for span in self.spans.iter().filter(|span| span.asked.0 < settled_ns) {
            let time = self.call_times.remove(&span.unit);
            let has_room = self.settled_times.len() < MOST_TIMES;
            self.settled_times.extend(time.filter(|_| has_room));
        }
        self.spans.retain_mut(|span| {
            let is_settled = span.asked.0 < settled_ns;
            if is_settled {
                // It stays as a possible parent only; its own parent is not looked for again.
                span.client_host = None;
            }
            !is_settled || span.server_host.is_some() && span.served.1 >= settled_ns
        });
        if self.spans.len() >= MOST_SPANS {
            self.left_out.add(Bound::Spans, self.spans.len() as u64);
            self.spans.clear();
        }
    }

    /// Emits the parents of all requests that began before `settled_ns`.
    fn emit_parents(&mut self, sink: &mut RequestEventSink<'_>) {
        let children: BTreeMap<i64, (usize, u64)> = self
            .spans
            .iter()
            .filter(|span| span.asked.0 < self.settled_ns)
            .map(|span| (span.unit, (span.client_host.unwrap_or(0), span.asked.1)))
            .collect();
        for (child, parent, ppm) in find_parents(&self.spans, &mut self.left_out) {
            let Some((host, at_ns)) = children.get(&child) else {
                continue;
            };
            self.call_times.remove(&child);
            let host = self.hosts.get(*host).map_or("", String::as_str);
            RequestParent {
                unit: child.into(),
                parent: parent.into(),
                parent_ppm: i64::from(ppm).into(),
            }
            .emit_on(host, *at_ns, sink);
        }
    }

    /// Emits the parents of all remaining requests. No exchange is added after this.
    pub fn finish(&mut self, sink: &mut RequestEventSink<'_>) {
        self.settled_ns = u64::MAX;
        self.emit_parents(sink);
        self.spans.clear();
    }

    /// How many exchanges were added.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.by_protocol.values().sum()
    }

    /// How many exchanges were added, by protocol.
    #[must_use]
    pub const fn by_protocol(&self) -> &BTreeMap<&'static str, u64> {
        &self.by_protocol
    }

    /// How many exchanges are void: nothing more is known of them than that they took place.
    #[must_use]
    pub const fn void(&self) -> u64 {
        self.void
    }

    /// Connections that had requests, in the order of their flow numbers.
    pub fn flows(&self) -> impl Iterator<Item = &RunFlow> {
        self.flows.values()
    }

    /// Durations of calls, ns. After [`RequestCollector::finish`] these are only calls that were made for no other request.
    pub fn call_times(&self) -> impl Iterator<Item = u64> {
        let settled = self.settled_times.iter();
        settled.chain(self.call_times.values()).copied()
    }

    /// What was left out because a bound on memory was reached.
    #[must_use]
    pub const fn left_out(&self) -> &LeftOut {
        &self.left_out
    }
}

/// Words such as `3 requests (2 http, 1 dns)`, by protocol; `None` if there was no request.
#[must_use]
pub fn counted_requests(by_protocol: &BTreeMap<&'static str, u64>) -> Option<String> {
    let count: u64 = by_protocol.values().sum();
    let protocols: Vec<String> = by_protocol
        .iter()
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    let noun = if count == 1 { "request" } else { "requests" };
    (count > 0).then(|| format!("{count} {noun} ({})", protocols.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::ExchangeMessage;
    use stackline_events::EmittedEvent;
    use stackline_redact::RedactedName;

    fn call(flow: u32, number: u64) -> Exchange {
        let place = ExchangeEnd {
            host: None,
            address: "10.0.0.1:80".parse().unwrap(),
        };
        let message = || ExchangeMessage {
            left: Some((1, 2)),
            arrived: Some((3, 4)),
            ..ExchangeMessage::default()
        };
        Exchange {
            flow,
            number,
            kind: ExchangeKind::Call,
            protocol: "http",
            exact: true,
            name: RedactedName::fixed(""),
            status: RedactedName::fixed(""),
            context: None,
            client: place.clone(),
            server: place,
            seen_at: None,
            reversed: false,
            request: message(),
            response: Some(message()),
            turns: Vec::new(),
            parts: 0,
            lookup: None,
            connect: None,
            connect_again: 0,
            handshake: None,
            round_trip_ns: None,
            void: None,
            is_unopened: false,
            gave_up: None,
        }
    }

    #[test]
    fn what_is_beyond_a_bound_is_counted() {
        Bound::Spans.assert_reported(|count| {
            let mut collector = RequestCollector::default();
            let mut one = call(0, 0);
            let sink = &mut |_: &EmittedEvent<'_>| {};
            for at in (10..).take(count - 1) {
                (one.request.left, one.request.arrived) = (Some((at, at)), Some((at, at)));
                one.response.as_mut().unwrap().arrived = Some((at + 2, at + 3));
                collector.remember(&one, ExchangeThreads::default(), sink);
            }
            // Only now is one over that began before all others.
            one.server.host = Some(0);
            (one.request.left, one.request.arrived) = (Some((1, 2)), Some((3, 4)));
            collector.remember(&one, ExchangeThreads::default(), sink);
            collector.left_out
        });
        Bound::Named.assert_reported(|count| {
            let mut collector = RequestCollector::default();
            (0..count as u32).for_each(|flow| collector.name_flow(&call(flow, 0)));
            collector.left_out
        });
    }

    #[test]
    fn what_was_made_for_what_is_found_as_well_while_there_are_many() {
        let mut collector = RequestCollector::new(vec!["front".into(), "back".into()]);
        let mut parents = 0;
        let count = MOST_SPANS as u64;
        for at in 0..count {
            let begin = 100 * at;
            let message = |from: u64| ExchangeMessage {
                left: Some((from, from + 1)),
                arrived: Some((from + 2, from + 3)),
                read: Some(from + 4),
                ..ExchangeMessage::default()
            };
            let mut sink = |event: &EmittedEvent<'_>| {
                parents += u64::from(event.keyword == "REQUEST_PARENT");
            };
            for (number, from, to, threads) in [(0, 20, 60, (7, 8)), (1, 0, 90, (5, 7))] {
                let mut one = call(at as u32, number);
                one.client.host = Some(usize::from(number == 0));
                one.server.host = Some(1);
                one.request = message(begin + from);
                one.response = Some(message(begin + to));
                let threads = ExchangeThreads {
                    client: threads.0,
                    reader: threads.1,
                    server: threads.1,
                    ..ExchangeThreads::default()
                };
                collector.add(&one, &ExchangeContext::default(), threads, &mut sink);
            }
        }
        assert!(collector.spans.len() <= MOST_SPANS);
        collector.finish(&mut |event| parents += u64::from(event.keyword == "REQUEST_PARENT"));
        assert_eq!(parents, count, "each inner request has its outer one");
        assert_eq!(collector.call_times().count() as u64, count);
        assert_eq!(collector.left_out, LeftOut::default());
    }

    #[test]
    fn a_flow_whose_second_side_asks_is_of_both_in_their_order() {
        let mut collector = RequestCollector::new(vec!["a".into(), "b".into()]);
        let mut asked = call(7, 0);
        (asked.client.host, asked.server.host) = (Some(0), Some(1));
        let context = ExchangeContext::default();
        let threads = ExchangeThreads::default();
        collector.add(&asked, &context, threads, &mut |_| {});
        (asked.flow, asked.reversed) = (8, true);
        collector.add(&asked, &context, threads, &mut |_| {});
        let hosts: Vec<_> = collector.flows().map(|flow| flow.hosts.clone()).collect();
        let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        assert_eq!(hosts, [pair("a", "b"), pair("b", "a")]);
        let counted = counted_requests(collector.by_protocol());
        assert_eq!(counted.as_deref(), Some("2 requests (2 http)"));
    }
}
