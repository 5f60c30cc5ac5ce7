//! Where each request's time went: every part is given to one cause and one place, and what its server's own requests to others take is
//! given to theirs. Findings and the table of requests both take their figures from here.

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

/// How deep requests that are made for others are followed.
const DEEPEST: u32 = 32;

/// So many bytes are sent at once even behind a loss.
const FEW_SEGMENTS: i64 = FIRST_WINDOW / 5;

/// What messages meet on the network: without one of these the others take as long as they must.
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

/// What is usual between a client and a server.
#[derive(Clone, Copy, Debug)]
struct Usual {
    there: i64,
    back: i64,
}

/// Accounts of all requests of a trace.
pub(crate) struct RequestAccounts<'r> {
    all: &'r [TracedRequest],
    /// How long messages waited in queues, where those were recorded.
    waits: Option<HashMap<RequestMessageKey, i64>>,
    /// Which rate their path has, where links were recorded.
    rates: HashMap<RequestMessageKey, PathRate>,
    children: BTreeMap<i64, Vec<usize>>,
    usual: BTreeMap<(&'r str, &'r str), Usual>,
    /// The quickest round trip between a client and a server, where only the client's side was seen.
    trips: BTreeMap<(&'r str, &'r str), i64>,
    /// When each serving program had requests, until it had sent the answer: begin, end, of which request.
    working: BTreeMap<String, Vec<(u64, u64, i64)>>,
    /// What went before on connections.
    history: ConnectionHistory,
    /// Which answers filled a connection that others share.
    shared: SharedConnections,
}

/// Parts of a request's time, each with its cause and its place.
struct RequestShares<'q> {
    request: &'q TracedRequest,
    shares: Vec<(RequestCause, String, i64)>,
}

impl RequestShares<'_> {
    fn of_client(&mut self, cause: RequestCause, ns: i64) {
        self.shares.push((cause, client_name(self.request), ns));
    }

    fn of_server(&mut self, cause: RequestCause, ns: i64) {
        self.shares.push((cause, server_name(self.request), ns));
    }

    fn of_pair(&mut self, cause: RequestCause, ns: i64) {
        let pair = format!("{} > {}", self.request.client, self.request.server);
        self.shares.push((cause, pair, ns));
    }

    /// Of a request without an answer: which programs have it counts.
    fn of_programs(&mut self, cause: RequestCause, ns: i64) {
        self.shares.push((cause, both_ends(self.request), ns));
    }

    /// What is done before the request leaves.
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

/// A message on its way, without what was lost, held back or had no room.
struct MessageTransit {
    queued: i64,
    rest: i64,
    /// What the rest is spent on, beyond what the quickest takes.
    over: RequestCause,
}

/// How long a message waited in queues; `None` where they were not recorded.
fn waited(
    waits: Option<&HashMap<RequestMessageKey, i64>>,
    request: &TracedRequest,
    is_answer: bool,
) -> Option<i64> {
    waits.map(|waits| waits.get(&(request.unit, is_answer)).copied().unwrap_or(0))
}

impl<'r> RequestAccounts<'r> {
    /// Of all requests of a log.
    pub(crate) fn of(all: &'r [TracedRequest], log: &EventRows<'_>) -> Self {
        Self::on_network(all, measure_queue_waits(log), measure_path_rates(log))
    }

