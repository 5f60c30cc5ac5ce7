//! Which packets a link loses: independent losses, bit errors, chains of two or four states, given or every n-th packet. The
//! process is called once for each packet (or cell), in the order of departure, and draws as often for a large packet
//! as for a small one: the same sequence of packets loses the same ones in every world.

use crate::bernoulli;
use crate::tap::DropReason;
use alloc::boxed::Box;
use alloc::vec::Vec;
use stackline_core::network::{FourStateLoss, LossModel, StepSchedule};
use stackline_core::random::{Generator, Seed};
use stackline_core::time::Instant;

/// The loss process of one direction of a link.
#[derive(Clone, Debug)]
pub struct LossProcess {
    kind: LossKind,
    generator: Generator,
}

/// The models of loss. `Independent` has the probability of a loss; `List` loses packets by number; `Every` loses each
/// `nth` packet, and its `left` counts down to the next loss.
#[derive(Clone, Debug)]
enum LossKind {
    None,
    Independent(f64),
    BitErrors(BitErrors),
    GilbertElliott(GilbertElliott),
    FourStates(Box<FourStateChain>),
    List(ListedLoss),
    Every { nth: u64, left: u64 },
    Schedule(Box<SteppedLoss>),
}

impl LossProcess {
    /// A process in its first state; everything it draws comes from the seed.
    #[must_use]
    pub fn new(loss: &LossModel, seed: Seed) -> Self {
        let kind = match loss {
            LossModel::None | LossModel::Every(0) => LossKind::None,
            LossModel::Independent(probability) => LossKind::Independent(*probability),
            LossModel::BitErrors(rate) => LossKind::BitErrors(BitErrors::new(*rate)),
            LossModel::GilbertElliott {
                to_bad,
                to_good,
                loss_good,
                loss_bad,
            } => LossKind::GilbertElliott(GilbertElliott {
                bad: false,
                leave: [*to_bad, *to_good],
                lose: [*loss_good, *loss_bad],
            }),
            LossModel::FourStates(chain) => LossKind::FourStates(Box::new(FourStateChain {
                chain: *chain,
                state: FourStateLossState::GapDelivery,
            })),
            LossModel::List(numbers) => LossKind::List(ListedLoss {
                numbers: numbers.clone(),
                next: 0,
                passed: 0,
            }),
            LossModel::Every(nth) => LossKind::Every {
                nth: *nth,
                left: *nth,
            },
            LossModel::Schedule(schedule) => {
                LossKind::Schedule(Box::new(SteppedLoss::new(schedule, seed)))
            }
        };
        Self {
            kind,
            generator: seed.generator(),
        }
    }

    /// Whether the process never loses anything, so that it need not be called.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        matches!(self.kind, LossKind::None)
    }

    /// Decides whether the next packet is lost, and returns the reason if it is. `bytes` is its size, `at` its
    /// departure.
    #[inline]
    pub fn lost(&mut self, at: Instant, bytes: u64) -> Option<DropReason> {
        let generator = &mut self.generator;
        let (lost, reason) = match &mut self.kind {
            LossKind::None => return None,
            LossKind::Schedule(steps) => return steps.lost(at, bytes),
            LossKind::Independent(probability) => (
                bernoulli::draw_bernoulli(*probability, generator),
                DropReason::Lost,
            ),
            LossKind::BitErrors(errors) => (
                bernoulli::draw_bernoulli(errors.probability_of(bytes), generator),
                DropReason::BitError,
            ),
            LossKind::GilbertElliott(states) => (states.lost(generator), DropReason::Lost),
            LossKind::FourStates(chain) => (chain.lost(generator), DropReason::Lost),
            LossKind::List(list) => (list.lost(), DropReason::Lost),
            LossKind::Every { nth, left } => (every(*nth, left), DropReason::Lost),
        };
        lost.then_some(reason)
    }
}

/// A loss model that changes in time. Each step has its own process, which continues where it was when the step holds
/// again.
#[derive(Clone, Debug)]
struct SteppedLoss {
    schedule: StepSchedule<LossModel>,
    /// By step: its process.
    processes: Vec<LossProcess>,
}

impl SteppedLoss {
    fn new(schedule: &StepSchedule<LossModel>, seed: Seed) -> Self {
        let processes = (0..)
            .zip(&schedule.steps)
            .map(|(index, (_, loss))| LossProcess::new(loss, seed.index(index)));
        Self {
            processes: processes.collect(),
            schedule: schedule.clone(),
        }
    }

