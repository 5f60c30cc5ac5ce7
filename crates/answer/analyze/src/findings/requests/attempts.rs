//! Retries: failed attempts that were made again, recognised as the same request of the same client to the same server later.

use crate::findings::requests::request::{
    REFUSED, SERVER_CLOSED, SERVER_RESET, SILENT, TracedRequest, is_wait,
};
use std::collections::{BTreeMap, BTreeSet};

/// A request that begins later than this after a failure is not a retry of it, ns.
const LATEST_NS: u64 = 120_000_000_000;
/// The most requests among which the next attempt is searched for.
const AMONG: usize = 64;

/// A failed attempt and the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retry {
    /// The index of the failed request.
    pub(crate) failed: usize,
    /// The index of the next attempt.
    pub(crate) next: usize,
    /// The time between them, ns.
    pub(crate) gap_ns: u64,
    /// Whether the client may have waited for the first attempt in that time, as its connection was never answered.
    pub(crate) still_waits: bool,
}

/// How a request failed, in words: `no answer`, `503`; `None` if it did not, or it is not known whether it did.
pub(crate) fn failure(request: &TracedRequest) -> Option<&str> {
    match request.unknown.as_deref() {
        Some(REFUSED) => Some("refused"),
        Some(SERVER_RESET) => Some("reset"),
        Some(SERVER_CLOSED) => Some("closed"),
        Some(SILENT) => Some("no answer"),
        // Without known times the trace may just have ended.
        Some(_) => (request.is_given_up() && !is_wait(request)).then_some("no answer"),
        None => is_refusal(request).then_some(request.status.as_str()),
    }
}

/// Whether the status of an answer says that a later attempt may succeed: HTTP 5xx (RFC 9110 section 15.6) and 429 (RFC 6585 section 4),
/// gRPC 4, 8 and 14.
fn is_refusal(request: &TracedRequest) -> bool {
    const GRPC: [&str; 3] = ["grpc-status 4", "grpc-status 8", "grpc-status 14"];
    let status = request.status.as_str();
    let is_http = request.protocol.starts_with("HTTP") && status.len() == 3;
    GRPC.contains(&status) || (is_http && (status == "429" || status.starts_with('5')))
}

