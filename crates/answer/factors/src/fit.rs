//! Least squares of responses over the columns of terms, and the interval of any contrast of its coefficients.

use crate::design::Design;
use crate::terms::Term;
use nalgebra::{DMatrix, DVector};
use serde::Serialize;
use stackline_analyze::statistics::{median, t_quantile};
use statrs::distribution::{ContinuousCDF, FisherSnedecor};
use std::collections::BTreeMap;

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FactorObservation {
    /// The row of the design.
    pub row: usize,
    /// What was run together, apart from other blocks; all 0 where there are none.
    pub block: u32,
    /// Its place in the order of all runs.
    pub order: u32,
    /// The response.
    pub value: f64,
}

/// A figure with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Half of its interval's width; absent where nothing says how far runs differ.
    pub half: Option<f64>,
    /// Degrees of freedom of the interval.
    pub freedom: f64,
}

impl Estimate {
    /// Least and most.
    #[must_use]
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.half.map(|half| (self.value - half, self.value + half))
    }

    /// Whether it is not distinguished from zero.
    #[must_use]
    pub fn may_be_zero(&self) -> bool {
        self.half.is_some_and(|half| self.value.abs() <= half)
    }
}

/// Where the intervals come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IntervalSource {
    /// Of repeated runs, each combination's own (Welch and Satterthwaite).
    Cells,
    /// Of what the model leaves, the same for all.
    Pooled,
    /// Of how far the means of combinations lie from the model, which does not fit.
    Lack,
    /// Of effects that are small (Lenth 1989): there are no repeated runs.
    Lenth,
    /// Repeated runs are equal: the responses have no spread.
    None,
}

/// A fitted model.
#[derive(Debug)]
pub struct Fit {
    /// The mean, then the columns of the terms, then blocks.
    coefficients: DVector<f64>,
    /// How each coefficient is made of the observations.
    makes: DMatrix<f64>,
    /// The inverse of X'X.
    inverse: DMatrix<f64>,
    /// Where each term's columns begin.
    begins: Vec<usize>,
    widths: Vec<usize>,
    /// What the model leaves.
    pub residuals: Vec<f64>,
    /// Its squares.
    pub residual_squares: f64,
    /// Squares around the mean.
    pub total_squares: f64,
    /// Runs less coefficients.
    pub freedom: f64,
    /// Where the intervals come from.
    pub spread: IntervalSource,
    /// Each observation's row; runs, their sum of squares around their mean in each row.
    rows: Vec<usize>,
    cells: BTreeMap<usize, (usize, f64)>,
    /// Half of the width of every effect's interval, in coefficients of orthogonal columns.
    lenth: Option<(f64, f64)>,
}

/// A column that the others make up leaves less than this of its squares.
const SINGULAR: f64 = 1e-9;

/// Sums of so many numbers are off by less than this, of the largest of them.
const ROUNDING: f64 = 1e-12;

/// The columns of a fit: the mean, those of each term, and one a block but the first.
struct FitColumns {
    /// Where the columns of each term begin, and how many they are.
    begins: Vec<usize>,
    widths: Vec<usize>,
    /// Of the mean and the terms.
    count: usize,
    /// What each combination has in them.
    rows: Vec<Vec<f64>>,
    blocks: Vec<u32>,
}

