//! The slowest link on the path of each long message where the network's links were recorded: its rate, how full it was meanwhile, and how
//! many packets of the message were dropped. Without events of a network nothing is known.

use crate::findings::packets::{PacketEventFields, packet_range, read_port_name};
use crate::findings::requests::least_time::LARGE;
use crate::findings::requests::queueing::RequestMessageKey;
use crate::findings::rows::EventRows;
use stackline_core::units;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// A link that is transmitting for at least this share of the time is full.
pub(crate) const FULL: f64 = 0.75;

/// The slowest link of a message's path.
#[derive(Clone, Debug)]
pub(crate) struct PathRate {
    /// The port.
    port: String,
    /// Its rate.
    pub(crate) bit_s: f64,
    /// The share of the time in which it was transmitting while the message crossed it, 0 to 1.
    full: f64,
    /// The number of packets of the message that were dropped, at any port.
    pub(crate) drops: u64,
}

impl PathRate {
    /// Whether the link was transmitting most of the time.
    pub(crate) fn is_full(&self) -> bool {
        self.full >= FULL
    }
}

impl fmt::Display for PathRate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = units::format_rate(self.bit_s);
        write!(formatter, "{} ({rate})", self.port)
    }
}

/// When a message crossed a port: first arrival and last departure.
#[derive(Clone, Copy)]
struct CrossingTime {
    from_ns: u64,
    to_ns: u64,
}

/// The bytes that left through a port.
#[derive(Default)]
struct PortTraffic {
    /// Time (ns) of each departure, with the sum of all bytes up to then.
    moments: Vec<(u64, u64)>,
}

impl PortTraffic {
    fn leave(&mut self, at_ns: u64, bytes: u64) {
        let before = self.moments.last().map_or(0, |(_, sum)| *sum);
        self.moments.push((at_ns, before.saturating_add(bytes)));
    }

    fn between(&self, time: CrossingTime) -> u64 {
        let up_to = |at_ns: u64| {
            let at = self.moments.partition_point(|(moment, _)| *moment <= at_ns);
            at.checked_sub(1).map_or(0, |at| self.moments[at].1)
        };
        up_to(time.to_ns).saturating_sub(up_to(time.from_ns))
    }
}

/// Long messages by stream and offset of their first byte: the offset behind their last byte, and the message.
type LongMessages = BTreeMap<(i64, i64), (i64, RequestMessageKey)>;

/// The rates of ports where they are known, bit/s.
pub(crate) fn port_rates<'c>(log: &EventRows<'c>) -> HashMap<&'c str, f64> {
    let known = |row: &u32| {
        let rate = log.number(*row, "rate_bit_s").filter(|rate| *rate > 0)?;
        Some((log.text(*row, "port")?, rate as f64))
    };
    log.rows("PORT_SETUP").iter().filter_map(known).collect()
}

fn long_messages(log: &EventRows<'_>) -> LongMessages {
    let mut messages = LongMessages::new();
    for (keyword, is_answer) in [("APP_CALL", false), ("APP_REPLY", true)] {
        for row in log.rows(keyword) {
            if let (Some(unit), Some(range)) = (log.number(*row, "unit"), log.range(*row))
                && range.to - range.from >= LARGE
            {
                messages.insert((range.stream, range.from), (range.to, (unit, is_answer)));
            }
        }
    }
    messages
}

/// The slowest link for each long message that crossed links with known rates.
pub(crate) fn measure_path_rates(log: &EventRows<'_>) -> HashMap<RequestMessageKey, PathRate> {
    let (Some(fields), rates) = (PacketEventFields::new(), port_rates(log)) else {
        return HashMap::new();
    };
    let messages = long_messages(log);
    if rates.is_empty() || messages.is_empty() {
        return HashMap::new();
    }
    let met = |row: u32| {
        let packet = packet_range(log, row)?;
        let mut before = messages.range(..(packet.stream, packet.to));
        let ((stream, _), (to, message)) = before.next_back()?;
        (*stream == packet.stream && *to > packet.from).then_some(*message)
    };
    let mut crossed: HashMap<(RequestMessageKey, &str), CrossingTime> = HashMap::new();
    for row in log.rows("NET_ENQUEUE") {
        if let Some(message) = met(*row) {
            let (from_ns, to_ns) = (log.at(*row), log.at(*row));
            let port = read_port_name(log, *row, fields);
            let time = CrossingTime { from_ns, to_ns };
            crossed.entry((message, port)).or_insert(time);
        }
    }
    let mut traffic: HashMap<&str, PortTraffic> = HashMap::new();
    for row in log.rows("NET_DEQUEUE") {
        let port = read_port_name(log, *row, fields);
        let length = log.input.events.number(*row as usize, fields.length);
        let bytes = length.unwrap_or(0).max(0).unsigned_abs();
        traffic.entry(port).or_default().leave(log.at(*row), bytes);
        if let Some(time) = met(*row).and_then(|message| crossed.get_mut(&(message, port))) {
            time.to_ns = time.to_ns.max(log.at(*row));
        }
    }
    let mut drops: HashMap<RequestMessageKey, u64> = HashMap::new();
    for message in log.rows("NET_DROP").iter().filter_map(|row| met(*row)) {
        *drops.entry(message).or_default() += 1;
    }
    let mut found: HashMap<RequestMessageKey, PathRate> = HashMap::new();
    for ((message, port), time) in crossed {
        let Some(bit_s) = rates.get(port).copied() else {
            continue;
        };
        let is_slower = found
            .get(&message)
            .is_none_or(|known| (bit_s, port) < (known.bit_s, known.port.as_str()));
        if is_slower {
            let bytes = traffic.get(port).map_or(0, |port| port.between(time));
            let ns = time.to_ns.saturating_sub(time.from_ns).max(1);
            let full = (bytes as f64 * 8e9 / (bit_s * ns as f64)).min(1.0);
            let drops = drops.get(&message).copied().unwrap_or(0);
            let port = port.to_owned();
            found.insert(
                message,
                PathRate {
                    port,
                    bit_s,
                    full,
                    drops,
                },
            );
        }
    }
    found
}
