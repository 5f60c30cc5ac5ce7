//! A designed experiment over a specification: each combination of levels is a specification of its own, checked and run like any
//! other. `stackline_factors` analyses the responses (the figures of the runs).

pub mod experiment_runs;
mod infinite_factor;
mod program_runs;
pub mod response_figures;
pub mod subject;

use crate::experiment::Prices;
use crate::experiment::offers::{describe_factor, offers};
use experiment_runs::{FactorsProgress, FactorsStopSignal};
use response_figures::RunResponse;
use stackline_core::error::{Error, Result};
use stackline_core::named::NamedValue as _;
use stackline_factors::{EffectScale, FactorObservation, analyse};
use stackline_report::factors::{FactorOutcome, Response};
use subject::SpecExperiment;

/// What an experiment shall answer.
#[derive(Clone, Debug, Default)]
pub struct ExperimentQuestions {
    /// The responses to analyse; if empty, all that the runs have.
    pub responses: Vec<RunResponse>,
    /// Whether effects add or multiply; `None` lets the analysis choose.
    pub scale: Option<EffectScale>,
    /// Whether to look for the limit if a factor were infinitely better.
    pub limits: bool,
    /// The prices of levels, if improvements are to be bought.
    pub prices: Option<Prices>,
    /// The amount to spend at most.
    pub spend: Option<f64>,
}

/// How often combinations were run, and how long everything took.
#[derive(Clone, Copy, Debug)]
pub struct ExperimentExtent {
    /// Runs of each combination.
    pub replicates: u32,
    /// The whole time, seconds.
    pub took_s: f64,
}

/// The result of an experiment, response by response. `notes` come from the steps before.
///
/// # Errors
/// If the runs lack a requested response, or too few were made.
pub fn outcome(
    experiment: &SpecExperiment,
    kept: &FactorsProgress,
    questions: &ExperimentQuestions,
    extent: ExperimentExtent,
    stop: &FactorsStopSignal,
    mut notes: Vec<String>,
) -> Result<FactorOutcome> {
    let laid_out = &experiment.laid_out;
    let order = order_of_responses(experiment, kept, questions)?;
    let mut responses = Vec::new();
    for name in order {
        let response = response(experiment, kept, name, questions.scale);
        if let (true, Err(error)) = (responses.is_empty(), &response.answer) {
            return Err(Error::measurement(error.clone())
                .hint("use more `--replicates` or a different `--model`"));
        }
        responses.push(response);
    }
    notes.extend(experiment.notes());
    notes.extend(kept.notes());
    let limits = match questions.limits {
        false => Vec::new(),
        true => infinite_factor::limits(
            experiment,
            responses.first(),
            extent.replicates,
            stop,
            &mut notes,
        ),
    };
    let offers = match (&questions.prices, responses.first()) {
        (Some(prices), Some(first)) => offers(
            &laid_out.design,
            &laid_out.factors,
            first,
            prices,
            questions.spend,
        )?,
        _ => Vec::new(),
    };
    Ok(FactorOutcome {
        measurement: experiment.measurement(),
        world: experiment.world(),
        factors: laid_out.factors.iter().map(describe_factor).collect(),
        design: laid_out.design.clone(),
        replicates: extent.replicates,
        runs: kept.done.len(),
        failed: kept.failed(),
        took_s: extent.took_s,
        directory: Some(kept.directory.display().to_string()),
        responses,
        steps: Vec::new(),
        limits,
        offers,
        spend: questions.spend,
        notes,
    })
}

/// The responses in the order of the report: the requested ones, else the main response, then all others.
fn order_of_responses(
    experiment: &SpecExperiment,
    kept: &FactorsProgress,
    questions: &ExperimentQuestions,
) -> Result<Vec<RunResponse>> {
    let names = kept.responses();
    if questions.responses.is_empty() {
        let main = experiment.main_response(&names);
        let others = names.iter().copied().filter(|name| Some(*name) != main);
        return Ok(main.into_iter().chain(others).collect());
    }
    let missing = questions
        .responses
        .iter()
        .find(|wanted| !names.contains(wanted));
    match missing {
        None => Ok(questions.responses.clone()),
        Some(missing) => {
            let known: Vec<&str> = names.iter().map(|name| name.name()).collect();
            let message = format!("the runs have no {missing}");
            Err(Error::input(message).hint(format!("they have {}", known.join(", "))))
        }
    }
}

fn response(
    experiment: &SpecExperiment,
    kept: &FactorsProgress,
    name: RunResponse,
    scale: Option<EffectScale>,
) -> Response {
    let design = &experiment.laid_out.design;
    let observed: Vec<FactorObservation> =
        kept.observed(name, design.rows.len(), experiment.has_blocks());
    Response {
        name: name.name().to_owned(),
        unit: name.unit(),
        more_is_better: name.more_is_better(),
        answer: analyse(design, &observed, scale),
        observed,
        centre: kept.at_centre(name, design.rows.len()),
    }
}
