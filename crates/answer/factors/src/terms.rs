//! Terms: main effects and interactions as columns of a matrix, and which of them a design cannot separate (aliases).

use crate::design::{Design, DesignKind};
use serde::Serialize;

/// A full design of at most this many factors has terms for all interactions; one of more factors only for those of two.
const MOST_FACTORS: usize = 7;

/// An effect of one factor, or an interaction of several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Term {
    /// Indices of its factors, in ascending order.
    pub factors: Vec<usize>,
    /// Terms of at most two factors that the design cannot separate from it.
    pub aliases: Vec<Vec<usize>>,
}

impl Term {
    const fn new(factors: Vec<usize>) -> Self {
        Self {
            factors,
            aliases: Vec::new(),
        }
    }

    /// Whether it is the effect of one factor.
    #[must_use]
    pub const fn is_main(&self) -> bool {
        self.factors.len() == 1
    }

    /// The number of its columns.
    #[must_use]
    pub fn width(&self, levels: &[usize]) -> usize {
        self.factors
            .iter()
            .map(|factor| levels[*factor] - 1)
            .product()
    }

    /// The entries of a row in its columns: products of the columns of its factors, each of which sums to zero over the factor's levels
    /// (-1 and 1 for two levels).
    pub(crate) fn columns(&self, levels: &[usize], row: &[usize]) -> Vec<f64> {
        let mut columns = vec![1.0];
        for factor in &self.factors {
            let own = coded(levels[*factor], row[*factor]);
            columns = columns
                .iter()
                .flat_map(|column| own.iter().map(move |code| column * code))
                .collect();
        }
        columns
    }
}

/// The columns of a level (effect coding): a level is 1 in its own column, the first level is -1 in all.
fn coded(levels: usize, level: usize) -> Vec<f64> {
    (1..levels)
        .map(|own| match level {
            0 => -1.0,
            level if level == own => 1.0,
            _ => 0.0,
        })
        .collect()
}

/// The terms that a design can estimate: main effects first, then interactions of two factors, of three, and so on.
#[must_use]
pub fn terms(design: &Design) -> Vec<Term> {
    let factors = design.levels.len();
    let mains = (0..factors).map(|factor| Term::new(vec![factor]));
    match &design.kind {
        DesignKind::OneAtATime | DesignKind::Screening | DesignKind::Given => mains.collect(),
        DesignKind::Full => {
            let most = if factors > MOST_FACTORS { 2 } else { factors };
            subsets(factors, most)
                .into_iter()
                .map(|bits| Term::new(listed(bits)))
                .collect()
        }
        DesignKind::Fraction(words) => {
            let mut terms: Vec<(u32, Term)> = Vec::new();
            for bits in subsets(factors, factors.min(3)) {
                let class: Vec<u32> = words.iter().map(|word| word ^ bits).collect();
                let is_mean = class.contains(&0);
                if is_mean
                    || terms
                        .iter()
                        .any(|(known, _)| *known == bits || class.contains(known))
                {
                    continue;
                }
                let mut aliases: Vec<u32> = class
                    .into_iter()
                    .filter(|alias| alias.count_ones() <= 2)
                    .collect();
                aliases.sort_unstable_by_key(|alias| (alias.count_ones(), *alias));
                let aliases = aliases.into_iter().map(listed).collect();
                terms.push((
                    bits,
                    Term {
                        factors: listed(bits),
                        aliases,
                    },
                ));
            }
            terms.truncate(design.rows.len() - 1);
            terms.into_iter().map(|(_, term)| term).collect()
        }
    }
}

/// All sets of 1 to `most` factors as bits, the small ones first.
fn subsets(factors: usize, most: usize) -> Vec<u32> {
    let mut all: Vec<u32> = (1_u32..1 << factors)
        .filter(|bits| bits.count_ones() as usize <= most)
        .collect();
    all.sort_by_cached_key(|bits| (bits.count_ones(), listed(*bits)));
    all
}

/// The factors of a set of bits, in ascending order.
fn listed(bits: u32) -> Vec<usize> {
    (0..32).filter(|bit| bits >> bit & 1 == 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::Wish;

    #[test]
    fn a_fraction_says_what_it_cannot_tell_apart() {
        // 2^(4-1) with D = ABC: AB = CD, AC = BD, AD = BC.
        let design = Design::new(&[2; 4], Wish::Fraction(8)).unwrap();
        let terms = terms(&design);
        assert_eq!(terms.len(), 7);
        assert!(
            terms[..4]
                .iter()
                .all(|term| term.is_main() && term.aliases.is_empty())
        );
        let pairs: Vec<_> = terms[4..]
            .iter()
            .map(|term| (term.factors.clone(), term.aliases.clone()))
            .collect();
        assert_eq!(
            pairs,
            [
                (vec![0, 1], vec![vec![2, 3]]),
                (vec![0, 2], vec![vec![1, 3]]),
                (vec![0, 3], vec![vec![1, 2]])
            ]
        );
    }

    #[test]
    fn columns_sum_to_zero_and_do_not_overlap() {
        let design = Design::new(&[2, 3, 4], Wish::Full).unwrap();
        let terms = terms(&design);
        let width: usize = terms.iter().map(|term| term.width(&design.levels)).sum();
        assert_eq!(width + 1, design.rows.len());
        for term in &terms {
            let rows = design
                .rows
                .iter()
                .map(|row| term.columns(&design.levels, row));
            let sums = rows.fold(vec![0.0; term.width(&design.levels)], |sums, row| {
                sums.iter()
                    .zip(row)
                    .map(|(sum, value)| sum + value)
                    .collect()
            });
            assert!(
                sums.iter().all(|sum| f64::abs(*sum) < 1e-12),
                "{term:?}: {sums:?}"
            );
        }
    }
}
