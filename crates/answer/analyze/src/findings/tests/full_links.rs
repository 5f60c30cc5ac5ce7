//! A link limits where it is full: of equal ones the first, at a rate that changes by what it was.

use super::*;

#[test]
fn only_a_full_link_limits() {
    assert_eq!(used(0.95).kinds(), ["network_limited"]);
    assert_eq!(used(0.8).kinds(), NOTHING);
}

#[test]
fn of_equally_full_links_the_first_is_named_and_all_are_to_be_faster() {
    let equal = |mbit_s: f64| {
        used(0.95).with(|given| {
            let first = given.plan.networks[0]
                .links
                .iter_mut()
                .find(|link| link.ends.0 == "a0")
                .unwrap();
            first.rate = LinkRate::Constant(mbit_s * 1e6);
            let ports = &mut given.records[0].network.as_mut().unwrap().ports;
            ports.push(PortRecord {
                name: "a0>s".into(),
                ..ports[0].clone()
            });
        })
    };
    let found = equal(100.0).found().remove(0);
    assert!(
        found.sentence.starts_with("the link a0>s is full")
            && found.sentence.ends_with("; equally full: s>b"),
        "{found:?}"
    );
    assert!(
        found.tries[0]
            .what
            .starts_with("faster links a0>s, s>b (all of them)"),
        "{found:?}"
    );
    let found = equal(120.0).found().remove(0);
    assert!(
        found.sentence.starts_with("the link s>b is full")
            && !found.sentence.contains("equally full"),
        "{found:?}"
    );
}

#[test]
fn a_rate_that_changes_is_judged_by_what_it_was_during_the_run() {
    // 100 Mbit/s for 9 s and 10 Mbit/s from then on: 91 Mbit/s over 10 s.
    let steps = vec![(Duration::ZERO, 1e8), (Duration::from_seconds(9.0), 1e7)];
    let varying = |share: f64| {
        used(share).with(|given| {
            let link = given.plan.networks[0]
                .links
                .iter_mut()
                .find(|link| link.ends.1 == "b")
                .unwrap();
            link.rate = LinkRate::Schedule(RateSchedule {
                steps: steps.clone(),
                period: None,
            });
        })
    };
    assert!(
        !varying(0.5).kinds().contains(&"network_limited"),
        "{:?}",
        varying(0.5).kinds()
    );
    let found = varying(0.9).found().remove(0);
    assert!(
        found
            .sentence
            .contains("99 % of 91.0 Mbit/s on average is used"),
        "{found:?}"
    );
}
