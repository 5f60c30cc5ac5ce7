//! A specification that is varied: what a combination of levels makes of it, checked before anything is run.

use super::response_figures::RunResponse;
use crate::experiment::level_conflicts::{LevelChanges, in_order, with_levels};
use crate::experiment::{Experiment, ExperimentSubject};
use stackline_core::error::{Error, Result};
use stackline_core::plan::{Plan, World};
use stackline_factors::Wish;
use stackline_runner::spec_source::SpecSource;
use stackline_spec::{Factor, FactorLevel, Overrides, vary};
use std::collections::BTreeSet;
use std::ffi::OsString;

/// A specification that is varied.
#[derive(Clone, Debug)]
pub struct SpecSubject {
    /// It as it is written.
    pub source: SpecSource,
    /// What the command line has in the place of what is written.
    pub overrides: Overrides,
    /// The line of the measurement that is varied.
    pub line: Option<usize>,
    /// Programs that are run in the place of a measurement.
    pub programs: Vec<OsString>,
}

impl SpecSubject {
    /// The specification of a combination.
    fn varied(&self, changes: &LevelChanges<'_>) -> Result<SpecSource> {
        vary(self.source.named().1, self.line, changes).map(|text| self.source.varied(text))
    }
}

impl ExperimentSubject for SpecSubject {
    type Combination = Plan;

    fn changed(&self, changes: &LevelChanges<'_>) -> Result<Plan> {
        let varied = self.varied(changes)?;
        if !self.programs.is_empty() {
            // What else the text measures is none of the programs' business.
            let declared = varied.declared().map(|plan| Plan {
                measurements: Vec::new(),
                ..plan
            });
            return declared.map_err(|error| with_levels(changes, error));
        }
        let plan = varied
            .plan(&self.overrides)
            .map_err(|error| with_levels(changes, error))?;
        if plan.measurements.len() != 1 {
            let lines: BTreeSet<String> = plan
                .measurements
                .iter()
                .map(|one| one.line.to_string())
                .collect();
            let message = format!(
                "{} measurements would be varied at once",
                plan.measurements.len()
            );
            let hint = match lines.len() {
                1 => "make the stacks or the variable a factor, as in `--factor 'stack = tcp, quic'` or `--factor 'N = 1, 64'`".to_owned(),
                _ => format!("choose one with `--line`: {}", lines.into_iter().collect::<Vec<_>>().join(", ")),
            };
            return Err(Error::input(message).hint(hint));
        }
        Ok(plan)
    }

    fn are_same(one: &Plan, other: &Plan) -> bool {
        let bare = |plan: &Plan| {
            let mut plan = plan.clone();
            plan.networks.iter_mut().for_each(in_order);
            for measurement in &mut plan.measurements {
                measurement.text.clear();
                measurement.variables.clear();
                measurement
                    .parts
                    .iter_mut()
                    .for_each(|part| part.text.clear());
            }
            plan
        };
        bare(one) == bare(other)
    }

    fn go_together(&self, changes: &LevelChanges<'_>) -> Result<()> {
        self.varied(changes).map(drop)
    }
}

/// An experiment over a specification.
#[derive(Debug)]
pub struct SpecExperiment {
    /// Its factors and combinations.
    pub laid_out: Experiment<SpecSubject>,
    /// Of each row of the design, once they are checked; then that of the centre, where it is run.
    pub plans: Vec<Plan>,
    centre_text: Option<String>,
}

impl SpecExperiment {
    /// Tries every level by itself.
    ///
    /// # Errors
    /// When a level cannot be, or two factors cannot be together.
    pub fn new(subject: SpecSubject, factors: Vec<Factor>) -> Result<Self> {
        Ok(Self {
            laid_out: Experiment::new(subject, factors)?,
            plans: Vec::new(),
            centre_text: None,
        })
    }

    /// Chooses the combinations.
    ///
    /// # Errors
    /// When there is no such design.
    pub fn lay_out(&mut self, wish: Wish) -> Result<()> {
        self.laid_out.lay_out(wish)
    }

    /// Runs that are made at once.
    #[must_use]
    pub fn at_once(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if self.has_blocks() { 1 } else { cores }
    }

    /// The specification as it is written.
    #[must_use]
    pub fn source_text(&self) -> &str {
        self.subject().source.named().1
    }

    /// The specification of a row, as a file is to hold it.
    ///
    /// # Errors
    /// When a combination cannot be written.
    pub fn text_of(&self, row: usize) -> Result<String> {
        let centre = self
            .centre_text
            .clone()
            .filter(|_| row == self.laid_out.design.rows.len());
        centre.map_or_else(|| self.text(row + 1), Ok)
    }

    /// The specification of a combination by its number, from 1, as text.
    ///
    /// # Errors
    /// When there is no such combination.
    pub fn text(&self, number: usize) -> Result<String> {
        let row = number
            .checked_sub(1)
            .and_then(|at| self.laid_out.design.rows.get(at))
            .ok_or_else(|| {
                Error::input(format!("unknown combination {number}"))
                    .hint(format!("there are {}", self.laid_out.design.rows.len()))
            })?;
        let text = self
            .subject()
            .varied(&self.laid_out.levels(row))?
            .named()
            .1
            .to_owned();
        let words: Vec<String> = self
            .laid_out
            .levels(row)
            .iter()
            .map(|(factor, level)| format!("# {}: {level}\n", factor.name))
            .collect();
        Ok(format!("{}{}\n", words.concat(), text.trim_end()))
    }

