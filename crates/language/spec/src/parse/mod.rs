//! The parser: turns tokens into a syntax tree, by recursive descent.
//!
//! It reports a mistake and goes on at the next terminator, closing brace or item, so that all mistakes of a text are
//! reported together. It does not resolve names, except where a name decides which construct begins, and it opens no
//! files.

mod bound_value;
mod clause;
pub(crate) mod expectation;
mod factor;
mod frequency;
mod imp;
mod index;
mod item;
mod link;
mod name_scope;
mod network;
mod parser;
mod part;
mod procedure;
pub(crate) mod queue;
mod repetition;
mod router;
mod specification;
mod timing;
mod traffic_control;
mod value;

use crate::diagnostic::DiagnosticReport;
use crate::token::TokenKind;
use crate::token_layout::{Marked, TokenRole};
use crate::tree::{ExpectationItem, FactorItem, SpecItem, StackItem, Tree};
use alloc::boxed::Box;
use alloc::vec::Vec;
use parser::{ParseFailed, Parser};

/// Parses a specification text and marks its tokens for the formatter. Mistakes go to `report`.
pub(crate) fn parse(marked: &mut Marked<'_>, report: &mut DiagnosticReport) -> Tree {
    let mut parser = Parser::new(marked, report);
    parser.items()
}

/// Parses a text that is only a list of stacks, as after `over`; `None` after a mistake.
pub(crate) fn parse_stacks(
    marked: &mut Marked<'_>,
    report: &mut DiagnosticReport,
) -> Option<Vec<StackItem>> {
    let mut parser = Parser::new(marked, report);
    let stacks = parser.stacks().ok()?;
    if parser.kind() == TokenKind::End {
        return Some(stacks);
    }
    let _: ParseFailed = parser.unexpected(
        "only a comma-separated list of stacks is allowed here, as in `tcp, quic`",
        &[],
    );
    None
}

/// Parses a text that is only one condition of a figure or finding, as after `expect`; `None` after a mistake.
pub(crate) fn parse_condition(
    marked: &mut Marked<'_>,
    report: &mut DiagnosticReport,
) -> Option<ExpectationItem> {
    let mut parser = Parser::new(marked, report);
    let condition = parser.expectation().ok()?;
    if parser.kind() == TokenKind::End {
        return Some(condition);
    }
    let _: ParseFailed = parser.unexpected(
        "only one condition is allowed here, as in `p99 > 50 ms`, perhaps with `for` and a time",
        &[],
    );
    None
}

/// Parses a text that is only a factor, as after the word `factor`; `None` after a mistake.
pub(crate) fn parse_factor(
    marked: &mut Marked<'_>,
    report: &mut DiagnosticReport,
) -> Option<FactorItem> {
    let mut parser = Parser::new(marked, report);
    let factor = parser.factor().ok()?;
    parser.accept(TokenKind::Semicolon);
    if parser.kind() == TokenKind::End {
        return Some(factor);
    }
    let _: ParseFailed = parser.unexpected(
        "expected the end of the factor, as in `bandwidth of a - b x 10`",
        &[],
    );
    None
}

impl Parser<'_, '_> {
    /// Reads items up to the end of the text.
    pub(super) fn items(&mut self) -> Tree {
        let mut tree = Tree::default();
        while self.kind() != TokenKind::End {
            self.begin_line();
            let before = self.position();
            match self.item(&mut tree) {
                Ok(()) => {}
                Err(ParseFailed) => self.skip_item(&mut tree),
            }
            if self.position() == before {
                self.take(TokenRole::Plain);
            }
        }
        tree
    }

    /// After a mistake at the top level: skips to behind the next `;` or to the next item or specification.
    fn skip_item(&mut self, tree: &mut Tree) {
        self.skip_specification();
        // Sweeps that follow belong to the specification that could not be read.
        if self.kind() == TokenKind::Name && self.ahead(1) == TokenKind::Equals {
            let (sweeps, _) = self.sweeps();
            let broken = specification::broken(self.last_span(), sweeps);
            tree.items.push(SpecItem::Specification(Box::new(broken)));
        }
    }
}
