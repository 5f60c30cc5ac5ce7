//! A moment as UTC text. No time zones, no calendar but the Gregorian, no clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// `(year, month, day, hour, minute, second)`; what lies before 1970 becomes 1970.
fn civil(moment: SystemTime) -> (u64, u64, u64, u64, u64, u64) {
    let seconds = moment.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01, in eras of 400 years (Hinnant, "chrono-compatible low-level date algorithms").
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day, time / 3600, time / 60 % 60, time % 60)
}

/// `20261120-235831`, as in the name of a run directory.
pub(crate) fn stamp(moment: SystemTime) -> String {
    let (year, month, day, hour, minute, second) = civil(moment);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

/// `2026-11-20T23:58:31Z`.
pub(crate) fn iso(moment: SystemTime) -> String {
    let (year, month, day, hour, minute, second) = civil(moment);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn known_moments() {
        let at = |seconds| iso(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_767_225_599), "2025-12-31T23:59:59Z");
        assert_eq!(
            stamp(UNIX_EPOCH + Duration::from_secs(1_709_210_096)),
            "20240229-123456"
        );
    }
}
