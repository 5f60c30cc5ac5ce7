//! How often what was said with some confidence was right: the reliability diagram as a table.

use crate::verdict::FindingVerdict;
use serde::Serialize;

/// Findings said with a confidence from `from` to `to`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bin {
    /// The least confidence.
    pub from: f64,
    /// The greatest.
    pub to: f64,
    /// How many were right.
    pub right: u32,
    /// How many were wrong.
    pub wrong: u32,
    /// How many were neither.
    pub open: u32,
}

/// The diagram.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reliability {
    /// From the surest down.
    pub bins: Vec<Bin>,
}

impl Default for Reliability {
    fn default() -> Self {
        let bin = |from, to| Bin {
            from,
            to,
            right: 0,
            wrong: 0,
            open: 0,
        };
        Self {
            bins: vec![bin(0.9, 1.0), bin(0.8, 0.9), bin(0.6, 0.8), bin(0.0, 0.6)],
        }
    }
}

impl Reliability {
    /// One more finding.
    pub fn add(&mut self, confidence: f64, verdict: FindingVerdict) {
        let Some(bin) = self.bins.iter_mut().find(|bin| confidence >= bin.from) else {
            return;
        };
        *match verdict {
            FindingVerdict::Right => &mut bin.right,
            FindingVerdict::Wrong => &mut bin.wrong,
            FindingVerdict::Open => &mut bin.open,
        } += 1;
    }
}

impl Bin {
    /// The share that was right of what was right or wrong, with its 95 % interval (Wilson 1927); `None` without any.
    #[must_use]
    pub fn share(&self) -> Option<(f64, [f64; 2])> {
        let n = f64::from(self.right + self.wrong);
        if n == 0.0 {
            return None;
        }
        let (p, z2) = (f64::from(self.right) / n, 1.96_f64.powi(2));
        let middle = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
        let half = 1.96 * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt() / (1.0 + z2 / n);
        Some((p, [(middle - half).max(0.0), (middle + half).min(1.0)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilson_holds_the_share() {
        let bin = Bin {
            from: 0.9,
            to: 1.0,
            right: 95,
            wrong: 5,
            open: 0,
        };
        let (share, [low, high]) = bin.share().expect("there are some");
        assert!((share - 0.95).abs() < 1e-12);
        // Newcombe 1998, table I: 0.8883 to 0.9785 is near this for n = 100.
        assert!(
            (low - 0.888).abs() < 0.001 && (high - 0.978).abs() < 0.001,
            "{low} {high}"
        );
    }

    #[test]
    fn each_finding_is_in_one_bin() {
        let mut diagram = Reliability::default();
        for confidence in [1.0, 0.9, 0.85, 0.6, 0.3] {
            diagram.add(confidence, FindingVerdict::Right);
        }
        assert_eq!(
            diagram.bins.iter().map(|bin| bin.right).collect::<Vec<_>>(),
            [2, 1, 1, 1]
        );
    }
}
