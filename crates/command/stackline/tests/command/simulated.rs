//! The simulated world by its command: exact, repeatable, recorded, refused where it has to be.

use crate::support::{Place, events, number, pair, stacks};
use serde_json::Value;

fn environment(place: &Place) -> Value {
    let text = std::fs::read_to_string(place.kept().0.join("environment.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn response_times_are_those_of_the_arithmetic() {
    let place = Place::new();
    let json = place.json(&format!(
        "{} 2 from a to b rr 100*50 over udp across n in simulated;",
        pair("")
    ));
    let measured = &json["measurements"][0];
    // 128 bytes on four links of 10 Mbit/s, and 20 ms of propagation.
    let expected = 4.0 * 128.0 * 8.0 / 10e6 + 0.02;
    for name in ["mean", "min", "max"] {
        let value = number(measured, &format!("/response_s/{name}"));
        assert!(
            (value - expected).abs() < 1e-9,
            "{name} {value} instead of {expected}"
        );
    }
    assert_eq!(
        (&json["world"], &measured["world"]),
        (&"simulated".into(), &"simulated".into())
    );
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let lossy = pair("loss 2% jitter uniform(0, 0.002) reordering");
    let text = format!("{lossy} 3 from a to b bulk_put 1000*200 over tcp, udp across n;");
    let digest = |seed: &str| {
        let place = Place::new();
        let output = place.stackline(&[
            "run",
            "-e",
            &text,
            "--in",
            "simulated",
            "--check-determinism",
            "--seed",
            seed,
        ]);
        output.succeeds();
        assert!(
            output
                .out
                .contains("6 runs were performed twice with equal results: digest "),
            "{}",
            output.out
        );
        environment(&place)["worlds"]["simulated"]["digest"].clone()
    };
    assert_eq!(digest("1"), digest("1"));
    assert_ne!(digest("1"), digest("2"));
}

#[test]
fn every_application_type_runs_over_every_stack() {
    let lossy = pair("loss 0.5% jitter uniform(0, 0.002) reordering duplicate 1%");
    // Forms of `blast`: each has a strategy of its own.
    let forms = [
        "blast(full)",
        "blast(full_nak)",
        "blast(partial)",
        "blast(selective)",
    ];
    let stacks = stacks::with(stacks::that_answer("simulated"), &forms);
    let over = stacks.join(", ");
    let types = [
        "bulk_put 10000*20",
        "bulk_get 10000*20",
        "rr 32, 4000*20",
        "connect_disconnect 0*5",
    ];
    let measurements = types.map(|what| format!("2 from a to b {what} over {over} across n;"));
    let text = format!("{lossy} {}", measurements.join(" "));
    let place = Place::new();
    place
        .stackline(&[
            "run",
            "-e",
            &text,
            "--in",
            "simulated",
            "--check-determinism",
        ])
        .succeeds();
    assert_eq!(place.kept().journal(), 2 * stacks.len() * types.len());
    let finished = place.stackline(&["stacks", "blast", "--in", "simulated"]);
    let listing = &finished.succeeds().out;
    assert!(
        listing.contains("selective")
            && listing.contains("AwaitStartBulkGet")
            && !listing.contains("carrier"),
        "{listing}"
    );
}

#[test]
fn every_example_runs() {
    for example in [
        "dumbbell",
        "lan-wan",
        "satellite",
        "magic",
        "blast",
        "page-load",
    ] {
        let place = Place::new();
        let file = format!(
            "{}/../../../examples/{example}.stackline",
            env!("CARGO_MANIFEST_DIR")
        );
        let output = place.stackline(&["run", &file, "--in", "simulated", "--json"]);
        let json = output.json();
        assert_eq!(json["complete"], true, "{example}");
    }
}

#[test]
fn many_seeds_are_many_runs_in_the_order_of_the_seeds() {
    let lossy = pair("loss 5%");
    let text = format!("{lossy} 2 from a to b bulk_put 1000*100 over udp across n;");
    let lost = |arguments: &[&str]| {
        let place = Place::new();
        let mut all = vec!["run", "-e", &text, "--in", "simulated"];
        all.extend(arguments);
        place.stackline(&all).succeeds();
        let journal = std::fs::read_to_string(place.kept().0.join("runs.jsonl")).unwrap();
        let record = |line: &str| -> (u64, u64) {
            let record: Value = serde_json::from_str(line).unwrap();
            (
                record["run"].as_u64().unwrap(),
                record["responder"]["lost"].as_u64().unwrap(),
            )
        };
        journal.lines().map(record).collect::<Vec<_>>()
    };
    let many = lost(&["--seeds", "3..6"]);
    assert_eq!(
        many.iter().map(|(run, _)| *run).collect::<Vec<_>>(),
        (0..8).collect::<Vec<_>>()
    );
    let alone = lost(&["--seed", "4"]);
    assert_eq!(
        alone.iter().map(|(_, lost)| lost).collect::<Vec<_>>(),
        many[2..4].iter().map(|(_, l)| l).collect::<Vec<_>>()
    );
}

#[test]
fn what_happens_in_the_network_is_kept() {
    let place = Place::new();
    let text = format!(
        "{} 1 from a to b rr 100*2 over udp across n in simulated;",
        pair("")
    );
    place
        .stackline(&["run", "-e", &text, "--trace", "--capture", "x>b"])
        .succeeds();
    let kept = place.kept().0;
    let events = |host: &str| events::lines(&kept.join("events").join(format!("{host}.parquet")));
    let first = events("a")
        .into_iter()
        .find(|line| line.starts_with("NET_"))
        .unwrap();
    assert!(
        first.starts_with("NET_ENQUEUE; a; 0; 0; ; ; ; ; a>x; a>b; "),
        "{first}"
    );
    for (keyword, host) in [
        ("NET_ENQUEUE", "a"),
        ("NET_DEQUEUE", "x"),
        ("NET_DELIVER", "b"),
    ] {
        let events = events(host);
        assert!(
            events
                .iter()
                .filter(|line| line.starts_with(keyword))
                .count()
                > 2,
            "{events:?}"
        );
    }
    let capture = std::fs::read(kept.join("captures/n.1.1.pcapng")).unwrap();
    assert_eq!(capture[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
    assert!(String::from_utf8_lossy(&capture).contains("x>b"));
}

#[test]
fn a_network_is_made_up_for_those_who_name_none() {
    let place = Place::new();
    let output = place.stackline(&["run", "-e", "1 rr 32*10 over udp", "--in", "simulated"]);
    output.succeeds();
    assert!(
        output
            .out
            .contains("no network was named: each host is connected to the same switch by a 1.00"),
        "{}",
        output.out
    );
    // The only one declared is taken.
    let finished = place.stackline(&[
        "run",
        "-e",
        &format!("{} 1 rr 32*10 over udp", pair("")),
        "--in",
        "simulated",
        "--json",
    ]);
    assert!(number(&finished.json(), "/measurements/0/response_s/mean") > 0.02);
}

#[test]
fn what_this_world_alone_can_do_is_refused_elsewhere() {
    let place = Place::new();
    let run = |arguments: &[&str]| {
        let mut all = vec!["run", "-e", "1 rr 32*10"];
        all.extend(arguments);
        place.stackline(&all)
    };
    run(&["--seeds", "1..4"])
        .fails(2, &["--seeds requires the simulated world"])
        .hints("--in simulated");
    run(&["--check-determinism"]).fails(2, &["--check-determinism requires the simulated world"]);
    run(&["--capture", "all"])
        .fails(2, &["the live world has no modelled network"])
        .hints("--in simulated");
    let until = place.stackline(&[
        "run",
        "-e",
        "2 until 5% rr 32*10 in simulated",
        "--seeds",
        "1..4",
    ]);
    until.fails(2, &["`until` and --seeds both set"]);
    let seeds = place.stackline(&[
        "run",
        "-e",
        "1 rr 32*10",
        "--in",
        "simulated",
        "--seeds",
        "9..4",
    ]);
    assert_eq!(seeds.status.code(), Some(2), "{}", seeds.err);
    assert!(seeds.err.contains("such as 1..100"), "{}", seeds.err);
}

#[test]
fn a_port_that_is_not_there() {
    let place = Place::new();
    let text = format!(
        "{} 1 from a to b rr 100*2 over udp across n in simulated;",
        pair("")
    );
    let output = place.stackline(&["run", "-e", &text, "--capture", "a>b"]);
    assert_eq!(output.status.code(), Some(2), "{}", output.err);
    assert!(
        output.err.contains("network n has no port `a>b`")
            && output.err.contains("a>x, x>a, x>b, b>x"),
        "{}",
        output.err
    );
}

#[test]
fn the_time_from_mark_to_mark_and_of_a_pass() {
    let text = "network n { host a, b; link a - b 1 Gbit/s 1 ms; }
        procedure work { initiator { ConnectRequest; StartMeasurement;
            repeat count { Mark(sent); Delay(constant(5 ms)); Mark(worked); RPCCall(100, 100); }
            StopMeasurement; DisconnectRequest; }
          responder { AwaitConnectIndication; repeat count { RPCAwaitCallInd(100); RPCReturn(100); Mark(answered); }
            AwaitDisconnectIndication; } }
        1 from a to b work 100*10 across n;";
    let measured = Place::new().measure(text);
    let mark = |name: &str, what: &str| number(&measured[0], &format!("/marks/{name}/{what}"));
    assert_eq!(
        [mark("sent -> worked", "n"), mark("sent -> worked", "max")],
        [10.0, 0.005]
    );
    assert_eq!(mark("worked -> sent", "n"), 9.0);
    // There and back over 1 ms each way, with the time of two small packets.
    assert!(
        (0.002..0.002_01).contains(&mark("worked -> sent", "median")),
        "{}",
        measured[0]["marks"]
    );
    for pass in ["answered -> answered", "sent -> sent", "worked -> worked"] {
        assert!(
            (0.007..0.007_01).contains(&mark(pass, "median")),
            "{pass}: {}",
            measured[0]["marks"]
        );
    }
}

#[test]
fn streams_over_a_slow_line_end_though_much_is_in_flight() {
    let place = Place::new();
    let slow = "network n { host a, b; switch s; link a - s 50 kbit/s 10 ms; link s - b 50 kbit/s 10 ms; }";
    let text = format!(
        "{slow} 1 timelimit 10 parallel: 6 from a to b bulk_put 1000 over tcp across n in simulated"
    );
    let output = place.run(&text);
    output.succeeds();
    assert!(output.out.contains("47.6 kbit/s"), "{}", output.out);
}

#[test]
fn seeds_of_a_text_that_draws_nothing_are_said_to_be_equal() {
    let place = Place::new();
    let run = |loss: &str, seeds: &str| {
        let text = format!(
            "network n {{ host a, b; link a - b 10 Mbit/s 5 ms{loss}; }} 2 from a to b rr 64*20 across n;"
        );
        place
            .stackline(&["run", "-e", &text, "--seeds", seeds])
            .succeeds()
            .out
            .contains("all runs identical")
    };
    assert!(run("", "1..3"));
    assert!(!run(" jitter uniform(0, 2 ms)", "1..3"));
}
