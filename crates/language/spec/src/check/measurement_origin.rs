//! Where in the text the measurements of a plan come from.

use crate::diagnostic::TextSpan;
use alloc::vec::Vec;

/// Where a measurement of the plan comes from.
pub(crate) struct MeasurementOrigin {
    /// Which item of the text.
    pub(crate) item: usize,
    /// Its parts.
    pub(crate) parts: Vec<WrittenPart>,
}

/// Which part of the item it is, and where its stack is written.
pub(crate) type WrittenPart = (usize, Option<TextSpan>);
