//! Traced stacks of a protocol above TCP or UDP: the way of each data unit is whole although its bytes are in records or frames, packets belong
//! to data units, and handshakes are segments.

use crate::support::events::{field, range, referred};
use crate::support::{Place, skip, stacks};
use serde_json::Value;
use stackline_events::text::TextEvent;
use std::collections::BTreeSet;

const NETWORK: &str =
    "network n { host a, b; switch x; link a - x 100 Mbit/s 1 ms; link x - b 100 Mbit/s 1 ms; }";

/// A traced run of one measurement across [`NETWORK`]; `None` where the world is not to be had.
fn traced(world: &str, measurement: &str) -> Option<Place> {
    traced_on(NETWORK, world, measurement)
}

fn traced_on(network: &str, world: &str, measurement: &str) -> Option<Place> {
    let place = Place::new();
    let text = format!("{network} {measurement} across n;");
    let output = place.stackline(&["run", "--trace", "--in", world, "-e", &text]);
    if output.status.code() == Some(3) {
        skip(&output.err);
        return None;
    }
    output.succeeds();
    Some(place)
}

/// Every form of the stacks of a world whose data units are in records or frames.
fn framing_stacks(world: &str) -> Vec<String> {
    stacks::with(
        stacks::that_frame_units(world),
        &["tls(version = tls12)", "http1(tls)", "http2(tls)"],
    )
}

/// The lines of data units, each with its keywords and places in the order of the way, and its times.
fn unit_lines(json: &Value) -> Vec<(String, Vec<u64>, &Value)> {
    let points = json["points"].as_array().unwrap();
    let name = |passage: &Value| {
        let point = &points[passage["point"].as_u64().unwrap() as usize];
        let place = point["place"].as_str().filter(|place| place.contains('>'));
        let host = point["host"].as_str().unwrap();
        format!(
            "{}@{}",
            point["keyword"].as_str().unwrap(),
            place.unwrap_or(host)
        )
    };
    let lines = json["lines"].as_array().unwrap().iter();
    let lines = lines.map(|line| {
        let passages = line["passages"].as_array().unwrap();
        let names: Vec<String> = passages.iter().map(name).collect();
        let times = passages
            .iter()
            .map(|passage| passage["at_ns"].as_u64().unwrap());
        (names.join(" "), times.collect(), line)
    });
    lines
        .filter(|(names, ..)| !names.starts_with("APP_CONNECT"))
        .collect()
}

/// What a call passes, one after the other, in every world.
const WAY: [&str; 14] = [
    "APP_CALL@a",
    "NET_ENQUEUE@a>x",
    "NET_DEQUEUE@a>x",
    "NET_ENQUEUE@x>b",
    "NET_DEQUEUE@x>b",
    "NET_DELIVER@b",
    "APP_INDICATION@b",
    "APP_REPLY@b",
    "NET_ENQUEUE@b>x",
    "NET_DEQUEUE@b>x",
    "NET_ENQUEUE@x>a",
    "NET_DEQUEUE@x>a",
    "NET_DELIVER@a",
    "APP_RESPONSE@a",
];

/// Every call is complete from the call through the network to the response, and its segments add up.
fn calls_are_whole(place: &Place, what: &str, calls: usize, bytes: u64) {
    let json = place
        .stackline(&["lifelines", "last", "--json", "--lines"])
        .json();
    let lines = unit_lines(&json);
    assert_eq!(lines.len(), calls, "{what}");
    for (names, times, line) in &lines {
        let mut rest = names.as_str();
        for step in WAY {
            let at = rest
                .find(step)
                .unwrap_or_else(|| panic!("{what}: no {step} at its place in {names}"));
            rest = &rest[at + step.len()..];
        }
        assert!(
            ["complete", "retried"].contains(&line["outcome"].as_str().unwrap()),
            "{what}: {line}"
        );
        assert_eq!(line["bytes"], 2 * bytes, "{what}");
        assert!(times.is_sorted(), "{what}: {names} at {times:?}");
        let whole = times.last().unwrap() - times.first().unwrap();
        assert_eq!(line["took_ns"], whole, "{what}");
    }
    let segments = json["segments"].as_array().unwrap().iter();
    let share: f64 = segments
        .filter(|segment| segment["connections"] == false)
        .map(|segment| segment["share"].as_f64().unwrap())
        .sum();
    assert!((share - 1.0).abs() < 1e-9, "{what}: {share}");
}

