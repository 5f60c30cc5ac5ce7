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
//! | `change`, `kept_connection` | what a piece of advice changes in the plan |
//! | `kind` | what a kind of finding is |
//! | `ranking` | which finding comes first, and that no time is in two |
//! | `removal` | which change takes a cause away |
//! | `rows`, `packets`, `event_log` | events by keyword, with the bytes they are about; what is computed of them once |
//! | `measured` | what kinds share about a measurement: its parts, paths, ends, and which events explain which waits |
//! | `bulk` | kinds about data that goes one way: ends, windows, buffers, queues, links, losses |
//! | `calls` | kinds about calls, each of which waits for its answer |
//! | `requests` | kinds about requests of programs that are not ours: their time, by cause |
//! | `followed_units` | units that events follow over hosts, where nothing was measured: blocks, a display |
//! | `observed` | kinds about connections of any programs, where nothing was measured |
//! | `imps` | what holds messages up between hosts of IMPs, and the IMPs' processors |
//! | `environment` | kinds about what is around a run: clocks, processors, stopped processes, lost events |
//! | `unaccounted` | what neither distance, data, service nor senders take of the time of calls |
//! | `unexplained`, `healthy` | time without a cause, and runs that nothing limits |
//!
//! In a folder, a kind of finding is a file with the name of the kind; what kinds of `bulk` alone share stands in `bulk/shared`.

mod bulk;
mod calls;
mod change;
mod environment;
mod event_log;
mod finding;
mod followed_units;
mod healthy;
mod imps;
mod input;
mod kept_connection;
mod kind;
mod measured;
mod observed;
mod packets;
mod ranking;
mod removal;
mod requests;
mod rows;
mod suspects;
mod unaccounted;
mod unexplained;

pub use change::PlanChange;
pub use finding::{Advice, CauseTimeShare, Evidence, ExpectedEffect, Finding, Gauge, LEAST};
pub use input::AnalysisInput;
pub use kind::FindingKind;
pub use observed::transfers::{GoodputInterval, ObservedTransfer, find_transfers};
pub use ranking::{count_time_once, is_about_failures, rank};
pub use removal::takes_away;
pub use requests::accounted::{
    AccountedCause, AccountedRequest, AccountedSpread, AccountedTimes, account_requests,
    account_shown_requests, spread_requests,
};
pub use requests::causes::program_ends::describe_last_program;
pub use requests::failed_status::is_failure_status;
pub use requests::general_names::generalise_request_name;
pub use requests::named::{NamedRequests, find_named_requests};
pub use suspects::Suspect;

use crate::assemble::{LifelineOptions, lifelines};
use event_log::FindingEventLog;
use kind::Find;
use measured::context::FindingContext;
use measured::measurement::FindingMeasurement;
use stackline_core::plan::Plan;
use stackline_core::trace_index::Index;
use stackline_events::EventTable;
use std::collections::BTreeMap;

