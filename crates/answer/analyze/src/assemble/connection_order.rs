//! Which connection of its flow an event belongs to that carries bytes, where each connection has a layout of its own: one has a full
//! handshake, the next a resumed one.
//!
//! The last bytes of a connection, such as the farewell of TLS, pass when the next one has been requested, and their offsets may be those
//! of the next one's units. What one point sees of a stream is in order, so there the first byte of a stream begins the next connection.

use super::CarrierEvent;
use super::ranges::Ranges;

/// The bytes that a connection presents before anything else. Who reads them apart, without an event, sees the stream from there on.
const INTRODUCTION: i64 = 16;

/// The connections of the events that `is_wanted` names, by their index; `None` for others, and where a point has not seen the beginning of a
/// connection.
pub(super) fn connections_by_first_byte(
    carriers: &[CarrierEvent],
    ranges: &Ranges,
    is_wanted: impl Fn(&CarrierEvent) -> bool,
) -> Vec<Option<u32>> {
    let mut connections = vec![None; carriers.len()];
    let place = |at: usize| (carriers[at].range.stream, carriers[at].point);
    let mut order: Vec<usize> = (0..carriers.len())
        .filter(|at| is_wanted(&carriers[*at]))
        .collect();
    order.sort_unstable_by_key(|at| (place(*at), carriers[*at].range.at_ns, *at));
    for seen_there in order.chunk_by(|one, next| place(*one) == place(*next)) {
        let mut present = None;
        for at in seen_there {
            let range = &carriers[*at].range;
            if range.start <= INTRODUCTION {
                present = Some(ranges.connection(range));
            }
            connections[*at] = present;
        }
    }
    connections
}

#[cfg(test)]
mod tests {
    use super::super::NO_ID;
    use super::super::ranges::UnitByteRange;
    use super::*;

    fn event(start: i64, at_ns: u64) -> CarrierEvent {
        CarrierEvent {
            range: UnitByteRange {
                stream: 3,
                start,
                end: start + 10,
                at_ns,
            },
            point: 0,
            row: 0,
            id: NO_ID,
        }
    }

    #[test]
    fn a_farewell_behind_the_next_request_is_of_the_connection_before() {
        // Requested at 1 and at 100; the farewell of the first passes at 105, the first byte of the second at 120.
        let ranges = Ranges::new([], vec![(1, 1), (1, 100)]);
        let events = [
            event(0, 20),
            event(500, 105),
            event(0, 120),
            event(500, 130),
        ];
        let connections = connections_by_first_byte(&events, &ranges, |_| true);
        assert_eq!(connections, [Some(1), Some(1), Some(2), Some(2)]);
        let late = connections_by_first_byte(&events[1..2], &ranges, |_| true);
        assert_eq!(late, [None], "nothing is known before a first byte");
        // A responder that has read the introduction apart sees the second one from there on.
        let events = [event(16, 20), event(500, 105), event(16, 120)];
        let connections = connections_by_first_byte(&events, &ranges, |_| true);
        assert_eq!(connections, [Some(1), Some(1), Some(2)]);
        let none = connections_by_first_byte(&events, &ranges, |_| false);
        assert_eq!(none, [None; 3]);
    }
}
