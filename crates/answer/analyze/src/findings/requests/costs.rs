//! What requests spend their time on: every part of a request that no other one was made for is given to one cause, and what its
//! server's own requests to others take is given to their causes. The costs add up to the time of all such requests.

use crate::findings::requests::attempts::{Retry, is_wait, retries};
pub(crate) use crate::findings::requests::cause_costs::{RequestCause, RequestCauseCost};
use crate::findings::requests::in_order::{RequestWait, part_overlaps};
use crate::findings::requests::message_delays::{MessageDelays, RequestMessageNetwork};
use crate::findings::requests::queueing::{RequestMessageKey, measure_queue_waits};
use crate::findings::requests::request::{RequestTimes, TracedRequest, requests};
pub(crate) use crate::findings::requests::request::{client_name, server_name};
use crate::findings::rows::EventRows;
use std::collections::{BTreeMap, HashMap};

/// All requests of a trace and what they cost.
#[derive(Debug, Default)]
pub(crate) struct RequestCosts {
    /// Requests, those that nobody is known to have made for another one first.
    pub(crate) requests: Vec<TracedRequest>,
    /// By cause and place: a server, or a client and a server.
    pub(crate) costs: BTreeMap<(RequestCause, String), RequestCauseCost>,
    /// What of the distance is for round trips behind the first of a request, by client and server.
    pub(crate) further_trips: BTreeMap<String, RequestCauseCost>,
    /// Requests that wait for answers to others on their connection.
    pub(crate) waits: Vec<RequestWait>,
    /// Time of all requests that no other was made for, ns; of a connection on which several are under way at the same time, the
    /// time in which any is.
    pub(crate) total_ns: i64,
    /// How many those are.
    pub(crate) roots: u64,
    /// The rows of those that nothing answered.
    pub(crate) unanswered: Vec<u32>,
    /// Attempts that failed and were made again.
    pub(crate) retries: Vec<Retry>,
    /// What a message and its answer cost programs more while they are looked at, ns; 0 where it was not measured.
    pub(crate) observer_ns: i64,
}

/// How deep requests that are made for others are followed.
const DEEPEST: u32 = 8;
/// A response of at least so many bytes is limited by a rate, not by how it is made.
pub(crate) const LARGE: i64 = 64 << 10;
const DNS: &str = "DNS";

/// What is usual between a client and a server.
#[derive(Clone, Copy, Debug)]
struct Usual {
    there: i64,
    back: i64,
}

struct Spender<'r> {
    all: &'r [TracedRequest],
    /// How long messages waited in queues, where those were recorded.
    waits: Option<HashMap<RequestMessageKey, i64>>,
    children: BTreeMap<i64, Vec<usize>>,
    usual: BTreeMap<(&'r str, &'r str), Usual>,
    /// The quickest round trip between a client and a server, where only the client's side was seen.
    trips: BTreeMap<(&'r str, &'r str), i64>,
    /// When each server worked: begin, end, of which request.
    working: BTreeMap<&'r str, Vec<(u64, u64, i64)>>,
    costs: BTreeMap<(RequestCause, String), RequestCauseCost>,
    further_trips: BTreeMap<String, RequestCauseCost>,
}

