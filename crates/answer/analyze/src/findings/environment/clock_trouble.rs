//! Clocks that are not exact enough. It explains no time; it names the times not to believe.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Evidence, Finding, LEAST};
use crate::findings::kind::{Find, FindingKind};
use crate::statistics::to_f64;
use stackline_core::trace_index::ClockCorrection;
use stackline_core::units;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "clock_trouble",
    meaning: "times between hosts cannot be believed. One with share 0 is a note: times are corrected for it",
    find: &[Find::Run(find)],
};

/// A crystal is off by less than this, parts of a million.
const CRYSTAL_PPM: f64 = 100.0;

/// The share of what times are corrected for: it explains nothing and is only noted.
const NOTE: f64 = 0.0;

fn find(log: &FindingEventLog<'_>) -> Option<Finding> {
    let found = log
        .input
        .index
        .hosts
        .iter()
        .filter_map(|(host, trace)| of(log, host, &trace.clock));
    let mut found: Vec<(f64, String, Evidence)> = found.chain(backwards(log)).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (share, sentence, _) = found.first()?.clone();
    let confidence = if share > LEAST { 0.95 } else { 0.5 };
    Some(Finding {
        evidence: found.into_iter().map(|(.., evidence)| evidence).collect(),
        tries: vec![
            "let a clock daemon keep the hosts' time (chrony or ptp4l), and wait until it has settled before measuring"
                .into(),
            "believe times within one host; between hosts only what is longer than the error".into(),
        ],
        ..KIND.of_run(share, confidence, sentence)
    })
}

fn of(
    log: &FindingEventLog<'_>,
    host: &str,
    clock: &ClockCorrection,
) -> Option<(f64, String, Evidence)> {
    let evidence = |what: &str, from_ns: u64, to_ns: u64| Evidence {
        what: what.to_owned(),
        from_ns,
        to_ns,
        ..Evidence::default()
    };
    let runs = || log.input.index.runs.iter();
    let (first, last) = (
        runs().map(|run| run.from_ns).min().unwrap_or(0),
        runs().map(|run| run.to_ns).max().unwrap_or(0),
    );
    if let Some((at, by)) = clock.steps.iter().max_by_key(|(_, by)| by.unsigned_abs()) {
        let by_s = units::format_time(by.unsigned_abs() as f64 / 1e9);
        let which = if *by < 0 { "back" } else { "ahead" };
        let sentence = format!(
            "the clock of {host} was set {which} by {by_s} while it was measured with: its times before and after do not go together"
        );
        return Some((
            1.0,
            sentence,
            evidence(
                &format!("{} steps, the largest {by_s}", clock.steps.len()),
                *at,
                *at,
            ),
        ));
    }
    let passage = passage_ns(log)?;
    let error = clock.error_ns.unwrap_or(0);
    if to_f64(error) > passage {
        let sentence = format!(
            "the clock of {host} is known to {} only, and data passes between hosts in {}: one-way times are not known",
            units::format_time(to_f64(error) / 1e9),
            units::format_time(passage / 1e9)
        );
        let figures = format!(
            "error {}, half a round trip {}",
            units::format_time(to_f64(error) / 1e9),
            units::format_time(passage / 1e9)
        );
        // It is no cause: whatever one clock alone shows comes before it.
        return Some((LEAST, sentence, evidence(&figures, first, last)));
    }
    if clock.drift_ppm.abs() > CRYSTAL_PPM {
        let gains = clock.drift_ppm.abs() * 1e-6 * to_f64(last.saturating_sub(first)) / 1e9;
        let sentence = format!(
            "the clock of {host} runs {:.0} ppm {}: {} over these runs",
            clock.drift_ppm.abs(),
            if clock.drift_ppm > 0.0 {
                "fast"
            } else {
                "slow"
            },
            units::format_time(gains)
        );
        let figures = format!("{:+.1} ppm, and times are corrected by it", clock.drift_ppm);
        return Some((NOTE, sentence, evidence(&figures, first, last)));
    }
    let offset = clock.offset_ns.unsigned_abs();
    (to_f64(offset) > passage).then(|| {
        let sentence = format!(
            "the clock of {host} is {} {} the reference's, more than data takes between hosts ({}); times are corrected to {}",
            units::format_time(to_f64(offset) / 1e9),
            if clock.offset_ns > 0 { "ahead of" } else { "behind" },
            units::format_time(passage / 1e9),
            units::format_time(to_f64(error) / 1e9)
        );
        let figures = format!("offset {} ns, error {} ns", clock.offset_ns, error);
        (NOTE, sentence, evidence(&figures, first, last))
    })
}

/// Half of the least round trip of a call, or of what connections measured, ns.
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

/// Units that arrive before they are sent, by more than the clocks' errors.
fn backwards(log: &FindingEventLog<'_>) -> Option<(f64, String, Evidence)> {
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
            "{wrong} of {units} units and responses arrive before they are sent, by up to {}: the clocks of their hosts disagree by more than is known",
            units::format_time(to_f64(worst) / 1e9)
        );
        (share, sentence, log.evidence(format!("{wrong} units arrive too early"), &rows))
    })
}
