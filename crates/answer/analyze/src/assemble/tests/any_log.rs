//! Events in any order, and logs of any content.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A line without rows, which depend on the order of events.
fn plain(mut made: Lifelines) -> Lifelines {
    made.passages
        .iter_mut()
        .chain(&mut made.marks)
        .for_each(|passage| passage.row = 0);
    made
}

fn shuffled(table: &EventTable, order: &[usize]) -> EventTable {
    let mut other = EventTable::default();
    order
        .iter()
        .for_each(|row| other.push_event(&table.event(*row)));
    other
}

fn orders(length: usize) -> impl Strategy<Value = Vec<usize>> {
    Just((0..length).collect::<Vec<usize>>()).prop_shuffle()
}

proptest! {
    #[test]
    fn the_order_of_events_changes_nothing(magic in orders(table(MAGIC).len()), net in orders(network().len())) {
        for (log, order) in [(table(MAGIC), magic), (network(), net)] {
            let made = |table: &EventTable| plain(lifelines(table, None, &LifelineOptions::default()));
            prop_assert_eq!(made(&shuffled(&log, &order)), made(&log));
        }
    }

    #[test]
    fn random_logs_are_assembled(events in proptest::collection::vec(hostile(), 0..60)) {
        let mut table = EventTable::default();
        for (keyword, host, at_ns, data) in &events {
            let data = data.iter().map(ToString::to_string).collect();
            let (keyword, host) = (keyword.to_string(), host.to_string());
            table.push_event(&stackline_events::TextEvent { keyword, host, at_ns: *at_ns, data });
        }
        let made = lifelines(&table, None, &LifelineOptions::default());
        // Every passage belongs to one line, and what lies between them adds up to the whole.
        let mut owners = vec![0; made.passages.len()];
        let mut sums = BTreeMap::new();
        for (number, line) in made.lines.iter().enumerate() {
            (line.first..line.first + line.count).for_each(|passage| owners[passage as usize] += 1);
            let passages = made.passages_of(line);
            let sum: i64 = passages.windows(2).map(|pair| pair[1].at_ns as i64 - pair[0].at_ns as i64).sum();
            prop_assert_eq!(sum, crate::segments::lifeline_duration_ns(&made, line));
            sums.insert(number, i128::from(sum));
        }
        prop_assert!(owners.iter().all(|owners| *owners == 1));
        let segments = crate::segments::segments(&made, None, false);
        let total: f64 = segments.iter().map(|segment| segment.ns.mean_ns * segment.ns.n as f64).sum();
        prop_assert!((total - sums.values().sum::<i128>() as f64).abs() < 1.0);
    }
}

type Hostile = (&'static str, &'static str, u64, Vec<i64>);

fn hostile() -> impl Strategy<Value = Hostile> {
    let keywords = [
        "APP_SEND",
        "APP_RECEIVED",
        "APP_CALL",
        "APP_CONNECT",
        "NET_ENQUEUE",
        "TCP_RETRANSMIT",
        "SOCK_SENT",
        "READ",
        "WRITE",
        "X_FLUSH",
    ];
    let number = prop_oneof![0_i64..4, Just(i64::MIN), Just(i64::MAX)];
    (
        proptest::sample::select(keywords.to_vec()),
        proptest::sample::select(vec!["a", "b", ""]),
        0_u64..50,
        proptest::collection::vec(number, 0..6),
    )
}
