//! How far clocks of captures differ, by packets that two of them saw: nothing arrives before it was sent. The least difference in
//! each direction bounds the offset; it is taken in the middle, and half their sum is the most that it can be wrong by.

use super::survey::{FingerprintSighting, SurveyedInterface};
use stackline_core::trace_index::ClockCorrection;
use stackline_core::units;
use stackline_requests::ObservedHost;
use std::collections::{BTreeMap, BTreeSet};

/// A drift shows within no less than this.
const LONG_NS: u64 = 10_000_000_000;
/// Packets in each direction that are the fewest.
const FEWEST: usize = 2;

/// A packet that two places saw: when the one did, how much later the other's clock was, and whether it went from the one to the other.
#[derive(Clone, Copy, Debug)]
struct PacketSightingPair {
    at_ns: u64,
    later: i128,
    there: bool,
}

/// Clocks against the first host's, and what is to be said of them.
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
    // Each host that shares packets with one whose clock is known, from there on; each island begins with its first.
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

/// Packets that two hosts saw.
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

/// At least and at most so far is the other's clock ahead, by those packets, when it gains so much.
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

/// The other's clock; `None` where nothing goes both ways.
fn clock(pairs: &[PacketSightingPair]) -> Option<ClockCorrection> {
    let (first, last) = (pairs.first()?, pairs.last()?);
    // The times of day of two clocks can be far apart, and numbers with a fraction are exact to 2^53.
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
    // What the least of each half is depends on the drift: it settles within a few rounds.
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
