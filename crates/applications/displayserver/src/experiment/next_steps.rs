//! What to change first, and what brings most after that, or when a factor takes no time. Each combination is simulated.

use super::combinations::{DisplayCombination, DisplaySubject};
use stackline_core::error::Result;
use stackline_report::factors::ImprovementStep;
use stackline_spec::FactorLevel;
use stackline_whatif::experiment::Experiment;

/// The limit on steps.
const MOST: usize = 3;
/// The smallest factor by which a step has to raise the rate.
const LEAST: f64 = 1.01;

/// Searches for steps that raise the rate.
pub(crate) struct DisplayRateSearch<'s> {
    pub(crate) experiment: &'s Experiment<DisplaySubject>,
    /// The rate of a combination.
    pub(crate) rate: &'s dyn Fn(&DisplayCombination) -> Result<f64>,
}

impl DisplayRateSearch<'_> {
    /// What to change first, then what to change in addition, and so on, as long as it brings something.
    pub(crate) fn steps(&self) -> Result<Vec<ImprovementStep>> {
        let (mut steps, mut made) = (Vec::new(), Vec::new());
        while steps.len() < MOST
            && let Some(step) = self.most(&made)?.filter(|step| step.times >= LEAST)
        {
            made.push((
                step.factor,
                self.experiment.factors[step.factor].levels[step.level].clone(),
            ));
            steps.push(step);
        }
        Ok(steps)
    }

    /// What limits the rate once a factor is at a level: the other factor that then brings most, in words.
    pub(crate) fn next(&self, factor: usize, level: FactorLevel) -> Result<Option<String>> {
        let most = self.most(&[(factor, level)])?;
        Ok(most.map(|step| match step.times >= LEAST {
            true => format!("{} gains most, x {:.2}", self.words(&step), step.times),
            false => "no other factor gains more than 1 %".to_owned(),
        }))
    }

    fn words(&self, step: &ImprovementStep) -> String {
        let factor = &self.experiment.factors[step.factor];
        let level = &factor.levels[step.level];
        let sign = if matches!(level, FactorLevel::Times(_)) {
            ""
        } else {
            "= "
        };
        format!("{} {sign}{level}", factor.name)
    }

    /// The level of another factor that brings most in addition to what is changed.
    fn most(&self, changed: &[(usize, FactorLevel)]) -> Result<Option<ImprovementStep>> {
        let now = (self.rate)(&self.experiment.at(changed)?)?;
        let mut most: Option<ImprovementStep> = None;
        let is_left = |factor: &usize| changed.iter().all(|(other, _)| other != factor);
        for factor in (0..self.experiment.factors.len()).filter(is_left) {
            for (level, words) in self.experiment.factors[factor]
                .levels
                .iter()
                .enumerate()
                .skip(1)
            {
                let changes = [changed, &[(factor, words.clone())]].concat();
                // A combination that is invalid is not a possible step.
                let Ok(rate) = self
                    .experiment
                    .at(&changes)
                    .and_then(|made| (self.rate)(&made))
                else {
                    continue;
                };
                if most.is_none_or(|step| rate / now > step.times) {
                    most = Some(ImprovementStep {
                        factor,
                        level,
                        times: rate / now,
                    });
                }
            }
        }
        Ok(most)
    }
}
