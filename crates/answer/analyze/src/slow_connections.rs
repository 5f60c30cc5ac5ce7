//! The TCP connections of a machine while it is watched, from `TCP_INFO` and `CONNECTION_OWNER` events, with the slowest first.
//!
//! What is slow comes first by retransmissions, then by round-trip time, then by bytes in the send queue. A retransmission counts half
//! after [`HALF_LIFE_S`], so that an order can be read; a connection without a new sample for some time is left out.

use stackline_events::catalogue::find_value;
use stackline_events::{EventRecord, EventValue};
use std::collections::BTreeMap;

/// The time after which a retransmission counts half, s.
pub const HALF_LIFE_S: f64 = 10.0;
/// The most connections whose process is remembered; beyond that, the older half is forgotten.
const MOST_OWNERS: usize = 8_192;

/// The two ends of a connection, as the events name them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionEnds {
    /// The address and port of this machine.
    pub local: String,
    /// The address and port of the other end.
    pub remote: String,
}

/// The process of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionProcess {
    /// The program's name; `None` if unknown.
    pub program: Option<String>,
    /// The process's number; `None` if unknown.
    pub pid: Option<i64>,
}

/// A connection with its latest sample.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledConnection {
    /// Its ends.
    pub ends: ConnectionEnds,
    /// Its process.
    pub process: ConnectionProcess,
    /// The time of the sample, ns.
    pub at_ns: u64,
    /// The interval of the sample, ns.
    pub interval_ns: u64,
    /// Segments retransmitted in the interval.
    pub retransmits: u64,
    /// Segments retransmitted lately: each counts half after [`HALF_LIFE_S`].
    pub recent_retransmits: f64,
    /// The smoothed round-trip time, ns.
    pub rtt_ns: u64,
    /// Bytes written and not acknowledged: unsent or in flight.
    pub send_queue_bytes: u64,
    /// Bytes received that the program has not read.
    pub unread_bytes: u64,
    /// Bytes acknowledged in the interval.
    pub acked_bytes: u64,
}

/// The connections of a watch.
#[derive(Clone, Debug)]
pub struct SlowConnectionTable {
    /// For how long a connection stays without a new sample, ns.
    stays_ns: u64,
    newest_ns: u64,
    /// When silent connections were removed, ns.
    pruned_ns: u64,
    connections: BTreeMap<ConnectionEnds, SampledConnection>,
    /// The processes of connections, with the time they were found. They outlive samples: a connection that was idle is sampled again.
    owners: BTreeMap<ConnectionEnds, (u64, ConnectionProcess)>,
}

impl SlowConnectionTable {
    /// An empty table, in which a connection without a new sample stays for `stays_ns`.
    #[must_use]
    pub const fn new(stays_ns: u64) -> Self {
        Self {
            stays_ns,
            newest_ns: 0,
            pruned_ns: 0,
            connections: BTreeMap::new(),
            owners: BTreeMap::new(),
        }
    }

    /// Adds an event. Returns the connection that it is a sample of.
    pub fn add(&mut self, record: &EventRecord<'_>) -> Option<&SampledConnection> {
        self.newest_ns = self.newest_ns.max(record.at_ns);
        match record.keyword {
            "CONNECTION_OWNER" => {
                self.add_owner(record);
                None
            }
            "TCP_INFO" => self.add_sample(record),
            _ => None,
        }
    }

    fn add_owner(&mut self, record: &EventRecord<'_>) {
        let Some(ends) = ends_of(record) else { return };
        let process = ConnectionProcess {
            program: match find_value(record, "program") {
                EventValue::Absent => None,
                // A program's name may be a number.
                name => Some(name.to_string()),
            },
            pid: find_value(record, "pid").number(),
        };
        if let Some(connection) = self.connections.get_mut(&ends) {
            connection.process.clone_from(&process);
        }
        if self.owners.len() >= MOST_OWNERS {
            let mut times: Vec<u64> = self.owners.values().map(|(at_ns, _)| *at_ns).collect();
            times.sort_unstable();
            let middle = times[times.len() / 2];
            self.owners.retain(|_, (at_ns, _)| *at_ns > middle);
        }
        self.owners.insert(ends, (record.at_ns, process));
    }