/// Of the packets that hosts sent with data: those that carry bytes of data units, and all; each the number and the bytes.
fn assigned(events: &[TextEvent]) -> [(usize, i64); 2] {
    let framed: Vec<(i64, (i64, i64))> = events
        .iter()
        .filter(|event| event.keyword == "UNIT_FRAMED")
        .filter_map(|event| Some((field(event, "stream")?, range(event)?)))
        .collect();
    let sent: Vec<(Option<i64>, (i64, i64))> = events
        .iter()
        .filter(|event| event.keyword == "NET_ENQUEUE")
        .filter(|event| ["a>x", "b>x"].contains(&event.data[4].as_str()))
        .filter(|event| field(event, "bytes").is_some_and(|bytes| bytes > 0))
        .map(|event| (field(event, "stream"), range(event).unwrap_or_default()))
        .collect();
    let is_a_unit_s = |(stream, (from, to)): &&(Option<i64>, (i64, i64))| {
        framed
            .iter()
            .any(|(of, (start, end))| Some(*of) == *stream && start < to && from < end)
    };
    let known: Vec<_> = sent.iter().filter(is_a_unit_s).copied().collect();
    [known, sent].map(|packets| {
        let bytes = packets.iter().map(|(_, (from, to))| to - from);
        (packets.len(), bytes.sum())
    })
}

fn calls_across_a_network(world: &str) {
    for stack in framing_stacks(world) {
        for (bytes, calls) in [(32, 150), (100_000, 12)] {
            let what = format!("{world}, {stack}, {bytes} B");
            let measurement = format!("1 from a to b rr {bytes}*{calls} over {stack}");
            let Some(place) = traced(world, &measurement) else {
                return;
            };
            calls_are_whole(&place, &what, calls, bytes);
            let (_, events) = referred(&place.kept().0);
            let [(known, _), (sent, _)] = assigned(&events);
            let is_http2 = ["http2", "grpc"].iter().any(|name| stack.starts_with(name));
            let least = match is_http2 {
                // Half of FTAM's messages are its own: the ends of transfers, and their confirmations.
                _ if stack == "ftam" => 45,
                // So are acknowledged settings and enlarged windows of HTTP/2.
                true => 90,
                false => 95,
            };
            assert!(
                known * 100 >= sent * least && sent >= 2 * calls,
                "{what}: {known} of {sent} packets"
            );
        }
    }
}

#[test]
fn emulated_calls_are_whole() {
    calls_across_a_network("emulated");
}

#[test]
fn simulated_calls_are_whole() {
    calls_across_a_network("simulated");
}

/// The units of transfers, one by one or many in a batch, own the packets too, and frames do not overlap.
#[test]
fn units_of_transfers_own_their_frames() {
    for world in ["emulated", "simulated"] {
        for stack in framing_stacks(world) {
            for operation in ["bulk_put 3000*60", "bulk_get 3000*60"] {
                let what = format!("{world}, {stack}, {operation}");
                let measurement = format!("1 from a to b {operation} over {stack}");
                let Some(place) = traced(world, &measurement) else {
                    return;
                };
                let (_, events) = referred(&place.kept().0);
                let framed = events.iter().filter(|event| event.keyword == "UNIT_FRAMED");
                let mut ranges: Vec<(i64, i64)> = framed.clone().filter_map(range).collect();
                let units: BTreeSet<i64> =
                    framed.filter_map(|event| field(event, "unit")).collect();
                assert_eq!((ranges.len(), units.len()), (60, 60), "{what}");
                ranges.sort_unstable();
                let is_apart = |pair: &[(i64, i64)]| pair[0].1 <= pair[1].0;
                assert!(ranges.windows(2).all(is_apart), "{what}: {ranges:?}");
                assert!(
                    ranges.iter().all(|(from, to)| to - from >= 3000),
                    "{what}: {ranges:?}"
                );
                // Packets are few and large.
                let [(_, known), (_, sent)] = assigned(&events);
                assert!(known * 100 >= sent * 95, "{what}: {known} of {sent} B");
                let json = place
                    .stackline(&["lifelines", "last", "--json", "--lines"])
                    .json();
                for (names, ..) in unit_lines(&json) {
                    let crosses = |keyword: &str| names.contains(keyword);
                    assert!(
                        names.starts_with("APP_SEND@")
                            && crosses("NET_ENQUEUE@")
                            && crosses("NET_DELIVER@")
                            && names.ends_with(if operation.contains("get") {
                                "APP_RECEIVED@a"
                            } else {
                                "APP_RECEIVED@b"
                            }),
                        "{what}: {names}"
                    );
                }
            }
        }
    }
}

