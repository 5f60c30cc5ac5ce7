//! A specification as the subject of an experiment: applies the levels of a combination to its text, and checks all combinations
//! before anything is run.

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

/// A specification whose parts are varied.
#[derive(Clone, Debug)]
pub struct SpecSubject {
    /// The specification as written.
    pub source: SpecSource,
    /// Values from the command line that replace written ones.
    pub overrides: Overrides,
    /// The line of the measurement that is varied, if there are several.
    pub line: Option<usize>,
    /// The command of programs that are run instead of a measurement; empty if a measurement is run.
    pub programs: Vec<OsString>,
}

impl SpecSubject {
    /// The specification with the levels applied.
    fn varied(&self, changes: &LevelChanges<'_>) -> Result<SpecSource> {
        vary(self.source.named().1, self.line, changes).map(|text| self.source.varied(text))
    }
}

impl ExperimentSubject for SpecSubject {
    type Combination = Plan;

    fn changed(&self, changes: &LevelChanges<'_>) -> Result<Plan> {
        let varied = self.varied(changes)?;
        if !self.programs.is_empty() {
            // If programs are run, the measurements in the text are ignored.
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
    /// The plan of each row of the design, once checked; then that of the centre point, if it is run.
    pub plans: Vec<Plan>,
    centre_text: Option<String>,
}

impl SpecExperiment {
    /// Checks every level by itself.
    ///
    /// # Errors
    /// If a level cannot be applied, or two factors change the same thing.
    pub fn new(subject: SpecSubject, factors: Vec<Factor>) -> Result<Self> {
        Ok(Self {
            laid_out: Experiment::new(subject, factors)?,
            plans: Vec::new(),
            centre_text: None,
        })
    }

    /// Chooses the combinations of the design.
    ///
    /// # Errors
    /// If there is no such design.
    pub fn lay_out(&mut self, wish: Wish) -> Result<()> {
        self.laid_out.lay_out(wish)
    }

    /// How many runs are made at once: one for each core if simulated, else 1.
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

    /// The specification of a row or of the centre point, as text.
    ///
    /// # Errors
    /// If the combination cannot be written.
    pub fn text_of(&self, row: usize) -> Result<String> {
        let centre = self
            .centre_text
            .clone()
            .filter(|_| row == self.laid_out.design.rows.len());
        centre.map_or_else(|| self.text(row + 1), Ok)
    }

    /// The specification of a combination by its number, from 1, as text, with a comment for each level.
    ///
    /// # Errors
    /// If there is no such combination.
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

    /// Adds the plan of the centre point: every factor halfway between its two levels, on a logarithmic scale.
    ///
    /// # Errors
    /// If a factor has no level halfway.
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

    /// Makes the plans of all combinations, so that nothing is run if one is invalid.
    ///
    /// # Errors
    /// If a combination is invalid.
    pub fn check_all(&mut self) -> Result<()> {
        self.plans = self.laid_out.combinations()?;
        Ok(())
    }

    /// Whether the specification has `until`, which an experiment ignores: the number of replicates replaces it.
    #[must_use]
    pub fn has_until(&self) -> bool {
        let first = self.laid_out.base.measurements.first();
        first.is_some_and(|measurement| measurement.until.is_some())
    }

    const fn subject(&self) -> &SpecSubject {
        &self.laid_out.subject
    }

    /// The world that the runs are made in; programs run in the emulated world.
    #[must_use]
    pub fn world(&self) -> World {
        self.laid_out
            .base
            .measurements
            .first()
            .map_or(World::Emulated, |measurement| measurement.world)
    }

    /// Whether replicates are analysed as blocks: in real time, runs made at about the same time differ less from each other.
    #[must_use]
    pub fn has_blocks(&self) -> bool {
        self.world() != World::Simulated
    }

    /// How many runs the specification asks for, at most 100.
    #[must_use]
    pub fn runs_written(&self) -> u32 {
        self.laid_out
            .base
            .measurements
            .first()
            .map_or(1, |measurement| measurement.runs.min(100))
    }

    /// Chooses between two least numbers of runs: for real time and for simulation.
    #[must_use]
    pub fn least_runs(&self, real: u32, simulated: u32) -> u32 {
        if self.has_blocks() { real } else { simulated }
    }

    /// The text of the measurement, or the command of the programs.
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

    /// The name of the experiment: that of the specification's file.
    #[must_use]
    pub fn name(&self) -> &str {
        let (name, _) = self.subject().source.named();
        std::path::Path::new(name)
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or("factors")
    }

    /// Identifies the experiment: the measurement and the texts of all combinations.
    ///
    /// # Errors
    /// If a combination cannot be written.
    pub fn identity(&self) -> Result<String> {
        let texts: Result<Vec<String>> = (1..=self.laid_out.design.rows.len())
            .map(|number| self.text(number))
            .collect();
        Ok(format!("{}\n{}", self.measurement(), texts?.join("\n")))
    }

    /// The response by which the runs are judged, of those that they have.
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

    /// Whether the initiators make calls; true for programs too.
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

    /// Notes for readers of the result.
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
