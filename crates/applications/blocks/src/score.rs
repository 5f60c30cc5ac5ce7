//! The score of a session: above all how many blocks came before a newer list superseded them, then throughput, then the times of the
//! segments of a block's way (Tierney et al. 1996, sections 4.2.2 and 4.2.3).

use crate::block_history::{BlockPathPoint, History};
use crate::client::Tally;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use stackline_core::time::{Duration, Instant};

/// The number of consecutive blocks over which a burst rate is measured.
const BURST: usize = 5;
/// The segments of a block's way: first point, last point, name.
pub const SEGMENTS: [(BlockPathPoint, BlockPathPoint, &str); 8] = [
    (
        BlockPathPoint::AppSend,
        BlockPathPoint::MasterIn,
        "request to master",
    ),
    (
        BlockPathPoint::MasterIn,
        BlockPathPoint::MasterOut,
        "name translation",
    ),
    (
        BlockPathPoint::MasterOut,
        BlockPathPoint::ServerIn,
        "master to server",
    ),
    (
        BlockPathPoint::ServerIn,
        BlockPathPoint::StartRead,
        "read queue",
    ),
    (
        BlockPathPoint::StartRead,
        BlockPathPoint::EndRead,
        "disk read",
    ),
    (
        BlockPathPoint::EndRead,
        BlockPathPoint::StartWrite,
        "write queue",
    ),
    (
        BlockPathPoint::StartWrite,
        BlockPathPoint::AppReceive,
        "block to application",
    ),
    (
        BlockPathPoint::AppSend,
        BlockPathPoint::AppReceive,
        "end to end",
    ),
];

/// What came from one server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerScore {
    /// Blocks that came from it, wanted or not.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Blocks that were discarded there.
    pub flushed: u64,
    /// Blocks of `blocks` that the server had in its cache.
    pub cached: u64,
    /// The highest rate over five consecutive blocks at the receiver, bit/s.
    pub burst: f64,
    /// The longest time between two consecutive blocks from this server.
    pub longest_gap: Duration,
    /// When each block came, and its bytes.
    arrivals: Vec<(Instant, u32)>,
}

/// What a session received.
#[derive(Clone, Debug, Default)]
pub struct Score {
    /// Lists that were sent.
    pub lists: u64,
    /// Blocks that these lists asked for.
    pub requested: u64,
    /// Blocks that came before the next list of their set.
    pub delivered: u64,
    /// Bytes of the delivered blocks.
    pub useful_bytes: u64,
    /// Blocks that came after they had been superseded, or a second time.
    pub late: u64,
    /// Bytes of the late blocks.
    pub late_bytes: u64,
    /// Blocks that no server could send.
    pub missing: u64,
    /// Blocks of the last lists that had not come when the session ended.
    pub pending: u64,
    /// When the first list was sent and when the last block came.
    pub span: Option<(Instant, Instant)>,
    /// Bytes of wanted blocks, by second since the first list.
    pub by_second: Vec<u64>,
    /// What came from each server, by its number.
    pub servers: BTreeMap<u16, ServerScore>,
    /// The times of each of [`SEGMENTS`], ns.
    segments: [Vec<u64>; 8],
}

impl Score {
    /// Counts a list that was sent.
    pub fn sent(&mut self, now: Instant, blocks: usize) {
        self.lists += 1;
        self.requested += blocks as u64;
        let (first, last) = self.span.unwrap_or((now, now));
        self.span = Some((first, last));
    }

    /// Counts a list that is over.
    pub const fn over(&mut self, tally: &Tally) {
        self.delivered += tally.delivered as u64;
        self.missing += tally.missing as u64;
        self.useful_bytes += tally.bytes;
    }

    /// Counts a block that came.
    pub fn came(&mut self, history: &History, wanted: bool) {
        let Some(at) = history.passed(BlockPathPoint::AppReceive) else {
            return;
        };
        let (first, last) = self.span.unwrap_or((at, at));
        self.span = Some((first, last.max(at)));
        let bytes = u64::from(history.bytes);
        if wanted {
            let second = (at.since(first).0 / 1_000_000_000) as usize;
            if self.by_second.len() <= second {
                self.by_second.resize(second + 1, 0);
            }
            self.by_second[second] += bytes;
        } else {
            self.late += 1;
            self.late_bytes += bytes;
        }
        for ((from, to, _), times) in SEGMENTS.iter().zip(&mut self.segments) {
            if let (Some(from), Some(to)) = (history.passed(*from), history.passed(*to)) {
                times.push(to.since(from).0);
            }
        }
        let server = self.servers.entry(history.server).or_default();
        server.blocks += 1;
        server.bytes += bytes;
        server.cached += u64::from(history.cached);
        if let Some((before, _)) = server.arrivals.last() {
            server.longest_gap = Duration(server.longest_gap.0.max(at.since(*before).0));
        }
        server.arrivals.push((at, history.bytes));
        // The five newest blocks came in the time since the arrival of the block before them.
        if server.arrivals.len() > BURST {
            let count = server.arrivals.len();
            let since = server.arrivals[count - 1 - BURST].0;
            let bits: u64 = server.arrivals[count - BURST..]
                .iter()
                .map(|(_, bytes)| u64::from(*bytes) * 8)
                .sum();
            let seconds = at.since(since).seconds();
            if seconds > 0.0 {
                server.burst = server.burst.max(bits as f64 / seconds);
            }
        }
    }

    /// Counts a block that a server discarded.
    pub fn flushed(&mut self, history: &History) {
        self.servers.entry(history.server).or_default().flushed += 1;
    }

    /// The number of blocks that were asked for and neither came nor were discarded, and that no server reported as impossible to send.
    /// Blocks of the last lists that are still pending are included.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        let flushed: u64 = self.servers.values().map(|server| server.flushed).sum();
        // A block that came twice counts as late, too: it must not hide one that is pending.
        self.requested
            .saturating_sub(self.delivered + self.late + self.missing + flushed)
            .max(self.pending)
    }

    /// Seconds from the first list to the last block, or to `end` if that is later.
    #[must_use]
    pub fn seconds(&self, end: Option<Instant>) -> f64 {
        self.span.map_or(0.0, |(first, last)| {
            end.map_or(last, |end| end.max(last)).since(first).seconds()
        })
    }

    /// The times of one of [`SEGMENTS`], ascending, ns.
    pub fn segment(&mut self, index: usize) -> &[u64] {
        match self.segments.get_mut(index) {
            Some(times) => {
                times.sort_unstable();
                times
            }
            None => &[],
        }
    }
}
