//! Ids: a flow is one initiator with one responder in one run, a stream one direction of it, a unit one data unit (or one
//! call with its response) on it.
//!
//! The ids of a run directory are unique in it: its index says which measurement, part, run and hosts a flow belongs to.

/// Bits that number the units of one flow.
const NUMBER: u32 = 38;
/// Marks a connection instead of a data unit.
const CONNECTION: i64 = 1 << NUMBER;

/// The largest flow.
pub const LAST_FLOW: u32 = (1 << 24) - 1;

/// Who sends on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// Initiator to responder.
    There,
    /// Responder to initiator.
    Back,
}

/// The id of the `number`-th data unit (or call) of a flow, from 0. A number beyond 2^38 begins again.
#[must_use]
pub const fn unit(flow: u32, number: u64) -> i64 {
    ((flow & LAST_FLOW) as i64) << (NUMBER + 1) | (number & (CONNECTION as u64 - 1)) as i64
}

/// The id of the `number`-th connection of a flow.
#[must_use]
pub const fn connection(flow: u32, number: u64) -> i64 {
    unit(flow, number) | CONNECTION
}

/// The flow and the number behind an id, and whether it is a connection.
#[must_use]
pub const fn parts(id: i64) -> (u32, u64, bool) {
    ((id >> (NUMBER + 1)) as u32 & LAST_FLOW, (id & (CONNECTION - 1)) as u64, id & CONNECTION != 0)
}

/// The id of one direction of a flow.
#[must_use]
pub const fn stream(flow: u32, direction: Direction) -> i64 {
    (flow as i64) << 1 | direction as i64
}

/// The flow and direction behind a stream's id.
#[must_use]
pub const fn stream_parts(stream: i64) -> (u32, Direction) {
    ((stream >> 1) as u32, if stream & 1 == 0 { Direction::There } else { Direction::Back })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_apart_again() {
        for (flow, number) in [(0, 0), (7, 1), (LAST_FLOW, (1 << 38) - 1)] {
            assert_eq!(parts(unit(flow, number)), (flow, number, false));
            assert_eq!(parts(connection(flow, number)), (flow, number, true));
            assert!(unit(flow, number) >= 0 && connection(flow, number) >= 0);
        }
        assert_eq!(stream_parts(stream(9, Direction::Back)), (9, Direction::Back));
    }
}
