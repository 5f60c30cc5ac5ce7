//! Attributes the time of each request: every part goes to one cause and one place, and the time of its server's own requests to others
//! goes to their causes. Findings and the table of requests both take their figures from here.

pub(crate) use crate::findings::requests::cause_costs::RequestCause;
use crate::findings::requests::connection_history::ConnectionHistory;
use crate::findings::requests::ends_in_words::both_ends;
use crate::findings::requests::least_time::{FIRST_WINDOW, LARGE, RemainingTransfer};
use crate::findings::requests::message_delays::{answer_delays, request_delays};
use crate::findings::requests::path_rates::{PathRate, measure_path_rates};
use crate::findings::requests::queueing::{RequestMessageKey, measure_queue_waits};
use crate::findings::requests::request::{RequestTimes, TracedRequest, client_name, server_name};
use crate::findings::requests::request_part::{RemainingLimit, RequestPart};
use crate::findings::requests::server_time::{AwaitedRequest, ServerTime, list_awaited};
use crate::findings::rows::EventRows;
use std::collections::{BTreeMap, HashMap};

mod shared_connection;
mod slow_reader;
mod unread;
mod window_limits;

use shared_connection::SharedConnections;
use slow_reader::{client_unread, no_room, paused_by_reader};
use window_limits::LimitedByWindows;

/// The greatest depth to which requests made on behalf of others are followed.
const DEEPEST: u32 = 32;

/// Up to this many bytes (two segments) are sent at once even after a loss.
const FEW_SEGMENTS: i64 = FIRST_WINDOW / 5;

/// The causes on the network. If one of them is removed, the others still take at least what distance, rates and windows require.
const NETWORK_CAUSES: [RequestCause; 9] = [
    RequestCause::Held,
    RequestCause::Loss,
    RequestCause::Window,
    RequestCause::SlowReader,
    RequestCause::SlowStart,
    RequestCause::SenderWindow,
    RequestCause::Rate,
    RequestCause::Queue,
    RequestCause::Distance,
];

/// The quickest times on the network between a client and a server, for one round trip, ns.
#[derive(Clone, Copy, Debug)]
struct Usual {
    /// From client to server.
    there: i64,
    /// From server to client.
    back: i64,
}

/// What is needed to attribute the time of any request of a trace.
pub(crate) struct RequestAccounts<'r> {
    /// All requests of the trace.
    all: &'r [TracedRequest],
    /// How long each message waited in queues of the network, ns; `None` if queues were not recorded.
    waits: Option<HashMap<RequestMessageKey, i64>>,
    /// The slowest link on the path of each long message, where links were recorded.
    rates: HashMap<RequestMessageKey, PathRate>,
    /// The indices of the requests made on behalf of each request, by its unit.
    children: BTreeMap<i64, Vec<usize>>,
    /// The quickest times between each client and server.
    usual: BTreeMap<(&'r str, &'r str), Usual>,
    /// The quickest round trip between a client and a server of which only the client's side was seen, ns.
    trips: BTreeMap<(&'r str, &'r str), i64>,
    /// When each serving program had requests, from reading a request until its answer was sent: begin and end (ns), unit of the request.
    working: BTreeMap<String, Vec<(u64, u64, i64)>>,
    /// What happened before on connections: first windows, losses.
    history: ConnectionHistory,
    /// When long answers filled connections that other answers share.
    shared: SharedConnections,
}

/// Collects the parts of a request's time.
struct RequestShares<'q> {
    request: &'q TracedRequest,
    /// Cause, place and time (ns) of each part.
    shares: Vec<(RequestCause, String, i64)>,
}

