//! How much latency grows while a path is loaded, and what that makes of it: round trips a minute and a grade.
//!
//! Round trips a minute follow the *foreign* probes of the IETF's draft (draft-ietf-ippm-responsiveness, section 4): each opens a connection
//! of its own and makes one request. The draft's other half, requests on the loading connections themselves, is not measured.

use crate::statistics::SampleStatistics;
use serde::Serialize;
use stackline_core::run_record::{Histogram, RunRecord};

/// Nanoseconds as seconds.
const NS: f64 = 1e-9;
/// The share of the probes whose mean counts: the slowest twentieth is left out, as the draft asks.
const KEPT_SHARE: f64 = 0.95;

/// Grades, and below what growth of the median latency each is given, s.
pub const GRADES: [(&str, f64); 6] = [
    ("A+", 0.005),
    ("A", 0.030),
    ("B", 0.060),
    ("C", 0.200),
    ("D", 0.400),
    ("F", f64::INFINITY),
];

/// When latency is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadedPhase {
    /// Without load.
    Idle,
    /// While data comes.
    Download,
    /// While data goes.
    Upload,
}

impl LoadedPhase {
    /// All, in the order of the measurements.
    pub const ALL: [Self; 3] = [Self::Idle, Self::Download, Self::Upload];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Download => "download",
            Self::Upload => "upload",
        }
    }
}

/// What the measurements do, as far as their figures depend on it.
#[derive(Clone, Copy, Debug)]
pub struct ProbeForm {
    /// Round trips of a probe: those of connecting, and one for the request.
    pub round_trips: u32,
    /// Bytes of each call that loads the path upwards, where calls do that.
    pub upload_call_bytes: Option<u64>,
}

/// What was measured in one phase.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseLatency {
    /// Which phase.
    pub phase: LoadedPhase,
    /// Requests on connections that were just opened, s; absent if none was made.
    pub latency_s: Option<SampleStatistics>,
    /// Opening these connections, s.
    pub connect_s: Option<SampleStatistics>,
    /// Data that the load carried meanwhile, bit/s; absent without load.
    pub load_bit_s: Option<f64>,
    /// Round trips a minute; see the module.
    pub round_trips_per_minute: Option<f64>,
    /// Why nothing was measured, if nothing was.
    pub absent: Option<String>,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct BufferbloatAnswer {
    /// The phases, idle first.
    pub phases: Vec<PhaseLatency>,
    /// How much more the median latency is in the worse direction than idle, s; not below zero.
    pub growth_s: Option<f64>,
    /// The phase with the most growth.
    pub worst: Option<LoadedPhase>,
    /// The grade for that growth.
    pub grade: Option<&'static str>,
}

/// The answer of records whose measurements are the phases in order: in each, part 0 makes the probes and part 1 the load. `given_up` has
/// the reasons of measurements that failed, by index.
#[must_use]
pub fn answer_bufferbloat(
    records: &[RunRecord],
    given_up: &[(usize, String)],
    form: ProbeForm,
) -> BufferbloatAnswer {
    let phases: Vec<PhaseLatency> = LoadedPhase::ALL
        .into_iter()
        .enumerate()
        .map(|(measurement, phase)| {
            let of_part = |part| {
                let mut all = records.iter();
                all.find(move |r| r.measurement == measurement && r.part == part && !r.warmup)
            };
            let reason = given_up.iter().find(|(index, _)| *index == measurement);
            let reason = reason.map(|(_, why)| why.clone());
            phase_latency(phase, of_part(0), of_part(1), reason, form)
        })
        .collect();
    let median = |of: &PhaseLatency| of.latency_s.map(|latency| latency.median);
    let idle = phases.first().and_then(median);
    let grown = |of: &PhaseLatency| Some((of.phase, (median(of)? - idle?).max(0.0)));
    let worst = phases
        .iter()
        .skip(1)
        .filter_map(grown)
        .max_by(|one, other| one.1.total_cmp(&other.1));
    BufferbloatAnswer {
        growth_s: worst.map(|(_, growth)| growth),
        worst: worst.map(|(phase, _)| phase),
        grade: worst.map(|(_, growth)| grade(growth)),
        phases,
    }
}

/// The grade for a growth of the median latency, s.
#[must_use]
pub fn grade(growth_s: f64) -> &'static str {
    let fits = GRADES.iter().find(|(_, below)| growth_s < *below);
    fits.map_or("F", |(grade, _)| *grade)
}

