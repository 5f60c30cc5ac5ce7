//! Parts together, limits, and application types of one's own.

use crate::support::{Place, number, stacks};
use serde_json::Value;
use stackline_core::catalogue::StackTable;

/// Datagrams by the dozen in one call, and a server that may meet a call twice.
const FORMS: [&str; 3] = ["udp(batch = 16)", "udp(gso)", "ikp(duplicates = allowed)"];

fn parts(measured: &[Value]) -> Vec<&str> {
    measured
        .iter()
        .map(|m| m["part"].as_str().unwrap())
        .collect()
}

#[test]
fn the_load_goes_on_until_the_measured_part_is_done() {
    for stack in stacks::that_answer("live") {
        let measured = Place::new().measure(&format!(
            "2 background: rr 32*500 constant(200 us) | 2 bulk_get 1024*10 over {stack} | rr 100*5 over {stack}; \
             1 priority background over {stack}: bulk_put 1000*5000 | rr 32*10"
        ));
        let [rr, load, calls] = [&measured[0], &measured[1], &measured[2]];
        assert_eq!(
            (&rr["background"], &load["background"]),
            (&Value::Bool(false), &Value::Bool(true))
        );
        assert_eq!(number(rr, "/response_s/n"), 1000.0);
        // Ten units take far less than the 0.1 s of the measured part: it began again, many times.
        assert!(
            number(load, "/initiator/received_units") > 2.0 * 2.0 * 10.0,
            "{load}"
        );
        assert!(number(calls, "/response_s/n") > 2.0 * 5.0, "{calls}");
    }
}

#[test]
fn total_is_one_row() {
    let measured = Place::new().measure("2 total: 3 bulk_get 1000*100 | bulk_put 1000*100");
    assert_eq!(measured.len(), 1, "{:?}", parts(&measured));
    assert_eq!(
        number(&measured[0], "/initiator/received_units"),
        2.0 * 300.0
    );
    assert_eq!(
        number(&measured[0], "/responder/received_units"),
        2.0 * 100.0
    );
}

#[test]
fn parallel_is_a_row_for_each_part_and_one_for_all() {
    let measured = Place::new()
        .measure("2 parallel over tcp, unix: 3 bulk_get 1000*100 | rr 32*100 over udp, unix");
    // Four measurements, each of two parts and their aggregate.
    assert_eq!(measured.len(), 12, "{:?}", parts(&measured));
    for m in measured.iter().filter(|m| m["application"] == "bulk_get") {
        assert_eq!(
            (
                number(m, "/replicas"),
                number(m, "/initiator/received_units")
            ),
            (3.0, 600.0)
        );
    }
}

#[test]
fn three_hosts_one_of_them_loaded_by_two() {
    let measured = Place::new().measure(
        "host a,b,c via local;\n2 parallel: from a to c rr 32*200 | from b to c bulk_put 1000*200 | from c to a rr 8*50;",
    );
    let ends: Vec<(&str, &str)> = measured
        .iter()
        .take(3)
        .map(|m| (m["from"].as_str().unwrap(), m["to"].as_str().unwrap()))
        .collect();
    assert_eq!(ends, [("a", "c"), ("b", "c"), ("c", "a")]);
    assert_eq!(number(&measured[0], "/response_s/n"), 400.0);
}

#[test]
fn a_time_limit_ends_every_application_type_over_every_stack() {
    for stack in stacks::with(stacks::that_answer("live"), &FORMS) {
        let place = Place::new();
        let measured = place.measure(&format!(
            "1 timelimit 0.05 bulk_get 1000*1000000000 over {stack}; 1 timelimit 0.05 bulk_put 1000 over {stack}; \
             1 timelimit 0.05 rr 32*1000000000 over {stack}; 1 timelimit 0.05 stream 200*100000 constant(1 ms) over {stack}; \
             1 timelimit 0.05 connect_disconnect 0*2000 constant(1 ms) over {stack}; \
             1 timelimit 0.05 parallel over {stack}: 3 bulk_get 1000 | 2 rr 100*1000000000"
        ));
        for m in &measured {
            // Without the limit it would go on for hours.
            let elapsed = number(m, "/elapsed_s/max");
            assert!(elapsed >= 0.01, "{stack}: {elapsed} s: {}", m["text"]);
            assert!(number(m, "/runs") == 1.0);
        }
        let got =
            |index: usize, side: &str| number(&measured[index], &format!("/{side}/received_units"));
        assert!(
            got(0, "initiator") > 0.0 && got(1, "responder") > 0.0 && got(3, "responder") > 0.0,
            "{stack}"
        );
        assert!(number(&measured[2], "/response_s/n") > 0.0, "{stack}");
        assert!(number(&measured[4], "/connect_s/n") > 0.0, "{stack}");
    }
}

