//! How long messages of requests waited in the queues of an emulated network, behind what was there before them. Without events of a
//! network nothing is known.

use crate::findings::packets::{PacketEventFields, packet_range, read_port_name};
use crate::findings::rows::EventRows;
use std::collections::{BTreeMap, HashMap};

/// Of a message: its request's unit, and whether it is the answer.
pub(crate) type RequestMessageKey = (i64, bool);

/// How long the first packet of each message waited behind others, at all queues of its way together, ns: what comes behind it waits
/// for it as well, and that is its own length. `None` where no queue was recorded.
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
    // Of packets that carry a first byte, the one that brought it: what was sent again in vain did not.
    let mut brought: HashMap<RequestMessageKey, i64> = HashMap::new();
    for row in log.rows("NET_DELIVER") {
        for message in first_bytes(*row) {
            brought
                .entry(message)
                .or_insert_with(|| number(*row, fields.number));
        }
    }
    // By where and which packet: when it came, what of its wait is for others, and whose it is.
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
    // Of one that was not delivered, the copy that came last at a place.
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

/// Where messages begin: stream and offset.
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
