//! Diagnostics: what is wrong with a text, where, what was expected, and what would help.
//!
//! This file collects and limits the list; it does not print it or decide what a mistake is.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

/// Number of diagnostics after which further ones are only counted.
const MOST: usize = 100;

/// How serious a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The text gives no plan.
    Error,
    /// The text gives a plan, which may not be the intended one.
    Warning,
}

/// What was read when a diagnostic was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiagnosticStage {
    /// The grammar: what stands where.
    #[default]
    Grammar,
    /// The meaning: names, values, what stacks and worlds can carry out.
    Meaning,
}

/// The text that a span refers to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextOrigin {
    /// The specification.
    #[default]
    File,
    /// The text of [`Overrides::over`](crate::Overrides::over).
    Over,
    /// The argument of the host with that index in [`Overrides::hosts`](crate::Overrides::hosts).
    Host(usize),
}

/// An error or a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// What is wrong, in one sentence.
    pub message: String,
    /// The bytes of the text that it is about.
    pub span: Range<usize>,
    /// The text that the span refers to.
    pub origin: TextOrigin,
    /// The text below the span: what was expected there.
    pub label: String,
    /// What to write instead.
    pub hint: Option<String>,
    /// What was read when it was found.
    pub stage: DiagnosticStage,
}

/// A range of bytes in one of the texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextSpan {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) origin: TextOrigin,
}

impl TextSpan {
    /// The span from the start of `self` to the end of `last`.
    pub(crate) fn to(self, last: Self) -> Self {
        Self {
            end: last.end.max(self.start),
            ..self
        }
    }
}

impl Diagnostic {
    pub(crate) fn error(
        span: TextSpan,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Self {
        let (message, label) = (message.into(), label.into());
        Self {
            severity: Severity::Error,
            message,
            span: span.start..span.end,
            origin: span.origin,
            label,
            hint: None,
            stage: DiagnosticStage::Grammar,
        }
    }

    pub(crate) fn warning(
        span: TextSpan,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(span, message, label)
        }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// The error of one row of a sweep, named by its values, where other rows of it are right.
    pub(crate) fn leaves_out(self, row: &str) -> Self {
        if self.severity == Severity::Warning {
            return self;
        }
        Self {
            severity: Severity::Warning,
            message: format!("the row {row} is left out: {}", self.message),
            ..self
        }
    }

    /// Adds the hint `did you mean ...` when a candidate is near, otherwise the hint `otherwise`.
    pub(crate) fn did_you_mean<'c>(
        self,
        word: &str,
        candidates: impl IntoIterator<Item = &'c str>,
        otherwise: impl Into<String>,
    ) -> Self {
        match nearest(word, candidates) {
            Some(near) => self.hint(format!("did you mean `{near}`?")),
            None => self.hint(otherwise),
        }
    }
}

/// A place in a [`DiagnosticReport`].
#[derive(Clone, Copy)]
pub(crate) struct ReportMark {
    listed: usize,
    more: usize,
}

/// The diagnostics found so far.
#[derive(Debug, Default)]
pub(crate) struct DiagnosticReport {
    list: Vec<Diagnostic>,
    more: usize,
    stage: DiagnosticStage,
}

impl DiagnosticReport {
    /// Adds a diagnostic, unless it is a duplicate or there are [`MOST`] already.
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        let diagnostic = Diagnostic {
            stage: self.stage,
            ..diagnostic
        };
        if self.list.contains(&diagnostic) {
            return;
        }
        if self.full() {
            self.more += 1;
        } else {
            self.list.push(diagnostic);
        }
    }

    /// What follows is about the meaning of the text.
    pub(crate) const fn begin_meaning(&mut self) {
        self.stage = DiagnosticStage::Meaning;
    }

    /// The value, or `None` after the mistake was added.
    pub(crate) fn keep<T>(&mut self, result: Result<T, Diagnostic>) -> Option<T> {
        result.map_err(|mistake| self.push(mistake)).ok()
    }

    /// Whether further diagnostics are only counted, so that searching for hints is pointless.
    pub(crate) const fn full(&self) -> bool {
        self.list.len() >= MOST
    }

    /// The place behind what was found so far, for [`take_since`](Self::take_since).
    pub(crate) const fn mark(&self) -> ReportMark {
        ReportMark {
            listed: self.list.len(),
            more: self.more,
        }
    }

    /// Takes out what was added behind a place.
    pub(crate) fn take_since(&mut self, mark: ReportMark) -> Vec<Diagnostic> {
        self.more = mark.more;
        self.list.split_off(mark.listed.min(self.list.len()))
    }

    /// Number of errors so far, of all kinds.
    pub(crate) fn errors(&self) -> usize {
        self.more
            + self
                .list
                .iter()
                .filter(|d| d.severity == Severity::Error)
                .count()
    }

    /// The diagnostics in the order of the text; those of the command line come first.
    pub(crate) fn finish(mut self) -> Vec<Diagnostic> {
        self.list
            .sort_by_key(|d| (core::cmp::Reverse(d.origin), d.span.start, d.span.end));
        // A message that applies to several switches declared at one place is given once.
        self.list.dedup_by(|next, first| next == first);
        if self.more > 0
            && let Some(last) = self.list.last_mut()
        {
            last.hint = Some(format!("{} more not shown; fix these first", self.more));
        }
        self.list
    }
}

/// The candidate that `word` was most likely meant to be.
#[must_use]
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<String> {
    const LONGEST: usize = 64;
    if word.len() > LONGEST {
        return None;
    }
    let plain = crate::spelling::fold(word);
    let allowed = (word.len() / 3).max(1);
    let candidates: Vec<&str> = candidates.into_iter().collect();
    if let Some(ours) = crate::repair::translate_word(&plain)
        .iter()
        .find(|ours| candidates.contains(ours))
    {
        return Some((*ours).to_string());
    }
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST)
        .map(|candidate| {
            (
                strsim::osa_distance(&plain, &crate::spelling::fold(candidate)),
                candidate,
            )
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        assert_eq!(
            nearest("bulk-gte", ["rr", "bulk_get", "bulk_put"]).as_deref(),
            Some("bulk_get")
        );
        assert_eq!(nearest("KIB", ["KiB", "MiB"]).as_deref(), Some("KiB"));
        assert_eq!(nearest("zzz", ["rr", "bulk_get"]), None);
    }

    #[test]
    fn the_list_is_bounded() {
        let mut report = DiagnosticReport::default();
        for start in 0..500 {
            report.push(Diagnostic::error(
                TextSpan {
                    start,
                    end: start + 1,
                    ..TextSpan::default()
                },
                "m",
                "l",
            ));
        }
        assert_eq!(report.errors(), 500);
        let list = report.finish();
        assert_eq!(list.len(), MOST);
        assert!(
            list.last()
                .and_then(|d| d.hint.as_deref())
                .is_some_and(|h| h.contains("400 more"))
        );
    }
}