impl RequestCosts {
    /// Of a trace; `None` where it has no requests.
    pub(crate) fn of(log: &EventRows<'_>) -> Option<Self> {
        let mut all = requests(log);
        let waits = part_overlaps(&mut all);
        if all.is_empty() {
            return None;
        }
        let mut spender = Spender::of(&all, measure_queue_waits(log));
        let within = lookups(&all);
        let (mut total_ns, mut roots) = (0, 0);
        let is_root = |request: &TracedRequest| {
            request.parent.is_none() && !(request.unknown.is_some() && is_wait(request))
        };
        let is_attempt = |request: &&TracedRequest| request.is_call || request.is_unopened;
        for request in all
            .iter()
            .filter(is_attempt)
            .filter(|request| is_root(request) && !is_within(request, &within))
        {
            let Some(times) = request.own_times.or(request.times) else {
                continue;
            };
            total_ns += times.total.max(0);
            roots += 1;
            spender.spend(request, times, times.total.max(0), 0);
        }
        let retries = retries(&all);
        for retry in retries
            .iter()
            .filter(|retry| is_root(&all[retry.failed]) && is_root(&all[retry.next]))
        {
            total_ns += i64::try_from(retry.gap_ns).unwrap_or(i64::MAX);
            spender.between(retry);
        }
        let (costs, further_trips) = (spender.costs, spender.further_trips);
        let unanswered = |request: &&TracedRequest| {
            request.is_call
                && !is_wait(request)
                && request.unknown.as_deref() == Some("nothing answered it")
        };
        let unanswered = all
            .iter()
            .filter(unanswered)
            .map(|request| request.row)
            .collect();
        let observer_ns = observer_ns(log);
        Some(Self {
            requests: all,
            costs,
            further_trips,
            waits,
            total_ns,
            roots,
            unanswered,
            retries,
            observer_ns,
        })
    }

    /// How much of the time is distance, and what sets connections up.
    pub(crate) fn way_share(&self) -> f64 {
        let way = [
            RequestCause::Distance,
            RequestCause::Connect,
            RequestCause::Handshake,
            RequestCause::Lookup,
        ];
        let ns: i64 = way.into_iter().map(|cause| self.of_cause(cause)).sum();
        ns as f64 / self.total_ns.max(1) as f64
    }

