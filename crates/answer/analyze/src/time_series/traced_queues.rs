//! How full the queue of each port was, from the packets that entered and left it.

use super::series_data::{SeriesBins, SeriesLine};
use stackline_events::EventTable;
use std::collections::BTreeMap;

/// Fields of a packet's event, by place.
const PLACE: usize = 4;
const LENGTH: usize = 9;
const QUEUED: usize = 10;
/// A queue that never held more packets than this did not wait, beside others that did.
const FEW: i64 = 2;

/// The queues of all ports.
pub(super) struct QueueLevels {
    bins: SeriesBins,
    /// By port: when packets entered and left it, and what they changed.
    ports: BTreeMap<String, Vec<(u64, QueueChange)>>,
    longest_packet: i64,
}

/// What a packet's event says about the queue, in bytes.
#[derive(Clone, Copy, Debug)]
enum QueueChange {
    /// It holds so many now, with the packet.
    Holds(i64),
    /// A packet of this length has left.
    Left(i64),
}

impl QueueLevels {
    pub(super) const fn new(bins: SeriesBins) -> Self {
        Self {
            bins,
            ports: BTreeMap::new(),
            longest_packet: 0,
        }
    }

    /// Adds an event of a packet, if it is about a queue.
    pub(super) fn event(&mut self, keyword: &str, events: &EventTable, row: usize, at_ns: u64) {
        let change = match keyword {
            "NET_ENQUEUE" => events.number(row, QUEUED).map(QueueChange::Holds),
            "NET_DEQUEUE" => events.number(row, LENGTH).map(QueueChange::Left),
            _ => None,
        };
        let Some(change) = change else { return };
        let length = events.number(row, LENGTH).unwrap_or(0);
        self.longest_packet = self.longest_packet.max(length);
        let place = events.value(row, PLACE).to_string();
        self.ports.entry(place).or_default().push((at_ns, change));
    }

    /// Bytes in each queue: the most in each interval.
    pub(super) fn lines(self) -> Vec<SeriesLine> {
        let bins = self.bins;
        let mut levels: Vec<(String, Vec<i64>)> = Vec::new();
        for (place, mut changes) in self.ports {
            changes.sort_by_key(|(at_ns, _)| *at_ns);
            levels.push((place, most_of_each(bins, &changes)));
        }
        let most = |levels: &[i64]| levels.iter().copied().max().unwrap_or(0);
        let few = FEW * self.longest_packet;
        let is_any_long = levels.iter().any(|(_, levels)| most(levels) > few);
        let least = if is_any_long { few } else { 0 };
        levels
            .into_iter()
            .filter(|(_, levels)| most(levels) > least)
            .map(|(place, levels)| {
                bins.line(place, levels.into_iter().map(|bytes| Some(bytes as f64)))
            })
            .collect()
    }
}

/// The fullest state in each interval; what was queued at its begin counts too.
fn most_of_each(bins: SeriesBins, changes: &[(u64, QueueChange)]) -> Vec<i64> {
    let mut most = vec![0; bins.count()];
    let (mut held, mut next) = (0, 0);
    for (at_ns, change) in changes {
        let bin = bins.index(*at_ns);
        if bin.is_none() && *at_ns > bins.origin_ns {
            break;
        }
        // Until then the queue held what it held.
        if let Some(bin) = bin {
            for level in most.iter_mut().take(bin + 1).skip(next) {
                *level = held.max(*level);
            }
            next = bin + 1;
        }
        held = match change {
            QueueChange::Holds(bytes) => *bytes,
            QueueChange::Left(bytes) => (held - bytes).max(0),
        };
        if let Some(bin) = bin {
            most[bin] = most[bin].max(held);
        }
    }
    for level in most.iter_mut().skip(next) {
        *level = held.max(*level);
    }
    most
}
