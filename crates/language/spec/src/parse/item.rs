//! Decides which item begins at a token, and parses the small items: hosts and the seed.

use super::network::SHARE;
use super::parser::{Parsed, Parser};
use super::value::ExpectedUnit;
use crate::agent_destination::WAYS;
use crate::diagnostic::{Diagnostic, TextSpan};
use crate::spelling;
use crate::token::TokenKind;
use crate::token_layout::TokenRole;
use crate::tree::{HostItem, Readable, SpecItem, Tree, ViaItem};
use alloc::boxed::Box;
use alloc::format;

const ITEM: &str =
    "expected a specification, `factor`, `host`, `network`, `procedure`, `seed` or `template`";
const HOST: &str = "expected a host name";
/// Keywords of statements that stand only within a network.
const OF_NETWORKS: &[&str] = &["imp", "link", "router", "switch"];
const HOST_CLAUSES: &[&str] = &["via", "at", "on", "files", "share"];

impl Parser<'_, '_> {
    /// Reads the item at the current token and adds it to the tree.
    pub(crate) fn item(&mut self, tree: &mut Tree) -> Parsed<()> {
        match (self.kind(), self.folded(0).as_str()) {
            (TokenKind::Semicolon, _) => {
                self.take(TokenRole::Dropped);
            }
            (TokenKind::Name, "host") => {
                let mut host = HostItem::default();
                self.take(TokenRole::Keyword);
                let result = self.host(&mut host);
                tree.items.push(SpecItem::Host(host));
                result?;
            }
            (TokenKind::Name, "seed") => {
                let start = self.take(TokenRole::Keyword);
                let value = self.number(ExpectedUnit::Plain, "expected a whole number")?;
                let span = start.to(self.last_span());
                tree.items.push(SpecItem::Seed(value, span));
                self.item_end(&[])?;
            }
            (TokenKind::Name, "factor") if self.ahead(1) != TokenKind::Equals => {
                self.take(TokenRole::Keyword);
                let factor = self.factor()?;
                tree.items.push(SpecItem::Factor(factor));
                self.item_end(&[])?;
            }
            (TokenKind::Name, "template") if self.ahead(1) == TokenKind::Name => {
                self.template_item()?;
            }
            (TokenKind::Name, "network") => self.network_item(tree)?,
            (TokenKind::Name, "procedure") => self.procedure_item(tree)?,
            (TokenKind::Name, _) if self.ahead(1) == TokenKind::Equals => self.lone_sweep(tree)?,
            (TokenKind::Number(_), _) => self.specification_item(tree),
            (TokenKind::Less, _) if self.is_bracketed(0) => self.specification_item(tree),
            (TokenKind::Name, _) if self.is_swept(0) && !self.is_application(0) => {
                self.specification_item(tree)
            }
            _ => return Err(self.no_item()),
        }
        Ok(())
    }

    fn specification_item(&mut self, tree: &mut Tree) {
        let specification = self.specification();
        tree.items
            .push(SpecItem::Specification(Box::new(specification)));
    }

    /// Reports that no item begins here, with a hint for the mistakes that are common.
    fn no_item(&mut self) -> super::parser::ParseFailed {
        let found = self.describe();
        let forgot = self.is_application(0)
            || self.is_word(0, spelling::COMPOSERS)
            || self.is_word(0, &["priority", "from", "to"])
            || self.is_word(0, spelling::HEADS);
        let later =
            self.begins_clause() || (self.is_word(0, spelling::HEADS) && self.limit_before_runs());
        let diagnostic = if self.begins_clause() && self.last_text() == "," {
            let label = "expected nothing between a part and its clauses";
            Diagnostic::error(self.last_span(), "unexpected `,`", label).hint("omit it")
        } else if later {
            Diagnostic::error(
                self.span(),
                "a specification begins with its number of runs",
                "expected a number before this",
            )
            .hint("the number of runs comes first, as in `10 timelimit 2` or `10 over tcp:`")
        } else if forgot {
            let beginning = self.beginning();
            Diagnostic::error(
                beginning,
                "a specification begins with its number of runs",
                "expected a number before this",
            )
            .hint(format!("write `10 {}`", self.written(beginning)))
        } else if self.is_word(0, OF_NETWORKS) && self.ahead(1) == TokenKind::Name {
            Diagnostic::error(
                self.span(),
                format!("`{found}` belongs in a network", found = self.text(0)),
                ITEM,
            )
            .hint("for example `network lan { host a, b; link a - b 1 Gbit/s 1 ms; }` and `10 from a to b rr 32*100 across lan;`")
        } else {
            let diagnostic = Diagnostic::error(self.span(), format!("unexpected {found}"), ITEM);
            match self.kind() {
                TokenKind::Name if !self.report.full() => diagnostic.did_you_mean(
                    self.text(0),
                    spelling::ITEMS.iter().copied(),
                    "see `stackline help language`",
                ),
                _ => diagnostic,
            }
        };
        self.fail(diagnostic)
    }

