//! Which stretches limit a session (a run without measurements, whose units are followed through events). A stretch is the part of the
//! units' path between two consecutive events; it lies inside a host, or beyond the hosts that answer (the servers).

use crate::findings::rows::EventRows;
use crate::profile::Profile;
use crate::statistics::to_f64;
use stackline_events::catalogue::is_work;
use std::collections::BTreeMap;

/// A stretch that limits, together on all hosts where it occurs.
#[derive(Clone, Debug)]
pub(crate) struct LimitingStretch {
    /// Index of the lifeline point where it begins (on one of the hosts).
    pub(crate) from: u32,
    /// Index of the lifeline point where it ends.
    pub(crate) to: u32,
    /// The share of the time that it limits: the mean over servers by their weights, or the greatest of other hosts.
    pub(crate) share: f64,
    /// Each host's own share, the largest first.
    pub(crate) hosts: Vec<(String, f64)>,
    /// Whether units that wait for it are seen in a stretch of their own before it.
    pub(crate) has_room: bool,
}

impl LimitingStretch {
    /// A limit beyond the servers, at no point in particular.
    pub(crate) const fn beyond(share: f64, hosts: Vec<(String, f64)>) -> Self {
        Self {
            from: 0,
            to: 0,
            share,
            hosts,
            has_room: false,
        }
    }
}

/// The keyword of the events at a lifeline point.
pub(crate) fn keyword<'c>(log: &EventRows<'c>, point: u32) -> &'c str {
    &log.input.lifelines.points[point as usize].keyword
}

/// The profiles of servers: hosts that units come back from.
pub(crate) fn answering(profiles: &[Profile]) -> impl Iterator<Item = &Profile> {
    profiles.iter().filter(|profile| profile.answers())
}

/// The stretches that limit inside hosts, and the one beyond the servers that limits most.
pub(crate) fn limiting(
    profiles: &[Profile],
    log: &EventRows<'_>,
) -> (Vec<LimitingStretch>, Option<LimitingStretch>) {
    let mut found: BTreeMap<(bool, &str, &str), LimitingStretch> = BTreeMap::new();
    let weights = weights(profiles);
    for (profile, weight) in profiles.iter().zip(weights) {
        for (at, stretch) in profile
            .stretches
            .iter()
            .enumerate()
            .filter(|(_, stretch)| stretch.limits_ns > 0)
        {
            let (from, to) = (keyword(log, stretch.from), keyword(log, stretch.to));
            let key = (stretch.leaves && !is_work(to), from, to);
            let has_room = profile
                .stretches
                .iter()
                .any(|one| one.waits_for == Some(at));
            let (from, to) = (stretch.from, stretch.to);
            let limit = found.entry(key).or_insert(LimitingStretch {
                from,
                to,
                share: 0.0,
                hosts: Vec::new(),
                has_room,
            });
            let share = profile.share(stretch.limits_ns);
            limit.hosts.push((profile.host.clone(), share));
            limit.share = if profile.answers() {
                limit.share + weight * share
            } else {
                limit.share.max(share)
            };
        }
    }
    found
        .values_mut()
        .for_each(|limit| limit.hosts.sort_by(|a, b| b.1.total_cmp(&a.1)));
    let (beyond, inside): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|((leaves, ..), _)| *leaves);
    let beyond = beyond
        .into_iter()
        .map(|(_, limit)| limit)
        .max_by(|a, b| a.share.total_cmp(&b.share));
    (inside.into_iter().map(|(_, limit)| limit).collect(), beyond)
}

/// The weight of each host, 0 for hosts that do not answer: by the number of units given up there, or if none were by the time that units
/// spent there.
fn weights(profiles: &[Profile]) -> Vec<f64> {
    let given_up = profiles
        .iter()
        .filter(|profile| profile.answers())
        .map(|profile| profile.flushed)
        .sum::<u64>()
        > 0;
    let of = |profile: &Profile| match (profile.answers(), given_up) {
        (false, _) => 0,
        (true, true) => profile.flushed,
        (true, false) => profile
            .stretches
            .iter()
            .map(|stretch| stretch.unit_ns)
            .sum(),
    };
    let all: u64 = profiles.iter().map(of).sum();
    profiles
        .iter()
        .map(|profile| to_f64(of(profile)) / to_f64(all.max(1)))
        .collect()
}
