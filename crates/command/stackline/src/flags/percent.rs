//! A share that is written as a percentage.

/// A share written as a percentage.
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
