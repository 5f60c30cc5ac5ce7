//! The formats of `/proc/self/cgroup` and the CPU quota files, of both versions: text in, plain data out.

use std::collections::BTreeMap;

/// The control group of a process: its path in version 2, and in the version 1 hierarchy that has the `cpu` controller.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Paths {
    /// The path in version 2.
    pub unified: Option<String>,
    /// The path in version 1.
    pub cpu: Option<String>,
}

/// Reads `/proc/self/cgroup`.
#[must_use]
pub fn parse_paths(text: &str) -> Paths {
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

/// The CPU time that `cpu.max` (such as `max 100000`, `150000 100000`) allows, in processors; `None` without a limit.
#[must_use]
pub fn parse_quota(text: &str) -> Option<f64> {
    let mut words = text.split_ascii_whitespace();
    share(words.next()?, words.next()?)
}

/// The same from the contents of the two files of version 1, where a quota of -1 means no limit.
#[must_use]
pub fn share(quota_us: &str, period_us: &str) -> Option<f64> {
    let (quota, period): (u64, u64) = (quota_us.parse().ok()?, period_us.parse().ok()?);
    (period > 0).then(|| quota as f64 / period as f64)
}

/// How often, and for how long, a quota throttled a group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Throttling {
    /// Periods in which the group ran.
    pub periods: u64,
    /// Periods in which it was throttled.
    pub throttled: u64,
    /// How long it was throttled, ns, summed over its processors.
    pub throttled_ns: u64,
}

/// Reads `cpu.stat` of either version; `None` if the file has no throttling counters.
#[must_use]
pub fn throttling(text: &str) -> Option<Throttling> {
    let values = counters(text);
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

/// Reads lines of a name and a value, such as `pswpin 0`; other lines are skipped.
#[must_use]
pub fn counters(text: &str) -> BTreeMap<&str, u64> {
    text.lines()
        .filter_map(|line| {
            let (name, value) = line.split_once(' ')?;
            Some((name, value.trim().parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_groups_of_both_versions() {
        let paths = parse_paths("9:name=systemd:/\n4:cpu,cpuacct:/docker/x\n0::/user.slice\n");
        assert_eq!(
            (paths.unified.as_deref(), paths.cpu.as_deref()),
            (Some("/user.slice"), Some("/docker/x"))
        );
        assert_eq!(parse_quota("150000 100000\n"), Some(1.5));
        assert_eq!(parse_quota("max 100000\n"), None);
        assert_eq!(share("-1", "100000"), None);
        assert_eq!(share("1", "0"), None);
        let one = throttling("nr_periods 9\nnr_throttled 2\nthrottled_time 3000\n").unwrap();
        let two =
            throttling("usage_usec 5\nnr_periods 9\nnr_throttled 2\nthrottled_usec 3\n").unwrap();
        assert_eq!(one, two);
        assert_eq!(throttling("usage_usec 5\n"), None);
    }
}
