//! Changes of a text: what is put in the place of which bytes.

use crate::diagnostic::Span;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

/// One change.
pub(super) struct Edit {
    at: Range<usize>,
    text: String,
}

impl Edit {
    /// Puts a text in the place of another.
    pub(super) fn replace(span: Span, text: impl Into<String>) -> Self {
        Self {
            at: span.start..span.end,
            text: text.into(),
        }
    }

    /// Puts a text behind another.
    pub(super) fn behind(span: Span, text: impl Into<String>) -> Self {
        Self {
            at: span.end..span.end,
            text: text.into(),
        }
    }

    /// Puts a text before another.
    pub(super) fn before(span: Span, text: impl Into<String>) -> Self {
        Self {
            at: span.start..span.start,
            text: text.into(),
        }
    }

    /// Takes a text away.
    pub(super) fn without(span: Span) -> Self {
        Self::replace(span, "")
    }
}

/// The text with all changes.
pub(super) fn applied(source: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| edit.at.start);
    let (mut text, mut last) = (String::new(), 0);
    for Edit { at, text: new } in edits {
        text.push_str(source.get(last..at.start).unwrap_or(""));
        text.push_str(&new);
        last = at.end;
    }
    text.push_str(source.get(last..).unwrap_or(""));
    text
}
