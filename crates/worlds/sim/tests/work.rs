//! What programs take of simulated processors, in every application type and over every kind of stack.

mod common;
use common::{close, every_application_type, response, run, throughput};

/// Operations of 1 ms at the one end and of 4 ms at the other.
fn hosts(a: &str, b: &str) -> String {
    format!("network wan {{ host a {{ {a} }} host b {{ {b} }} link a - b unlimited 10 ms; }}\n")
}

#[test]
fn a_call_takes_what_both_ends_take() {
    let network = hosts(
        "work 1 ms per operation",
        "work 4 ms per operation, 10 us per byte, 1 ms per message; cpu 2",
    );
    for stack in ["tcp", "ikp"] {
        let outcome = run(&format!(
            "{network}1 from a to b rr 100, 200*50 over {stack} across wan;"
        ));
        // At half the cost: the message, the operation on 100 bytes, the answer's 200 bytes, its message.
        close(
            response(&outcome.records[0]),
            0.020 + 0.001 + (0.001 + 0.005 + 0.002 + 0.001) / 2.0,
            1e-6,
        );
    }
}

#[test]
fn the_slower_end_of_a_stream_limits_it() {
    let network = hosts("work 1 ms per operation", "work 4 ms per operation");
    let outcome = run(&format!(
        "{network}1 from a to b bulk_put 1000*500 over tcp across wan;"
    ));
    close(throughput(&outcome.records[0]), 8000.0 / 0.004, 0.02);
}

#[test]
fn programs_of_a_host_share_its_processor_and_packets_go_first() {
    let network = hosts("", "work 2 ms per operation");
    let alone = run(&format!("{network}1 from a to b rr 1*100 across wan;"));
    let outcome = run(&format!("{network}1 from a to b 20 rr 1*100 across wan;"));
    // Twenty pairs want 40 ms in a round of 22.
    close(response(&alone.records[0]), 0.022, 1e-6);
    close(response(&outcome.records[0]), 0.040, 0.03);
    let copying = hosts("", "work 2 ms per operation; copy 1 ms per packet");
    let outcome = run(&format!("{copying}1 from a to b 20 rr 1*100 across wan;"));
    // Each call has two packets at least, and acknowledgements are packets too.
    assert!(
        response(&outcome.records[0]) > 0.078,
        "{}",
        response(&outcome.records[0])
    );
}

#[test]
fn an_interface_that_copies_by_itself_leaves_the_processor_to_programs() {
    // A unit takes 3 ms and its acknowledgements, or 2 ms while the next one is copied.
    let network = |copies: &str| {
        hosts(
            "",
            &format!("work 2 ms per operation; copy 1 ms per packet; {copies}"),
        )
    };
    let put = |copies: &str| {
        run(&format!(
            "{}1 from a to b bulk_put 1000*500 over tcp across wan;",
            network(copies)
        ))
    };
    let (host, interface) = (put(""), put("interface_copies"));
    assert!(throughput(&interface.records[0]) > 1.4 * throughput(&host.records[0]));
    close(throughput(&interface.records[0]), 8000.0 / 0.002, 0.05);
    // A slower processor of the host does not slow it down.
    let alone = |speed: &str| {
        let network = hosts(
            "",
            &format!("copy 1 ms per packet; interface_copies; {speed}"),
        );
        response(&run(&format!("{network}1 from a to b rr 1*100 across wan;")).records[0])
    };
    assert_eq!(alone(""), alone("cpu 0.5;"));
}

#[test]
fn what_has_priority_goes_first() {
    let of = |first: &str| {
        let network = hosts(
            "",
            &format!("work 5 ms per operation, 1 ms per message; priority {first}"),
        );
        let outcome = run(&format!(
            "{network}1 parallel across wan: from a to b 20 rr 1*100 | from a to b 20 bulk_put 1*300;"
        ));
        response(&outcome.records[0])
    };
    assert!(
        of("messages") != of("operations"),
        "{} {}",
        of("messages"),
        of("operations")
    );
}

#[test]
fn who_looks_now_and_then_answers_then() {
    let network = hosts("", "polls 200 ms");
    let outcome = run(&format!("{network}1 from a to b rr 1*100 across wan;"));
    close(response(&outcome.records[0]), 0.200, 0.03);
}

#[test]
fn a_reader_that_is_too_slow_loses_datagrams() {
    let network = hosts("", "work 2 ms per operation");
    let outcome = run(&format!(
        "{network}1 from a to b bulk_put 10000*40 over udp across wan;"
    ));
    let arrived = outcome.records[0].data_bytes();
    assert!((100_000..400_000).contains(&arrived), "{arrived}");
}

#[test]
fn every_application_type_runs_over_every_stack_with_it() {
    let network = hosts(
        "work 10 us per operation, 1 ns per byte, 5 us per message",
        "work 30 us per operation; polls 1 ms",
    );
    every_application_type(&[&network], &["tcp", "blast", "ikp", "quic"]);
}
