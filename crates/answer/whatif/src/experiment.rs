//! A designed experiment, independent of what is run: checks every level by itself before anything is run, refuses two factors that
//! change the same thing, and lays out the combinations of a design. The [`ExperimentSubject`] decides what a combination is.

mod budget;
mod factor_texts;
pub mod level_conflicts;
pub mod offers;
mod prices;

pub use budget::RunBudget;
pub use factor_texts::parse_factors;
pub use prices::{Prices, parse_prices};

use level_conflicts::{LevelChanges, are_apart};
use stackline_core::error::{Error, Result};
use stackline_factors::{Design, DesignKind, Wish};
use stackline_spec::{Factor, FactorLevel};

/// The most combinations of a design by default.
pub const MOST_COMBINATIONS: usize = 64;

/// What is varied, such as a specification.
pub trait ExperimentSubject {
    /// The subject with given levels of all factors, such as a plan.
    type Combination;

    /// The subject with these factors at these levels.
    ///
    /// # Errors
    /// If the levels cannot be applied.
    fn changed(&self, changes: &LevelChanges<'_>) -> Result<Self::Combination>;

    /// Whether two combinations are equivalent.
    fn are_same(one: &Self::Combination, other: &Self::Combination) -> bool;

    /// Refuses changes that cannot be written together, whether or not they differ.
    ///
    /// # Errors
    /// If they cannot.
    fn go_together(&self, _changes: &LevelChanges<'_>) -> Result<()> {
        Ok(())
    }

    /// The error for a level that changes nothing, with a hint.
    fn without_effect(&self, factor: &Factor, level: &FactorLevel) -> Error {
        nothing_differs(factor, level).hint("choose a level that differs from the specification")
    }
}

/// The error for a level that changes nothing, without a hint.
#[must_use]
pub fn nothing_differs(factor: &Factor, level: &FactorLevel) -> Error {
    Error::input(format!("factor `{}`: {level} changes nothing", factor.name))
}

/// An experiment: what is varied, by which factors, in which combinations.
#[derive(Debug)]
pub struct Experiment<S: ExperimentSubject> {
    /// What is varied.
    pub subject: S,
    /// Its factors.
    pub factors: Vec<Factor>,
    /// Their combinations.
    pub design: Design,
    /// The subject with all factors at their first level.
    pub base: S::Combination,
}

impl<S: ExperimentSubject> Experiment<S> {
    /// Checks every level by itself, and that factors change different things. The design has no combinations until
    /// [`Experiment::lay_out`].
    ///
    /// # Errors
    /// If a level cannot be applied, changes nothing, or changes what another factor changes.
    pub fn new(subject: S, factors: Vec<Factor>) -> Result<Self> {
        let design = Design {
            kind: DesignKind::OneAtATime,
            levels: factors.iter().map(|factor| factor.levels.len()).collect(),
            rows: Vec::new(),
        };
        let base = subject.changed(&levels_of(&factors, &vec![0; factors.len()]))?;
        let experiment = Self {
            subject,
            factors,
            design,
            base,
        };
        for (at, factor) in experiment.factors.iter().enumerate() {
            for level in factor.levels.iter().skip(1) {
                let changed = experiment.at(&[(at, level.clone())])?;
                if S::are_same(&changed, &experiment.base) {
                    return Err(experiment.subject.without_effect(factor, level));
                }
            }
        }
        experiment.refuse_same()?;
        Ok(experiment)
    }

    /// Refuses two factors that change the same thing.
    fn refuse_same(&self) -> Result<()> {
        let last = |factor: &Factor| factor.levels.len() - 1;
        for (at, one) in self.factors.iter().enumerate() {
            for other in &self.factors[at + 1..] {
                let (first, second) = (
                    (one, &one.levels[last(one)]),
                    (other, &other.levels[last(other)]),
                );
                self.subject.go_together(&[first, second])?;
                self.subject.go_together(&[second, first])?;
                are_apart(
                    one,
                    other,
                    |changes| self.subject.changed(changes),
                    S::are_same,
                )?;
            }
        }
        Ok(())
    }

    /// Chooses the combinations of the design.
    ///
    /// # Errors
    /// If there is no such design.
    pub fn lay_out(&mut self, wish: Wish) -> Result<()> {
        let hint =
            "omit `--design` to get the best design that fits, or give each factor two levels";
        self.design = Design::new(&self.design.levels, wish)
            .map_err(|error| Error::input(error).hint(hint))?;
        Ok(())
    }

    /// The factors at the levels of a row.
    #[must_use]
    pub fn levels(&self, row: &[usize]) -> Vec<(&Factor, &FactorLevel)> {
        levels_of(&self.factors, row)
    }

    /// The combination of a row.
    ///
    /// # Errors
    /// If the levels cannot be applied.
    pub fn combination(&self, row: &[usize]) -> Result<S::Combination> {
        self.subject.changed(&self.levels(row))
    }

    /// The combinations of all rows.
    ///
    /// # Errors
    /// If the levels of a row cannot be applied.
    pub fn combinations(&self) -> Result<Vec<S::Combination>> {
        let rows = self.design.rows.iter();
        rows.map(|row| self.combination(row)).collect()
    }

    /// The combination with all factors at their first level, except the given ones (index of the factor, level).
    ///
    /// # Errors
    /// If the levels cannot be applied.
    pub fn at(&self, changed: &[(usize, FactorLevel)]) -> Result<S::Combination> {
        let mut changes = self.levels(&vec![0; self.factors.len()]);
        for (factor, level) in changed {
            changes[*factor].1 = level;
        }
        self.subject.changed(&changes)
    }

    /// A note for readers on what the design does not estimate, if anything.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let single = self.design.kind == DesignKind::OneAtATime && self.factors.len() > 1;
        single.then(|| {
            "one factor at a time: interactions between factors are not estimated, and gains may not multiply"
                .to_owned()
        })
    }
}

fn levels_of<'f>(factors: &'f [Factor], row: &[usize]) -> Vec<(&'f Factor, &'f FactorLevel)> {
    factors
        .iter()
        .zip(row)
        .map(|(factor, level)| (factor, &factor.levels[*level]))
        .collect()
}
