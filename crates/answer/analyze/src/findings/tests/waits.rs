//! Waits and what explains them: bytes that were sent again, or nothing but chance.

use super::calls::paced;
use super::*;

/// One wait after the other, every other of the first 1238 long, as far as there are so many; a retransmission 300 ms into
/// a wait where `again` has one, and so many more at any time of the same data.
pub(super) fn stalls(
    long: u64,
    again: impl Fn(u64) -> Option<String>,
    scattered: u64,
    data: &str,
) -> Given {
    bulk(1, 1000.0, 300_000_000, None).with(|given| {
        given.plan.networks.clear();
        given.plan.measurements[0].across = None;
        given.records[0].network = None;
        let mut at = 0;
        for n in 0..1238_u64 {
            let offset = n * 16_384;
            let takes = if n % 2 == 0 && n / 2 < long {
                700_000
            } else {
                200_000
            };
            given.event(at, "b", "APP_AWAIT", &format!("{n}; 0; {offset}; 16384"));
            given.event(
                at + takes,
                "b",
                "APP_RECEIVED",
                &format!("{n}; 0; {offset}; 16384"),
            );
            if let Some(data) = again(n) {
                given.event(at + takes / 3, "a0", "TCP_RETRANSMIT", &data);
            }
            at += takes;
        }
        let mut state = 7_u64;
        for _ in 0..scattered {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            given.event((state >> 20) % at, "a0", "TCP_RETRANSMIT", data);
        }
    })
}

/// The bytes of the very unit that is waited for.
pub(super) fn own(n: u64) -> Option<String> {
    n.is_multiple_of(2)
        .then(|| format!("; 0; {}; 1448; time-out; 1", n * 16_384 + 2896))
}

#[test]
fn a_retransmission_of_the_bytes_explains_a_wait_for_them() {
    let found = stalls(400, own, 0, "").found();
    assert_eq!(found[0].kind, "retransmission_stall");
    assert!(
        found[0].sentence.contains("400 waits"),
        "{}",
        found[0].sentence
    );
    assert!((found[0].share - 0.2).abs() < 0.01, "{}", found[0].share);
}

#[test]
fn retransmissions_without_bytes_count_beside_those_with_bytes() {
    let both = |n: u64| {
        if n == 0 {
            own(0)
        } else {
            n.is_multiple_of(2)
                .then(|| "; ; ; ; time-out; 1".to_owned())
        }
    };
    let found = stalls(150, both, 0, "").found();
    assert_eq!(found[0].kind, "retransmission_stall");
    assert!(found[0].share > 0.05, "{}", found[0].share);
}

#[test]
fn the_shortest_wait_is_the_usual_one_if_all_have_retransmissions() {
    let every = |n: u64| Some(format!("; 0; {}; 1448; time-out; 1", n * 16_384 + 2896));
    let found = stalls(400, every, 0, "").found();
    assert!(
        found[0].sentence.starts_with("400 waits"),
        "{}",
        found[0].sentence
    );
    assert!((found[0].share - 0.2).abs() < 0.01, "{}", found[0].share);
}

#[test]
fn later_events_do_not_explain_a_wait() {
    let given = |late_us: u64, error_ns: u64| {
        stalls(400, |_| None, 0, "").with(|given| {
            given.lifelines.clock_error_ns = error_ns;
            let ends: Vec<(u64, i64)> = (0..given.events.len())
                .filter(|row| given.events.keyword(*row) == "APP_RECEIVED")
                .filter_map(|row| Some((given.events.at_ns[row], given.events.number(row, 2)?)))
                .collect();
            for (at, offset) in ends {
                let data = format!("; 0; {offset}; 1448; time-out; 1");
                given.event(at / 1000 + late_us, "a0", "TCP_RETRANSMIT", &data);
            }
        })
    };
    assert_eq!(given(5000, 6 * MS).kinds(), ["retransmission_stall"]);
    assert_eq!(given(5000, MS).kinds(), NOTHING);
}

