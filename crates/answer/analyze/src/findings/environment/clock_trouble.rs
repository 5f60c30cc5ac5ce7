//! Clock trouble: clocks of hosts that are not exact enough. The finding explains no time of the run; it says which times cannot be
//! trusted.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Evidence, Finding, LEAST};
use crate::findings::kind::{Find, FindingKind};
use crate::statistics::to_f64;
use stackline_core::trace_index::ClockCorrection;
use stackline_core::units;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "clock_trouble",
    meaning: "times between hosts cannot be trusted. A finding with share 0 is a note: times have been corrected, or a clock may be wrong and the events cannot show which",
    find: &[Find::Run(find)],
};

/// A working crystal oscillator drifts by less than this, parts per million.
const CRYSTAL_PPM: f64 = 100.0;

/// The share of findings that are only notes, such as errors for which times have been corrected.
const NOTE: f64 = 0.0;

fn find(log: &FindingEventLog<'_>) -> Option<Finding> {
    let passage_ns = passage_ns(log);
    let hosts = log.input.index.hosts.iter();
    let found = hosts.clone().filter_map(|(host, trace)| {
        HostClock::from_log(log, host, &trace.clock).trouble(passage_ns)
    });
    let doubts = hosts.filter_map(|(host, trace)| {
        let doubt = trace.clock_doubt.clone()?;
        Some(HostClock::from_log(log, host, &trace.clock).always(NOTE, doubt.clone(), doubt))
    });
    let mut found: Vec<ClockTrouble> = found.chain(backwards(log)).chain(doubts).collect();
    found.sort_by(|a, b| b.share.total_cmp(&a.share));
    let worst = found.first()?;
    let confidence = if worst.share > LEAST { 0.95 } else { 0.5 };
    let finding = KIND.of_run(worst.share, confidence, worst.sentence.clone());
    Some(Finding {
        evidence: found.into_iter().map(|trouble| trouble.evidence).collect(),
        tries: vec![
            "synchronise the hosts' clocks with a daemon (chrony or ptp4l), and wait until it has settled before measuring"
                .into(),
            "trust times within one host; between hosts, only times longer than the clock error".into(),
        ],
        ..finding
    })
}

/// Something that is wrong with a clock, and the share of times that cannot be trusted because of it.
struct ClockTrouble {
    share: f64,
    sentence: String,
    evidence: Evidence,
}

/// The clock of one host over all runs.
struct HostClock<'c> {
    host: &'c str,
    clock: &'c ClockCorrection,
    /// The begin of the first run, ns.
    from_ns: u64,
    /// The end of the last run, ns.
    to_ns: u64,
}

impl<'c> HostClock<'c> {
    fn from_log(log: &FindingEventLog<'_>, host: &'c str, clock: &'c ClockCorrection) -> Self {
        let runs = || log.input.index.runs.iter();
        Self {
            host,
            clock,
            from_ns: runs().map(|run| run.from_ns).min().unwrap_or(0),
            to_ns: runs().map(|run| run.to_ns).max().unwrap_or(0),
        }
    }

    /// The worst thing that is wrong with it; `passage_ns` is the one-way delay between hosts, ns.
    fn trouble(&self, passage_ns: Option<f64>) -> Option<ClockTrouble> {
        self.steps().or_else(|| {
            let passage_ns = passage_ns?;
            self.error(passage_ns)
                .or_else(|| self.drift())
                .or_else(|| self.offset(passage_ns))
        })
    }

    /// Trouble that holds over all runs.
    fn always(&self, share: f64, sentence: String, what: String) -> ClockTrouble {
        ClockTrouble {
            share,
            sentence,
            evidence: Evidence {
                what,
                from_ns: self.from_ns,
                to_ns: self.to_ns,
                ..Evidence::default()
            },
        }
    }

    /// The clock was set during the runs.
    fn steps(&self) -> Option<ClockTrouble> {
        let steps = &self.clock.steps;
        let (at, by) = steps.iter().max_by_key(|(_, by)| by.unsigned_abs())?;
        let by_s = units::format_time(by.unsigned_abs() as f64 / 1e9);
        let which = if *by < 0 { "back" } else { "ahead" };
        Some(ClockTrouble {
            share: 1.0,
            sentence: format!(
                "the clock of {} was set {which} by {by_s} during the measurement: its times before and after the step are not comparable",
                self.host
            ),
            evidence: Evidence {
                what: format!("steps: {}, the largest {by_s}", steps.len()),
                from_ns: *at,
                to_ns: *at,
                ..Evidence::default()
            },
        })
    }