impl FitColumns {
    fn of(design: &Design, terms: &[Term], observed: &[FactorObservation]) -> Self {
        let widths: Vec<usize> = terms
            .iter()
            .map(|term| term.width(&design.levels))
            .collect();
        let mut begins = Vec::new();
        let mut count = 1;
        for width in &widths {
            begins.push(count);
            count += width;
        }
        let mut blocks: Vec<u32> = observed.iter().map(|one| one.block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        let row = |row: &Vec<usize>| {
            let effects = terms
                .iter()
                .flat_map(|term| term.columns(&design.levels, row));
            std::iter::once(1.0).chain(effects).collect()
        };
        Self {
            begins,
            widths,
            count,
            rows: design.rows.iter().map(row).collect(),
            blocks,
        }
    }

    fn all(&self) -> usize {
        self.count + self.blocks.len().saturating_sub(1)
    }

    fn entry(&self, one: &FactorObservation, column: usize) -> f64 {
        if column < self.count {
            return self.rows[one.row][column];
        }
        // Blocks sum to zero as levels do.
        match self.blocks.binary_search(&one.block).unwrap_or(0) {
            0 => -1.0,
            own if own == column - self.count + 1 => 1.0,
            _ => 0.0,
        }
    }
}

impl Fit {
    /// Fits the terms to what was observed.
    ///
    /// # Errors
    /// One sentence: why the runs that there are cannot distinguish the terms.
    pub fn new(
        design: &Design,
        terms: &[Term],
        observed: &[FactorObservation],
    ) -> Result<Self, String> {
        let columns = FitColumns::of(design, terms, observed);
        let all = columns.all();
        if observed.len() < all {
            return Err(format!(
                "too few runs for {all} effects: {}",
                observed.len()
            ));
        }
        let entry = |at: usize, column: usize| columns.entry(&observed[at], column);
        let x = DMatrix::from_fn(observed.len(), all, entry);
        let y = DVector::from_iterator(observed.len(), observed.iter().map(|one| one.value));
        let inverse =
            inverted(&(x.transpose() * &x)).ok_or("these runs cannot distinguish these effects")?;
        let makes = &inverse * x.transpose();
        let coefficients = &makes * &y;
        let residuals: Vec<f64> = (&y - &x * &coefficients).iter().copied().collect();
        let mean = y.mean();
        let blocks = columns.blocks.len();
        let mut fit = Self {
            coefficients,
            makes,
            inverse,
            begins: columns.begins,
            widths: columns.widths,
            residual_squares: residuals.iter().map(|residual| residual * residual).sum(),
            residuals,
            total_squares: y.iter().map(|value| (value - mean) * (value - mean)).sum(),
            freedom: (observed.len() - all) as f64,
            spread: IntervalSource::Pooled,
            rows: observed.iter().map(|one| one.row).collect(),
            cells: BTreeMap::new(),
            lenth: None,
        };
        fit.look_for_spread(observed, blocks);
        Ok(fit)
    }

    /// Decides where intervals come from.
    fn look_for_spread(&mut self, observed: &[FactorObservation], blocks: usize) {
        let tiny = 1e-24 * (self.total_squares + self.coefficients[0] * self.coefficients[0]);
        let mut cells: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        observed
            .iter()
            .for_each(|one| cells.entry(one.row).or_default().push(one.value));
        let repeated = cells.values().all(|values| values.len() > 1);
        if self.freedom < 1.0 {
            self.spread = IntervalSource::Lenth;
            self.lenth = self.of_small_effects();
        } else if repeated && blocks < 2 {
            let squares = |values: &Vec<f64>| {
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                (
                    values.len(),
                    values
                        .iter()
                        .map(|value| (value - mean) * (value - mean))
                        .sum::<f64>(),
                )
            };
            self.cells = cells
                .iter()
                .map(|(row, values)| (*row, squares(values)))
                .collect();
            let none = self.cells.values().all(|(_, squares)| *squares <= tiny);
            let lacks = self.lack().is_some_and(|(squares, _)| squares > tiny)
                && self.chance_of_lack() < 0.05;
            self.spread = match (lacks, none) {
                (true, _) => IntervalSource::Lack,
                (false, true) => IntervalSource::None,
                (false, false) => IntervalSource::Cells,
            };
        } else {
            let none = repeated && self.residual_squares <= tiny;
            self.spread = if none {
                IntervalSource::None
            } else {
                IntervalSource::Pooled
            };
        }
    }

    /// Squares of the means of combinations around the model, and their degrees of freedom; none where it has a term for each.
    #[must_use]
    pub fn lack(&self) -> Option<(f64, f64)> {
        let (pure, pure_freedom) = self.pure_error();
        let freedom = self.freedom - pure_freedom;
        (freedom >= 1.0).then(|| ((self.residual_squares - pure).max(0.0), freedom))
    }

