//! Fits responses by least squares to the columns of terms, and gives the interval of any contrast (a linear combination of the
//! coefficients).

use crate::design::Design;
use crate::terms::Term;
use nalgebra::{DMatrix, DVector};
use serde::Serialize;
use stackline_analyze::statistics::{median, t_quantile};
use statrs::distribution::{ContinuousCDF, FisherSnedecor};
use std::collections::BTreeMap;

/// The response of one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FactorObservation {
    /// Index of the row of the design.
    pub row: usize,
    /// The block, a group of runs made at about the same time; 0 for all runs if there are no blocks.
    pub block: u32,
    /// The place of the run in the order of all runs.
    pub order: u32,
    /// The value of the response.
    pub value: f64,
}

/// A figure with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Half the width of the interval; absent if nothing says how much runs differ.
    pub half: Option<f64>,
    /// Degrees of freedom of the interval.
    pub freedom: f64,
}

impl Estimate {
    /// The ends of the interval, if there is one.
    #[must_use]
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.half.map(|half| (self.value - half, self.value + half))
    }

    /// Whether the interval includes zero; false without an interval.
    #[must_use]
    pub fn may_be_zero(&self) -> bool {
        self.half.is_some_and(|half| self.value.abs() <= half)
    }
}

/// Where the intervals come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IntervalSource {
    /// From repeated runs, with each combination's own spread (Welch and Satterthwaite).
    Cells,
    /// From all residuals of the model, with the same spread for all.
    Pooled,
    /// From the distances of the combinations' means from the model, as the model does not fit (lack of fit).
    Lack,
    /// From the small effects (Lenth 1989), as there are no repeated runs.
    Lenth,
    /// Repeated runs are equal: the responses have no spread.
    None,
}

/// A fitted model.
#[derive(Debug)]
pub struct Fit {
    /// The mean, then the columns of the terms, then blocks.
    coefficients: DVector<f64>,
    /// The matrix that maps observations to coefficients: (X'X)^-1 X'.
    makes: DMatrix<f64>,
    /// The inverse of X'X.
    inverse: DMatrix<f64>,
    /// By term: the index of its first column.
    begins: Vec<usize>,
    /// By term: the number of its columns.
    widths: Vec<usize>,
    /// The residuals, in the order of the observations.
    pub residuals: Vec<f64>,
    /// The sum of squares of the residuals.
    pub residual_squares: f64,
    /// The sum of squares of the responses around their mean.
    pub total_squares: f64,
    /// Degrees of freedom of the residuals: the number of runs minus that of coefficients.
    pub freedom: f64,
    /// Where the intervals come from.
    pub spread: IntervalSource,
    /// By observation: its row of the design.
    rows: Vec<usize>,
    /// By row: the number of its runs, and the sum of squares around their mean. Empty unless all rows are repeated without blocks.
    cells: BTreeMap<usize, (usize, f64)>,
    /// Lenth's margin (half the width of a coefficient's interval) and its degrees of freedom.
    lenth: Option<(f64, f64)>,
}

/// A column is a combination of the others if they leave less than this share of its squares.
const SINGULAR: f64 = 1e-9;

/// A contrast smaller than this share of the coefficients' norm is a rounding error.
const ROUNDING: f64 = 1e-12;

/// The columns of a fit: the mean, those of each term, and one for each block except the first.
struct FitColumns {
    /// By term: the index of its first column.
    begins: Vec<usize>,
    /// By term: the number of its columns.
    widths: Vec<usize>,
    /// The number of columns of the mean and the terms.
    count: usize,
    /// By row of the design: its entries in these columns.
    rows: Vec<Vec<f64>>,
    /// The numbers of all blocks, sorted.
    blocks: Vec<u32>,
}

