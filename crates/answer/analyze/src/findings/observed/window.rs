//! A sender of any program that the receiver's window keeps waiting, by a monitor or a capture.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, percent};
use crate::findings::kind::{Find, FindingKind};
use crate::findings::observed::connections::{
    collect_captured, collect_monitored, format_ns, is_observed, report_worst_connection, share,
};

pub(crate) const KIND: FindingKind = FindingKind {
    name: "observed_window",
    meaning: "of connections that were watched or captured: the receiver's window had no room, and its sender waited",
    find: &[Find::Run(find)],
};

fn find(log: &FindingEventLog<'_>) -> Option<Finding> {
    if !is_observed(log) {
        return None;
    }
    let of_monitors = collect_monitored(log).into_iter().map(|one| {
        let share = one.window_limited_ns / one.time_ns.max(1.0);
        let sentence = format!(
            "{} waits for the window of {} for {} of the time that was watched",
            one.local,
            one.remote,
            percent(share)
        );
        let figures = format!(
            "{} > {}: {} limited by the window",
            one.local,
            one.remote,
            format_ns(one.window_limited_ns)
        );
        (share, sentence, figures, one.rows)
    });
    let of_captures = collect_captured(log).into_iter().map(|(row, one)| {
        let share = share(one.window_full_ns as f64, one.duration_ns);
        let sentence = format!(
            "the receiver's window between {} and {} had no room for {} of their connection",
            one.initiator,
            one.responder,
            percent(share)
        );
        let figures = format!(
            "{} > {}: {} without room, {} times a window of zero",
            one.initiator,
            one.responder,
            format_ns(one.window_full_ns as f64),
            one.zero_windows
        );
        (share, sentence, figures, vec![row])
    });
    let found = report_worst_connection(&KIND, log, of_monitors.chain(of_captures))?;
    Some(found.attempt("let the receiver read faster, or give it a larger receive buffer"))
}
