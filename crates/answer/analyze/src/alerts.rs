//! The states of alerts: from a bad probe to pending, to firing when it has lasted, and back.
//!
//! An alert is judged for each row of a probe (a measurement; of several parts each). It is pending from the first bad probe on, fires when
//! that was as long ago as it has to last, and is resolved by the first probe that is not bad. A probe without the figure, as one that
//! failed, changes nothing: missing data neither fires nor resolves. An alert of failures has no pending state: it fires when their share
//! of the probes of its time is within the bound.

use crate::expectations::{ExpectationVerdict, SURE, measured, within};
use crate::statistics::to_f64;
use crate::summary::Summary;
use stackline_core::expectation::{BoundUnit, ExpectedCondition, FigureBound};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Most probes whose failures are counted for an alert.
const MOST_PROBES: usize = 100_000;

/// An alert as a user states it.
#[derive(Clone, Debug, PartialEq)]
pub struct AlertRule {
    /// Its text as written.
    pub text: String,
    /// The state that is bad.
    pub condition: AlertCondition,
    /// How long it has to last; of failures, the time over which their share is taken. Zero for a single probe.
    pub hold: Duration,
}

/// A bad state.
#[derive(Clone, Debug, PartialEq)]
pub enum AlertCondition {
    /// A figure is within a bound, or a finding is made or not made.
    Expected(ExpectedCondition),
    /// The share of probes that failed, 0 to 1, is within this bound.
    Failures(FigureBound),
}

impl AlertCondition {
    /// Whether it needs the findings of each probe.
    #[must_use]
    pub const fn needs_findings(&self) -> bool {
        matches!(
            self,
            Self::Expected(ExpectedCondition::Finding(_) | ExpectedCondition::NoFinding(_))
        )
    }
}

/// What a probe yielded for one row.
#[derive(Clone, Copy, Debug)]
pub struct AlertedRow<'r> {
    /// The row's name.
    pub name: &'r str,
    /// Whether the probe failed for it.
    pub has_failed: bool,
    /// What was measured.
    pub summary: &'r Summary,
    /// Kinds of findings with how sure each is; absent if the probe was not traced.
    pub findings: Option<&'r BTreeMap<String, f64>>,
}

/// Where an alert is for one row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AlertPhase {
    /// The latest probe with the figure was not bad.
    #[default]
    Quiet,
    /// It is bad, but not for as long as it has to be.
    Pending {
        /// When the first bad probe was due, ms since 1970.
        since_ms: u64,
    },
    /// It has been bad for as long as it has to be.
    Firing {
        /// When the first bad probe was due, ms since 1970.
        since_ms: u64,
    },
}

/// An alert that fired or was resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct AlertChange {
    /// The alert as written.
    pub alert: String,
    /// The row.
    pub row: String,
    /// Whether it fires now; else it is resolved.
    pub is_firing: bool,
    /// When the first bad probe was due, ms since 1970.
    pub since_ms: u64,
    /// When the probe that changed it was due, ms since 1970.
    pub at_ms: u64,
    /// The figure of that probe, in its base unit; of findings, how sure it is.
    pub value: f64,
    /// The figure's unit.
    pub unit: BoundUnit,
}

/// What is known of one alert for one row.
#[derive(Clone, Debug, Default)]
struct AlertState {
    phase: AlertPhase,
    /// Of an alert of failures: when probes were due, and whether they failed.
    probes: VecDeque<(u64, bool)>,
}

/// A figure of a probe.
struct AlertedFigure {
    value: f64,
    unit: BoundUnit,
    is_bad: bool,
}

/// The states of all alerts of a probe.
#[derive(Clone, Debug)]
pub struct AlertStates {
    rules: Vec<AlertRule>,
    /// The time between two probes.
    interval: Duration,
    states: BTreeMap<(usize, String), AlertState>,
    /// Why alerts have never had a figure, by their index.
    without: BTreeMap<usize, String>,
}