/// The failed attempts that were retried, each with the next attempt of its client.
pub(crate) fn retries(all: &[TracedRequest]) -> Vec<Retry> {
    let clients = clients(all);
    let mut by_ends: BTreeMap<(Client<'_>, &str), Vec<usize>> = BTreeMap::new();
    for (at, request) in all
        .iter()
        .enumerate()
        .filter(|(_, request)| request.is_call || request.is_unopened)
    {
        by_ends
            .entry((clients[at], &request.server))
            .or_default()
            .push(at);
    }
    let sequential = sequential_clients(all, &clients);
    let handed_on = failures_handed_on(all);
    let mut found = Vec::new();
    for ((client, _), mut attempts) in by_ends {
        attempts.sort_by_key(|at| all[*at].begin_ns());
        let mut is_taken = vec![false; attempts.len()];
        let mut failed: Vec<usize> = attempts
            .iter()
            .copied()
            .filter(|at| failure(&all[*at]).is_some() && !handed_on.contains(at))
            .collect();
        failed.sort_by_key(|at| all[*at].end_ns);
        let usual = usual_gaps(all, &attempts);
        let (mut later, mut paced) = (Vec::new(), BTreeMap::new());
        for failed in failed {
            let end_ns = all[failed].end_ns;
            let first = attempts.partition_point(|at| all[*at].begin_ns() < end_ns);
            let is_next = |place: &usize| {
                let next = &all[attempts[*place]];
                let named =
                    all[failed].is_unopened || next.is_unopened || next.name == all[failed].name;
                attempts[*place] != failed && named && !is_taken[*place]
            };
            let Some(place) = (first..attempts.len()).take(AMONG).find(is_next) else {
                continue;
            };
            let gap_ns = all[attempts[place]].begin_ns() - end_ns;
            if gap_ns <= LATEST_NS {
                is_taken[place] = true;
                let name = all[failed].name.as_str();
                let is_paced = usual.get(name).is_some_and(|usual_ns| {
                    gap_ns <= usual_ns.saturating_mul(2).max(usual_ns + SOON_NS)
                });
                let enough = if sequential.contains(&client) {
                    1
                } else {
                    GOES_ON
                };
                let between = attempts[first..place].iter();
                let goes_on = between.filter(|at| failure(&all[**at]).is_none()).count() >= enough;
                *paced.entry(name).or_default() += usize::from(is_paced);
                if is_paced || goes_on || has_others(all, &attempts, failed) {
                    continue;
                }
                let still_waits = all[failed].unknown.as_deref() == Some(SILENT);
                later.push(Retry {
                    failed,
                    next: attempts[place],
                    gap_ns,
                    still_waits,
                });
            }
        }
        found.extend(of_habit(all, later, &paced));
    }
    found
}

/// Keeps the retries of names for which the client waits after most failures. If it mostly goes on at its usual pace (`paced` counts that),
/// late calls are chance, such as a missing core, and no retries.
fn of_habit<'r>(
    all: &'r [TracedRequest],
    later: Vec<Retry>,
    paced: &BTreeMap<&'r str, usize>,
) -> impl Iterator<Item = Retry> {
    let name = |retry: &Retry| all[retry.failed].name.as_str();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for retry in &later {
        *counts.entry(name(retry)).or_default() += 1;
    }
    later
        .into_iter()
        .filter(move |retry| counts.get(name(retry)) >= paced.get(name(retry)))
}

/// A host, and a program on it; its name is empty where it is not known.
type Client<'r> = (&'r str, &'r str);

/// The clients of all requests, in their order. If the program of one is not known, it is the only known one that asks the same server.
fn clients(all: &[TracedRequest]) -> Vec<Client<'_>> {
    let mut known: BTreeMap<(&str, &str), Option<&str>> = BTreeMap::new();
    for request in all.iter().filter(|request| !request.programs.0.is_empty()) {
        let program = request.programs.0.as_str();
        known
            .entry((&request.client, &request.server))
            .and_modify(|known| *known = known.filter(|known| *known == program))
            .or_insert(Some(program));
    }
    all.iter()
        .map(|request| {
            let ends = (request.client.as_str(), request.server.as_str());
            let program = match request.programs.0.as_str() {
                "" => known.get(&ends).copied().flatten().unwrap_or_default(),
                program => program,
            };
            (ends.0, program)
        })
        .collect()
}

/// The failures that a program such as a proxy met last while it served a request, and handed on to the client of that: it is for that client
/// to try again.
fn failures_handed_on(all: &[TracedRequest]) -> BTreeSet<usize> {
    let failed = |at: &usize| failure(&all[*at]).is_some();
    let mut failures: BTreeMap<Client<'_>, Vec<usize>> = BTreeMap::new();
    for at in (0..all.len()).filter(failed) {
        let request = &all[at];
        if !request.programs.0.is_empty() {
            let client = (request.client.as_str(), request.programs.0.as_str());
            failures.entry(client).or_default().push(at);
        }
    }
    for own in failures.values_mut() {
        own.sort_by_key(|at| all[*at].end_ns);
    }
    let mut handed_on = BTreeSet::new();
    for served in (0..all.len()).filter(failed).map(|at| &all[at]) {
        let server = (served.server.as_str(), served.programs.1.as_str());
        let own = failures.get(&server).map_or(&[][..], Vec::as_slice);
        let is_of_served = |at: &&usize| {
            let failed = &all[**at];
            let is_other = (&failed.server, &failed.programs.1, failed.port)
                != (&served.server, &served.programs.1, served.port);
            is_other && failed.begin_ns() >= served.begin_ns()
        };
        let until = own.partition_point(|at| all[*at].end_ns <= served.end_ns);
        let mut latest = own[..until].iter().rev().take(AMONG);
        handed_on.extend(latest.find(is_of_served));
    }
    handed_on
}