    fn add_sample(&mut self, record: &EventRecord<'_>) -> Option<&SampledConnection> {
        let ends = ends_of(record)?;
        let number = |name: &str| {
            let value = find_value(record, name).number();
            value
                .and_then(|value| u64::try_from(value).ok())
                .unwrap_or(0)
        };
        let (retransmits, at_ns) = (number("retransmits"), record.at_ns);
        let before = self.connections.get(&ends).map_or(0.0, |connection| {
            connection.recent_retransmits * decay(connection.at_ns, at_ns)
        });
        let process = self
            .owners
            .get(&ends)
            .map(|(_, process)| process.clone())
            .unwrap_or_default();
        let sample = SampledConnection {
            ends: ends.clone(),
            process,
            at_ns,
            interval_ns: number("interval_ns"),
            retransmits,
            recent_retransmits: before + count(retransmits),
            rtt_ns: number("rtt_ns"),
            send_queue_bytes: number("unsent_bytes").saturating_add(number("in_flight_bytes")),
            unread_bytes: number("receive_queue_bytes"),
            acked_bytes: number("acked_bytes"),
        };
        // All of them are looked at a few times in the time that one stays, which is enough to bound their number.
        let (newest_ns, stays_ns) = (self.newest_ns, self.stays_ns);
        if newest_ns.saturating_sub(self.pruned_ns) > stays_ns / 4 {
            self.pruned_ns = newest_ns;
            self.connections
                .retain(|_, connection| newest_ns.saturating_sub(connection.at_ns) <= stays_ns);
        }
        self.connections.insert(ends.clone(), sample);
        self.connections.get(&ends)
    }

    /// The connections with a sample lately, the slowest first.
    #[must_use]
    pub fn slowest_first(&self) -> Vec<&SampledConnection> {
        let mut sampled: Vec<&SampledConnection> = self
            .connections
            .values()
            .filter(|connection| self.newest_ns.saturating_sub(connection.at_ns) <= self.stays_ns)
            .collect();
        sampled.sort_by(|one, other| {
            let retransmits = self
                .retransmits_lately(other)
                .total_cmp(&self.retransmits_lately(one));
            let rest =
                |connection: &SampledConnection| (connection.rtt_ns, connection.send_queue_bytes);
            retransmits.then_with(|| rest(other).cmp(&rest(one)))
        });
        sampled
    }

    /// How many segments a connection retransmitted lately, as of the newest event, in whole ones.
    #[must_use]
    pub fn retransmits_lately(&self, connection: &SampledConnection) -> f64 {
        (connection.recent_retransmits * decay(connection.at_ns, self.newest_ns)).round()
    }
}

fn ends_of(record: &EventRecord<'_>) -> Option<ConnectionEnds> {
    let text = |name| find_value(record, name).text().map(str::to_owned);
    Some(ConnectionEnds {
        local: text("local")?,
        remote: text("remote")?,
    })
}

/// What is left of a count after a time.
fn decay(from_ns: u64, to_ns: u64) -> f64 {
    let elapsed_s = count(to_ns.saturating_sub(from_ns)) / 1e9;
    0.5_f64.powf(elapsed_s / HALF_LIFE_S)
}

