//! Findings: what limits a run, as a sentence, with how sure that is, the events and figures that prove it, and what to try.
//!
//! Pure: it computes from what a run directory holds, and answers the same each time. A finding is ranked by how much of the
//! measured time it explains times how sure it is; time that no cause accounts for is reported below them. No time is
//! explained twice: what a cause brings about (retransmissions, stalls) is its evidence. What explains less than [`LEAST`] of
//! the time is not reported.
//!
//! | module | one idea |
//! | --- | --- |
//! | `input` | what findings are computed from |
//! | `finding` | what a finding is |
//! | `suspects` | what the specification has that could cost time |
//! | `change` | what a piece of advice changes in the plan |
//! | `kind` | what a kind of finding is |
//! | `rows`, `log` | events by keyword, with the bytes they are about; what is computed of them once |
//! | `measurement`, `part` | a measurement and its parts: runs, paths, what transports report of their time |
//! | `account` | where a part's time went by its senders' own account |
//! | `path` | each direction of each link: how full, what it dropped |
//! | `endpoints` | what each endpoint did with its time, what it waited for |
//! | `receive_backlog` | how long bytes waited for a reader that was away |
//! | `correlate` | which events explain which waits, by bytes or against chance |
//! | `losses`, `queues`, `lost_data` | what losses cost and where they were |
//! | `processors` | processors at their limit |
//! | `context` | all of that, once a measurement |
//! | `parallel_parts` | a kind over all parallel parts, each by itself |
//! | `observed` | connections of any programs, where nothing was measured |
//! | `session`, `session_between`, `session_left`, `session_network`, `session_turns`, `session_use` | units that events follow over hosts, where nothing was measured |
//! | `requests`, `request_costs`, `request_causes` | requests of programs that are not ours: their time, by cause, as findings |
//! | `request_network` | what an emulated network did to them: whose packets they waited behind, where they were dropped |
//! | `buffer` | how a larger buffer is requested |
//! | the others | one kind of finding each: its file has its name |

mod account;
mod application_limited;
mod attempts;
mod buffer;
mod change;
mod clock_trouble;
mod context;
mod correlate;
mod cpu_limit;
mod endpoints;
mod event_log;
mod finding;
mod healthy;
mod imps;
mod input;
mod kind;
mod link_loss;
mod losses;
mod lost_data;
mod lost_events;
mod measurement;
mod nagle_delayed_ack;
mod network_limited;
mod observed;
mod observed_loss;
mod observed_quiet;
mod observed_unread;
mod observed_window;
mod packets;
mod parallel_parts;
mod part;
mod path;
mod paused_process;
mod processors;
mod queue_drop;
mod queues;
mod receive_backlog;
mod receiver_limited;
mod request_causes;
mod request_costs;
mod request_network;
mod request_queues;
mod request_worst;
mod requests;
mod retransmission_stall;
mod rows;
mod sender_limited;
mod serial_round_trips;
mod session;
mod session_between;
mod session_left;
mod session_network;
mod session_turns;
mod session_use;
mod slow_start;
mod socket_buffer;
mod stage_limited;
mod suspects;
mod synchronised_loss;
mod undersized_buffer;
mod unexplained;
mod window_below_bdp;

pub use change::PlanChange;
pub use finding::{Advice, Evidence, ExpectedEffect, Finding, Gauge, LEAST};
pub use input::AnalysisInput;
pub use kind::FindingKind;
pub use suspects::Suspect;

use crate::assemble::{LifelineOptions, lifelines};
use context::FindingContext;
use event_log::FindingEventLog;
use kind::Find;
use measurement::FindingMeasurement;
use stackline_core::plan::Plan;
use stackline_core::trace_index::Index;
use stackline_events::EventTable;
use std::collections::BTreeMap;

/// Every kind; of two findings that rank alike, the one of the kind listed first comes first.
pub const KINDS: &[FindingKind] = &[
    lost_events::KIND,
    clock_trouble::KIND,
    stage_limited::KIND,
    sender_limited::KIND,
    network_limited::KIND,
    retransmission_stall::KIND,
    queue_drop::KIND,
    link_loss::KIND,
    paused_process::KIND,
    cpu_limit::KIND,
    nagle_delayed_ack::KIND,
    undersized_buffer::KIND,
    synchronised_loss::KIND,
    application_limited::KIND,
    receiver_limited::KIND,
    socket_buffer::KIND,
    observed_unread::KIND,
    observed_window::KIND,
    observed_loss::KIND,
    observed_quiet::KIND,
    serial_round_trips::KIND,
    window_below_bdp::KIND,
    slow_start::KIND,
    request_causes::UNANSWERED,
    request_causes::BACKS_OFF,
    request_causes::SLOW_LOOKUP,
    request_causes::LOST_CONNECT,
    request_causes::CONNECTION_EACH,
    request_causes::HANDSHAKE_EACH,
    request_causes::REQUEST_LOSS,
    request_causes::REQUEST_WINDOW,
    request_causes::REQUEST_RATE,
    request_causes::REQUEST_QUEUE,
    request_causes::ONE_AT_A_TIME,
    request_causes::SERVER_AWAY,
    request_causes::SERVER_COMPUTES,
    request_causes::SERVER_NO_CORE,
    request_causes::SERVER_LOCK,
    request_causes::SERVER_DISK,
    request_causes::SERVER_SLEEPS,
    request_causes::SERVER_CHILD,
    request_causes::SERVER_STOPPED,
    request_causes::SERVER_COLLECTS,
    request_causes::SERVER_TAKES,
    request_causes::CHATTY,
    request_causes::CLIENT_LATE,
    request_causes::REQUEST_HELD,
    unexplained::KIND,
    healthy::KIND,
];

