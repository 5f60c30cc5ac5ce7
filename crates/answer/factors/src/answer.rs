//! Analyses the responses of a design: effects with intervals, shares of variation, ranks with ties, and reasons to doubt them.

use crate::design::{Design, DesignKind};
use crate::fit::{Estimate, FactorObservation, Fit, IntervalSource};
use crate::terms::{Term, terms};
use serde::Serialize;
use stackline_analyze::statistics::t_quantile;
use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};

/// Whether effects add or multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectScale {
    /// Levels add to the response.
    Additive,
    /// Levels multiply it.
    Multiplicative,
}

stackline_core::named_values!(EffectScale,
    Additive = "additive", "Differences";
    Multiplicative = "multiplicative", "Ratios");

/// The effect of a factor, averaged over the levels of the others.
#[derive(Clone, Debug, Serialize)]
pub struct Effect {
    /// Index of the factor.
    pub factor: usize,
    /// The level that differs most from the first.
    pub level: usize,
    /// The effect of this level relative to the first: a difference, or the logarithm of a ratio.
    pub estimate: Estimate,
    /// The effects of all levels from the second on, relative to the first.
    pub levels: Vec<Estimate>,
    /// The share of the variation (the sum of squares around the mean) that it explains.
    pub share: f64,
    /// The rank, from 1; effects of the same rank cannot be distinguished.
    pub rank: usize,
    /// Effects or interactions that the design cannot separate from it, as lists of factors.
    pub aliases: Vec<Vec<usize>>,
}

/// An interaction of factors.
#[derive(Clone, Debug, Serialize)]
pub struct Interaction {
    /// Its factors.
    pub factors: Vec<usize>,
    /// Half of the difference between the effects; absent where a factor has more than two levels.
    pub estimate: Option<Estimate>,
    /// The share of the variation (the sum of squares around the mean) that it explains.
    pub share: f64,
    /// Whether it differs from zero beyond chance.
    pub is_clear: bool,
    /// Effects or interactions that the design cannot separate from it, as lists of factors.
    pub aliases: Vec<Vec<usize>>,
}

/// The result of the analysis of one response.
#[derive(Debug, Serialize)]
pub struct FactorAnswer {
    /// Whether effects add or multiply.
    pub scale: EffectScale,
    /// The mean of all combinations, on that scale.
    pub mean: Estimate,
    /// Effects, the largest first.
    pub effects: Vec<Effect>,
    /// Interactions, those that explain most first.
    pub interactions: Vec<Interaction>,
    /// The share of the variation that no effect explains: differences between repeated runs, and terms that the model lacks.
    pub error_share: f64,
    /// Degrees of freedom of the residuals.
    pub freedom: f64,
    /// Where the intervals come from.
    pub spread: IntervalSource,
    /// Reasons to doubt them, a sentence each.
    pub doubts: Vec<String>,
    #[serde(skip)]
    pub(crate) fit: Fit,
    #[serde(skip)]
    pub(crate) terms: Vec<Term>,
}

impl FactorAnswer {
    /// The response of a combination relative to another: a difference, or the logarithm of a ratio.
    #[must_use]
    pub fn difference(&self, design: &Design, row: &[usize], base: &[usize]) -> Estimate {
        self.fit.difference(design, &self.terms, row, base)
    }

    /// How many times the response of a combination is that of another, with its interval.
    #[must_use]
    pub fn ratio(
        &self,
        design: &Design,
        row: &[usize],
        base: &[usize],
    ) -> (f64, Option<(f64, f64)>) {
        match self.scale {
            EffectScale::Additive => self.fit.ratio(design, &self.terms, row, base),
            EffectScale::Multiplicative => exponential(&self.difference(design, row, base)),
        }
    }

    /// How many times the response at a level of a factor is that at its first level, averaged over the levels of the others.
    #[must_use]
    pub fn ratio_on_average(
        &self,
        factor: usize,
        level: usize,
    ) -> Option<(f64, Option<(f64, f64)>)> {
        let term = self
            .terms
            .iter()
            .position(|term| term.factors == [factor])?;
        Some(match self.scale {
            EffectScale::Additive => self.fit.ratio_on_average(term, level),
            EffectScale::Multiplicative => exponential(&self.fit.effect(term, level)),
        })
    }

