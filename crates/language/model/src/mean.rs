//! What a link loses in the long run.
//!
//! It draws nothing.

use crate::real;
use stackline_core::network::Loss;

/// The probability that a packet which puts `bytes` on the wire is lost, 0 to 1. Lists count over the first `packets`
/// of the direction (in the long run a finite list is nothing).
#[must_use]
pub fn loss(loss: &Loss, bytes: u64, packets: Option<u64>) -> f64 {
    let p = match loss {
        Loss::None => 0.0,
        Loss::Independent(p) => *p,
        Loss::BitErrors(rate) => crate::loss::of_bit_errors(*rate, bytes),
        Loss::GilbertElliott {
            to_bad,
            to_good,
            loss_good,
            loss_bad,
        } => {
            // It begins in the good state and stays there when nothing leads out of it.
            let bad = if *to_bad > 0.0 {
                to_bad / (to_bad + to_good)
            } else {
                0.0
            };
            (1.0 - bad) * loss_good + bad * loss_bad
        }
        Loss::List(numbers) => match packets {
            Some(packets @ 1..) => {
                real(numbers.iter().filter(|n| **n <= packets).count() as u64) / real(packets)
            }
            _ => 0.0,
        },
        Loss::Every(n) => 1.0 / real((*n).max(1)),
        Loss::Schedule(schedule) => schedule.mean(|step| self::loss(step, bytes, packets)),
    };
    p.clamp(0.0, 1.0)
}

/// Whether losses come in bursts, of which their mean says nothing.
pub(crate) const fn in_bursts(loss: &Loss) -> bool {
    match loss {
        Loss::GilbertElliott { .. } | Loss::Schedule(_) => true,
        Loss::None | Loss::Independent(_) | Loss::BitErrors(_) | Loss::List(_) | Loss::Every(_) => {
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs().max(1e-12)
    }

    #[test]
    fn losses() {
        let p = |l: Loss| loss(&l, 1500, Some(100));
        assert_eq!(p(Loss::None), 0.0);
        assert_eq!(p(Loss::Independent(0.01)), 0.01);
        // 12000 bits at 1e-6: 1 - (1 - 1e-6)^12000.
        assert!((p(Loss::BitErrors(1e-6)) - 0.011_928_3).abs() < 1e-6);
        let states = Loss::GilbertElliott {
            to_bad: 0.01,
            to_good: 0.09,
            loss_good: 0.0,
            loss_bad: 0.5,
        };
        assert!(close(p(states), 0.05));
        let never = Loss::GilbertElliott {
            to_bad: 0.0,
            to_good: 0.0,
            loss_good: 0.1,
            loss_bad: 0.5,
        };
        assert!(close(p(never), 0.1));
        assert_eq!(p(Loss::Every(4)), 0.25);
        assert_eq!(p(Loss::List(vec![3, 50, 101])), 0.02);
        assert_eq!(loss(&Loss::List(vec![3]), 1500, None), 0.0);
    }

    proptest! {
        #[test]
        fn a_loss_is_a_probability(
            p in 0.0..=1.0_f64, q in 0.0..=1.0_f64, g in 0.0..=1.0_f64, b in 0.0..=1.0_f64,
            bytes in 1..1_000_000_u64, n in 0..100_u64, list in proptest::collection::vec(1..1000_u64, 0..9),
        ) {
            let states = Loss::GilbertElliott { to_bad: p, to_good: q, loss_good: g, loss_bad: b };
            let all: Vec<Loss> = vec![Loss::Independent(p), Loss::BitErrors(p), states, Loss::List(list), Loss::Every(n)];
            for kind in all {
                let lost = loss(&kind, bytes, Some(n));
                prop_assert!((0.0..=1.0).contains(&lost), "{:?} {}", kind, lost);
            }
        }
    }
}
