//! How long messages of requests waited in the queues of an emulated network behind packets that were there before them. Without events of
//! a network nothing is known.

use crate::findings::packets::{PacketEventFields, packet_range, read_port_name};
use crate::findings::rows::EventRows;
use std::collections::{BTreeMap, HashMap};

/// A message: the unit of its request, and whether it is the answer.
pub(crate) type RequestMessageKey = (i64, bool);

/// How long the first packet of each message waited behind others, summed over all queues of its path, ns. Later packets also wait behind
/// the message's own ones, which is due to its length and not counted. `None` if no queues were recorded.
pub(crate) fn measure_queue_waits(log: &EventRows<'_>) -> Option<HashMap<RequestMessageKey, i64>> {
    let fields = PacketEventFields::new()?;
    let came = log.rows("NET_ENQUEUE");
    if came.is_empty() {
        return None;
    }
    let beginnings = beginnings(log);
    let number = |row: u32, field| log.input.events.number(row as usize, field).unwrap_or(0);
    let first_bytes = |row: u32| -> Vec<RequestMessageKey> {
        let Some(range) = packet_range(log, row) else {
            return Vec::new();
        };
        beginnings
            .range((range.stream, range.from)..(range.stream, range.to))
            .map(|(_, message)| *message)
            .collect()
    };
    // Of several packets with the first byte of a message, the one that delivered it; needless retransmissions do not count.
    let mut brought: HashMap<RequestMessageKey, i64> = HashMap::new();
    for row in log.rows("NET_DELIVER") {
        for message in first_bytes(*row) {
            brought
                .entry(message)
                .or_insert_with(|| number(*row, fields.number));
        }
    }
    // By port and packet number: when it arrived, the fraction of its wait that is due to packets ahead, and its messages.
    let mut carries: HashMap<(&str, i64), (u64, f64, Vec<RequestMessageKey>)> = HashMap::new();
    for row in came {
        let packet = number(*row, fields.number);
        let is_brought =
            |message: &RequestMessageKey| brought.get(message).is_none_or(|by| *by == packet);
        let messages: Vec<RequestMessageKey> =
            first_bytes(*row).into_iter().filter(is_brought).collect();
        if !messages.is_empty() {
            let (queued, own) = (number(*row, fields.queued), number(*row, fields.length));
            let before = (queued - own).max(0) as f64 / queued.max(1) as f64;
            carries.insert(
                (read_port_name(log, *row, fields), packet),
                (log.at(*row), before, messages),
            );
        }
    }
    // If no copy was delivered, the last copy at each port counts.
    let mut by_place: HashMap<(RequestMessageKey, &str), i64> = HashMap::new();
    for row in log.rows("NET_DEQUEUE") {
        let at = read_port_name(log, *row, fields);
        let Some((came, before, messages)) = carries.get(&(at, number(*row, fields.number))) else {
            continue;
        };
        let waited = (before * log.at(*row).saturating_sub(*came) as f64) as i64;
        by_place.extend(messages.iter().map(|message| ((*message, at), waited)));
    }
    let mut waits = HashMap::new();
    for ((message, _), waited) in by_place {
        *waits.entry(message).or_default() += waited;
    }
    Some(waits)
}

/// The messages by where they begin: stream and offset.
fn beginnings(log: &EventRows<'_>) -> BTreeMap<(i64, i64), RequestMessageKey> {
    let mut beginnings = BTreeMap::new();
    for (keyword, is_answer) in [("APP_CALL", false), ("APP_REPLY", true)] {
        for row in log.rows(keyword) {
            if let (Some(unit), Some(range)) = (log.number(*row, "unit"), log.range(*row)) {
                beginnings.insert((range.stream, range.from), (unit, is_answer));
            }
        }
    }
    beginnings
}
