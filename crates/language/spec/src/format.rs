//! The formatter: prints the tokens of a text in their canonical spelling, each item and statement on its own line.
//!
//! The formatted text gives the same plan and keeps all comments; formatting it again changes nothing.

use crate::diagnostic::{Diagnostic, DiagnosticReport, TextOrigin};
use crate::token::{Comment, TokenKind};
use crate::token_layout::{Marked, TokenRole};
use crate::{parse, token};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// The largest number of columns of a line; a longer specification is broken where the parser marked soft breaks.
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

/// The text printed so far, and the position in the tokens.
struct SpecPrinter<'m> {
    marked: &'m Marked<'m>,
    out: String,
    /// The byte in `out` at which the current line begins.
    line: usize,
    /// The token printed last; `None` before the first.
    last: Option<usize>,
    /// For the index of each `{`, the index of its `}`.
    closing: Vec<usize>,
    /// Index of the first comment that is not yet printed.
    next_comment: usize,
    /// Number of braces that are open, which sets the indentation.
    depth: usize,
    /// One past the last token of the specification being printed.
    extent: usize,
    /// Whether that specification takes several lines.
    broken: bool,
    /// Index of the `}` of the block that is being printed on one line; 0 before the first such block.
    inline: usize,
    /// Whether a comment ends the current line, so that the next token needs a new one.
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
            // A comment before a terminator is printed behind it, so that `;` stays on the line of its specification.
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

    /// Prints the comments that stand before the token `index`.
    fn comments(&mut self, index: usize) {
        while let Some(comment) = self.marked.tokens.comments.get(self.next_comment).copied() {
            if comment.before > index {
                return;
            }
            self.next_comment += 1;
            self.comment(comment, index);
        }
    }

    /// Prints a comment: behind the last token if it was written on that line, else on a line of its own.
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

    /// Whether the token begins a line, or the text ends there.
    fn starts_line(&self, index: usize) -> bool {
        self.marked.mark(index).line || self.kind(index) == TokenKind::End || index == usize::MAX
    }

    /// Ends the line and indents the next: one level more if it continues a specification, after an empty line if
    /// `blank`.
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

    /// Prints a token with the line break or space before it.
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

    /// Behind a `{`: decides whether its block stays on one line, as it was written, if that fits.
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
        // A comment before the last terminator is printed behind it and so does not split the tokens.
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
