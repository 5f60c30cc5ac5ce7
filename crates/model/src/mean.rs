//! Long-run means: of a distribution's draws, of a link's rate, of what it loses.
//!
//! It draws nothing; a mean that does not exist (a Pareto tail that is too heavy) is `None`.

use crate::real;
use stackline_core::distribution::Distribution;
use stackline_core::network::{Loss, Rate};
use stackline_core::time::Duration;

/// Bytes that may leave at one opportunity of a Mahimahi trace.
const OPPORTUNITY_BYTES: f64 = 1504.0;

/// The mean of what a distribution draws, in its own unit; `None` where it is infinite.
#[must_use]
pub fn of(distribution: &Distribution) -> Option<f64> {
    let mean = match distribution {
        Distribution::Constant(value) => *value,
        Distribution::Uniform(low, high) => f64::midpoint(*low, *high),
        Distribution::Normal(mean, sd) => rectified_normal(*mean, *sd),
        Distribution::Exponential(mean) | Distribution::Lognormal(mean, _) => *mean,
        Distribution::Bivalue(first, second, p) => p * first + (1.0 - p) * second,
        Distribution::Pareto(scale, shape) if *shape > 1.0 => shape * scale / (shape - 1.0),
        Distribution::Pareto(..) => f64::INFINITY,
        Distribution::Empirical(values) => values.iter().sum::<f64>() / real(values.len().max(1) as u64),
    };
    mean.is_finite().then_some(mean)
}

/// The mean of max(0, X) for X normal: `m Phi(m/s) + s phi(m/s)`; draws below zero count as zero.
fn rectified_normal(mean: f64, sd: f64) -> f64 {
    if sd <= 0.0 {
        return mean.max(0.0);
    }
    let z = mean / sd;
    let below = 0.5 * libm::erfc(-z / core::f64::consts::SQRT_2);
    let density = libm::exp(-z * z / 2.0) / libm::sqrt(2.0 * core::f64::consts::PI);
    mean * below + sd * density
}

/// The long-run mean rate of a link in bit/s; `None` when no time is spent on it.
#[must_use]
pub fn rate_bit_s(rate: &Rate) -> Option<f64> {
    match rate {
        Rate::Unlimited => None,
        Rate::Constant(rate) => Some(*rate),
        Rate::Schedule(schedule) => Some(match schedule.period {
            // Without a period the last rate goes on for ever, so in the long run it is all there is.
            None => schedule.steps.last().map_or(0.0, |(_, rate)| *rate),
            Some(period) => over_a_period(&schedule.steps, period),
        }),
        Rate::Trace(trace) => {
            let period_s = f64::from(trace.opportunities_ms.last().copied().unwrap_or(0)) / 1e3;
            let bits = real(trace.opportunities_ms.len() as u64) * OPPORTUNITY_BYTES * 8.0;
            Some(if period_s > 0.0 { bits / period_s } else { 0.0 })
        }
    }
}

fn over_a_period(steps: &[(Duration, f64)], period: Duration) -> f64 {
    let ends = steps.iter().skip(1).map(|(at, _)| *at).chain([period]);
    let bits: f64 = steps
        .iter()
        .zip(ends)
        .map(|((at, rate), end)| rate * (end.min(period).seconds() - at.seconds()).max(0.0))
        .sum();
    if period.0 == 0 { 0.0 } else { bits / period.seconds() }
}

/// The probability that a packet which puts `bytes` on the wire is lost, 0 to 1. Lists count over the first `packets`
/// of the direction (in the long run a finite list is nothing).
#[must_use]
pub fn loss(loss: &Loss, bytes: u64, packets: Option<u64>) -> f64 {
    let p = match loss {
        Loss::None => 0.0,
        Loss::Independent(p) => *p,
        Loss::BitErrors(rate) => crate::loss::of_bit_errors(*rate, bytes),
        Loss::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
            // It begins in the good state and stays there when nothing leads out of it.
            let bad = if *to_bad > 0.0 { to_bad / (to_bad + to_good) } else { 0.0 };
            (1.0 - bad) * loss_good + bad * loss_bad
        }
        Loss::List(numbers) => match packets {
            Some(packets @ 1..) => real(numbers.iter().filter(|n| **n <= packets).count() as u64) / real(packets),
            _ => 0.0,
        },
        Loss::Every(n) => 1.0 / real((*n).max(1)),
    };
    p.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;
    use stackline_core::network::{DeliveryTrace, RateSchedule};

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs().max(1e-12)
    }

    #[test]
    fn means_of_draws() {
        let mean = |d: Distribution| of(&d);
        assert_eq!(mean(Distribution::Constant(3.0)), Some(3.0));
        assert_eq!(mean(Distribution::Uniform(1.0, 3.0)), Some(2.0));
        assert_eq!(mean(Distribution::Bivalue(1.0, 2.0, 0.25)), Some(1.75));
        assert_eq!(mean(Distribution::Pareto(3.0, 4.0)), Some(4.0));
        assert_eq!(mean(Distribution::Pareto(3.0, 1.0)), None);
        assert_eq!(mean(Distribution::Empirical(vec![1.0, 5.0])), Some(3.0));
        // Half of a normal about zero is cut off: what is left has the mean sd / sqrt(2 pi).
        let cut = mean(Distribution::Normal(0.0, 1.0)).unwrap();
        assert!(close(cut, 0.398_942_280_401_432_7), "{cut}");
        assert!(close(mean(Distribution::Normal(100.0, 1.0)).unwrap(), 100.0));
    }

    #[test]
    fn rates() {
        assert_eq!(rate_bit_s(&Rate::Unlimited), None);
        let steps = vec![(Duration::ZERO, 1e6), (Duration::from_seconds(1.0), 4e6)];
        let over = |period: Option<f64>| {
            let schedule = RateSchedule { steps: steps.clone(), period: period.map(Duration::from_seconds) };
            rate_bit_s(&Rate::Schedule(schedule)).unwrap()
        };
        // 1 s of 1 Mbit/s and 2 s of 4 Mbit/s: 9 Mbit in 3 s.
        assert!(close(over(Some(3.0)), 3e6));
        assert!(close(over(Some(0.5)), 1e6));
        assert!(close(over(None), 4e6));
        // Two packets of 1504 bytes each 2 ms: 24064 bits in 2 ms.
        let trace = DeliveryTrace { file: "t".into(), opportunities_ms: vec![1, 2] };
        assert!(close(rate_bit_s(&Rate::Trace(trace)).unwrap(), 12.032e6));
    }

    #[test]
    fn losses() {
        let p = |l: Loss| loss(&l, 1500, Some(100));
        assert_eq!(p(Loss::None), 0.0);
        assert_eq!(p(Loss::Independent(0.01)), 0.01);
        // 12000 bits at 1e-6: 1 - (1 - 1e-6)^12000.
        assert!((p(Loss::BitErrors(1e-6)) - 0.011_928_3).abs() < 1e-6);
        let states = Loss::GilbertElliott { to_bad: 0.01, to_good: 0.09, loss_good: 0.0, loss_bad: 0.5 };
        assert!(close(p(states), 0.05));
        let never = Loss::GilbertElliott { to_bad: 0.0, to_good: 0.0, loss_good: 0.1, loss_bad: 0.5 };
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
