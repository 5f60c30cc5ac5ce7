//! Turns factors and priced combinations into the types of the report.

use stackline_core::error::{Error, Result};
use stackline_factors::{Design, DesignKind, purchase};
use stackline_report::factors::{FactorWords, ImprovementOffer, Response};
use stackline_spec::Factor;

/// A factor as the report shows it.
#[must_use]
pub fn describe_factor(factor: &Factor) -> FactorWords {
    FactorWords {
        name: factor.name.clone(),
        levels: factor.levels.iter().map(ToString::to_string).collect(),
        times: (0..factor.levels.len())
            .map(|level| factor.times(level))
            .collect(),
    }
}

/// The improvements that are worth their price, by the response `first`; the best within `spend` is marked.
///
/// # Errors
/// If there are too many combinations with prices.
pub fn offers(
    design: &Design,
    factors: &[Factor],
    first: &Response,
    prices: &[Vec<Option<f64>>],
    spend: Option<f64>,
) -> Result<Vec<ImprovementOffer>> {
    let Ok(answer) = &first.answer else {
        return Ok(Vec::new());
    };
    let front = purchase::front(design, answer, prices, first.more_is_better);
    let front =
        front.map_err(|error| Error::input(error).hint("specify prices for fewer levels"))?;
    // With one factor at a time, combinations were not run, so their gain is not known.
    let single = design.kind == DesignKind::OneAtATime;
    let front: Vec<purchase::PricedCombination> = front
        .into_iter()
        .filter(|offer| !single || offer.levels.iter().filter(|level| **level > 0).count() < 2)
        .collect();
    let best = front
        .iter()
        .rposition(|offer| spend.is_none_or(|most| offer.cost <= most));
    let of = |(at, offer): (usize, &purchase::PricedCombination)| {
        let (times, interval) = first.gain_of(answer, design, &offer.levels);
        let bought = offer
            .levels
            .iter()
            .zip(factors)
            .filter(|(level, _)| **level > 0);
        let bought =
            bought.map(|(level, factor)| format!("{} {}", factor.name, factor.levels[*level]));
        ImprovementOffer {
            bought: bought.collect(),
            cost: offer.cost,
            times,
            interval,
            is_best: spend.is_some() && best == Some(at),
        }
    };
    Ok(front.iter().enumerate().map(of).collect())
}
