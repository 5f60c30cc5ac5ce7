//! Rates on a logarithmic scale, to three digits, so that texts have them as they were offered.

/// `number` rates from `low` to `high` that rise by one factor, to three digits.
#[must_use]
pub fn geometric_rates(low: f64, high: f64, number: u32) -> Vec<f64> {
    if number < 2 || high <= low {
        return vec![three_digits(low)];
    }
    let each = (0..number).map(|at| {
        let share = f64::from(at) / f64::from(number - 1);
        three_digits(low * (high / low).powf(share))
    });
    let mut rates: Vec<f64> = each.collect();
    rates.dedup();
    rates
}

/// A number rounded to three significant digits.
#[must_use]
pub fn three_digits(number: f64) -> f64 {
    format!("{number:.2e}").parse().unwrap_or(number)
}
