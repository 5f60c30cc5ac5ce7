//! Chooses which events of a trace are kept, so that they stay within a limit on disk however long the trace is. Until
//! half of the limit is used all are kept; then those of one second in 4, in 16, and so on, fewer as less space is
//! left. Whole seconds are kept because related requests, and the packets of one request, are close together in time.

use nix::sys::statvfs::statvfs;
use std::path::Path;

/// The default limit on the disk space of a trace's events, in bytes.
pub const DISK_BYTES: u64 = 8 << 30;

/// The share of a disk's free space that events may take: when a trace ends, they are written a second time, in order, and
/// others use the disk too.
const SHARE_OF_FREE: u64 = 4;

/// How many bytes events may take in a directory: `most_bytes`, but no more than a quarter of what is free there.
#[must_use]
pub fn bound_by_free_space(most_bytes: u64, directory: &Path) -> u64 {
    let free_bytes = statvfs(directory).map_or(u64::MAX, |disk| {
        disk.blocks_available().saturating_mul(disk.fragment_size())
    });
    most_bytes.min(free_bytes / SHARE_OF_FREE)
}

/// The unit of sampling: the events of a whole second are kept or left out together.
const SECOND_NS: u64 = 1_000_000_000;

/// The sampling of one kind of data of a trace: requests, or events of its network.
#[derive(Clone, Copy, Debug)]
pub struct DiskSample {
    /// The limit on disk space, bytes.
    most_bytes: u64,
    /// Bytes of events written so far.
    written: u64,
    /// The largest stride so far: one second in this many is kept; `u64::MAX` when none is.
    largest_stride: u64,
    /// Number of items left out.
    left_out: u64,
}

impl DiskSample {
    /// A sampling with this limit on disk space.
    #[must_use]
    pub const fn new(most_bytes: u64) -> Self {
        Self {
            most_bytes,
            written: 0,
            largest_stride: 1,
            left_out: 0,
        }
    }

    /// Reports that `bytes` more bytes of events were written.
    pub const fn wrote(&mut self, bytes: u64) {
        self.written = self.written.saturating_add(bytes);
    }

    /// Reports that `bytes` bytes of events have been written in all.
    pub const fn has_written(&mut self, bytes: u64) {
        self.written = bytes;
    }

    /// Whether an item that began at this moment is kept.
    pub fn takes(&mut self, begin_ns: u64) -> bool {
        let free = self.most_bytes.saturating_sub(self.written);
        if free == 0 {
            return self.leaves_out(u64::MAX);
        }
        // The stride grows with the square of the scarcity, so that each halving of the free space takes twice as long
        // as the one before and every hour keeps a share.
        let scarcity = (self.most_bytes / 2).div_ceil(free);
        let stride = scarcity
            .saturating_mul(scarcity)
            .checked_next_power_of_two();
        let stride = stride.unwrap_or(1 << 63);
        let second = second_of(begin_ns);
        if !second.is_multiple_of(stride) {
            return self.leaves_out(stride);
        }
        self.largest_stride = self.largest_stride.max(stride);
        true
    }

    /// Counts an item that is left out. Always false, the result of [`Self::takes`].
    fn leaves_out(&mut self, stride: u64) -> bool {
        self.largest_stride = self.largest_stride.max(stride);
        self.left_out += 1;
        false
    }

    /// A sentence for the report, if anything was left out; `what` names the items in the plural.
    #[must_use]
    pub fn note(&self, what: &str) -> Option<String> {
        let Self {
            most_bytes,
            largest_stride,
            left_out,
            ..
        } = self;
        let kept = match *largest_stride {
            u64::MAX => "none at the end".to_owned(),
            stride => format!("only those from one second in {stride} at the end"),
        };
        (*left_out > 0).then(|| {
            format!(
                "{what} are a sample, with {left_out} left out because at most {} MiB may be used on disk (--most-disk); all were kept until half of that was used, then fewer, and {kept}",
                most_bytes >> 20
            )
        })
    }
}

/// The second of a moment (ns), the unit of sampling.
#[must_use]
pub const fn second_of(at_ns: u64) -> u64 {
    at_ns / SECOND_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A day at so many requests a second of a kilobyte each: what was kept of each hour, and what was written.
    fn day(most_bytes: u64) -> (Vec<u64>, DiskSample) {
        let (mut sample, mut hours) = (DiskSample::new(most_bytes), vec![0; 24]);
        for second in 0..24 * 3600_u64 {
            for number in 0..10 {
                if sample.takes(second * SECOND_NS + number) {
                    sample.wrote(1000);
                    hours[(second / 3600) as usize] += 1;
                }
            }
        }
        (hours, sample)
    }

    #[test]
    fn a_day_stays_within_its_bound_and_has_some_of_every_hour() {
        let (hours, sample) = day(100 << 20);
        assert!(sample.written <= 100 << 20, "{}", sample.written);
        assert_eq!(hours[0], 36_000, "all, as long as half is free");
        assert!(hours.iter().all(|kept| *kept > 50), "{hours:?}");
        let note = sample.note("requests").unwrap();
        assert!(note.starts_with("requests are a sample, ") && note.contains("at most 100 MiB"));
    }

    #[test]
    fn no_limit_exceeds_a_quarter_of_the_disk() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let disk = statvfs(here).unwrap();
        let quarter = disk.blocks() * disk.fragment_size() / SHARE_OF_FREE;
        assert!(bound_by_free_space(u64::MAX, here) <= quarter);
        assert_eq!(bound_by_free_space(1, here), 1);
        // A disk that cannot be asked limits nothing: writing will say why.
        assert_eq!(bound_by_free_space(7, Path::new("/absent")), 7);
    }

    #[test]
    fn what_has_room_is_whole_and_what_has_none_is_nothing() {
        let (hours, sample) = day(4 << 30);
        assert!(hours.iter().all(|kept| *kept == 36_000) && sample.note("requests").is_none());
        let mut full = DiskSample::new(1000);
        full.wrote(1000);
        assert!(!full.takes(0));
        assert!(full.note("requests").unwrap().ends_with("none at the end"));
    }
}
