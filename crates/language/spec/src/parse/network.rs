//! Parses networks: hosts with interfaces and clocks, switches and routers.

use super::parser::{Parsed, Parser};
use super::value::ExpectedUnit;
use crate::diagnostic::TextSpan;
use crate::token::TokenKind;
use crate::token_layout::TokenRole;
use crate::tree::{
    ClockItem, ClockKind, NetworkItem, NodeItem, RouterItem, SpecItem, SpecValue, SwitchItem, Tree,
    Word,
};
use alloc::vec::Vec;
use stackline_core::network::{FakeHost, WorkKind};

const HOST: &str = "expected a host name";
pub(super) const SHARE: &str = "expected a processor share, such as `50%`";
const STATEMENTS: &[&str] = &["host", "switch", "router", "imp", "link", "for", "use"];
const HOST_STATEMENTS: &[&str] = &[
    "buffer",
    "single_buffered",
    "busy_waiting",
    "interface_copies",
    "copy",
    "cpu",
    "pace",
    "clock",
    "down",
    "fake",
    "share",
    "work",
    "polls",
    "priority",
    "route",
];
const SWITCH_STATEMENTS: &[&str] = &["buffer", "cells", "early_packet_discard", "abr", "queue"];
const ROUTER_STATEMENTS: &[&str] = &["buffer", "queue", "icmp", "route", "nat", "firewall"];
const CLOCK: &[&str] = &["ahead", "behind", "fast", "slow"];

impl Parser<'_, '_> {
    /// Reads `network NAME { ... }` and adds it to the tree, also if some of its statements have mistakes.
    pub(crate) fn network_item(&mut self, tree: &mut Tree) -> Parsed<()> {
        let start = self.position();
        self.take(TokenRole::Keyword);
        let name = self.name("expected a network name")?;
        let mut network = NetworkItem::empty(name);
        network.at = start..start;
        let result = self.block("expected `{`", &mut |parser| {
            parser.network_statement(&mut network)
        });
        network.at.end = self.position();
        network.broken |= !matches!(result, Ok(true));
        tree.items.push(SpecItem::Network(network));
        result.map(|_| ())
    }

    pub(super) fn network_statement(&mut self, network: &mut NetworkItem) -> Parsed<()> {
        let word = self.folded(0);
        if !STATEMENTS.contains(&word.as_str()) {
            return Err(self.unexpected(
                "expected `host`, `switch`, `router`, `imp`, `link`, `for` or `use`",
                STATEMENTS,
            ));
        }
        let start = self.take(TokenRole::Keyword);
        self.scope.count_statement();
        match word.as_str() {
            "for" => self.network_loop(start, network),
            "use" => self.template_use(start, network),
            "host" => {
                let mut host = NodeItem::default();
                let read = self.network_host(&mut host);
                network.hosts.push(host);
                read
            }
            "link" => {
                let link = self.link()?;
                network.links.push(link);
                Ok(())
            }
            "imp" => {
                network.switches.extend(self.imps()?);
                Ok(())
            }
            _ => {
                network.switches.extend(self.switches(word == "router")?);
                Ok(())
            }
        }
    }

    /// Reads the properties of a node: a block in braces, for each of whose statements `read` is called, or only `;`.
    /// A statement with a mistake is reported and skipped; the node is kept.
    pub(super) fn properties(
        &mut self,
        read: &mut dyn FnMut(&mut Self) -> Parsed<()>,
    ) -> Parsed<()> {
        if self.kind() != TokenKind::OpenBrace {
            return self.statement_end("expected `{` or `;`", &[]);
        }
        self.block("expected `{`", read)?;
        if self.kind() == TokenKind::Semicolon {
            self.take(TokenRole::Dropped);
        }
        Ok(())
    }

    fn network_host(&mut self, host: &mut NodeItem) -> Parsed<()> {
        host.names.extend(self.names(HOST)?);
        self.properties(&mut |parser| parser.host_statement(host))
    }