    /// Of requests, with what a network recorded of their messages.
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
            history: ConnectionHistory::of(all),
            shared: SharedConnections::of(all),
        }
    }

    /// Gives all parts of a request's time, and of those that it waited for.
    pub(crate) fn list_parts(
        &self,
        request: &'r TracedRequest,
        times: RequestTimes,
        put: &mut dyn FnMut(RequestPart<'r>),
    ) {
        self.list_parts_of(request, times, times.whole(), 0, put);
    }

    /// The same of one that other requests wait for, `ns` of it in all.
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
        // Sources that disagree may make parts below zero; then the others are more than all of it.
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

    /// The least that both messages take on the network without a cause, and what limits it then.
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
            // A connection that is kept open need not begin slowly.
            let is_kept = cause == RequestCause::SlowStart || (is_rate && !is_full);
            let usual = self.unhindered_transfer(request, times, is_answer);
            let transfer = RemainingTransfer {
                bit_s: known.map(|rate| rate.bit_s),
                begins_slowly: !is_kept && usual.begins_slowly,
                ..usual
            };
            least_ns += transfer.least_ns() - trip_ns;
            limit = match known {
                Some(rate) if transfer.is_of_rate() => Some(RemainingLimit::Link(rate.to_string())),
                None if rate.is_none() && !is_rate => Some(RemainingLimit::Unknown),
                _ => Some(RemainingLimit::Windows),
            };
        }
        (least_ns, limit)
    }

    /// To the server and back, without anything that waits.
    fn trip_ns(&self, request: &TracedRequest, times: RequestTimes) -> i64 {
        let usual = self.usual(request);
        let usual = usual.map(|usual| usual.there.saturating_add(usual.back));
        usual.or(times.round_trip).unwrap_or(0).max(0)
    }

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
        // Another one that it waited for may be why its deadline was over.
        let is_late = request.exceeds_deadline() && !self.children.contains_key(&request.unit);
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
        // Seen from the client alone, a round trip of the server's time is the network.
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

    /// What of a server's time is the network to it and back, as it is seen from the client alone: a round trip of the connection's
    /// set-up, or what the quickest answer took, if that is less.
    fn unseen_network_ns(&self, request: &TracedRequest, times: RequestTimes) -> i64 {
        let ends = (request.client.as_str(), request.server.as_str());
        match self.trips.get(&ends) {
            Some(trip) if times.is_of_client => (*trip)
                .saturating_mul(times.trips())
                .clamp(0, times.work.max(0)),
            _ => 0,
        }
    }

    /// The request leaves and travels. Returns how long its client waited meanwhile for what the server said.
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
        // Of a long request that is seen at one end alone, not more than half a round trip is distance.
        let far = match is_large {
            true => times.round_trip.unwrap_or(0) / 2,
            false => transit.rest,
        };
        // A short one that does not leave at once, as it is longer than a first window, goes there once more.
        let again = match is_large {
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

    /// The answer leaves and travels, until the client reads it. Of the time in which it leaves as much is the server's own as its
    /// thread waited for other things than the network; returns that.
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
        // Of a long answer that is seen at one end alone, not more than half a round trip is distance.
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
        // Within a host nothing is under way: what is not sent while the client lets bytes lie waits for it.
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
        // What the server has handed over goes as fast as acknowledgements come back.
        let rest = match (request.is_cut_off(), is_large) {
            (true, _) => RequestCause::GivenUp,
            (false, true) => RequestCause::Rate,
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

    /// Requests that a server waited for while it had one, and how long.
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

    fn usual(&self, request: &TracedRequest) -> Option<Usual> {
        let ends = (request.client.as_str(), request.server.as_str());
        let trips = request.times.map_or(1, |times| times.trips());
        self.usual.get(&ends).map(|usual| Usual {
            there: usual.there.saturating_mul(trips),
            back: usual.back.saturating_mul(trips),
        })
    }

    /// What of a message's time on the network was spent in queues behind others, and what the rest beyond the quickest is for.
    fn message_transit(
        &self,
        request: &TracedRequest,
        is_answer: bool,
        is_large: bool,
        ns: i64,
    ) -> MessageTransit {
        let queued = waited(self.waits.as_ref(), request, is_answer);
        let is_kept_small =
            request.message_bytes(is_answer) > FEW_SEGMENTS && self.history.is_after_loss(request);
        let over = match queued {
            _ if is_large => RequestCause::Rate,
            None => RequestCause::Queue,
            // Where queues are known, no more is blamed on them: windows that losses have made small, or the distance.
            Some(_) if is_kept_small => RequestCause::Loss,
            Some(_) => RequestCause::Distance,
        };
        // A long message stands in its own way.
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

    /// What the server did between the request and its answer: what it asked others meanwhile is theirs, of those that it waited for
    /// one behind the other.
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
            let part = part.min(own);
            shares.push((cause, server.clone(), part));
            own -= part;
        }
        // Others' answers fill the connection that this one is to go out on.
        let filled = self.shared.waited_ns(request).clamp(0, own.max(0));
        let pair = format!("{} > {}", request.client, request.server);
        shares.push((RequestCause::Rate, pair, filled));
        shares.push((RequestCause::Server, server, own - filled));
    }
}
