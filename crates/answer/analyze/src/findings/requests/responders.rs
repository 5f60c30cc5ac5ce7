//! Responders: a message broker (NATS) hands requests on to whoever listens on their subject, and hands their answers back; a read that waits
//! at a queue (Redis) ends when somebody puts something into it. The time between belongs to the responder, not to the broker.

use crate::findings::requests::request::{TracedRequest, client_name, is_wait, server_name};
use std::collections::BTreeMap;

/// How subjects begin that the broker answers itself.
const OF_BROKER: &str = "$JS.API";
/// The most deliveries among which that of a request is searched for.
const AMONG: usize = 64;

/// Who answers a request through a broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestResponder {
    /// The program with its host, and the broker, in words.
    pub(crate) name: String,
    /// Whether the delivery of the request to this program was seen.
    pub(crate) is_seen: bool,
}

/// Sets the responders of requests through a broker or a queue.
pub(crate) fn find_responders(all: &mut [TracedRequest]) {
    find_subscribers(all);
    find_producers(all);
}

/// How long after a read of a queue the answer to the command that fills it may come, ns: the store answers both at once.
const FILLS_NS: u64 = 5_000_000;
/// Commands of Redis that put something into a queue, with the reads that wait for it.
const FILLS: [(&str, &str); 5] = [
    ("LPUSH ", "BL"),
    ("RPUSH ", "BL"),
    ("LPUSH ", "BR"),
    ("RPUSH ", "BR"),
    ("ZADD ", "BZ"),
];

/// Sets the responder of reads that wait at a queue of Redis: the client whose command filled it when the read ended.
fn find_producers(all: &mut [TracedRequest]) {
    let is_of_redis = |one: &&TracedRequest| one.protocol == "RESP" && one.is_call;
    // By the beginning of the reads' names, and the key.
    let mut fills: BTreeMap<(&str, String), Vec<QueueFill>> = BTreeMap::new();
    for request in all.iter().filter(is_of_redis) {
        for (command, reads) in FILLS {
            if let Some(key) = request.name.strip_prefix(command) {
                let fill = QueueFill {
                    answered_ns: request.end_ns,
                    asked_ns: request.begin_ns(),
                    whom: process_name(request),
                };
                fills.entry((reads, key.to_owned())).or_default().push(fill);
            }
        }
    }
    for of_key in fills.values_mut() {
        of_key.sort_by_key(|fill| fill.answered_ns);
    }
    for request in all.iter_mut() {
        if !(is_of_redis(&&*request) && is_wait(request)) {
            continue;
        }
        let Some((command, key)) = request.name.split_once(' ') else {
            continue;
        };
        // Others, such as WAIT, wait for no queue.
        let is_read = FILLS.iter().any(|(_, reads)| command.starts_with(reads));
        if !is_read {
            continue;
        }
        let key = key.split(',').next().unwrap_or_default().to_owned();
        let of_key = command
            .get(..2)
            .and_then(|reads| fills.get(&(reads, key)))
            .map_or(&[][..], Vec::as_slice);
        let first = of_key.partition_point(|fill| fill.answered_ns < request.begin_ns());
        let ends_it = |fill: &&QueueFill| {
            fill.asked_ns <= request.end_ns
                && fill.answered_ns.saturating_add(FILLS_NS) >= request.end_ns
        };
        let through = server_name(request);
        request.responder = Some(match of_key[first..].iter().find(ends_it) {
            Some(fill) => RequestResponder {
                name: format!("{}, through {through},", fill.whom),
                is_seen: true,
            },
            None => RequestResponder {
                name: format!("whoever fills the queue at {through}"),
                is_seen: false,
            },
        });
    }
}

/// A command that put something into a queue.
struct QueueFill {
    /// When it was answered, and when it was asked, ns.
    answered_ns: u64,
    asked_ns: u64,
    /// Its client.
    whom: String,
}

/// A client with its process, as several of one name may use a queue.
fn process_name(request: &TracedRequest) -> String {
    let client = client_name(request);
    match request.client_pid {
        Some(pid) => format!("{client} (pid {pid})"),
        None => client,
    }
}

