//! What of a trace is kept, so that its events stay within a bound on disk however long it goes on: all until half of it is full, then
//! that of one second in four, in sixteen, and so on, the fewer the less is left. Requests that were made for one another come close
//! together, and so do packets of one request: whole seconds keep them together.

/// What events of a trace take on disk where nothing else is asked for, bytes.
pub const DISK_BYTES: u64 = 8 << 30;

/// Whole seconds are kept, or left out.
const SECOND_NS: u64 = 1_000_000_000;

/// What is kept of one trace: requests, or events of its network.
#[derive(Clone, Copy, Debug)]
pub struct DiskSample {
    most_bytes: u64,
    written: u64,
    /// Of so many seconds one is kept; what was left out of the others.
    largest_stride: u64,
    left_out: u64,
}

impl DiskSample {
    /// Of events that take so many bytes on disk.
    #[must_use]
    pub const fn new(most_bytes: u64) -> Self {
        Self {
            most_bytes,
            written: 0,
            largest_stride: 1,
            left_out: 0,
        }
    }

    /// So many bytes of events more were written.
    pub const fn wrote(&mut self, bytes: u64) {
        self.written = self.written.saturating_add(bytes);
    }

    /// So many bytes of events were written by now.
    pub const fn has_written(&mut self, bytes: u64) {
        self.written = bytes;
    }

    /// Whether what began at that moment is kept.
    pub fn takes(&mut self, begin_ns: u64) -> bool {
        let free = self.most_bytes.saturating_sub(self.written);
        if free == 0 {
            return self.leaves_out(u64::MAX);
        }
        // By the square, so that what is left is halved in twice the time each time, and every hour has its part.
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

    fn leaves_out(&mut self, stride: u64) -> bool {
        self.largest_stride = self.largest_stride.max(stride);
        self.left_out += 1;
        false
    }

    /// What is to be said of it, if anything was left out; `what` says in the plural of what.
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

/// The second of a moment, of those that are kept or left out.
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
    fn what_has_room_is_whole_and_what_has_none_is_nothing() {
        let (hours, sample) = day(4 << 30);
        assert!(hours.iter().all(|kept| *kept == 36_000) && sample.note("requests").is_none());
        let mut full = DiskSample::new(1000);
        full.wrote(1000);
        assert!(!full.takes(0));
        assert!(full.note("requests").unwrap().ends_with("none at the end"));
    }
}
