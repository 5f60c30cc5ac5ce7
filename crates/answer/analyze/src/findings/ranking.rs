//! Which finding comes first, wherever findings are shown.

use super::{Finding, LEAST, environment, unexplained};

/// Puts the most important first.
pub fn rank(findings: &mut [Finding]) {
    findings.sort_by(|a, b| tier(a).cmp(&tier(b)).then(b.rank().total_cmp(&a.rank())));
}

/// Causes come before what has none, and both before what is only noted.
fn tier(finding: &Finding) -> u8 {
    match finding.kind {
        kind if kind == unexplained::KIND.name => 1,
        kind if kind == environment::clock_trouble::KIND.name && finding.share < LEAST => 2,
        _ => 0,
    }
}
