//! Tokens to a tree, by recursive descent.
//!
//! A mistake is reported and the parser goes on at the next terminator, closing brace or item, so that all mistakes of
//! a text come out together. What a name stands for is decided later, but for the names that are needed to distinguish one
//! construct from another. It never resolves, evaluates or reads anything.

mod clause;
mod factor;
mod frequency;
mod imp;
mod item;
mod link;
mod network;
mod parser;
mod part;
mod procedure;
pub(crate) mod queue;
mod specification;
mod value;

use crate::diagnostic::DiagnosticReport;
use crate::token::TokenKind;
use crate::token_layout::{Marked, TokenRole};
use crate::tree::{FactorItem, SpecItem, StackItem, Tree};
use alloc::boxed::Box;
use alloc::vec::Vec;
use parser::{ParseFailed, Parser};

/// Reads a text's items; marks the tokens for the formatter.
pub(crate) fn parse(marked: &mut Marked<'_>, report: &mut DiagnosticReport) -> Tree {
    let mut parser = Parser::new(marked, report);
    parser.items()
}

/// Reads a list of stacks, as after `over`.
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

/// Reads a factor, as behind `factor`.
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
    fn items(&mut self) -> Tree {
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

    /// After a mistake at the top: on behind the next `;`, at an item, or at what looks like the next specification.
    fn skip_item(&mut self, tree: &mut Tree) {
        self.skip_specification();
        // Sweeps of what could not be read belong to it.
        if self.kind() == TokenKind::Name && self.ahead(1) == TokenKind::Equals {
            let (sweeps, _) = self.sweeps();
            let broken = specification::broken(self.last_span(), sweeps);
            tree.items.push(SpecItem::Specification(Box::new(broken)));
        }
    }
}
