//! Converts dates and times of day to ns since 1970, by the civil calendar. It reads no clock.

use chrono::{DateTime, NaiveDate};

/// The ns since 1970 of a date and a time of day (UTC); `None` if there is no such date or time.
pub(crate) fn since_1970(
    [year, month, day]: [i128; 3],
    [hour, minute, second]: [i128; 3],
) -> Option<i128> {
    let part = |part: i128| u32::try_from(part).ok();
    // Second 60 is a leap second: it becomes second 59 plus one.
    let leap = i128::from(second == 60);
    let day = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, part(month)?, part(day)?)?;
    let time = day.and_hms_opt(part(hour)?, part(minute)?, part(second - leap)?)?;
    Some((i128::from(time.and_utc().timestamp()) + leap) * 1_000_000_000)
}

/// Writes a moment, s since 1970, as `2024-02-29T12:00:00Z` (RFC 3339).
pub(crate) fn as_rfc3339(since_1970_s: u64) -> String {
    let moment = i64::try_from(since_1970_s)
        .ok()
        .and_then(|seconds| DateTime::from_timestamp(seconds, 0))
        .unwrap_or_default();
    moment.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Parses `2024-02-29T12:00:00.5Z` (RFC 3339), with `Z` or an offset such as `+01:00` or `+0100`, to ns since 1970.
pub(crate) fn of_rfc3339(text: &str) -> Option<i128> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let zone = rest.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = rest.split_at(zone);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let moment = since_1970(numbers(date, '-')?, numbers(time, ':')?)?;
    Some(moment + fraction_ns(fraction)? - offset_ns(zone)?)
}

fn offset_ns(zone: &str) -> Option<i128> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let digits = zone.get(1..)?;
    let [hours, minutes] = match digits.len() {
        4 => numbers(&format!("{}:{}", digits.get(..2)?, digits.get(2..)?), ':')?,
        _ => numbers(digits, ':')?,
    };
    let ns = (hours * 60 + minutes) * 60_000_000_000;
    Some(if zone.starts_with('-') { -ns } else { ns })
}

/// The digits behind a decimal point as ns; digits after the ninth are ignored.
pub(crate) fn fraction_ns(digits: &str) -> Option<i128> {
    let are_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    are_digits.then(|| {
        format!("{:0<9}", &digits[..digits.len().min(9)])
            .parse()
            .ok()
    })?
}

fn numbers<const N: usize>(text: &str, by: char) -> Option<[i128; N]> {
    let number = |part: &str| {
        part.bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| part.parse::<u16>().ok())?
    };
    let parts: Option<Vec<i128>> = text
        .split(by)
        .map(|part| number(part).map(i128::from))
        .collect();
    parts?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_the_calendar() {
        assert_eq!(of_rfc3339("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(
            of_rfc3339("2024-02-29T12:00:00.5Z"),
            Some(1_709_208_000_500_000_000)
        );
        assert_eq!(
            of_rfc3339("2010-04-19T20:26:43.123456+02:00"),
            of_rfc3339("2010-04-19T18:26:43.123456Z")
        );
        assert_eq!(of_rfc3339("1969-12-31T23:59:59.999999999Z"), Some(-1));
        assert_eq!(
            of_rfc3339("2016-12-31T23:59:60Z"),
            of_rfc3339("2017-01-01T00:00:00Z")
        );
        for wrong in [
            "",
            "2024-13-01T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2023-02-29T00:00:00Z",
            "2024-01-01T00:00:00",
            "2024-01-01",
            "T+",
        ] {
            assert_eq!(of_rfc3339(wrong), None, "{wrong}");
        }
    }
}