/// The clients that never had two requests in flight at once: the next request of such a client is what its program does next.
fn sequential_clients<'r>(
    all: &'r [TracedRequest],
    clients: &[Client<'r>],
) -> BTreeSet<Client<'r>> {
    let mut by_client: BTreeMap<Client<'r>, Vec<&TracedRequest>> = BTreeMap::new();
    let calls = all.iter().zip(clients);
    for (request, client) in calls.filter(|(request, _)| request.is_call) {
        by_client.entry(*client).or_default().push(request);
    }
    for requests in by_client.values_mut() {
        requests.sort_by_key(|request| request.begin_ns());
    }
    by_client.retain(|_, requests| {
        requests
            .windows(2)
            .all(|pair| pair[1].begin_ns() >= pair[0].end_ns)
    });
    by_client.into_keys().collect()
}

/// A client that has this many other requests answered between a failure and the next attempt goes on and does not wait for a retry. For a
/// sequential client one is enough.
const GOES_ON: usize = 3;

/// A client that goes on right after answers may take up to this much longer after a failure to handle the error, without it being a
/// back-off, ns.
const SOON_NS: u64 = 5_000_000;

/// The least number of gaps after successes that show a usual gap.
const USUAL: usize = 5;

/// The median gap between a successful request and the next one of the same name, ns, by name: a client with a pace of its own waits that
/// long whatever the answer was. Overlapping requests have no gap.
fn usual_gaps<'r>(all: &'r [TracedRequest], attempts: &[usize]) -> BTreeMap<&'r str, u64> {
    let mut last: BTreeMap<&str, &TracedRequest> = BTreeMap::new();
    let mut gaps: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for request in attempts.iter().map(|at| &all[*at]) {
        let before = last.insert(&request.name, request);
        if let Some(before) = before.filter(|before| failure(before).is_none())
            && let Some(gap) = request.begin_ns().checked_sub(before.end_ns)
        {
            gaps.entry(&request.name).or_default().push(gap);
        }
    }
    gaps.retain(|_, gaps| gaps.len() >= USUAL);
    gaps.into_iter()
        .map(|(name, mut gaps)| {
            gaps.sort_unstable();
            (name, gaps[gaps.len() / 2])
        })
        .collect()
}

