//! The cause of messages that nobody answers, such as those of WebSocket: they lie unread at their receiver.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, LEAST, percent};
use crate::findings::kind::FindingKind;
use crate::findings::observed::connections::format_ns;
use crate::findings::requests::request::{
    RequestServerWork, TracedRequest, client_name, server_name,
};
use crate::findings::requests::worst::LEAST_SERVER_NS;
use crate::statistics::to_f64;
use std::collections::{BTreeMap, HashMap};

/// Messages that lie unread for less on average are reported only if they are most of the time, ns.
const LEAST_MEAN_NS: f64 = 1e7;
const MOSTLY: f64 = 0.5;
/// Fewer messages may be chance.
const SEVERAL: usize = 3;

/// When a message was handed over, arrived and was read, reference time, ns.
#[derive(Clone, Copy, Debug, Default)]
struct MessagePoints {
    sent_ns: Option<u64>,
    arrived_ns: Option<u64>,
    read_ns: Option<u64>,
}

/// The messages to one receiver.
#[derive(Debug, Default)]
struct UnreadMessages {
    /// Of those that lay unread: for how long, ns, and the row of each.
    unread: Vec<(u64, u32)>,
    /// The number of all of them.
    all: usize,
    /// What the receiver's thread did during each of these waits, where that is known.
    meanwhile: Vec<RequestServerWork>,
}

/// All messages of a run.
#[derive(Debug, Default)]
struct AllMessages {
    receivers: BTreeMap<String, UnreadMessages>,
    /// From when each was handed over until it was read, ns.
    total_ns: u64,
}

impl AllMessages {
    fn from_log(log: &FindingEventLog<'_>, requests: &[TracedRequest]) -> Self {
        let points = points_of(log, requests);
        let mut all = Self::default();
        for request in requests.iter().filter(|one| one.is_one_way) {
            all.add(request, points.get(&request.unit).copied());
        }
        all
    }

    fn add(&mut self, request: &TracedRequest, points: Option<MessagePoints>) {
        let (receiver, wait) = match request.bytes.0 > 0 {
            true => (server_name(request), request.wait),
            false => (client_name(request), request.answer_wait),
        };
        let known = self.receivers.entry(receiver).or_default();
        known.all += 1;
        let Some(MessagePoints {
            sent_ns: Some(sent),
            arrived_ns: Some(arrived),
            read_ns: Some(read),
        }) = points
        else {
            return;
        };
        self.total_ns += read.saturating_sub(sent);
        let unread_ns = read.saturating_sub(arrived);
        if to_f64(unread_ns) >= LEAST_SERVER_NS {
            known.unread.push((unread_ns, request.row));
            known.meanwhile.extend(wait);
        }
    }
}

impl UnreadMessages {
    fn total_ns(&self) -> u64 {
        self.unread.iter().map(|(ns, _)| ns).sum()
    }
}

/// The finding about messages that lie unread.
pub(crate) fn messages_unread(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let costs = log.costs()?;
    let messages = AllMessages::from_log(log, &costs.requests);
    let by_receiver = messages.receivers.into_iter();
    let (receiver, mut worst) = by_receiver.max_by_key(|(_, one)| one.total_ns())?;
    let (count, unread_ns) = (worst.unread.len(), worst.total_ns());
    let mean = to_f64(unread_ns) / to_f64(count.max(1) as u64);
    let of_messages = to_f64(unread_ns) / to_f64(messages.total_ns.max(1));
    let all_ns = costs.total_ns.max(0).unsigned_abs() + messages.total_ns;
    let share = to_f64(unread_ns) / to_f64(all_ns.max(1));
    let is_little = mean < LEAST_MEAN_NS && of_messages < MOSTLY;
    if count < SEVERAL || share < LEAST || is_little {
        return None;
    }
    let what = describe(&worst.meanwhile, unread_ns);
    let sentence = format!(
        "messages lie unread at {receiver}: {count} of {} for {} each, {} of the time of all messages{}",
        worst.all,
        format_ns(mean),
        percent(of_messages),
        what.map_or_else(String::new, |what| format!("; its thread {what} meanwhile"))
    );
    worst.unread.sort_unstable_by(|a, b| b.cmp(a));
    let rows: Vec<u32> = worst.unread.iter().map(|(_, row)| *row).take(12).collect();
    let longest_ns = worst.unread.first().map_or(0, |(ns, _)| *ns);
    let evidence = format!("the longest for {}", format_ns(to_f64(longest_ns)));
    let confidence = if what.is_some() { 0.95 } else { 0.8 };
    let found = kind.of_run(share.min(1.0), confidence, sentence);
    let found = found.because(log.evidence(evidence, &rows));
    Some(found.attempt("let it read in a thread of its own, or do slow work elsewhere than in the thread that reads"))
}

/// The points of all messages by unit.
fn points_of(log: &FindingEventLog<'_>, all: &[TracedRequest]) -> HashMap<i64, MessagePoints> {
    let messages = all.iter().filter(|one| one.is_one_way);
    let mut points: HashMap<i64, MessagePoints> = messages
        .map(|one| (one.unit, MessagePoints::default()))
        .collect();
    if points.is_empty() {
        return points;
    }
    let mut each = |keyword: &str, set: &dyn Fn(&mut MessagePoints, u64)| {
        for row in log.rows(keyword) {
            let unit = log.number(*row, "unit");
            if let Some(point) = unit.and_then(|unit| points.get_mut(&unit)) {
                set(point, log.at(*row));
            }
        }
    };
    for keyword in ["APP_CALL", "APP_SEND"] {
        each(keyword, &|point, at_ns| {
            point.sent_ns.get_or_insert(at_ns);
        });
    }
    each("APP_RECEIVED", &|point, at_ns| point.read_ns = Some(at_ns));
    // Within a host, the second sight is the arrival; where only the sender's host shows it, its arrival is not known.
    let receivers: HashMap<i64, &str> = all
        .iter()
        .filter(|one| one.is_one_way)
        .map(|one| (one.unit, receiving_host(one)))
        .collect();
    for row in log.rows("NET_SEEN") {
        let unit = log.number(*row, "unit").unwrap_or(-1);
        if receivers
            .get(&unit)
            .is_some_and(|host| *host == log.host(*row))
            && let Some(point) = points.get_mut(&unit)
        {
            point.arrived_ns = Some(log.at(*row));
        }
    }
    points
}

/// The host that a message goes to.
fn receiving_host(message: &TracedRequest) -> &str {
    match message.bytes.0 > 0 {
        true => &message.server,
        false => &message.client,
    }
}

/// What took at least half of some time, in words.
fn describe(waits: &[RequestServerWork], ns: u64) -> Option<&'static str> {
    let sum = |of: fn(&RequestServerWork) -> i64| -> i64 { waits.iter().map(of).sum() };
    let words = [
        (sum(|wait| wait.sleep), "sleeps (a timed wait)"),
        (sum(|wait| wait.lock), "waits for a lock"),
        (sum(|wait| wait.disk), "waits for a disk"),
        (sum(|wait| wait.cpu), "computes"),
        (
            sum(|wait| wait.runnable),
            "is ready to run but gets no core",
        ),
        (
            sum(|wait| wait.child),
            "waits for a process that it started",
        ),
        (sum(|wait| wait.stopped), "is stopped"),
        (sum(|wait| wait.collect), "waits for garbage collection"),
    ];
    let (most, what) = words.into_iter().max_by_key(|(part, _)| *part)?;
    (to_f64(most.max(0).unsigned_abs()) >= to_f64(ns) / 2.0).then_some(what)
}
