//! The result of a designed experiment as JSON, with the whole design and every response.

use super::order::ranked;
use super::{FactorOutcome, Response, alone, sensitivity};
use serde_json::{Value, json};
use stackline_factors::{Estimate, FactorAnswer};

/// The result as JSON: the design, every run, every estimate.
#[must_use]
pub fn factors_json(outcome: &FactorOutcome) -> Value {
    let factors = outcome
        .factors
        .iter()
        .map(|one| json!({ "name": one.name, "levels": one.levels, "times": one.times }));
    let responses = outcome.responses.iter().map(|response| {
        let runs = response
            .observed
            .iter()
            .map(|one| json!({ "row": one.row, "block": one.block, "order": one.order, "value": one.value }));
        let mut value = json!({
            "name": response.name,
            "unit": response.unit.name(),
            "more_is_better": response.more_is_better,
            "runs": runs.collect::<Vec<_>>(),
            "centre": response.centre,
            "bend": response.answer.as_ref().ok().and_then(|answer| answer.bend(&response.centre)).as_ref().map(estimate_json),
        });
        match &response.answer {
            Ok(answer) => value["answer"] = answer_json(outcome, response, answer),
            Err(why) => value["why_none"] = json!(why),
        }
        value
    });
    let limits = outcome.limits.iter().map(|limit| {
        json!({
            "factor": outcome.factors[limit.factor].name,
            "times_as_fast": limit.times.map(|(gain, ..)| gain),
            "times_as_fast_ci95": limit.times.map(|(_, least, most)| [least, most]),
            "by_account": limit.by_account,
            "then": limit.next,
        })
    });
    let steps = outcome.steps.iter().map(|step| {
        let words = &outcome.factors[step.factor];
        json!({ "factor": words.name, "level": words.levels[step.level], "times_as_fast": step.times })
    });
    let offers = outcome.offers.iter().map(|offer| {
        json!({
            "bought": offer.bought, "cost": offer.cost, "times_as_fast": offer.times,
            "ci95": offer.interval.map(|(least, most)| [least, most]), "best": offer.is_best,
        })
    });
    json!({
        "measurement": outcome.measurement,
        "world": outcome.world.to_string(),
        "design": { "kind": outcome.design.to_string(), "resolution": outcome.design.resolution(), "rows": outcome.design.rows },
        "replicates": outcome.replicates,
        "runs": outcome.runs,
        "failed": outcome.failed,
        "took_s": outcome.took_s,
        "factors": factors.collect::<Vec<_>>(),
        "responses": responses.collect::<Vec<_>>(),
        "steps": steps.collect::<Vec<_>>(),
        "limits": limits.collect::<Vec<_>>(),
        "offers": offers.collect::<Vec<_>>(),
        "notes": outcome.notes,
        "directory": outcome.directory,
    })
}

fn estimate_json(estimate: &Estimate) -> Value {
    json!({
        "value": estimate.value,
        "ci95": estimate.interval().map(|(least, most)| [least, most]),
        "freedom": Some(estimate.freedom).filter(|freedom| freedom.is_finite()),
    })
}

fn answer_json(outcome: &FactorOutcome, response: &Response, answer: &FactorAnswer) -> Value {
    let fit = answer.fit();
    let ranked = ranked(outcome, answer);
    let effects = ranked.iter().map(|one| {
        let (effect, level) = (one.effect, one.level);
        let (gain, within) = response.gain(answer, effect.factor, level);
        let alone = alone(outcome, response, answer, effect.factor, level);
        let alone_within = alone.and_then(|(_, within)| within);
        json!({
            "factor": outcome.factors[effect.factor].name,
            "level": outcome.factors[effect.factor].levels[level],
            "alone": alone.map(|(gain, _)| gain),
            "alone_ci95": alone_within.map(|(least, most)| [least, most]),
            "effect": estimate_json(effect.levels.get(level - 1).unwrap_or(&effect.estimate)),
            "levels": effect.levels.iter().map(estimate_json).collect::<Vec<_>>(),
            "times_as_fast": gain,
            "times_as_fast_ci95": within.map(|(least, most)| [least, most]),
            "share": effect.share,
            "rank": one.rank,
            "rank_is_alone": one.is_alone,
            "rank_on_average": effect.rank,
            "may_be_nothing_alone": one.is_alone.then_some(one.may_be_nothing),
            "may_be_nothing": effect.estimate.may_be_zero(),
            "sensitivity": sensitivity(outcome, effect.factor, level, gain),
            "aliases": effect.aliases.iter().map(|alias| outcome.names(alias)).collect::<Vec<_>>(),
        })
    });
    let interactions = answer.interactions.iter().map(|one| {
        json!({
            "factors": one.factors.iter().map(|factor| &outcome.factors[*factor].name).collect::<Vec<_>>(),
            "effect": one.estimate.as_ref().map(estimate_json),
            "share": one.share,
            "is_clear": one.is_clear,
            "aliases": one.aliases.iter().map(|alias| outcome.names(alias)).collect::<Vec<_>>(),
        })
    });
    let terms = answer
        .terms()
        .iter()
        .enumerate()
        .map(|(at, term)| json!({ "factors": term.factors, "squares": fit.squares(at), "freedom": fit.width(at) }));
    json!({
        "scale": answer.scale,
        "mean": estimate_json(&answer.mean),
        "effects": effects.collect::<Vec<_>>(),
        "interactions": interactions.collect::<Vec<_>>(),
        "terms": terms.collect::<Vec<_>>(),
        "coefficients": fit.coefficients(),
        "total_squares": fit.total_squares,
        "residual_squares": fit.residual_squares,
        "freedom": answer.freedom,
        "error_share": answer.error_share,
        "intervals": answer.spread,
        "doubts": answer.doubts,
    })
}
