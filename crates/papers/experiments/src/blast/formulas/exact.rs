//! Mean and standard deviation of a lossy transfer, exactly, for all four retransmission strategies (section 3.2).
//!
//! The paper simulated what had no closed form; here the recursion over D', the packets of a retransmission, is solved
//! for both moments. It is about one blast of D packets whose last asks for an answer; each packet and each answer is
//! lost with probability pn independently. With full retransmission, an attempt without an answer takes To(D) + Tr and
//! all is sent again. With partial and selective retransmission the last packet is repeated alone, each time after
//! To(1) + Tr, until it is answered; the answer says what is missing, and that is sent as a blast of its own.

use super::costs::BlastCostModel;
use super::elapsed::BlastFigureProtocol;
use super::loss::any_lost;

/// Which packets are sent again after a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlastResendStrategy {
    /// Everything, after Tr without an acknowledgement (3.2.1).
    Full,
    /// Everything, at once where the last packet arrived and others did not, else after Tr (3.2.2).
    FullNak,
    /// From the first packet that is missing to the last; what arrived beyond it is forgotten (3.2.3, the one chosen).
    Partial,
    /// Exactly the packets that are missing (3.2.3).
    Selective,
}

impl BlastResendStrategy {
    /// All of them, in the paper's order.
    pub const ALL: [Self; 4] = [Self::Full, Self::FullNak, Self::Partial, Self::Selective];

    /// Its name in the specification language: `blast(NAME)`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::FullNak => "full_nak",
            Self::Partial => "partial",
            Self::Selective => "selective",
        }
    }
}

/// A transfer under loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lossy {
    /// What packets cost, in seconds.
    pub costs: BlastCostModel,
    /// Whether the sender's interface has two buffers.
    pub double_buffered: bool,
    /// D: packets of the blast, 1 to [`Lossy::MOST_PACKETS`].
    pub packets: u32,
    /// Tr: how long the sender waits beyond the error-free time, in seconds.
    pub interval: f64,
    /// pn: the probability that a packet is lost, 0 <= pn < 1.
    pub loss: f64,
}

/// A mean and a standard deviation, both in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// The mean.
    pub mean: f64,
    /// The standard deviation about that mean.
    pub sd: f64,
}

/// A mean and a variance, before the root is taken.
#[derive(Clone, Copy, Default)]
struct MeanAndVariance {
    mean: f64,
    variance: f64,
}

impl From<MeanAndVariance> for Moments {
    fn from(spread: MeanAndVariance) -> Self {
        Self {
            mean: spread.mean,
            sd: libm::sqrt(spread.variance),
        }
    }
}

/// The moments of a mixture: the time of one of `nexts`, each with its probability. They add up to 1 or less; the rest is the probability
/// that nothing follows, which takes no time.
fn mixture(nexts: impl Iterator<Item = (f64, MeanAndVariance)> + Clone) -> MeanAndVariance {
    let (mut mean, mut ends) = (0.0, 1.0);
    for (chance, next) in nexts.clone() {
        mean += chance * next.mean;
        ends -= chance;
    }
    let mut variance = ends.max(0.0) * mean * mean;
    for (chance, next) in nexts {
        let apart = next.mean - mean;
        variance += chance * (next.variance + apart * apart);
    }
    MeanAndVariance { mean, variance }
}

impl Lossy {
    /// The largest D: the recursion takes time and room with its square.
    pub const MOST_PACKETS: u32 = 4096;

    /// To(D') in seconds.
    fn error_free(&self, packets: u32) -> f64 {
        let protocol = if self.double_buffered {
            BlastFigureProtocol::DoubleBuffered
        } else {
            BlastFigureProtocol::Blast
        };
        protocol.elapsed(&self.costs, packets)
    }

    /// Mean and standard deviation with `strategy`; `None` where a number is outside its range, or so much is lost that
    /// the time is beyond all numbers.
    #[must_use]
    pub fn moments(&self, strategy: BlastResendStrategy) -> Option<Moments> {
        self.solved(|legal| match strategy {
            BlastResendStrategy::Full => legal.full(),
            BlastResendStrategy::FullNak => legal.full_nak(),
            BlastResendStrategy::Partial => legal.partial(false),
            BlastResendStrategy::Selective => legal.selective(),
        })
    }

    /// Applies `solve` if all inputs are within their ranges; None if they are not, or if the result is not finite.
    fn solved(&self, solve: impl FnOnce(&Self) -> Option<MeanAndVariance>) -> Option<Moments> {
        let legal = (1..=Self::MOST_PACKETS).contains(&self.packets) && self.interval >= 0.0;
        let spread = if legal && (0.0..1.0).contains(&self.loss) {
            solve(self)?
        } else {
            return None;
        };
        (spread.mean.is_finite() && spread.variance.is_finite()).then(|| spread.into())
    }

