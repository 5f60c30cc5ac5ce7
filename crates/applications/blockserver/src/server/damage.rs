//! The damaged copies on one disk, whose data differs from what was written. Each is counted and reported once, at a limited rate.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The largest number of damaged copies that are recorded.
const KNOWN: usize = 1 << 16;
/// How many damaged copies are reported within [`REST`].
const SAID: u32 = 8;
/// After what time reports are possible again.
const REST: Duration = Duration::from_secs(10);

/// The damaged copies on a disk, by the offsets at which they begin.
#[derive(Debug, Default)]
pub(super) struct DiskDamage {
    at: BTreeSet<u64>,
    /// When the first report of the current period was made.
    since: Option<Instant>,
    /// Reports in the current period.
    said: u32,
    /// Copies that were found and not reported.
    unsaid: u64,
}

impl DiskDamage {
    /// Records a damaged copy. If it should be reported, returns how many others were not reported since the last report.
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

    /// Handles that the place was written anew.
    pub(super) fn mended(&mut self, offset: u64) {
        self.at.remove(&offset);
    }

    /// The number of damaged copies.
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