#[test]
fn a_call_that_is_given_up_was_waited_for() {
    // Every tenth call over datagrams is lost and given up after a second.
    let given = |lost: bool| {
        paced(&[(2, 90)]).with(|given| {
            (given.records[0].elapsed_ns, given.records[0].span_ns) = (20 * SECOND, 20 * SECOND);
            given.records[0].calls.sum = 20 * SECOND;
            given
                .port()
                .for_each(|port| _ = port.drops.insert("lost on the link".into(), 10));
            for n in 0..100_u64 {
                let (at, call) = (n * 200_000, format!("{n}; 0; ; 64"));
                given.event(at, "a0", "APP_CALL", &call);
                if n % 10 != 9 {
                    given.event(at + 2000, "a0", "APP_RESPONSE", &format!("{n}; 1; ; 64"));
                    continue;
                }
                let of = if lost { n } else { 1000 + n };
                given.event(
                    at + 1000,
                    "s",
                    "NET_DROP",
                    &format!("{of}; 0; ; 64; s>b; a>b; 0; 1; 1; 92; lost on the link"),
                );
                given.event(at + 190_000, "a0", "APP_LOST", &call);
            }
        })
    };
    assert_eq!(given(true).kinds(), ["link_loss"]);
    assert_eq!(given(false).kinds(), NOTHING);
}

#[test]
fn a_connection_whose_first_packet_is_lost_was_waited_for() {
    let given = |flow: u64| {
        bulk(2, 20.0, 0, None).with(|given| {
            given.plan.networks = vec![network(100.0, 1, 2)];
            given
                .records
                .iter_mut()
                .for_each(|record| record.initiator.transport = None);
            given
                .port()
                .for_each(|port| _ = port.drops.insert("lost on the link".into(), 10));
            for n in 0..19_u64 {
                let (at, takes) = (n * SECOND / 1000, if n % 2 == 0 { 2000 } else { 900_000 });
                given.event(at, "a0", "APP_CONNECT", &format!("{n}; 0"));
                if takes > 2000 {
                    let stream = stream(flow as u32, EventStreamDirection::There);
                    let drop = format!("; {stream}; 0; 0; s>b; a>b; 0; 1; 1; 52; lost on the link");
                    given.event(at + 1000, "s", "NET_DROP", &drop);
                }
                given.event(at + takes, "a0", "APP_CONNECTED", &format!("{n}; 0"));
            }
        })
    };
    assert_eq!(given(0).kinds(), ["link_loss"]);
    assert_eq!(given(1).kinds(), NOTHING);
}

/// In a trial 433 of 619 stalls of a disk had a retransmission on their connection within them, all by chance.
#[test]
fn coincidence_is_not_cause() {
    let (none, many) = (|_| None, 1000);
    // Other bytes were sent again, as often as lets seven of ten long waits hold one.
    assert_eq!(
        stalls(619, none, many, "; 0; 900000000; 1448; time-out; 1").kinds(),
        NOTHING
    );
    // The same where it is not known which bytes.
    assert_eq!(
        stalls(619, none, many, "; ; ; ; time-out; 1").kinds(),
        NOTHING
    );
    // They are blamed when they are there in long waits alone, less surely than by their bytes.
    let within =
        |n: u64| (n.is_multiple_of(2) && n / 2 < 140).then(|| "; ; ; ; time-out; 1".to_owned());
    let found = stalls(150, within, 0, "").found();
    assert_eq!(found[0].kind, "retransmission_stall");
    assert!(found[0].confidence < 0.95);
}

/// The trap is one: as many long waits hold a retransmission as in the trial.
#[test]
fn chance_gives_as_many_coincidences_as_the_trial() {
    let given = stalls(619, |_| None, 1000, "; ; ; ; time-out; 1");
    let table = &given.events;
    let times = |keyword: &str| -> Vec<u64> {
        (0..table.len())
            .filter(|row| table.keyword(*row) == keyword)
            .map(|row| table.at_ns[row])
            .collect()
    };
    let mut again = times("TCP_RETRANSMIT");
    again.sort_unstable();
    let waits = times("APP_AWAIT")
        .into_iter()
        .zip(times("APP_RECEIVED"))
        .filter(|(from, to)| to - from > 600 * MS);
    let held = waits
        .filter(|(from, to)| {
            again
                .get(again.partition_point(|at| at < from))
                .is_some_and(|at| at <= to)
        })
        .count();
    assert!((400..470).contains(&held), "{held} of 619");
}