    /// Mean and standard deviation of `packets` exchanges of one packet each, one after another: stop-and-wait.
    #[must_use]
    pub fn stop_and_wait(&self) -> Option<Moments> {
        let one = Self {
            packets: 1,
            ..*self
        }
        .moments(BlastResendStrategy::Full)?;
        let packets = f64::from(self.packets);
        Some(Moments {
            mean: packets * one.mean,
            sd: libm::sqrt(packets) * one.sd,
        })
    }

    /// T = To(D) + G (To(D) + Tr), G the failures before the first success: geometric.
    fn full(&self) -> Option<MeanAndVariance> {
        let error_free = self.error_free(self.packets);
        repeated(
            error_free,
            error_free + self.interval,
            any_lost(self.loss, self.packets + 1)?,
        )
    }

    /// Each failure costs To(D) where it was reported and To(D) + Tr where it was not.
    fn full_nak(&self) -> Option<MeanAndVariance> {
        let (error_free, silent) = (self.error_free(self.packets), any_lost(self.loss, 2)?);
        let reported = (1.0 - silent) * any_lost(self.loss, self.packets - 1)?;
        let (fails, succeeds) = (silent + reported, 1.0 - silent - reported);
        if fails <= 0.0 {
            return Some(MeanAndVariance {
                mean: error_free,
                variance: 0.0,
            });
        }
        if succeeds <= 0.0 {
            return None;
        }
        let waits = silent / fails;
        let failure = error_free + waits * self.interval;
        let failures = fails / succeeds;
        let among = waits * (1.0 - waits) * self.interval * self.interval;
        let variance = failures * among + failures / succeeds * failure * failure;
        Some(MeanAndVariance {
            mean: error_free + failures * failure,
            variance,
        })
    }

    /// The first transmission of a blast of D' packets, its last repeated until it is answered:
    /// To(D') + G (To(1) + Tr).
    fn round(&self, packets: u32) -> Option<MeanAndVariance> {
        repeated(
            self.error_free(packets),
            self.error_free(1) + self.interval,
            any_lost(self.loss, 2)?,
        )
    }

    /// T(D) = round(D) + T(D - i) where i packets arrived and the next did not, with probability (1 - pn)^i pn; with
    /// i = 0 it is T(D) again, which is solved for. Where the last is kept, it is T(D - 1 - i).
    fn partial(&self, keeps_last: bool) -> Option<MeanAndVariance> {
        let lost = self.loss;
        let first = core::iter::successors(Some(lost), |chance| Some(chance * (1.0 - lost)));
        let first: Vec<f64> = first.take(self.packets as usize).collect();
        // The shortest that can follow is the last alone, where it is kept; else the last and the one before it.
        let least = if keeps_last { 1 } else { 2 };
        let mut all: Vec<MeanAndVariance> = vec![MeanAndVariance::default()];
        for packets in 1..=self.packets {
            let round = self.round(packets)?;
            let again = if keeps_last || packets == 1 {
                0.0
            } else {
                lost
            };
            let shorter = all[least.min(all.len())..].iter().rev().copied();
            let shorter = first[least - 1..].iter().copied().zip(shorter);
            let mean: f64 = shorter
                .clone()
                .map(|(chance, next)| chance * next.mean)
                .sum();
            let mean = (round.mean + mean) / (1.0 - again);
            // With its own mean known and its variance counted as none, the mixture gives the rest of the variance.
            let itself = core::iter::once((
                again,
                MeanAndVariance {
                    mean,
                    variance: 0.0,
                },
            ));
            let variance =
                (round.variance + mixture(shorter.chain(itself)).variance) / (1.0 - again);
            all.push(MeanAndVariance { mean, variance });
        }
        all.pop()
    }

    /// T(D) = round(D) + T(K), K the missing of the first D - 1: binomial. T(0) = 0.
    fn selective(&self) -> Option<MeanAndVariance> {
        let lost = self.loss;
        let mut all: Vec<MeanAndVariance> = vec![MeanAndVariance::default()];
        // Of D - 1 packets, how many are missing: P(K = k), made longer by one packet in each step.
        let mut missing = vec![1.0];
        for packets in 1..=self.packets {
            let round = self.round(packets)?;
            let rest = mixture(missing.iter().copied().zip(all.iter().copied()).skip(1));
            all.push(MeanAndVariance {
                mean: round.mean + rest.mean,
                variance: round.variance + rest.variance,
            });
            missing.push(0.0);
            for k in (1..missing.len()).rev() {
                missing[k] = missing[k] * (1.0 - lost) + missing[k - 1] * lost;
            }
            missing[0] *= 1.0 - lost;
        }
        all.pop()
    }
}

/// `first` + G `again`, G geometric: the failures before the first success, each with probability `fails`.
fn repeated(first: f64, again: f64, fails: f64) -> Option<MeanAndVariance> {
    (fails < 1.0).then(|| {
        let odds = fails / (1.0 - fails);
        MeanAndVariance {
            mean: first + odds * again,
            variance: again * again * odds / (1.0 - fails),
        }
    })
}

#[cfg(test)]
mod tests;
