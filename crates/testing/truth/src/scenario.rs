//! What is drawn: a path of three links, a transfer or calls over it, a stack, perhaps another load; and what is planted in it.
//! Draws only; it knows neither how it is written nor what it does.

use crate::dice::ScenarioDice;
use crate::limit_cause::LimitCause;
use crate::link_conduct::LinkConduct;
use serde::Serialize;

/// A measurement across a network `a - l - r - b`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scenario {
    /// The seed it was drawn from, which is also the specification's.
    pub seed: u64,
    /// What is measured, from `a` to `b`.
    pub work: ScenarioWork,
    /// The link `a - l`.
    pub near: ScenarioLink,
    /// The link `l - r`, the narrowest unless a cause was planted elsewhere.
    pub middle: ScenarioLink,
    /// The link `r - b`.
    pub far: ScenarioLink,
    /// Bytes that wait before the link `l - r` in each direction, at most.
    pub queue_bytes: u64,
    /// Share of packets that the link `l - r` loses, 0 to 1.
    pub loss: f64,
    /// What else the link `l - r` does to packets.
    pub conduct: LinkConduct,
    /// What carries it.
    pub stack: ScenarioStack,
    /// Options of that stack.
    pub options: ScenarioStackOptions,
    /// Other transfers at the same time.
    pub load: Option<BackgroundLoad>,
    /// What the processor of `b` takes for each byte it copies, ns.
    pub copy_ns_per_byte: f64,
    /// What was planted.
    pub planted: Vec<LimitCause>,
}

/// A link, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ScenarioLink {
    /// Its rate, bit/s.
    pub rate_bit_s: f64,
    /// One-way propagation, s.
    pub delay_s: f64,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ScenarioWork {
    /// Data units one way.
    Transfer {
        /// Whether `b` sends them.
        get: bool,
        /// Size of a unit, bytes.
        unit: u64,
        /// How many.
        count: u64,
        /// What the sender does before each unit, s.
        sender_s: f64,
        /// What the reader does after each unit, s.
        reader_s: f64,
        /// From unit to unit, s; 0 is as fast as it goes.
        pace_s: f64,
    },
    /// Calls one after the other.
    Calls {
        /// Size of a request, bytes.
        request: u64,
        /// Size of a response, bytes.
        response: u64,
        /// How many.
        count: u64,
        /// What `b` does before each response, s.
        service_s: f64,
        /// What `a` does between calls, s.
        think_s: f64,
        /// Whether the request is handed over in two pieces.
        pieces: bool,
        /// Whether each call opens a connection of its own.
        connects: bool,
    },
}

/// A stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ScenarioStack {
    /// A byte stream.
    Tcp,
    /// Streams in datagrams.
    Quic,
    /// Datagrams, which nobody sends again.
    Udp,
    /// V's messages.
    Ikp,
}

/// Options of a stack; `None` is its own choice.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ScenarioStackOptions {
    /// What the receiver offers, bytes.
    pub receive_buffer: Option<u64>,
    /// What a sender may have handed over, bytes.
    pub send_buffer: Option<u64>,
    /// Whether Nagle's algorithm is off.
    pub nodelay: bool,
    /// Reno instead of cubic.
    pub reno: bool,
    /// What a connection may send before the first acknowledgement, bytes.
    pub first_window: Option<u64>,
}

/// Endless transfers of others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BackgroundLoad {
    /// How many.
    pub pairs: u32,
    /// Whether they share the link `l - r`; otherwise they have links of their own.
    pub shares: bool,
}

