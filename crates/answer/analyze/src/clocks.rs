//! Checks and corrects the clocks of logs that come from several hosts, by causality: a message cannot arrive before it was sent.
//!
//! A host that begins and ends a unit (the *outer* host) encloses what another (the *inner*) host did for the unit. Such a unit is
//! an exchange of four times as in NTP (RFC 5905, section 8): asked, heard, answered, returned. [`stackline_core::clock_offset`]
//! finds the offset that agrees with all exchanges. That the one host encloses the other must be known: from spans that name their
//! parents, from stackline's own calls, or because the time on the one follows the time on the other from unit to unit. A clock is
//! corrected only if its times are impossible as they are. Times that look wrong without a proof give a doubt, one sentence. This
//! module reads no system clock and changes no event.

mod pairs;

use pairs::{HostPairExchanges, UnitSightings, fastest};
use stackline_core::clock_offset::Offset;
use stackline_core::trace_index::{ClockCorrection, ClockExchange, Index};
use stackline_core::units;
use stackline_events::EventTable;
use std::collections::{BTreeMap, BTreeSet};

/// A pair's exchanges are divided in the order of time into this many parts; the fastest exchange of each part is used.
const PARTS: usize = 64;
/// With fewer exchanges than this, nothing is concluded about a host's clock.
const FEWEST: usize = 4;

/// Takes events ([`Causality::add`]) and finds what is wrong with the clocks of their hosts ([`Causality::finish`]).
#[derive(Debug)]
pub struct Causality<'i> {
    index: &'i Index,
    seen: UnitSightings,
}

/// Corrections of clocks, and doubts about them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clocks {
    /// The host to whose clock the others are corrected; absent if none is corrected.
    pub reference: Option<String>,
    /// By host: the correction of a clock that is wrong, with a sentence that describes it.
    pub corrected: BTreeMap<String, (ClockCorrection, String)>,
    /// By host: a sentence about times that look wrong, where it cannot be decided which clock is.
    pub doubts: BTreeMap<String, String>,
}

/// What causality says about the clocks of two hosts.
enum ClockVerdict {
    /// The times are possible as they are.
    Fits,
    /// The inner host's clock differs from the outer's by this correction.
    Wrong(ClockCorrection),
    /// The times are impossible or unlikely, but which clock is wrong, or whether one is, cannot be decided; a sentence says so.
    Doubtful(String),
}

impl<'i> Causality<'i> {
    /// Without events. Corrections that the index has are applied to the times.
    #[must_use]
    pub fn new(index: &'i Index) -> Self {
        Self {
            index,
            seen: UnitSightings::default(),
        }
    }

    /// The data fields of events that [`Causality::add`] reads.
    #[must_use]
    pub const fn fields() -> [usize; 3] {
        pairs::FIELDS
    }

    /// Adds events, in any order.
    pub fn add(&mut self, table: &EventTable) {
        self.seen.add(table, self.index);
    }

    /// The clocks, after all events are added. Corrections are chained from the reference host outwards, from pair to pair.
    #[must_use]
    pub fn finish(self) -> Clocks {
        let pairs = self.seen.pairs();
        let mut clocks = Clocks::default();
        let mut wrong: Vec<(&HostPairExchanges, ClockCorrection)> = Vec::new();
        let mut fitting: Vec<&HostPairExchanges> = Vec::new();
        for pair in &pairs {
            match verdict(pair) {
                ClockVerdict::Wrong(clock) if self.is_free(&pair.inner) => {
                    wrong.push((pair, clock))
                }
                ClockVerdict::Wrong(clock) if self.is_within_error(&pair.inner, &clock) => {}
                ClockVerdict::Wrong(clock) => drop(
                    clocks
                        .doubts
                        .insert(pair.inner.clone(), contradicts(pair, &clock)),
                ),
                ClockVerdict::Doubtful(doubt) => {
                    drop(clocks.doubts.insert(pair.inner.clone(), doubt))
                }
                ClockVerdict::Fits => fitting.push(pair),
            }
        }
        let inner: BTreeSet<&str> = wrong.iter().map(|(pair, _)| pair.inner.as_str()).collect();
        let root = wrong
            .iter()
            .map(|(pair, _)| pair.outer.as_str())
            .find(|outer| !inner.contains(outer));
        let Some(root) = root else { return clocks };
        clocks.reference = Some(root.to_owned());
        let mut known: BTreeMap<&str, ClockCorrection> =
            BTreeMap::from([(root, ClockCorrection::default())]);
        let fits = fitting
            .iter()
            .map(|pair| (*pair, ClockCorrection::default()));
        // A pair that proves an offset goes before one whose times merely fit.
        let steps: Vec<(&HostPairExchanges, ClockCorrection)> =
            wrong.into_iter().chain(fits).collect();
        while let Some((pair, clock)) = steps.iter().find(|(pair, _)| {
            known.contains_key(&pair.outer[..]) && !known.contains_key(&pair.inner[..])
        }) {
            let clock = known[&pair.outer[..]].clone().beyond(clock);
            if clock != ClockCorrection::default() {
                clocks.doubts.remove(&pair.inner);
                clocks
                    .corrected
                    .insert(pair.inner.clone(), (clock.clone(), corrected(pair, &clock)));
            }
            known.insert(&pair.inner, clock);
        }
        clocks
    }

