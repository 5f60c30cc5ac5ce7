//! Designs: which combinations of levels are run.

use crate::generators::{FRACTIONS, Fraction, SCREENING, bits};
use serde::Serialize;
use stackline_core::units::counted;
use std::fmt;

/// The most combinations of a full design.
pub const MOST_ROWS: usize = 4096;

/// The kind of a design.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DesignKind {
    /// Every combination of levels.
    Full,
    /// A fraction of a design with two levels each. It has the words of the defining relation, as bits of factors, without the identity.
    Fraction(Vec<u32>),
    /// Plackett and Burman's screening design: main effects alone, with parts of all two-factor interactions in them.
    Screening,
    /// Every level of every factor by itself, with all others at their first level.
    OneAtATime,
    /// Combinations that were run elsewhere: only main effects are analysed.
    Given,
}

/// Which design is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// The best with at most so many combinations.
    Best(usize),
    /// Every combination.
    Full,
    /// A fraction with so many combinations.
    Fraction(usize),
    /// A screening design.
    Screening,
    /// One factor at a time.
    OneAtATime,
}

/// The combinations that are run: a level of each factor in each row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Design {
    /// The kind.
    pub kind: DesignKind,
    /// The number of levels of each factor.
    pub levels: Vec<usize>,
    /// The combinations, each as a level for every factor; each is run once per replicate.
    pub rows: Vec<Vec<usize>>,
}

impl Design {
    /// A design for factors with these numbers of levels.
    ///
    /// # Errors
    /// If there is no such design: one sentence that says why.
    pub fn new(levels: &[usize], wish: Wish) -> Result<Self, String> {
        if levels.is_empty() || levels.iter().any(|count| *count < 2) {
            return Err("a design needs factors with at least two levels each".into());
        }
        let full = levels
            .iter()
            .try_fold(1_usize, |all, count| all.checked_mul(*count))
            .unwrap_or(usize::MAX);
        match wish {
            Wish::Full if full > MOST_ROWS => Err(format!(
                "a full design of {} has more than {MOST_ROWS} combinations",
                counted(levels.len() as u64, "factor")
            )),
            Wish::Full => Ok(Self::full(levels)),
            Wish::OneAtATime => Ok(Self::one_at_a_time(levels)),
            Wish::Screening => Self::screening(levels),
            Wish::Fraction(runs) => Self::fraction(levels, runs),
            Wish::Best(most) if full <= most => Ok(Self::full(levels)),
            Wish::Best(most) => Ok(Self::within(levels, most)),
        }
    }

    /// The design that separates most terms with at most `most` combinations: a fraction, else screening, else one factor at a time, even
    /// if that is larger.
    fn within(levels: &[usize], most: usize) -> Self {
        let two = levels.iter().all(|count| *count == 2);
        let fractions = FRACTIONS
            .iter()
            .filter(|one| one.factors == levels.len() && one.runs <= most);
        let best = fractions
            .clone()
            .map(|fraction| Self::of_fraction(levels, *fraction))
            .next()
            .filter(|_| two);
        let screened = Self::screening(levels)
            .ok()
            .filter(|design| design.rows.len() <= most);
        best.or(screened)
            .unwrap_or_else(|| Self::one_at_a_time(levels))
    }

    fn full(levels: &[usize]) -> Self {
        let count = levels.iter().product();
        let row = |mut number: usize| {
            let mut row = Vec::with_capacity(levels.len());
            // The first factor changes fastest (standard order).
            for count in levels {
                row.push(number % count);
                number /= count;
            }
            row
        };
        Self {
            kind: DesignKind::Full,
            levels: levels.to_vec(),
            rows: (0..count).map(row).collect(),
        }
    }

    fn one_at_a_time(levels: &[usize]) -> Self {
        let mut rows = vec![vec![0; levels.len()]];
        for (factor, count) in levels.iter().enumerate() {
            for level in 1..*count {
                let mut row = vec![0; levels.len()];
                row[factor] = level;
                rows.push(row);
            }
        }
        Self {
            kind: DesignKind::OneAtATime,
            levels: levels.to_vec(),
            rows,
        }
    }

    fn two_each(levels: &[usize]) -> Result<(), String> {
        if levels.iter().all(|count| *count == 2) {
            return Ok(());
        }
        Err(
            "fractional and screening designs need two levels per factor, but at least one factor has more"
                .into(),
        )
    }

