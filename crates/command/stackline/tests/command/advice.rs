//! What advice is worth: simulated with the change and without.

use crate::support::Place;
use serde_json::Value;

/// A transfer over 100 Mbit/s and 20 ms whose link has this, over `tcp` with these options.
fn transfer(link: &str, options: &str) -> String {
    format!(
        "network n {{ host a, b; link a - b 100 Mbit/s 10 ms {link}; }}
        1 from a to b bulk_put 64 KiB 20 MB over tcp({options}) across n in simulated;"
    )
}

/// Runs it traced; the first finding, and the throughput of the run in bit/s.
fn diagnosed(place: &Place, text: &str) -> (Value, f64) {
    let run = place.stackline(&["run", "--trace", "--json", "-e", text]);
    let run: Value = serde_json::from_str(&run.succeeds().out).unwrap();
    let found = place.stackline(&["diagnose", "--json", "--simulate", "last"]);
    let found: Value = serde_json::from_str(&found.succeeds().out).unwrap();
    (
        found["findings"][0].clone(),
        run["measurements"][0]["throughput_bit_s"]["mean"]
            .as_f64()
            .unwrap(),
    )
}

fn words(list: &Value) -> Vec<&str> {
    list.as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one.as_str().or(one["what"].as_str()))
        .collect()
}

#[test]
fn advice_comes_true() {
    let place = Place::new();
    for (was, cured, kind) in [
        (
            ("queue 20 kB", "nodelay"),
            ("queue 250080 bytes", "nodelay"),
            "queue_drop",
        ),
        (
            ("", "receive_buffer = 65536"),
            ("", "receive_buffer = 500208"),
            "window_below_bdp",
        ),
    ] {
        let (finding, now) = diagnosed(&place, &transfer(was.0, was.1));
        assert_eq!(finding["kind"], kind, "{finding}");
        let expected = &finding["expected"][0];
        let said = expected["times_as_fast"][0].as_f64().unwrap();
        let (_, then) = diagnosed(&place, &transfer(cured.0, cured.1));
        assert!(
            (said / (then / now) - 1.0).abs() < 0.02,
            "{said} times as fast, {now} and {then}: {finding}"
        );
        assert!(
            said > 2.0 && (expected["now"].as_f64().unwrap() / now - 1.0).abs() < 0.02,
            "{finding}"
        );
    }
}

#[test]
fn what_does_not_help_is_not_advised() {
    let place = Place::new();
    let (finding, _) = diagnosed(&place, &transfer("queue 20 kB", "nodelay"));
    let (tries, seen) = (words(&finding["tries"]), words(&finding["evidence"]));
    assert!(
        tries.iter().all(|what| !what.contains("pace")),
        "one sender at the rate of the link gains nothing: {tries:?}"
    );
    assert!(
        seen.iter()
            .any(|what| what.contains("does not help on its own: senders paced at")),
        "{seen:?}"
    );
}

#[test]
fn what_events_do_not_show_is_found_by_taking_it_away() {
    let place = Place::new();
    // A window that is asked for, and a host whose copies make it wait: the sender sees one window.
    let text = "network n { host a; host b { copy 395 ns per byte; } router l, r; link a - l 778 Mbit/s 3 ms;
        link l - r 51.7 Mbit/s 24.7 ms queue 630 kB; link r - b 440 Mbit/s 3 ms; }
        1 from a to b bulk_put 16384*2343 over tcp(nodelay, receive_buffer = 216791) across n in simulated;";
    diagnosed(&place, text);
    let all = place.stackline(&["diagnose", "--simulate", "last"]);
    all.succeeds();
    assert!(
        all.out
            .contains("the processor of b is the limit: it copies each packet; this costs"),
        "{}",
        all.out
    );
    assert!(
        all.out
            .contains("according to simulations with and without it"),
        "{}",
        all.out
    );
}

