//! Findings: what limits a run, as a sentence, with how sure that is, the events and figures that prove it, and what to try.
//!
//! Plain data; each kind of finding has a file of its own under `findings/`.

use crate::lifelines::Lifelines;
use serde::{Deserialize, Serialize};
use stackline_core::plan::Plan;
use stackline_core::record::RunRecord;
use stackline_core::trace::Index;
use stackline_events::Table;

/// What findings are computed from: what a run directory holds.
#[derive(Clone, Copy, Debug)]
pub struct Case<'r> {
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
    /// Share of the time of what was measured that it explains, 0 to 1: what findings are ranked by.
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
    /// Clocks cannot be trusted for what is asked.
    ClockTrouble,
    /// Events are missing.
    LostEvents,
}