#[test]
fn an_application_type_of_ones_own() {
    let place = Place::new();
    place.write("data/in", vec![1; 5000]);
    let text = |read: &str, run: &str| {
        format!(
            "procedure transaction(think) {{
                initiator {{
                    ConnectRequest; StartMeasurement;
                    repeat count {{
                        Delay(think);
                        repeat 3 {{ repeat 2 {{ DataRequest(unit); AwaitDataIndication(100 B); }} Mark(round); }}
                        RPCCall(64 B, reply);
                    }}
                    StopMeasurement; DisconnectRequest;
                }}
                responder {{
                    AwaitConnectIndication;
                    repeat count {{
                        repeat 3 {{ {read} repeat 2 {{ AwaitDataIndication(unit); DataRequest(100 B); }} }}
                        RPCAwaitCallInd(64 B); Delay(constant(10 us)); RPCReturn(reply); Mark(answered);
                    }}
                    AwaitDisconnectIndication;
                }}
            }}
            2 transaction 700, 200*20 {run};"
        )
    };
    let run = |text: &str| {
        let json = place
            .stackline(&["run", "--json", "--files", "data", "-e", text])
            .json();
        json["measurements"].as_array().unwrap().clone()
    };
    let calls = |stack: &StackTable| stack.mapping.maps("RPCCall");
    let with_files = stacks::which("live", |stack| stack.files && calls(stack));
    let others = stacks::which("live", |stack| !stack.files && calls(stack));
    let others = stacks::with(others, &FORMS);
    let others = stacks::with(others, &["tcp(receive = truncate)"]);
    let mut measured = run(&text(
        "ReadFile(1000);",
        &format!("< file in constant(100 us) over {}", with_files.join(", ")),
    ));
    measured.extend(run(&text(
        "",
        &format!("constant(100 us) over {}", others.join(", ")),
    )));
    assert_eq!(measured.len(), with_files.len() + others.len());
    for m in &measured {
        assert_eq!(number(m, "/response_s/n"), 40.0, "{m}");
        assert_eq!(number(m, "/initiator/sent_units"), 2.0 * 20.0 * 6.0);
        assert_eq!(
            number(m, "/responder/received_bytes"),
            2.0 * 20.0 * 6.0 * 700.0,
            "{m}"
        );
        assert_eq!(number(m, "/marks/round/n"), 2.0 * 20.0 * 3.0, "{m}");
        assert_eq!(
            number(m, "/marks/round -> round/n"),
            2.0 * (20.0 * 3.0 - 1.0),
            "{m}"
        );
        assert!(
            number(m, "/elapsed_s/min") > 20.0 * 100e-6,
            "the delays are in it"
        );
    }
}

#[test]
fn a_procedure_that_writes_a_file() {
    let place = Place::new();
    place.write("data/keep", "");
    let text = "procedure log { initiator { ConnectRequest; StartMeasurement; repeat count { DataRequest(unit); } \
                RPCCall(1, 1); StopMeasurement; DisconnectRequest; } responder { AwaitConnectIndication; \
                repeat count { AwaitDataIndication(unit); WriteFile(10); } RPCAwaitCallInd(1); RPCReturn(1); \
                AwaitDisconnectIndication; } } 1 log 100*50 > file out;";
    let output = place.stackline(&["run", "--files", "data", "-e", text]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}{}",
        output.out,
        output.err
    );
    assert!(std::fs::metadata(place.path("data/out")).unwrap().len() >= 500);
}

#[test]
fn a_paced_stream_keeps_its_pace() {
    let measured = Place::new().measure(&format!(
        "1 stream 160*100 constant(1 ms) over {}",
        stacks::that_answer("live").join(", ")
    ));
    for m in &measured {
        assert!(number(m, "/elapsed_s/mean") >= 0.1, "{m}");
        assert_eq!(number(m, "/lateness_s/n"), 100.0, "{m}");
    }
}

#[test]
fn response_times_count_from_the_intended_moment() {
    let over = stacks::that_answer("live").join(", ");
    let measured = Place::new().measure(&format!(
        "1 rr 32*100 constant(1 ms) constant(5 ms) over {over}"
    ));
    for m in &measured {
        // Each call is 4 ms later than the one before: 100 of them wait 0.2 s on average.
        assert!(number(m, "/response_s/mean") > 0.15, "{m}");
        assert!(number(m, "/response_s/max") > 0.35, "{m}");
        assert!(number(m, "/response_s/min") >= 0.005, "{m}");
    }
}

#[test]
fn runs_go_on_until_the_interval_is_narrow() {
    let measured = Place::new().measure("3 until 50% at most 40 rr 32*500");
    let runs = number(&measured[0], "/runs");
    assert!((3.0..=40.0).contains(&runs), "{runs}");
    let measured = Place::new().measure("2 until 0.0001% at most 5 rr 32*100");
    assert_eq!(number(&measured[0], "/runs"), 5.0);
    assert!(
        measured[0]["flags"].to_string().len() > 2,
        "giving up is flagged"
    );
}

#[test]
fn an_amount_is_moved_to_the_byte() {
    let place = Place::new();
    let over = |world| stacks::with(stacks::which(world, |_| true), &[]).join(", ");
    let text = format!(
        "1 bulk_put 1000 2500 B over {}; 1 in simulated bulk_put 1000 2500 B over {}; 1 bulk_get uniform(64, 900) 2500 B;",
        over("live"),
        over("simulated")
    );
    let measured = place.measure(&text);
    assert!(measured.len() > 8);
    for measurement in measured {
        let moved = |side: &str| number(&measurement, &format!("/{side}/received_bytes"));
        assert_eq!(
            moved("initiator") + moved("responder"),
            2500.0,
            "{measurement}"
        );
    }
}

#[test]
fn a_whole_below_the_sum_of_its_parts_says_why() {
    let place = Place::new();
    let shown = |one: &str, other: &str| {
        let network = "network n { host a, b, c; switch s; link a - s 10 Mbit/s 1 ms; link b - s 10 Mbit/s 1 ms; link s - c 1 Gbit/s 1 ms; }";
        let text = format!(
            "{network} 1 parallel across n in simulated: from a to c bulk_put {one} | from b to c bulk_put {other};"
        );
        place
            .stackline(&["run", "--notes", "all", "-e", &text])
            .succeeds()
            .out
            .clone()
    };
    let why = "because their periods differ and the total is counted over the";
    let unlike = shown("1 MB * 2", "1 MB * 10");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&unlike).contains(why), "{unlike}");
    let alike = shown("1 MB * 5", "1 MB * 5");
    assert!(!words(&alike).contains(why), "{alike}");
}