    fn host_statement(&mut self, host: &mut NodeItem) -> Parsed<()> {
        let word = self.folded(0);
        if !HOST_STATEMENTS.contains(&word.as_str()) {
            let expected = "expected `buffer`, `single_buffered`, `busy_waiting`, `interface_copies`, `copy`, `cpu`, `pace`, `clock`, `down`, `fake`, `share`, `work`, `polls`, `priority` or `route`";
            return Err(self.unexpected(expected, HOST_STATEMENTS));
        }
        let at = (word.as_str(), self.take(TokenRole::Keyword));
        match at.0 {
            "buffer" => {
                let frames = self.figure(ExpectedUnit::Plain, "expected a number of frames")?;
                self.expect_word("frames", "expected `frames`")?;
                self.set(&mut host.buffer_frames, frames, at, "host");
            }
            "single_buffered" => self.set(&mut host.single_buffered, (), at, "host"),
            "busy_waiting" => self.set(&mut host.busy_waiting, (), at, "host"),
            "interface_copies" => self.set(&mut host.interface_copies, at.1, at, "host"),
            "copy" => self.copy(host, at)?,
            "work" => self.work(host, at)?,
            "polls" => {
                let every = self.figure(
                    ExpectedUnit::Time,
                    "expected a polling interval, such as `200 ms`",
                )?;
                self.set(&mut host.polls, every, at, "host");
            }
            "priority" => {
                let first = self.one_of(&WorkKind::ALL, "expected `operations` or `messages`")?;
                self.set(&mut host.priority, (first, at.1), at, "host");
            }
            "cpu" => {
                let speed = self.figure(
                    ExpectedUnit::Plain,
                    "expected the processor speed, such as `2` for twice as fast",
                )?;
                self.set(&mut host.cpu, speed, at, "host");
            }
            "down" => {
                let (from, to) = self.outage()?;
                self.set(&mut host.down, (from, to, at.1), at, "host");
            }
            "fake" => {
                let fake = self.one_of(&FakeHost::ALL, "expected `word` or `packet`")?;
                self.set(&mut host.fake, (fake, at.1), at, "host");
            }
            "route" => {
                let route = self.route(at.1)?;
                host.routes.push(route);
            }
            "share" => {
                let share = self.percentage(SHARE)?;
                self.set(&mut host.share, share, at, "host");
            }
            "pace" => {
                let rate = self.rate()?;
                self.set(&mut host.pace, rate, at, "host");
            }
            _ => {
                let clock = self.clock(at.1)?;
                host.clock.push(clock);
            }
        }
        self.statement_end("expected `;`", &["per", "at"])
    }

    /// Reads when a host is down: `from 5 s to 20 s`, the end only if it is written.
    fn outage(&mut self) -> Parsed<(SpecValue, Option<SpecValue>)> {
        const EXPECTED: &str = "expected `from` and a time, as in `down from 5 s to 20 s`";
        self.expect_word("from", EXPECTED)?;
        let from = self.figure(ExpectedUnit::Time, "expected a time, such as `5 s`")?;
        if !self.accept_word("to") {
            return Ok((from, None));
        }
        let to = self.figure(ExpectedUnit::Time, "expected a time, such as `20 s`")?;
        Ok((from, Some(to)))
    }

    /// Reads one of the `known` words and returns its value.
    fn one_of<T: Copy>(&mut self, known: &[(&str, T)], expected: &str) -> Parsed<T> {
        let word = self.folded(0);
        let Some((_, found)) = known.iter().find(|(name, _)| *name == word) else {
            let words: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            return Err(self.unexpected(expected, &words));
        };
        self.take(TokenRole::Keyword);
        Ok(*found)
    }

    /// Reads the cost of copying: `1.35 ms per packet, 0.47 us per byte`, in any order, or one of them alone.
    fn copy(&mut self, host: &mut NodeItem, at: (&str, TextSpan)) -> Parsed<()> {
        self.set(&mut host.copy, at.1, at, "host");
        let places = [
            ("packet", &mut host.copy_per_packet),
            ("byte", &mut host.copy_per_byte),
        ];
        let words = "expected a time, as in `copy 1 ms per packet, 1 us per byte`";
        self.costs(
            words,
            "expected `per packet` or `per byte`",
            &["packet", "byte"],
            places,
        )
    }

    /// Reads the cost of program work: `2 ms per operation, 3 us per byte, 1 ms per message, 5 us per switch`, in any
    /// order, or some of them.
    fn work(&mut self, host: &mut NodeItem, at: (&str, TextSpan)) -> Parsed<()> {
        self.set(&mut host.work, at.1, at, "host");
        let places = [
            ("operation", &mut host.work_per_operation),
            ("byte", &mut host.work_per_byte),
            ("message", &mut host.work_per_message),
            ("switch", &mut host.work_per_switch),
        ];
        let words =
            "expected a time, as in `work 1 ms per operation, 2 us per byte, 1 ms per message`";
        let per = "expected `per operation`, `per byte`, `per message` or `per switch`";
        self.costs(
            words,
            per,
            &["operation", "byte", "message", "switch"],
            places,
        )
    }