    fn fraction(levels: &[usize], runs: usize) -> Result<Self, String> {
        Self::two_each(levels)?;
        let of_these: Vec<_> = FRACTIONS
            .iter()
            .filter(|one| one.factors == levels.len())
            .collect();
        match of_these.iter().find(|one| one.runs == runs) {
            Some(fraction) => Ok(Self::of_fraction(levels, **fraction)),
            None => {
                let known: Vec<String> = of_these.iter().map(|one| one.runs.to_string()).collect();
                let known = if known.is_empty() {
                    "none of any size is known".into()
                } else {
                    format!("known sizes: {}", known.join(", "))
                };
                Err(format!(
                    "no fractional design for {} has {runs} combinations; {known}",
                    counted(levels.len() as u64, "factor")
                ))
            }
        }
    }

    fn of_fraction(levels: &[usize], fraction: Fraction) -> Self {
        let basic = fraction.factors - fraction.products.len();
        let products: Vec<u32> = fraction.products.iter().map(|word| bits(word)).collect();
        let row = |number: usize| {
            let sign = |word: u32| {
                let low = (0..basic)
                    .filter(|bit| word >> bit & 1 == 1 && number >> bit & 1 == 0)
                    .count();
                // Chooses the fraction that contains the combination with all factors at their first level: a product of an even number
                // of factors takes the opposite sign.
                low.is_multiple_of(2) != word.count_ones().is_multiple_of(2)
            };
            let own = (0..basic).map(|bit| number >> bit & 1);
            own.chain(products.iter().map(|word| usize::from(sign(*word))))
                .collect()
        };
        let words: Vec<u32> = products
            .iter()
            .zip(basic..)
            .map(|(word, factor)| word | 1 << factor)
            .collect();
        let combined = (1_u32..1 << words.len()).map(|chosen| {
            let of = words
                .iter()
                .enumerate()
                .filter(|(at, _)| chosen >> at & 1 == 1);
            of.fold(0, |all, (_, word)| all ^ word)
        });
        Self {
            kind: DesignKind::Fraction(combined.collect()),
            levels: levels.to_vec(),
            rows: (0..fraction.runs).map(row).collect(),
        }
    }

    fn screening(levels: &[usize]) -> Result<Self, String> {
        Self::two_each(levels)?;
        let Some(first) = SCREENING.iter().find(|first| first.len() >= levels.len()) else {
            return Err(format!(
                "screening designs have at most 23 factors, not {}",
                levels.len()
            ));
        };
        let high: Vec<usize> = first
            .bytes()
            .map(|sign| usize::from(sign == b'+'))
            .collect();
        let rotated = (0..high.len()).map(|by| {
            (0..levels.len())
                .map(|at| high[(at + high.len() - by) % high.len()])
                .collect()
        });
        let rows = rotated.chain([vec![0; levels.len()]]).collect();
        Ok(Self {
            kind: DesignKind::Screening,
            levels: levels.to_vec(),
            rows,
        })
    }

    /// The resolution: the fewest factors in a word of the defining relation; `None` if nothing is aliased.
    #[must_use]
    pub fn resolution(&self) -> Option<u32> {
        match &self.kind {
            DesignKind::Fraction(words) => words.iter().map(|word| word.count_ones()).min(),
            DesignKind::Screening => Some(3),
            DesignKind::Full | DesignKind::OneAtATime | DesignKind::Given => None,
        }
    }

    /// The index of the row with these levels, if there is one.
    #[must_use]
    pub fn row_of(&self, levels: &[usize]) -> Option<usize> {
        self.rows.iter().position(|row| row == levels)
    }
}

