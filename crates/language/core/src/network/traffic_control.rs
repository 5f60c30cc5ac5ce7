//! What a link does to packets by their class or their rate: token buckets, policers, code points, classes of a queue,
//! netem's reordering.

use super::StepSchedule;
use crate::time::Duration;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The largest code point of differentiated services: it has six bits (RFC 2474, section 3).
pub const LARGEST_DSCP: u8 = 63;
/// The names of code points (RFC 2474, 2597, 3246, 5865 and 8622).
pub const DSCP_NAMES: [(&str, u8); 23] = [
    ("cs0", 0),
    ("le", 1),
    ("cs1", 8),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("cs2", 16),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("cs3", 24),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("cs4", 32),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("cs5", 40),
    ("va", 44),
    ("ef", 46),
    ("cs6", 48),
    ("cs7", 56),
];

/// A code point as text: its name, else its number.
#[must_use]
pub fn dscp_name(dscp: u8) -> String {
    DSCP_NAMES
        .iter()
        .find(|(_, value)| *value == dscp)
        .map_or_else(|| dscp.to_string(), |(name, _)| (*name).to_string())
}

/// A token bucket (tc-tbf(8), RFC 2697 with one rate): it fills at a rate up to its depth, and a packet takes as many
/// tokens as it has charged bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TokenBucket {
    /// The rate at which it fills, bit/s; above zero.
    pub bit_s: f64,
    /// Its depth in bytes: so many may pass at once after a pause.
    pub burst_bytes: u64,
}

/// A policer before a link's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Policer {
    /// What packets may use; they wait for nothing.
    pub bucket: TokenBucket,
    /// The code point that packets get that find too few tokens; when absent, they are dropped.
    pub remark: Option<u8>,
}

/// Reordering as netem's: chosen packets skip the delay of the link, and so overtake those before them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DelaySkipping {
    /// The probability that a candidate skips the delay, 0 to 1.
    pub share: f64,
    /// How much of a draw the one before decides, 0 to 1.
    pub correlation: f64,
    /// Behind each packet that skipped the delay, the next `gap - 1` are no candidates; at least 1.
    pub gap: u32,
}

/// The transition probabilities of netem's four states (tc-netem(8), `loss state`), 0 to 1. State 1 delivers in a gap, 2
/// delivers in a burst, 3 loses in a burst, 4 loses a single packet in a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FourStateLoss {
    /// From gap to burst loss.
    pub p13: f64,
    /// From burst loss to gap.
    pub p31: f64,
    /// From burst loss to delivery within the burst.
    pub p32: f64,
    /// From delivery within the burst to burst loss.
    pub p23: f64,
    /// From gap to a single loss; state 4 always leads back to 1.
    pub p14: f64,
}

impl FourStateLoss {
    /// The long-run share of packets in each of the states 1 to 4. The chain begins in state 1, so states that it cannot
    /// reach have none.
    #[must_use]
    pub fn stationary_shares(&self) -> [f64; 4] {
        let Self {
            p13,
            p31,
            p32,
            p23,
            p14,
        } = *self;
        if p13 <= 0.0 {
            let gap = 1.0 / (1.0 + p14);
            return [gap, 0.0, 0.0, 1.0 - gap];
        }
        // Balance of each state, with that of state 3 (or of 2, where the chain never leaves the burst) as the unit.
        let weights = match (p31 > 0.0, p32 > 0.0, p23 > 0.0) {
            (_, true, false) => [0.0, 1.0, 0.0, 0.0],
            (true, _, _) => {
                let gap = p31 / p13;
                let delivered = if p32 > 0.0 { p32 / p23 } else { 0.0 };
                [gap, delivered, 1.0, gap * p14]
            }
            (false, true, true) => [0.0, p32 / p23, 1.0, 0.0],
            (false, false, _) => [0.0, 0.0, 1.0, 0.0],
        };
        let sum: f64 = weights.iter().sum();
        weights.map(|weight| weight / sum)
    }

    /// The long-run share of packets that are lost.
    #[must_use]
    pub fn mean_loss(&self) -> f64 {
        let [_, _, burst, single] = self.stationary_shares();
        burst + single
    }
}

/// A class of a queue: the packets with certain code points, how they are served, and how many of them may wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueClass {
    /// Its code points; none in the class of all others.
    pub dscps: Vec<u8>,
    /// When it is served.
    pub service: ClassService,
    /// Most bytes that may wait in it; unlimited when absent.
    pub limit_bytes: Option<u64>,
    /// Most packets that may wait in it; unlimited when absent.
    pub limit_packets: Option<u64>,
    /// Target and interval of its CoDel (RFC 8289); when absent it drops at its limit only.
    pub codel: Option<(Duration, Duration)>,
}