    /// The plan with every factor half way between its levels.
    ///
    /// # Errors
    /// When a factor has no middle.
    pub fn look_at_centre(&mut self) -> Result<()> {
        let middle = |factor: &Factor| match factor.levels[..] {
            [FactorLevel::AsWritten, FactorLevel::Times(times)] => {
                Ok(FactorLevel::Times(times.sqrt()))
            }
            _ => Err(Error::input(format!(
                "`{}` has no level halfway between its levels",
                factor.name
            ))
            .hint("a centre point needs factors of the form `WHAT x NUMBER`")),
        };
        let levels: Result<Vec<FactorLevel>> = self.laid_out.factors.iter().map(middle).collect();
        let levels = levels?;
        let changes: Vec<(&Factor, &FactorLevel)> =
            self.laid_out.factors.iter().zip(&levels).collect();
        self.centre_text = Some(self.subject().varied(&changes)?.named().1.to_owned());
        let plan = self.subject().changed(&changes)?;
        self.plans.push(plan);
        Ok(())
    }

    /// Checks every combination, so that nothing is run for one that cannot be.
    ///
    /// # Errors
    /// When one cannot be.
    pub fn check_all(&mut self) -> Result<()> {
        self.plans = self.laid_out.combinations()?;
        Ok(())
    }

    /// Whether the specification says when there are enough runs, which the number of replicates does here.
    #[must_use]
    pub fn has_until(&self) -> bool {
        let first = self.laid_out.base.measurements.first();
        first.is_some_and(|measurement| measurement.until.is_some())
    }

    const fn subject(&self) -> &SpecSubject {
        &self.laid_out.subject
    }

    /// The world that it is run in.
    #[must_use]
    pub fn world(&self) -> World {
        self.laid_out
            .base
            .measurements
            .first()
            .map_or(World::Emulated, |measurement| measurement.world)
    }

    /// Runs that were made at about the same time differ less from each other where time is real.
    #[must_use]
    pub fn has_blocks(&self) -> bool {
        self.world() != World::Simulated
    }

    /// How many runs the specification asks for.
    #[must_use]
    pub fn runs_written(&self) -> u32 {
        self.laid_out
            .base
            .measurements
            .first()
            .map_or(1, |measurement| measurement.runs.min(100))
    }

    /// How many runs of a combination there are at least, in real time and simulated.
    #[must_use]
    pub fn least_runs(&self, real: u32, simulated: u32) -> u32 {
        if self.has_blocks() { real } else { simulated }
    }

    /// What is measured, in words.
    #[must_use]
    pub fn measurement(&self) -> String {
        let words = || {
            self.subject()
                .programs
                .iter()
                .map(|word| word.to_string_lossy())
                .collect::<Vec<_>>()
                .join(" ")
        };
        self.laid_out
            .base
            .measurements
            .first()
            .map_or_else(words, |measurement| measurement.text.clone())
    }

    /// What the experiment is called.
    #[must_use]
    pub fn name(&self) -> &str {
        let (name, _) = self.subject().source.named();
        std::path::Path::new(name)
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or("factors")
    }

    /// What tells this experiment from others: its combinations as texts.
    ///
    /// # Errors
    /// When a combination cannot be written.
    pub fn identity(&self) -> Result<String> {
        let texts: Result<Vec<String>> = (1..=self.laid_out.design.rows.len())
            .map(|number| self.text(number))
            .collect();
        Ok(format!("{}\n{}", self.measurement(), texts?.join("\n")))
    }

    /// What a run is judged by.
    #[must_use]
    pub fn main_response(&self, names: &BTreeSet<RunResponse>) -> Option<RunResponse> {
        let order = [
            RunResponse::Throughput,
            RunResponse::Response,
            RunResponse::Connect,
            RunResponse::Elapsed,
        ];
        let order = if self.is_calls() {
            [RunResponse::Response; 4]
        } else {
            order
        };
        order
            .into_iter()
            .chain(names.iter().copied())
            .find(|name| names.contains(name))
    }

    fn is_calls(&self) -> bool {
        use stackline_core::procedure::{OperationCall, PairSide};
        let Some(measurement) = self.laid_out.base.measurements.first() else {
            return true;
        };
        measurement
            .parts
            .iter()
            .filter(|part| !part.background)
            .any(|part| {
                let calls = part.procedure.calls(PairSide::Initiator);
                calls
                    .iter()
                    .any(|call| matches!(call, OperationCall::RpcCall { .. }))
            })
    }

    /// What a reader has to know.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for factor in self
            .laid_out
            .factors
            .iter()
            .filter(|factor| factor.changes_work())
        {
            notes.push(format!(
                "`{}` changes the amount of work: compare a figure per unit of work (throughput), not the run duration",
                factor.name
            ));
        }
        notes.extend(self.laid_out.note());
        notes
    }
}