    /// How likely chance alone makes the model lack as much (F).
    #[must_use]
    pub fn chance_of_lack(&self) -> f64 {
        let (pure, pure_freedom) = self.pure_error();
        let Some((lack, freedom)) = self.lack().filter(|_| pure_freedom > 0.0) else {
            return 1.0;
        };
        if pure <= 0.0 {
            return if lack > 0.0 { 0.0 } else { 1.0 };
        }
        let ratio = (lack / freedom) / (pure / pure_freedom);
        FisherSnedecor::new(freedom, pure_freedom).map_or(1.0, |f| 1.0 - f.cdf(ratio))
    }

    /// Lenth's margin of a coefficient, and its degrees of freedom.
    fn of_small_effects(&self) -> Option<(f64, f64)> {
        let effects: Vec<f64> = self
            .coefficients
            .iter()
            .skip(1)
            .map(|value| value.abs())
            .collect();
        if effects.len() < 3 {
            return None;
        }
        let first = 1.5 * median(effects.clone())?;
        let error = 1.5
            * median(
                effects
                    .iter()
                    .copied()
                    .filter(|effect| *effect < 2.5 * first)
                    .collect(),
            )?;
        let freedom = effects.len() as f64 / 3.0;
        Some((t_quantile(freedom) * error, freedom))
    }

    /// A contrast of coefficients.
    fn contrast(&self, contrast: &DVector<f64>) -> Estimate {
        let value = contrast.dot(&self.coefficients);
        // What is left of equal numbers is nothing.
        let value = if value.abs() <= ROUNDING * self.coefficients.norm() {
            0.0
        } else {
            value
        };
        let (half, freedom) = match self.spread {
            IntervalSource::None => (Some(0.0), f64::INFINITY),
            IntervalSource::Cells => self.of_cells(contrast),
            IntervalSource::Lenth => match self.lenth {
                // Columns of two levels are orthogonal: their coefficients differ alike.
                Some((margin, freedom)) => (Some(margin * contrast.norm()), freedom),
                None => (None, 0.0),
            },
            IntervalSource::Pooled | IntervalSource::Lack => {
                let lack = self.lack().filter(|_| self.spread == IntervalSource::Lack);
                let (squares, freedom) = lack.unwrap_or((self.residual_squares, self.freedom));
                let spread = (contrast.transpose() * &self.inverse * contrast)[(0, 0)];
                let error = (squares / freedom * spread).max(0.0).sqrt();
                (Some(t_quantile(freedom) * error), freedom)
            }
        };
        Estimate {
            value,
            half,
            freedom,
        }
    }

    /// Each combination's own spread: the variance of a sum, and Satterthwaite's degrees of freedom.
    fn of_cells(&self, contrast: &DVector<f64>) -> (Option<f64>, f64) {
        let weights = self.makes.transpose() * contrast;
        let mut squares: BTreeMap<usize, f64> = BTreeMap::new();
        for (weight, row) in weights.iter().zip(&self.rows) {
            *squares.entry(*row).or_default() += weight * weight;
        }
        let (mut variance, mut below) = (0.0, 0.0);
        for (row, weight) in squares {
            let (count, deviations) = self.cells[&row];
            let freedom = (count - 1) as f64;
            let own = weight * deviations / (count - 1) as f64;
            variance += own;
            below += own * own / freedom;
        }
        if variance <= 0.0 {
            return (Some(0.0), f64::INFINITY);
        }
        let freedom = variance * variance / below;
        (Some(t_quantile(freedom) * variance.sqrt()), freedom)
    }

    fn unit(&self, column: usize) -> DVector<f64> {
        let mut contrast = DVector::zeros(self.coefficients.len());
        contrast[column] = 1.0;
        contrast
    }

    /// The mean of all combinations.
    #[must_use]
    pub fn mean(&self) -> Estimate {
        self.contrast(&self.unit(0))
    }

    /// How the response differs between a level of a factor and its first, on average over the levels of the others. `term` is the place
    /// of its effect among the terms.
    #[must_use]
    pub fn effect(&self, term: usize, level: usize) -> Estimate {
        self.contrast(&self.effect_contrast(term, level))
    }

