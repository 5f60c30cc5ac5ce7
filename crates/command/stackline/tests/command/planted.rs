//! Causes of findings that the corpus cannot plant, because no measurement is made: captures, watched connections, block sessions.

use crate::support::Place;
use serde_json::Value;
use std::fs;
use std::io::{ErrorKind, Write};
use std::net::{TcpListener, TcpStream};

/// The finding at rank one.
fn first(json: &Value) -> (&str, &str) {
    let first = &json["findings"][0];
    let text = |field: &str| first[field].as_str().unwrap_or_default();
    (text("kind"), text("sentence"))
}

/// What is found in the packets that a port, or a host, of a simulated run sent and got, when nothing else is known of the run.
fn found_in_packets(specification: &str, captured: &str) -> Value {
    let place = Place::new();
    let run = ["run", "-e", specification, "--capture", captured];
    place.stackline(&run).succeeds();
    let captures = fs::read_dir(place.kept().0.join("captures")).unwrap();
    let capture = captures.flatten().next().unwrap().path();
    let import = ["import", capture.to_str().unwrap(), "--name", "packets"];
    place.stackline(&import).succeeds();
    place.stackline(&["diagnose", "packets", "--json"]).json()
}

#[test]
fn packets_that_a_link_loses_are_seen_in_a_capture() {
    let across = |loss: &str| {
        let text = format!(
            "seed 1; network n {{ host a, b; link a - b 20 Mbit/s 10 ms {loss}; }}
             1 from a to b bulk_put 16 KiB 2 MB across n in simulated"
        );
        found_in_packets(&text, "a>b")
    };
    let json = across("loss 2%");
    let (kind, sentence) = first(&json);
    assert_eq!(kind, "observed_loss", "{json:#}");
    assert!(sentence.contains("were retransmitted"), "{sentence}");
    assert_eq!(across("")["findings"], Value::Array(Vec::new()));
}

#[test]
fn a_receiver_that_reads_slowly_is_seen_by_its_window() {
    let slow = "seed 1; network n { host a, b; link a - b 100 Mbit/s 1 ms; }
        procedure slow {
          initiator { ConnectRequest; StartMeasurement; repeat count { DataRequest(unit); } StopMeasurement; DisconnectRequest; }
          responder { AwaitConnectIndication; repeat count { AwaitDataIndication(unit); Delay(constant(20 ms)); } AwaitDisconnectIndication; }
        }
        1 from a to b slow 16 KiB*200 over tcp across n in simulated";
    let json = found_in_packets(slow, "a");
    let (kind, sentence) = first(&json);
    assert_eq!(kind, "observed_window", "{json:#}");
    assert!(sentence.contains("was full"), "{sentence}");
}

#[test]
fn a_sender_that_pauses_is_who_was_waited_for() {
    let pauses = "seed 1; network n { host a, b; link a - b 100 Mbit/s 1 ms; }
        procedure pushes {
          initiator { ConnectRequest; StartMeasurement; DataRequest(unit); Delay(constant(3)); DataRequest(unit); StopMeasurement; DisconnectRequest; }
          responder { AwaitConnectIndication; AwaitDataIndication(unit); AwaitDataIndication(unit); AwaitDisconnectIndication; }
        }
        1 from a to b pushes 1000 over tcp across n in simulated";
    let json = found_in_packets(pauses, "a>b");
    let (kind, sentence) = first(&json);
    assert_eq!(kind, "observed_quiet", "{json:#}");
    assert!(
        sentence.contains("for 3.00 s") && sentence.contains("to send"),
        "{sentence}"
    );
}

#[test]
fn data_that_nobody_reads_is_seen_where_it_lies() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut sender = TcpStream::connect(address).unwrap();
    let (_never_reads, _) = listener.accept().unwrap();
    sender.set_nonblocking(true).unwrap();
    let refused = loop {
        if let Err(error) = sender.write(&[7; 1 << 16]) {
            break error;
        }
    };
    assert_eq!(
        refused.kind(),
        ErrorKind::WouldBlock,
        "both buffers are full"
    );
    let place = Place::new();
    let port = address.port().to_string();
    let watch = [
        "watch",
        "--tcp",
        &port,
        "--interval",
        "50ms",
        "--for",
        "1s",
        "--keep",
        "unread",
    ];
    place.stackline(&watch).succeeds();
    let json = place.stackline(&["diagnose", "unread", "--json"]).json();
    let found = json["findings"].as_array().unwrap();
    let unread = found.iter().find(|one| one["kind"] == "observed_unread");
    let sentence = unread.unwrap_or_else(|| panic!("{json:#}"))["sentence"].as_str();
    assert!(
        sentence.is_some_and(|said| said.contains(&format!("lay unread at {address}"))),
        "{sentence:?}"
    );
}

#[test]
fn disks_that_are_too_slow_for_their_blocks_are_the_stage_that_limits() {
    let place = Place::new();
    place.write(
        "net.stackline",
        "network n { host s1, s2, master, app; switch x; link s1 - x 1 Gbit/s 100 us; link s2 - x 1 Gbit/s 100 us;
         link master - x 1 Gbit/s 100 us; link app - x 1 Gbit/s 100 us; }",
    );
    let replayed = |disk: &str| {
        let replay = [
            "blocks",
            "replay",
            "--across",
            "net.stackline",
            "--in",
            "simulated",
            "--interval",
            "200ms",
            "--for",
            "3s",
            "--blocks",
            "100",
            "--disk",
            disk,
        ];
        place.stackline(&replay).succeeds();
        place.stackline(&["diagnose", "last", "--json"]).json()
    };
    let json = replayed("20 ms");
    let (kind, sentence) = first(&json);
    assert_eq!(kind, "stage_limited", "{json:#}");
    assert!(
        sentence
            .starts_with("the stage DPSS_START_READ to DPSS_END_READ at s1 and s2 is the limit"),
        "{sentence}"
    );
    assert_eq!(first(&replayed("1 ms")).0, "healthy");
}
