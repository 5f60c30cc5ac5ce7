//! The effect of each factor alone, with all others at their first level, and its rank by that: what matters to those who change one
//! thing. If factors interact, it differs from the effect averaged over the levels of the others.

use crate::answer::FactorAnswer;
use crate::design::{Design, DesignKind};
use crate::fit::Estimate;

/// The effect of a factor alone.
#[derive(Clone, Copy, Debug)]
pub struct EffectAlone {
    /// Index of the factor.
    pub factor: usize,
    /// The level that differs most from the first.
    pub level: usize,
    /// The effect of this level relative to the first: a difference, or the logarithm of a ratio.
    pub estimate: Estimate,
    /// The rank, from 1; effects of the same rank cannot be distinguished.
    pub rank: usize,
}

impl FactorAnswer {
    /// The effects of factors alone, the largest first; empty if the design does not contain each level by itself.
    #[must_use]
    pub fn effects_alone(&self, design: &Design) -> Vec<EffectAlone> {
        if !matches!(design.kind, DesignKind::Full | DesignKind::OneAtATime) {
            return Vec::new();
        }
        let base = vec![0; design.levels.len()];
        let row = |factor: usize, level: usize| {
            let mut row = base.clone();
            row[factor] = level;
            row
        };
        let of = |factor: usize| {
            let alone = |level| self.difference(design, &row(factor, level), &base);
            let size = |level: &usize| alone(*level).value.abs();
            let level = (1..design.levels[factor]).max_by(|a, b| size(a).total_cmp(&size(b)))?;
            Some(EffectAlone {
                factor,
                level,
                estimate: alone(level),
                rank: 0,
            })
        };
        let mut effects: Vec<EffectAlone> = (0..design.levels.len()).filter_map(of).collect();
        effects.sort_by(|a, b| b.estimate.value.abs().total_cmp(&a.estimate.value.abs()));
        let mut first = 0;
        for at in 0..effects.len() {
            let [one, other] = [first, at].map(|at| row(effects[at].factor, effects[at].level));
            let larger = self
                .fit
                .larger_row(design, &self.terms, [&one, &other], &base);
            if at > first && !larger.may_be_zero() {
                first = at;
            }
            effects[at].rank = first + 1;
        }
        effects
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::analyse;
    use crate::design::Wish;
    use crate::fit::FactorObservation;

    /// What three runs of each combination of factors of two levels say, each run a little faster than the one before.
    fn answered(
        factors: usize,
        wish: Wish,
        rate: impl Fn(&[usize]) -> f64,
    ) -> (Design, FactorAnswer) {
        let design = Design::new(&vec![2; factors], wish).unwrap();
        let mut observed = Vec::new();
        for (row, levels) in design.rows.iter().enumerate() {
            for run in 0..3 {
                observed.push(FactorObservation {
                    row,
                    block: 0,
                    order: observed.len() as u32,
                    value: rate(levels) * (1.0 + 0.001 * f64::from(run)),
                });
            }
        }
        let answer = analyse(&design, &observed, None).unwrap();
        (design, answer)
    }

    #[test]
    fn a_link_behind_a_window_is_last_alone_and_not_last_on_average() {
        // 16 KiB over 40 ms let 3.3 Mbit/s through a link of 10: four times the window or a tenth of the delay bring a factor of 3, ten
        // times the link nothing, but more than the window once the others are made.
        let (design, answer) = answered(3, Wish::Full, |levels| {
            let (window, delay) = ([3.3, 13.2][levels[0]], [1.0, 10.0][levels[1]]);
            f64::min(window * delay, [10.0, 100.0][levels[2]])
        });
        let alone = answer.effects_alone(&design);
        let ranks: Vec<(usize, usize)> = alone.iter().map(|one| (one.factor, one.rank)).collect();
        assert!(
            ranks[..2].contains(&(0, 1)) && ranks[..2].contains(&(1, 1)),
            "{ranks:?}"
        );
        assert_eq!(ranks[2], (2, 3));
        assert!(
            alone[2].estimate.value.abs() < 1e-9,
            "the window hides the link"
        );
        let average: Vec<usize> = answer.effects.iter().map(|one| one.factor).collect();
        assert_eq!(average, [1, 2, 0]);
    }

    #[test]
    fn both_ranks_are_one_where_factors_do_not_depend_on_each_other() {
        let (design, answer) = answered(3, Wish::Full, |levels| {
            [1.0, 2.0][levels[0]] * [1.0, 5.0][levels[1]] * [1.0, 1.2][levels[2]]
        });
        let alone: Vec<(usize, usize)> = answer
            .effects_alone(&design)
            .iter()
            .map(|one| (one.factor, one.rank))
            .collect();
        let average: Vec<(usize, usize)> = answer
            .effects
            .iter()
            .map(|one| (one.factor, one.rank))
            .collect();
        assert_eq!(alone, average);
        assert_eq!(alone, [(1, 1), (0, 2), (2, 3)]);
    }

    #[test]
    fn a_design_without_single_changes_says_nothing_of_them() {
        let rate = |levels: &[usize]| 1.0 + levels.iter().sum::<usize>() as f64;
        let (design, answer) = answered(5, Wish::Screening, rate);
        assert!(answer.effects_alone(&design).is_empty());
    }
}