    /// What a cause takes everywhere, ns.
    pub(crate) fn of_cause(&self, cause: RequestCause) -> i64 {
        self.costs
            .iter()
            .filter(|((of, _), _)| *of == cause)
            .map(|(_, cost)| cost.ns)
            .sum()
    }
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

/// When each host asked after a name for a request: the time is that request's already.
fn lookups(all: &[TracedRequest]) -> BTreeMap<&str, Vec<(u64, u64)>> {
    let mut lookups: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for request in all.iter().filter(|request| request.protocol != DNS) {
        let length = request.times.map_or(0, |times| times.lookup.max(0));
        if length > 0 {
            let begin = request.begin_ns();
            lookups
                .entry(&request.client)
                .or_default()
                .push((begin, begin + length.unsigned_abs()));
        }
    }
    lookups
}

fn is_within(request: &TracedRequest, lookups: &BTreeMap<&str, Vec<(u64, u64)>>) -> bool {
    let (begin, end) = (request.begin_ns(), request.end_ns);
    let of_client = || lookups.get(request.client.as_str()).into_iter().flatten();
    request.protocol == DNS && of_client().any(|(from, to)| *from <= begin && end <= *to)
}

impl<'r> Spender<'r> {
    fn of(all: &'r [TracedRequest], waits: Option<HashMap<RequestMessageKey, i64>>) -> Self {
        let waited = |request: &TracedRequest, is_answer| {
            waited(waits.as_ref(), request, is_answer).unwrap_or(0)
        };
        let mut children: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        let mut usual: BTreeMap<(&str, &str), Usual> = BTreeMap::new();
        let mut trips: BTreeMap<(&str, &str), i64> = BTreeMap::new();
        let mut working: BTreeMap<&str, Vec<(u64, u64, i64)>> = BTreeMap::new();
        for (at, request) in all.iter().enumerate() {
            if let Some(parent) = request.parent {
                children.entry(parent).or_default().push(at);
            }
            if let Some(times) = request.times.filter(|times| times.is_way_known) {
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
            if let Some((from, to)) = request.at_server() {
                working
                    .entry(&request.server)
                    .or_default()
                    .push((from, to, request.unit));
            }
        }
        working.values_mut().for_each(|spans| spans.sort_unstable());
        Self {
            all,
            waits,
            children,
            usual,
            trips,
            working,
            costs: BTreeMap::new(),
            further_trips: BTreeMap::new(),
        }
    }

    /// Gives a request's time to its causes, `ns` of it in all.
    fn spend(&mut self, request: &'r TracedRequest, times: RequestTimes, ns: i64, depth: u32) {
        let mut shares: BTreeMap<(RequestCause, String), i64> = BTreeMap::new();
        for (cause, who, part) in self.shares(request, times, depth) {
            *shares.entry((cause, who)).or_default() += part;
        }
        // Sources that disagree may make parts below zero; then the others are more than all of it.
        shares.retain(|_, part| *part > 0);
        let all: i64 = shares.values().sum();
        for ((cause, who), part) in shares {
            let part = if all > ns {
                (i128::from(part) * i128::from(ns) / i128::from(all.max(1))) as i64
            } else {
                part
            };
            let trips = times.trips();
            if cause == RequestCause::Distance && trips > 1 {
                let further = self.further_trips.entry(who.clone()).or_default();
                further.nested += u64::from(depth > 0);
                further.add(part / trips * (trips - 1), request.row);
            }
            let cost = self.costs.entry((cause, who)).or_default();
            cost.nested += u64::from(depth > 0);
            cost.add(part, request.row);
        }
    }

    /// What lies between an attempt that failed and the next.
    fn between(&mut self, retry: &Retry) {
        let (failed, next) = (&self.all[retry.failed], &self.all[retry.next]);
        let client = client_name(if failed.programs.0.is_empty() {
            next
        } else {
            failed
        });
        let cause = match retry.still_waits {
            true => (
                RequestCause::GivenUp,
                format!("{} > {}", failed.client, failed.server),
            ),
            false => (RequestCause::BackOff, client),
        };
        let ns = i64::try_from(retry.gap_ns).unwrap_or(i64::MAX);
        self.costs.entry(cause).or_default().add(ns, failed.row);
    }

    fn shares(
        &mut self,
        request: &'r TracedRequest,
        times: RequestTimes,
        depth: u32,
    ) -> Vec<(RequestCause, String, i64)> {
        let mut shares = RequestShares {
            request,
            shares: Vec::new(),
        };
        shares.before(times);
        if request.is_given_up() {
            let before = times.lookup + times.connect + times.handshake + times.client;
            let cause = if request.is_ended_by_server() {
                RequestCause::Ended
            } else {
                RequestCause::GivenUp
            };
            shares.of_pair(cause, times.total - before);
            return shares.shares;
        }
        self.there(&mut shares, times);
        for (cause, ns) in self.unread(request, times) {
            shares.of_server(cause, ns);
        }
        let paused = self.back(&mut shares, times);
        // Seen from the client alone, a round trip of the server's time is the way.
        let way = self.unseen_way(request, times);
        shares.of_pair(RequestCause::Distance, way);
        let mut shares = shares.shares;
        self.work(request, times.work - way + paused, depth, &mut shares);
        shares
    }

    /// What of a server's time is the way to it and back, as it is seen from the client alone: a round trip of the connection's
    /// set-up, or what the quickest answer took, if that is less.
    fn unseen_way(&self, request: &TracedRequest, times: RequestTimes) -> i64 {
        let ends = (request.client.as_str(), request.server.as_str());
        match self.trips.get(&ends) {
            Some(trip) if times.is_of_client => (*trip)
                .saturating_mul(times.trips())
                .clamp(0, times.work.max(0)),
            _ => 0,
        }
    }

    /// The request leaves and travels.
    fn there(&self, shares: &mut RequestShares<'_>, times: RequestTimes) {
        let request = shares.request;
        let net = request.network;
        let delays = MessageDelays::of(
            times.hold,
            times.there,
            RequestMessageNetwork {
                is_sender_seen: !times.is_of_server,
                held_ns: net.held_there_ns,
                paused_ns: net.paused_there_ns,
                window_ns: net.window_there_ns,
                again_ns: net.again_there_ns,
            },
        );
        shares.of_client(RequestCause::ClientPause, delays.paused);
        shares.of_client(RequestCause::Held, delays.held);
        shares.of_server(RequestCause::Window, delays.window);
        shares.of_pair(RequestCause::Loss, delays.again);
        let is_large = request.bytes.0 >= LARGE;
        let way = self.way(request, false, is_large, delays.rest);
        let usual = self.usual(request);
        let base = usual.map_or(way.rest, |usual| usual.there.min(way.rest));
        shares.of_pair(RequestCause::Queue, way.queued);
        shares.of_pair(RequestCause::Distance, base);
        shares.of_pair(way.over, way.rest - base);
    }

    /// The answer leaves and travels, until the client reads it. Returns how long the server had nothing to send of it.
    fn back(&self, shares: &mut RequestShares<'_>, times: RequestTimes) -> i64 {
        let request = shares.request;
        let net = request.network;
        let delays = MessageDelays::of(
            times.sending,
            times.back,
            RequestMessageNetwork {
                is_sender_seen: !times.is_of_client,
                held_ns: net.held_back_ns,
                paused_ns: net.paused_back_ns,
                window_ns: net.window_back_ns,
                again_ns: net.again_back_ns,
            },
        );
        let window = delays.window;
        shares.of_server(RequestCause::Held, delays.held);
        // A client that reads late has no room for that reason.
        let no_room = if times.client_unread > window / 2 {
            RequestCause::SlowReader
        } else {
            RequestCause::Window
        };
        shares.of_client(no_room, window);
        shares.of_pair(RequestCause::Loss, delays.again);
        let is_large = request.bytes.1 >= LARGE;
        let way = self.way(request, true, is_large, delays.rest);
        let base = self
            .usual(request)
            .map_or(times.back, |usual| usual.back)
            .clamp(0, way.rest.max(0));
        shares.of_pair(RequestCause::Queue, way.queued);
        shares.of_pair(RequestCause::Distance, base);
        let sending = (way.rest - base)
            .min(times.sending - delays.held - delays.paused - window)
            .max(0);
        // Within a host nothing is under way: what is not sent while the client lets bytes lie waits for it.
        let is_within = is_large && request.client == request.server;
        let late = if is_within {
            (net.late_back_ns - times.client_unread - window).clamp(0, sending)
        } else {
            0
        };
        shares.of_client(RequestCause::SlowReader, late + times.client_unread);
        // What the server has handed over goes as fast as acknowledgements come back.
        let rest = match (request.is_cut_off(), is_large) {
            (true, _) => RequestCause::GivenUp,
            (false, true) => RequestCause::Rate,
            (false, false) => RequestCause::Distance,
        };
        shares.of_pair(rest, sending - late);
        shares.of_pair(way.over, way.rest - base - sending);
        delays.paused
    }

    fn usual(&self, request: &TracedRequest) -> Option<Usual> {
        let ends = (request.client.as_str(), request.server.as_str());
        let trips = request.times.map_or(1, |times| times.trips());
        self.usual.get(&ends).map(|usual| Usual {
            there: usual.there.saturating_mul(trips),
            back: usual.back.saturating_mul(trips),
        })
    }

    /// What of a message's time on its way was spent in queues behind others, and what the rest beyond the quickest is for.
    fn way(
        &self,
        request: &TracedRequest,
        is_answer: bool,
        is_large: bool,
        ns: i64,
    ) -> MessageTransit {
        let queued = waited(self.waits.as_ref(), request, is_answer);
        let over = match queued {
            _ if is_large => RequestCause::Rate,
            None => RequestCause::Queue,
            // Where queues are known, no more is blamed on them.
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

    /// A request that lies at the server: while its thread computes for others, waits for something, or does nothing.
    fn unread(&self, request: &TracedRequest, times: RequestTimes) -> Vec<(RequestCause, i64)> {
        let Some(wait) = request.wait else {
            let (queued, away) = self.unread_by_others(request, times);
            return vec![(RequestCause::Queued, queued), (RequestCause::Away, away)];
        };
        // Whatever it does, it does for others.
        let busy = wait.cpu + wait.lock + wait.disk + wait.sleep + wait.child;
        let parts = [
            (RequestCause::Queued, busy),
            (RequestCause::NoCore, wait.runnable),
            (RequestCause::Stopped, wait.stopped),
            (RequestCause::Collect, wait.collect),
            (RequestCause::Observer, wait.observer),
        ];
        let known: i64 = parts.iter().map(|(_, ns)| ns).sum();
        let (others, _) = self.unread_by_others(request, times);
        let rest = (times.unread - known).max(0);
        let queued = others.saturating_sub(known).clamp(0, rest);
        parts
            .into_iter()
            .chain([
                (RequestCause::Queued, queued),
                (RequestCause::Away, rest - queued),
            ])
            .collect()
    }

    /// The same by the requests that the server had meanwhile.
    fn unread_by_others(&self, request: &TracedRequest, times: RequestTimes) -> (i64, i64) {
        let Some((read, _)) = request.at_server().filter(|_| times.unread > 0) else {
            return (0, times.unread);
        };
        let from = read.saturating_sub(times.unread as u64);
        let spans = self
            .working
            .get(request.server.as_str())
            .map_or(&[][..], Vec::as_slice);
        let (mut busy, mut until) = (0, from);
        for (begin, end, unit) in spans.iter().take_while(|(begin, ..)| *begin < read) {
            if *unit != request.unit && *end > until {
                busy += end.min(&read).saturating_sub(*begin.max(&until));
                until = (*end).min(read);
            }
        }
        let busy = i64::try_from(busy)
            .unwrap_or(times.unread)
            .min(times.unread);
        (busy, times.unread - busy)
    }

    /// What the server did between the request and its answer.
    fn work(
        &mut self,
        request: &'r TracedRequest,
        ns: i64,
        depth: u32,
        shares: &mut Vec<(RequestCause, String, i64)>,
    ) {
        let server = server_name(request);
        let children = self
            .children
            .get(&request.unit)
            .cloned()
            .unwrap_or_default();
        let nested: i64 = covered(
            request,
            &children.iter().map(|at| &self.all[*at]).collect::<Vec<_>>(),
        )
        .min(ns);
        let mut own = ns - nested;
        if nested > 0 && depth < DEEPEST {
            let sum: i64 = children
                .iter()
                .filter_map(|at| self.all[*at].own_times.or(self.all[*at].times))
                .map(|times| times.total.max(0))
                .sum();
            for at in children {
                let child = &self.all[at];
                if let Some(times) = child.own_times.or(child.times) {
                    // Side by side, each takes its share of the time that they take together.
                    let part = i128::from(times.total.max(0)) * i128::from(nested)
                        / i128::from(sum.max(1));
                    self.spend(child, times, part as i64, depth + 1);
                }
            }
        } else {
            own = ns;
        }
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
        shares.push((RequestCause::Server, server, own));
    }
}

fn observer_ns(log: &EventRows<'_>) -> i64 {
    let more = |row: &u32| Some(log.number(*row, "with_ns")? - log.number(*row, "without_ns")?);
    log.rows("OBSERVER_COST")
        .iter()
        .filter_map(more)
        .max()
        .unwrap_or(0)
        .max(0)
}

/// How much of a server's time its own requests to others take, none counted twice.
fn covered(request: &TracedRequest, children: &[&TracedRequest]) -> i64 {
    let Some((from, answered)) = request.at_server() else {
        return 0;
    };
    let sending = request.times.map_or(0, |times| times.sending.max(0));
    let to = answered.saturating_add(sending.unsigned_abs());
    let mut spans: Vec<(u64, u64)> = children
        .iter()
        .map(|child| (child.begin_ns().max(from), child.end_ns.min(to)))
        .collect();
    spans.sort_unstable();
    let (mut sum, mut until) = (0, from);
    for (begin, end) in spans {
        sum += end.saturating_sub(begin.max(until));
        until = until.max(end);
    }
    i64::try_from(sum).unwrap_or(i64::MAX)
}

/// Most requests that a server had at the same time.
pub(crate) fn most_at_once(requests: &[TracedRequest], server: &str) -> usize {
    let mut moments: Vec<(u64, i32)> = Vec::new();
    for request in requests
        .iter()
        .filter(|request| server_name(request) == server)
    {
        if let Some((from, to)) = request.at_server() {
            moments.extend([(from, 1), (to, -1)]);
        }
    }
    moments.sort_unstable();
    let mut count = 0;
    moments
        .into_iter()
        .map(|(_, change)| {
            count += change;
            count
        })
        .max()
        .unwrap_or(0)
        .max(0) as usize
}