    /// Reads a list of times, each with `per` and one of `things`, and stores each in the place with that name.
    fn costs<const N: usize>(
        &mut self,
        time: &'static str,
        per: &'static str,
        things: &'static [&'static str],
        mut places: [(&str, &mut Option<SpecValue>); N],
    ) -> Parsed<()> {
        loop {
            let value = self.figure(ExpectedUnit::Time, time)?;
            self.expect_word("per", per)?;
            let of = (self.folded(0), self.span());
            let Some((_, place)) = places.iter_mut().find(|(name, _)| *name == of.0) else {
                return Err(self.unexpected(per, things));
            };
            self.take(TokenRole::Keyword);
            self.set(place, value, (&of.0, of.1), "host");
            if !self.accept(TokenKind::Comma) {
                return Ok(());
            }
        }
    }

    /// Reads an error of a clock: `ahead 20 ms`, `behind 1 s at 10 s`, `fast 20 ppm`.
    fn clock(&mut self, start: TextSpan) -> Parsed<ClockItem> {
        if !self.is_word(0, CLOCK) {
            return Err(self.unexpected("expected `ahead`, `behind`, `fast` or `slow`", CLOCK));
        }
        let word = self.folded(0);
        self.take(TokenRole::Keyword);
        let negative = matches!(word.as_str(), "behind" | "slow");
        let (kind, value) = if matches!(word.as_str(), "fast" | "slow") {
            let value = self.figure(
                ExpectedUnit::Plain,
                "expected a number of parts per million, such as `20 ppm`",
            )?;
            self.expect_word("ppm", "expected `ppm`")?;
            (ClockKind::Drift, value)
        } else {
            let value = self.figure(ExpectedUnit::Time, "expected a time, such as `20 ms`")?;
            if self.accept_word("at") {
                let at = self.figure(
                    ExpectedUnit::Time,
                    "expected the time at which the clock is set, such as `10 s`",
                )?;
                (ClockKind::Step(at), value)
            } else {
                (ClockKind::Offset, value)
            }
        };
        Ok(ClockItem {
            kind,
            negative,
            value,
            span: start.to(self.last_span()),
        })
    }

    /// Reads the switches or routers of one declaration: several names share the properties.
    fn switches(&mut self, routers: bool) -> Parsed<Vec<SwitchItem>> {
        let expected = match routers {
            true => "expected a router name",
            false => "expected a switch name",
        };
        let names = self.names(expected)?;
        let mut switch = SwitchItem {
            router: routers.then(RouterItem::default),
            ..SwitchItem::default()
        };
        self.properties(&mut |parser| parser.switch_statement(&mut switch))?;
        Ok(names
            .into_iter()
            .map(|name| SwitchItem {
                name,
                ..switch.clone()
            })
            .collect())
    }

    /// Reads names with commas between.
    pub(super) fn names(&mut self, expected: &'static str) -> Parsed<Vec<Word>> {
        let mut names = alloc::vec![self.node_name(expected)?];
        while self.accept(TokenKind::Comma) {
            names.push(self.node_name(expected)?);
        }
        Ok(names)
    }

    fn switch_statement(&mut self, switch: &mut SwitchItem) -> Parsed<()> {
        let word = self.folded(0);
        let of_routers = super::router::OF_ROUTERS.contains(&word.as_str());
        if of_routers && switch.router.is_none() {
            return self.refuse_in_switch(&word);
        }
        if !of_routers && !SWITCH_STATEMENTS.contains(&word.as_str()) {
            if switch.router.is_some() {
                let expected = "expected `buffer`, `queue`, `icmp`, `route`, `nat` or `firewall`";
                return Err(self.unexpected(expected, ROUTER_STATEMENTS));
            }
            let expected = "expected `buffer`, `cells`, `early_packet_discard`, `abr` or `queue`";
            return Err(self.unexpected(expected, SWITCH_STATEMENTS));
        }
        let at = (word.as_str(), self.take(TokenRole::Keyword));
        match at.0 {
            _ if of_routers => self.router_statement(switch, at)?,
            "buffer" => {
                let size = self.figure(ExpectedUnit::Size, "expected a size")?;
                if self.accept_word("per") {
                    self.expect_word("port", "expected `per port`")?;
                    switch.per_port = true;
                }
                self.set(&mut switch.buffer, size, at, "switch");
            }
            "cells" => {
                let size = self.figure(ExpectedUnit::Size, "expected a cell size")?;
                self.set(&mut switch.cells, size, at, "switch");
            }
            "queue" => {
                let queue = self.queue(at.1)?;
                self.set(&mut switch.queue, queue, at, "switch");
            }
            _ => {
                if !self.is_word(0, &["on", "off"]) {
                    return Err(self.unexpected("expected `on` or `off`", &["on", "off"]));
                }
                let on = self.folded(0) == "on";
                self.take(TokenRole::Keyword);
                match at.0 {
                    "abr" => self.set(&mut switch.abr, (on, at.1), at, "switch"),
                    _ => self.set(&mut switch.early_packet_discard, on, at, "switch"),
                }
            }
        }
        self.statement_end(
            "expected `;`",
            if at.0 == "queue" {
                super::queue::WORDS
            } else {
                &["per"]
            },
        )
    }
}