/// What limits each measurement of a run, the most important first; a measurement that nothing limits has one finding that
/// says so.
#[must_use]
pub fn diagnose(input: &AnalysisInput<'_>) -> Vec<Finding> {
    diagnose_each(std::slice::from_ref(input))
}

/// What limits what a program's events tell of, where nothing was measured and all hosts have the right time; no directory is needed.
#[must_use]
pub fn of_events(events: &EventTable) -> Vec<Finding> {
    let plan = Plan {
        seed: 0,
        hosts: BTreeMap::new(),
        networks: Vec::new(),
        measurements: Vec::new(),
    };
    let index = Index::default();
    let lifelines = lifelines(events, None, &LifelineOptions::default());
    diagnose(&AnalysisInput {
        plan: &plan,
        records: &[],
        index: &index,
        events,
        lifelines: &lifelines,
    })
}

/// The same of a run in several parts, such as what has events and what has records alone; what is wrong with the whole of it is looked
/// for in the first.
#[must_use]
pub fn diagnose_each(inputs: &[AnalysisInput<'_>]) -> Vec<Finding> {
    let logs: Vec<FindingEventLog<'_>> = inputs.iter().map(FindingEventLog::of).collect();
    let of_run = |find: &Find| {
        if let Find::Run(find) = find {
            find(logs.first()?)
        } else {
            None
        }
    };
    let mut findings: Vec<Finding> = finds().filter_map(of_run).collect();
    let whole = findings.iter().any(|finding| finding.share >= LEAST);
    let indices = |log: &FindingEventLog<'_>| 0..log.input.plan.measurements.len();
    let measurements = logs
        .iter()
        .flat_map(|log| indices(log).filter_map(move |index| FindingMeasurement::of(log, index)));
    for found in
        measurements.map(|measurement| of_measurement(&mut FindingContext::of(measurement)))
    {
        // What is wrong with the whole run says more than that nothing is wrong with a part of it.
        findings.extend(
            found
                .into_iter()
                .filter(|finding| !whole || !finding.is_healthy()),
        );
    }
    rank(&mut findings);
    findings
}

/// Whether nothing was measured, and events follow units over hosts and back.
#[must_use]
pub fn is_session(input: &AnalysisInput<'_>) -> bool {
    input.plan.measurements.is_empty() && FindingEventLog::of(input).session().is_some()
}

/// What could cost time by the specification, measurement by measurement.
#[must_use]
pub fn suspects(input: &AnalysisInput<'_>) -> Vec<Suspect> {
    let log = FindingEventLog::of(input);
    let measurements = 0..input.plan.measurements.len();
    measurements
        .filter_map(|index| FindingMeasurement::of(&log, index))
        .flat_map(|one| suspects::find_suspects(&one))
        .collect()
}

/// Puts the most important first.
pub fn rank(findings: &mut [Finding]) {
    findings.sort_by(|a, b| tier(a).cmp(&tier(b)).then(b.rank().total_cmp(&a.rank())));
}

fn finds() -> impl Iterator<Item = &'static Find> {
    KINDS.iter().flat_map(|kind| kind.find)
}

fn of_measurement(context: &mut FindingContext<'_>) -> Vec<Finding> {
    let of_all = |find: &Find| {
        if let Find::Measurement(find) = find {
            find(context)
        } else {
            None
        }
    };
    let mut found: Vec<Finding> = finds().filter_map(of_all).collect();
    let of_each = |find: &Find| {
        if let Find::Part(find) = find {
            parallel_parts::find(context, *find)
        } else {
            None
        }
    };
    found.extend(finds().filter_map(of_each));
    let of_rest = |find: &Find| {
        if let Find::Rest(find) = find {
            find(context, &found)
        } else {
            None
        }
    };
    let rest: Vec<Finding> = finds().filter_map(of_rest).collect();
    found.retain(|finding| finding.share >= LEAST);
    found.extend(rest);
    if found.is_empty() {
        found.push(healthy::nothing_found(context));
    }
    found
}

/// Causes come before what has none, and both before what is only noted.
fn tier(finding: &Finding) -> u8 {
    match finding.kind {
        kind if kind == unexplained::KIND.name => 1,
        kind if kind == clock_trouble::KIND.name && finding.share < LEAST => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
