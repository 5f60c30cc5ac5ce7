//! Items: hosts, the seed, and which item stands here.

use super::network::SHARE;
use super::parser::{Parsed, Parser};
use super::value::Expect;
use crate::diagnostic::{Diagnostic, Span};
use crate::layout::Role;
use crate::names;
use crate::token::Kind;
use crate::tree::{HostItem, Item, Readable, Tree, Word};
use alloc::boxed::Box;
use alloc::format;

const ITEM: &str = "expected a specification, `factor`, `host`, `network`, `procedure` or `seed`";
const HOST: &str = "expected the name of a host";
const HOST_CLAUSES: &[&str] = &["via", "at", "on", "files", "share"];

impl Parser<'_, '_> {
    pub(crate) fn item(&mut self, tree: &mut Tree) -> Parsed<()> {
        match (self.kind(), self.folded(0).as_str()) {
            (Kind::Semicolon, _) => {
                self.take(Role::Dropped);
            }
            (Kind::Name, "host") => {
                let mut host = HostItem::default();
                self.take(Role::Keyword);
                let result = self.host(&mut host);
                tree.items.push(Item::Host(host));
                result?;
            }
            (Kind::Name, "seed") => {
                let start = self.take(Role::Keyword);
                let value = self.number(Expect::Plain, "expected a whole number")?;
                let span = start.to(self.last_span());
                tree.items.push(Item::Seed(value, span));
                self.item_end(&[])?;
            }
            (Kind::Name, "factor") if self.ahead(1) != Kind::Equals => {
                self.take(Role::Keyword);
                let factor = self.factor()?;
                tree.items.push(Item::Factor(factor));
                self.item_end(&[])?;
            }
            (Kind::Name, "network") => self.network_item(tree)?,
            (Kind::Name, "procedure") => self.procedure_item(tree)?,
            (Kind::Name, _) if self.ahead(1) == Kind::Equals => self.lone_sweep(tree)?,
            (Kind::Number(_), _) => self.specification_item(tree),
            (Kind::Less, _) if self.is_bracketed(0) => self.specification_item(tree),
            (Kind::Name, _) if self.is_swept(0) && !self.is_application(0) => {
                self.specification_item(tree)
            }
            _ => return Err(self.no_item()),
        }
        Ok(())
    }

    fn specification_item(&mut self, tree: &mut Tree) {
        let specification = self.specification();
        tree.items
            .push(Item::Specification(Box::new(specification)));
    }

    fn no_item(&mut self) -> super::parser::Failed {
        let found = self.describe();
        let forgot = self.is_application(0)
            || self.is_word(0, names::COMPOSERS)
            || self.is_word(0, &["priority", "from", "to"])
            || self.is_word(0, names::HEADS);
        let later =
            self.begins_clause() || (self.is_word(0, names::HEADS) && self.limit_before_runs());
        let diagnostic = if self.begins_clause() && self.last_text() == "," {
            let label = "nothing stands between a part and its clauses";
            Diagnostic::error(self.last_span(), "unexpected `,`", label).hint("leave it out")
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
        } else {
            let diagnostic = Diagnostic::error(self.span(), format!("unexpected {found}"), ITEM);
            match self.kind() {
                Kind::Name if !self.report.full() => diagnostic.did_you_mean(
                    self.text(0),
                    names::ITEMS.iter().copied(),
                    "see docs/LANGUAGE.md",
                ),
                _ => diagnostic,
            }
        };
        self.fail(diagnostic)
    }

    /// How the specification at hand begins, up to its application type or a few words.
    fn beginning(&self) -> Span {
        const WORDS: usize = 6;
        let ends = |at: &usize| {
            self.is_application(*at) || !matches!(self.ahead(*at), Kind::Name | Kind::Number(_))
        };
        let last = (0..WORDS)
            .find(ends)
            .filter(|at| self.is_application(*at))
            .unwrap_or(0);
        self.span().to(self.token(last).span)
    }

    /// Whether the limit at hand is followed by the number of runs.
    fn limit_before_runs(&self) -> bool {
        const LONGEST: usize = 6;
        let over = |at: &usize| {
            matches!(self.ahead(*at), Kind::Semicolon | Kind::End) || self.is_application(*at)
        };
        let end = (1..=LONGEST).find(over).unwrap_or(LONGEST);
        (1..end)
            .filter(|at| matches!(self.ahead(*at), Kind::Number(_)))
            .count()
            > 1
    }

    /// A sweep with no specification right before it.
    fn lone_sweep(&mut self, tree: &mut Tree) -> Parsed<()> {
        let span = self.span();
        let after_broken = matches!(tree.items.last(), Some(Item::Specification(s)) if s.readable != Readable::Whole);
        if !after_broken {
            let message = format!(
                "the variable `{}` belongs to no specification",
                self.text(0)
            );
            self.report.push(
                Diagnostic::error(
                    span,
                    message,
                    "expected behind the specification that uses it",
                )
                .hint("as in `10 bulk_get N*1000; N = 1024, 2048 ... 16384;`"),
            );
        }
        let (sweeps, _) = self.sweeps();
        tree.items
            .push(Item::Specification(Box::new(super::specification::broken(
                span, sweeps,
            ))));
        Ok(())
    }

    fn item_end(&mut self, words: &[&str]) -> Parsed<()> {
        match self.kind() {
            Kind::Semicolon => {
                self.take(Role::Terminator);
                Ok(())
            }
            _ => Err(self.unexpected("expected `;`", words)),
        }
    }

    fn host(&mut self, host: &mut HostItem) -> Parsed<()> {
        host.names.push(self.name(HOST)?);
        while self.accept(Kind::Comma) {
            host.names.push(self.name(HOST)?);
        }
        while self.is_word(0, HOST_CLAUSES) {
            let (word, span) = (self.folded(0), self.take(Role::Keyword));
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
                        .replace(self.number(Expect::Plain, "expected the number of a core")?)
                        .is_some()
                }
            };
            if twice {
                let message = format!("`{word}` is written twice");
                self.report.push(Diagnostic::error(
                    span,
                    message,
                    "already given for this host",
                ));
            }
        }
        self.item_end(HOST_CLAUSES)
    }

    fn via(&mut self) -> Parsed<Option<Word>> {
        if self.accept_word("local") {
            return Ok(None);
        }
        self.expect_word("ssh", "expected `local`, or `ssh` and a quoted destination")?;
        Ok(Some(self.quoted(
            "expected a quoted destination such as \"user@10.0.0.5\"",
        )?))
    }
}
