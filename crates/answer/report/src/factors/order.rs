//! The order of factors: by what each brings alone, with everything else as it is today, where that was run; else by what it brings on
//! average over the levels of the others.

use super::FactorOutcome;
use stackline_factors::{Effect, EffectAlone, FactorAnswer};

/// An effect with its place.
pub(super) struct RankedEffect<'a> {
    pub(super) effect: &'a Effect,
    /// The level that differs most from the first: alone, where that is known.
    pub(super) level: usize,
    /// By what it brings alone, else on average; from 1, the same where two cannot be distinguished.
    pub(super) rank: usize,
    /// Whether that is not distinguished from nothing.
    pub(super) may_be_nothing: bool,
    /// Whether it is by what it brings alone.
    pub(super) is_alone: bool,
}

/// Effects in that order.
pub(super) fn ranked<'a>(
    outcome: &FactorOutcome,
    answer: &'a FactorAnswer,
) -> Vec<RankedEffect<'a>> {
    let alone = answer.effects_alone(&outcome.design);
    if alone.len() < answer.effects.len() {
        return answer.effects.iter().map(on_average).collect();
    }
    let of = |one: &EffectAlone| {
        let effect = answer
            .effects
            .iter()
            .find(|effect| effect.factor == one.factor)?;
        Some(RankedEffect {
            effect,
            level: one.level,
            rank: one.rank,
            may_be_nothing: one.estimate.may_be_zero() || one.estimate.value == 0.0,
            is_alone: true,
        })
    };
    alone.iter().filter_map(of).collect()
}

fn on_average(effect: &Effect) -> RankedEffect<'_> {
    RankedEffect {
        effect,
        level: effect.level,
        rank: effect.rank,
        may_be_nothing: effect.estimate.may_be_zero(),
        is_alone: false,
    }
}

/// Ranks as they are printed: an effect that cannot be distinguished from nothing has none, those that share one have `=`.
pub(super) fn printed_ranks(ranks: &[(usize, bool)]) -> Vec<String> {
    let printed = |(rank, may_be_nothing): &(usize, bool)| {
        let tied = ranks
            .iter()
            .filter(|other| *other == &(*rank, false))
            .count();
        match (may_be_nothing, tied) {
            (true, _) => "-".into(),
            (_, 0 | 1) => rank.to_string(),
            _ => format!("={rank}"),
        }
    };
    ranks.iter().map(printed).collect()
}
