//! `display factors`: which factors matter for a display in virtual time. Its report is that of `stackline factors`.

use super::combinations::{Combination, Combinations};
use crate::exit::{Error, Exit, Result};
use crate::factors::{MOST, draw, wanted, with_levels, words};
use crate::flags::{DisplayFactors, Text};
use crate::output;
use crate::source::Source;
use stackline_core::plan::World;
use stackline_displayserver::bench;
use stackline_displayserver::level::Picture;
use stackline_factors::fit::ratio;
use stackline_factors::{Design, Kind, Observation, Scale, Wish, analyse};
use stackline_report::factors::{Limit, Outcome, Response, Unit};
use std::time::Instant;

/// Runs of each combination: two show whether anything is drawn by chance, and where it is there are more.
const RUNS: (u32, u32) = (2, 5);

/// Simulates every combination, and reports what each factor brings.
pub(in super::super) fn factors(flags: &DisplayFactors) -> Result {
    let begun = Instant::now();
    let combinations = read(flags)?;
    let levels: Vec<usize> = combinations.factors.iter().map(|factor| factor.levels.len()).collect();
    let design = Design::new(&levels, flags.design.unwrap_or(Wish::Best(MOST)))
        .map_err(|error| Error::input(error).hint("leave `--design` out for the best that fits"))?;
    let picture = picture(flags)?;
    let experiment = Experiment { flags, picture: &picture, combinations: &combinations, design: &design };
    let rows = design.rows.iter().map(|row| combinations.of(row)).collect::<Result<Vec<Combination>>>()?;
    let (replicates, observed) = experiment.carry_out(&rows)?;
    let base = combinations.of(&vec![0; levels.len()])?;
    let limits = experiment.limits(&base, replicates)?;
    let answer = analyse(&design, &observed, flags.model.map(Scale::from));
    if let Err(error) = &answer {
        return Err(Error::measurement(error.clone()).hint("another `--model` or `--design`"));
    }
    let outcome = Outcome {
        measurement: base.words(&picture)?,
        world: World::Simulated,
        factors: combinations.factors.iter().map(words).collect(),
        replicates,
        runs: observed.len(),
        failed: 0,
        took_s: begun.elapsed().as_secs_f64(),
        directory: None,
        responses: vec![Response {
            name: "rate".to_owned(),
            unit: Unit::PerSecond(picture.unit),
            more_is_better: true,
            answer,
            observed,
            centre: Vec::new(),
        }],
        limits,
        offers: Vec::new(),
        spend: None,
        notes: notes(&design, &rows),
        design: design.clone(),
    };
    shown(flags, &outcome)
}

/// The specification, and what is varied.
fn read(flags: &DisplayFactors) -> Result<Combinations<'_>> {
    let source = Source::read(&flags.across)?;
    // Its mistakes are shown where they stand.
    source.declarations(&Text::default())?;
    let declared = stackline_spec::factors(&source.text).unwrap_or_default();
    if flags.factors.is_empty() && declared.is_empty() {
        return Err(Error::input("there is no factor to vary")
            .hint("name some, as in `--factor 'cpu of vax x 2' --factor 'level = pipelined, batched'`"));
    }
    let factors = wanted(&flags.factors, &source)?;
    Combinations::new(flags, source, factors)
}

fn picture(flags: &DisplayFactors) -> Result<Picture> {
    let found = bench::pictures().into_iter().find(|picture| picture.name == flags.picture.name());
    found.ok_or_else(|| Error::input(format!("there is no picture {}", flags.picture.name())))
}

/// What is run.
struct Experiment<'e> {
    flags: &'e DisplayFactors,
    picture: &'e Picture,
    combinations: &'e Combinations<'e>,
    design: &'e Design,
}

impl Experiment<'_> {
    /// Runs every combination as often as is wanted; else twice, and more where that differs.
    fn carry_out(&self, rows: &[Combination]) -> Result<(u32, Vec<Observation>)> {
        let mut observed = Vec::new();
        let first = self.flags.replicates.unwrap_or(RUNS.0);
        (0..first).try_for_each(|_| self.replicate(rows, &mut observed))?;
        let differs = |observed: &[Observation]| {
            let (one, other) = observed.split_at(rows.len().min(observed.len()));
            one.iter().zip(other).any(|(one, other)| one.value.total_cmp(&other.value).is_ne())
        };
        if self.flags.replicates.is_some() || !differs(&observed) {
            return Ok((first, observed));
        }
        (first..RUNS.1).try_for_each(|_| self.replicate(rows, &mut observed))?;
        Ok((RUNS.1, observed))
    }

    /// Runs each combination once, with a seed of its own.
    fn replicate(&self, rows: &[Combination], observed: &mut Vec<Observation>) -> Result<()> {
        for (row, combination) in rows.iter().enumerate() {
            let order = observed.len() as u32;
            let rate = combination.rate(self.picture, usize::from(self.flags.trials), u64::from(order) + 1);
            let value = rate.map_err(|error| with_levels(&self.combinations.levels(&self.design.rows[row]), error))?;
            observed.push(Observation { row, block: 0, order, value });
        }
        Ok(())
    }

    /// What each factor of which more is better would bring without end, with all others at their first level.
    fn limits(&self, base: &Combination, replicates: u32) -> Result<Vec<Limit>> {
        // One run alone says nothing of how far runs differ.
        let runs = replicates.max(RUNS.0);
        let now = self.rates(base, runs)?;
        let mut limits = Vec::new();
        for factor in 0..self.design.levels.len() {
            let Some(combination) = self.combinations.without_end(factor).transpose()? else { continue };
            let then = self.rates(&combination, runs)?;
            let times = ratio(&now, &then).and_then(|ratio| ratio.interval().map(|within| (ratio.value, within)));
            let times = times.map(|(value, (least, most))| (value.exp(), least.exp(), most.exp()));
            limits.push(Limit { factor, times, by_account: None, next: None });
        }
        Ok(limits)
    }

    /// The rates of a combination, of so many seeds.
    fn rates(&self, combination: &Combination, replicates: u32) -> Result<Vec<f64>> {
        let trials = usize::from(self.flags.trials);
        (1..=u64::from(replicates)).map(|seed| combination.rate(self.picture, trials, seed)).collect()
    }
}

/// What a reader has to know.
fn notes(design: &Design, rows: &[Combination]) -> Vec<String> {
    let mut notes = Vec::new();
    if rows.iter().any(Combination::is_distributed) && !rows.iter().all(Combination::is_distributed) {
        notes.push("at class distributed one item is sent and all are drawn: the others send all of them".into());
    }
    if design.kind == Kind::OneAtATime && design.levels.len() > 1 {
        notes.push("one factor at a time: what factors do together is not seen, and gains do not multiply".into());
    }
    notes
}

fn shown(flags: &DisplayFactors, outcome: &Outcome) -> Result {
    if let Some(directory) = &flags.pictures {
        draw(outcome, directory)?;
    }
    match flags.json {
        true => output::json(&stackline_report::factors::factors_json(outcome), false)?,
        false => output::print(&stackline_report::factors::factors(outcome))?,
    }
    Ok(Exit::Done)
}
