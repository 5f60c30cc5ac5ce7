//! A designed experiment over a specification: each combination of levels is a specification of its own, checked and run as any; what the
//! responses say is `stackline_factors`'s.

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

/// What is asked of the runs of an experiment.
#[derive(Clone, Debug, Default)]
pub struct ExperimentQuestions {
    /// What is looked at; without any all that the runs have.
    pub responses: Vec<RunResponse>,
    /// What adds up.
    pub scale: Option<EffectScale>,
    /// The limit if a factor were infinite is looked for.
    pub limits: bool,
    /// Prices of levels.
    pub prices: Option<Prices>,
    /// What is to be spent.
    pub spend: Option<f64>,
}

/// How often combinations were run, and how long it all took.
#[derive(Clone, Copy, Debug)]
pub struct ExperimentExtent {
    /// Runs of each combination.
    pub replicates: u32,
    /// Seconds.
    pub took_s: f64,
}

/// What all runs say, response by response. `notes` are of what went before.
///
/// # Errors
/// When the runs do not have what is asked for, or too few were made.
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

/// What a run is judged by first, then all others; or what is asked for.
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
