//! Parses times as servers write them: dates and durations.

use crate::moment::{fraction_ns, of_rfc3339, since_1970};

/// A second in ns.
pub(super) const SECOND: u64 = 1_000_000_000;

/// Parses a date in any format that logs use; returns ns since 1970 and the resolution in ns.
pub(super) fn moment(text: &str) -> Option<(u64, u64)> {
    let fraction = |text: &str| {
        let digits = text.split_once('.').map_or(0, |(_, behind)| {
            behind.bytes().take_while(u8::is_ascii_digit).count()
        });
        SECOND / 10_u64.pow(digits.min(9) as u32)
    };
    if let Some(ns) = of_rfc3339(text) {
        return Some((u64::try_from(ns).ok()?, fraction(text)));
    }
    let (whole, behind) = text.split_once('.').unwrap_or((text, ""));
    if !whole.is_empty() && whole.bytes().all(|byte| byte.is_ascii_digit()) {
        return number(
            whole.parse().ok()?,
            u64::try_from(fraction_ns(behind).unwrap_or(0)).ok()?,
            fraction(text),
        );
    }
    Some((ncsa_moment(text)?, fraction(text)))
}

/// A number of seconds, ms, us or ns since 1970; its size decides which.
fn number(whole: u64, fraction_ns: u64, resolution_ns: u64) -> Option<(u64, u64)> {
    let unit = match whole {
        0..100_000_000_000 => {
            return Some((
                whole.checked_mul(SECOND)?.checked_add(fraction_ns)?,
                resolution_ns,
            ));
        }
        100_000_000_000..100_000_000_000_000 => 1_000_000,
        100_000_000_000_000..100_000_000_000_000_000 => 1_000,
        _ => 1,
    };
    Some((whole.checked_mul(unit)?, unit))
}

/// Parses `10/Oct/2000:13:55:36 -0700`, with or without a fraction; without a zone (haproxy) it is UTC.
fn ncsa_moment(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (time, zone) = text.split_once(' ').unwrap_or((text, "+0000"));
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut parts = time.split(['/', ':']);
    let mut next = || parts.next();
    let number = |text: Option<&str>| text?.parse::<u16>().ok().map(i128::from);
    let day = number(next())?;
    let month = next()?;
    let month = MONTHS.iter().position(|name| *name == month)? as i128 + 1;
    let (year, hour, minute, second) = (
        number(next())?,
        number(next())?,
        number(next())?,
        number(next())?,
    );
    let (sign, zone) = zone
        .strip_prefix('-')
        .map_or((1, zone.trim_start_matches('+')), |zone| (-1, zone));
    let zone = number(Some(zone).filter(|zone| zone.len() == 4))?;
    let ahead = sign * ((zone / 100) * 60 + zone % 100) * 60_000_000_000;
    let moment = since_1970([year, month, day], [hour, minute, second])?;
    u64::try_from(moment + fraction_ns(fraction)? - ahead).ok()
}

/// The sum of a list of seconds with a fraction, ns: one for each server that was tried (`0.010, 0.080`, further groups behind a colon),
/// `-` for one that did not answer. `Some(None)` if none answered; `None` if a part is something else.
pub(super) fn seconds(list: &str) -> Option<Option<u64>> {
    let parts = list.split([',', ':']).map(str::trim);
    let mut sum = None;
    for part in parts.filter(|part| !part.is_empty() && *part != "-") {
        let (whole, fraction) = part.split_once('.')?;
        let whole: u64 = digits(whole)?;
        let fraction =
            u64::try_from(fraction_ns(fraction).filter(|_| !fraction.is_empty())?).ok()?;
        let ns = whole.checked_mul(SECOND)?.checked_add(fraction)?;
        sum = Some(sum.unwrap_or(0_u64).checked_add(ns)?);
    }
    Some(sum)
}

/// Parses a whole number that has digits only.
pub(super) fn digits(text: &str) -> Option<u64> {
    let are_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    are_digits.then(|| text.parse().ok())?
}

/// Parses a number with its unit (`21ms`) to ns.
pub(super) fn with_unit(text: &str) -> Option<u64> {
    let digits = text
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(text.len());
    let (value, unit) = text.split_at(digits);
    let scale = unit_ns(unit)?;
    scaled(value, scale)
}

/// The length of a unit in ns.
pub(super) fn unit_ns(unit: &str) -> Option<f64> {
    Some(match unit {
        "s" => 1e9,
        "ms" => 1e6,
        "us" | "µs" | "μs" => 1e3,
        "ns" => 1.0,
        _ => return None,
    })
}

/// Parses a number of units to ns.
pub(super) fn scaled(number: &str, unit_ns: f64) -> Option<u64> {
    let ns = number.parse::<f64>().ok()? * unit_ns;
    (ns.is_finite() && (0.0..1e18).contains(&ns)).then(|| ns.round() as u64)
}