impl Scenario {
    /// The scenario of a seed.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut dice = ScenarioDice::new(seed, "truth");
        let mut scenario = Self::healthy(seed, &mut dice);
        let planted = match dice.unit() {
            u if u < 0.2 => 0,
            u if u < 0.63 => 1,
            u if u < 0.92 => 2,
            _ => 3,
        };
        for _ in 0..planted {
            let fits: Vec<LimitCause> = LimitCause::ALL
                .into_iter()
                .filter(|change| change.fits(&scenario))
                .collect();
            if let Some(change) = dice.one(&fits) {
                scenario.plant(change, &mut dice);
            }
        }
        scenario
    }

    /// Without anything planted: the network's own figures limit.
    fn healthy(seed: u64, dice: &mut ScenarioDice) -> Self {
        let rate = dice.log(2e6, 500e6);
        let trip_s = dice.log(0.5e-3, 150e-3);
        let wide = |dice: &mut ScenarioDice| ScenarioLink {
            rate_bit_s: rate * dice.log(4.0, 20.0),
            delay_s: trip_s * 0.05,
        };
        let (near, far) = (wide(dice), wide(dice));
        let middle = ScenarioLink {
            rate_bit_s: rate,
            delay_s: trip_s * 0.4,
        };
        let pipe = rate * trip_s / 8.0;
        let queue_bytes = (pipe * dice.between(1.0, 2.0)).max(64e3) as u64;
        let stack = match dice.unit() {
            u if u < 0.7 => ScenarioStack::Tcp,
            u if u < 0.86 => ScenarioStack::Quic,
            u if u < 0.93 => ScenarioStack::Udp,
            _ => ScenarioStack::Ikp,
        };
        let work = match (stack, dice.chance(0.5)) {
            (ScenarioStack::Udp, _) => Self::paced_transfer(dice, rate, trip_s),
            (ScenarioStack::Ikp, _) | (_, true) => Self::calls(dice, rate, trip_s),
            (_, false) => Self::transfer(dice, rate, trip_s),
        };
        let options = ScenarioStackOptions {
            receive_buffer: None,
            send_buffer: None,
            nodelay: true,
            reno: dice.chance(0.3),
            first_window: None,
        };
        Self {
            seed,
            work,
            near,
            middle,
            far,
            queue_bytes,
            loss: 0.0,
            conduct: LinkConduct::drawn(dice, trip_s),
            stack,
            options,
            load: None,
            copy_ns_per_byte: 0.0,
            planted: Vec::new(),
        }
    }

    fn transfer(dice: &mut ScenarioDice, rate: f64, trip_s: f64) -> ScenarioWork {
        // From a few round trips to a few hundred, at most 40 MB, so that a run takes no minute.
        let lasts_s = (trip_s * dice.log(8.0, 400.0)).clamp(0.2, 20.0);
        let bytes = (rate * lasts_s / 8.0).clamp(100e3, 40e6);
        let unit = dice.one(&[4096_u64, 16384, 65536]).unwrap_or(16384);
        let count = (bytes as u64 / unit).max(4);
        ScenarioWork::Transfer {
            get: dice.chance(0.5),
            unit,
            count,
            sender_s: 0.0,
            reader_s: 0.0,
            pace_s: 0.0,
        }
    }

    /// Datagrams at a rate that the path has room for.
    fn paced_transfer(dice: &mut ScenarioDice, rate: f64, trip_s: f64) -> ScenarioWork {
        let unit = dice.one(&[200_u64, 800, 1400]).unwrap_or(800);
        let pace_s = 8.0 * (unit + 50) as f64 / rate / dice.between(0.2, 0.8);
        let lasts_s = (trip_s * dice.log(8.0, 100.0)).clamp(0.2, 5.0);
        ScenarioWork::Transfer {
            get: dice.chance(0.5),
            unit,
            count: (lasts_s / pace_s).clamp(300.0, 8000.0) as u64,
            sender_s: 0.0,
            reader_s: 0.0,
            pace_s,
        }
    }

    fn calls(dice: &mut ScenarioDice, rate: f64, trip_s: f64) -> ScenarioWork {
        let small = dice.chance(0.6);
        let request = dice.log(16.0, 1000.0) as u64;
        // A large response takes from a tenth of a round trip to ten of them on the link.
        let large = (rate * trip_s / 8.0 * dice.log(0.1, 10.0)).clamp(2000.0, 2e6);
        let response = if small { dice.log(16.0, 1400.0) } else { large } as u64;
        let each_s = trip_s + 8.0 * (request + response) as f64 / rate;
        let count = (dice.log(1.0, 5.0) / each_s).clamp(10.0, 400.0) as u64;
        ScenarioWork::Calls {
            request,
            response,
            count,
            service_s: 0.0,
            think_s: 0.0,
            pieces: false,
            connects: false,
        }
    }

    /// One round trip of a small packet without any wait, s.
    #[must_use]
    pub fn trip_s(&self) -> f64 {
        2.0 * (self.near.delay_s + self.middle.delay_s + self.far.delay_s)
    }

    /// Bytes that the path holds in a round trip.
    #[must_use]
    pub fn pipe_bytes(&self) -> f64 {
        self.middle.rate_bit_s * self.trip_s() / 8.0
    }

    /// The longest that is sent before anything is waited for, bytes.
    #[must_use]
    pub fn longest_message(&self) -> u64 {
        match self.work {
            ScenarioWork::Transfer { unit, count, .. } => unit * count,
            ScenarioWork::Calls {
                request, response, ..
            } => request.max(response),
        }
    }

    /// Seconds that the work takes of the narrowest link alone.
    fn link_s(&self) -> f64 {
        let (unit, count) = match self.work {
            ScenarioWork::Transfer { unit, count, .. } => (unit, count),
            ScenarioWork::Calls {
                request,
                response,
                count,
                ..
            } => (request + response, count),
        };
        8.0 * (unit * count) as f64 / self.middle.rate_bit_s
    }

    /// Seconds that it takes at least.
    fn least_s(&self) -> f64 {
        let turns_s = match self.work {
            ScenarioWork::Transfer { pace_s, count, .. } => pace_s * count as f64,
            ScenarioWork::Calls {
                count,
                service_s,
                think_s,
                ..
            } => (self.trip_s() + service_s + think_s) * count as f64,
        };
        turns_s.max(self.trip_s()) + self.link_s()
    }

    fn plant(&mut self, cause: LimitCause, dice: &mut ScenarioDice) {
        let (pipe, trip_s, link_s) = (self.pipe_bytes(), self.trip_s(), self.link_s());
        match cause {
            LimitCause::ReceiveBuffer => {
                self.options.receive_buffer = Some((pipe * dice.log(0.05, 0.8)).max(8e3) as u64);
            }
            LimitCause::SendBuffer => {
                self.options.send_buffer = Some((pipe * dice.log(0.05, 0.8)).max(16e3) as u64)
            }
            LimitCause::Loss => self.loss = dice.log(0.001, 0.03),
            LimitCause::Queue => {
                self.queue_bytes = (pipe * dice.log(0.01, 0.2)).clamp(4e3, 60e3) as u64
            }
            LimitCause::Load => {
                self.load = Some(BackgroundLoad {
                    pairs: 1 + (dice.unit() * 3.0) as u32,
                    shares: dice.chance(0.75),
                })
            }
            LimitCause::Service | LimitCause::Think | LimitCause::Sender | LimitCause::Reader => {
                self.plant_work(cause, dice, link_s, trip_s)
            }
            LimitCause::Pieces => {
                self.options.nodelay = false;
                if let ScenarioWork::Calls { pieces, .. } = &mut self.work {
                    *pieces = true;
                }
            }
            LimitCause::Connects => {
                if let ScenarioWork::Calls { connects, .. } = &mut self.work {
                    *connects = true;
                }
            }
            LimitCause::Copy => {
                self.copy_ns_per_byte = 8e9 / self.middle.rate_bit_s * dice.log(0.3, 5.0)
            }
            LimitCause::Outage => self.conduct.plant_outage(dice, self.least_s()),
            LimitCause::Reordering => self.conduct.plant_reordering(dice, trip_s),
            // The network's own, and a connection's beginning.
            LimitCause::Rate | LimitCause::Delay | LimitCause::FirstWindow => return,
        }
        self.planted.push(cause);
    }

    fn plant_work(&mut self, cause: LimitCause, dice: &mut ScenarioDice, link_s: f64, trip_s: f64) {
        match &mut self.work {
            ScenarioWork::Transfer {
                count,
                sender_s,
                reader_s,
                pace_s,
                ..
            } => {
                let each = (link_s / *count as f64).max(*pace_s) * dice.log(0.5, 4.0);
                *(if cause == LimitCause::Sender {
                    sender_s
                } else {
                    reader_s
                }) = each;
            }
            ScenarioWork::Calls {
                count,
                service_s,
                think_s,
                ..
            } => {
                let each = (trip_s + link_s / *count as f64) * dice.log(0.2, 4.0);
                *(if cause == LimitCause::Service {
                    service_s
                } else {
                    think_s
                }) = each;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_scenario() {
        assert_eq!(Scenario::draw(7), Scenario::draw(7));
        assert_ne!(Scenario::draw(7), Scenario::draw(8));
    }

    #[test]
    fn everything_is_drawn_some_time() {
        let planted: Vec<LimitCause> = (0..2000)
            .flat_map(|seed| Scenario::draw(seed).planted)
            .collect();
        for change in LimitCause::ALL {
            let own = matches!(
                change,
                LimitCause::Rate | LimitCause::Delay | LimitCause::FirstWindow
            );
            assert_eq!(planted.contains(&change), !own, "{change:?}");
        }
    }
}
