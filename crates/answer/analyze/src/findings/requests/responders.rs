//! Responders: a message broker (NATS) hands requests on to whoever listens on their subject, and hands their answers back. The time
//! between belongs to the responder, not to the broker.

use crate::findings::requests::request::{TracedRequest, client_name, server_name};
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

/// Sets the responder of requests through a broker: the program to which a message on their subject was delivered while they were in
/// flight.
pub(crate) fn find_responders(all: &mut [TracedRequest]) {
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
