//! Edits of a text: which bytes are replaced, and by what text.

use crate::diagnostic::TextSpan;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

/// Replaces the bytes `at` by `text`. An empty range inserts.
#[derive(PartialEq, Eq)]
pub(super) struct LevelEdit {
    at: Range<usize>,
    text: String,
}

impl LevelEdit {
    /// Replaces the span by `text`.
    pub(super) fn replace(span: TextSpan, text: impl Into<String>) -> Self {
        Self {
            at: span.start..span.end,
            text: text.into(),
        }
    }

    /// Inserts `text` directly behind the span.
    pub(super) fn behind(span: TextSpan, text: impl Into<String>) -> Self {
        Self {
            at: span.end..span.end,
            text: text.into(),
        }
    }

    /// Inserts `text` directly before the span.
    pub(super) fn before(span: TextSpan, text: impl Into<String>) -> Self {
        Self {
            at: span.start..span.start,
            text: text.into(),
        }
    }

    /// Deletes the span.
    pub(super) fn without(span: TextSpan) -> Self {
        Self::replace(span, "")
    }
}

/// Applies all edits, which must not overlap; what two of them do alike, as for the passes of a loop, is done once.
pub(super) fn apply_edits(source: &str, mut edits: Vec<LevelEdit>) -> String {
    edits.sort_by_key(|edit| edit.at.start);
    edits.dedup();
    let (mut text, mut last) = (String::new(), 0);
    for LevelEdit { at, text: new } in edits {
        text.push_str(source.get(last..at.start).unwrap_or(""));
        text.push_str(&new);
        last = at.end;
    }
    text.push_str(source.get(last..).unwrap_or(""));
    text
}
