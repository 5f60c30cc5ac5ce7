//! A step of a procedure with its place in the text: what `procedure` makes of a tree and `mirror` compares.

use crate::diagnostic::Span;
use alloc::vec::Vec;
use stackline_core::program::{Call, CountArgument};

/// A step and its place in the text.
#[derive(Debug)]
pub(crate) struct SpannedStep {
    pub(crate) span: Span,
    pub(crate) kind: StepKind,
}

/// What a step does.
#[derive(Debug)]
pub(crate) enum StepKind {
    Call(Call),
    Repeat(CountArgument, Vec<SpannedStep>),
}