#[test]
fn a_run_of_this_machine_is_advised_without_figures() {
    let place = Place::new();
    place
        .stackline(&["run", "--trace", "-e", "1 rr 32*1000 over tcp"])
        .succeeds();
    let found = place.stackline(&["diagnose", "--json", "--simulate", "last"]);
    let found: Value = serde_json::from_str(&found.succeeds().out).unwrap();
    for finding in found["findings"].as_array().unwrap() {
        assert_eq!(
            finding["expected"],
            Value::Array(vec![]),
            "nothing is known of its network: {finding}"
        );
    }
}

#[test]
fn calls_that_go_packet_by_packet_are_not_healthy() {
    let place = Place::new();
    let text = "network n { host a, b; link a - b 20 Mbit/s 10 ms; }
        1 from a to b rr 100, 64 KiB*10 over saw across n in simulated;";
    place.stackline(&["run", "--trace", "-e", text]).succeeds();
    let found = place.stackline(&["diagnose", "--simulate", "last"]);
    found.succeeds();
    // 64 KiB in packets of 1440 bytes, and a request.
    assert!(
        found.out.contains("a call takes 47 round trips of 20.0 ms"),
        "{}",
        found.out
    );
    assert!(
        found.out.contains("try:  `window(n = 46)`"),
        "{}",
        found.out
    );
}

/// Clients that answer one host at once through a switch of 64 KiB a port.
fn incast(composer: &str) -> String {
    let names: Vec<String> = (1..=8).map(|at| format!("s{at}")).collect();
    let links: String = names
        .iter()
        .map(|name| format!("link {name} - sw 1 Gbit/s 20 us; "))
        .collect();
    let parts: Vec<String> = names
        .iter()
        .map(|name| format!("from c to {name} rr 100, 256 KiB*3"))
        .collect();
    format!(
        "network rack {{ host c, {}; switch sw {{ buffer 64 KiB per port; }} link c - sw 1 Gbit/s 20 us; {links} }}
        1 {composer} over tcp across rack in simulated: {};",
        names.join(", "),
        parts.join(" | ")
    )
}

#[test]
fn advice_for_many_at_once_is_tried_and_never_a_shorter_queue() {
    let place = Place::new();
    for composer in ["total", "parallel"] {
        place
            .stackline(&["run", "--trace", "-e", &incast(composer)])
            .succeeds();
        let found = place.stackline(&["diagnose", "--json", "--simulate", "last"]);
        let found: Value = serde_json::from_str(&found.succeeds().out).unwrap();
        let first = &found["findings"][0];
        let text = first.to_string();
        assert!(text.contains("simulated: "), "{composer}: {text}");
        // Bandwidth times delay is 10.2 kB, a sixth of what the port has.
        assert!(!text.contains("a queue of 10"), "{composer}: {text}");
        for one in first["expected"].as_array().unwrap() {
            let number = |field: &str| one[field].as_f64().unwrap();
            let (ratio, said) = (number("now") / number("then"), &one["times_as_fast"]);
            let [least, greatest] = [1, 2].map(|at| said[at].as_f64().unwrap());
            assert!(
                (0.9 * least..=1.1 * greatest).contains(&ratio),
                "its figures are of the same parts as its gain: {one}"
            );
        }
        let untried = words(&first["tries"]).len() - first["expected"].as_array().unwrap().len();
        assert_eq!(untried, 0, "{composer}: {text}");
    }
}

/// A transfer that asks its sender for data waits for the confirmation of that; what has arrived by then does not wait for its application.
#[test]
fn data_that_arrives_while_its_sender_is_asked_is_nobodys_fault() {
    let place = Place::new();
    let text = "network n { host a, b; link a - b 15 Mbit/s 55 ms; }
        procedure work {
          initiator { ConnectRequest; StartMeasurement; StartBulkGet; repeat count { AwaitDataIndication(unit); } StopBulkGet; StopMeasurement; DisconnectRequest; }
          responder { AwaitConnectIndication; AwaitStartBulkGet; repeat count { Pace(constant(860 us)); DataRequest(unit); } AwaitStopBulkGet; AwaitDisconnectIndication; }
        }
        1 from a to b work 800 B*1700 over udp across n in simulated;";
    let (first, _) = diagnosed(&place, text);
    assert_eq!(first["kind"], "healthy", "{first:#}");
}
