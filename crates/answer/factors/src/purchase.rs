//! Costs and gains of sets of improvements: the combinations that no other one beats (the Pareto front).

use crate::answer::FactorAnswer;
use crate::design::Design;
use crate::fit::Estimate;
use serde::Serialize;

/// A combination with its price.
#[derive(Clone, Debug, Serialize)]
pub struct PricedCombination {
    /// The level of each factor.
    pub levels: Vec<usize>,
    /// The sum of the prices of its levels.
    pub cost: f64,
    /// The gain over the first levels: a difference, or the logarithm of a ratio; more is better.
    pub gain: Estimate,
}

/// The most combinations that are compared.
const MOST: usize = 1 << 16;

/// The combinations such that no other one gains more at the same or lower cost, the cheapest first. `costs` has a price for each
/// level of each factor, `None` if it cannot be bought.
///
/// # Errors
/// If there are too many combinations: one sentence.
pub fn front(
    design: &Design,
    answer: &FactorAnswer,
    costs: &[Vec<Option<f64>>],
    more_is_better: bool,
) -> Result<Vec<PricedCombination>, String> {
    let count = costs
        .iter()
        .map(Vec::len)
        .try_fold(1_usize, |all, levels| all.checked_mul(levels))
        .unwrap_or(usize::MAX);
    if count > MOST {
        return Err(format!("{count} combinations are too many to compare"));
    }
    let base = vec![0; design.levels.len()];
    let mut offers: Vec<PricedCombination> = Vec::new();
    for mut number in 0..count {
        let mut levels = Vec::with_capacity(base.len());
        for prices in costs {
            levels.push(number % prices.len());
            number /= prices.len();
        }
        let price = levels
            .iter()
            .zip(costs)
            .map(|(level, prices)| prices[*level])
            .sum::<Option<f64>>();
        let Some(cost) = price else { continue };
        let mut gain = answer.difference(design, &levels, &base);
        gain.value *= if more_is_better { 1.0 } else { -1.0 };
        offers.push(PricedCombination { levels, cost, gain });
    }
    offers.sort_by(|a, b| {
        a.cost
            .total_cmp(&b.cost)
            .then(b.gain.value.total_cmp(&a.gain.value))
    });
    let mut best = f64::NEG_INFINITY;
    offers.retain(|offer| {
        let is_better = offer.gain.value > best + 1e-12;
        best = best.max(offer.gain.value);
        is_better
    });
    Ok(offers)
}
