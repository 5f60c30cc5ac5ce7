//! How much latency grows while a path is loaded, and what that makes of it: round trips a minute and a grade.
//!
//! Round trips a minute are those of the IETF's draft (draft-ietf-ippm-responsiveness-09, 5.3.1): trimmed means of what *foreign* probes take
//! to connect, to shake hands and to be answered, with equal weights, and of what *self* probes take on the loading connections; half of the
//! result is each. Unlike there, the number of loading connections and the time are given, and no stability is waited for.

use crate::flags::meaning;
use crate::statistics::SampleStatistics;
use crate::summarise;
use serde::Serialize;
use stackline_core::plan::Plan;
use stackline_core::run_record::{Histogram, RunRecord};

/// Nanoseconds as seconds.
const NS: f64 = 1e-9;
/// The share of the probes whose mean counts: the slowest twentieth is left out (TMP of the draft's 5.2).
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
#[derive(Clone, Debug, Default)]
pub struct ProbeForm {
    /// The phases with self probes, which are then their second parts; a load comes after them.
    pub self_probed: Vec<LoadedPhase>,
    /// Why phases that are not among them have none.
    pub why_no_self_probes: &'static str,
}

/// A kind of probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeKind {
    /// A request on a connection of its own.
    Foreign,
    /// A request on a connection that carries the load.
    #[serde(rename = "self")]
    OnLoad,
}

/// The latency that one probe has seen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ProbedLatency {
    /// When its request began, since the phase began, s.
    pub at_s: f64,
    /// How long the answer took, s.
    pub latency_s: f64,
    /// Its kind.
    pub probe: ProbeKind,
}

/// Round trips a minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RoundTripRates {
    /// Of foreign probes.
    pub foreign: Option<f64>,
    /// Of self probes.
    #[serde(rename = "self")]
    pub on_load: Option<f64>,
    /// The mean of both; where there are no self probes, that of the foreign ones.
    pub both: Option<f64>,
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
    /// Requests on the connections that carry the load, s; when idle, on connections that are open.
    pub self_latency_s: Option<SampleStatistics>,
    /// Data that the load carried meanwhile, bit/s; absent without load.
    pub load_bit_s: Option<f64>,
    /// Round trips a minute.
    pub round_trips_per_minute: RoundTripRates,
    /// The probes one by one, in the order in which they began.
    pub series: Vec<ProbedLatency>,
    /// Why nothing was measured, if nothing was.
    pub absent: Option<String>,
    /// Why there are no self probes, if there are none.
    pub self_absent: Option<String>,
    /// Flags of the phase's runs that make its figures doubtful, but for those of every such question.
    pub flags: Vec<String>,
}

/// Flags that the runs of every such question have: each is made once, for a time.
const EXPECTED_FLAGS: [&str; 4] = ["one run", "interval from calls", "time limit", "bimodal"];

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

impl BufferbloatAnswer {
    /// Adds to each phase the flags of its runs.
    #[must_use]
    pub fn with_flags(mut self, plan: &Plan, records: &[RunRecord]) -> Self {
        for summary in summarise(plan, records) {
            let mut phases = self.phases.iter_mut();
            let Some(phase) = phases.find(|phase| phase.phase as usize == summary.measurement)
            else {
                continue;
            };
            for flag in summary.flags {
                let is_expected = EXPECTED_FLAGS.contains(&flag.as_str());
                if meaning(&flag).is_some() && !is_expected && !phase.flags.contains(&flag) {
                    phase.flags.push(flag);
                }
            }
        }
        self
    }
}

/// The records of one phase.
struct PhaseRecords<'r> {
    foreign: Option<&'r RunRecord>,
    on_load: Option<&'r RunRecord>,
    load: Option<&'r RunRecord>,
}

impl<'r> PhaseRecords<'r> {
    fn find(records: &'r [RunRecord], phase: LoadedPhase, form: &ProbeForm) -> Self {
        let measurement = phase as usize;
        let has_self = form.self_probed.contains(&phase);
        let of_part = |part| {
            let mut all = records.iter();
            all.find(move |r| r.measurement == measurement && r.part == part && !r.warmup)
        };
        Self {
            foreign: of_part(0),
            on_load: of_part(1).filter(|_| has_self),
            load: of_part(1 + usize::from(has_self)),
        }
    }

    /// The probes of both kinds by time.
    fn series(&self) -> Vec<ProbedLatency> {
        let kinds = [
            (ProbeKind::Foreign, self.foreign),
            (ProbeKind::OnLoad, self.on_load),
        ];
        let of_kind = |(probe, record): (ProbeKind, Option<&'r RunRecord>)| {
            let calls = record.map_or(&[][..], |record| &record.timed_calls);
            calls.iter().map(move |call| ProbedLatency {
                at_s: call.begun_ns as f64 * NS,
                latency_s: call.took_ns as f64 * NS,
                probe,
            })
        };
        let mut all: Vec<ProbedLatency> = kinds.into_iter().flat_map(of_kind).collect();
        all.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
        all
    }
}

