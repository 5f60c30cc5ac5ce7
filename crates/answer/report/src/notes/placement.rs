//! Notes on which cores threads ran on, and whether rows that differ only in the stack can be compared.

use crate::figure;
use stackline_analyze::{CoreSharing, RunMetric, Summary, ThreadPlacement, rows_by_measurement};
use stackline_core::units;

/// For rows that differ only in the stack: their order by median call time, if all were pinned alike (other work on the machine hardly
/// changes the median); or a note that their placements differ, so that they cannot be compared.
pub(super) fn stacks_beside(summaries: &[Summary]) -> Vec<String> {
    let groups = rows_by_measurement(summaries);
    groups.iter().filter_map(|rows| beside(rows)).collect()
}

fn beside(rows: &[&Summary]) -> Option<String> {
    let shared: Vec<CoreSharing> = rows.iter().filter_map(|row| row.core_sharing).collect();
    if rows.len() < 2 || shared.len() < rows.len() {
        return None;
    }
    if let Some(at) = shared.iter().position(|sharing| *sharing != shared[0]) {
        return Some(format!(
            "different placement: {} had {}, {} {}, so these rows do not compare the stacks",
            rows[0].stack,
            shared[0].words(),
            rows[at].stack,
            shared[at].words(),
        ));
    }
    let pinned =
        |row: &&&Summary| !pinned_pair(row).is_empty() && row.main == Some(RunMetric::Response);
    if rows.iter().filter(pinned).count() < rows.len() {
        return None;
    }
    let median = |row: &Summary| row.response_s.as_ref().map(|times| times.median);
    let mut medians: Vec<(&str, f64)> = rows
        .iter()
        .filter_map(|row| Some((row.stack.as_str(), median(row)?)))
        .collect();
    medians.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (fastest, least) = *medians.first()?;
    let others = medians[1..]
        .iter()
        .map(|(stack, time)| format!("{stack} x {}", units::three_digits(time / least)));
    let first = format!("{fastest} {}", figure::value(RunMetric::Response, least));
    let order: Vec<String> = std::iter::once(first).chain(others).collect();
    Some(format!("by median call time: {}", order.join(", ")))
}

/// The cores of both ends, if both were pinned on one machine: only such rows can be compared.
pub(super) fn pinned_pair(summary: &Summary) -> Vec<String> {
    let places = [summary.initiator.placement, summary.responder.placement];
    let [Some(initiator), Some(responder)] = places else {
        return Vec::new();
    };
    if !(initiator.pinned && responder.pinned) || summary.core_sharing.is_none() {
        return Vec::new();
    }
    let (a, b) = (initiator.end, responder.end);
    let several = if summary.replicas > 1 {
        " of the first pair"
    } else {
        ""
    };
    vec![if a == b {
        format!("both ends{several} on core {a}")
    } else {
        format!("ends{several} on cores {a} and {b}")
    }]
}

/// The cores of the threads, if the ends were not both pinned on one machine.
pub(super) fn cores(summary: &Summary) -> Vec<String> {
    if !pinned_pair(summary).is_empty() {
        return Vec::new();
    }
    let core = |side: &str, placement: Option<ThreadPlacement>| {
        let ThreadPlacement { start, end, pinned } = placement?;
        let moved = if start == end {
            String::new()
        } else {
            format!(" -> {end}")
        };
        Some(format!(
            "{side} on core {start}{moved} ({})",
            if pinned { "pinned" } else { "not pinned" }
        ))
    };
    let sides = [
        core("initiator", summary.initiator.placement),
        core("responder", summary.responder.placement),
    ];
    let said: Vec<String> = sides.into_iter().flatten().collect();
    if said.is_empty() {
        said
    } else {
        vec![format!("placement, last run: {}", said.join(", "))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_analyze::{SampleStatistics, SideSummary};

    /// A row of calls whose ends ran there, pinned or not.
    fn row(stack: &str, median: f64, cores: (usize, usize), pinned: bool) -> Summary {
        let side = |core| SideSummary {
            placement: Some(ThreadPlacement {
                start: core,
                end: core,
                pinned,
            }),
            ..SideSummary::default()
        };
        Summary {
            text: format!("1 rr 32*10 over {stack}"),
            stack: stack.into(),
            main: Some(RunMetric::Response),
            response_s: SampleStatistics::from_values(&[median, median, 100.0 * median]),
            core_sharing: Some(if cores.0 == cores.1 {
                CoreSharing::OneCore
            } else {
                CoreSharing::CoreEach
            }),
            initiator: side(cores.0),
            responder: side(cores.1),
            ..Summary::default()
        }
    }

    #[test]
    fn rows_of_like_placement_are_ranked_by_the_median_call() {
        let rows = [
            row("tcp", 13e-6, (0, 0), true),
            row("unix", 9e-6, (0, 0), true),
            row("udp", 10e-6, (0, 0), true),
        ];
        assert_eq!(
            stacks_beside(&rows),
            ["by median call time: unix 9.00 us, udp x 1.11, tcp x 1.44"]
        );
        assert_eq!(pinned_pair(&rows[0]), ["both ends on core 0"]);
        assert_eq!(cores(&rows[0]), [""; 0]);
    }

    #[test]
    fn rows_of_unlike_placement_are_not_compared() {
        let rows = [
            row("tcp", 13e-6, (0, 0), true),
            row("unix", 9e-6, (0, 1), true),
        ];
        let [said] = &stacks_beside(&rows)[..] else {
            panic!("one sentence");
        };
        assert!(
            said.starts_with(
                "different placement: tcp had both ends on one core, unix one core for each end"
            ),
            "{said}"
        );
        assert_eq!(pinned_pair(&rows[1]), ["ends on cores 0 and 1"]);
    }

    #[test]
    fn what_the_kernel_placed_is_not_ranked() {
        let rows = [
            row("tcp", 13e-6, (0, 0), false),
            row("unix", 9e-6, (0, 0), false),
        ];
        assert_eq!(stacks_beside(&rows), [""; 0]);
        assert_eq!(stacks_beside(&rows[..1]), [""; 0], "nothing beside it");
        assert_eq!(
            cores(&rows[0]),
            [
                "placement, last run: initiator on core 0 (not pinned), responder on core 0 (not pinned)"
            ]
        );
    }
}
