//! The order of factors: by the effect of each alone, with all others at their first level, if that was run; else by its effect
//! averaged over the levels of the others.

use super::FactorOutcome;
use stackline_factors::{Effect, EffectAlone, FactorAnswer};

/// An effect with its rank.
pub(super) struct RankedEffect<'a> {
    pub(super) effect: &'a Effect,
    /// The level that differs most from the first, by the effect alone if known.
    pub(super) level: usize,
    /// The rank from 1, by the effect alone, else on average; equal if effects cannot be distinguished.
    pub(super) rank: usize,
    /// Whether that effect cannot be distinguished from zero.
    pub(super) may_be_nothing: bool,
    /// Whether the rank is by the effect alone.
    pub(super) is_alone: bool,
}

/// The effects in the order of their ranks.
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

/// Ranks as text: `-` for an effect that cannot be distinguished from zero, with `=` before a rank that several share.
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
