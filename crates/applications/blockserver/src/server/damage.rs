//! Copies of one disk that turned out not to be what was written: each is counted and said once, and not more are said than
//! somebody reads.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Damaged copies that are distinguished.
const KNOWN: usize = 1 << 16;
/// Those that are said one by one, and after which time others are again.
const SAID: u32 = 8;
const REST: Duration = Duration::from_secs(10);

/// The damaged copies of a disk, by where they begin.
#[derive(Debug, Default)]
pub(super) struct DiskDamage {
    at: BTreeSet<u64>,
    /// When the first of those was said that count against what may be said now.
    since: Option<Instant>,
    said: u32,
    unsaid: u64,
}

impl DiskDamage {
    /// One was met; where it is to be said, how many others were not since.
    pub(super) fn found(&mut self, offset: u64, now: Instant) -> Option<u64> {
        if self.at.len() >= KNOWN || !self.at.insert(offset) {
            return None;
        }
        if self
            .since
            .is_none_or(|since| now.duration_since(since) >= REST)
        {
            (self.since, self.said) = (Some(now), 0);
        }
        if self.said == SAID {
            self.unsaid += 1;
            return None;
        }
        self.said += 1;
        Some(std::mem::take(&mut self.unsaid))
    }

    /// Something else was written there.
    pub(super) fn mended(&mut self, offset: u64) {
        self.at.remove(&offset);
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.at.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_said_once_and_few_at_a_time() {
        let (mut damage, begun) = (DiskDamage::default(), Instant::now());
        assert_eq!(damage.found(4096, begun), Some(0));
        assert_eq!(damage.found(4096, begun), None);
        let said = (2..100)
            .filter(|at| damage.found(at * 4096, begun).is_some())
            .count();
        assert_eq!((said, damage.count()), (7, 99));
        assert_eq!(damage.found(1 << 30, begun + REST), Some(91));
        damage.mended(4096);
        assert_eq!(damage.count(), 99);
    }
}