    /// The beginning of a specification without its number of runs: up to its application type if that comes within a
    /// few words, else the first word.
    fn beginning(&self) -> TextSpan {
        const WORDS: usize = 6;
        let ends = |at: &usize| {
            self.is_application(*at)
                || !matches!(self.ahead(*at), TokenKind::Name | TokenKind::Number(_))
        };
        let last = (0..WORDS)
            .find(ends)
            .filter(|at| self.is_application(*at))
            .unwrap_or(0);
        self.span().to(self.token(last).span)
    }

    /// Whether the number of runs follows the limit that stands here: whether more than one number comes before the
    /// application type.
    fn limit_before_runs(&self) -> bool {
        const LONGEST: usize = 6;
        let over = |at: &usize| {
            matches!(self.ahead(*at), TokenKind::Semicolon | TokenKind::End)
                || self.is_application(*at)
        };
        let end = (1..=LONGEST).find(over).unwrap_or(LONGEST);
        (1..end)
            .filter(|at| matches!(self.ahead(*at), TokenKind::Number(_)))
            .count()
            > 1
    }

    /// Reads sweeps with no specification right before them, which is a mistake unless that one could not be read in
    /// full.
    fn lone_sweep(&mut self, tree: &mut Tree) -> Parsed<()> {
        let span = self.span();
        let after_broken = matches!(tree.items.last(), Some(SpecItem::Specification(s)) if s.readable != Readable::Whole);
        if !after_broken {
            let message = format!(
                "the variable `{}` does not belong to any specification",
                self.text(0)
            );
            self.report.push(
                Diagnostic::error(
                    span,
                    message,
                    "expected after the specification that uses it",
                )
                .hint("for example `10 bulk_get N*1000; N = 1024, 2048 ... 16384;`"),
            );
        }
        let (sweeps, _) = self.sweeps();
        tree.items.push(SpecItem::Specification(Box::new(
            super::specification::broken(span, sweeps),
        )));
        Ok(())
    }

    /// Reads the `;` behind an item.
    fn item_end(&mut self, words: &[&str]) -> Parsed<()> {
        match self.kind() {
            TokenKind::Semicolon => {
                self.take(TokenRole::Terminator);
                Ok(())
            }
            _ => Err(self.unexpected("expected `;`", words)),
        }
    }

    /// Reads the names of hosts and their clauses, behind the word `host`.
    fn host(&mut self, host: &mut HostItem) -> Parsed<()> {
        host.names.push(self.node_name(HOST)?);
        while self.accept(TokenKind::Comma) {
            host.names.push(self.node_name(HOST)?);
        }
        while self.is_word(0, HOST_CLAUSES) {
            let (word, span) = (self.folded(0), self.take(TokenRole::Keyword));
            let twice = match word.as_str() {
                "via" => host.via.replace(self.via()?).is_some(),
                "at" => host
                    .at
                    .replace(self.quoted("expected a quoted address")?)
                    .is_some(),
                "files" => host
                    .files
                    .replace(self.quoted("expected a quoted directory")?)
                    .is_some(),
                "share" => host.share.replace(self.percentage(SHARE)?).is_some(),
                _ => {
                    self.expect_word("cpu", "expected `cpu` and a number")?;
                    host.cpu
                        .replace(self.number(ExpectedUnit::Plain, "expected a core number")?)
                        .is_some()
                }
            };
            if twice {
                let message = format!("`{word}` is given twice");
                self.report.push(Diagnostic::error(
                    span,
                    message,
                    "already given for this host",
                ));
            }
        }
        self.item_end(HOST_CLAUSES)
    }

    /// Reads how an agent is reached, behind `via`; `None` for `local`.
    fn via(&mut self) -> Parsed<Option<ViaItem>> {
        if self.accept_word("local") {
            return Ok(None);
        }
        for (way, form) in WAYS {
            if self.accept_word(way) {
                let expected = format!("expected a quoted destination such as {form}");
                let destination = self.quoted(&expected)?;
                return Ok(Some(ViaItem { way, destination }));
            }
        }
        Err(self.unexpected(
            "expected `local`, or `ssh`, `tcp` or `exec` and a quoted destination",
            &["local", "ssh", "tcp", "exec"],
        ))
    }
}
