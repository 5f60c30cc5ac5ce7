//! Clauses that hold for a part, and variables that a stretch of the text names.

use crate::diagnostic::Span;
use crate::layout::{Marked, Role};
use crate::tree::{At, Clause, ClauseKind, PartItem, Specification, StackItem, Word};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use stackline_core::plan::World;

/// The clause of a kind that holds for a part: its own, or the composer's.
pub(crate) fn effective<'s, T>(
    specification: &'s Specification,
    part: &'s PartItem,
    pick: impl Fn(&'s ClauseKind) -> Option<T>,
) -> Option<(T, &'s Clause)> {
    let mut clauses = part.clauses.iter().chain(&specification.clauses);
    clauses.find_map(|clause| pick(&clause.kind).map(|found| (found, clause)))
}

pub(crate) fn across(kind: &ClauseKind) -> Option<&Word> {
    if let ClauseKind::Across(name) = kind {
        Some(name)
    } else {
        None
    }
}

pub(crate) fn world(kind: &ClauseKind) -> Option<World> {
    if let ClauseKind::In(world) = kind {
        Some(*world)
    } else {
        None
    }
}

pub(crate) fn over(kind: &ClauseKind) -> Option<&[StackItem]> {
    if let ClauseKind::Over(stacks) = kind {
        Some(stacks)
    } else {
        None
    }
}

/// Swept variables that tokens name, with where.
pub(crate) fn mentioned(marked: &Marked<'_>, at: At) -> Vec<(String, Span)> {
    at.filter(|index| marked.mark(*index).role == Role::Variable)
        .filter_map(|index| {
            marked
                .token(index)
                .map(|token| (marked.text(index).to_string(), token.span))
        })
        .collect()
}
