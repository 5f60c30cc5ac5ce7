//! The header Range for the bytes of a set (RFC 9110, section 14.2). One range is served, several are refused.

/// The bytes that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GatewayRangeRequest {
    /// All: there is no header, or none that is understood, which means the same (section 14.2).
    All,
    /// From one byte to another, both included and within the set.
    Part(u64, u64),
    /// Bytes outside the set.
    Nowhere,
    /// More than one range.
    Several,
}

/// Parses the header for a set of `length` bytes.
pub(super) fn parse_range(header: Option<&str>, length: u64) -> GatewayRangeRequest {
    let Some(set) = header.and_then(ranges) else {
        return GatewayRangeRequest::All;
    };
    // Empty elements of a list are ignored (section 5.6.1).
    let mut elements = set
        .split(',')
        .map(str::trim)
        .filter(|element| !element.is_empty());
    let (one, another) = (elements.next(), elements.next());
    if another.is_some() {
        return GatewayRangeRequest::Several;
    }
    let Some((first, last)) = one.and_then(|one| one.split_once('-')) else {
        return GatewayRangeRequest::All;
    };
    match (position(first), position(last)) {
        (Some(Some(first)), Some(last)) => {
            let last = last.unwrap_or(u64::MAX);
            match first {
                _ if last < first => GatewayRangeRequest::All,
                _ if first >= length => GatewayRangeRequest::Nowhere,
                _ => GatewayRangeRequest::Part(first, last.min(length - 1)),
            }
        }
        // A suffix: the last bytes of the set.
        (Some(None), Some(Some(suffix))) => match suffix {
            0 => GatewayRangeRequest::Nowhere,
            _ if length == 0 => GatewayRangeRequest::Nowhere,
            _ => GatewayRangeRequest::Part(length.saturating_sub(suffix), length - 1),
        },
        _ => GatewayRangeRequest::All,
    }
}

/// The part after the unit `bytes`, whose letters may have any case.
fn ranges(header: &str) -> Option<&str> {
    let (unit, set) = header.split_once('=')?;
    unit.trim().eq_ignore_ascii_case("bytes").then_some(set)
}

/// A number that may be missing (`Some(None)`); `None` if the text is not a number. A number that is too large becomes the largest.
fn position(text: &str) -> Option<Option<u64>> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(if text.is_empty() {
        None
    } else {
        Some(text.parse().unwrap_or(u64::MAX))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_rfc_9110() {
        for (header, is) in [
            ("bytes=0-499", GatewayRangeRequest::Part(0, 499)),
            ("bytes=500-999", GatewayRangeRequest::Part(500, 999)),
            ("bytes=-500", GatewayRangeRequest::Part(9500, 9999)),
            ("bytes=9500-", GatewayRangeRequest::Part(9500, 9999)),
            ("bytes=0-0", GatewayRangeRequest::Part(0, 0)),
            (
                "bytes=9999-99999999999999999999999",
                GatewayRangeRequest::Part(9999, 9999),
            ),
            ("bytes=-20000", GatewayRangeRequest::Part(0, 9999)),
            ("Bytes=1-2", GatewayRangeRequest::Part(1, 2)),
            ("bytes=10000-", GatewayRangeRequest::Nowhere),
            ("bytes=-0", GatewayRangeRequest::Nowhere),
            ("bytes=0-0,-1", GatewayRangeRequest::Several),
            ("bytes=0-0,", GatewayRangeRequest::Part(0, 0)),
            ("bytes=, ,5-6 ,", GatewayRangeRequest::Part(5, 6)),
            ("bytes=,", GatewayRangeRequest::All),
            ("bytes=2-1", GatewayRangeRequest::All),
            ("bytes=-", GatewayRangeRequest::All),
            ("bytes=", GatewayRangeRequest::All),
            ("bytes=a-b", GatewayRangeRequest::All),
            ("bytes=1-2-3", GatewayRangeRequest::All),
            ("lines=0-1", GatewayRangeRequest::All),
            ("0-1", GatewayRangeRequest::All),
        ] {
            assert_eq!(parse_range(Some(header), 10_000), is, "{header}");
        }
        assert_eq!(parse_range(None, 10_000), GatewayRangeRequest::All);
    }
}
