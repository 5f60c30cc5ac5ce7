//! The rate of long messages and the bytes that they had in flight, for the requests that have most of a cause's time. Bytes and time of
//! slow start are left out, as they belong to another cause.

use crate::findings::requests::least_time::{FIRST_WINDOW, LARGE};
use crate::findings::requests::message_delays::{answer_delays, request_delays};
use crate::findings::requests::request::TracedRequest;
use crate::findings::requests::worst::Worst;
use std::collections::BTreeMap;

/// A long message after slow start.
struct LongTransfer {
    /// Its bytes without those sent in slow start.
    bytes: i64,
    /// The time that these took.
    ns: i64,
    /// The round trip.
    trip_ns: i64,
}

impl LongTransfer {
    /// The longer message of a request, of whose time the cause has `part_ns`; `None` if it is not long.
    fn find(request: &TracedRequest, part_ns: i64) -> Option<Self> {
        let times = request.times?;
        let is_answer = request.bytes.1 >= request.bytes.0;
        let bytes = request.message_bytes(is_answer);
        if bytes < LARGE || part_ns <= 0 {
            return None;
        }
        let delays = match is_answer {
            true => answer_delays(request, times),
            false => request_delays(request, times),
        };
        let trip_ns = times.round_trip.unwrap_or(0).max(0);
        // If it was seen at one end alone, half a round trip of its transfer counts as distance: it is added back.
        let is_of_one_end = times.is_of_client || times.is_of_server;
        let ns = part_ns + if is_of_one_end { trip_ns / 2 } else { 0 };
        let first_ns = delays.rest - part_ns - trip_ns / 2;
        let windows = first_ns.max(0).checked_div(trip_ns).unwrap_or(0).min(30);
        let in_windows = FIRST_WINDOW.saturating_mul((1 << windows) - 1);
        Some(Self {
            bytes: (bytes - in_windows).max(0),
            ns,
            trip_ns,
        })
    }
}

/// The long messages of the requests that have most of a cause's time.
pub(crate) struct LongTransfers(Vec<LongTransfer>);

impl LongTransfers {
    pub(crate) fn find_in(worst: &Worst<'_>) -> Self {
        let by_row: BTreeMap<u32, i64> = worst
            .cost
            .rows
            .iter()
            .map(|(ns, row)| (*row, *ns))
            .collect();
        let requests = worst.costs.requests.iter();
        let transfers = requests.filter_map(|request| {
            let part_ns = by_row.get(&request.row)?;
            LongTransfer::find(request, *part_ns)
        });
        Self(transfers.collect())
    }

    fn sum(&self, of: impl Fn(&LongTransfer) -> i64) -> f64 {
        self.0.iter().map(of).sum::<i64>() as f64
    }

    /// The mean rate of their transfer, bit/s; `None` if all of them may have been sent in slow start.
    pub(crate) fn rate_bit_s(&self) -> Option<f64> {
        let rate = self.sum(|one| one.bytes) * 8e9 / self.sum(|one| one.ns).max(1.0);
        (rate > 0.0).then_some(rate)
    }

    /// Their mean round trip, ns.
    pub(crate) fn trip_ns(&self) -> f64 {
        self.sum(|one| one.trip_ns) / (self.0.len().max(1) as f64)
    }

    /// The mean number of bytes that they had in flight: rate times round trip.
    pub(crate) fn bytes_under_way(&self) -> u64 {
        (self.rate_bit_s().unwrap_or(0.0) / 8e9 * self.trip_ns()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::requests::request::RequestTimes;

    const MS: i64 = 1_000_000;

    #[test]
    fn first_windows_are_neither_in_the_bytes_nor_in_the_time() {
        let request = TracedRequest {
            bytes: (100, 1_043_800),
            times: Some(RequestTimes {
                back: 450 * MS,
                is_of_client: true,
                round_trip: Some(20 * MS),
                ..RequestTimes::default()
            }),
            ..TracedRequest::default()
        };
        // Ten and twenty segments in a round trip each, then 20 Mbit/s.
        let one = LongTransfer::find(&request, 400 * MS).unwrap();
        assert_eq!((one.bytes, one.ns / MS), (1_000_000, 410));
        let all = LongTransfers(vec![one]);
        assert!((all.rate_bit_s().unwrap() - 19.5e6).abs() < 1e5);
        assert_eq!(all.bytes_under_way() / 1000, 48);
    }

    #[test]
    fn short_messages_and_those_without_a_part_of_it_do_not_count() {
        let request = TracedRequest {
            bytes: (100, 500),
            times: Some(RequestTimes::default()),
            ..TracedRequest::default()
        };
        assert!(LongTransfer::find(&request, MS).is_none());
        let long = TracedRequest {
            bytes: (1_000_000, 500),
            ..request
        };
        assert!(LongTransfer::find(&long, MS).is_some() && LongTransfer::find(&long, 0).is_none());
    }
}