impl FitColumns {
    fn from_design(design: &Design, terms: &[Term], observed: &[FactorObservation]) -> Self {
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

    /// The number of all columns, with those of blocks.
    fn all(&self) -> usize {
        self.count + self.blocks.len().saturating_sub(1)
    }

    fn entry(&self, one: &FactorObservation, column: usize) -> f64 {
        if column < self.count {
            return self.rows[one.row][column];
        }
        // The columns of blocks are coded like those of levels: the first block is -1 in all of them, so that they sum to zero.
        match self.blocks.binary_search(&one.block).unwrap_or(0) {
            0 => -1.0,
            own if own == column - self.count + 1 => 1.0,
            _ => 0.0,
        }
    }
}

impl Fit {
    /// Fits the terms to the observations.
    ///
    /// # Errors
    /// If the runs cannot separate the terms: one sentence that says why.
    pub fn new(
        design: &Design,
        terms: &[Term],
        observed: &[FactorObservation],
    ) -> Result<Self, String> {
        let columns = FitColumns::from_design(design, terms, observed);
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

    /// Decides where intervals come from, and computes the spread.
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

    /// Lack of fit: the sum of squares of the combinations' means around the model, and its degrees of freedom; `None` if the model has
    /// as many terms as there are combinations.
    #[must_use]
    pub fn lack(&self) -> Option<(f64, f64)> {
        let (pure, pure_freedom) = self.pure_error();
        let freedom = self.freedom - pure_freedom;
        (freedom >= 1.0).then(|| ((self.residual_squares - pure).max(0.0), freedom))
    }

    /// The probability that chance alone makes the lack of fit as large (F test).
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

    /// Lenth's margin of a coefficient and its degrees of freedom; `None` with fewer than three effects. The constants are those of
    /// Lenth 1989.
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

    /// The estimate and interval of a contrast.
    fn contrast(&self, contrast: &DVector<f64>) -> Estimate {
        let value = contrast.dot(&self.coefficients);
        // The difference of equal numbers is a rounding error, not an effect.
        let value = if value.abs() <= ROUNDING * self.coefficients.norm() {
            0.0
        } else {
            value
        };
        let (half, freedom) = match self.spread {
            IntervalSource::None => (Some(0.0), f64::INFINITY),
            IntervalSource::Cells => self.of_cells(contrast),
            IntervalSource::Lenth => match self.lenth {
                // Columns of factors with two levels are orthogonal, so all coefficients have the same variance.
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

    /// Half the width of a contrast's interval from each combination's own spread, and Satterthwaite's degrees of freedom.
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

    /// The contrast that is one coefficient.
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

    /// How the response differs between a level of a factor and its first level, averaged over the levels of the others. `term` is the
    /// index of the factor's main effect.
    #[must_use]
    pub fn effect(&self, term: usize, level: usize) -> Estimate {
        self.contrast(&self.effect_contrast(term, level))
    }

    fn effect_contrast(&self, term: usize, level: usize) -> DVector<f64> {
        // The first level's coefficient is minus the sum of the others, so subtracting it adds 1 to every column.
        let mut contrast = DVector::zeros(self.coefficients.len());
        for column in 0..self.widths[term] {
            contrast[self.begins[term] + column] = if column + 1 == level { 2.0 } else { 1.0 };
        }
        contrast
    }

    /// By how much one effect (term, level) is larger than another in absolute value.
    #[must_use]
    pub fn larger(&self, one: (usize, usize), other: (usize, usize)) -> Estimate {
        let [first, second] = [one, other].map(|(term, level)| self.effect_contrast(term, level));
        let signs = [&first, &second].map(|contrast| contrast.dot(&self.coefficients).signum());
        self.contrast(&(first * signs[0] - second * signs[1]))
    }

    /// By how much one row differs more from a base than another row does, in absolute values.
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

    /// The interaction of factors with two levels: half the difference of the one factor's effects between the levels of the other;
    /// `None` if a factor has more levels.
    #[must_use]
    pub fn interaction(&self, term: usize) -> Option<Estimate> {
        (self.widths[term] == 1).then(|| self.contrast(&(self.unit(self.begins[term]) * 2.0)))
    }

    /// The sum of squares that a term explains.
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

    /// The degrees of freedom of a term.
    #[must_use]
    pub fn width(&self, term: usize) -> usize {
        self.widths[term]
    }

    /// By how much the model's response of a row differs from that of another.
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

    /// The model's response of a row.
    #[must_use]
    pub fn predicted(&self, design: &Design, terms: &[Term], row: &[usize]) -> Estimate {
        self.contrast(&self.row_contrast(design, terms, row))
    }

    /// The contrast that gives the model's response of a row.
    fn row_contrast(&self, design: &Design, terms: &[Term], row: &[usize]) -> DVector<f64> {
        let mut contrast = self.unit(0);
        for (term, begin) in terms.iter().zip(&self.begins) {
            for (at, own) in term.columns(&design.levels, row).into_iter().enumerate() {
                contrast[begin + at] = own;
            }
        }
        contrast
    }

    /// How many times the model's response of a row is that of another, with its interval by Fieller (1954), as both have a spread.
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

    /// How many times the mean at a level of a factor is that at its first level. `term` is the index of the factor's main effect.
    #[must_use]
    pub fn ratio_on_average(&self, term: usize, level: usize) -> (f64, Option<(f64, f64)>) {
        let mut under = self.unit(0);
        for column in 0..self.widths[term] {
            under[self.begins[term] + column] = -1.0;
        }
        let over = &under + self.effect_contrast(term, level);
        self.fieller(&over, &under)
    }

    /// The ratio of two contrasts, and Fieller's interval: all positive r for which `over - r * under` may be zero.
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
        // Goes outwards from the ratio in growing steps until a value is outside, then bisects.
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

    /// The coefficients: the mean, then each term's, then those of blocks.
    #[must_use]
    pub fn coefficients(&self) -> Vec<f64> {
        self.coefficients.iter().copied().collect()
    }

    /// Pure error: the sum of squares of repeated runs around their combination's mean, and its degrees of freedom.
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

    /// The least and the greatest standard deviation of a combination's repeated runs.
    #[must_use]
    pub fn spreads(&self) -> Option<(f64, f64)> {
        let of = |(count, squares): &(usize, f64)| (squares / (count - 1) as f64).sqrt();
        let all = || self.cells.values().map(of);
        Some((all().reduce(f64::min)?, all().reduce(f64::max)?))
    }
}

/// The inverse of a symmetric matrix; `None` if a column is (nearly) a combination of the others.
fn inverted(matrix: &DMatrix<f64>) -> Option<DMatrix<f64>> {
    let cholesky = matrix.clone().cholesky()?;
    let apart = (0..matrix.nrows()).all(|at| {
        let left = cholesky.l_dirty()[(at, at)];
        left * left > SINGULAR * matrix[(at, at)]
    });
    apart.then(|| cholesky.inverse())
}

/// How many times as large some responses are as others: the logarithm of the ratio of their geometric means, with Welch's interval.
/// `None` if a response is not positive, or there are fewer than two of either.
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
