//! The combinations of an experiment: each one's specification and its plan, checked before anything is run.

use super::level_conflicts::{are_apart, in_order, with_levels};
use crate::exit::{Error, Result};
use crate::flags::{Factors as Flags, ResponseFlag, SpecTextFlags};
use crate::output;
use crate::spec_source::SpecSource;
use stackline_core::plan::{Plan, World};
use stackline_factors::{Design, DesignKind, Wish};
use stackline_spec::{Factor, FactorLevel, vary};
use std::collections::BTreeSet;
use std::ffi::OsString;

/// A specification, what is varied in it, and the combinations.
pub(super) struct SpecExperiment<'f> {
    source: SpecSource,
    flags: &'f SpecTextFlags,
    line: Option<usize>,
    /// Programs that are run in the place of a measurement.
    pub(super) programs: Vec<OsString>,
    pub(super) factors: Vec<Factor>,
    pub(super) design: Design,
    /// All factors at their first level.
    pub(super) base: Plan,
    /// Of each row of the design, once they are checked; then that of the centre, where it is run.
    pub(super) plans: Vec<Plan>,
    centre_text: Option<String>,
}

impl<'f> SpecExperiment<'f> {
    /// Reads the specification, and tries every level by itself.
    pub(super) fn new(flags: &'f Flags, source: SpecSource, factors: Vec<Factor>) -> Result<Self> {
        // Mistakes and doubts of the text itself are shown where they stand.
        let programs = flags.programs();
        if programs.is_empty() {
            source.work(&flags.text)?;
        } else {
            source.declarations(&flags.text)?;
        }
        let levels: Vec<usize> = factors.iter().map(|factor| factor.levels.len()).collect();
        let design = Design {
            kind: DesignKind::OneAtATime,
            levels,
            rows: Vec::new(),
        };
        let (text, line) = (&flags.text, flags.line);
        let mut experiment = Self {
            source,
            flags: text,
            line,
            programs,
            factors,
            design,
            base: Plan::default(),
            plans: Vec::new(),
            centre_text: None,
        };
        let first = vec![0; experiment.factors.len()];
        experiment.base = experiment.plan(&first)?;
        for (at, factor) in experiment.factors.iter().enumerate() {
            for level in 1..factor.levels.len() {
                let mut row = first.clone();
                row[at] = level;
                let plan = experiment.plan(&row)?;
                if same(&plan, &experiment.base) {
                    let message = format!(
                        "factor `{}`: at {} nothing differs",
                        factor.name, factor.levels[level]
                    );
                    return Err(Error::input(message)
                        .hint("choose a level that the specification does not have already"));
                }
            }
        }
        experiment.refuse_same()?;
        Ok(experiment)
    }

    /// Two factors that change the same thing cannot both have a level.
    fn refuse_same(&self) -> Result<()> {
        let last = |factor: &'_ Factor| factor.levels.len() - 1;
        for (at, one) in self.factors.iter().enumerate() {
            for other in &self.factors[at + 1..] {
                let (first, second) = (
                    (one, &one.levels[last(one)]),
                    (other, &other.levels[last(other)]),
                );
                self.varied(&[first, second])?;
                self.varied(&[second, first])?;
                are_apart((one, other), |changes| self.plan_of(changes), same)?;
            }
        }
        Ok(())
    }

    /// Chooses the combinations.
    pub(super) fn lay_out(&mut self, levels: &[usize], wish: Wish) -> Result<()> {
        let hint = "leave `--design` out for the best that fits, or give factors two levels each";
        self.design = Design::new(levels, wish).map_err(|error| Error::input(error).hint(hint))?;
        Ok(())
    }

    /// Runs that are made at once.
    pub(super) fn at_once(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if self.has_blocks() { 1 } else { cores }
    }

    fn levels(&self, row: &[usize]) -> Vec<(&Factor, &FactorLevel)> {
        self.factors
            .iter()
            .zip(row)
            .map(|(factor, level)| (factor, &factor.levels[*level]))
            .collect()
    }

    /// The specification of one combination.
    pub(super) fn varied(&self, changes: &[(&Factor, &FactorLevel)]) -> Result<SpecSource> {
        vary(self.source.named().1, self.line, changes).map(|text| self.source.varied(text))
    }

    /// The plan of a combination: one measurement of one run.
    fn plan(&self, row: &[usize]) -> Result<Plan> {
        self.plan_of(&self.levels(row))
    }

