//! The order in which findings are shown, and the rule that no time of a measurement is explained by two findings.

use super::finding::percent;
use super::{Finding, LEAST, environment, requests, unexplained};
use std::collections::BTreeSet;

/// Sorts the findings, the most important first.
pub fn rank(findings: &mut [Finding]) {
    findings.sort_by(|a, b| tier(a).cmp(&tier(b)).then(b.rank().total_cmp(&a.rank())));
}

/// Whether a finding is about requests or programs that failed: its share is of these, and not of time.
#[must_use]
pub fn is_about_failures(finding: &Finding) -> bool {
    requests::causes::FAILURES.contains(&finding.kind)
}

/// The group of a finding; lower groups come first: 0 failures of requests, 1 causes, 2 causes whose removal saves next to nothing, 3 time
/// without a cause, 4 notes about clocks.
fn tier(finding: &Finding) -> u8 {
    match finding.kind {
        _ if is_about_failures(finding) => 0,
        kind if kind == unexplained::KIND.name => 3,
        kind if kind == environment::clock_trouble::KIND.name && finding.share < LEAST => 4,
        _ if finding.is_idle() => 2,
        _ => 1,
    }
}

/// Sorts the findings and lets each share of a measurement's time count once: time that a finding of higher rank explains is taken from
/// those below it. What is found about the whole of a run that has one measurement counts as found about it. The unexplained share is cut to what is left, and that finding is removed if less than [`LEAST`] remains.
pub fn count_time_once(findings: &mut Vec<Finding>, measurements_of_run: usize) {
    rank(findings);
    let measurements: BTreeSet<usize> = findings.iter().filter_map(|one| one.measurement).collect();
    let is_only = measurements_of_run == 1;
    for measurement in measurements {
        let mut left: f64 = 1.0;
        let of_it = |one: &&mut Finding| {
            let is_its = one.measurement.map_or(is_only, |at| at == measurement);
            is_its && !one.is_of_units && !is_about_failures(one)
        };
        for finding in findings.iter_mut().filter(of_it) {
            if finding.kind == unexplained::KIND.name {
                leave_unexplained(finding, left);
            } else {
                count_rest(finding, left);
            }
            left = (left - finding.share).max(0.0);
        }
    }
    findings.retain(|one| one.kind != unexplained::KIND.name || one.share >= LEAST);
}

/// The end of a sentence whose time is explained by findings above it: wholly, and in part.
const EXPLAINED_ABOVE: &str = "the findings above explain that time too";
const BESIDE_ABOVE: &str = "without what the findings above explain";

/// Cuts the share of a finding to `left`, and says so behind its sentence, which gives the whole.
fn count_rest(finding: &mut Finding, left: f64) {
    // Findings may be counted again in another order.
    let is_said = |suffix: &&str| finding.sentence.ends_with(*suffix);
    if [EXPLAINED_ABOVE, BESIDE_ABOVE].iter().any(is_said)
        && let Some(at) = finding.sentence.rfind("; ")
    {
        finding.sentence.truncate(at);
    }
    finding.share = *finding.whole.get_or_insert(finding.share);
    if finding.share > left && percent(finding.share) != percent(left) {
        finding.sentence += &match left < LEAST {
            true => format!("; {EXPLAINED_ABOVE}"),
            false => format!("; {} {BESIDE_ABOVE}", percent(left)),
        };
    }
    finding.share = finding.share.min(left);
}

/// Cuts the share of an `unexplained` finding to `left`, in its sentence too.
fn leave_unexplained(finding: &mut Finding, left: f64) {
    if left >= finding.share {
        return;
    }
    let (was, now) = (percent(finding.share), percent(left));
    if let Some(rest) = finding.sentence.strip_prefix(&was) {
        finding.sentence = format!("{now}{rest}");
    }
    finding.share = left;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(kind: &'static str, share: f64, confidence: f64) -> Finding {
        Finding {
            kind,
            sentence: format!("{} of the time", percent(share)),
            confidence,
            share,
            is_of_units: false,
            saves: None,
            evidence: Vec::new(),
            tries: Vec::new(),
            measurement: Some(0),
            takes: None,
            whole: None,
        }
    }

    fn order(findings: &[Finding]) -> Vec<(&str, u32)> {
        findings
            .iter()
            .map(|one| (one.kind, (100.0 * one.share).round() as u32))
            .collect()
    }

    #[test]
    fn what_was_taken_away_ranks_by_what_that_saved() {
        let saves = |kind, share, saves| Finding {
            saves: Some(saves),
            ..finding(kind, share, 0.9)
        };
        let mut found = vec![
            finding("unexplained", 0.1, 0.3),
            saves("link_loss", 0.5, 0.0),
            saves("socket_buffer", 0.4, 0.25),
            saves("window_below_bdp", 0.3, 0.6),
        ];
        rank(&mut found);
        let kinds: Vec<&str> = found.iter().map(|one| one.kind).collect();
        assert_eq!(
            kinds,
            [
                "window_below_bdp",
                "socket_buffer",
                "link_loss",
                "unexplained"
            ]
        );
    }

    #[test]
    fn no_time_is_in_two_findings() {
        let mut found = vec![
            finding("unexplained", 0.99, 0.3),
            finding("application_limited", 0.5, 0.9),
            finding("serial_round_trips", 0.4, 0.9),
        ];
        count_time_once(&mut found, 1);
        let wanted = [
            ("application_limited", 50),
            ("serial_round_trips", 40),
            ("unexplained", 10),
        ];
        assert_eq!(order(&found), wanted);
        assert!(found[2].sentence.starts_with("10 %"));
        assert_eq!(found[1].sentence, "40 % of the time");
        found.push(finding("link_loss", 0.95, 0.95));
        count_time_once(&mut found, 1);
        let wanted = [
            ("link_loss", 95),
            ("application_limited", 5),
            ("serial_round_trips", 0),
        ];
        assert_eq!(order(&found), wanted);
        let said = [&found[1].sentence, &found[2].sentence];
        assert!(said[0].ends_with("; 5 % without what the findings above explain"));
        assert!(said[1].ends_with("; the findings above explain that time too"));
        // Counted once more, they say the same.
        let again = found.clone();
        count_time_once(&mut found, 1);
        assert_eq!(found, again);
        // What is found about the whole run takes its time from the only measurement.
        found.push(Finding {
            measurement: None,
            ..finding("cpu_limit", 0.99, 0.95)
        });
        count_time_once(&mut found, 1);
        assert_eq!(order(&found)[..2], [("cpu_limit", 99), ("link_loss", 1)]);
    }
}