    fn effect_contrast(&self, term: usize, level: usize) -> DVector<f64> {
        // The first level is minus the sum of the others.
        let mut contrast = DVector::zeros(self.coefficients.len());
        for column in 0..self.widths[term] {
            contrast[self.begins[term] + column] = if column + 1 == level { 2.0 } else { 1.0 };
        }
        contrast
    }

    /// By how much one effect is larger than another, regardless of their directions.
    #[must_use]
    pub fn larger(&self, one: (usize, usize), other: (usize, usize)) -> Estimate {
        let [first, second] = [one, other].map(|(term, level)| self.effect_contrast(term, level));
        let signs = [&first, &second].map(|contrast| contrast.dot(&self.coefficients).signum());
        self.contrast(&(first * signs[0] - second * signs[1]))
    }

    /// By how much one row differs more from a base than another does, regardless of their directions.
    #[must_use]
    pub fn larger_row(
        &self,
        design: &Design,
        terms: &[Term],
        rows: [&[usize]; 2],
        base: &[usize],
    ) -> Estimate {
        let from = self.row_contrast(design, terms, base);
        let [first, second] = rows.map(|row| self.row_contrast(design, terms, row) - &from);
        let signs = [&first, &second].map(|contrast| contrast.dot(&self.coefficients).signum());
        self.contrast(&(first * signs[0] - second * signs[1]))
    }

    /// An interaction of factors of two levels: half of what the effect of the one differs by between the levels of the other.
    #[must_use]
    pub fn interaction(&self, term: usize) -> Option<Estimate> {
        (self.widths[term] == 1).then(|| self.contrast(&(self.unit(self.begins[term]) * 2.0)))
    }

    /// The squares that a term explains.
    #[must_use]
    pub fn squares(&self, term: usize) -> f64 {
        let (begin, width) = (self.begins[term], self.widths[term]);
        let own = self.coefficients.rows(begin, width).into_owned();
        let part = self
            .inverse
            .view((begin, begin), (width, width))
            .into_owned();
        inverted(&part).map_or(0.0, |inverse| (own.transpose() * inverse * &own)[(0, 0)])
    }

    /// Degrees of freedom of a term.
    #[must_use]
    pub fn width(&self, term: usize) -> usize {
        self.widths[term]
    }

    /// What the model says of a row against another.
    #[must_use]
    pub fn difference(
        &self,
        design: &Design,
        terms: &[Term],
        row: &[usize],
        base: &[usize],
    ) -> Estimate {
        let mut contrast = DVector::zeros(self.coefficients.len());
        for (term, begin) in terms.iter().zip(&self.begins) {
            let [own, of_base] = [row, base].map(|row| term.columns(&design.levels, row));
            for (at, (own, of_base)) in own.iter().zip(of_base).enumerate() {
                contrast[begin + at] = own - of_base;
            }
        }
        self.contrast(&contrast)
    }

    /// What the model says of a row.
    #[must_use]
    pub fn predicted(&self, design: &Design, terms: &[Term], row: &[usize]) -> Estimate {
        self.contrast(&self.row_contrast(design, terms, row))
    }

    /// The contrast of what the model says of a row.
    fn row_contrast(&self, design: &Design, terms: &[Term], row: &[usize]) -> DVector<f64> {
        let mut contrast = self.unit(0);
        for (term, begin) in terms.iter().zip(&self.begins) {
            for (at, own) in term.columns(&design.levels, row).into_iter().enumerate() {
                contrast[begin + at] = own;
            }
        }
        contrast
    }

    /// How many times what the model says of a row is what it says of another, with its interval (Fieller 1954): both have a spread.
    #[must_use]
    pub fn ratio(
        &self,
        design: &Design,
        terms: &[Term],
        row: &[usize],
        base: &[usize],
    ) -> (f64, Option<(f64, f64)>) {
        let [over, under] = [row, base].map(|row| self.row_contrast(design, terms, row));
        self.fieller(&over, &under)
    }

    /// The same of the mean at a level of a factor, whose effect is that term, over the mean at its first.
    #[must_use]
    pub fn ratio_on_average(&self, term: usize, level: usize) -> (f64, Option<(f64, f64)>) {
        let mut under = self.unit(0);
        for column in 0..self.widths[term] {
            under[self.begins[term] + column] = -1.0;
        }
        let over = &under + self.effect_contrast(term, level);
        self.fieller(&over, &under)
    }

