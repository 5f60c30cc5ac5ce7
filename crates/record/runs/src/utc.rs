//! A moment as text in UTC.

use chrono::{DateTime, SecondsFormat, Utc};
use std::time::SystemTime;

/// As `20261120-235831`, the beginning of a run directory's name.
pub(crate) fn stamp(moment: SystemTime) -> String {
    DateTime::<Utc>::from(moment)
        .format("%Y%m%d-%H%M%S")
        .to_string()
}

/// As `2026-11-20T23:58:31Z`.
#[must_use]
pub fn iso_utc(moment: SystemTime) -> String {
    DateTime::<Utc>::from(moment).to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn known_moments() {
        let at = |seconds| iso_utc(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_767_225_599), "2025-12-31T23:59:59Z");
        assert_eq!(
            stamp(UNIX_EPOCH + Duration::from_secs(1_709_210_096)),
            "20240229-123456"
        );
    }
}