impl AlertStates {
    /// The states before the first probe.
    #[must_use]
    pub const fn new(rules: Vec<AlertRule>, interval: Duration) -> Self {
        Self {
            rules,
            interval,
            states: BTreeMap::new(),
            without: BTreeMap::new(),
        }
    }

    /// Takes the rows of a probe that was due at `now_ms` (since 1970). Returns the alerts that changed.
    pub fn observe(&mut self, now_ms: u64, rows: &[AlertedRow<'_>]) -> Vec<AlertChange> {
        let mut changes = Vec::new();
        for (index, rule) in self.rules.iter().enumerate() {
            let mut reason = None;
            let mut has_figure = false;
            for row in rows {
                let state = self.states.entry((index, row.name.to_owned()));
                let state = state.or_default();
                match figure(rule, self.interval, state, now_ms, row) {
                    Ok(figure) => {
                        has_figure = true;
                        changes.extend(advanced(rule, state, now_ms, row.name, &figure));
                    }
                    Err(why) => reason = Some(why),
                }
            }
            match reason {
                Some(why) if !has_figure => {
                    let open = self.without.entry(index);
                    // That a probe failed is said already.
                    why.map(|why| open.or_insert(why));
                }
                _ => {
                    self.without.insert(index, String::new());
                }
            }
        }
        changes
    }

    /// The alerts that have not had a figure in any probe so far, and why, once each.
    pub fn without_figures(&mut self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for (index, why) in &mut self.without {
            if !why.is_empty() {
                found.push((self.rules[*index].text.clone(), std::mem::take(why)));
            }
        }
        found
    }

    /// Each alert for each row, with whether it fires.
    pub fn firing(&self) -> impl Iterator<Item = (&str, &str, bool)> {
        self.states.iter().map(|((index, row), state)| {
            let is_firing = matches!(state.phase, AlertPhase::Firing { .. });
            (self.rules[*index].text.as_str(), row.as_str(), is_firing)
        })
    }

    /// Where an alert is for a row.
    #[must_use]
    pub fn phase(&self, index: usize, row: &str) -> AlertPhase {
        let state = self.states.get(&(index, row.to_owned()));
        state.map_or(AlertPhase::Quiet, |state| state.phase)
    }
}

/// Moves a state on by a figure. Returns the change.
fn advanced(
    rule: &AlertRule,
    state: &mut AlertState,
    now_ms: u64,
    row: &str,
    figure: &AlertedFigure,
) -> Option<AlertChange> {
    let hold_ms = match rule.condition {
        AlertCondition::Failures(_) => 0,
        _ => millis(rule.hold),
    };
    let since = match state.phase {
        AlertPhase::Quiet => now_ms,
        AlertPhase::Pending { since_ms } | AlertPhase::Firing { since_ms } => since_ms,
    };
    let before = state.phase;
    state.phase = match (figure.is_bad, before) {
        (false, _) => AlertPhase::Quiet,
        (true, AlertPhase::Firing { .. }) => before,
        (true, _) if now_ms.saturating_sub(since) >= hold_ms => {
            AlertPhase::Firing { since_ms: since }
        }
        (true, _) => AlertPhase::Pending { since_ms: since },
    };
    let fired = |phase| matches!(phase, AlertPhase::Firing { .. });
    (fired(before) != fired(state.phase)).then(|| AlertChange {
        alert: rule.text.clone(),
        row: row.to_owned(),
        is_firing: fired(state.phase),
        since_ms: since,
        at_ms: now_ms,
        value: figure.value,
        unit: figure.unit,
    })
}

/// The figure of an alert; else why there is none, unless the probe failed.
fn figure(
    rule: &AlertRule,
    interval: Duration,
    state: &mut AlertState,
    now_ms: u64,
    row: &AlertedRow<'_>,
) -> Result<AlertedFigure, Option<String>> {
    let is_in =
        |bound: FigureBound, value: f64| within(bound, value, value) == ExpectationVerdict::Met;
    let expected = match &rule.condition {
        AlertCondition::Expected(expected) => expected,
        AlertCondition::Failures(bound) => {
            let value = failed_share(state, rule.hold, interval, now_ms, row.has_failed);
            return Ok(AlertedFigure {
                value,
                unit: BoundUnit::Share,
                is_bad: is_in(*bound, value),
            });
        }
    };
    match expected {
        ExpectedCondition::Figure(..) if row.has_failed || row.summary.runs == 0 => Err(None),
        ExpectedCondition::Figure(figure, bound) => {
            let value = measured(row.summary, *figure)?.value;
            Ok(AlertedFigure {
                value,
                unit: figure.unit(),
                is_bad: is_in(*bound, value),
            })
        }
        ExpectedCondition::Finding(kind) => found(row, kind, true),
        ExpectedCondition::NoFinding(kind) => found(row, kind, false),
    }
}

fn found(row: &AlertedRow<'_>, kind: &str, is_bad: bool) -> Result<AlertedFigure, Option<String>> {
    let without = || "findings need the events of the probe (`--trace`)".to_owned();
    let findings = row.findings.ok_or_else(|| Some(without()))?;
    let value = findings.get(kind).copied().unwrap_or_default();
    if value > 0.0 && value < SURE {
        return Err(Some(format!("only {:.0} % sure", value * 100.0)));
    }
    Ok(AlertedFigure {
        value,
        unit: BoundUnit::Share,
        is_bad: (value >= SURE) == is_bad,
    })
}

/// The share of probes that failed within the time of an alert. Probes that were not made yet count as good ones, so that the first
/// failure of a new series is not all of it.
fn failed_share(
    state: &mut AlertState,
    hold: Duration,
    interval: Duration,
    now_ms: u64,
    has_failed: bool,
) -> f64 {
    let hold_ms = millis(hold);
    let probes = &mut state.probes;
    probes.push_back((now_ms, has_failed));
    while probes.len() > 1
        && probes.front().is_some_and(|(at_ms, _)| {
            now_ms.saturating_sub(*at_ms) >= hold_ms.max(1) || probes.len() > MOST_PROBES
        })
    {
        probes.pop_front();
    }
    let planned = hold_ms / millis(interval).max(1);
    let all = (probes.len() as u64).max(planned.min(MOST_PROBES as u64));
    let failed = probes.iter().filter(|(_, has_failed)| *has_failed).count();
    to_f64(failed as u64) / to_f64(all)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::SampleStatistics;
    use stackline_core::run_record::Histogram;
    use stackline_spec::AlertTextCondition;

    const MINUTE: Duration = Duration::from_secs(60);

    fn states(text: &str) -> AlertStates {
        let read = stackline_spec::alert_text(text).unwrap();
        let rule = AlertRule {
            text: read.text,
            condition: match read.condition {
                AlertTextCondition::Expected(expected) => AlertCondition::Expected(expected),
                AlertTextCondition::Failures(bound) => AlertCondition::Failures(bound),
            },
            hold: read.hold,
        };
        AlertStates::new(vec![rule], MINUTE)
    }

    /// Calls that all take so many ms; a probe that failed without.
    fn probe(ms: Option<u64>) -> Summary {
        let Some(ms) = ms else {
            return Summary::default();
        };
        let response_ns = Histogram {
            counts: vec![(ms * 1_000_000, 1000)],
            sum: ms * 1_000_000_000,
            squares: to_f64(ms).powi(2) * 1e15,
            min_max: Some((ms * 1_000_000, ms * 1_000_000)),
        };
        Summary {
            runs: 1,
            response_s: SampleStatistics::from_histogram(&response_ns, 1e-9),
            response_ns,
            ..Summary::default()
        }
    }

    /// The minutes at which the alert fires (true) or is resolved, of a probe a minute.
    fn changes(states: &mut AlertStates, probes: &[Option<u64>]) -> Vec<(usize, bool)> {
        let mut all = Vec::new();
        for (minute, ms) in probes.iter().enumerate() {
            let summary = probe(*ms);
            let row = AlertedRow {
                name: "rr",
                has_failed: ms.is_none(),
                summary: &summary,
                findings: None,
            };
            let changed = states.observe(minute as u64 * 60_000, &[row]);
            all.extend(changed.iter().map(|change| (minute, change.is_firing)));
        }
        all
    }

    #[test]
    fn what_lasts_fires_and_the_first_good_probe_resolves_it() {
        let mut states = states("p99 > 50 ms for 3m");
        let [good, bad] = [Some(50), Some(51)];
        // Two bad ones between good ones are nothing.
        let probes = [good, bad, bad, good, bad, bad, bad, bad, bad, good, bad];
        assert_eq!(changes(&mut states, &probes), [(7, true), (9, false)]);
        assert_eq!(
            states.phase(0, "rr"),
            AlertPhase::Pending { since_ms: 600_000 }
        );
    }

    #[test]
    fn without_for_a_single_probe_fires() {
        let mut states = states("p99 > 50 ms");
        assert_eq!(
            changes(&mut states, &[Some(51), Some(51), Some(1)]),
            [(0, true), (2, false)]
        );
    }

    #[test]
    fn missing_data_neither_fires_nor_resolves() {
        let mut states = states("p99 > 50 ms for 1m");
        let bad = Some(60);
        let probes = [bad, None, None, bad, None, None, Some(2), None];
        assert_eq!(changes(&mut states, &probes), [(3, true), (6, false)]);
    }

    #[test]
    fn an_alert_without_its_figure_says_so_once() {
        let mut states = states("throughput < 1 Mbit/s");
        assert_eq!(changes(&mut states, &[Some(1), Some(1)]), []);
        let said = states.without_figures();
        assert_eq!(said.len(), 1);
        assert_eq!(said[0].0, "throughput < 1 Mbit/s");
        assert_eq!(states.without_figures(), []);
        changes(&mut states, &[Some(1)]);
        assert_eq!(states.without_figures(), []);
    }

    #[test]
    fn failures_are_a_share_of_the_probes_of_a_time() {
        let mut alerts = states("failures > 40 % for 5m");
        let [good, bad] = [Some(1), None];
        let probes = [bad, bad, good, bad, good, good, good, good];
        // Three of five at minute 3; at minute 5 those of minutes 1 to 5 are two of five.
        assert_eq!(changes(&mut alerts, &probes), [(3, true), (5, false)]);
        let mut alerts = states("failures > 10 %");
        assert_eq!(
            changes(&mut alerts, &[good, bad, bad, good]),
            [(1, true), (3, false)]
        );
    }

    #[test]
    fn findings_fire_when_they_are_sure() {
        let mut alerts = states("finding queue_drop");
        let summary = probe(Some(1));
        let mut phases = Vec::new();
        for (at, sure) in [(0, None), (1, Some(0.9)), (2, Some(0.3)), (3, Some(0.0))] {
            let findings: Option<BTreeMap<String, f64>> =
                sure.map(|sure| [("queue_drop".to_owned(), sure)].into());
            let row = AlertedRow {
                name: "rr",
                has_failed: false,
                summary: &summary,
                findings: findings.as_ref(),
            };
            let changed = alerts.observe(at, &[row]);
            phases.push(changed.first().map(|change| change.is_firing));
        }
        // 30 % sure is no figure.
        assert_eq!(phases, [None, Some(true), None, Some(false)]);
    }

    #[test]
    fn rows_have_states_of_their_own() {
        let mut states = states("p99 > 50 ms");
        let (slow, fast) = (probe(Some(70)), probe(Some(7)));
        let row = |name, summary| AlertedRow {
            name,
            has_failed: false,
            summary,
            findings: None,
        };
        let changed = states.observe(5, &[row("a", &fast), row("b", &slow)]);
        assert_eq!(changed.len(), 1);
        assert_eq!((changed[0].row.as_str(), changed[0].value), ("b", 0.07));
        let firing: Vec<_> = states.firing().collect();
        assert_eq!(
            firing,
            [("p99 > 50 ms", "a", false), ("p99 > 50 ms", "b", true)]
        );
    }
}