    /// All ratios r for which over - r under is not distinguished from zero; none below zero.
    fn fieller(&self, over: &DVector<f64>, under: &DVector<f64>) -> (f64, Option<(f64, f64)>) {
        let ratio = over.dot(&self.coefficients) / under.dot(&self.coefficients);
        let apart = |ratio: f64| {
            let estimate = self.contrast(&(over - under * ratio));
            Some(estimate.value.abs() - estimate.half?)
        };
        if !ratio.is_finite() || ratio <= 0.0 || apart(ratio).is_none() {
            return (ratio, None);
        }
        let is_apart = |ratio: f64| apart(ratio).is_some_and(|apart| apart > 0.0);
        // From the ratio outwards in growing steps, then by halves.
        let bound = |step: f64| {
            let (mut inside, mut outside) = (ratio, ratio * step);
            while !is_apart(outside) {
                if !(1e-9..1e9).contains(&(outside / ratio)) {
                    return if step > 1.0 { f64::INFINITY } else { 0.0 };
                }
                (inside, outside) = (outside, outside * (outside / ratio));
            }
            for _ in 0..60 {
                let middle = f64::midpoint(inside, outside);
                if is_apart(middle) {
                    outside = middle
                } else {
                    inside = middle
                }
            }
            outside
        };
        (ratio, Some((bound(1.0 / 1.001), bound(1.001))))
    }

    /// The coefficients: mean, then each term's.
    #[must_use]
    pub fn coefficients(&self) -> Vec<f64> {
        self.coefficients.iter().copied().collect()
    }

    /// Squares of repeated runs around their combination's mean, and their degrees of freedom.
    #[must_use]
    pub fn pure_error(&self) -> (f64, f64) {
        let squares = self.cells.values().map(|(_, squares)| squares).sum();
        let freedom = self
            .cells
            .values()
            .map(|(count, _)| (count - 1) as f64)
            .sum();
        (squares, freedom)
    }

    /// Least and greatest standard deviation of repeated runs.
    #[must_use]
    pub fn spreads(&self) -> Option<(f64, f64)> {
        let of = |(count, squares): &(usize, f64)| (squares / (count - 1) as f64).sqrt();
        let all = || self.cells.values().map(of);
        Some((all().reduce(f64::min)?, all().reduce(f64::max)?))
    }
}

/// The inverse of a symmetric matrix whose columns are apart.
fn inverted(matrix: &DMatrix<f64>) -> Option<DMatrix<f64>> {
    let cholesky = matrix.clone().cholesky()?;
    let apart = (0..matrix.nrows()).all(|at| {
        let left = cholesky.l_dirty()[(at, at)];
        left * left > SINGULAR * matrix[(at, at)]
    });
    apart.then(|| cholesky.inverse())
}

/// How many times as much some responses are as others, as the logarithm of the ratio of their geometric means (Welch); `None` where one
/// is not above zero.
#[must_use]
pub fn ratio(now: &[f64], then: &[f64]) -> Option<Estimate> {
    let of = |values: &[f64]| {
        let logs: Vec<f64> = values
            .iter()
            .map(|value| value.ln())
            .filter(|log| log.is_finite())
            .collect();
        let n = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / n;
        let squares = logs
            .iter()
            .map(|log| (log - mean) * (log - mean))
            .sum::<f64>();
        (logs.len() == values.len() && n > 1.0).then(|| (mean, squares / (n - 1.0) / n, n - 1.0))
    };
    let ((before, first, of_first), (after, second, of_second)) = (of(now)?, of(then)?);
    let variance = first + second;
    let value = after - before;
    if variance <= 1e-24 * (before * before + after * after) {
        return Some(Estimate {
            value,
            half: Some(0.0),
            freedom: f64::INFINITY,
        });
    }
    let freedom = variance * variance / (first * first / of_first + second * second / of_second);
    Some(Estimate {
        value,
        half: Some(t_quantile(freedom) * variance.sqrt()),
        freedom,
    })
}