impl QueueClass {
    /// Its code points as text: `ef cs6`, or `default`.
    #[must_use]
    pub fn name(&self) -> String {
        if self.dscps.is_empty() {
            return "default".to_string();
        }
        let names: Vec<String> = self.dscps.iter().map(|dscp| dscp_name(*dscp)).collect();
        names.join(" ")
    }
}

/// When a class is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClassService {
    /// Before all classes declared behind it and all with a weight.
    Strict,
    /// In turn with the others, by deficit round robin (Shreedhar and Varghese 1995): in each turn it may send that many
    /// packets of full size.
    Weight(u32),
}

impl Default for ClassService {
    fn default() -> Self {
        Self::Weight(1)
    }
}

impl ClassService {
    /// As the language writes it: `strict`, `weight 3`.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::Strict => "strict".to_string(),
            Self::Weight(weight) => format!("weight {weight}"),
        }
    }
}

/// The settings of DualPI2 (RFC 9332, appendix A; defaults are Linux's).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DualPi2Settings {
    /// The queueing delay that the classic queue is kept to.
    pub target: Duration,
    /// The interval at which the base probability is adjusted.
    pub update: Duration,
    /// The gain of the deviation from the target, Hz.
    pub alpha: f64,
    /// The gain of the change of the delay since the last adjustment, Hz.
    pub beta: f64,
    /// The coupling factor k: the L queue is marked with k times the base probability, the classic one with its square.
    pub coupling: f64,
    /// The delay in the L queue above which each of its packets is marked.
    pub step: Duration,
    /// The share of the link that the classic queue has while both wait, 0 to 1.
    pub classic_share: f64,
}

impl Default for DualPi2Settings {
    fn default() -> Self {
        Self {
            target: Duration(15_000_000),
            update: Duration(16_000_000),
            alpha: 0.16,
            beta: 3.2,
            coupling: 2.0,
            step: Duration(1_000_000),
            classic_share: 0.1,
        }
    }
}

/// The smallest value of a schedule of delays.
pub(super) fn least_step(delays: &StepSchedule<Duration>) -> Option<Duration> {
    delays.steps.iter().map(|(_, delay)| *delay).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_have_names() {
        assert_eq!(dscp_name(46), "ef");
        assert_eq!(dscp_name(0), "cs0");
        assert_eq!(dscp_name(63), "63");
        // Class selectors are multiples of 8; AFxy is 8x + 2y (RFC 2597, section 6).
        for (name, value) in DSCP_NAMES {
            let digits: Vec<u8> = name.bytes().filter(u8::is_ascii_digit).collect();
            match (name.get(..2), &digits[..]) {
                (Some("cs"), [x]) => assert_eq!(value, 8 * (x - b'0')),
                (Some("af"), [x, y]) => assert_eq!(value, 8 * (x - b'0') + 2 * (y - b'0')),
                _ => assert!(["ef", "va", "le"].contains(&name)),
            }
        }
    }

    #[test]
    fn the_four_states_balance() {
        let chain = FourStateLoss {
            p13: 0.02,
            p31: 0.4,
            p32: 0.3,
            p23: 0.5,
            p14: 0.01,
        };
        let [gap, delivered, burst, single] = chain.stationary_shares();
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} is not {b}");
        close(gap + delivered + burst + single, 1.0);
        close(gap * (chain.p13 + chain.p14), burst * chain.p31 + single);
        close(delivered * chain.p23, burst * chain.p32);
        close(
            burst * (chain.p31 + chain.p32),
            gap * chain.p13 + delivered * chain.p23,
        );
        // netem's `loss state 10%`: p31 = 90%, the rest nothing: single losses, one in ten.
        let simple = FourStateLoss {
            p13: 0.1,
            p31: 0.9,
            p23: 1.0,
            ..FourStateLoss::default()
        };
        close(simple.mean_loss(), 0.1);
        let never_back = FourStateLoss { p31: 0.0, ..simple };
        close(never_back.mean_loss(), 1.0);
        let single_losses = FourStateLoss {
            p13: 0.0,
            p14: 0.25,
            ..simple
        };
        close(single_losses.mean_loss(), 0.2);
        let stuck = FourStateLoss {
            p32: 0.1,
            p23: 0.0,
            ..simple
        };
        close(stuck.mean_loss(), 0.0);
    }
}
