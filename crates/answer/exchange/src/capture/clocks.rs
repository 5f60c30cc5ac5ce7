//! Estimates how far the clocks of captures differ, from packets that two of them saw: no packet arrives before it was sent. The least
//! difference in each direction bounds the offset; the middle of both bounds is taken, and half the distance between them is the largest
//! possible error.

use super::survey::{FingerprintSighting, SurveyedInterface};
use stackline_core::trace_index::ClockCorrection;
use stackline_core::units;
use stackline_requests::ObservedHost;
use std::collections::{BTreeMap, BTreeSet};

/// Captures shorter than this (ns) are too short to show a drift.
const LONG_NS: u64 = 10_000_000_000;
/// The fewest packets that are needed in each direction.
const FEWEST: usize = 2;

/// A packet that two hosts saw.
#[derive(Clone, Copy, Debug)]
struct PacketSightingPair {
    /// When the first host saw it, ns by that host's clock.
    at_ns: u64,
    /// How much later the second host's time stamp is, ns.
    later: i128,
    /// Whether the packet went from the first host to the second.
    there: bool,
}

/// The clock of each host against the first host's, and a sentence for each clock that was compared. `given` holds clocks that the user
/// set, in ns ahead.
pub(super) fn compare(
    hosts: &[ObservedHost],
    seen: &[Vec<(&str, &SurveyedInterface)>],
    given: &BTreeMap<String, i64>,
) -> (Vec<ClockCorrection>, Vec<Option<String>>) {
    let mut clocks = vec![ClockCorrection::default(); hosts.len()];
    let mut notes = vec![None; hosts.len()];
    let mut known: BTreeSet<usize> = BTreeSet::new();
    for (host, clock) in clocks.iter_mut().enumerate() {
        if let Some(ahead) = given.get(&hosts[host].name) {
            clock.offset_ns = *ahead;
            known.insert(host);
        }
    }
    // Each host that shares packets with a host whose clock is known gets its clock from it. A group of hosts without shared packets
    // starts from its first host.
    while known.len() < hosts.len() {
        let next = known.iter().find_map(|from| {
            let mut others = (0..hosts.len()).filter(|to| !known.contains(to));
            others.find_map(|to| Some((*from, to, clock(&pairs(hosts, seen, *from, to))?)))
        });
        let Some((from, to, found)) = next else {
            known.extend((0..hosts.len()).find(|host| !known.contains(host)));
            continue;
        };
        let before = &clocks[from];
        let here_ns = found
            .at_ns
            .saturating_add_signed(found.offset_ns.saturating_neg());
        let offset_ns = found.offset_ns.saturating_add(before.ahead_ns(here_ns));
        let error_ns = found
            .error_ns
            .map(|error| error.saturating_add(before.error_ns.unwrap_or(0)));
        let drift_ppm = found.drift_ppm + before.drift_ppm;
        clocks[to] = ClockCorrection {
            offset_ns,
            error_ns,
            drift_ppm,
            ..found
        };
        notes[to] = Some(sentence(&hosts[to].name, &hosts[from].name, &clocks[to]));
        known.insert(to);
    }
    (clocks, notes)
}

/// The sentence for the user about a host's clock.
fn sentence(name: &str, other: &str, clock: &ClockCorrection) -> String {
    let side = if clock.offset_ns < 0 {
        "behind"
    } else {
        "ahead of"
    };
    let by = units::format_time(clock.offset_ns.unsigned_abs() as f64 / 1e9);
    let error = units::format_time(clock.error_ns.unwrap_or(0) as f64 / 1e9);
    let drift = match clock.drift_ppm {
        0.0 => String::new(),
        drift => format!(" and drifts by {drift:.1} us per second"),
    };
    format!(
        "the clock of {name} is {by} {side} that of {other} (to within {error}){drift}, according to packets in both captures; times are corrected unless `--clock {name}=+0s` is specified"
    )
}

