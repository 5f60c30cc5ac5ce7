//! Shares that are written as percentages.

/// A share written as a percentage: 0.05 of `5%`.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let number = text
        .trim_end_matches('%')
        .trim()
        .parse::<f64>()
        .ok()
        .filter(|share| share.is_finite() && *share >= 0.0);
    number
        .map(|share| share / 100.0)
        .ok_or_else(|| format!("expected a percentage such as 5%, not `{text}`"))
}