    /// The response of a combination by the model, on the model's scale.
    #[must_use]
    pub fn predicted(&self, design: &Design, row: &[usize]) -> Estimate {
        self.fit.predicted(design, &self.terms, row)
    }

    /// The curvature: by how much runs at the centre point (halfway between all levels) differ from the mean over the levels, as a
    /// difference or the logarithm of a ratio. `None` without such runs.
    #[must_use]
    pub fn bend(&self, centre: &[f64]) -> Option<Estimate> {
        let scaled = |value: &f64| {
            if self.scale == EffectScale::Multiplicative {
                value.ln()
            } else {
                *value
            }
        };
        let values: Vec<f64> = centre
            .iter()
            .map(scaled)
            .filter(|value| value.is_finite())
            .collect();
        let n = values.len() as f64;
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values
            .iter()
            .map(|value| (value - mean) * (value - mean))
            .sum();
        // The spread at the centre point comes from its own runs, if there are two or more.
        let own = (n > 1.0).then(|| t_quantile(n - 1.0) * (squares / (n - 1.0) / n).sqrt());
        let half = own
            .zip(self.mean.half)
            .map(|(own, of_levels)| own.hypot(of_levels));
        Some(Estimate {
            value: mean - self.mean.value,
            half,
            freedom: n - 1.0,
        })
    }

    /// The fit behind it.
    #[must_use]
    pub const fn fit(&self) -> &Fit {
        &self.fit
    }

    /// The terms of the fit.
    #[must_use]
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }
}

/// Analyses a set of runs. Without a `scale`, the one that fits better is chosen.
///
/// # Errors
/// If the runs cannot be analysed: one sentence that says why.
pub fn analyse(
    design: &Design,
    observed: &[FactorObservation],
    scale: Option<EffectScale>,
) -> Result<FactorAnswer, String> {
    if observed.iter().any(|one| !one.value.is_finite()) {
        return Err("a response is not a number".into());
    }
    let positive = observed.iter().all(|one| one.value > 0.0);
    if scale == Some(EffectScale::Multiplicative) && !positive {
        return Err("ratios need positive responses, but at least one is not positive".into());
    }
    let terms = estimable(design, observed);
    let scale = scale.unwrap_or_else(|| {
        if positive {
            better(design, observed)
        } else {
            EffectScale::Additive
        }
    });
    let values = scaled(observed, scale);
    let fit = Fit::new(design, &terms, &values)?;
    let mut doubts = checks(design, &terms, &fit, &values);
    if terms.len() < crate::terms::terms(design).len() {
        doubts.push("runs are missing: interactions are omitted".into());
    }
    let total = fit.total_squares;
    let share = |squares: f64| if total > 0.0 { squares / total } else { 0.0 };
    let effects = ranked(design, &terms, &fit, share);
    let interactions = interactions(&terms, &fit, share);
    let error_share = share(fit.residual_squares);
    Ok(FactorAnswer {
        scale,
        mean: fit.mean(),
        effects,
        interactions,
        error_share,
        freedom: fit.freedom,
        spread: fit.spread,
        doubts,
        fit,
        terms,
    })
}

/// From the logarithm of a ratio to the ratio, with its interval.
fn exponential(of: &Estimate) -> (f64, Option<(f64, f64)>) {
    (
        of.value.exp(),
        of.interval().map(|(least, most)| (least.exp(), most.exp())),
    )
}

/// The terms that can be estimated: all of the design, or only main effects if some combinations were not run.
fn estimable(design: &Design, observed: &[FactorObservation]) -> Vec<Term> {
    let all = terms(design);
    let rows: std::collections::BTreeSet<usize> = observed.iter().map(|one| one.row).collect();
    if rows.len() == design.rows.len() {
        return all;
    }
    all.into_iter().filter(Term::is_main).collect()
}

