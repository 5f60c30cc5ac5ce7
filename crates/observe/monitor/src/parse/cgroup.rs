//! `/proc/self/cgroup` and the CPU quota files, of both versions.

/// The path of this process in version 2, and in the version 1 hierarchy that holds the `cpu` controller.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Paths {
    /// Version 2.
    pub(crate) unified: Option<String>,
    /// Version 1.
    pub(crate) cpu: Option<String>,
}

/// Reads `/proc/self/cgroup`.
pub(crate) fn parse_paths(text: &str) -> Paths {
    let mut paths = Paths::default();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        if let (Some(controllers), Some(path)) = (parts.next(), parts.next()) {
            match controllers {
                "" => paths.unified = Some(path.to_owned()),
                list if list.split(',').any(|name| name == "cpu") => {
                    paths.cpu = Some(path.to_owned())
                }
                _ => {}
            }
        }
    }
    paths
}

/// Processors' worth of time that `cpu.max` (`max 100000`, `150000 100000`) allows; `None` without a limit.
pub(crate) fn parse_quota(text: &str) -> Option<f64> {
    let mut words = text.split_ascii_whitespace();
    share(words.next()?, words.next()?)
}

/// The same from the two files of version 1, where -1 means no limit.
pub(crate) fn share(quota_us: &str, period_us: &str) -> Option<f64> {
    let (quota, period): (u64, u64) = (quota_us.parse().ok()?, period_us.parse().ok()?);
    (period > 0).then(|| quota as f64 / period as f64)
}

/// How often, and for how long, a quota throttled a group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Throttling {
    /// Periods in which the group ran.
    pub(crate) periods: u64,
    /// Periods in which it was throttled.
    pub(crate) throttled: u64,
    /// Nanoseconds it was throttled, summed over its processors.
    pub(crate) throttled_ns: u64,
}

/// Reads `cpu.stat` of either version; `None` when the file does not count throttling.
pub(crate) fn throttling(text: &str) -> Option<Throttling> {
    let values = super::name_values::counters(text);
    let nanoseconds = values.get("throttled_time").copied();
    let microseconds = || {
        values
            .get("throttled_usec")
            .and_then(|us| us.checked_mul(1000))
    };
    Some(Throttling {
        periods: *values.get("nr_periods")?,
        throttled: *values.get("nr_throttled")?,
        throttled_ns: nanoseconds.or_else(microseconds)?,
    })
}
