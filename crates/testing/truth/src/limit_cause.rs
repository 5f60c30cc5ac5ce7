//! What can be taken away from a scenario, one row each: how it is removed. It decides nothing.

use crate::link_conduct::LinkJitter;
use crate::scenario::{Scenario, ScenarioStack, ScenarioWork};
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
    /// The queue before the link: room for everything, and nothing dropped early.
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
    /// Times in which the link carries nothing: none.
    Outage,
    /// Packets that overtake one another: the same mean delay, in order.
    Reordering,
    /// The window that connections begin with: a message, or what the path and its queue hold.
    FirstWindow,
}

impl LimitCause {
    /// All of them.
    pub const ALL: [Self; 17] = [
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
        Self::Outage,
        Self::Reordering,
        Self::FirstWindow,
    ];

    /// Whether it can be planted, and is not yet.
    pub(crate) fn fits(self, scenario: &Scenario) -> bool {
        let transfer = matches!(scenario.work, ScenarioWork::Transfer { .. });
        let new = !scenario.planted.contains(&self);
        let planted = |cause: Self| scenario.planted.contains(&cause);
        let kind = match self {
            Self::Rate | Self::Delay | Self::FirstWindow => false,
            Self::Sender | Self::Reader => transfer,
            Self::Service | Self::Think => !transfer,
            Self::Pieces => !transfer && !planted(Self::Connects),
            Self::Connects => !transfer && !planted(Self::Pieces),
            Self::Outage => scenario.conduct.rate_steps.is_none(),
            Self::Reordering => scenario.conduct.jitter.is_none(),
            _ => true,
        };
        kind && new && self.fits_stack(scenario.stack)
    }

    /// Whether a stack has what is planted.
    fn fits_stack(self, stack: ScenarioStack) -> bool {
        match stack {
            ScenarioStack::Tcp => true,
            ScenarioStack::Quic => self != Self::Pieces,
            ScenarioStack::Udp => matches!(
                self,
                Self::Loss | Self::Queue | Self::Load | Self::Reader | Self::Copy | Self::Outage
            ),
            ScenarioStack::Ikp => matches!(
                self,
                Self::Loss | Self::Load | Self::Service | Self::Think | Self::Copy | Self::Outage
            ),
        }
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
                if let Some(jitter) = &mut other.conduct.jitter {
                    jitter.mean_s /= 4.0;
                }
            }
            Self::ReceiveBuffer => other.options.receive_buffer = None,
            Self::SendBuffer => other.options.send_buffer = None,
            Self::Loss => other.loss = 0.0,
            Self::Queue => {
                other.queue_bytes = u64::from(u32::MAX);
                other.conduct.discipline = "";
            }
            Self::Load => other.load = None,
            Self::Pieces => other.options.nodelay = true,
            Self::Outage => other.conduct.outage = None,
            Self::Reordering => {
                let overtakes = |jitter: &mut LinkJitter| jitter.reorders;
                if let Some(jitter) = other.conduct.jitter.take_if(overtakes) {
                    other.middle.delay_s += jitter.mean_s;
                }
            }
            Self::FirstWindow => other.options.first_window = first_window(scenario),
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

/// What a window that needs not grow is; `None` where it needs not now.
fn first_window(scenario: &Scenario) -> Option<u64> {
    let streams = matches!(scenario.stack, ScenarioStack::Tcp | ScenarioStack::Quic);
    let holds = (scenario.pipe_bytes() as u64).saturating_add(scenario.queue_bytes.min(PATH));
    let window = scenario.longest_message().min(holds);
    (streams && window > USUAL).then_some(window)
}

/// What stacks begin with, and what the largest first window is, bytes.
const USUAL: u64 = 14_480;
const PATH: u64 = 50_000_000;
