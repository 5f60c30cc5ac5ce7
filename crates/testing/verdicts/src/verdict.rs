//! Whether findings say what is true by removal.

use serde::Serialize;
use stackline_truth::judge::{CAUSE, MeasuredTruth, NONE};
use stackline_truth::scenario::ScenarioWork;
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
    /// How many times as fast it says the same would be, for each piece of advice that says so.
    pub gains: Vec<f64>,
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
        // No change takes a window's beginning away: only a shorter distance can show that it is right.
        let wrong = if said.kind == "slow_start" {
            f64::NEG_INFINITY
        } else {
            NONE
        };
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
        grade(saves, CAUSE, wrong)
    }

    /// How many times as fast the same is without the cause that a finding names, where its advice takes just that away: the path's own
    /// rate and distance, and copies, are quartered or removed here and halved there.
    #[must_use]
    pub fn worth(&self, said: &ReportedFinding) -> Option<f64> {
        let named = |change: &LimitCause| is_named_by(*change, said, self.scenario);
        let halved = |change: &LimitCause| {
            matches!(
                change,
                LimitCause::Rate | LimitCause::Delay | LimitCause::Copy
            )
        };
        let named = self
            .truth
            .saves
            .iter()
            .filter(|(change, _)| named(change))
            .collect::<Vec<_>>();
        match named[..] {
            [(change, saves)] if !halved(change) && *saves < 1.0 => Some(1.0 / (1.0 - saves)),
            _ => None,
        }
    }

    /// Whether the causes that are named with some confidence are exactly those there are, but for the path's own rate and distance and
    /// for what saves too little to be called either.
    #[must_use]
    pub fn is_exact(&self, sure: &[ReportedFinding]) -> bool {
        let own = |cause: &LimitCause| matches!(cause, LimitCause::Rate | LimitCause::Delay);
        let missed = self
            .truth
            .causes()
            .iter()
            .any(|cause| !own(cause) && !self.is_named(*cause, sure));
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
            "serial_round_trips" | "slow_start" | "window_below_bdp" | "socket_buffer"
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
        LimitCause::Reader => kind == "receiver_limited",
        LimitCause::Pieces => kind == "nagle_delayed_ack",
        LimitCause::Connects => kind == "serial_round_trips" || kind == "connection_a_call",
        LimitCause::Copy => matches!(
            kind,
            "cpu_limit" | "receiver_limited" | "sender_limited" | "host_copy"
        ),
    }
}