/// Sets the responder of requests through NATS: the program to which a message on their subject was delivered while they were in
/// flight.
fn find_subscribers(all: &mut [TracedRequest]) {
    let mut delivered: BTreeMap<String, Vec<(u64, String)>> = BTreeMap::new();
    for message in all
        .iter()
        .filter(|one| one.protocol == "NATS" && !one.is_call)
    {
        // A message that the broker sends by itself has no name, only a status.
        if let Some(subject) = subject_of(&message.status, ["MSG", "HMSG"]) {
            let whom = client_name(message);
            delivered
                .entry(subject.to_owned())
                .or_default()
                .push((message.end_ns, whom));
        }
    }
    delivered.values_mut().for_each(|messages| messages.sort());
    for request in all
        .iter_mut()
        .filter(|one| one.protocol == "NATS" && one.is_call)
    {
        let Some(subject) = subject_of(&request.name, ["PUB", "HPUB"]) else {
            continue;
        };
        if subject.starts_with(OF_BROKER) {
            continue;
        }
        let messages = delivered.get(subject).map_or(&[][..], Vec::as_slice);
        let first = messages.partition_point(|(at_ns, _)| *at_ns < request.begin_ns());
        let mut whom: Vec<&str> = messages[first..]
            .iter()
            .take(AMONG)
            .take_while(|(at_ns, _)| *at_ns <= request.end_ns)
            .map(|(_, whom)| whom.as_str())
            .collect();
        whom.sort_unstable();
        whom.dedup();
        let through = server_name(request);
        request.responder = Some(match whom[..] {
            [one] => RequestResponder {
                name: format!("{one}, through {through},"),
                is_seen: true,
            },
            _ => RequestResponder {
                name: format!("the responder behind {through}"),
                is_seen: false,
            },
        });
    }
}

fn subject_of<'n>(name: &'n str, verbs: [&str; 2]) -> Option<&'n str> {
    let (verb, subject) = name.split_once(' ')?;
    verbs.contains(&verb).then_some(subject)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::requests::request::RequestTimes;

    fn nats(said: &str, client: &str, is_call: bool, begin: u64, end: u64) -> TracedRequest {
        let (name, status) = match is_call {
            true => (said.into(), String::new()),
            false => (String::new(), said.into()),
        };
        TracedRequest {
            protocol: "NATS".into(),
            name,
            status,
            client: client.into(),
            server: "broker".into(),
            programs: ("python3".into(), "nats-server".into()),
            is_call,
            end_ns: end,
            times: is_call.then(|| RequestTimes {
                total: (end - begin) as i64,
                ..RequestTimes::default()
            }),
            ..TracedRequest::default()
        }
    }

    fn responder(all: &mut [TracedRequest]) -> (String, bool) {
        find_responders(all);
        let responder = all[0].responder.clone().unwrap();
        (responder.name, responder.is_seen)
    }

    #[test]
    fn who_gets_the_message_meanwhile_answers() {
        let asked = nats("PUB orders.get", "app", true, 100, 900);
        let mut all = [
            asked.clone(),
            nats("MSG orders.get", "worker", false, 150, 150),
            nats("MSG other", "app", false, 160, 160),
            nats("MSG orders.get", "late", false, 950, 950),
        ];
        let named = "python3 on worker, through nats-server on broker,".to_owned();
        assert_eq!(responder(&mut all), (named, true));
        let nobody = "the responder behind nats-server on broker".to_owned();
        assert_eq!(responder(&mut [asked.clone()]), (nobody.clone(), false));
        let mut several = [
            asked,
            nats("MSG orders.get", "worker", false, 150, 150),
            nats("MSG orders.get", "other", false, 150, 150),
        ];
        assert_eq!(responder(&mut several), (nobody, false));
    }

    fn redis(name: &str, pid: i64, begin: u64, end: u64) -> TracedRequest {
        TracedRequest {
            protocol: "RESP".into(),
            name: name.into(),
            programs: ("python3".into(), "redis-server".into()),
            client_pid: Some(pid),
            ..nats("", "app", true, begin, end)
        }
    }

    #[test]
    fn who_fills_a_queue_answers_the_read_that_waits_at_it() {
        let ms = 1_000_000;
        let mut all = [
            redis("RPUSH done:8", 7, 30 * ms, 31 * ms),
            redis("RPUSH done:7", 8, 80 * ms, 82 * ms),
            redis("BLPOP done:7, blocking", 5, 10 * ms, 81 * ms),
            redis("BLPOP done:9, blocking", 5, 90 * ms, 190 * ms),
            redis("RPUSH done:9", 8, 20 * ms, 21 * ms),
            redis("WAIT 1, blocking", 5, 200 * ms, 300 * ms),
        ];
        find_responders(&mut all);
        let whom = |at: usize| {
            let responder = all[at].responder.clone();
            responder.map(|one| (one.name, one.is_seen))
        };
        let worker = "python3 on app (pid 8), through redis-server on broker,";
        assert_eq!(whom(2), Some((worker.to_owned(), true)));
        let unknown = "whoever fills the queue at redis-server on broker";
        assert_eq!(whom(3), Some((unknown.to_owned(), false)));
        assert_eq!([whom(0), whom(5)], [None, None]);
    }

    #[test]
    fn what_the_broker_answers_itself_is_its_own() {
        let mut all = [
            nats("PUB $JS.API.STREAM.INFO", "app", true, 100, 900),
            nats("PING", "app", true, 100, 900),
        ];
        find_responders(&mut all);
        assert!(all.iter().all(|one| one.responder.is_none()));
    }
}
