//! The long-run loss probability of a link. Nothing is drawn here.

use crate::count_to_f64;
use stackline_core::network::LossModel;

/// The probability that a packet with `bytes` bytes on the wire is lost, 0 to 1. A list of lost packets is averaged
/// over the first `packets` packets of the direction (over an unlimited number it is 0).
#[must_use]
pub fn loss_probability(loss: &LossModel, bytes: u64, packets: Option<u64>) -> f64 {
    let p = match loss {
        LossModel::None => 0.0,
        LossModel::Independent(p) => *p,
        LossModel::BitErrors(rate) => crate::loss::of_bit_errors(*rate, bytes),
        LossModel::GilbertElliott {
            to_bad,
            to_good,
            loss_good,
            loss_bad,
        } => {
            // The model begins in the good state and stays there if `to_bad` is 0.
            let bad = if *to_bad > 0.0 {
                to_bad / (to_bad + to_good)
            } else {
                0.0
            };
            (1.0 - bad) * loss_good + bad * loss_bad
        }
        LossModel::FourStates(chain) => chain.mean_loss(),
        LossModel::List(numbers) => match packets {
            Some(packets @ 1..) => {
                count_to_f64(numbers.iter().filter(|n| **n <= packets).count() as u64)
                    / count_to_f64(packets)
            }
            _ => 0.0,
        },
        LossModel::Every(n) => 1.0 / count_to_f64((*n).max(1)),
        LossModel::Schedule(schedule) => {
            schedule.mean(|step| loss_probability(step, bytes, packets))
        }
    };
    p.clamp(0.0, 1.0)
}

/// Whether losses come in bursts or change over time, so that their mean alone does not describe them.
pub(crate) const fn in_bursts(loss: &LossModel) -> bool {
    match loss {
        LossModel::GilbertElliott { .. } | LossModel::FourStates(_) | LossModel::Schedule(_) => {
            true
        }
        LossModel::None
        | LossModel::Independent(_)
        | LossModel::BitErrors(_)
        | LossModel::List(_)
        | LossModel::Every(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;
    use stackline_core::network::FourStateLoss;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs().max(1e-12)
    }

    #[test]
    fn losses() {
        let p = |l: LossModel| loss_probability(&l, 1500, Some(100));
        assert_eq!(p(LossModel::None), 0.0);
        assert_eq!(p(LossModel::Independent(0.01)), 0.01);
        // 12000 bits at 1e-6: 1 - (1 - 1e-6)^12000.
        assert!((p(LossModel::BitErrors(1e-6)) - 0.011_928_3).abs() < 1e-6);
        let states = LossModel::GilbertElliott {
            to_bad: 0.01,
            to_good: 0.09,
            loss_good: 0.0,
            loss_bad: 0.5,
        };
        assert!(close(p(states), 0.05));
        let never = LossModel::GilbertElliott {
            to_bad: 0.0,
            to_good: 0.0,
            loss_good: 0.1,
            loss_bad: 0.5,
        };
        assert!(close(p(never), 0.1));
        let four_states = FourStateLoss {
            p13: 0.1,
            p31: 0.9,
            p23: 1.0,
            ..FourStateLoss::default()
        };
        assert!(close(p(LossModel::FourStates(four_states)), 0.1));
        assert_eq!(p(LossModel::Every(4)), 0.25);
        assert_eq!(p(LossModel::List(vec![3, 50, 101])), 0.02);
        assert_eq!(loss_probability(&LossModel::List(vec![3]), 1500, None), 0.0);
    }

    proptest! {
        #[test]
        fn a_loss_is_a_probability(
            p in 0.0..=1.0_f64, q in 0.0..=1.0_f64, g in 0.0..=1.0_f64, b in 0.0..=1.0_f64,
            bytes in 1..1_000_000_u64, n in 0..100_u64, list in proptest::collection::vec(1..1000_u64, 0..9),
        ) {
            let states = LossModel::GilbertElliott { to_bad: p, to_good: q, loss_good: g, loss_bad: b };
            let all: Vec<LossModel> = vec![LossModel::Independent(p), LossModel::BitErrors(p), states, LossModel::List(list), LossModel::Every(n),
                LossModel::FourStates(FourStateLoss { p13: p, p31: q, p32: g, p23: b, p14: 1.0 - p })];
            for kind in all {
                let lost = loss_probability(&kind, bytes, Some(n));
                prop_assert!((0.0..=1.0).contains(&lost), "{:?} {}", kind, lost);
            }
        }
    }
}