#[test]
fn waits_for_windows_of_http2_are_segments() {
    let far = NETWORK.replace("1 ms", "10 ms");
    for world in ["simulated", "emulated"] {
        for (windows, window, keyword) in [
            (
                "window = 65535, connection_window = 1000000",
                "stream",
                "STREAM_RELEASED",
            ),
            (
                "window = 1000000, connection_window = 65535",
                "connection",
                "CONNECTION_RELEASED",
            ),
        ] {
            for operation in ["rr 300000*4", "bulk_put 200000*6"] {
                let what = format!("{world}, {windows}, {operation}");
                let measurement = format!("1 from a to b {operation} over http2({windows})");
                let Some(place) = traced_on(&far, world, &measurement) else {
                    return;
                };
                let json = place.stackline(&["lifelines", "last", "--json"]).json();
                let segments = json["segments"].as_array().unwrap();
                let name = format!("wait for {window} window");
                let wait = segments.iter().find(|segment| segment["name"] == *name);
                let wait = wait.unwrap_or_else(|| panic!("{what}: {segments:?}"));
                let share = wait["share"].as_f64().unwrap();
                assert!(share > 0.2, "{what}: {share}");
                // A wait takes a round trip of 40 ms.
                let (_, events) = referred(&place.kept().0);
                let waited: Vec<i64> = events
                    .iter()
                    .filter(|event| event.keyword == keyword)
                    .filter_map(|event| field(event, "waited_ns"))
                    .collect();
                assert!(
                    waited.iter().any(|ns| *ns >= 30_000_000),
                    "{what}: {waited:?}"
                );
            }
        }
        // Units that are sent together wait as long as what is before their own end.
        let small = "1 from a to b bulk_put 3000*200 over http2(window = 65535)";
        let Some(place) = traced_on(&far, world, small) else {
            return;
        };
        let json = place.stackline(&["lifelines", "last", "--json"]).json();
        for segment in json["segments"].as_array().unwrap() {
            let is_wait = segment["name"].as_str().unwrap().starts_with("wait for");
            if world == "simulated" || is_wait {
                assert_eq!(segment["negative"], 0, "{world}: {segment}");
            }
        }
        // Windows that the path does not fill are not waited for.
        let wide = "1 from a to b rr 100000*4 over http2";
        let Some(place) = traced_on(&far, world, wide) else {
            return;
        };
        let (_, events) = referred(&place.kept().0);
        let blocked = events
            .iter()
            .find(|event| event.keyword.ends_with("_BLOCKED"));
        assert!(blocked.is_none(), "{world}: {blocked:?}");
    }
}

/// The names of the segments of connections, in the order of their way.
pub(crate) fn segments_of_connections(place: &Place) -> Vec<String> {
    let json = place.stackline(&["lifelines", "last", "--json"]).json();
    let segments = json["segments"].as_array().unwrap().iter();
    segments
        .filter(|segment| segment["connections"] == true)
        .map(|segment| segment["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn handshakes_are_segments_of_connections_in_every_world() {
    let (tcp, tls) = ("TCP handshake", "TLS handshake");
    let opening = "protocol opening";
    for world in ["simulated", "emulated"] {
        for (stack, expected) in [
            ("tls", &[tcp, tls, opening][..]),
            ("tls(version = tls12)", &[tcp, tls, opening]),
            ("http1", &[tcp, opening]),
            ("http2(tls)", &[tcp, tls, opening]),
            ("quic", &["QUIC handshake", opening]),
            ("tcp", &["connection setup"]),
        ] {
            let measurement = format!("1 from a to b connect_disconnect 0*10 over {stack}");
            let Some(place) = traced(world, &measurement) else {
                return;
            };
            assert_eq!(
                segments_of_connections(&place),
                expected,
                "{world}, {stack}"
            );
        }
    }
}

#[test]
fn an_event_says_which_handshake_it_was() {
    for world in ["simulated", "emulated"] {
        let measurement = "1 from a to b connect_disconnect 0*5 over tls(resume)";
        let Some(place) = traced(world, measurement) else {
            return;
        };
        let (_, events) = referred(&place.kept().0);
        let said: Vec<[&str; 2]> = events
            .iter()
            .filter(|event| event.keyword == "TLS_CONNECTED")
            .map(|event| [event.data[4].as_str(), event.data[5].as_str()])
            .collect();
        assert_eq!(said[0], ["TLSv1_3", "full"], "{world}");
        // A ticket that comes after the next connection was requested resumes the one after it.
        let resumed = |said: &&[&str; 2]| **said == ["TLSv1_3", "resumed"];
        let count = said[1..].iter().filter(resumed).count();
        let least = if world == "simulated" { 4 } else { 1 };
        assert!((least..=4).contains(&count), "{world}: {said:?}");
    }
}