    fn lost(&mut self, at: Instant, bytes: u64) -> Option<DropReason> {
        self.processes
            .get_mut(self.schedule.step_at(at))?
            .lost(at, bytes)
    }
}

/// Counts down to the next loss.
const fn every(nth: u64, left: &mut u64) -> bool {
    *left -= 1;
    let lost = *left == 0;
    if lost {
        *left = nth;
    }
    lost
}

/// The probability that a packet has a wrong bit.
#[derive(Clone, Debug)]
struct BitErrors {
    /// The natural logarithm of the probability that a bit is correct.
    right: f64,
    /// The size of the last packet: its probability is kept, since most packets are of one size.
    bytes: u64,
    probability: f64,
}

impl BitErrors {
    fn new(rate: f64) -> Self {
        Self {
            right: libm::log1p(-rate),
            bytes: 0,
            probability: 0.0,
        }
    }

    /// The probability that a packet of that many bytes has at least one wrong bit.
    fn probability_of(&mut self, bytes: u64) -> f64 {
        if bytes != self.bytes {
            self.bytes = bytes;
            // 1 - (1 - rate)^bits, without losing a small rate in the 1.
            self.probability = if bytes == 0 {
                0.0
            } else {
                -libm::expm1(self.right * (bytes as f64 * 8.0))
            };
        }
        self.probability
    }
}

/// The Gilbert-Elliott model: a good and a bad state with a loss probability each.
#[derive(Clone, Debug)]
struct GilbertElliott {
    bad: bool,
    /// The probability of leaving the good state and the bad state, after each packet.
    leave: [f64; 2],
    /// The probability of a loss in the good state and in the bad state.
    lose: [f64; 2],
}

impl GilbertElliott {
    /// Draws twice: for the packet, then for the state of the next one.
    fn lost(&mut self, generator: &mut Generator) -> bool {
        let state = usize::from(self.bad);
        let lost = bernoulli::draw_bernoulli(self.lose[state], generator);
        self.bad ^= bernoulli::draw_bernoulli(self.leave[state], generator);
        lost
    }
}

/// The four states of netem (tc-netem(8), `loss state`): the state changes, then decides about the packet.
#[derive(Clone, Debug)]
struct FourStateChain {
    chain: FourStateLoss,
    state: FourStateLossState,
}

/// The states, in netem's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FourStateLossState {
    GapDelivery,
    BurstDelivery,
    BurstLoss,
    SingleLoss,
}

impl FourStateChain {
    /// Draws once.
    fn lost(&mut self, generator: &mut Generator) -> bool {
        use FourStateLossState::{BurstDelivery, BurstLoss, GapDelivery, SingleLoss};
        let chain = &self.chain;
        let drawn = bernoulli::draw_unit(generator);
        self.state = match self.state {
            GapDelivery if drawn < chain.p14 => SingleLoss,
            GapDelivery if drawn < chain.p14 + chain.p13 => BurstLoss,
            BurstDelivery if drawn < chain.p23 => BurstLoss,
            BurstLoss if drawn < chain.p32 => BurstDelivery,
            BurstLoss if drawn < chain.p32 + chain.p31 => GapDelivery,
            SingleLoss => GapDelivery,
            stays => stays,
        };
        matches!(self.state, BurstLoss | SingleLoss)
    }
}

/// Loses the packets with given numbers, counted from 1.
#[derive(Clone, Debug)]
struct ListedLoss {
    /// The numbers of the packets to lose, ascending.
    numbers: Vec<u64>,
    /// The index of the next number.
    next: usize,
    /// The number of packets so far.
    passed: u64,
}

