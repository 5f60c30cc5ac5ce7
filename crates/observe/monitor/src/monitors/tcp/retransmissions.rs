//! Retransmissions that wait until the number of their segments is known.
//!
//! One trace event may cover several segments of a packet that offload keeps together. The connection's own count of retransmissions
//! shows how many, if it grew by the number of events, or if there is only one event; otherwise the number is left out. A connection
//! sends on while it is polled, so events of that moment wait for the next poll.

use crate::address_pair::AddressPair;
use stackline_events::catalogue::rows::TcpRetransmit;
use stackline_events::{EventLog, EventValue};
use std::collections::BTreeSet;

/// The most retransmissions of one connection that wait.
const MOST_WAITING: usize = 1_000;

struct Retransmission {
    at_ns: u64,
    pair: AddressPair,
    cause: String,
    segments: Option<u64>,
    /// Whether nothing more can be learned about it.
    settled: bool,
}

/// The retransmissions that are not recorded yet, in the order of their events.
#[derive(Default)]
pub(super) struct Retransmissions(Vec<Retransmission>);

impl Retransmissions {
    pub(super) fn push(&mut self, at_ns: u64, pair: AddressPair, cause: String) {
        self.0.push(Retransmission {
            at_ns,
            pair,
            cause,
            segments: None,
            settled: false,
        });
    }

    /// Assigns the numbers of segments to the events of a connection that was polled at a moment and whose count had grown by
    /// `growth`. Returns false if they have to wait for the next poll, as it is unknown whether events after that moment are in the
    /// count.
    pub(super) fn settle(&mut self, pair: &AddressPair, polled_ns: u64, growth: u64) -> bool {
        let mut open: Vec<_> = self
            .0
            .iter_mut()
            .filter(|one| one.pair == *pair && !one.settled)
            .collect();
        let before = open.iter().filter(|one| one.at_ns <= polled_ns).count();
        let all = open.len();
        let segments = match before {
            0 => return all == 0,
            _ if before as u64 == growth => Some(1),
            // Some of the later events may be in the count.
            _ if all > before && growth <= all as u64 && all < MOST_WAITING => return false,
            1 if all == 1 => Some(growth).filter(|growth| *growth > 0),
            _ => None,
        };
        for one in &mut open[..before] {
            one.segments = segments;
            one.settled = true;
        }
        true
    }

    /// Settles the events of connections that were closed at a moment, without numbers of segments.
    pub(super) fn settle_closed(&mut self, open: &BTreeSet<&AddressPair>, polled_ns: u64) {
        for one in self.0.iter_mut().filter(|one| one.at_ns <= polled_ns) {
            one.settled |= !open.contains(&one.pair);
        }
    }

    /// Records the settled events, or all.
    pub(super) fn record(&mut self, all: bool, log: &mut EventLog) {
        let (now, later) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|one| all || one.settled);
        self.0 = later;
        for Retransmission {
            at_ns,
            pair,
            cause,
            segments,
            ..
        } in now
        {
            let (local, remote) = (pair.local.to_string(), pair.remote.to_string());
            TcpRetransmit {
                cause: EventValue::Text(&cause),
                segments: segments.into(),
                local: EventValue::Text(&local),
                remote: EventValue::Text(&remote),
                ..TcpRetransmit::default()
            }
            .write(log, at_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::sample::testing::lines;
    use super::*;

    fn settled(moments: &[u64], growth: u64) -> (bool, Vec<Option<u64>>) {
        let watched = AddressPair::parse("127.0.0.1:5001", "127.0.0.1:40000");
        let other = AddressPair::parse("127.0.0.1:5001", "127.0.0.1:40001");
        let mut waiting = Retransmissions::default();
        moments
            .iter()
            .for_each(|at_ns| waiting.push(*at_ns, watched, "fast".into()));
        waiting.push(1, other, "fast".into());
        let done = waiting.settle(&watched, 10, growth);
        assert!(!waiting.0.pop().unwrap().settled, "another connection's");
        assert!(
            waiting
                .0
                .iter()
                .all(|one| one.settled == (done && one.at_ns <= 10))
        );
        (done, waiting.0.iter().map(|one| one.segments).collect())
    }

    #[test]
    fn segments_are_counted_where_the_connections_count_allows_it() {
        assert_eq!(settled(&[1, 2], 2), (true, vec![Some(1), Some(1)]));
        assert_eq!(
            settled(&[1], 4),
            (true, vec![Some(4)]),
            "one packet that offload kept together"
        );
        assert_eq!(
            settled(&[1, 2], 5),
            (true, vec![None, None]),
            "five segments in two packets"
        );
        assert_eq!(
            settled(&[1, 11], 1),
            (true, vec![Some(1), None]),
            "the second came later"
        );
        assert_eq!(
            settled(&[1, 11], 2),
            (false, vec![None, None]),
            "two of the first, or one of each"
        );
        assert_eq!(settled(&[1, 11], 3), (true, vec![None, None]));
        assert_eq!(settled(&[11], 1), (false, vec![None]));
        assert_eq!(settled(&[], 3), (true, vec![]));
    }

    #[test]
    fn closing_a_connection_settles_its_retransmissions() {
        let pair = AddressPair::parse("127.0.0.1:5001", "127.0.0.1:40000");
        let (mut waiting, mut log) = (Retransmissions::default(), EventLog::default());
        waiting.push(1, pair, "fast".into());
        waiting.settle_closed(&BTreeSet::from([&pair]), 10);
        waiting.record(false, &mut log);
        assert!(lines(&log).is_empty(), "it is open");
        waiting.settle_closed(&BTreeSet::new(), 10);
        waiting.record(false, &mut log);
        assert_eq!(
            lines(&log),
            ["TCP_RETRANSMIT ;;;;fast;;127.0.0.1:5001;127.0.0.1:40000"]
        );
    }
}
