//! Which finding comes first, wherever findings are shown.

use super::{Finding, LEAST, environment, requests, unexplained};

/// Puts the most important first.
pub fn rank(findings: &mut [Finding]) {
    findings.sort_by(|a, b| tier(a).cmp(&tier(b)).then(b.rank().total_cmp(&a.rank())));
}

/// Failures come before all that only takes time, causes before what has none, and all before what is only noted.
fn tier(finding: &Finding) -> u8 {
    match finding.kind {
        kind if requests::causes::FAILURES.contains(&kind) => 0,
        kind if kind == unexplained::KIND.name => 2,
        kind if kind == environment::clock_trouble::KIND.name && finding.share < LEAST => 3,
        _ => 1,
    }
}
