//! Findings: what limits a run, as a sentence, with how sure that is, the events and figures that prove it, and what to try.
//!
//! Pure: it computes from what a run directory holds, and answers the same each time. A finding is ranked by how much of the
//! measured time it explains times how sure it is; time that no cause accounts for is told below them. No time is explained twice: what a cause brings about (retransmissions,
//! stalls) is its evidence. What explains less than [`LEAST`] of the time is not named.
//!
//! | module | one idea |
//! | --- | --- |
//! | `log` | events by keyword, with the bytes they are about |
//! | `measurement` | a measurement: its runs, parts, paths, what transports say of their time |
//! | `path` | each direction of each link: how full, what it dropped |
//! | `endpoints` | what each endpoint did with its time, what it waited for |
//! | `backlog` | how long bytes lay there for a reader that was away |
//! | `joins` | which events explain which waits, by bytes or against chance |
//! | `losses` | what losses cost and where they were |
//! | `each` | a kind over all parallel parts, each by itself |
//! | `buffer` | how a larger buffer is asked for |
//! | `context` | all of that, once a measurement |
//! | the others | one kind of finding each |

mod application_limited;
mod buffer;
mod clock_trouble;
mod context;
mod correlate;
mod cpu_limit;
mod endpoints;
mod link_loss;
mod log;
mod losses;
mod lost_data;
mod lost_events;
mod measurement;
mod nagle_delayed_ack;
mod network_limited;
mod parallel_parts;
mod path;
mod paused_process;
mod queue_drop;
mod receive_backlog;
mod receiver_limited;
mod retransmission_stall;
mod sender_limited;
mod serial_round_trips;
mod slow_start;
mod socket_buffer;
mod synchronised_loss;
mod undersized_buffer;
mod unexplained;
mod window_below_bdp;

use crate::lifelines::Lifelines;
use context::Context;
use log::Log;
use measurement::Measurement;
use serde::{Deserialize, Serialize};
use stackline_core::plan::Plan;
use stackline_core::record::RunRecord;
use stackline_core::trace::Index;
use stackline_events::Table;

/// What findings are computed from: what a run directory holds.
#[derive(Clone, Copy, Debug)]
pub struct Input<'r> {
    /// What was to be done.
    pub plan: &'r Plan,
    /// What was done.
    pub records: &'r [RunRecord],
    /// What is known about the events.
    pub index: &'r Index,
    /// The events, each host's in its own time.
    pub events: &'r Table,
    /// Their lifelines, in reference time.
    pub lifelines: &'r Lifelines,
}

/// A diagnosis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Which kind, as in the table of `docs/JSON.md`.
    pub kind: Kind,
    /// What limits, in one sentence with figures.
    pub sentence: String,
    /// How sure that is, 0 to 1.
    pub confidence: f64,
    /// Share of the time of what was measured that it explains, of all parallel parts together, 0 to 1: what findings are
    /// ranked by.
    pub share: f64,
    /// What proves it.
    pub evidence: Vec<Evidence>,
    /// What would make it better.
    pub tries: Vec<String>,
    /// Which measurement it is about, by index in the plan; `None` for the whole run.
    pub measurement: Option<usize>,
}

/// One proof.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// What is seen, in words with figures.
    pub what: String,
    /// From when, reference time, ns.
    pub from_ns: u64,
    /// To when, reference time, ns.
    pub to_ns: u64,
    /// Units it concerns, at most some.
    pub units: Vec<String>,
    /// Events that show it: host and row in that host's file, at most some.
    pub events: Vec<(String, u32)>,
}

/// Which kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Nothing limits but the work itself.
    Healthy,
    /// The application does not hand over more.
    ApplicationLimited,
    /// The sender's host or buffer limits.
    SenderLimited,
    /// The receiver does not take more.
    ReceiverLimited,
    /// A link is full.
    NetworkLimited,
    /// Stalls that a retransmission explains.
    RetransmissionStall,
    /// Packets are dropped at a named queue.
    QueueDrop,
    /// Packets are lost on a link, not in a queue.
    LinkLoss,
    /// A socket buffer is full.
    SocketBuffer,
    /// A process could not run.
    PausedProcess,
    /// A core is at its limit.
    CpuLimit,
    /// Nagle's algorithm waits for a delayed acknowledgement.
    NagleDelayedAck,
    /// Round trips one after the other that could be folded.
    SerialRoundTrips,
    /// A buffer smaller than the streams through it need.
    UndersizedBuffer,
    /// Several streams lose at the same moments.
    SynchronisedLoss,
    /// A window below bandwidth times delay.
    WindowBelowBdp,
    /// A transfer is over before its window fills the path.
    SlowStart,
    /// Clocks cannot be trusted for what is asked.
    ClockTrouble,
    /// Events are missing.
    LostEvents,
    /// Time that nothing above accounts for.
    Unexplained,
}

