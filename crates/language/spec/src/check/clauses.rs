//! Finds the clause that applies to a part, and the variables that are named in a range of tokens.

use crate::diagnostic::TextSpan;
use crate::token_layout::{Marked, TokenRole};
use crate::tree::{Clause, ClauseKind, PartItem, Specification, StackItem, TokenIndices, Word};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use stackline_core::plan::World;

/// The clause of a kind that applies to a part: its own, otherwise the composer's.
pub(crate) fn find_effective_clause<'s, T>(
    specification: &'s Specification,
    part: &'s PartItem,
    pick: impl Fn(&'s ClauseKind) -> Option<T>,
) -> Option<(T, &'s Clause)> {
    let mut clauses = part.clauses.iter().chain(&specification.clauses);
    clauses.find_map(|clause| pick(&clause.kind).map(|found| (found, clause)))
}

pub(crate) fn clause_network(kind: &ClauseKind) -> Option<&Word> {
    if let ClauseKind::Across(name) = kind {
        Some(name)
    } else {
        None
    }
}

pub(crate) fn clause_world(kind: &ClauseKind) -> Option<World> {
    if let ClauseKind::In(world) = kind {
        Some(*world)
    } else {
        None
    }
}

pub(crate) fn clause_stacks(kind: &ClauseKind) -> Option<&[StackItem]> {
    if let ClauseKind::Over(stacks) = kind {
        Some(stacks)
    } else {
        None
    }
}

/// The swept variables that these tokens name, with their places.
pub(crate) fn find_variables(marked: &Marked<'_>, at: TokenIndices) -> Vec<(String, TextSpan)> {
    at.filter(|index| marked.mark(*index).role == TokenRole::Variable)
        .filter_map(|index| {
            marked
                .token(index)
                .map(|token| (marked.text(index).to_string(), token.span))
        })
        .collect()
}
