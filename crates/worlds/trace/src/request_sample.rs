//! Which requests a trace keeps, so that its events stay within a bound on disk however long it goes on: all of them until half of it is
//! full, then those of one second in four, in sixteen, and so on, the fewer the less is left. Requests that were made for one another come
//! close together, so whole seconds keep them together.

/// What events of a trace take on disk where nothing else is asked for, bytes.
pub const DISK_BYTES: u64 = 8 << 30;

/// Requests of whole seconds are kept, or left out.
const SECOND_NS: u64 = 1_000_000_000;

/// What is kept of one trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestSample {
    most_bytes: u64,
    written: u64,
    /// Of so many seconds one is kept; what was left out of the others.
    largest_stride: u64,
    left_out: u64,
}

impl RequestSample {
    /// Of events that take so many bytes on disk.
    pub(crate) const fn new(most_bytes: u64) -> Self {
        Self {
            most_bytes,
            written: 0,
            largest_stride: 1,
            left_out: 0,
        }
    }

    /// So many bytes of events were written.
    pub(crate) const fn wrote(&mut self, bytes: u64) {
        self.written = self.written.saturating_add(bytes);
    }

    /// Whether a request that began at that moment is kept.
    pub(crate) fn takes(&mut self, begin_ns: u64) -> bool {
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
        let second = begin_ns / SECOND_NS;
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

    /// What is to be said of it, if anything was left out.
    pub(crate) fn note(&self) -> Option<String> {
        let Self {
            most_bytes,
            largest_stride,
            left_out,
            ..
        } = self;
        let kept = match *largest_stride {
            u64::MAX => "none at the end".to_owned(),
            stride => format!("those of one second in {stride} at the end"),
        };
        (*left_out > 0).then(|| {
            format!(
                "requests are a sample: {left_out} were left out, as events may take {} MiB on disk (--most-disk); kept are all until half of that was full, then fewer, {kept}",
                most_bytes >> 20
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A day at so many requests a second of a kilobyte each: what was kept of each hour, and what was written.
    fn day(most_bytes: u64) -> (Vec<u64>, RequestSample) {
        let (mut sample, mut hours) = (RequestSample::new(most_bytes), vec![0; 24]);
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
        let note = sample.note().unwrap();
        assert!(note.starts_with("requests are a sample: ") && note.contains("100 MiB on disk"));
    }

    #[test]
    fn what_has_room_is_whole_and_what_has_none_is_nothing() {
        let (hours, sample) = day(4 << 30);
        assert!(hours.iter().all(|kept| *kept == 36_000) && sample.note().is_none());
        let mut full = RequestSample::new(1000);
        full.wrote(1000);
        assert!(!full.takes(0));
        assert!(full.note().unwrap().ends_with("none at the end"));
    }
}