/// Every kind; of two findings that rank alike, the one of the kind listed first comes first.
pub const KINDS: &[FindingKind] = &[
    environment::lost_events::KIND,
    environment::clock_trouble::KIND,
    environment::stage_limited::KIND,
    bulk::sender_limited::KIND,
    bulk::network_limited::KIND,
    bulk::outage::KIND,
    bulk::reordering::KIND,
    bulk::retransmission_stall::KIND,
    bulk::queue_drop::KIND,
    bulk::link_loss::KIND,
    bulk::receive_buffer_loss::KIND,
    environment::paused_process::KIND,
    environment::cpu_limit::KIND,
    calls::nagle_delayed_ack::KIND,
    bulk::undersized_buffer::KIND,
    bulk::synchronised_loss::KIND,
    bulk::application_limited::KIND,
    bulk::receiver_limited::KIND,
    bulk::socket_buffer::KIND,
    observed::unread::KIND,
    observed::full_link::KIND,
    observed::datagram_loss::KIND,
    observed::window::KIND,
    observed::send_buffer::KIND,
    observed::loss::KIND,
    observed::congestion::KIND,
    observed::application::KIND,
    observed::quiet::KIND,
    calls::connection_per_call::KIND,
    calls::head_of_line_blocking::KIND,
    calls::serial_round_trips::KIND,
    calls::far_end_takes::KIND,
    bulk::window_below_bdp::KIND,
    bulk::flow_control_window::KIND,
    bulk::slow_start::KIND,
    requests::causes::PROGRAM_ENDED,
    requests::causes::UNANSWERED,
    requests::causes::ENDED,
    requests::causes::FAILED,
    requests::causes::BACKS_OFF,
    requests::causes::SLOW_LOOKUP,
    requests::causes::LOST_CONNECT,
    requests::causes::CONNECTION_EACH,
    requests::causes::HANDSHAKE_EACH,
    requests::causes::REQUEST_LOSS,
    requests::causes::REQUEST_WINDOW,
    requests::causes::REQUEST_SLOW_START,
    requests::causes::SENDER_WINDOW,
    requests::causes::REQUEST_RATE,
    requests::causes::REQUEST_QUEUE,
    requests::causes::ONE_AT_A_TIME,
    requests::causes::SERVER_AWAY,
    requests::causes::SERVER_COMPUTES,
    requests::causes::SERVER_NO_CORE,
    requests::causes::SERVER_LOCK,
    requests::causes::SERVER_DISK,
    requests::causes::SERVER_SLEEPS,
    requests::causes::SERVER_CHILD,
    requests::causes::SERVER_STOPPED,
    requests::causes::SERVER_COLLECTS,
    requests::causes::SERVER_TAKES,
    requests::causes::RESPONDER_TAKES,
    requests::causes::BEHIND_SLOW,
    requests::causes::CLIENT_PAUSES,
    requests::causes::CHATTY,
    requests::causes::ROUND_TRIPS,
    requests::causes::MESSAGES_UNREAD,
    requests::causes::CLIENT_LATE,
    requests::causes::REQUEST_HELD,
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
    let logs: Vec<FindingEventLog<'_>> = inputs.iter().map(FindingEventLog::from_input).collect();
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
    let measurements = logs.iter().flat_map(|log| {
        indices(log).filter_map(move |index| FindingMeasurement::from_log(log, index))
    });
    for found in measurements
        .map(|measurement| of_measurement(&mut FindingContext::from_measurement(measurement)))
    {
        // What is wrong with the whole run says more than that nothing is wrong with a part of it.
        findings.extend(
            found
                .into_iter()
                .filter(|finding| !whole || !finding.is_healthy()),
        );
    }
    let measurements = inputs
        .first()
        .map_or(0, |input| input.plan.measurements.len());
    count_time_once(&mut findings, measurements);
    findings
}

/// Whether nothing was measured, and events follow units over hosts and back.
#[must_use]
pub fn is_session(input: &AnalysisInput<'_>) -> bool {
    input.plan.measurements.is_empty() && FindingEventLog::from_input(input).session().is_some()
}

/// What could cost time by the specification, measurement by measurement.
#[must_use]
pub fn suspects(input: &AnalysisInput<'_>) -> Vec<Suspect> {
    let log = FindingEventLog::from_input(input);
    let measurements = 0..input.plan.measurements.len();
    measurements
        .filter_map(|index| FindingMeasurement::from_log(&log, index))
        .flat_map(|one| suspects::find_suspects(&one))
        .collect()
}

/// Whether two kinds blame the same thing where they name the same place.
#[must_use]
pub fn blame_alike(kind: &str, other: &str) -> bool {
    const OF_ONE_QUEUE: [FindingKind; 3] = [
        bulk::queue_drop::KIND,
        bulk::synchronised_loss::KIND,
        bulk::undersized_buffer::KIND,
    ];
    let is_of_queue = |name: &str| OF_ONE_QUEUE.iter().any(|kind| kind.name == name);
    kind == other || (is_of_queue(kind) && is_of_queue(other))
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
            measured::parallel_parts::find(context, *find)
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
    doubt_where_overloaded(context, &mut found);
    found
}

/// The most confidence of a finding where an emulator could not keep up in most runs: the figures are of this machine too.
const OVERLOADED: f64 = 0.7;

/// Lowers the confidence of findings about runs in which the emulator was overloaded, and adds that to their evidence.
fn doubt_where_overloaded(context: &FindingContext<'_>, found: &mut [Finding]) {
    let (overloaded, runs) = context.measurement.overloaded_runs();
    if 2 * overloaded <= runs {
        return;
    }
    let evidence = context.measurement.figure(format!(
        "the emulator was overloaded in {overloaded} of {}: this machine's own delays are in the figures",
        finding::counted(runs, "run")
    ));
    for one in found {
        one.confidence = one.confidence.min(OVERLOADED);
        one.evidence.push(evidence.clone());
    }
}

#[cfg(test)]
mod tests;
