//! Finds parents by counting, for requests of which only host and time are known while their server has several requests. If, in a
//! busy time, a service is asked as often as the server has requests, each of these requests is the parent of one. Single pairs may
//! be mixed up, but not the totals.

use super::{BY_TIME, RequestSpan};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// A time in which a host was serving at least one request without a pause.
struct BusyTime<'s> {
    /// When it ended, ns.
    until_ns: u64,
    /// The requests that were served in it.
    served: Vec<&'s RequestSpan>,
}

/// The busy times of a host, in order, by the requests whose server process is not known; requests to `asks.service` itself are left
/// out.
fn busy_times<'s>(spans: &'s [RequestSpan], asks: RequestedService) -> Vec<BusyTime<'s>> {
    let is_of_host = |span: &&RequestSpan| {
        span.server_host == Some(asks.host) && span.server.2 == 0 && span.service != asks.service
    };
    let mut served: Vec<&RequestSpan> = spans.iter().filter(is_of_host).collect();
    served.sort_unstable_by_key(|span| span.served.0);
    let mut times: Vec<BusyTime<'_>> = Vec::new();
    for span in served {
        match times.last_mut() {
            Some(time) if time.until_ns >= span.served.0 => {
                time.until_ns = time.until_ns.max(span.served.1);
                time.served.push(span);
            }
            _ => times.push(BusyTime {
                until_ns: span.served.1,
                served: vec![span],
            }),
        }
    }
    times
}

/// A service, and the host from which it is asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RequestedService {
    host: usize,
    service: Option<SocketAddr>,
}

/// Adds the pairs that counting finds to those that were found otherwise.
pub(super) fn add_by_count(spans: &[RequestSpan], found: &mut Vec<(i64, i64, u32)>) {
    let mut asked: BTreeMap<RequestedService, Vec<&RequestSpan>> = BTreeMap::new();
    for span in spans {
        if let (Some(host), 0, Some(service)) = (span.client_host, span.client.0, span.service) {
            let service = Some(service);
            asked
                .entry(RequestedService { host, service })
                .or_default()
                .push(span);
        }
    }
    for (asks, mut children) in asked {
        children.sort_unstable_by_key(|span| span.asked.0);
        let mut rest = children.into_iter().peekable();
        for time in busy_times(spans, asks) {
            let mut within = Vec::new();
            while let Some(child) = rest.next_if(|child| child.asked.0 <= time.until_ns) {
                within.push(child);
            }
            if within.len() == time.served.len() {
                match_in_time(&time.served, &within, found);
            }
        }
    }
}

/// Gives each request without a parent one of the served requests without a child that lasted long enough, choosing the one that
/// ends first. If one request finds none, none gets any.
fn match_in_time(
    served: &[&RequestSpan],
    asked: &[&RequestSpan],
    found: &mut Vec<(i64, i64, u32)>,
) {
    let known = |of: &dyn Fn(&(i64, i64, u32)) -> i64| found.iter().map(of).collect();
    let children: BTreeSet<i64> = known(&|(child, ..)| *child);
    let parents: BTreeSet<i64> = known(&|(_, parent, _)| *parent);
    let mut next = (served.iter())
        .filter(|span| !parents.contains(&span.unit))
        .peekable();
    let mut open: BTreeSet<(u64, i64)> = BTreeSet::new();
    let mut pairs = Vec::new();
    for child in asked.iter().filter(|span| !children.contains(&span.unit)) {
        while let Some(span) = next.next_if(|span| span.served.0 <= child.asked.0) {
            open.insert((span.served.1, span.unit));
        }
        let Some(parent) = open.range((child.asked.1, i64::MIN)..).next().copied() else {
            return;
        };
        open.remove(&parent);
        pairs.push((child.unit, parent.1, BY_TIME));
    }
    found.extend(pairs);
}

#[cfg(test)]
mod tests {
    use super::super::find_parents;
    use super::*;
    use stackline_dissect::left_out::LeftOut;

    /// A request of a proxy, which has it so long, or of one to its upstream.
    fn span(unit: i64, is_upstream: bool, from: u64, to: u64) -> RequestSpan {
        let port = if is_upstream { 9000 } else { 80 };
        RequestSpan {
            unit,
            client_host: Some(usize::from(is_upstream)),
            client: (0, 0),
            asked: (from, to),
            server_host: (!is_upstream).then_some(1),
            service: Some(([10, 0, 0, 1], port).into()),
            server: (0, 0, 0),
            served: (from, to),
        }
    }

    fn parents(spans: &[RequestSpan]) -> Vec<(i64, i64)> {
        let found = find_parents(spans, &mut LeftOut::default());
        let mut pairs: Vec<(i64, i64)> = found
            .iter()
            .map(|(child, parent, _)| (*child, *parent))
            .collect();
        pairs.sort_unstable();
        pairs
    }

    #[test]
    fn as_many_as_there_are_parents_have_one_each() {
        let round = |at: u64, unit: i64| {
            [
                span(unit, false, at, at + 70),
                span(unit + 1, false, at + 1, at + 75),
                span(unit + 2, true, at + 3, at + 66),
                span(unit + 3, true, at + 4, at + 71),
            ]
        };
        let all = [round(0, 0), round(100, 10)].concat();
        assert_eq!(parents(&all), [(2, 0), (3, 1), (12, 10), (13, 11)]);
        // One of the first two may have none.
        let fewer: Vec<RequestSpan> = all.iter().copied().filter(|one| one.unit != 3).collect();
        assert_eq!(parents(&fewer), [(12, 10), (13, 11)]);
        // What goes on behind both is of neither.
        let late = [&all[..3], &[span(3, true, 4, 80)]].concat();
        assert_eq!(parents(&late), []);
    }
}