    /// The same of any levels.
    pub(super) fn plan_of(&self, changes: &[(&Factor, &FactorLevel)]) -> Result<Plan> {
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
            .quietly(self.flags)
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
                1 => "make its stacks or its variable a factor, as in `--factor 'stack = tcp, quic'` or `--factor 'N = 1, 64'`".to_owned(),
                _ => format!("choose one with `--line`: {}", lines.into_iter().collect::<Vec<_>>().join(", ")),
            };
            return Err(Error::input(message).hint(hint));
        }
        Ok(plan)
    }

    /// The specification as it is written.
    pub(super) fn source_text(&self) -> &str {
        self.source.named().1
    }

    /// The specification of a row, as a file is to hold it.
    pub(super) fn text_of(&self, row: usize) -> Result<String> {
        let centre = self
            .centre_text
            .clone()
            .filter(|_| row == self.design.rows.len());
        centre.map_or_else(|| self.text(row + 1), Ok)
    }

    /// The specification of a combination by its number, from 1, as text.
    pub(super) fn text(&self, number: usize) -> Result<String> {
        let row = number
            .checked_sub(1)
            .and_then(|at| self.design.rows.get(at))
            .ok_or_else(|| {
                Error::input(format!("there is no combination {number}"))
                    .hint(format!("there are {}", self.design.rows.len()))
            })?;
        let text = self.varied(&self.levels(row))?.named().1.to_owned();
        let words: Vec<String> = self
            .levels(row)
            .iter()
            .map(|(factor, level)| format!("# {}: {level}\n", factor.name))
            .collect();
        Ok(format!("{}{}\n", words.concat(), text.trim_end()))
    }

    /// The plan with every factor half way between its levels.
    pub(super) fn look_at_centre(&mut self) -> Result<()> {
        let middle = |factor: &Factor| match factor.levels[..] {
            [FactorLevel::AsWritten, FactorLevel::Times(times)] => {
                Ok(FactorLevel::Times(times.sqrt()))
            }
            _ => Err(Error::input(format!(
                "`{}` has no level half way between its levels",
                factor.name
            ))
            .hint("a centre needs factors of the form `WHAT x NUMBER`")),
        };
        let levels: Result<Vec<FactorLevel>> = self.factors.iter().map(middle).collect();
        let levels = levels?;
        let changes: Vec<(&Factor, &FactorLevel)> = self.factors.iter().zip(&levels).collect();
        self.centre_text = Some(self.varied(&changes)?.named().1.to_owned());
        let plan = self.plan_of(&changes)?;
        self.plans.push(plan);
        Ok(())
    }

    /// Checks every combination, so that nothing is run for one that cannot be.
    pub(super) fn check_all(&mut self) -> Result<()> {
        let plans: Result<Vec<Plan>> = self.design.rows.iter().map(|row| self.plan(row)).collect();
        self.plans = plans?;
        if self
            .base
            .measurements
            .first()
            .is_some_and(|measurement| measurement.until.is_some())
        {
            output::say(&"note: `until` is left to the number of replicates");
        }
        Ok(())
    }

    pub(super) fn world(&self) -> World {
        self.base
            .measurements
            .first()
            .map_or(World::Emulated, |measurement| measurement.world)
    }

    /// Runs that were made at about the same time differ less from each other where time is real.
    pub(super) fn has_blocks(&self) -> bool {
        self.world() != World::Simulated
    }

    pub(super) fn runs_written(&self) -> u32 {
        self.base
            .measurements
            .first()
            .map_or(1, |measurement| measurement.runs.min(100))
    }

    pub(super) fn least_runs(&self, (real, simulated): (u32, u32)) -> u32 {
        if self.has_blocks() { real } else { simulated }
    }

    pub(super) fn measurement(&self) -> String {
        let words = || {
            self.programs
                .iter()
                .map(|word| word.to_string_lossy())
                .collect::<Vec<_>>()
                .join(" ")
        };
        self.base
            .measurements
            .first()
            .map_or_else(words, |measurement| measurement.text.clone())
    }

    pub(super) fn name(&self) -> &str {
        let (name, _) = self.source.named();
        std::path::Path::new(name)
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or("factors")
    }

    /// What tells this experiment from others: its combinations as texts.
    pub(super) fn identity(&self) -> Result<String> {
        let texts: Result<Vec<String>> = (1..=self.design.rows.len())
            .map(|number| self.text(number))
            .collect();
        Ok(format!("{}\n{}", self.measurement(), texts?.join("\n")))
    }

    /// What a run is judged by.
    pub(super) fn main_response(&self, names: &BTreeSet<ResponseFlag>) -> Option<ResponseFlag> {
        let order = [
            ResponseFlag::Throughput,
            ResponseFlag::Response,
            ResponseFlag::Connect,
            ResponseFlag::Elapsed,
        ];
        let order = if self.is_calls() {
            [ResponseFlag::Response; 4]
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
        let Some(measurement) = self.base.measurements.first() else {
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
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for factor in self.factors.iter().filter(|factor| factor.changes_work()) {
            notes.push(format!(
                "`{}` changes how much is done: compare what is per unit (throughput), not how long runs took",
                factor.name
            ));
        }
        if self.design.kind == DesignKind::OneAtATime && self.factors.len() > 1 {
            notes.push("one factor at a time: what factors do together is not seen, and gains do not multiply".into());
        }
        notes
    }
}

/// Whether two plans do the same.
fn same(one: &Plan, other: &Plan) -> bool {
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