impl RequestShares<'_> {
    /// Adds a part whose place is the client program.
    fn of_client(&mut self, cause: RequestCause, ns: i64) {
        self.shares.push((cause, client_name(self.request), ns));
    }

    /// Adds a part whose place is the server program.
    fn of_server(&mut self, cause: RequestCause, ns: i64) {
        self.shares.push((cause, server_name(self.request), ns));
    }

    /// Adds a part whose place are both hosts.
    fn of_pair(&mut self, cause: RequestCause, ns: i64) {
        let pair = format!("{} > {}", self.request.client, self.request.server);
        self.shares.push((cause, pair, ns));
    }

    /// Adds a part whose place are both programs: for requests without an answer.
    fn of_programs(&mut self, cause: RequestCause, ns: i64) {
        self.shares.push((cause, both_ends(self.request), ns));
    }

    /// Adds the parts before the request leaves.
    fn before(&mut self, times: RequestTimes) {
        let host = self.request.client.clone();
        self.shares.push((RequestCause::Lookup, host, times.lookup));
        let lost = if self.request.network.connect_again > 0 {
            times.connect - times.round_trip.unwrap_or(0)
        } else {
            0
        };
        self.of_pair(RequestCause::ConnectLost, lost);
        self.of_pair(RequestCause::Connect, times.connect - lost);
        self.of_pair(RequestCause::Handshake, times.handshake);
        self.of_client(RequestCause::Client, times.client);
    }
}

/// The time of a message on the network, without losses, Nagle's algorithm and full receive buffers, ns.
struct MessageTransit {
    /// The time in queues behind others.
    queued: i64,
    /// The rest of the time.
    rest: i64,
    /// The cause of the rest beyond what the quickest message takes.
    over: RequestCause,
}

/// How long a message waited in queues, ns; `None` if queues were not recorded.
fn waited(
    waits: Option<&HashMap<RequestMessageKey, i64>>,
    request: &TracedRequest,
    is_answer: bool,
) -> Option<i64> {
    waits.map(|waits| waits.get(&(request.unit, is_answer)).copied().unwrap_or(0))
}

impl<'r> RequestAccounts<'r> {
    /// Prepares the attribution for all requests of a log.
    pub(crate) fn from_requests(all: &'r [TracedRequest], log: &EventRows<'_>) -> Self {
        Self::on_network(all, measure_queue_waits(log), measure_path_rates(log))
    }

    /// The same with given waits in queues and rates of paths.
    pub(super) fn on_network(
        all: &'r [TracedRequest],
        waits: Option<HashMap<RequestMessageKey, i64>>,
        rates: HashMap<RequestMessageKey, PathRate>,
    ) -> Self {
        let waited = |request: &TracedRequest, is_answer| {
            waited(waits.as_ref(), request, is_answer).unwrap_or(0)
        };
        let mut children: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        let mut usual: BTreeMap<(&str, &str), Usual> = BTreeMap::new();
        let mut trips: BTreeMap<(&str, &str), i64> = BTreeMap::new();
        let mut working: BTreeMap<String, Vec<(u64, u64, i64)>> = BTreeMap::new();
        for (at, request) in all.iter().enumerate() {
            if let Some(parent) = request.parent {
                children.entry(parent).or_default().push(at);
            }
            if let Some(times) = request.times.filter(|times| times.is_transit_known) {
                let known = usual
                    .entry((&request.client, &request.server))
                    .or_insert(Usual {
                        there: i64::MAX,
                        back: i64::MAX,
                    });
                let each = |ns: i64| ns.max(0) / times.trips();
                known.there = known.there.min(each(times.there - waited(request, false)));
                known.back = known.back.min(each(times.back - waited(request, true)));
            }
            let of_client = request.times.filter(|times| times.is_of_client);
            if let Some(trip) = of_client.and_then(|times| times.round_trip) {
                let known = trips
                    .entry((&request.client, &request.server))
                    .or_insert(trip);
                // An answer that comes sooner than a known round trip shows a shorter one.
                let answered_in = request
                    .times
                    .map_or(trip, |times| times.work / times.trips());
                *known = (*known).min(trip).min(answered_in.max(0));
            }
            if let Some((from, answered)) = request.at_server() {
                let sending = request.times.map_or(0, |times| times.sending.max(0));
                let to = answered.saturating_add(sending.unsigned_abs());
                working
                    .entry(server_name(request))
                    .or_default()
                    .push((from, to, request.unit));
            }
        }
        working.values_mut().for_each(|spans| spans.sort_unstable());
        Self {
            all,
            waits,
            rates,
            children,
            usual,
            trips,
            working,
            history: ConnectionHistory::from_requests(all),
            shared: SharedConnections::from_requests(all),
        }
    }

