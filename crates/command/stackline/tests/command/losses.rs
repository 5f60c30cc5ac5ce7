//! Datagrams that are lost are counted, and those alone.

use crate::support::{Place, number, skip};
use serde_json::Value;
use std::fs;

#[test]
fn a_flood_into_a_tiny_buffer_loses_and_says_how_much() {
    let place = Place::new();
    // The responder sends as fast as it can; 2048 bytes of buffer hold a few datagrams only.
    let measured =
        place.measure("3 bulk_get 1000*20000 over udp(receive_buffer = 2048, batch = 64)");
    let m = &measured[0];
    let [sent, received] = [
        number(m, "/responder/sent_units"),
        number(m, "/initiator/received_units"),
    ];
    let [lost, duplicated] = [number(m, "/lost"), number(m, "/duplicated")];
    assert_eq!(sent, 60_000.0);
    assert!(lost > 0.0 && lost <= sent, "{m}");
    assert_eq!(received + lost, sent, "{m}");
    assert!(duplicated >= 0.0 && number(m, "/reordered") >= 0.0);
    assert_eq!(number(m, "/initiator/received_bytes"), received * 1000.0);
    assert!((number(m, "/lost_share") - lost / sent).abs() < 1e-9);
}

#[test]
fn over_every_form_of_udp_what_is_sent_is_received_or_lost() {
    let measured = Place::new().measure(
        "2 bulk_put 500*5000 over udp, udp(batch = 16), udp(gso), udp(receive = spin), udp(receive_buffer = 4096)",
    );
    assert_eq!(measured.len(), 5);
    for m in &measured {
        let received = number(m, "/responder/received_units");
        assert_eq!(
            received + number(m, "/lost"),
            number(m, "/initiator/sent_units"),
            "{m}"
        );
        assert_eq!(
            number(m, "/responder/received_bytes"),
            received * 500.0,
            "{m}"
        );
    }
}

#[test]
fn a_receiving_call_is_that_of_the_datagram_that_came() {
    let place = Place::new();
    let text = "network n { host a, b; link a - b 10 Mbit/s 1 ms loss every 3; }
        1 from a to b stream 1000*300 1000/s over udp across n in emulated;";
    place.stackline(&["run", "--trace", "-e", text]).succeeds();
    let events = place
        .stackline(&["export", "last", "--text"])
        .succeeds()
        .out
        .clone();
    let units = |keyword: &str| -> Vec<String> {
        let lines = events
            .lines()
            .map(|line| line.split("; ").collect::<Vec<_>>());
        let of_b = lines.filter(|fields| fields[..2] == [keyword, "b"]);
        of_b.filter_map(|fields| fields.get(4).map(|unit| (*unit).to_owned()))
            .filter(|unit| !unit.is_empty())
            .collect()
    };
    let (socket, application) = (units("SOCK_RECEIVED"), units("APP_RECEIVED"));
    assert!(
        (195..=205).contains(&application.len()),
        "{}",
        application.len()
    );
    assert_eq!(socket, application);
}

#[test]
fn calls_that_arrive_twice_are_not_lost() {
    let place = Place::new();
    let text = "network n { host a, b; link a - b 10 Mbit/s 1 ms duplicate 100%; }
        2 from a to b rr 32*50 over udp across n in emulated;
        2 from a to b rr 4*50 over udp across n in emulated;";
    for m in place.measure(text) {
        assert_eq!(number(&m, "/lost"), 0.0, "{m}");
        assert_eq!(number(&m, "/response_s/n"), 100.0, "{m}");
    }
}

/// The findings of the last run, by kind.
fn kinds(place: &Place) -> Vec<(String, String)> {
    let output = place.stackline(&["diagnose", "--json", "last"]);
    let found: Value = serde_json::from_str(&output.succeeds().out).unwrap();
    let text = |finding: &Value, field: &str| finding[field].as_str().unwrap().to_owned();
    found["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| (text(finding, "kind"), text(finding, "sentence")))
        .collect()
}

#[test]
fn losses_in_the_receivers_socket_are_named() {
    let place = Place::new();
    let live = "1 bulk_put 1400*20000 over udp(receive_buffer = 4096)";
    let emulated = format!(
        "network socket{} {{ host a, b; link a - b 1 Gbit/s 1 ms; }}
        1 from a to b stream 1400*20000 100 Mbit/s over udp(receive_buffer = 4096) across socket{} in emulated;",
        std::process::id(),
        std::process::id()
    );
    for text in [live, &emulated] {
        let run = place.stackline(&["run", "--trace", "--json", "-e", text]);
        if run.status.code() == Some(3) {
            skip(run.err.clone());
            continue;
        }
        let run: Value = serde_json::from_str(&run.succeeds().out).unwrap();
        let m = &run["measurements"][0];
        let (lost, sent) = (number(m, "/lost"), number(m, "/initiator/sent_units"));
        let kinds = kinds(&place);
        let named = kinds
            .iter()
            .any(|(kind, _)| kind == "receive_buffer_loss" || kind == "receiver_limited");
        assert_eq!(named, lost > 1e-3 * sent, "{lost} of {sent}: {kinds:?}");
        assert!(
            lost <= 1e-3 * sent || kinds.iter().all(|(kind, _)| kind != "healthy"),
            "{kinds:?}"
        );
    }
}

#[test]
fn a_buffer_that_the_kernel_cut_is_said_in_the_row() {
    let most = fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap();
    let most: u64 = most.trim().parse().unwrap();
    if most >= 1 << 30 {
        return skip("this kernel gives whatever is asked for".to_owned());
    }
    let place = Place::new();
    let text = "1 rr 32*100 over tcp(receive_buffer = 1 GiB)";
    let output = place.stackline(&["run", "-e", text]);
    output.succeeds();
    let said = format!("cut receive_buffer to {most} B by net.core.rmem_max");
    let words: Vec<&str> = output.out.split_whitespace().collect();
    assert!(words.join(" ").contains(&said), "{}", output.out);
    let measured = place.measure("1 rr 32*100 over tcp(receive_buffer = 64 KiB)");
    assert!(
        !measured[0]["flags"].to_string().contains("cut"),
        "{}",
        measured[0]
    );
}