fn phase_latency(
    phase: LoadedPhase,
    probes: Option<&RunRecord>,
    load: Option<&RunRecord>,
    reason: Option<String>,
    form: ProbeForm,
) -> PhaseLatency {
    let statistics = |of: fn(&RunRecord) -> &Histogram| {
        probes.and_then(|record| SampleStatistics::from_histogram(of(record), NS))
    };
    let latency_s = statistics(|record| &record.calls);
    let load_bytes = |record: &RunRecord| match (phase, form.upload_call_bytes) {
        (LoadedPhase::Upload, Some(bytes)) => record.calls.n() * bytes,
        (LoadedPhase::Upload, None) => record.initiator.sent_bytes,
        _ => record.initiator.received_bytes,
    };
    let load = load.filter(|record| record.elapsed_ns > 0);
    PhaseLatency {
        phase,
        latency_s,
        connect_s: statistics(|record| &record.connects),
        load_bit_s: load.map(|r| load_bytes(r) as f64 * 8.0 / (r.elapsed_ns as f64 * NS)),
        round_trips_per_minute: probes
            .and_then(|record| round_trips_per_minute(record, form.round_trips)),
        absent: reason.or_else(|| {
            let nothing = "no probe was answered in time";
            latency_s.is_none().then(|| nothing.to_string())
        }),
    }
}

/// Round trips a minute: the trimmed means of connecting and of the request, over the round trips that both take.
fn round_trips_per_minute(probes: &RunRecord, round_trips: u32) -> Option<f64> {
    let connect = trimmed_mean(&probes.connects)?;
    let request = trimmed_mean(&probes.calls)?;
    let each_s = (connect + request) * NS / f64::from(round_trips);
    (each_s > 0.0).then(|| 60.0 / each_s)
}

/// The mean of the lower part of the values, ns.
fn trimmed_mean(histogram: &Histogram) -> Option<f64> {
    let kept = (histogram.n() as f64 * KEPT_SHARE).ceil() as u64;
    let (mut left, mut sum) = (kept, 0.0);
    for (value, n) in &histogram.counts {
        let here = left.min(*n);
        sum += *value as f64 * here as f64;
        left -= here;
    }
    (kept > 0).then(|| sum / kept as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: &[(u64, u64)]) -> Histogram {
        Histogram {
            counts: values.to_vec(),
            sum: values.iter().map(|(value, n)| value * n).sum(),
            squares: values
                .iter()
                .map(|(value, n)| (value * value * n) as f64)
                .sum(),
            min_max: Some((values[0].0, values[values.len() - 1].0)),
        }
    }

    /// Probes whose requests and connections take so long, ms, and a load of 10 MB in a second.
    fn phase(measurement: usize, ms: u64) -> [RunRecord; 2] {
        let ns = histogram(&[(ms * 1_000_000, 20)]);
        let probes = RunRecord {
            measurement,
            calls: ns.clone(),
            connects: ns,
            ..RunRecord::default()
        };
        let mut load = RunRecord {
            measurement,
            part: 1,
            elapsed_ns: 1_000_000_000,
            ..RunRecord::default()
        };
        load.initiator.received_bytes = 10_000_000;
        load.initiator.sent_bytes = 1_000_000;
        [probes, load]
    }

    #[test]
    fn the_worse_direction_has_the_grade() {
        let mut records = [phase(0, 20), phase(1, 30), phase(2, 120)].concat();
        records.remove(1);
        let form = ProbeForm {
            round_trips: 2,
            upload_call_bytes: None,
        };
        let answer = answer_bufferbloat(&records, &[], form);
        assert_eq!(
            (answer.grade, answer.worst),
            (Some("C"), Some(LoadedPhase::Upload))
        );
        assert!((answer.growth_s.unwrap() - 0.1).abs() < 1e-9);
        let loads: Vec<_> = answer.phases.iter().map(|phase| phase.load_bit_s).collect();
        assert_eq!(loads, [None, Some(80e6), Some(8e6)]);
        // Two round trips of 20 ms each: 3,000 in a minute.
        let rpm = answer.phases[0].round_trips_per_minute.unwrap();
        assert!((rpm - 3000.0).abs() < 1e-6, "{rpm}");
    }

    #[test]
    fn a_direction_that_failed_says_why_and_has_no_grade_of_its_own() {
        let records = [phase(0, 20), phase(1, 21)].concat();
        let form = ProbeForm {
            round_trips: 3,
            upload_call_bytes: Some(1),
        };
        let answer = answer_bufferbloat(&records, &[(2, "refused".into())], form);
        assert_eq!(answer.phases[2].absent.as_deref(), Some("refused"));
        assert_eq!(
            (answer.grade, answer.worst),
            (Some("A+"), Some(LoadedPhase::Download))
        );
        let nothing = answer_bufferbloat(&[], &[], form);
        assert_eq!((nothing.grade, nothing.growth_s), (None, None));
    }

    #[test]
    fn the_slowest_twentieth_is_left_out_of_the_mean() {
        let mean = trimmed_mean(&histogram(&[(10, 95), (1000, 5)])).unwrap();
        assert!((mean - 10.0).abs() < 1e-9, "{mean}");
        assert_eq!(trimmed_mean(&Histogram::default()), None);
    }

    #[test]
    fn grades_begin_where_their_rule_says() {
        let given = [0.0, 0.004_99, 0.005, 0.03, 0.06, 0.2, 0.4, 9.0].map(grade);
        assert_eq!(given, ["A+", "A+", "A", "B", "C", "D", "F", "F"]);
    }
}
