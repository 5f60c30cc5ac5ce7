//! The places in the text that the measurements of a plan come from.

use crate::diagnostic::TextSpan;
use alloc::vec::Vec;

/// The origin of a measurement in the text.
pub(crate) struct MeasurementOrigin {
    /// The index of the text's item.
    pub(crate) item: usize,
    /// The origins of the measurement's parts.
    pub(crate) parts: Vec<WrittenPart>,
}

/// The index of a part in the item, and the place where its stack is written.
pub(crate) type WrittenPart = (usize, Option<TextSpan>);