    /// Whether a host's remaining offset is no larger than the known error of its clock and that of the new estimate together.
    fn is_within_error(&self, host: &str, clock: &ClockCorrection) -> bool {
        let known = self.index.hosts.get(host);
        let error_ns = known.and_then(|trace| trace.clock.error_ns);
        error_ns.is_some_and(|error_ns| {
            let both_ns = error_ns.saturating_add(clock.error_ns.unwrap_or(0));
            clock.offset_ns.unsigned_abs() <= both_ns
        })
    }

    /// Whether the index has no correction for a host's clock, so that it may be corrected here.
    fn is_free(&self, host: &str) -> bool {
        self.index
            .hosts
            .get(host)
            .is_none_or(|trace| trace.clock == ClockCorrection::default())
    }
}

/// Chains corrections: `self` corrects the outer host's clock to the reference, `own` the inner host's clock to the outer's; the
/// result corrects the inner host's clock to the reference.
trait Beyond {
    fn beyond(self, own: &ClockCorrection) -> Self;
}

impl Beyond for ClockCorrection {
    fn beyond(self, own: &ClockCorrection) -> Self {
        let error_ns = match (self.error_ns, own.error_ns) {
            (None, error) | (error, None) => error,
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
        };
        let offset_ns = self.offset_ns.saturating_add(own.offset_ns);
        Self {
            offset_ns,
            drift_ppm: self.drift_ppm + own.drift_ppm,
            error_ns,
            ..own.clone()
        }
    }
}

/// What the exchanges of a pair say about the inner host's clock.
fn verdict(pair: &HostPairExchanges) -> ClockVerdict {
    let exchanges = &pair.exchanges;
    if exchanges.len() < FEWEST || pair.fits() {
        return ClockVerdict::Fits;
    }
    // No offset puts the one within the other: that says nothing about a clock.
    if !pair.encloses() {
        return ClockVerdict::Fits;
    }
    if !pair.is_known && !pair.follows() {
        return match pair.apart_ns() {
            Some(apart) => ClockVerdict::Doubtful(doubtful(pair, apart)),
            None => ClockVerdict::Fits,
        };
    }
    clock_of(&pair.exchanges).map_or(ClockVerdict::Fits, |clock| {
        ClockVerdict::Wrong(narrowed_by_parents(pair, clock))
    })
}

/// The correction that agrees with the exchanges, `None` if there is none.
fn clock_of(exchanges: &[ClockExchange]) -> Option<ClockCorrection> {
    let mut offset = Offset::default();
    for exchange in fastest(exchanges, PARTS) {
        offset.take(&exchange);
    }
    offset.clock()
}

/// The correction from spans and their parents, if it has a smaller error and agrees with `clock`; else `clock`. It disagrees if
/// parents do not wait for their spans.
fn narrowed_by_parents(pair: &HostPairExchanges, clock: ClockCorrection) -> ClockCorrection {
    let exchanges = pair.enclosed_by_parents();
    let (Some(middle), true) = (
        exchanges.get(exchanges.len() / 2),
        exchanges.len() >= FEWEST,
    ) else {
        return clock;
    };
    let apart = |narrow: &ClockCorrection| {
        let at_ns = |clock: &ClockCorrection| clock.reference_ns(middle.heard_ns);
        at_ns(narrow).abs_diff(at_ns(&clock))
    };
    let narrow = clock_of(&exchanges).filter(|narrow| {
        narrow
            .error_ns
            .zip(clock.error_ns)
            .is_some_and(|(own, of_units)| own < of_units && apart(narrow) <= of_units)
    });
    narrow.unwrap_or(clock)
}

fn time(ns: u64) -> String {
    units::format_time(ns as f64 / 1e9)
}

fn corrected(pair: &HostPairExchanges, clock: &ClockCorrection) -> String {
    let HostPairExchanges { outer, inner, .. } = pair;
    let side = if clock.offset_ns < 0 {
        "behind"
    } else {
        "ahead of"
    };
    format!(
        "the clock of {inner} is {} {side} that of {outer}, to within {} (inferred from {} units, which {inner} cannot have answered before they were sent or after their answers arrived); times are corrected accordingly",
        time(clock.offset_ns.unsigned_abs()),
        time(clock.error_ns.unwrap_or(0)),
        pair.exchanges.len()
    )
}

fn contradicts(pair: &HostPairExchanges, clock: &ClockCorrection) -> String {
    let HostPairExchanges { outer, inner, .. } = pair;
    let side = if clock.offset_ns < 0 {
        "behind"
    } else {
        "ahead of"
    };
    let by = time(clock.offset_ns.unsigned_abs());
    format!(
        "even with the specified or estimated correction, the clock of {inner} is still {by} {side} that of {outer}: units appear to have been answered before they were sent"
    )
}

fn doubtful(pair: &HostPairExchanges, apart_ns: u64) -> String {
    let HostPairExchanges { outer, inner, .. } = pair;
    let (side, sign) = if pair.is_earlier() {
        ("before", '-')
    } else {
        ("after", '+')
    };
    let by = time(apart_ns);
    let option = format!(
        "--clock {inner}={sign}{}us",
        pair.middle_ns().unsigned_abs() / 1000
    );
    format!(
        "in every unit, the events at {inner} come {by} {side} those at {outer}, with little variation: one of the clocks may be wrong, but these events cannot show which (`import {option}` would correct this)"
    )
}

#[cfg(test)]
mod tests;