    /// The offset of the clock is known less exactly than the one-way delay between hosts.
    fn error(&self, passage_ns: f64) -> Option<ClockTrouble> {
        let error_ns = to_f64(self.clock.error_ns.unwrap_or(0));
        if error_ns <= passage_ns {
            return None;
        }
        let (error, passage) = (
            units::format_time(error_ns / 1e9),
            units::format_time(passage_ns / 1e9),
        );
        let sentence = format!(
            "the clock of {} is known only to within {error}, more than the one-way delay between hosts ({passage}): one-way delays are unknown",
            self.host
        );
        let figures = format!("error {error}, half a round trip {passage}");
        // It costs no time, so it gets the least share: findings from one clock alone come first.
        Some(self.always(LEAST, sentence, figures))
    }

    /// The clock runs faster or slower than a working crystal would.
    fn drift(&self) -> Option<ClockTrouble> {
        let ppm = self.clock.drift_ppm;
        if ppm.abs() <= CRYSTAL_PPM {
            return None;
        }
        let gains = ppm.abs() * 1e-6 * to_f64(self.to_ns.saturating_sub(self.from_ns)) / 1e9;
        let sentence = format!(
            "the clock of {} runs {:.0} ppm {}: {} over these runs",
            self.host,
            ppm.abs(),
            if ppm > 0.0 { "fast" } else { "slow" },
            units::format_time(gains)
        );
        let figures = format!("{ppm:+.1} ppm; times are corrected accordingly");
        Some(self.always(NOTE, sentence, figures))
    }

    /// The clock is further from the reference clock than the one-way delay between hosts.
    fn offset(&self, passage_ns: f64) -> Option<ClockTrouble> {
        let offset_ns = self.clock.offset_ns;
        let error_ns = self.clock.error_ns.unwrap_or(0);
        if to_f64(offset_ns.unsigned_abs()) <= passage_ns {
            return None;
        }
        let sentence = format!(
            "the clock of {} is {} {} the reference clock, more than the one-way delay between hosts ({}); times are corrected to within {}",
            self.host,
            units::format_time(to_f64(offset_ns.unsigned_abs()) / 1e9),
            if offset_ns > 0 { "ahead of" } else { "behind" },
            units::format_time(passage_ns / 1e9),
            units::format_time(to_f64(error_ns) / 1e9)
        );
        let figures = format!("offset {offset_ns} ns, error {error_ns} ns");
        Some(self.always(NOTE, sentence, figures))
    }
}

/// The one-way delay between hosts, ns: half of the least response time of a call, or else of the round trip that a transport measured.
fn passage_ns(log: &FindingEventLog<'_>) -> Option<f64> {
    let records = log.input.records.iter();
    let trips = records.filter_map(|record| {
        let call = record.calls.min_max.map(|(least, _)| to_f64(least));
        let transport = record.initiator.transport.or(record.responder.transport);
        call.or(transport
            .map(|(_, t)| 1e9 * t.rtt_s)
            .filter(|rtt| *rtt > 0.0))
    });
    trips.reduce(f64::min).map(|trip| trip / 2.0)
}

/// Trouble seen in events: units that arrive before they were sent, by more than the known error of the clocks.
fn backwards(log: &FindingEventLog<'_>) -> Option<ClockTrouble> {
    let lines = log.input.lifelines;
    let rank = |keyword: &str| match keyword {
        "APP_SEND" | "APP_CALL" => Some(0),
        "APP_INDICATION" | "APP_RECEIVED" => Some(1),
        "APP_REPLY" => Some(2),
        "APP_RESPONSE" => Some(3),
        _ => None,
    };
    let (mut units, mut wrong, mut rows, mut worst) = (0_u64, 0_u64, Vec::new(), 0);
    for line in &lines.lines {
        let passages = lines.passages_of(line);
        let of = |wanted: u8| {
            passages
                .iter()
                .find(|passage| rank(&lines.points[passage.point as usize].keyword) == Some(wanted))
        };
        for (earlier, later) in [(0, 1), (2, 3)] {
            let (Some(sent), Some(there)) = (of(earlier), of(later)) else {
                continue;
            };
            if lines.points[sent.point as usize].host == lines.points[there.point as usize].host {
                continue;
            }
            units += 1;
            let early = sent.at_ns.saturating_sub(there.at_ns);
            if early > lines.clock_error_ns {
                (wrong, worst) = (wrong + 1, worst.max(early));
                rows.extend(
                    [sent.row, there.row]
                        .into_iter()
                        .filter(|row| *row != u32::MAX),
                );
            }
        }
    }
    let share = to_f64(wrong) / to_f64(units.max(1));
    (wrong > 0).then(|| {
        let sentence = format!(
            "{wrong} of {units} units and responses appear to arrive up to {} before they were sent: the clocks of their hosts disagree by more than the known error",
            units::format_time(to_f64(worst) / 1e9)
        );
        ClockTrouble {
            share,
            sentence,
            evidence: log.evidence(format!("units that arrive too early: {wrong}"), &rows),
        }
    })
}
