//! A step of a procedure with its place in the text: made by `procedure` and compared by `side_matching`.

use crate::diagnostic::TextSpan;
use alloc::vec::Vec;
use stackline_core::procedure::{CountArgument, OperationCall};

/// A step and its place in the text.
#[derive(Debug)]
pub(crate) struct SpannedStep {
    pub(crate) span: TextSpan,
    pub(crate) kind: StepKind,
}

/// What a step does.
#[derive(Debug)]
pub(crate) enum StepKind {
    Call(OperationCall),
    Repeat(CountArgument, Vec<SpannedStep>),
}
