//! The texts of a plan: what was written, on one line, with the variables and the stack filled in.
//!
//! They are made from the tokens in the formatter's spelling, so that they can be parsed again.

use super::checker::Checker;
use super::clauses::{clause_stacks, clause_world};
use super::expansion::{StackOffer, StackSource, SweepCombination};
use crate::token_layout::Marked;
use crate::tree::{Clause, ClauseKind, PartItem, Specification, TokenIndices, Word};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::plan::MeasurementPart;

impl Checker<'_> {
    /// The text of a part by itself, with its own clauses and its stack.
    pub(crate) fn part_text(
        &self,
        specification: &Specification,
        index: usize,
        chosen: &SweepCombination<'_>,
    ) -> String {
        let (Some(part), Some((offer, _))) =
            (specification.parts.get(index), chosen.stacks.get(index))
        else {
            return String::new();
        };
        let mut words = self.part_words(specification, part, *offer, chosen);
        if let (Some(set), Some(first)) = (&part.set_at, words.first_mut()) {
            *first = self.pair_text(part, set, chosen);
        }
        if matches!(offer.from, StackSource::CommandLine | StackSource::Composer) {
            words.push(self.over_text(specification, *offer, chosen));
        }
        words.join(" ")
    }

    /// The head of a part for one pair of sets of hosts.
    fn pair_text(
        &self,
        part: &PartItem,
        set: &TokenIndices,
        chosen: &SweepCombination<'_>,
    ) -> String {
        let before = self.flat(part.head_at.start..set.start, chosen);
        let behind = self.flat(set.end..part.head_at.end, chosen);
        let name = |end: &Option<Word>| end.as_ref().map_or(String::new(), |end| end.text.clone());
        let text = format!(
            "{before} from {} to {} {behind}",
            name(&part.from),
            name(&part.to)
        );
        String::from(text.trim_start())
    }

    /// The text of a part within its measurement.
    fn part_words(
        &self,
        specification: &Specification,
        part: &PartItem,
        offer: StackOffer,
        chosen: &SweepCombination<'_>,
    ) -> Vec<String> {
        let mut words = alloc::vec![self.flat(part.head_at.clone(), chosen)];
        let timings = part.timings.iter().map(|timing| &timing.at);
        let others = timings.chain(&part.late_at);
        let others = others.map(|at| (at.start, self.flat(at.clone(), chosen)));
        let clauses = part.clauses.iter().filter_map(|clause| {
            let text = match clause_stacks(&clause.kind) {
                Some(_) if matches!(offer.from, StackSource::Part(_)) => {
                    self.over_text(specification, offer, chosen)
                }
                // The only stack, with its options.
                Some(_) if offer.from == StackSource::FarEnd => {
                    self.flat(clause.at.clone(), chosen)
                }
                _ => self.clause_text(clause, chosen)?,
            };
            Some((clause.at.start, text))
        });
        let mut tail: Vec<(usize, String)> = others.chain(clauses).collect();
        tail.sort_by_key(|(at, _)| *at);
        words.extend(tail.into_iter().map(|(_, text)| text));
        words
    }

    /// A clause that stays as it is; `None` for stacks, for a world that the command line replaces, and for expectations,
    /// which do not change what is measured.
    fn clause_text(&self, clause: &Clause, chosen: &SweepCombination<'_>) -> Option<String> {
        let replaced = clause_stacks(&clause.kind).is_some()
            || is_expectation(clause)
            || (clause_world(&clause.kind).is_some() && self.overrides.world.is_some());
        (!replaced).then(|| self.flat(clause.at.clone(), chosen))
    }

    fn over_text(
        &self,
        specification: &Specification,
        offer: StackOffer,
        chosen: &SweepCombination<'_>,
    ) -> String {
        let lists = |clauses: &[Clause]| {
            clauses.iter().find_map(|c| {
                clause_stacks(&c.kind)?
                    .get(offer.index)
                    .map(|s| s.at.clone())
            })
        };
        let text = match offer.from {
            StackSource::CommandLine => self.instead.as_ref().and_then(|instead| {
                let at = instead.stacks.get(offer.index)?.at.clone();
                Some(instead.marked.flat(at, &|name| chosen.text(name)))
            }),
            StackSource::Composer => lists(&specification.clauses).map(|at| self.flat(at, chosen)),
            StackSource::Part(part) => {
                let at = specification
                    .parts
                    .get(part)
                    .and_then(|part| lists(&part.clauses));
                at.map(|at| self.flat(at, chosen))
            }
            StackSource::FarEnd | StackSource::Default => None,
        };
        format!("over {}", text.unwrap_or_default())
    }

    /// The text of the whole measurement, without parts of which no pair runs.
    pub(crate) fn measurement_text(
        &self,
        specification: &Specification,
        chosen: &SweepCombination<'_>,
        parts: &[Option<MeasurementPart>],
    ) -> String {
        let limits = core::iter::once(&specification.head_at).chain(&specification.late_at);
        let mut words: Vec<String> = limits.map(|at| self.flat(at.clone(), chosen)).collect();
        let mut shared: Vec<String> = Vec::new();
        let offer = chosen.stacks.iter().map(|(offer, _)| *offer);
        let mut left = offer
            .clone()
            .zip(parts)
            .filter(|(_, part)| part.is_some())
            .map(|(offer, _)| offer);
        let common = left
            .find(|offer| matches!(offer.from, StackSource::CommandLine | StackSource::Composer));
        shared.extend(common.map(|offer| self.over_text(specification, offer, chosen)));
        shared.extend(self.overrides.world.map(|world| format!("in {world}")));
        let headed = !specification.composer_at.is_empty()
            || !specification.clauses.iter().all(is_expectation);
        if headed {
            words.extend(
                (!specification.composer_at.is_empty())
                    .then(|| self.flat(specification.composer_at.clone(), chosen)),
            );
            words.append(&mut shared);
            words.extend(
                specification
                    .clauses
                    .iter()
                    .filter_map(|clause| self.clause_text(clause, chosen)),
            );
        }
        let mut head = words.join(" ");
        head.push_str(if headed { ": " } else { " " });
        // Pairs of sets of hosts are written once.
        let mut last = None;
        let written = specification
            .parts
            .iter()
            .zip(offer)
            .zip(parts)
            .filter(|(_, part)| part.is_some())
            .filter(|((part, _), _)| last.replace(part.head_at.start) != Some(part.head_at.start));
        let written: Vec<String> = written
            .map(|((part, offer), _)| {
                let mut words = self.part_words(specification, part, offer, chosen);
                words.extend(shared.iter().cloned());
                words.join(" ")
            })
            .collect();
        head + &written.join(" | ") + &self.network_values(specification, chosen.bindings)
    }

    fn flat(&self, at: TokenIndices, chosen: &SweepCombination<'_>) -> String {
        Marked::flat(self.marked, at, &|name| chosen.text(name))
    }
}

/// Whether a clause says what the results must be.
const fn is_expectation(clause: &Clause) -> bool {
    matches!(clause.kind, ClauseKind::Expect(_))
}
