//! Which stretch of the way limits a session: inside hosts, or beyond those that answer.

use crate::findings::rows::EventRows;
use crate::profile::Profile;
use crate::statistics::to_f64;
use stackline_events::catalogue::is_work;
use std::collections::BTreeMap;

/// A stretch of the way that limits: the same one of several hosts.
#[derive(Clone, Debug)]
pub(crate) struct LimitingStretch {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Share of the time, hosts by how much of what was given up was theirs.
    pub(crate) share: f64,
    /// Each host's own share, the largest first.
    pub(crate) hosts: Vec<(String, f64)>,
    /// Whether units wait apart for those that are served.
    pub(crate) has_room: bool,
}

impl LimitingStretch {
    /// What is beyond the hosts that answer, at no point in particular.
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

/// What a point is called.
pub(crate) fn keyword<'c>(log: &EventRows<'c>, point: u32) -> &'c str {
    &log.input.lifelines.points[point as usize].keyword
}

/// Hosts that units come back from.
pub(crate) fn answering(profiles: &[Profile]) -> impl Iterator<Item = &Profile> {
    profiles.iter().filter(|profile| profile.answers())
}

/// What limits inside hosts, and what does beyond those that answer.
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

/// How much each host that answers counts: by what was given up there, or else by the time that units were there.
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
