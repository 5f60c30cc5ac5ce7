//! The syntax tree of the clause `expect`.

use super::{SpecValue, TokenIndices, Word};
use crate::diagnostic::TextSpan;
use alloc::vec::Vec;

/// One expectation: `p99 < 20 ms`, `finding not queue_drop`.
#[derive(Clone, Debug)]
pub(crate) struct ExpectationItem {
    pub(crate) condition: ConditionItem,
    pub(crate) span: TextSpan,
    pub(crate) at: TokenIndices,
    /// The line on which it begins, from 1.
    pub(crate) line: usize,
}

/// What an expectation states.
#[derive(Clone, Debug)]
pub(crate) enum ConditionItem {
    /// A figure, a sign, and one bound; two for `within`.
    Figure(Word, BoundSign, Vec<BoundItem>),
    /// `finding X`.
    Finding(Word),
    /// `finding not X`.
    NoFinding(Word),
}

/// The sign between a figure and its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoundSign {
    Below,
    AtMost,
    Above,
    AtLeast,
    Within,
}

/// A bound with its unit.
#[derive(Clone, Debug)]
pub(crate) struct BoundItem {
    pub(crate) value: SpecValue,
    /// Whether `/s` follows the number.
    pub(crate) is_per_second: bool,
}
