//! Servers whose limits are known.

use super::*;
use crate::assemble::{LifelineOptions, lifelines};
use stackline_events::{EventTable, EventValue};

const MS: u64 = 1_000_000;

/// Units that come to a server every so many ms, are served by `workers` at once in `serve` ms each and then sent by one, each in
/// `send` ms; those that wait for a worker after `patience` ms are given up.
fn served(
    units: u64,
    every: u64,
    (workers, serve): (usize, u64),
    send: u64,
    patience: u64,
) -> Lifelines {
    let mut table = EventTable::default();
    let (mut free, mut link) = (vec![0_u64; workers], 0_u64);
    for unit in 0..units {
        let mut event = |keyword: &str, host: &str, ms: u64, order: u64| {
            table.push(
                keyword,
                host,
                ms * MS + order,
                &[EventValue::Number(unit as i64)],
            );
        };
        let came = unit * every;
        event("asked", "c", came, 0);
        event("came", "s", came + 1, 1);
        let worker = (0..workers).min_by_key(|at| free[*at]).unwrap();
        let begun = free[worker].max(came + 1);
        if begun > came + 1 + patience {
            event("x_FLUSH", "s", came + 1 + patience, 2);
            continue;
        }
        free[worker] = begun + serve;
        event("begun", "s", begun, 2);
        event("done", "s", begun + serve, 3);
        let sends = link.max(begun + serve);
        link = sends + send;
        event("sends", "s", sends, 4);
        event("sent", "s", sends + send, 5);
        event("got", "c", sends + send + 1, 6);
    }
    lifelines(&table, None, &LifelineOptions::default())
}

/// The stretch that limits most, by its keywords, and the share of the time that it does.
fn limit(lines: &Lifelines) -> (String, f64) {
    let found = profiles(lines);
    let server = found.iter().find(|profile| profile.host == "s").unwrap();
    let most = server
        .stretches
        .iter()
        .max_by_key(|stretch| stretch.limits_ns)
        .unwrap();
    let name = |point: u32| lines.points[point as usize].keyword.clone();
    (
        format!("{} to {}", name(most.from), name(most.to)),
        server.share(most.limits_ns),
    )
}

#[test]
fn what_the_furthest_waiting_room_waits_for_limits() {
    // Two workers of 10 ms serve one in 5 ms, and one comes every 3.
    let (which, share) = limit(&served(300, 3, (2, 10), 1, 10_000));
    assert_eq!(which, "begun to done");
    assert!(share > 0.95, "{share}");
    // One that sends takes 4 ms of each; two workers of 6 ms are faster.
    let (which, share) = limit(&served(300, 3, (2, 6), 4, 10_000));
    assert_eq!(which, "sends to sent");
    assert!(share > 0.95, "{share}");
}

#[test]
fn steps_of_one_server_are_waited_for_together() {
    let mut table = EventTable::default();
    let mut free = 0;
    for unit in 0..300_u64 {
        let came = 3 * unit;
        let begins = free.max(came + 1);
        free = begins + 6;
        let path = [
            ("asked", "c", came),
            ("came", "s", came + 1),
            ("read", "s", begins),
            ("kept", "s", begins + 1),
        ];
        for (order, (keyword, host, ms)) in path
            .into_iter()
            .chain([("drawn", "s", free), ("got", "c", free + 1)])
            .enumerate()
        {
            table.push(
                keyword,
                host,
                ms * MS + order as u64,
                &[EventValue::Number(unit as i64)],
            );
        }
    }
    let (which, share) = limit(&lifelines(&table, None, &LifelineOptions::default()));
    assert_eq!(which, "kept to drawn");
    assert!(share > 0.95, "{share}");
}

#[test]
fn what_is_given_up_waited_until_then() {
    let lines = served(300, 1, (2, 10), 1, 20);
    let (which, share) = limit(&lines);
    assert_eq!(which, "begun to done");
    assert!(share > 0.9, "{share}");
    let found = profiles(&lines);
    assert!(
        found[0].flushed > 200 && found[0].stretches[0].flushed == found[0].flushed,
        "{found:?}"
    );
}

#[test]
fn a_server_that_keeps_up_is_idle_and_limits_nothing() {
    let lines = served(100, 20, (2, 6), 1, 10_000);
    let found = profiles(&lines);
    let server = &found[0];
    let idle = server.share(server.idle_ns);
    // 7 ms of each 20.
    assert!((0.6..0.7).contains(&idle), "{idle}");
    assert!(limit(&lines).1 < 0.01);
    let shares: Vec<f64> = server
        .stretches
        .iter()
        .map(|stretch| server.share(stretch.busy_ns))
        .collect();
    assert!(
        (shares[1] - 0.3).abs() < 0.02 && (shares[3] - 0.05).abs() < 0.01,
        "{shares:?}"
    );
    assert_eq!(
        server
            .stretches
            .iter()
            .map(|stretch| stretch.leaves)
            .collect::<Vec<_>>(),
        [false, false, false, true]
    );
}

#[test]
fn times_of_all_units_add_up() {
    let lines = served(200, 3, (2, 10), 1, 10_000);
    let server = &profiles(&lines)[0];
    let inside: u64 = server.stretches.iter().map(|stretch| stretch.unit_ns).sum();
    let whole: u64 = lines
        .lines
        .iter()
        .map(|line| lasted(lines.passages_of(line)))
        .sum();
    // A millisecond there, and one back.
    let apart = whole - inside;
    assert!(apart.abs_diff(200 * 2 * MS) < 200 * 10, "{apart}");
}