/// The answer of records whose measurements are the phases in order: in each, part 0 makes the foreign probes, the next one the self probes,
/// if there are any, and the last one the load. `given_up` has the reasons of measurements that failed, by index.
#[must_use]
pub fn answer_bufferbloat(
    records: &[RunRecord],
    given_up: &[(usize, String)],
    form: &ProbeForm,
) -> BufferbloatAnswer {
    let phases: Vec<PhaseLatency> = LoadedPhase::ALL
        .into_iter()
        .map(|phase| {
            let reason = given_up.iter().find(|(index, _)| *index == phase as usize);
            let reason = reason.map(|(_, why)| why.clone());
            phase_latency(
                phase,
                &PhaseRecords::find(records, phase, form),
                reason,
                form,
            )
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
    records: &PhaseRecords<'_>,
    reason: Option<String>,
    form: &ProbeForm,
) -> PhaseLatency {
    let statistics = |record: Option<&RunRecord>, of: fn(&RunRecord) -> &Histogram| {
        record.and_then(|record| SampleStatistics::from_histogram(of(record), NS))
    };
    let latency_s = statistics(records.foreign, |record| &record.calls);
    let self_latency_s = statistics(records.on_load, |record| &record.calls);
    let why_no_self = match form.self_probed.contains(&phase) {
        true => "no self probe was answered in time",
        false => form.why_no_self_probes,
    };
    PhaseLatency {
        phase,
        latency_s,
        connect_s: statistics(records.foreign, |record| &record.connects),
        self_latency_s,
        load_bit_s: load_bit_s(phase, records),
        round_trips_per_minute: round_trips_per_minute(records),
        series: records.series(),
        absent: reason.or_else(|| {
            let nothing = "no probe was answered in time";
            latency_s.is_none().then(|| nothing.to_string())
        }),
        self_absent: self_latency_s.is_none().then(|| why_no_self.to_string()),
        flags: Vec::new(),
    }
}

/// Data that the load carried, bit/s.
fn load_bit_s(phase: LoadedPhase, records: &PhaseRecords<'_>) -> Option<f64> {
    let (record, bytes) = match phase {
        LoadedPhase::Upload => uploaded(records)?,
        _ => (records.load?, records.load?.initiator.received_bytes),
    };
    let is_known = record.elapsed_ns > 0 && bytes > 0;
    is_known.then(|| bytes as f64 * 8.0 / (record.elapsed_ns as f64 * NS))
}

/// What of an upload was acknowledged, and in whose time: what was handed over may still lie in the buffers of this host, seconds long on a
/// slow line. A connection that load and probes share is reported by one of them.
fn uploaded<'r>(records: &PhaseRecords<'r>) -> Option<(&'r RunRecord, u64)> {
    let mut reporting = [records.load, records.on_load].into_iter().flatten();
    let acknowledged = reporting.find_map(|record| Some((record, acknowledged(record)?)));
    acknowledged.or_else(|| records.load.map(|load| (load, load.initiator.sent_bytes)))
}

fn acknowledged(record: &RunRecord) -> Option<u64> {
    let (start, stop) = record.initiator.transport.as_ref()?;
    stop.bytes_acked?.checked_sub(start.bytes_acked?)
}

/// Round trips a minute, as the draft's 5.3.1 computes them.
fn round_trips_per_minute(records: &PhaseRecords<'_>) -> RoundTripRates {
    let foreign = records.foreign.and_then(foreign_rate);
    let on_load = records.on_load.and_then(|record| rate(&[&record.calls]));
    let both = match (foreign, on_load) {
        (Some(foreign), Some(on_load)) => Some(f64::midpoint(foreign, on_load)),
        (foreign, _) => foreign,
    };
    RoundTripRates {
        foreign,
        on_load,
        both,
    }
}

/// Of foreign probes: connecting (`tcp_f`), the TLS handshake where there is one (`tls_f`) and the request (`http_f`) have equal weights.
fn foreign_rate(probes: &RunRecord) -> Option<f64> {
    let opening = &probes.opening;
    // A stack that does not report its parts connects in one round trip, as TCP and QUIC do.
    let transport = match opening.transport.counts.is_empty() {
        true => &probes.connects,
        false => &opening.transport,
    };
    let mut each = vec![transport, &probes.calls];
    if !opening.tls_round_trip.counts.is_empty() {
        each.push(&opening.tls_round_trip);
    }
    rate(&each)
}

/// How many times a minute the mean of these trimmed means passes.
fn rate(each: &[&Histogram]) -> Option<f64> {
    let means: Option<Vec<f64>> = each.iter().map(|one| trimmed_mean(one)).collect();
    let means = means?;
    let mean_s = means.iter().sum::<f64>() / means.len() as f64 * NS;
    (mean_s > 0.0).then(|| 60.0 / mean_s)
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
    use stackline_core::run_record::{OpeningTimes, TimedCall};

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
        let answer = answer_bufferbloat(&records, &[], &ProbeForm::default());
        assert_eq!(
            (answer.grade, answer.worst),
            (Some("C"), Some(LoadedPhase::Upload))
        );
        assert!((answer.growth_s.unwrap() - 0.1).abs() < 1e-9);
        let loads: Vec<_> = answer.phases.iter().map(|phase| phase.load_bit_s).collect();
        assert_eq!(loads, [None, Some(80e6), Some(8e6)]);
        // Two round trips of 20 ms each: 3,000 in a minute.
        let rpm = answer.phases[0].round_trips_per_minute.both.unwrap();
        assert!((rpm - 3000.0).abs() < 1e-6, "{rpm}");
    }

    #[test]
    fn a_direction_that_failed_says_why_and_has_no_grade_of_its_own() {
        let records = [phase(0, 20), phase(1, 21)].concat();
        let form = ProbeForm::default();
        let answer = answer_bufferbloat(&records, &[(2, "refused".into())], &form);
        assert_eq!(answer.phases[2].absent.as_deref(), Some("refused"));
        assert_eq!(
            (answer.grade, answer.worst),
            (Some("A+"), Some(LoadedPhase::Download))
        );
        let nothing = answer_bufferbloat(&[], &[], &form);
        assert_eq!((nothing.grade, nothing.growth_s), (None, None));
    }

    /// A phase of which each figure of the draft is known: `tcp_f` 10, `tls_f` 20, `http_f` 30 and `http_l` 120 ms, one in twenty of each
    /// ten times as long.
    fn drafted(phase: LoadedPhase) -> [RunRecord; 3] {
        let ms = |ms: u64| histogram(&[(ms * 1_000_000, 95), (ms * 10_000_000, 5)]);
        let measurement = phase as usize;
        let probes = RunRecord {
            measurement,
            calls: ms(30),
            connects: ms(30),
            opening: OpeningTimes {
                transport: ms(10),
                tls_round_trip: ms(20),
            },
            timed_calls: vec![timed(7, 30), timed(9, 300)],
            ..RunRecord::default()
        };
        let own = RunRecord {
            measurement,
            part: 1,
            calls: ms(120),
            timed_calls: vec![timed(8, 120)],
            ..RunRecord::default()
        };
        let mut load = RunRecord {
            measurement,
            part: 2,
            elapsed_ns: 2_000_000_000,
            ..RunRecord::default()
        };
        load.initiator.received_bytes = 500_000;
        load.initiator.sent_bytes = 5_000_000;
        [probes, own, load]
    }

    fn timed(begun_s: u64, took_ms: u64) -> TimedCall {
        TimedCall {
            begun_ns: begun_s * 1_000_000_000,
            took_ns: took_ms * 1_000_000,
        }
    }

    #[test]
    fn responsiveness_is_the_mean_of_foreign_and_self_probes() {
        let records = [drafted(LoadedPhase::Download), drafted(LoadedPhase::Upload)].concat();
        let form = ProbeForm {
            self_probed: LoadedPhase::ALL.to_vec(),
            why_no_self_probes: "",
        };
        let answer = answer_bufferbloat(&records, &[], &form);
        let [_, download, upload] = &answer.phases[..] else {
            panic!("three phases")
        };
        // 60000 / ((10 + 20 + 30) / 3), 60000 / 120, and their mean.
        let expected = [3000.0, 500.0, 1750.0];
        for phase in [download, upload] {
            let rates = phase.round_trips_per_minute;
            let rates = [rates.foreign, rates.on_load, rates.both].map(Option::unwrap);
            let near = |(rate, expected): (&f64, &f64)| (rate - expected).abs() < 1e-6;
            assert!(rates.iter().zip(&expected).all(near), "{rates:?}");
        }
        assert_eq!(
            [download.load_bit_s, upload.load_bit_s],
            [Some(2e6), Some(20e6)]
        );
        let series: Vec<_> = download
            .series
            .iter()
            .map(|at| (at.at_s, at.probe))
            .collect();
        let foreign = ProbeKind::Foreign;
        assert_eq!(
            series,
            [(7.0, foreign), (8.0, ProbeKind::OnLoad), (9.0, foreign)]
        );
    }

    #[test]
    fn without_tls_and_self_probes_connecting_and_the_request_count() {
        let [mut probes, _, mut load] = drafted(LoadedPhase::Download);
        probes.opening.tls_round_trip = Histogram::default();
        load.part = 1;
        let form = ProbeForm {
            why_no_self_probes: "over HTTP/1.1",
            ..ProbeForm::default()
        };
        let answer = answer_bufferbloat(&[probes, load], &[], &form);
        let phase = &answer.phases[1];
        let rates = phase.round_trips_per_minute;
        // 60000 / ((10 + 30) / 2).
        assert!((rates.both.unwrap() - 3000.0).abs() < 1e-6, "{rates:?}");
        assert_eq!((rates.both, rates.on_load), (rates.foreign, None));
        assert_eq!(phase.self_absent.as_deref(), Some("over HTTP/1.1"));
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