impl fmt::Display for Design {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (factors, runs) = (self.levels.len(), self.rows.len());
        let two = self.levels.iter().all(|count| *count == 2);
        match &self.kind {
            DesignKind::Full if two => write!(f, "full 2^{factors} design"),
            DesignKind::Full if factors == 1 => write!(f, "{runs} levels of one factor"),
            DesignKind::Full => {
                let counts: Vec<String> = self.levels.iter().map(ToString::to_string).collect();
                write!(f, "full {} design", counts.join(" x "))
            }
            DesignKind::Fraction(words) => {
                let p = (words.len() + 1).ilog2();
                write!(
                    f,
                    "2^({factors}-{p}) fraction of resolution {}",
                    self.resolution().unwrap_or(0)
                )
            }
            DesignKind::Screening => write!(
                f,
                "screening design (Plackett-Burman) of {runs} combinations"
            ),
            DesignKind::OneAtATime => write!(f, "one factor at a time, {runs} combinations"),
            DesignKind::Given => write!(f, "{runs} given combinations"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns of two levels as signs.
    fn column(design: &Design, factors: u32) -> Vec<i32> {
        let sign = |row: &Vec<usize>| {
            let low = row
                .iter()
                .enumerate()
                .filter(|(at, level)| factors >> at & 1 == 1 && **level == 0)
                .count();
            if low % 2 == 0 { 1 } else { -1 }
        };
        design.rows.iter().map(sign).collect()
    }

    #[test]
    fn fractions_have_the_resolution_of_the_books() {
        // Box, Hunter and Hunter, table 12.15.
        let resolutions = [
            (3, 4, 3),
            (4, 8, 4),
            (5, 16, 5),
            (5, 8, 3),
            (6, 32, 6),
            (6, 16, 4),
            (6, 8, 3),
            (7, 64, 7),
            (7, 32, 4),
            (7, 16, 4),
            (7, 8, 3),
            (8, 64, 5),
            (8, 32, 4),
            (8, 16, 4),
            (9, 128, 6),
            (9, 64, 4),
            (9, 32, 4),
            (9, 16, 3),
            (10, 128, 5),
            (10, 64, 4),
            (10, 32, 4),
            (10, 16, 3),
            (11, 64, 4),
            (11, 32, 4),
            (11, 16, 3),
        ];
        for (factors, runs, resolution) in resolutions {
            let design = Design::new(&vec![2; factors], Wish::Fraction(runs)).unwrap();
            assert_eq!(
                design.resolution(),
                Some(resolution),
                "{factors} factors in {runs}"
            );
            let DesignKind::Fraction(words) = &design.kind else {
                panic!("a fraction")
            };
            assert_eq!((words.len() + 1) * runs, 1 << factors);
            // Every word is the same in all rows, and the rows are apart.
            for word in words {
                let column = column(&design, *word);
                assert!(
                    column.iter().all(|sign| *sign == column[0]),
                    "{factors} in {runs}: {word:b}"
                );
            }
            let distinct: std::collections::BTreeSet<_> = design.rows.iter().collect();
            assert_eq!(distinct.len(), runs);
            assert!(
                design.row_of(&vec![0; factors]).is_some(),
                "what is written is one of them"
            );
        }
    }

    #[test]
    fn effects_of_every_design_of_two_levels_are_orthogonal() {
        for factors in 2..=11_usize {
            let levels = vec![2; factors];
            let screening = Design::new(&levels, Wish::Screening).unwrap();
            let best = [8, 16, 32].map(|most| Design::new(&levels, Wish::Best(most)).unwrap());
            for design in best
                .iter()
                .filter(|design| design.kind != DesignKind::OneAtATime)
                .chain([&screening])
            {
                for a in 0..factors {
                    let first = column(design, 1 << a);
                    assert_eq!(first.iter().sum::<i32>(), 0, "{design}");
                    for b in 0..a {
                        let second = column(design, 1 << b);
                        assert_eq!(
                            first.iter().zip(&second).map(|(x, y)| x * y).sum::<i32>(),
                            0,
                            "{design}"
                        );
                    }
                }
            }
        }
        assert_eq!(
            Design::new(&[2; 23], Wish::Screening).unwrap().rows.len(),
            24
        );
        assert!(Design::new(&[2; 24], Wish::Screening).is_err());
    }

    #[test]
    fn what_fits_is_chosen() {
        let kind =
            |levels: &[usize], most| Design::new(levels, Wish::Best(most)).unwrap().to_string();
        assert_eq!(kind(&[2, 2, 2], 8), "full 2^3 design");
        assert_eq!(kind(&[2, 3], 100), "full 2 x 3 design");
        assert_eq!(kind(&[2; 5], 16), "2^(5-1) fraction of resolution 5");
        assert_eq!(kind(&[2; 7], 16), "2^(7-3) fraction of resolution 4");
        assert_eq!(
            kind(&[2; 12], 24),
            "screening design (Plackett-Burman) of 20 combinations"
        );
        assert_eq!(kind(&[2, 3, 4], 10), "one factor at a time, 7 combinations");
        assert!(Design::new(&[2, 3], Wish::Fraction(4)).is_err());
        assert!(
            Design::new(&[2; 5], Wish::Fraction(12))
                .unwrap_err()
                .contains("known sizes: 16, 8")
        );
    }
}
