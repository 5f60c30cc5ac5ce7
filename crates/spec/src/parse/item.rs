//! Items: hosts, networks, the seed, and which item stands here.

use super::value::Expect;
use super::{Parsed, Parser};
use crate::diagnostic::Diagnostic;
use crate::layout::Role;
use crate::names;
use crate::token::Kind;
use crate::tree::{HostItem, Item, LinkItem, NetworkItem, Readable, SwitchItem, Tree, Word};
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

const ITEM: &str = "expected a specification, `host`, `network`, `procedure` or `seed`";
const HOST: &str = "expected the name of a host";
const HOST_CLAUSES: &[&str] = &["via", "at", "on", "files"];
const LINK_CLAUSES: &[&str] = &["loss", "mtu", "queue"];
const SWITCH_STATEMENTS: &[&str] = &["buffer", "cells", "early_packet_discard"];

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
            (Kind::Name, "network") => self.network_item(tree)?,
            (Kind::Name, "procedure") => self.procedure_item(tree)?,
            (Kind::Name, _) if self.ahead(1) == Kind::Equals => self.lone_sweep(tree)?,
            (Kind::Number(_), _) => self.specification_item(tree),
            (Kind::Less, _) if self.is_bracketed(0) => self.specification_item(tree),
            (Kind::Name, _) if self.is_swept(0) && !self.is_application(0) => self.specification_item(tree),
            _ => return Err(self.no_item()),
        }
        Ok(())
    }

    fn specification_item(&mut self, tree: &mut Tree) {
        let specification = self.specification();
        tree.items.push(Item::Specification(Box::new(specification)));
    }

    fn no_item(&mut self) -> super::Failed {
        let found = self.describe();
        let forgot = self.is_application(0)
            || self.is_word(0, names::COMPOSERS)
            || self.is_word(0, &["priority", "from", "to"])
            || self.is_word(0, names::HEADS);
        let diagnostic = if forgot {
            Diagnostic::error(
                self.span(),
                "a specification begins with its number of runs",
                "expected a number before this",
            )
            .hint(format!("write `10 {}`", self.text(0)))
        } else {
            let diagnostic = Diagnostic::error(self.span(), format!("unexpected {found}"), ITEM);
            match self.kind() {
                Kind::Name if !self.report.full() => {
                    diagnostic.did_you_mean(self.text(0), names::ITEMS.iter().copied(), "see docs/LANGUAGE.md")
                }
                _ => diagnostic,
            }
        };
        self.fail(diagnostic)
    }

    /// A sweep with no specification right before it.
    fn lone_sweep(&mut self, tree: &mut Tree) -> Parsed<()> {
        let span = self.span();
        let after_broken = matches!(tree.items.last(), Some(Item::Specification(s)) if s.readable != Readable::Whole);
        if !after_broken {
            let message = format!("the variable `{}` belongs to no specification", self.text(0));
            self.report.push(
                Diagnostic::error(span, message, "expected behind the specification that uses it")
                    .hint("as in `10 bulk_get N*1000; N = 1024, 2048 ... 16384;`"),
            );
        }
        let (sweeps, _) = self.sweeps();
        tree.items.push(Item::Specification(Box::new(super::specification::broken(span, sweeps))));
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
                "at" => host.at.replace(self.quoted("expected a quoted address")?).is_some(),
                "files" => host.files.replace(self.quoted("expected a quoted directory")?).is_some(),
                _ => {
                    self.expect_word("cpu", "expected `cpu` and a number")?;
                    host.cpu.replace(self.number(Expect::Plain, "expected the number of a core")?).is_some()
                }
            };
            if twice {
                let message = format!("`{word}` is written twice");
                self.report.push(Diagnostic::error(span, message, "already given for this host"));
            }
        }
        self.item_end(HOST_CLAUSES)
    }

    fn via(&mut self) -> Parsed<Option<Word>> {
        if self.accept_word("local") {
            return Ok(None);
        }
        self.expect_word("ssh", "expected `local`, or `ssh` and a quoted destination")?;
        Ok(Some(self.quoted("expected a quoted destination such as \"user@10.0.0.5\"")?))
    }

    fn network_item(&mut self, tree: &mut Tree) -> Parsed<()> {
        self.take(Role::Keyword);
        let name = self.name("expected the name of a network")?;
        let mut network =
            NetworkItem { name, hosts: Vec::new(), switches: Vec::new(), links: Vec::new(), broken: true };
        let result = self.block("expected `{`", &mut |parser| parser.network_statement(&mut network));
        network.broken = !matches!(result, Ok(true));
        tree.items.push(Item::Network(network));
        result.map(|_| ())
    }

    fn network_statement(&mut self, network: &mut NetworkItem) -> Parsed<()> {
        match self.folded(0).as_str() {
            "host" => {
                self.take(Role::Keyword);
                network.hosts.push(self.name(HOST)?);
                while self.accept(Kind::Comma) {
                    network.hosts.push(self.name(HOST)?);
                }
                self.statement_end("expected `,` or `;`", &[])
            }
            "switch" => {
                self.take(Role::Keyword);
                let switch = self.switch()?;
                network.switches.push(switch);
                Ok(())
            }
            "link" => {
                self.take(Role::Keyword);
                let link = self.link()?;
                network.links.push(link);
                Ok(())
            }
            _ => Err(self.unexpected("expected `host`, `switch` or `link`", &["host", "switch", "link"])),
        }
    }

    fn switch(&mut self) -> Parsed<SwitchItem> {
        let name = self.name("expected the name of a switch")?;
        let mut switch = SwitchItem { name, buffer: None, per_port: false, cells: None, early_packet_discard: false };
        if self.kind() != Kind::OpenBrace {
            self.statement_end("expected `{` or `;`", &[])?;
            return Ok(switch);
        }
        self.block("expected `{`", &mut |parser| parser.switch_statement(&mut switch))?;
        if self.kind() == Kind::Semicolon {
            self.take(Role::Dropped);
        }
        Ok(switch)
    }

    fn switch_statement(&mut self, switch: &mut SwitchItem) -> Parsed<()> {
        let word = self.folded(0);
        if !SWITCH_STATEMENTS.contains(&word.as_str()) {
            return Err(self.unexpected("expected `buffer`, `cells` or `early_packet_discard`", SWITCH_STATEMENTS));
        }
        let span = self.take(Role::Keyword);
        let twice = match word.as_str() {
            "buffer" => {
                let twice = switch.buffer.replace(self.number(Expect::Size, "expected a size")?).is_some();
                if self.accept_word("per") {
                    self.expect_word("port", "expected `per port`")?;
                    switch.per_port = true;
                }
                twice
            }
            "cells" => switch.cells.replace(self.number(Expect::Size, "expected the size of a cell")?).is_some(),
            _ => {
                if !self.is_word(0, &["on", "off"]) {
                    return Err(self.unexpected("expected `on` or `off`", &["on", "off"]));
                }
                switch.early_packet_discard = self.folded(0) == "on";
                self.take(Role::Keyword);
                false
            }
        };
        if twice {
            let message = format!("`{word}` is written twice");
            self.report.push(Diagnostic::error(span, message, "already given for this switch"));
        }
        self.statement_end("expected `;`", &["per"])
    }

    fn link(&mut self) -> Parsed<LinkItem> {
        let first = self.name("expected the name of a host or switch")?;
        if self.kind() != Kind::Minus {
            let failed = Diagnostic::error(self.span(), format!("unexpected {}", self.describe()), "expected `-`")
                .hint("write the two ends with spaces around the `-`, as in `khons - edge`");
            return Err(self.fail(failed));
        }
        self.take(Role::Plain);
        let second = self.name("expected the name of a host or switch")?;
        let rate = self.rate()?;
        let delay = self.number(Expect::Time, "expected the propagation delay, such as `1 ms`")?;
        let mut link = LinkItem { ends: (first, second), rate, delay, loss: None, mtu: None, queue: None };
        while self.is_word(0, LINK_CLAUSES) {
            let (word, span) = (self.folded(0), self.take(Role::Keyword));
            let twice = match word.as_str() {
                "loss" => {
                    let loss = self.number(Expect::Plain, "expected a percentage")?;
                    self.expect(Kind::Percent, "expected `%`")?;
                    link.loss.replace(loss)
                }
                "mtu" => link.mtu.replace(self.number(Expect::Size, "expected a size in bytes")?),
                _ => link.queue.replace(self.number(Expect::Size, "expected a size")?),
            };
            if twice.is_some() {
                let message = format!("`{word}` is written twice");
                self.report.push(Diagnostic::error(span, message, "already given for this link"));
            }
        }
        self.statement_end("expected `loss`, `mtu`, `queue` or `;`", LINK_CLAUSES)?;
        Ok(link)
    }
}
