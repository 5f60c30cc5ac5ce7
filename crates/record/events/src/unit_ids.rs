//! Ids of flows, streams and units. A flow is one initiator with one responder in one run; a stream is one direction
//! of a flow; a unit is one data unit on it, or one call with its response.
//!
//! Ids are unique in a run directory: its index says which measurement, part, run and hosts a flow belongs to.

/// Number of bits for the units of a flow.
const NUMBER: u32 = 38;
/// The bit that marks the id of a connection instead of a unit.
const CONNECTION: i64 = 1 << NUMBER;

/// The largest flow number.
pub const LAST_FLOW: u32 = (1 << 24) - 1;

/// The direction of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventStreamDirection {
    /// From initiator to responder.
    There,
    /// From responder to initiator.
    Back,
}

/// The id of the `number`-th data unit (or call) of a flow, from 0. Numbers wrap around at 2^38.
#[must_use]
pub const fn unit(flow: u32, number: u64) -> i64 {
    ((flow & LAST_FLOW) as i64) << (NUMBER + 1) | (number & (CONNECTION as u64 - 1)) as i64
}

/// The id of the `number`-th connection of a flow.
#[must_use]
pub const fn connection(flow: u32, number: u64) -> i64 {
    unit(flow, number) | CONNECTION
}

/// The flow and the number in an id, and whether the id is a connection's.
#[must_use]
pub const fn parts(id: i64) -> (u32, u64, bool) {
    (
        (id >> (NUMBER + 1)) as u32 & LAST_FLOW,
        (id & (CONNECTION - 1)) as u64,
        id & CONNECTION != 0,
    )
}

/// The id of one direction of a flow.
#[must_use]
pub const fn stream(flow: u32, direction: EventStreamDirection) -> i64 {
    (flow as i64) << 1 | direction as i64
}

/// The flow and the direction in a stream's id.
#[must_use]
pub const fn stream_parts(stream: i64) -> (u32, EventStreamDirection) {
    (
        (stream >> 1) as u32,
        if stream & 1 == 0 {
            EventStreamDirection::There
        } else {
            EventStreamDirection::Back
        },
    )
}

/// Numbers the units of a flow over all its connections, in the same way at both ends.
///
/// A call and its response are one unit, in the direction [`EventStreamDirection::There`]. Where units go in both
/// directions, those of one direction have even numbers and those of the other odd ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbering {
    flow: u32,
    /// Whether units begin at both ends.
    both_ways: bool,
    /// Number of the next unit in each direction.
    next: [u64; 2],
    /// Number of connections so far.
    connections: u64,
}

impl Numbering {
    /// Numbering from 0; `both_ways` says whether units begin at both ends.
    #[must_use]
    pub const fn new(flow: u32, both_ways: bool) -> Self {
        Self {
            flow,
            both_ways,
            next: [0; 2],
            connections: 0,
        }
    }

    /// The id of one direction of the flow.
    #[must_use]
    pub const fn stream(&self, direction: EventStreamDirection) -> i64 {
        stream(self.flow, direction)
    }

    /// Number of units in a direction so far, which is the number of the next one.
    #[must_use]
    pub const fn count(&self, direction: EventStreamDirection) -> u64 {
        self.next[direction as usize]
    }

    /// The id of the `number`-th unit of a direction.
    #[must_use]
    pub const fn id(&self, direction: EventStreamDirection, number: u64) -> i64 {
        unit(
            self.flow,
            if self.both_ways {
                number << 1 | direction as u64
            } else {
                number
            },
        )
    }

    /// Continues with the unit of that number; the units before it that were not seen are lost or late.
    pub const fn go_on(&mut self, direction: EventStreamDirection, number: u64) {
        if self.next[direction as usize] < number {
            self.next[direction as usize] = number;
        }
    }

    /// The id of the next unit in a direction.
    pub const fn next(&mut self, direction: EventStreamDirection) -> i64 {
        let number = self.next[direction as usize];
        self.next[direction as usize] = number + 1;
        self.id(direction, number)
    }

    /// The id of the next connection.
    pub const fn connect(&mut self) -> i64 {
        self.connections += 1;
        connection(self.flow, self.connections - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_number_alike_whatever_goes_first() {
        use EventStreamDirection::{Back, There};
        let (mut one, mut other) = (Numbering::new(7, true), Numbering::new(7, true));
        let there: Vec<i64> = (0..3).map(|_| one.next(There)).collect();
        let back = one.next(Back);
        assert_eq!(other.next(Back), back);
        assert_eq!((0..3).map(|_| other.next(There)).collect::<Vec<_>>(), there);
        assert!(!there.contains(&back));
        assert_eq!(one.connect(), other.connect());
        let mut plain = Numbering::new(7, false);
        assert_eq!(
            (plain.next(There), plain.next(There)),
            (unit(7, 0), unit(7, 1))
        );
        plain.go_on(There, 6);
        plain.go_on(There, 5);
        assert_eq!(
            (plain.count(There), plain.id(There, 5), plain.next(There)),
            (6, unit(7, 5), unit(7, 6))
        );
    }

    #[test]
    fn ids_come_apart_again() {
        for (flow, number) in [(0, 0), (7, 1), (LAST_FLOW, (1 << 38) - 1)] {
            assert_eq!(parts(unit(flow, number)), (flow, number, false));
            assert_eq!(parts(connection(flow, number)), (flow, number, true));
            assert!(unit(flow, number) >= 0 && connection(flow, number) >= 0);
        }
        assert_eq!(
            stream_parts(stream(9, EventStreamDirection::Back)),
            (9, EventStreamDirection::Back)
        );
    }
}
