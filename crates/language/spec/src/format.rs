//! The formatter: the same tokens, each in one spelling, on lines of their own.
//!
//! It changes no plan and loses no comment; formatting twice is formatting once.

use crate::diagnostic::{Diagnostic, DiagnosticReport, TextOrigin};
use crate::token::{Comment, TokenKind};
use crate::token_layout::{Marked, TokenRole};
use crate::{parse, token};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// Columns a line may take.
const WIDE: usize = 100;

/// A text in its canonical form.
///
/// # Errors
/// The diagnostics, when the text cannot be read. Only its grammar matters here, not what its names stand for.
pub fn format(source: &str) -> Result<String, Vec<Diagnostic>> {
    let mut report = DiagnosticReport::default();
    let tokens = token::lex(source, TextOrigin::File, &mut report);
    let mut marked = Marked::new(source, &tokens);
    parse::parse(&mut marked, &mut report);
    if report.errors() > 0 {
        return Err(report.finish());
    }
    Ok(SpecPrinter::new(&marked).print())
}

struct SpecPrinter<'m> {
    marked: &'m Marked<'m>,
    out: String,
    /// Where the present line begins in `out`.
    line: usize,
    /// The token printed last on this line.
    last: Option<usize>,
    /// For each `{` its `}`.
    closing: Vec<usize>,
    next_comment: usize,
    depth: usize,
    /// Within a specification: where it ends, and whether it takes several lines.
    extent: usize,
    broken: bool,
    /// Within a block on one line: its `}`.
    inline: usize,
    /// A comment ends this line.
    commented: bool,
}

impl<'m> SpecPrinter<'m> {
    fn new(marked: &'m Marked<'m>) -> Self {
        Self {
            marked,
            out: String::new(),
            line: 0,
            last: None,
            closing: closing(marked),
            next_comment: 0,
            depth: 0,
            extent: 0,
            broken: false,
            inline: 0,
            commented: false,
        }
    }

    fn print(mut self) -> String {
        for index in 0..self.marked.tokens.list.len() {
            let mark = self.marked.mark(index);
            let semicolon = mark.role == TokenRole::Terminator;
            if self.kind(index) == TokenKind::End || mark.role == TokenRole::Dropped {
                continue;
            }
            // Comments before a terminator go behind it.
            if !semicolon {
                self.comments(index);
            }
            self.token(index);
        }
        self.extent = 0;
        self.comments(usize::MAX);
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
        self.out
    }

    fn kind(&self, index: usize) -> TokenKind {
        self.marked
            .token(index)
            .map_or(TokenKind::End, |token| token.kind)
    }

    /// The comments that stand before a token.
    fn comments(&mut self, index: usize) {
        while let Some(comment) = self.marked.tokens.comments.get(self.next_comment).copied() {
            if comment.before > index {
                return;
            }
            self.next_comment += 1;
            self.comment(comment, index);
        }
    }

    fn comment(&mut self, comment: Comment, index: usize) {
        let text = self
            .marked
            .source
            .get(comment.span.start..comment.span.end)
            .unwrap_or("");
        let behind = comment.breaks == 0 && self.last.is_some() && !self.commented;
        if behind {
            self.out.push(' ');
        } else {
            let inside = index < self.extent || (self.last.is_some() && !self.starts_line(index));
            self.new_line(inside, comment.breaks > 1 && !inside);
        }
        self.out.push_str(text);
        self.commented = true;
    }

    fn starts_line(&self, index: usize) -> bool {
        self.marked.mark(index).line || self.kind(index) == TokenKind::End || index == usize::MAX
    }

    /// Ends the line and indents the next.
    fn new_line(&mut self, continued: bool, blank: bool) {
        if !self.out.is_empty() {
            self.out.push('\n');
            if blank && !self.out.ends_with("{\n") {
                self.out.push('\n');
            }
        }
        self.line = self.out.len();
        for _ in 0..self.depth + usize::from(continued) {
            self.out.push_str("  ");
        }
        self.commented = false;
    }

    fn token(&mut self, index: usize) {
        let mark = self.marked.mark(index);
        let closes = self.kind(index) == TokenKind::CloseBrace;
        if closes {
            self.depth = self.depth.saturating_sub(1);
        }
        if let Some(extent) = mark.extent {
            self.extent = extent;
            self.broken =
                self.commented_within(index, extent) || self.marked.width(index..extent) > WIDE;
        }
        let inline = index <= self.inline && self.inline > 0;
        let blank = self
            .marked
            .token(index)
            .is_some_and(|token| token.breaks > 1);
        if mark.line && !inline {
            self.new_line(false, blank && !closes);
        } else if self.commented || (mark.soft && self.broken && index < self.extent) {
            self.new_line(true, false);
        } else if self
            .last
            .is_some_and(|last| self.marked.spaced(last, index))
        {
            self.out.push(' ');
        }
        self.out.push_str(&self.marked.spelled(index));
        if mark.terminate {
            self.out.push(';');
        }
        self.last = Some(index);
        if self.kind(index) == TokenKind::OpenBrace {
            self.open(index);
        }
    }

    fn open(&mut self, index: usize) {
        self.depth += 1;
        let close = self.closing.get(index).copied().unwrap_or(index);
        if index < self.inline {
            return;
        }
        let mut within = index + 1..=close;
        let one_line =
            within.all(|at| self.marked.token(at).is_some_and(|token| token.breaks == 0));
        let column = self.out.get(self.line..).unwrap_or("").chars().count();
        let fits = || column + 1 + self.marked.width(index + 1..close + 1) <= WIDE;
        if one_line && !self.commented_within(index, close + 1) && fits() {
            self.inline = close;
        }
    }

    /// Whether a comment stands behind the first of these tokens and before the last.
    fn commented_within(&self, first: usize, end: usize) -> bool {
        let rest = self
            .marked
            .tokens
            .comments
            .get(self.next_comment..)
            .unwrap_or_default();
        // One before the last terminator will stand behind it.
        let last = end
            .checked_sub(1)
            .filter(|last| self.marked.mark(*last).role == TokenRole::Terminator);
        let end = last.unwrap_or(end);
        let within = |comment: &Comment| comment.before > first && comment.before < end;
        rest.iter()
            .take_while(|comment| comment.before < end)
            .any(within)
    }
}

/// For each `{` the index of its `}`.
fn closing(marked: &Marked<'_>) -> Vec<usize> {
    let mut closing = vec![0; marked.tokens.list.len()];
    let mut open: Vec<usize> = Vec::new();
    for (index, token) in marked.tokens.list.iter().enumerate() {
        match token.kind {
            TokenKind::OpenBrace => open.push(index),
            TokenKind::CloseBrace => {
                if let Some(slot) = open.pop().and_then(|at| closing.get_mut(at)) {
                    *slot = index;
                }
            }
            _ => {}
        }
    }
    closing
}