    /// Calls `put` with each part of a request's time, and of the requests that it waited for.
    pub(crate) fn list_parts(
        &self,
        request: &'r TracedRequest,
        times: RequestTimes,
        put: &mut dyn FnMut(RequestPart<'r>),
    ) {
        self.list_parts_of(request, times, times.whole(), 0, put);
    }

    /// The same for a request at that depth; its parts are scaled down to add up to at most `ns`, the time that others waited for it.
    fn list_parts_of(
        &self,
        request: &'r TracedRequest,
        times: RequestTimes,
        ns: i64,
        depth: u32,
        put: &mut dyn FnMut(RequestPart<'r>),
    ) {
        let mut shares: BTreeMap<(RequestCause, String), i64> = BTreeMap::new();
        for (cause, who, part) in self.shares(request, times, depth, put) {
            *shares.entry((cause, who)).or_default() += part;
        }
        // Events that disagree may make parts negative: these are left out, and the others are scaled down if they exceed the whole.
        shares.retain(|_, part| *part > 0);
        let all: i64 = shares.values().sum();
        if all > ns {
            for part in shares.values_mut() {
                *part = (i128::from(*part) * i128::from(ns) / i128::from(all.max(1))) as i64;
            }
        }
        let is_of_network = |cause: &RequestCause| NETWORK_CAUSES.contains(cause);
        let of_network = shares.iter().filter(|((cause, _), _)| is_of_network(cause));
        let network_ns: i64 = of_network.map(|(_, part)| *part).sum();
        for ((cause, place), part) in shares {
            let (mut removable_ns, mut limit) = (part, None);
            if is_of_network(&cause) && cause != RequestCause::Distance {
                let (least_ns, limits) = self.least_on_network(request, times, cause);
                removable_ns = (network_ns - least_ns).clamp(0, part);
                limit =
                    limits.filter(|limit| removable_ns < part || *limit == RemainingLimit::Unknown);
            }
            put(RequestPart {
                request,
                cause,
                place,
                ns: part,
                removable_ns,
                limit,
                depth,
            });
        }
    }

    /// The least time that both messages take on the network if a cause is removed, ns, and what limits them then.
    fn least_on_network(
        &self,
        request: &TracedRequest,
        times: RequestTimes,
        cause: RequestCause,
    ) -> (i64, Option<RemainingLimit>) {
        let trip_ns = self.trip_ns(request, times);
        let (mut least_ns, mut limit) = (trip_ns, None);
        for (is_answer, bytes) in [(false, request.bytes.0), (true, request.bytes.1)] {
            if bytes < LARGE {
                continue;
            }
            let rate = self.rates.get(&(request.unit, is_answer));
            let (is_rate, is_full) = (
                cause == RequestCause::Rate,
                rate.is_none_or(PathRate::is_full),
            );
            let known = rate.filter(|_| !(is_rate && is_full));
            // A connection that is kept open does not begin with slow start.
            let is_kept = cause == RequestCause::SlowStart || (is_rate && !is_full);
            let usual = self.unhindered_transfer(request, times, is_answer);
            let transfer = RemainingTransfer {
                bit_s: known.map(|rate| rate.bit_s),
                begins_slowly: !is_kept && usual.begins_slowly,
                ..usual
            };
            // Each transfer contains a round trip, which is counted already.
            least_ns += transfer.least_ns() - trip_ns;
            limit = match known {
                Some(rate) if transfer.is_of_rate() => Some(RemainingLimit::Link(rate.to_string())),
                None if rate.is_none() && !is_rate => Some(RemainingLimit::Unknown),
                _ => Some(RemainingLimit::Windows),
            };
        }
        (least_ns, limit)
    }

    /// The round trip between client and server on an idle network, ns.
    fn trip_ns(&self, request: &TracedRequest, times: RequestTimes) -> i64 {
        let usual = self.usual(request);
        let usual = usual.map(|usual| usual.there.saturating_add(usual.back));
        usual.or(times.round_trip).unwrap_or(0).max(0)
    }

    /// Cause, place and time (ns) of each part of a request's own time; calls `put` with the parts of requests that it waited for.
    fn shares(
        &self,
        request: &'r TracedRequest,
        times: RequestTimes,
        depth: u32,
        put: &mut dyn FnMut(RequestPart<'r>),
    ) -> Vec<(RequestCause, String, i64)> {
        let mut shares = RequestShares {
            request,
            shares: Vec::new(),
        };
        shares.before(times);
        // If it waited for other requests that were answered, those may be why its deadline passed.
        let children = self.children.get(&request.unit).into_iter().flatten();
        let has_answers = || {
            let mut children = children.map(|at| &self.all[*at]);
            children.any(|child| !child.has_no_good_answer())
        };
        let is_late = request.exceeds_deadline() && !has_answers();
        if request.is_given_up() || is_late {
            let before = times.lookup + times.connect + times.handshake + times.client;
            let cause = if request.is_ended_by_server() {
                RequestCause::Ended
            } else {
                RequestCause::GivenUp
            };
            shares.of_programs(cause, times.total - before);
            return shares.shares;
        }
        let awaited = self.there(&mut shares, times);
        for (cause, ns) in self.unread(request, times) {
            shares.of_server(cause, ns);
        }
        // If it was seen at the client alone, a round trip of the server's time is really the network's.
        let unseen_ns = self.unseen_network_ns(request, times);
        let paused = answer_delays(request, times).paused - paused_by_reader(request, times);
        let children = match depth < DEEPEST {
            true => self.waited_for(request),
            false => Vec::new(),
        };
        let work = ServerTime {
            ns: times.work - unseen_ns + paused + awaited,
            waited: children.iter().map(|child| child.ns).sum(),
        };
        let within = self.back(&mut shares, times, work.waits_in_answer(request));
        shares.of_pair(RequestCause::Distance, unseen_ns + times.trip_to_server());
        let mut shares = shares.shares;
        let work = ServerTime {
            ns: work.ns + within,
            ..work
        };
        self.work(request, work, &children, &mut shares, &mut |child| {
            let (request, times) = (child.request, child.times);
            self.list_parts_of(request, times, child.ns, depth + 1, &mut |part| {
                put(child.bound(part));
            });
        });
        shares
    }

    /// The part of a server's time that is really the network, for a request that was seen at the client alone, ns: the round trip of the
    /// connection's set-up, or the time of the quickest answer if that is less.
    fn unseen_network_ns(&self, request: &TracedRequest, times: RequestTimes) -> i64 {
        let ends = (request.client.as_str(), request.server.as_str());
        match self.trips.get(&ends) {
            Some(trip) if times.is_of_client => (*trip)
                .saturating_mul(times.trips())
                .clamp(0, times.work.max(0)),
            _ => 0,
        }
    }

    /// Adds the parts while the request leaves and travels. Returns how long its client waited meanwhile for the server (`100 Continue`).
    fn there(&self, shares: &mut RequestShares<'_>, times: RequestTimes) -> i64 {
        let request = shares.request;
        let delays = request_delays(request, times);
        shares.of_client(RequestCause::ClientPause, delays.paused);
        shares.of_client(RequestCause::Held, delays.held);
        shares.of_server(RequestCause::Window, delays.window);
        shares.of_pair(RequestCause::Loss, delays.again);
        let is_large = request.bytes.0 >= LARGE;
        let transit = self.message_transit(request, false, is_large, delays.rest);
        let usual = self.usual(request);
        // For a long request that was seen at one end alone, at most half a round trip is distance.
        let is_kept_small = transit.over == RequestCause::Loss;
        let far = match (is_large, is_kept_small) {
            (true, _) => times.round_trip.unwrap_or(0) / 2,
            // Seen at the server alone, the way is no part of it: all of it is round trips that a larger window would not need.
            (false, true) if times.is_of_server => 0,
            (false, true) => times.round_trip.unwrap_or(0) / 2,
            (false, false) => transit.rest,
        };
        // A short request that is longer than an initial window waits for an acknowledgement before its rest is sent.
        let again = match is_large || is_kept_small {
            true => 0,
            false => request.network.stalled_there_ns,
        };
        let base = usual
            .map_or(far, |usual| usual.there.saturating_add(again))
            .min(transit.rest);
        shares.of_pair(RequestCause::Queue, transit.queued);
        shares.of_pair(RequestCause::Distance, base);
        let over = transit.rest - base;
        let limited = match transit.over {
            RequestCause::Rate => self.limited_by_windows(request, times, false, over),
            _ => LimitedByWindows::default(),
        };
        shares.of_pair(RequestCause::Loss, limited.by_losses);
        shares.of_pair(RequestCause::SlowStart, limited.at_first);
        shares.of_client(RequestCause::SenderWindow, limited.by_sender);
        shares.of_pair(transit.over, over - limited.ns());
        delays.awaited
    }

    /// Adds the parts while the answer leaves and travels, until the client reads it. While it leaves, the server's thread may have waited
    /// for other things than the network: that time is the server's own and returned, ns.
    fn back(
        &self,
        shares: &mut RequestShares<'_>,
        times: RequestTimes,
        waits_in_answer: i64,
    ) -> i64 {
        let request = shares.request;
        let net = request.network;
        let delays = answer_delays(request, times);
        let window = delays.window;
        shares.of_server(RequestCause::Held, delays.held);
        shares.of_client(no_room(request, times, window), window);
        let for_reader = paused_by_reader(request, times);
        shares.of_client(RequestCause::SlowReader, for_reader);
        shares.of_pair(RequestCause::Loss, delays.again);
        let is_large = request.bytes.1 >= LARGE;
        let transit = self.message_transit(request, true, is_large, delays.rest);
        // For a long answer that was seen at one end alone, at most half a round trip is distance.
        let far = match is_large {
            true => times.round_trip.unwrap_or(0) / 2,
            false => times.back,
        };
        let base = self
            .usual(request)
            .map_or(far, |usual| usual.back)
            .clamp(0, transit.rest.max(0));
        shares.of_pair(RequestCause::Queue, transit.queued);
        shares.of_pair(RequestCause::Distance, base);
        let sending = (transit.rest - base)
            .min(times.sending - delays.held - delays.paused - window)
            .max(0);
        // Within a host nothing is in flight: what is not sent while bytes lie unread at the client waits for the client.
        let is_within = is_large && request.client == request.server;
        let late = if is_within {
            (net.late_back_ns - times.client_unread - window - for_reader).clamp(0, sending)
        } else {
            0
        };
        let within = waits_in_answer.clamp(0, sending - late);
        let sending = sending - within;
        shares.of_client(RequestCause::SlowReader, late);
        for (cause, ns) in client_unread(request, times) {
            shares.of_client(cause, ns);
        }
        // Data that the server has handed over is sent as fast as the path and acknowledgements allow.
        let rest = match (request.is_cut_off(), is_large) {
            (true, _) => RequestCause::GivenUp,
            (false, true) => RequestCause::Rate,
            (false, false) if transit.over == RequestCause::Loss => RequestCause::Loss,
            (false, false) => RequestCause::Distance,
        };
        let over = transit.rest - base - within - sending;
        let limited = match rest {
            RequestCause::Rate => {
                self.limited_by_windows(request, times, true, sending - late + over)
            }
            _ => LimitedByWindows::default(),
        };
        shares.of_pair(RequestCause::Loss, limited.by_losses);
        shares.of_pair(RequestCause::SlowStart, limited.at_first);
        shares.of_server(RequestCause::SenderWindow, limited.by_sender);
        let in_sending = limited.ns().min(sending - late);
        let rest_ns = sending - late - in_sending;
        match rest {
            RequestCause::GivenUp => shares.of_programs(rest, rest_ns),
            _ => shares.of_pair(rest, rest_ns),
        }
        shares.of_pair(transit.over, over - (limited.ns() - in_sending));
        within
    }

    /// The requests that a server waited for while it had `request`, and how long.
    fn waited_for(&self, request: &TracedRequest) -> Vec<AwaitedRequest<'r>> {
        let Some((from, answered)) = request.at_server() else {
            return Vec::new();
        };
        let sending = request.times.map_or(0, |times| times.sending.max(0));
        let to = answered.saturating_add(sending.unsigned_abs());
        let children = self.children.get(&request.unit).into_iter().flatten();
        let timed = children.filter_map(|at| {
            let request = &self.all[*at];
            let (begin_ns, end) = (request.begin_ns().max(from), request.end_ns.min(to));
            let ns = i64::try_from(end.saturating_sub(begin_ns)).unwrap_or(i64::MAX);
            let child = AwaitedRequest {
                request,
                times: request.own_times.or(request.times)?,
                begin_ns,
                ns,
                removable_ns: ns,
            };
            Some(child).filter(|child| child.ns > 0)
        });
        list_awaited(timed.collect())
    }

    /// The quickest times between the ends of a request, for all its round trips.
    fn usual(&self, request: &TracedRequest) -> Option<Usual> {
        let ends = (request.client.as_str(), request.server.as_str());
        let trips = request.times.map_or(1, |times| times.trips());
        self.usual.get(&ends).map(|usual| Usual {
            there: usual.there.saturating_mul(trips),
            back: usual.back.saturating_mul(trips),
        })
    }

    /// Splits a message's time on the network (`ns`) into queues and the rest.
    fn message_transit(
        &self,
        request: &TracedRequest,
        is_answer: bool,
        is_large: bool,
        ns: i64,
    ) -> MessageTransit {
        let queued = waited(self.waits.as_ref(), request, is_answer);
        let over = match queued {
            _ if is_large => RequestCause::Rate,
            _ if self.is_kept_small(request, is_answer, ns) => RequestCause::Loss,
            None => RequestCause::Queue,
            // If queues are known, the rest is not due to them.
            Some(_) => RequestCause::Distance,
        };
        // A long message waits behind its own packets, which is due to the rate.
        let queued = queued
            .filter(|_| !is_large)
            .unwrap_or(0)
            .clamp(0, ns.max(0));
        MessageTransit {
            queued,
            rest: ns - queued,
            over,
        }
    }

    /// Whether losses before kept the window of a message's sender so small that it needed more round trips for the `ns` on the network: it
    /// stopped until acknowledgements arrived, or one round trip and a half are less than that.
    fn is_kept_small(&self, request: &TracedRequest, is_answer: bool, ns: i64) -> bool {
        let network = &request.network;
        let stalled_ns = match is_answer {
            true => network.stalled_back_ns,
            false => network.stalled_there_ns,
        };
        let trip_ns = request
            .times
            .map_or(0, |times| self.trip_ns(request, times));
        (stalled_ns > 0 || trip_ns > 0 && ns > trip_ns + trip_ns / 2)
            && request.message_bytes(is_answer) > FEW_SEGMENTS
            && self.history.is_after_loss(request, is_answer)
    }

    /// Adds the parts while the server works. The time of its own requests to others (`children`, those that it waited for one after
    /// another) is given to `put`.
    fn work(
        &self,
        request: &'r TracedRequest,
        time: ServerTime,
        children: &[AwaitedRequest<'r>],
        shares: &mut Vec<(RequestCause, String, i64)>,
        put: &mut dyn FnMut(AwaitedRequest<'r>),
    ) {
        let server = server_name(request);
        let nested = time.nested();
        for child in children {
            let ns = i128::from(child.ns) * i128::from(nested) / i128::from(time.waited.max(1));
            put(AwaitedRequest {
                ns: ns as i64,
                ..*child
            });
        }
        let mut own = time.ns - nested;
        if let Some(responder) = &request.responder {
            shares.push((RequestCause::Responder, responder.name.clone(), own));
            return;
        }
        let Some(work) = request.work else {
            shares.push((RequestCause::Server, server, own));
            return;
        };
        let known = [
            (RequestCause::Compute, work.cpu),
            (RequestCause::NoCore, work.runnable),
            (RequestCause::Lock, work.lock),
            (RequestCause::Disk, work.disk),
            (RequestCause::Sleep, work.sleep),
            (RequestCause::ChildProcess, work.child),
            (RequestCause::Stopped, work.stopped),
            (RequestCause::Collect, work.collect),
            (RequestCause::Observer, work.observer),
        ];
        for (cause, part) in known {
            // No more than the server's own time: what comes last in the list gets less.
            let part = part.min(own);
            shares.push((cause, server.clone(), part));
            own -= part;
        }
        // The thread may have waited because other answers filled the connection.
        let filled = self.shared.waited_ns(request).clamp(0, own.max(0));
        let pair = format!("{} > {}", request.client, request.server);
        shares.push((RequestCause::Rate, pair, filled));
        shares.push((RequestCause::Server, server, own - filled));
    }
}
