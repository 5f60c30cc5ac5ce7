//! Parses what routers have beside the properties of switches, and the routes of routers and hosts.

use super::parser::{Parsed, Parser};
use super::value::ExpectedUnit;
use crate::diagnostic::{Diagnostic, TextSpan};
use crate::token::TokenKind;
use crate::token_layout::TokenRole;
use crate::tree::{GateItem, RouteItem, SwitchItem};
use alloc::format;

/// The statements that only a router has.
pub(super) const OF_ROUTERS: &[&str] = &["icmp", "route", "nat", "firewall"];

impl Parser<'_, '_> {
    /// Refuses a router's statement in a switch.
    pub(super) fn refuse_in_switch(&mut self, word: &str) -> Parsed<()> {
        let message = format!("a switch has no `{word}`");
        let diagnostic = Diagnostic::error(self.span(), message, "only a router has it");
        Err(self.fail(diagnostic.hint("declare the node as a `router`")))
    }

    /// Reads the rest of a router's statement, up to its `;`.
    pub(super) fn router_statement(
        &mut self,
        node: &mut SwitchItem,
        at: (&str, TextSpan),
    ) -> Parsed<()> {
        if at.0 == "route" {
            let route = self.route(at.1)?;
            node.routes.push(route);
            return Ok(());
        }
        let router = node.router.get_or_insert_default();
        match at.0 {
            "icmp" => {
                let is_on = self.either("off", "on", "expected `on` or `off`")?;
                self.set(&mut router.icmp, (is_on, at.1), at, "router");
            }
            "nat" => {
                let gate = self.gate("timeout")?;
                self.set(&mut router.nat, gate, at, "router");
            }
            _ => {
                let gate = self.gate("idle")?;
                self.set(&mut router.firewall, gate, at, "router");
            }
        }
        Ok(())
    }

    /// Reads `b via r2, r3` or `default via r2`, behind the word `route`.
    pub(super) fn route(&mut self, start: TextSpan) -> Parsed<RouteItem> {
        let to = if self.accept_word("default") {
            None
        } else {
            Some(self.name("expected a destination: a host, a router or `default`")?)
        };
        self.expect_word(
            "via",
            "expected `via` and the next router, as in `route b via r2`",
        )?;
        let via = self.names("expected a neighbour of this node")?;
        Ok(RouteItem {
            to,
            via,
            span: start.to(self.last_span()),
        })
    }

    /// Reads `on isp`, then in any order a time after the word `time`, `entries` and `reject`.
    fn gate(&mut self, time: &str) -> Parsed<GateItem> {
        self.expect_word(
            "on",
            "expected `on` and the neighbour outside, as in `on isp`",
        )?;
        let mut gate = GateItem {
            outside: self.name("expected a neighbour of this router")?,
            time: None,
            entries: None,
            rejects: None,
        };
        while self.kind() == TokenKind::Name {
            let word = self.folded(0);
            let at = (word.as_str(), self.span());
            if word == time {
                self.take(TokenRole::Keyword);
                let value = self.figure(ExpectedUnit::Time, "expected a time, such as `60 s`")?;
                self.set(&mut gate.time, value, at, "statement");
            } else if word == "entries" {
                self.take(TokenRole::Keyword);
                let value = self.figure(ExpectedUnit::Plain, "expected a number of entries")?;
                self.set(&mut gate.entries, value, at, "statement");
            } else if word == "reject" && time == "idle" {
                self.take(TokenRole::Keyword);
                self.set(&mut gate.rejects, at.1, at, "statement");
            } else if time == "idle" {
                let words = ["idle", "entries", "reject"];
                return Err(self.unexpected("expected `idle`, `entries`, `reject` or `;`", &words));
            } else {
                let words = ["timeout", "entries"];
                return Err(self.unexpected("expected `timeout`, `entries` or `;`", &words));
            }
        }
        Ok(gate)
    }
}
