//! Instant and duration as integer nanoseconds: `Copy`, usable in constants, and exact when written to a file.
//!
//! They never come from a clock here; a world reads its clock and passes the instant on.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use serde::{Deserialize, Serialize};

/// Nanoseconds in a second.
pub const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A moment, in nanoseconds since an origin the world chooses (its boot, or the start of a simulation).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Instant(pub u64);

/// A length of time in nanoseconds, never negative.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Duration(pub u64);

impl Instant {
    /// The time from `earlier` to `self`; zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// The duration zero.
    pub const ZERO: Self = Self(0);

    /// From seconds, rounded to nanoseconds; negative values and NaN become zero, too large ones the largest duration.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "float-to-int casts saturate, as documented"
    )]
    pub fn from_seconds(seconds: f64) -> Self {
        Self((seconds * 1e9 + 0.5) as u64)
    }

    /// The duration in seconds.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "53 bits of nanoseconds cover 104 days exactly"
    )]
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, rhs: Self) -> Duration {
        self.since(rhs)
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.0 / NANOS_PER_SECOND, self.0 % NANOS_PER_SECOND);
        write!(f, "{seconds}.{nanos:09}")
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::units::format_time(self.seconds()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn instants_print_exactly() {
        assert_eq!(Instant(1_000_000_042).to_string(), "1.000000042");
    }

    #[test]
    fn durations_saturate_instead_of_wrapping() {
        assert_eq!(Duration::from_seconds(-1.0), Duration::ZERO);
        assert_eq!(Duration::from_seconds(f64::NAN), Duration::ZERO);
        assert_eq!(Duration::from_seconds(1e300), Duration(u64::MAX));
        assert_eq!(Instant(5) - Instant(9), Duration::ZERO);
    }
}
