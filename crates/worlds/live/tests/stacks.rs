//! Each stack on loopback, in each application type that it carries: everything that one side sends is what the other gets.

mod common;

use common::{measurement, run};
use stackline_live::stacks::stack_tables;

/// Application types, with what the initiators and the responders receive of 20 units of 500 B, and calls.
const APPLICATIONS: [(&str, u64, u64, u64); 4] = [
    ("bulk_get 500*20", 20, 0, 0),
    ("bulk_put 500*20", 0, 20, 0),
    ("stream 500*20 constant(10 us)", 0, 20, 0),
    ("rr 500*20", 0, 0, 20),
];

/// The stacks that this kernel has.
fn stacks() -> Vec<&'static str> {
    let mptcp =
        std::fs::read_to_string("/proc/sys/net/mptcp/enabled").is_ok_and(|text| text.trim() == "1");
    let names = stack_tables().into_iter().map(|table| table.name);
    names.filter(|name| mptcp || *name != "mptcp").collect()
}

#[test]
fn what_one_side_sends_the_other_gets_over_every_stack() {
    let mut carried = 0;
    for stack in stacks() {
        for (application, got, put, calls) in APPLICATIONS {
            let text = format!("1 {application} over {stack};");
            if measurement(&text).is_none() {
                continue;
            }
            carried += 1;
            let [initiator, responder] = run(&text);
            let units = [&initiator, &responder].map(|side| side.record.received_units);
            assert_eq!(units, [got, put], "{text}");
            assert_eq!(initiator.calls.n(), calls, "{text}");
            assert!(!initiator.limited && !responder.limited, "{text}");
            assert!(initiator.elapsed_ns > 0, "{text}");
            assert!(
                !initiator.record.settings.is_empty(),
                "{text}: what was really used"
            );
            if calls == 0 {
                let bytes = initiator.record.received_bytes + responder.record.received_bytes;
                assert_eq!(bytes, 500 * 20, "{text}");
            }
        }
    }
    assert!(carried >= 24, "{carried} of them were carried out");
}

#[test]
fn connections_come_and_go_over_every_stack() {
    for stack in stacks() {
        let text = format!("1 connect_disconnect 0*10 over {stack};");
        if measurement(&text).is_some() {
            let [initiator, _] = run(&text);
            assert_eq!(initiator.connects.n(), 10, "{text}");
        }
    }
}

#[test]
fn pairs_are_summed_and_each_has_its_own_sizes() {
    for over in ["tcp", "tcp(threads = 2)", "unix", "udp"] {
        let text = format!("1 parallel over {over}: 5 rr uniform(10, 900)*30;");
        let [initiators, responders] = run(&text);
        assert_eq!(initiators.calls.n(), 150, "{over}");
        assert!(initiators.span_ns >= initiators.elapsed_ns, "{over}");
        assert!(responders.elapsed_ns > 0, "{over}");
        let text = format!("1 parallel over {over}: 5 bulk_put uniform(10, 900)*30;");
        let [initiators, responders] = run(&text);
        // Over udp loopback keeps what fits the receiver's buffer, which 30 of these do.
        assert_eq!(
            (initiators.record.sent_units, initiators.record.sent_bytes),
            (
                responders.record.received_units,
                responders.record.received_bytes
            ),
            "{over}"
        );
        assert_eq!(responders.record.received_units, 150, "{over}");
    }
}

#[test]
fn options_are_in_force_and_what_was_granted_is_said() {
    let settings = |over: &str| {
        let [initiator, _] = run(&format!("1 rr 32*5 over {over};"));
        initiator.record.settings
    };
    let [plain, nodelay] = ["tcp", "tcp(nodelay)"].map(settings);
    assert_ne!(plain["nodelay"], nodelay["nodelay"]);
    let reno = settings("tcp(congestion = reno)");
    assert_eq!(reno["congestion"], "reno");
}