/// Whether the client had another request of the same name in flight when this one failed, which was answered: then the next request of
/// that name need not be a retry.
fn has_others(all: &[TracedRequest], attempts: &[usize], failed: usize) -> bool {
    let (end_ns, name) = (all[failed].end_ns, &all[failed].name);
    let until = attempts.partition_point(|at| all[*at].begin_ns() < end_ns);
    attempts[..until].iter().rev().take(AMONG).any(|at| {
        let other = &all[*at];
        *at != failed && other.end_ns > end_ns && other.name == *name && failure(other).is_none()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::requests::request::RequestTimes;

    const MS: u64 = 1_000_000;

    fn request(name: &str, status: &str, begin_ms: i64, end_ms: i64) -> TracedRequest {
        TracedRequest {
            is_call: true,
            protocol: "HTTP/1.1".into(),
            name: name.into(),
            status: status.into(),
            end_ns: end_ms as u64 * MS,
            times: Some(RequestTimes {
                total: (end_ms - begin_ms) * MS as i64,
                ..RequestTimes::default()
            }),
            ..TracedRequest::default()
        }
    }

    #[test]
    fn the_next_attempt_is_the_first_of_its_name() {
        let all = [
            request("/a", "503", 0, 10),
            request("/b", "200", 9, 12),
            request("/a", "429", 15, 20),
            request("/a", "200", 40, 50),
            request("/a", "200", 51, 60),
        ];
        let pairs: Vec<_> = retries(&all)
            .into_iter()
            .map(|retry| (retry.failed, retry.next, retry.gap_ns / MS))
            .collect();
        assert_eq!(pairs, [(0, 2, 5), (2, 3, 20)]);
    }

    #[test]
    fn a_client_that_goes_on_with_other_requests_does_not_wait() {
        let rounds: Vec<_> = (0..6)
            .flat_map(|round| {
                let begin = round * 100;
                [
                    request("/broken", "500", begin, begin + 5),
                    request("/fast", "200", begin + 30, begin + 35),
                    request("/slow", "200", begin + 40, begin + 90),
                ]
            })
            .collect();
        assert_eq!(retries(&rounds), []);
    }

    #[test]
    fn of_two_clients_each_has_its_own_next() {
        let all = [
            request("/a", "503", 0, 10),
            request("/a", "503", 1, 11),
            request("/a", "200", 20, 25),
            request("/a", "200", 21, 26),
        ];
        let pairs: Vec<_> = retries(&all)
            .into_iter()
            .map(|retry| (retry.failed, retry.next))
            .collect();
        assert_eq!(pairs, [(0, 2), (1, 3)]);
    }

    #[test]
    fn a_pace_and_calls_at_once_are_no_back_off() {
        // One each 100, whatever the answer was.
        let paced: Vec<_> = (0..10)
            .map(|at| {
                let status = if at % 4 == 3 { "503" } else { "200" };
                request("/a", status, at * 100, at * 100 + 10)
            })
            .collect();
        assert_eq!(retries(&paced), []);
        let mut waits = paced;
        waits[8] = request("/a", "200", 1_100, 1_110);
        waits.truncate(9);
        assert_eq!(retries(&waits)[0].gap_ns, 390 * MS);
        let at_once = [
            request("/a", "503", 0, 10),
            request("/a", "200", 5, 15),
            request("/a", "200", 16, 30),
        ];
        assert_eq!(retries(&at_once), []);
    }

    #[test]
    fn the_next_call_of_a_loop_is_no_repetition() {
        // Each third call is over its deadline of 150 ms, and the client goes on with the next of its calls.
        let calls = |after_failure_ms: i64| -> Vec<TracedRequest> {
            let mut now_ms = 0;
            let call = |at: i64| {
                let (status, takes_ms) = match at % 3 {
                    2 => ("grpc-status 4", 150),
                    _ => ("grpc-status 0", 1),
                };
                let call = TracedRequest {
                    protocol: "gRPC".into(),
                    ..request("/shop.Stock/Get", status, now_ms, now_ms + takes_ms)
                };
                now_ms += takes_ms + if at % 3 == 2 { after_failure_ms } else { 1 };
                call
            };
            (0..30).map(call).collect()
        };
        assert_eq!(retries(&calls(3)), []);
        // Now and then it has no core.
        let mut some = calls(3);
        for at in [2, 14] {
            some[at].end_ns -= 20 * MS;
        }
        assert_eq!(retries(&some), []);
        assert_eq!(retries(&calls(100)).len(), 9, "it waits after each failure");
    }

    #[test]
    fn a_client_with_several_under_way_goes_on_from_three_others() {
        let all = |others: i64| {
            let failed = request("/a", "503", 0, 10);
            let others =
                (0..others).map(|at| request(&format!("/{at}"), "200", 20 * at + 20, 20 * at + 45));
            let next = request("/a", "200", 500, 510);
            [failed]
                .into_iter()
                .chain(others)
                .chain([next])
                .collect::<Vec<_>>()
        };
        assert_eq!(retries(&all(2)).len(), 1);
        assert_eq!(retries(&all(3)), []);
    }

    #[test]
    fn a_proxy_hands_failures_on_and_its_client_tries_again() {
        // On one host, a client asks a proxy, whose server is away; it asks again 100 ms after each error.
        let between = |client: &str, server: &str, one: TracedRequest| TracedRequest {
            client: "here".into(),
            server: "here".into(),
            programs: (client.into(), server.into()),
            ..one
        };
        let attempt = |at: i64| {
            let refused = TracedRequest {
                is_unopened: true,
                is_call: false,
                unknown: Some(REFUSED.into()),
                ..request("", "", 110 * at + 3, 110 * at + 4)
            };
            let asked = request("/a", "503", 110 * at, 110 * at + 10);
            [
                between("proxy", "", refused),
                between("client", "proxy", asked),
            ]
        };
        let mut all: Vec<TracedRequest> = (0..4).flat_map(attempt).collect();
        all.push(between("client", "proxy", request("/a", "200", 440, 450)));
        let found = retries(&all);
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(
            found
                .iter()
                .all(|one| one.gap_ns == 100 * MS && all[one.failed].is_call)
        );
    }

    #[test]
    fn a_proxy_that_tries_again_itself_waits_too() {
        let of_proxy = |one: TracedRequest| TracedRequest {
            client: "web".into(),
            server: "app".into(),
            programs: ("proxy".into(), "app".into()),
            ..one
        };
        let asked = TracedRequest {
            client: "desk".into(),
            server: "web".into(),
            programs: ("curl".into(), "proxy".into()),
            ..request("/a", "503", 0, 650)
        };
        let tries = [0, 300, 600].map(|at| of_proxy(request("/a", "503", at + 10, at + 20)));
        let all: Vec<TracedRequest> = tries.into_iter().chain([asked]).collect();
        let found: Vec<(usize, usize)> = retries(&all)
            .iter()
            .map(|one| (one.failed, one.next))
            .collect();
        assert_eq!(found, [(0, 1), (1, 2)], "it hands on the last one alone");
        // A client and a server of one name on one host are not a proxy.
        let here = |one: TracedRequest| TracedRequest {
            client: "here".into(),
            server: "here".into(),
            programs: ("python3".into(), "python3".into()),
            ..one
        };
        let all = [
            here(request("/a", "503", 0, 10)),
            here(request("/b", "503", 1, 9)),
            here(request("/a", "200", 200, 210)),
            here(request("/b", "200", 201, 211)),
        ];
        assert_eq!(retries(&all).len(), 2);
    }

    #[test]
    fn an_attempt_whose_program_was_not_seen_is_of_the_only_one_that_asks() {
        let refused = TracedRequest {
            unknown: Some(REFUSED.into()),
            ..request("/a", "", 0, 1)
        };
        let answered = TracedRequest {
            programs: ("curl".into(), String::new()),
            ..request("/a", "200", 300, 310)
        };
        assert_eq!(retries(&[refused, answered]).len(), 1);
    }

    #[test]
    fn what_nobody_answered_failed_only_if_it_was_given_up() {
        let gave_up = TracedRequest {
            unknown: Some("nothing answered it".into()),
            ..request("/a", "", 0, 10)
        };
        assert_eq!(failure(&gave_up), Some("no answer"));
        assert_eq!(
            failure(&TracedRequest {
                times: None,
                ..gave_up.clone()
            }),
            None
        );
        assert_eq!(
            failure(&TracedRequest {
                name: "BLPOP q, blocking".into(),
                ..gave_up
            }),
            None
        );
        assert_eq!(failure(&request("/a", "404", 0, 1)), None);
        let unopened = TracedRequest {
            is_unopened: true,
            is_call: false,
            times: None,
            ..TracedRequest::default()
        };
        let silent = TracedRequest {
            unknown: Some(SILENT.into()),
            ..unopened
        };
        let all = [silent, request("/a", "200", 1000, 1010)];
        assert_eq!(
            retries(&all),
            [Retry {
                failed: 0,
                next: 1,
                gap_ns: 1000 * MS,
                still_waits: true
            }]
        );
    }
}
