//! Finds the units whose bytes are in a range of a stream.
//!
//! A stream's offsets begin again with every connection of its flow, so a range is identified by its stream, its offsets and the
//! number of connections that its flow had requested at its time.

/// A range of a stream's bytes that belongs to one unit, or that an event carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnitByteRange {
    /// Twice the flow's number, plus 1 for the direction back.
    pub(crate) stream: i64,
    /// Offset of the first byte.
    pub(crate) start: i64,
    /// Offset behind the last byte.
    pub(crate) end: i64,
    /// Reference time of the event, ns.
    pub(crate) at_ns: u64,
}

/// The bytes of one unit. The order of the fields is the order in which they are sorted: by stream, connection and offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Owned {
    stream: i64,
    connection: u32,
    start: i64,
    end: i64,
    id: u32,
    /// The largest end of this range and those before it on its connection: ranges from foreign logs may overlap.
    reach: i64,
}

/// The bytes of every unit.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    owned: Vec<Owned>,
    connects: Vec<(u32, u64)>,
}

impl Ranges {
    /// `units` has each unit's bytes with the place of its id; `connects` the flow and time in ns of each connection request.
    pub(crate) fn new(
        units: impl IntoIterator<Item = (UnitByteRange, u32)>,
        mut connects: Vec<(u32, u64)>,
    ) -> Self {
        connects.sort_unstable();
        let owned = units.into_iter().map(|(range, id)| {
            let connection = connection(&connects, &range);
            Owned {
                stream: range.stream,
                connection,
                start: range.start,
                end: range.end,
                id,
                reach: range.end,
            }
        });
        let mut owned: Vec<Owned> = owned.collect();
        owned.sort_unstable();
        owned.dedup();
        for at in 1..owned.len() {
            let before = owned[at - 1];
            if (before.stream, before.connection) == (owned[at].stream, owned[at].connection) {
                owned[at].reach = owned[at].end.max(before.reach);
            }
        }
        Self { owned, connects }
    }

    /// How many connections the range's flow had requested by the time of the range.
    pub(crate) fn connection(&self, range: &UnitByteRange) -> u32 {
        connection(&self.connects, range)
    }

    /// Whether a flow has requested several connections.
    pub(crate) fn has_several_connections(&self, flow: u32) -> bool {
        let first = self.connects.partition_point(|connect| connect.0 < flow);
        let second = self.connects.get(first + 1);
        second.is_some_and(|connect| connect.0 == flow)
    }

    /// Calls `each` for every unit that has bytes in the range of that connection, with whether its last byte is among them.
    pub(crate) fn carried(
        &self,
        range: &UnitByteRange,
        connection: u32,
        mut each: impl FnMut(u32, bool),
    ) {
        let key = (range.stream, connection);
        let before =
            |owned: &Owned| ((owned.stream, owned.connection), owned.reach) <= (key, range.start);
        let first = self.owned.partition_point(before);
        let of_key = self.owned[first..]
            .iter()
            .take_while(|owned| (owned.stream, owned.connection) == key);
        let overlaps = |owned: &&Owned| owned.end > range.start;
        for owned in of_key
            .take_while(|owned| owned.start < range.end)
            .filter(overlaps)
        {
            each(owned.id, owned.end <= range.end);
        }
    }
}

/// How many connections the stream's flow had requested by the time of the range. What comes back at the very moment of a request, as in
/// virtual time, belongs to the connection before it.
fn connection(connects: &[(u32, u64)], range: &UnitByteRange) -> u32 {
    let flow = (range.stream >> 1) as u32;
    let comes_back = range.stream & 1 == 1;
    let first = connects.partition_point(|connect| *connect < (flow, 0));
    let is_before = |connect: &(u32, u64)| match comes_back {
        true => *connect < (flow, range.at_ns),
        false => *connect <= (flow, range.at_ns),
    };
    (connects.partition_point(is_before) - first) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(stream: i64, start: i64, end: i64, at_ns: u64) -> UnitByteRange {
        UnitByteRange {
            stream,
            start,
            end,
            at_ns,
        }
    }

    fn carried(ranges: &Ranges, of: UnitByteRange) -> Vec<(u32, bool)> {
        let mut found = Vec::new();
        let connection = ranges.connection(&of);
        ranges.carried(&of, connection, |id, last| found.push((id, last)));
        found
    }

    #[test]
    fn a_segment_carries_parts_of_several_units() {
        let units = (0..4).map(|id| {
            (
                range(2, 16 + 10 * i64::from(id), 26 + 10 * i64::from(id), 5),
                id,
            )
        });
        let ranges = Ranges::new(units, Vec::new());
        assert_eq!(
            carried(&ranges, range(2, 30, 46, 6)),
            [(1, true), (2, true)]
        );
        assert_eq!(
            carried(&ranges, range(2, 30, 40, 6)),
            [(1, true), (2, false)]
        );
        assert_eq!(
            carried(&ranges, range(2, 0, 16, 6)),
            [],
            "the introduction is no unit's"
        );
        assert_eq!(
            carried(&ranges, range(3, 30, 46, 6)),
            [],
            "the other direction has offsets of its own"
        );
        assert_eq!(carried(&ranges, range(2, 56, 99, 6)), []);
    }

    #[test]
    fn ranges_of_units_may_overlap() {
        let units = [
            (range(2, 0, 100, 5), 0),
            (range(2, 10, 20, 5), 1),
            (range(2, 30, 40, 5), 2),
            (range(4, 0, 9, 5), 3),
        ];
        let ranges = Ranges::new(units, Vec::new());
        assert_eq!(carried(&ranges, range(2, 50, 60, 6)), [(0, false)]);
        assert_eq!(
            carried(&ranges, range(2, 35, 100, 6)),
            [(0, true), (2, true)]
        );
        assert_eq!(carried(&ranges, range(2, 100, 200, 6)), []);
        assert_eq!(carried(&ranges, range(4, 0, 9, 6)), [(3, true)]);
    }

    #[test]
    fn an_answer_at_the_moment_of_the_next_request_is_of_the_connection_before() {
        let units = [(range(3, 0, 10, 15), 0), (range(3, 0, 10, 35), 1)];
        let ranges = Ranges::new(units, vec![(1, 10), (1, 20)]);
        assert_eq!(carried(&ranges, range(3, 0, 10, 20)), [(0, true)]);
        assert_eq!(carried(&ranges, range(3, 0, 10, 21)), [(1, true)]);
    }

    #[test]
    fn offsets_begin_again_with_a_connection() {
        let units = [(range(2, 16, 26, 10), 0), (range(2, 16, 26, 110), 1)];
        let ranges = Ranges::new(units, vec![(1, 100), (1, 1), (7, 50)]);
        assert_eq!(carried(&ranges, range(2, 16, 26, 20)), [(0, true)]);
        assert_eq!(carried(&ranges, range(2, 16, 26, 120)), [(1, true)]);
    }
}
