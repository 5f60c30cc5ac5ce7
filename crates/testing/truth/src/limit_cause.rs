//! What can be taken away from a scenario, one row each: how it is removed. It decides nothing.

use crate::scenario::{Scenario, ScenarioWork};
use serde::Serialize;

/// A possible cause of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitCause {
    /// The links' rates: four times as fast.
    Rate,
    /// The distance: a quarter of it.
    Delay,
    /// The receiver's buffer: the stack's own.
    ReceiveBuffer,
    /// The sender's buffer: the stack's own.
    SendBuffer,
    /// Losses of the link: none.
    Loss,
    /// The queue before the link: room for everything.
    Queue,
    /// The others' transfers: none.
    Load,
    /// What the responder does before a response: nothing.
    Service,
    /// What the caller does between calls: nothing.
    Think,
    /// What a sender does before a unit: nothing.
    Sender,
    /// What a reader does after a unit: nothing.
    Reader,
    /// Nagle's algorithm over requests in two pieces: off.
    Pieces,
    /// A connection for each call: one for all.
    Connects,
    /// Copies of the receiving host: none.
    Copy,
}

impl LimitCause {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Rate,
        Self::Delay,
        Self::ReceiveBuffer,
        Self::SendBuffer,
        Self::Loss,
        Self::Queue,
        Self::Load,
        Self::Service,
        Self::Think,
        Self::Sender,
        Self::Reader,
        Self::Pieces,
        Self::Connects,
        Self::Copy,
    ];

    /// Whether it can be planted, and is not yet.
    pub(crate) fn fits(self, scenario: &Scenario) -> bool {
        let transfer = matches!(scenario.work, ScenarioWork::Transfer { .. });
        let new = !scenario.planted.contains(&self);
        let kind = match self {
            Self::Rate | Self::Delay => false,
            Self::Sender | Self::Reader => transfer,
            Self::Service | Self::Think => !transfer,
            Self::Pieces => !transfer && !scenario.planted.contains(&Self::Connects),
            Self::Connects => !transfer && !scenario.planted.contains(&Self::Pieces),
            _ => true,
        };
        kind && new
    }

    /// The scenario without it; `None` where there is nothing to take away.
    #[must_use]
    pub fn without(self, scenario: &Scenario) -> Option<Scenario> {
        let mut other = scenario.clone();
        match self {
            Self::Rate => {
                for link in [&mut other.near, &mut other.middle, &mut other.far] {
                    link.rate_bit_s *= 4.0;
                }
            }
            Self::Delay => {
                for link in [&mut other.near, &mut other.middle, &mut other.far] {
                    link.delay_s /= 4.0;
                }
            }
            Self::ReceiveBuffer => other.tcp.receive_buffer = None,
            Self::SendBuffer => other.tcp.send_buffer = None,
            Self::Loss => other.loss = 0.0,
            Self::Queue => other.queue_bytes = u64::from(u32::MAX),
            Self::Load => other.load = None,
            Self::Pieces => other.tcp.nodelay = true,
            Self::Copy => other.copy_ns_per_byte = 0.0,
            Self::Service | Self::Think | Self::Sender | Self::Reader | Self::Connects => {
                self.without_work(&mut other.work)
            }
        }
        (other != *scenario).then_some(other)
    }

    fn without_work(self, work: &mut ScenarioWork) {
        match work {
            ScenarioWork::Transfer {
                sender_s, reader_s, ..
            } => match self {
                Self::Sender => *sender_s = 0.0,
                Self::Reader => *reader_s = 0.0,
                _ => {}
            },
            ScenarioWork::Calls {
                service_s,
                think_s,
                connects,
                ..
            } => match self {
                Self::Service => *service_s = 0.0,
                Self::Think => *think_s = 0.0,
                Self::Connects => *connects = false,
                _ => {}
            },
        }
    }
}