#[expect(clippy::cast_precision_loss, reason = "an order and three digits")]
const fn count(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_events::EventLog;
    use stackline_events::catalogue::rows::{ConnectionOwner, TcpInfo};

    const SECOND: u64 = 1_000_000_000;

    fn table(log: &EventLog) -> SlowConnectionTable {
        let mut table = SlowConnectionTable::new(20 * SECOND);
        for record in log.records() {
            table.add(&record);
        }
        table
    }

    fn sample(log: &mut EventLog, remote: &str, at_s: u64, figures: [u64; 3]) {
        let [retransmits, rtt_ns, unsent_bytes] = figures;
        TcpInfo {
            interval_ns: SECOND.into(),
            local: EventValue::Text("10.0.0.1:40000"),
            remote: EventValue::Text(remote),
            retransmits: retransmits.into(),
            rtt_ns: rtt_ns.into(),
            unsent_bytes: unsent_bytes.into(),
            in_flight_bytes: 5_u64.into(),
            ..TcpInfo::default()
        }
        .write(log, at_s * SECOND);
    }

    fn order(table: &SlowConnectionTable) -> Vec<&str> {
        table
            .slowest_first()
            .iter()
            .map(|connection| connection.ends.remote.as_str())
            .collect()
    }

    #[test]
    fn retransmissions_come_before_round_trips_and_these_before_queues() {
        let mut log = EventLog::default();
        sample(&mut log, "idle:1", 1, [0, 10, 0]);
        sample(&mut log, "queue:1", 1, [0, 10, 9_000]);
        sample(&mut log, "far:1", 1, [0, 90, 0]);
        sample(&mut log, "lossy:1", 1, [2, 10, 0]);
        let full = table(&log);
        assert_eq!(order(&full), ["lossy:1", "far:1", "queue:1", "idle:1"]);
        assert_eq!(full.slowest_first()[2].send_queue_bytes, 9_005);
    }

    #[test]
    fn retransmissions_are_forgotten_by_halves_and_silent_connections_left_out() {
        let mut log = EventLog::default();
        sample(&mut log, "lossy:1", 1, [4, 10, 0]);
        sample(&mut log, "far:1", 1, [0, 90, 0]);
        sample(&mut log, "lossy:1", 11, [0, 10, 0]);
        let after = table(&log);
        assert_eq!(order(&after), ["lossy:1", "far:1"]);
        assert_eq!(after.retransmits_lately(after.slowest_first()[0]), 2.0);
        sample(&mut log, "other:1", 22, [0, 1, 0]);
        assert_eq!(
            order(&table(&log)),
            ["lossy:1", "other:1"],
            "far:1 is silent"
        );
        sample(&mut log, "other:1", 90, [0, 1, 0]);
        assert_eq!(order(&table(&log)), ["other:1"]);
    }

    #[test]
    fn a_process_is_known_before_and_after_a_sample_and_may_be_replaced() {
        let mut log = EventLog::default();
        let owner = |log: &mut EventLog, program: Option<&'static str>, at_s: u64| {
            ConnectionOwner {
                local: EventValue::Text("10.0.0.1:40000"),
                remote: EventValue::Text("far:1"),
                pid: program.map(|_| 77_u64).into(),
                program: program.into(),
            }
            .write(log, at_s * SECOND);
        };
        let process = |log: &EventLog| table(log).slowest_first()[0].process.clone();
        sample(&mut log, "far:1", 1, [0, 90, 0]);
        assert_eq!(process(&log), ConnectionProcess::default());
        owner(&mut log, Some("1234"), 1);
        assert_eq!(process(&log).program.as_deref(), Some("1234"));
        sample(&mut log, "far:1", 90, [0, 90, 0]);
        assert_eq!(process(&log).pid, Some(77));
        owner(&mut log, None, 91);
        assert_eq!(process(&log), ConnectionProcess::default());
    }

    #[test]
    fn owners_are_bounded() {
        let mut log = EventLog::default();
        for number in 0..2 * MOST_OWNERS as u64 {
            ConnectionOwner {
                local: EventValue::Text("10.0.0.1:40000"),
                remote: EventValue::Text(&format!("far:{number}")),
                pid: 1_u64.into(),
                program: EventValue::Text("curl"),
            }
            .write(&mut log, number);
        }
        let full = table(&log);
        assert!(full.owners.len() <= MOST_OWNERS);
        assert!(
            full.owners
                .keys()
                .any(|ends| ends.remote == format!("far:{}", 2 * MOST_OWNERS - 1))
        );
    }
}