/// Findings explain at least this share of the measured time.
pub const LEAST: f64 = 0.05;

/// What limits each measurement of a run, the most important first; a measurement that nothing limits has one finding that
/// says so.
#[must_use]
pub fn diagnose(input: &Input<'_>) -> Vec<Finding> {
    let log = Log::of(input);
    let mut findings: Vec<Finding> =
        [lost_events::find(&log), clock_trouble::find(&log)].into_iter().flatten().collect();
    let whole = findings.iter().any(|finding| finding.share >= LEAST);
    for index in 0..input.plan.measurements.len() {
        if let Some(measurement) = Measurement::of(&log, index) {
            let mut found = of(&mut Context::of(measurement));
            // What is wrong with the whole run says more than that nothing is wrong with a part of it.
            found.retain(|finding| !whole || finding.kind != Kind::Healthy);
            findings.extend(found);
        }
    }
    findings.sort_by(|a, b| a.tier().cmp(&b.tier()).then(b.rank().total_cmp(&a.rank())));
    findings
}

/// Every kind on one measurement.
fn of(context: &mut Context<'_>) -> Vec<Finding> {
    let of_all: [parallel_parts::Kind; 10] = [
        sender_limited::find,
        network_limited::find,
        retransmission_stall::find,
        queue_drop::find,
        link_loss::find,
        paused_process::find,
        cpu_limit::find,
        nagle_delayed_ack::find,
        undersized_buffer::find,
        synchronised_loss::find,
    ];
    let of_each: [parallel_parts::Kind; 7] = [
        application_limited::find,
        receiver_limited::find,
        socket_buffer::find,
        nagle_delayed_ack::find_by_times,
        serial_round_trips::find,
        window_below_bdp::find,
        slow_start::find,
    ];
    let mut found: Vec<Finding> = of_all.iter().filter_map(|find| find(context)).collect();
    found.extend(of_each.iter().filter_map(|find| parallel_parts::find(context, *find)));
    let rest = unexplained::find(context, &found);
    found.retain(|finding| finding.share >= LEAST);
    found.extend(rest);
    found.extend(lost_data::find(context, &found));
    if found.is_empty() {
        let sentence = "nothing that can be changed takes a noticeable share of the time".to_owned();
        // Records alone do not show everything.
        let confidence = if context.measurement.log.is_empty() { 0.7 } else { 0.95 };
        found.push(context.finding(Kind::Healthy, 0.0, confidence, sentence));
    }
    found
}

impl Finding {
    /// What is named comes before what is not, and both before what is only noted.
    const fn tier(&self) -> u8 {
        match self.kind {
            Kind::Unexplained => 1,
            Kind::ClockTrouble if self.share < LEAST => 2,
            _ => 0,
        }
    }

    /// What findings are sorted by: the share of the time explained, times how sure it is.
    #[must_use]
    pub fn rank(&self) -> f64 {
        self.share * self.confidence
    }
}

impl Kind {
    /// Its name, as in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::ApplicationLimited => "application_limited",
            Self::SenderLimited => "sender_limited",
            Self::ReceiverLimited => "receiver_limited",
            Self::NetworkLimited => "network_limited",
            Self::RetransmissionStall => "retransmission_stall",
            Self::QueueDrop => "queue_drop",
            Self::LinkLoss => "link_loss",
            Self::SocketBuffer => "socket_buffer",
            Self::PausedProcess => "paused_process",
            Self::CpuLimit => "cpu_limit",
            Self::NagleDelayedAck => "nagle_delayed_ack",
            Self::SerialRoundTrips => "serial_round_trips",
            Self::UndersizedBuffer => "undersized_buffer",
            Self::SynchronisedLoss => "synchronised_loss",
            Self::WindowBelowBdp => "window_below_bdp",
            Self::SlowStart => "slow_start",
            Self::ClockTrouble => "clock_trouble",
            Self::LostEvents => "lost_events",
            Self::Unexplained => "unexplained",
        }
    }
}

#[cfg(test)]
mod tests;