fn scaled(observed: &[FactorObservation], scale: EffectScale) -> Vec<FactorObservation> {
    let value = |one: &FactorObservation| {
        if scale == EffectScale::Multiplicative {
            one.value.ln()
        } else {
            one.value
        }
    };
    observed
        .iter()
        .map(|one| FactorObservation {
            value: value(one),
            ..*one
        })
        .collect()
}

/// If the residuals on the two scales differ by less than this share, they fit equally well, and ratios are reported.
const ALIKE: f64 = 1e-9;

/// The scale on which main effects alone explain more (the likelihoods of Box and Cox 1964 at lambda 1 and 0).
fn better(design: &Design, observed: &[FactorObservation]) -> EffectScale {
    let mains: Vec<Term> = terms(design).into_iter().filter(Term::is_main).collect();
    let left =
        |scale| Fit::new(design, &mains, &scaled(observed, scale)).map(|fit| fit.residual_squares);
    let (Ok(sums), Ok(ratios)) = (
        left(EffectScale::Additive),
        left(EffectScale::Multiplicative),
    ) else {
        return EffectScale::Multiplicative;
    };
    let n = observed.len() as f64;
    let mean_log = observed.iter().map(|one| one.value.ln()).sum::<f64>() / n;
    // The geometric mean brings the residuals of logarithms to the unit of the response.
    let ratios = ratios * (2.0 * mean_log).exp();
    if sums < (1.0 - ALIKE) * ratios {
        EffectScale::Additive
    } else {
        EffectScale::Multiplicative
    }
}

/// Effects of factors, the largest first. An effect that cannot be distinguished from the first of a rank gets the same rank.
fn ranked(design: &Design, terms: &[Term], fit: &Fit, share: impl Fn(f64) -> f64) -> Vec<Effect> {
    let mut effects: Vec<(usize, Effect)> = Vec::new();
    for (at, term) in terms.iter().enumerate().filter(|(_, term)| term.is_main()) {
        let factor = term.factors[0];
        let levels: Vec<Estimate> = (1..design.levels[factor])
            .map(|level| fit.effect(at, level))
            .collect();
        let size = |estimate: &Estimate| estimate.value.abs();
        let most = (0..levels.len())
            .max_by(|a, b| size(&levels[*a]).total_cmp(&size(&levels[*b])))
            .unwrap_or(0);
        let estimate = levels[most];
        let (share, aliases) = (share(fit.squares(at)), term.aliases.clone());
        effects.push((
            at,
            Effect {
                factor,
                level: most + 1,
                estimate,
                levels,
                share,
                rank: 0,
                aliases,
            },
        ));
    }
    effects.sort_by(|(_, a), (_, b)| b.estimate.value.abs().total_cmp(&a.estimate.value.abs()));
    let mut first = 0;
    for at in 0..effects.len() {
        let of = |at: usize| (effects[at].0, effects[at].1.level);
        if at > first && !fit.larger(of(first), of(at)).may_be_zero() {
            first = at;
        }
        effects[at].1.rank = first + 1;
    }
    effects.into_iter().map(|(_, effect)| effect).collect()
}

fn interactions(terms: &[Term], fit: &Fit, share: impl Fn(f64) -> f64) -> Vec<Interaction> {
    let of = |(at, term): (usize, &Term)| {
        let squares = fit.squares(at);
        let estimate = fit.interaction(at);
        let is_clear = match estimate {
            Some(estimate) => estimate.half.is_some() && !estimate.may_be_zero(),
            None => is_clear(squares, fit.width(at), fit),
        };
        Interaction {
            factors: term.factors.clone(),
            estimate,
            share: share(squares),
            is_clear,
            aliases: term.aliases.clone(),
        }
    };
    let mut all: Vec<Interaction> = terms
        .iter()
        .enumerate()
        .filter(|(_, term)| !term.is_main())
        .map(of)
        .collect();
    all.sort_by(|a, b| b.share.total_cmp(&a.share));
    all
}