impl ListedLoss {
    fn lost(&mut self) -> bool {
        self.passed += 1;
        let before = self.next;
        while self
            .numbers
            .get(self.next)
            .is_some_and(|number| *number <= self.passed)
        {
            self.next += 1;
        }
        self.next > before && self.numbers[self.next - 1] == self.passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use stackline_core::time::Duration;

    fn lost(loss: &LossModel, seed: u64, packets: usize, bytes: u64) -> Vec<bool> {
        let mut process = LossProcess::new(loss, Seed::root(seed));
        (0..packets)
            .map(|_| process.lost(Instant(0), bytes).is_some())
            .collect()
    }

    /// Whether `many` of `n` are within four standard deviations of a binomial distribution.
    fn plausible(many: usize, n: usize, p: f64) -> bool {
        let (mean, variance) = (n as f64 * p, n as f64 * p * (1.0 - p));
        (many as f64 - mean).powi(2) <= 16.0 * variance
    }

    fn count(lost: &[bool]) -> usize {
        lost.iter().filter(|lost| **lost).count()
    }

    #[test]
    fn independent_losses_have_the_given_rate() {
        for (seed, p) in [(1, 0.5), (2, 0.1), (3, 0.01), (4, 1e-4)] {
            let lost = lost(&LossModel::Independent(p), seed, 200_000, 1500);
            assert!(plausible(count(&lost), 200_000, p), "{p}: {}", count(&lost));
            // After a loss the next one is as likely as ever.
            let after = lost.windows(2).filter(|pair| pair[0]).map(|pair| pair[1]);
            let (again, n) = after.fold((0, 0), |(again, n), lost| {
                (again + usize::from(lost), n + 1)
            });
            assert!(plausible(again, n, p), "{p}: {again} of {n}");
        }
        assert_eq!(
            count(&lost(&LossModel::Independent(1.0), 1, 1000, 1500)),
            1000
        );
        assert_eq!(count(&lost(&LossModel::Independent(0.0), 1, 1000, 1500)), 0);
    }

    #[test]
    fn the_same_packets_are_lost_whatever_their_size() {
        let loss = LossModel::Independent(0.1);
        assert_eq!(lost(&loss, 7, 1000, 40), lost(&loss, 7, 1000, 64_000));
        assert_ne!(lost(&loss, 7, 1000, 40), lost(&loss, 8, 1000, 40));
    }

    #[test]
    fn a_packet_is_lost_when_one_of_its_bits_is_wrong() {
        let mut errors = BitErrors::new(1e-5);
        assert!(
            (errors.probability_of(1500) - (1.0 - (1.0_f64 - 1e-5).powi(12_000))).abs() < 1e-12
        );
        assert_eq!(errors.probability_of(0), 0.0);
        assert!(
            (BitErrors::new(1e-15).probability_of(53) / 424e-15 - 1.0).abs() < 1e-9,
            "small rates are not rounded away"
        );
        assert_eq!(BitErrors::new(1.0).probability_of(1), 1.0);
        assert_eq!(BitErrors::new(0.0).probability_of(u64::MAX), 0.0);
        for bytes in [53, 1500, 9000] {
            let lost = lost(&LossModel::BitErrors(1e-5), bytes, 100_000, bytes);
            assert!(
                plausible(count(&lost), 100_000, errors.probability_of(bytes)),
                "{bytes}: {}",
                count(&lost)
            );
        }
        assert_eq!(
            LossProcess::new(&LossModel::BitErrors(1.0), Seed::root(1)).lost(Instant(0), 1),
            Some(DropReason::BitError)
        );
    }

    #[test]
    fn bursts_of_gilbert_elliott_have_geometric_lengths() {
        let (to_bad, to_good) = (0.02, 0.25);
        let loss = LossModel::GilbertElliott {
            to_bad,
            to_good,
            loss_good: 0.0,
            loss_bad: 1.0,
        };
        let lost = lost(&loss, 11, 400_000, 1500);
        // The share of losses is that of the bad state, here with the variance of a correlated sequence.
        let share = count(&lost) as f64 / 400_000.0;
        assert!(
            (share - to_bad / (to_bad + to_good)).abs() < 0.003,
            "{share}"
        );
        // Chi-square over lengths 1 to 15 and more: 15 degrees of freedom, 30.6 is exceeded once in a hundred times.
        let lengths: Vec<usize> = lost
            .split(|lost| !lost)
            .map(<[bool]>::len)
            .filter(|length| *length > 0)
            .collect();
        let mut seen = [0.0; 16];
        for length in &lengths {
            seen[length.min(&16) - 1] += 1.0;
        }
        let n = lengths.len() as f64;
        let stay = 1.0 - to_good;
        let chi_square: f64 = (0..16)
            .map(|at| {
                let expected = n * stay.powi(at) * if at == 15 { 1.0 } else { to_good };
                (seen[at as usize] - expected).powi(2) / expected
            })
            .sum();
        assert!(chi_square < 30.6, "{chi_square} over {n} bursts");
    }

    #[test]
    fn gilbert_elliott_begins_in_the_good_state_and_loses_before_it_changes() {
        let loss = LossModel::GilbertElliott {
            to_bad: 1.0,
            to_good: 1.0,
            loss_good: 0.0,
            loss_bad: 1.0,
        };
        assert_eq!(
            lost(&loss, 1, 6, 1500),
            [false, true, false, true, false, true]
        );
    }

    #[test]
    fn the_four_states_lose_their_stationary_share() {
        let chain = |p13, p31, p32, p23, p14| FourStateLoss {
            p13,
            p31,
            p32,
            p23,
            p14,
        };
        for (seed, chain) in [
            (1, chain(0.02, 0.4, 0.3, 0.5, 0.01)),
            (2, chain(0.1, 0.9, 0.0, 1.0, 0.0)),
            (3, chain(0.0, 0.5, 0.2, 0.5, 0.05)),
            (4, chain(0.005, 0.1, 0.05, 0.2, 0.002)),
        ] {
            let lost = lost(&LossModel::FourStates(chain), seed, 400_000, 1500);
            let share = count(&lost) as f64 / 400_000.0;
            let mean = chain.mean_loss();
            // Bursts make neighbours alike: a wider bound than that of independent losses.
            assert!((share - mean).abs() < 0.1 * mean, "{share} of {mean}");
        }
        // netem's `loss state 10%` has no bursts beyond chance: after a loss, the next is lost with 1 - p31.
        let lost = lost(
            &LossModel::FourStates(chain(0.1, 0.9, 0.0, 1.0, 0.0)),
            5,
            400_000,
            1500,
        );
        let after = lost.windows(2).filter(|pair| pair[0]).map(|pair| pair[1]);
        let (again, n) = after.fold((0, 0), |(again, n), lost| {
            (again + usize::from(lost), n + 1)
        });
        assert!(plausible(again, n, 0.1), "{again} of {n}");
    }

    #[test]
    fn the_four_states_change_before_they_decide() {
        let certain = |p13, p14| FourStateLoss {
            p13,
            p31: 0.0,
            p32: 1.0,
            p23: 1.0,
            p14,
        };
        let lost = |chain| lost(&LossModel::FourStates(chain), 1, 6, 1500);
        // Into the burst at once, then in and out of its delivery.
        assert_eq!(
            lost(certain(1.0, 0.0)),
            [true, false, true, false, true, false]
        );
        // Single losses only, each followed by a delivery.
        assert_eq!(
            lost(certain(0.0, 1.0)),
            [true, false, true, false, true, false]
        );
        assert_eq!(lost(certain(0.0, 0.0)), [false; 6]);
    }

    #[test]
    fn listed_packets_and_every_nth_are_lost_and_no_other() {
        let numbers = |lost: Vec<bool>| -> Vec<usize> {
            lost.iter()
                .enumerate()
                .filter(|(_, lost)| **lost)
                .map(|(at, _)| at + 1)
                .collect()
        };
        assert_eq!(
            numbers(lost(&LossModel::List(vec![1, 4, 4, 5, 100]), 1, 20, 1500)),
            [1, 4, 5]
        );
        assert_eq!(
            numbers(lost(&LossModel::Every(7), 1, 22, 1500)),
            [7, 14, 21]
        );
        assert_eq!(count(&lost(&LossModel::Every(1), 1, 5, 1500)), 5);
    }

    #[test]
    fn a_process_without_loss_is_none() {
        assert!(LossProcess::new(&LossModel::None, Seed::root(1)).is_none());
        assert!(!LossProcess::new(&LossModel::Every(2), Seed::root(1)).is_none());
    }

    #[test]
    fn a_schedule_loses_by_the_step_that_holds() {
        let steps = vec![
            (Duration(0), LossModel::None),
            (Duration(100), LossModel::Every(2)),
            (Duration(300), LossModel::Independent(1.0)),
        ];
        let loss = |period| {
            LossModel::Schedule(StepSchedule {
                steps: steps.clone(),
                period,
            })
        };
        let at = [0, 99, 100, 200, 299, 300, 400, 500, 600, 700];
        let lost = |loss: &LossModel| {
            let mut process = LossProcess::new(loss, Seed::root(3));
            at.iter()
                .filter(|at| process.lost(Instant(**at), 1500).is_some())
                .copied()
                .collect::<Vec<u64>>()
        };
        assert_eq!(lost(&loss(None)), [200, 300, 400, 500, 600, 700]);
        // Again from 400 on: the third packet of the second step is kept, the fourth lost.
        assert_eq!(lost(&loss(Some(Duration(400)))), [200, 300, 500, 700]);
    }
}
