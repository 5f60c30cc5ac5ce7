//! Whether findings say what is true by removal.

use serde::Serialize;
use stackline_truth::judge::{CAUSE, MeasuredTruth, NONE};
use stackline_truth::scenario::{ScenarioStack, ScenarioWork};
use stackline_truth::{LimitCause, Scenario};

/// One finding, as whoever names limits said it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportedFinding {
    /// The kind of the finding.
    pub kind: String,
    /// Its sentence, which holds the place.
    pub sentence: String,
    /// How sure it is, 0 to 1.
    pub confidence: f64,
    /// Of data that never arrives: how much of all that is.
    pub share_of_units: Option<f64>,
}

/// What became of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingVerdict {
    /// A cause by removal.
    Right,
    /// None.
    Wrong,
    /// It saves a little, or it says nothing that can be right or wrong.
    Open,
}

/// Judges findings about a scenario of which the truth is known.
#[derive(Clone, Copy, Debug)]
pub struct FindingJudge<'a> {
    /// What each change saves.
    pub truth: &'a MeasuredTruth,
    /// What was run.
    pub scenario: &'a Scenario,
}

impl FindingJudge<'_> {
    /// Whether a finding is right.
    #[must_use]
    pub fn verdict(&self, said: &ReportedFinding) -> FindingVerdict {
        if said.kind == "healthy" {
            // Distance and rate are the network's own: no fault.
            let faults = self
                .truth
                .saves
                .iter()
                .filter(|(change, _)| !matches!(change, LimitCause::Rate | LimitCause::Delay));
            let most = faults.map(|(_, saves)| *saves).fold(0.0, f64::max);
            return grade(1.0 - most, 1.0 - NONE, 1.0 - CAUSE);
        }
        if said.kind == "unexplained" {
            return FindingVerdict::Open;
        }
        let named = |change: &LimitCause| is_named_by(*change, said, self.scenario);
        let saves = self
            .truth
            .saves
            .iter()
            .filter(|(change, _)| named(change))
            .map(|(_, saves)| *saves)
            .fold(0.0, f64::max);
        match said.share_of_units {
            Some(share) => grade(saves, share / 2.0, share / 4.0),
            None => grade(saves, CAUSE, NONE),
        }
    }

    /// Causes that are no property of the path itself, the most expensive first.
    #[must_use]
    pub fn causes(&self) -> Vec<LimitCause> {
        let mut causes = self.truth.causes();
        causes.retain(|cause| !matches!(cause, LimitCause::Rate | LimitCause::Delay));
        causes
    }

    /// Whether the causes that are named with some confidence are exactly those there are, but for the path's own rate and distance and
    /// for what saves too little to be called either.
    #[must_use]
    pub fn is_exact(&self, sure: &[ReportedFinding]) -> bool {
        let missed = self
            .causes()
            .iter()
            .any(|cause| !self.is_named(*cause, sure));
        !missed
            && sure
                .iter()
                .all(|said| self.verdict(said) != FindingVerdict::Wrong)
    }

    /// Whether somebody named that cause.
    #[must_use]
    pub fn is_named(&self, cause: LimitCause, all: &[ReportedFinding]) -> bool {
        all.iter()
            .any(|said| is_named_by(cause, said, self.scenario))
    }
}

fn grade(value: f64, right: f64, wrong: f64) -> FindingVerdict {
    match value {
        value if value >= right => FindingVerdict::Right,
        value if value < wrong => FindingVerdict::Wrong,
        _ => FindingVerdict::Open,
    }
}

/// Whether a finding names a cause. Places are words of its sentence.
fn is_named_by(cause: LimitCause, said: &ReportedFinding, scenario: &Scenario) -> bool {
    let (kind, sentence) = (said.kind.as_str(), said.sentence.as_str());
    let on = |host: &str| sentence.contains(&format!("on {host} "));
    let gets = matches!(scenario.work, ScenarioWork::Transfer { get: true, .. });
    let (sender, _) = if gets { ("b", "a") } else { ("a", "b") };
    let middle = ["l>r", "r>l"].iter().any(|port| sentence.contains(port));
    match cause {
        LimitCause::Rate => kind == "network_limited" && middle,
        LimitCause::Delay => matches!(
            kind,
            "serial_round_trips" | "window_below_bdp" | "socket_buffer"
        ),
        LimitCause::ReceiveBuffer => kind == "window_below_bdp",
        LimitCause::SendBuffer => kind == "socket_buffer",
        LimitCause::Loss => matches!(kind, "link_loss" | "retransmission_stall"),
        LimitCause::Queue => {
            matches!(
                kind,
                "queue_drop" | "undersized_buffer" | "synchronised_loss" | "retransmission_stall"
            )
        }
        LimitCause::Load => {
            matches!(
                kind,
                "network_limited" | "queue_drop" | "undersized_buffer" | "synchronised_loss"
            ) && middle
        }
        LimitCause::Service => kind == "application_limited" && on("b"),
        LimitCause::Think => kind == "application_limited" && on("a"),
        LimitCause::Sender => kind == "application_limited" && on(sender),
        LimitCause::Reader => {
            let drops = scenario.stack == ScenarioStack::Udp && kind == "receive_buffer_loss";
            kind == "receiver_limited" || drops
        }
        LimitCause::Pieces => kind == "nagle_delayed_ack",
        // What a connection begins with is part of what it costs.
        LimitCause::Connects => {
            let anew = kind == "slow_start" && sentence.contains("each new connection");
            kind == "connection_per_call" || anew
        }
        LimitCause::Copy => matches!(kind, "cpu_limit" | "receiver_limited" | "sender_limited"),
        LimitCause::Outage => kind == "outage",
        LimitCause::Reordering => kind == "reordering",
        LimitCause::FirstWindow => kind == "slow_start",
    }
}