/// Whether several columns together explain more than chance (F test, 5 %).
fn is_clear(squares: f64, width: usize, fit: &Fit) -> bool {
    if fit.freedom < 1.0 || fit.residual_squares <= 1e-18 * fit.total_squares {
        return squares > 1e-18 * fit.total_squares;
    }
    let ratio = squares / width as f64 / (fit.residual_squares / fit.freedom);
    FisherSnedecor::new(width as f64, fit.freedom).is_ok_and(|f| 1.0 - f.cdf(ratio) < 0.05)
}

/// A residual of more than this many standard deviations is an outlier.
const FAR: f64 = 4.0;
/// If the largest standard deviation of a combination is more than this many times the least, spreads differ.
const UNEVEN: f64 = 10.0;

/// Reasons to doubt the model, a sentence each.
fn checks(
    design: &Design,
    terms: &[Term],
    fit: &Fit,
    observed: &[FactorObservation],
) -> Vec<String> {
    let mut doubts = Vec::new();
    let n = observed.len() as f64;
    if fit.freedom < 1.0 {
        doubts.push(match fit.spread {
            IntervalSource::Lenth if observed.len() > 3 => {
                "no combination was run twice: intervals are estimated from the small effects (Lenth's method)"
                    .to_owned()
            }
            _ => "no combination was run twice: intervals cannot be estimated".to_owned(),
        });
        return doubts;
    }
    if design.kind == DesignKind::Screening {
        doubts.push(
            "effects in a screening design include parts of all two-factor interactions".to_owned(),
        );
    }
    if let Some((lack, _)) = fit.lack() {
        let part = lack / fit.total_squares;
        if fit.chance_of_lack() < 0.01 && part > 0.02 {
            let mains = design.kind == DesignKind::Screening || terms.iter().all(Term::is_main);
            let what = if mains {
                "interactions"
            } else {
                "terms beyond these"
            };
            doubts.push(format!(
                "the model does not fit: {what} explain another {:.0} % of the variation",
                100.0 * part
            ));
        }
    }
    if matches!(fit.spread, IntervalSource::None | IntervalSource::Lack) {
        return doubts;
    }
    let spread = (fit.residual_squares / fit.freedom).sqrt();
    let far = fit
        .residuals
        .iter()
        .filter(|residual| residual.abs() > FAR * spread)
        .count();
    if far > 0 && n > 8.0 {
        doubts.push(format!(
            "more than {FAR} standard deviations from the model: {far} of {} runs",
            observed.len()
        ));
    }
    if let Some((least, most)) = fit
        .spreads()
        .filter(|(least, most)| *most > UNEVEN * least && n > 8.0)
    {
        doubts.push(format!(
            "the spread differs between combinations ({least:.2e} to {most:.2e}): each combination's interval uses its own spread"
        ));
    }
    if let Some(chance) = drift(fit, observed).filter(|chance| *chance < 0.01) {
        doubts.push(format!(
            "responses drift with the order of the runs (probability of this by chance: {:.1} %)",
            100.0 * chance
        ));
    }
    doubts
}

/// The probability that chance alone makes the residuals follow the order of the runs as closely; `None` with fewer than 8 runs.
fn drift(fit: &Fit, observed: &[FactorObservation]) -> Option<f64> {
    let n = observed.len();
    if n < 8 {
        return None;
    }
    let mean = (n - 1) as f64 / 2.0;
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|at| observed[*at].order);
    let place = |rank: usize| rank as f64 - mean;
    let squares: f64 = (0..n).map(|rank| place(rank) * place(rank)).sum();
    let product: f64 = order
        .iter()
        .enumerate()
        .map(|(rank, at)| place(rank) * fit.residuals[*at])
        .sum();
    let r = product / (squares * fit.residual_squares).sqrt();
    let freedom = (n - 2) as f64;
    let t = r * (freedom / (1.0 - r * r)).sqrt();
    t.is_finite()
        .then(|| StudentsT::new(0.0, 1.0, freedom).map_or(1.0, |of| 2.0 * (1.0 - of.cdf(t.abs()))))
}

#[cfg(test)]
mod tests;