/// The packets that two hosts saw, by time.
fn pairs(
    hosts: &[ObservedHost],
    seen: &[Vec<(&str, &SurveyedInterface)>],
    one: usize,
    other: usize,
) -> Vec<PacketSightingPair> {
    let mut pairs = Vec::new();
    for (_, place) in &seen[one] {
        for (_, beside) in &seen[other] {
            let pair = |(mark, later): (FingerprintSighting, FingerprintSighting)| {
                let (from, to) = mark.ends;
                let has = |host: usize, address| hosts[host].addresses.contains(address);
                let there = match () {
                    () if has(one, &from) || has(other, &to) => true,
                    () if has(other, &from) || has(one, &to) => false,
                    () => return None,
                };
                let later = i128::from(later.at_ns) - i128::from(mark.at_ns);
                Some(PacketSightingPair {
                    at_ns: mark.at_ns,
                    later,
                    there,
                })
            };
            pairs.extend(place.marks.common(&beside.marks).filter_map(pair));
        }
    }
    pairs.sort_unstable_by_key(|pair| (pair.at_ns, pair.later));
    pairs
}

/// The least and the most by which the second host's clock can be ahead at `origin_ns`, if it gains `drift` ns per ns. `None` with too
/// few packets.
fn bounds(pairs: &[PacketSightingPair], origin_ns: u64, drift: f64) -> Option<(f64, f64)> {
    let level = |pair: &PacketSightingPair| {
        pair.later as f64 - drift * (pair.at_ns as f64 - origin_ns as f64)
    };
    let of = |there: bool| {
        pairs
            .iter()
            .filter(move |pair| pair.there == there)
            .map(level)
    };
    if of(true).count() < FEWEST || of(false).count() < FEWEST {
        return None;
    }
    Some((
        of(false).fold(f64::MIN, f64::max),
        of(true).fold(f64::MAX, f64::min),
    ))
}

/// The second host's clock; `None` if packets do not go both ways.
fn clock(pairs: &[PacketSightingPair]) -> Option<ClockCorrection> {
    let (first, last) = (pairs.first()?, pairs.last()?);
    // Clocks can be far apart, and f64 is exact only up to 2^53: offsets are taken from the first one.
    let base = first.later;
    let pairs: Vec<PacketSightingPair> = pairs
        .iter()
        .map(|pair| PacketSightingPair {
            later: pair.later - base,
            ..*pair
        })
        .collect();
    let (origin_ns, span_ns) = (first.at_ns, last.at_ns - first.at_ns);
    let (early, late) =
        pairs.split_at(pairs.partition_point(|pair| pair.at_ns < origin_ns + span_ns / 2));
    let mut drift = 0.0;
    // Which packets give the bounds of each half depends on the drift, so the estimate is repeated; it settles within a few rounds.
    for _ in 0..8 {
        let halves = (
            bounds(early, origin_ns, drift),
            bounds(late, origin_ns, drift),
        );
        let (Some(one), Some(other)) = halves else {
            break;
        };
        let middle = |(least, most): (f64, f64)| f64::midpoint(least, most);
        let error = |(least, most): (f64, f64)| f64::abs(most - least) / 2.0;
        let gained = middle(other) - middle(one);
        if span_ns < LONG_NS || (drift == 0.0 && gained.abs() <= error(one) + error(other)) {
            break;
        }
        drift += gained / (span_ns as f64 / 2.0);
    }
    let (least, most) = bounds(&pairs, origin_ns, drift)?;
    let offset_ns = base + f64::midpoint(least, most).round() as i128;
    let error = f64::abs(most - least) / 2.0;
    Some(ClockCorrection {
        offset_ns: i64::try_from(offset_ns).ok()?,
        at_ns: u64::try_from(i128::from(origin_ns) + offset_ns).ok()?,
        drift_ppm: drift / (1.0 + drift) * 1e6,
        error_ns: Some(error.ceil() as u64),
        ..ClockCorrection::default()
    })
}
