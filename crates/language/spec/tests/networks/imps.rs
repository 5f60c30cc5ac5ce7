//! Networks of IMPs, and what they cannot have.

use crate::common::{checked, mistake, plan, shown};
use stackline_core::network::{ImpMachine, ImpSettings};

/// A network of two IMPs with a host each, and more in it.
fn imps(more: &str) -> String {
    format!(
        "network n {{ imp A 516 {{ reassembly 10; routing september; reservation off; }} imp B, C tip; host x, y; \
         link x - A 100 kbit/s 0 us; link y - B 100 kbit/s 0 us; link A - B 50 kbit/s 1 ms; link B - C 50 kbit/s 1 ms; {more} }}"
    )
}

#[test]
fn imps_are_what_is_said_of_them() {
    let network = plan(&format!("{} 1 rr 1*1;", imps(""))).networks.remove(0);
    let said = network
        .switches
        .iter()
        .map(|switch| switch.imp.clone().unwrap())
        .collect::<Vec<_>>();
    assert!(network.has_imps());
    assert_eq!(
        said[0],
        ImpSettings {
            reassembly: Some(10),
            september: true,
            unreserved: true,
            ..ImpSettings::default()
        }
    );
    assert_eq!([said[1].machine, said[2].machine], [ImpMachine::Tip; 2]);
}

#[test]
fn what_no_network_of_imps_has_is_refused_with_a_hint() {
    for (more, message) in [
        (
            "switch s; link s - A 50 kbit/s 0 us;",
            "`s` is a switch in a network of IMPs",
        ),
        (
            "link x - B 100 kbit/s 0 us;",
            "`x` must be connected to one IMP, by one link",
        ),
        (
            "link A - C 50 kbit/s 1 ms queue 10 packets;",
            "a line between IMPs cannot have a queue of its own: its channels serve as the queue",
        ),
        (
            "link A - C unlimited 1 ms;",
            "a line between IMPs cannot have a rate that changes or is unlimited",
        ),
        (
            "link A -> C 50 kbit/s 1 ms;",
            "a line between IMPs cannot have only one direction",
        ),
        ("imp D 517;", "unexpected `517`"),
        ("imp D 516 { room 3; }", "unexpected `room`"),
    ] {
        let text = imps(more);
        let said = shown(&text, &checked(&text).diagnostics);
        let line = said
            .lines()
            .find(|line| line.starts_with(&format!("error: {message} [")));
        assert!(
            line.is_some_and(|line| !line.ends_with("/ -") || message.starts_with("unexpected")),
            "{more}: {said}"
        );
    }
    let said = mistake(&format!(
        "{} 1 from x to y rr 32*10 across n in simulated;",
        imps("")
    ));
    assert!(
        said.contains("tcp cannot cross the IMPs of `n` [") && said.contains("use `over ncp`"),
        "{said}"
    );
    let said = mistake(&format!(
        "{} 1 from x to y rr 32*10 across n in emulated;",
        imps("")
    ));
    assert!(
        said.contains("consists of IMPs, which the emulated world does not support")
            && said.contains("simulated"),
        "{said}"
    );
}
