//! Parses prices of levels, such as `bandwidth of a - b x 10 = 300, cpu x 2 = 120`. A level without a price cannot be bought; the
//! first level of each factor costs nothing.

use stackline_core::error::{Error, Result};
use stackline_spec::Factor;

/// By factor and level: the price, if there is one.
pub type Prices = Vec<Vec<Option<f64>>>;

const SUCH_AS: &str = "as in `bandwidth x 10 = 300, cpu of b x 2 = 120`";

/// Parses the prices, and checks the amount to spend, before anything is run.
///
/// # Errors
/// If the amount or a price is invalid, a level is not known or ambiguous, or no level has a price.
pub fn parse_prices(text: &str, spend: Option<f64>, factors: &[Factor]) -> Result<Prices> {
    if let Some(amount) = spend.filter(|amount| !(amount.is_finite() && *amount >= 0.0)) {
        return Err(
            Error::input(format!("`{amount}` is not a valid amount to spend"))
                .hint("as in `--spend 320`"),
        );
    }
    let free = |factor: &Factor| {
        (0..factor.levels.len())
            .map(|level| (level == 0).then_some(0.0))
            .collect()
    };
    let mut prices: Vec<Vec<Option<f64>>> = factors.iter().map(free).collect();
    for one in text.split(',').map(str::trim).filter(|one| !one.is_empty()) {
        let Some((what, price)) = one.rsplit_once('=') else {
            return Err(Error::input(format!("`{one}` has no price")).hint(SUCH_AS));
        };
        let (what, price) = (what.trim(), price.trim());
        let price: f64 = price
            .parse()
            .ok()
            .filter(|price: &f64| price.is_finite() && *price >= 0.0)
            .ok_or_else(|| Error::input(format!("`{price}` is not a valid price")).hint(SUCH_AS))?;
        let (factor, level) = found(what, factors)?;
        if prices[factor][level].replace(price).is_some() {
            return Err(Error::input(format!("`{what}` has two prices")).hint("omit one"));
        }
    }
    if prices
        .iter()
        .all(|levels| levels.iter().flatten().count() < 2)
    {
        return Err(Error::input("no level has a price").hint(SUCH_AS));
    }
    Ok(prices)
}

/// The factor and level that `what` names: by the factor's full name, or by the part of it before ` of ` if that is unambiguous.
fn found(what: &str, factors: &[Factor]) -> Result<(usize, usize)> {
    let plain = |text: &str| text.split_whitespace().collect::<String>();
    let mut meant = Vec::new();
    for (at, factor) in factors.iter().enumerate() {
        for (number, level) in factor.levels.iter().enumerate().skip(1) {
            let short = factor.name.split(" of ").next().unwrap_or(&factor.name);
            let names = [
                format!("{} {level}", factor.name),
                format!("{short} {level}"),
                format!("{} = {level}", factor.name),
            ];
            if names.iter().any(|name| plain(name) == plain(what)) {
                meant.push((at, number));
            }
        }
    }
    match meant[..] {
        [one] => Ok(one),
        [] => {
            let known = factors.iter().flat_map(|factor| {
                factor
                    .levels
                    .iter()
                    .skip(1)
                    .map(|level| format!("`{} {level}`", factor.name))
                    .collect::<Vec<_>>()
            });
            let known: Vec<String> = known.take(8).collect();
            Err(Error::input(format!("no factor has the level `{what}`"))
                .hint(format!("known levels: {}", known.join(", "))))
        }
        _ => Err(
            Error::input(format!("`{what}` matches levels of several factors"))
                .hint("write the factor's full name"),
        ),
    }
}
