//! What a specification refers to: application types, hosts, network, world, stacks, variables.
//!
//! Checked once for a specification, before it is multiplied out.

use super::checker::Checker;
use super::clauses::{
    clause_network, clause_stacks, clause_world, find_effective_clause, find_variables,
};
use super::{defaults, stack};
use crate::diagnostic::{Diagnostic, TextSpan};
use crate::spelling::application_key;
use crate::tree::{PartItem, SpecUnit, Specification, Sweep, Word};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use stackline_core::catalogue::{Available, StackTable};
use stackline_core::network::Network;
use stackline_core::plan::World;

/// The access networks of `examples/profiles.stackline`.
const PROFILES: &[&str] = &[
    "dial_up",
    "edge",
    "three_g",
    "three_g_fast",
    "four_g",
    "lte",
    "dsl",
    "cable",
    "wifi",
    "satellite_geo",
    "leo",
];

impl<'c> Checker<'c> {
    /// The stacks of the world that a specification runs in.
    pub(crate) fn tables(&self, specification: &Specification) -> &'c [StackTable] {
        let world = self.world(specification);
        let found = self
            .context
            .worlds
            .iter()
            .find(|available| available.can.world == world);
        found.map_or(&[], |available| available.stacks)
    }

    /// The other world that has networks and may have a stack: the kernel's for a specification that is simulated, else the simulated.
    pub(crate) fn elsewhere(&self, specification: &Specification) -> Option<&'c Available<'c>> {
        let other = match self.world(specification) {
            World::Simulated => World::Emulated,
            World::Emulated | World::Live => World::Simulated,
        };
        self.context
            .worlds
            .iter()
            .find(|available| available.can.world == other)
    }

    /// The world that a specification runs in: as the command line or the text says, else the default.
    pub(crate) fn world(&self, specification: &Specification) -> World {
        let Some(part) = specification.parts.first() else {
            return World::default();
        };
        let written =
            find_effective_clause(specification, part, clause_world).map(|(world, _)| world);
        let crosses = find_effective_clause(specification, part, clause_network).is_some();
        self.overrides
            .world
            .or(written)
            .unwrap_or_else(|| defaults::world(crosses))
    }

    /// Reports everything that does not exist or does not agree; true when all is well.
    pub(crate) fn names(&mut self, specification: &Specification) -> bool {
        let before = self.report.errors();
        self.variables(specification);
        self.composed(specification);
        self.stacks(specification);
        for part in &specification.parts {
            self.application(&part.application);
            self.agreement(specification, part);
            self.hosts_of(specification, part);
        }
        let sound = specification.parts.iter().all(|part| {
            matches!(
                self.procedures
                    .get(&application_key(&part.application.text)),
                Some(Some(_))
            )
        });
        self.report.errors() == before && sound
    }

    /// Names and options of all stacks; those that the command line replaces do not matter.
    pub(crate) fn stacks(&mut self, specification: &Specification) {
        if self.instead.is_some() {
            return;
        }
        let tables = self.tables(specification);
        let elsewhere = self.elsewhere(specification);
        for clause in specification
            .clauses
            .iter()
            .chain(specification.parts.iter().flat_map(|part| &part.clauses))
        {
            for item in clause_stacks(&clause.kind).unwrap_or_default() {
                stack::verify(item, tables, elsewhere, self.report);
            }
        }
    }

    /// A background without load is what a sweep over the load's pairs begins with, so it can be written too.
    fn composed(&mut self, specification: &Specification) {
        use stackline_core::plan::Composer::{Background, PriorityBackground};
        if matches!(specification.composer, Background | PriorityBackground)
            && specification.parts.len() < 2
        {
            let message = "without a background load, only the first part is measured";
            let diagnostic = Diagnostic::warning(specification.span, message, "only one part");
            self.report
                .push(diagnostic.hint("add the load after `|`, as in `| 5 bulk_get 1024*3000`"));
        }
    }

    fn variables(&mut self, specification: &Specification) {
        let mut used = find_variables(self.marked, specification.at.clone());
        if let Some(instead) = &self.instead {
            used.extend(
                instead
                    .stacks
                    .iter()
                    .flat_map(|item| find_variables(instead.marked, item.at.clone())),
            );
        }
        let mut defined: BTreeSet<&str> = BTreeSet::new();
        for sweep in &specification.sweeps {
            if !defined.insert(&sweep.name.text) {
                let message = format!("the variable `{}` is given twice", sweep.name.text);
                let diagnostic = Diagnostic::error(sweep.name.span, message, "already given");
                self.report.push(diagnostic.hint("merge the two lists"));
            }
        }
        let crossed = self.crossed_variables(specification);
        self.crossed_without(specification, &crossed);
        self.units(specification, &used);
        for (name, span) in &used {
            if defined.contains(name.as_str()) || self.report.full() {
                continue;
            }
            let message = format!("the variable `{name}` has no values");
            let hint = format!(
                "write its values after the specification, as in `; {name} = 1, 8 ... 4096`"
            );
            let diagnostic = Diagnostic::error(
                *span,
                message,
                "expected a number, or a variable of this specification",
            );
            self.report
                .push(diagnostic.did_you_mean(name, defined.iter().copied(), hint));
        }
        for sweep in &specification.sweeps {
            if !used
                .iter()
                .map(|(name, _)| name)
                .chain(&crossed)
                .any(|name| *name == sweep.name.text)
            {
                let message = format!("the variable `{}` is not used", sweep.name.text);
                let diagnostic = Diagnostic::warning(
                    sweep.span,
                    message,
                    "every value gives the same measurement",
                );
                self.report.push(diagnostic.hint(format!(
                    "write `{0}` or `<{0}>` where it should be used",
                    sweep.name.text
                )));
            }
        }
    }

    /// Reports variables of the network that have no values here.
    fn crossed_without(&mut self, specification: &Specification, crossed: &[String]) {
        let given: Vec<&str> = specification
            .sweeps
            .iter()
            .map(|sweep| sweep.name.text.as_str())
            .collect();
        let span = self.crossing_span(specification);
        let network = self
            .crossed(specification)
            .and_then(|name| self.varied.get(name));
        let missing = crossed
            .iter()
            .filter(|name| !given.contains(&name.as_str()));
        let missing: Vec<_> = missing
            .map(|name| (name, network.map_or("1, 2", |varied| varied.example(name))))
            .collect();
        for (name, example) in missing {
            let message = format!("the variable `{name}` of the network has no values here");
            let hint =
                format!("write its values after the specification, as in `; {name} = {example}`");
            let diagnostic = Diagnostic::error(
                span,
                message,
                format!("this network has the variable `{name}`"),
            );
            let others = given
                .iter()
                .copied()
                .filter(|given| !crossed.iter().any(|name| name == given));
            self.report
                .push(diagnostic.did_you_mean(name, others, hint));
        }
    }

    /// Rates and percentages stand in networks alone.
    fn units(&mut self, specification: &Specification, used: &[(String, TextSpan)]) {
        let only_there =
            |sweep: &&Sweep| matches!(sweep.unit, SpecUnit::Rate(_) | SpecUnit::Percent);
        for sweep in specification.sweeps.iter().filter(only_there) {
            if let Some((name, span)) = used.iter().find(|(name, _)| *name == sweep.name.text) {
                let message = format!(
                    "the values of `{name}` are rates or percentages, which are allowed only in a network"
                );
                let diagnostic =
                    Diagnostic::error(*span, message, "expected a size, a time or a number");
                self.report.push(diagnostic.hint(
                    "write numbers, sizes or times; use a separate variable for a network's rates",
                ));
            }
        }
    }

    pub(crate) fn application(&mut self, name: &Word) {
        if self.procedures.contains_key(&application_key(&name.text)) || self.report.full() {
            return;
        }
        let known: Vec<&str> = self.procedures.keys().map(String::as_str).collect();
        let hint = format!("the application types are {}", known.join(", "));
        let message = format!("unknown application type `{}`", name.text);
        let diagnostic = Diagnostic::error(name.span, message, "expected an application type");
        let diagnostic = diagnostic.did_you_mean(&name.text, known, hint);
        self.report.push(diagnostic);
    }

    /// All parts of a measurement run in one world and across one network.
    fn agreement(&mut self, specification: &Specification, part: &PartItem) {
        let Some(first) = specification.parts.first() else {
            return;
        };
        let fallback = part.span;
        let mut differs = |ours: Option<TextSpan>, what: &str| {
            let diagnostic = Diagnostic::error(
                ours.unwrap_or(fallback),
                format!("the parts of a measurement {what}"),
                "differs from the first part",
            );
            self.report.push(
                diagnostic
                    .hint("write the clause after the composer's name to apply it to all parts"),
            );
        };
        let (ours, theirs) = (
            find_effective_clause(specification, part, clause_world),
            find_effective_clause(specification, first, clause_world),
        );
        if self.overrides.world.is_none()
            && ours.map(|(world, _)| world) != theirs.map(|(world, _)| world)
        {
            differs(
                ours.map(|(_, clause)| clause.span),
                "must run in the same world",
            );
        }
        let (ours, theirs) = (
            find_effective_clause(specification, part, clause_network),
            find_effective_clause(specification, first, clause_network),
        );
        if ours.map(|(name, _)| name.text.as_str()) != theirs.map(|(name, _)| name.text.as_str()) {
            differs(
                ours.map(|(_, clause)| clause.span),
                "must cross the same network",
            );
        }
    }

    fn hosts_of(&mut self, specification: &Specification, part: &PartItem) {
        if self.far_end(specification, part) {
            return;
        }
        let network = match find_effective_clause(specification, part, clause_network) {
            None => None,
            Some((name, _)) => match self.networks.get(&name.text).cloned() {
                Some(network) => Some(network),
                None => return self.unknown_network(name),
            },
        };
        let chosen = network
            .is_none()
            .then(|| self.only_network(specification))
            .flatten();
        for (end, word) in [(&part.from, "from"), (&part.to, "to")] {
            match (
                end,
                network
                    .as_ref()
                    .or(chosen.as_ref().filter(|_| end.is_some())),
            ) {
                (Some(host), Some(network)) => self.network_host(host, network),
                (Some(host), None) => self.declared_host(host),
                (None, Some(network)) => {
                    let message = format!(
                        "a part across the network `{}` must name two of its hosts",
                        network.name
                    );
                    let diagnostic = Diagnostic::error(
                        part.application.span,
                        message,
                        format!("expected `{word} HOST` before this"),
                    );
                    let ends: Vec<&str> = network
                        .hosts
                        .iter()
                        .map(|host| host.name.as_str())
                        .take(2)
                        .collect();
                    let hint = match ends.as_slice() {
                        [from, to] => {
                            format!("write `from {from} to {to} {}`", part.application.text)
                        }
                        _ => "name two hosts of the network".to_string(),
                    };
                    self.report.push(diagnostic.hint(hint));
                }
                (None, None) => {}
            }
        }
    }

    /// The network of a specification that names none: the only one declared, where its world has one and it has all hosts.
    fn only_network(&self, specification: &Specification) -> Option<Rc<Network>> {
        let world = self.world(specification);
        let modelled = self
            .context
            .worlds
            .iter()
            .any(|available| available.can.world == world && available.can.networks);
        let [only] = self.plan.networks.as_slice() else {
            return None;
        };
        let ends = specification
            .parts
            .iter()
            .flat_map(|part| part.from.iter().chain(&part.to));
        let found = self.networks.get(&only.name).filter(|_| modelled)?;
        ends.map(|host| &host.text)
            .all(|host| found.host(host).is_some())
            .then(|| Rc::clone(found))
    }

    pub(crate) fn unknown_network(&mut self, name: &Word) {
        if self.report.full() {
            return;
        }
        let message = format!("unknown network `{}`", name.text);
        let declare = format!("declare it: `network {} {{ ... }}`", name.text);
        let hint = if PROFILES.contains(&name.text.as_str()) {
            format!("{declare}; you can copy it from `examples/profiles.stackline`")
        } else {
            declare
        };
        let diagnostic = Diagnostic::error(name.span, message, "expected a declared network");
        let diagnostic =
            diagnostic.did_you_mean(&name.text, self.networks.keys().map(String::as_str), hint);
        self.report.push(diagnostic);
    }

    pub(crate) fn network_host(&mut self, host: &Word, network: &Network) {
        if network.host(&host.text).is_some() {
            self.hosts.entry(host.text.clone()).or_default();
        } else if !self.report.full() {
            let message = format!(
                "`{}` is not a host of the network `{}`",
                host.text, network.name
            );
            let names: Vec<&str> = network
                .hosts
                .iter()
                .map(|host| host.name.as_str())
                .collect();
            let hint = match names.as_slice() {
                [] => format!("declare it there: `host {};`", host.text),
                names => format!("its hosts: {}", names.join(", ")),
            };
            let diagnostic =
                Diagnostic::error(host.span, message, "expected a host of the network");
            self.report
                .push(diagnostic.did_you_mean(&host.text, names, hint));
        }
    }

    pub(crate) fn declared_host(&mut self, host: &Word) {
        if self.hosts.contains_key(&host.text) || self.report.full() {
            return;
        }
        let near = crate::diagnostic::nearest(&host.text, self.hosts.keys().map(String::as_str));
        let declare = format!("write `host {} via local;` first", host.text);
        let within = self
            .networks
            .values()
            .find(|network| network.host(&host.text).is_some());
        let hint = match (within, near) {
            (Some(network), _) => format!(
                "it is a host of the network `{0}`: write `across {0}`",
                network.name
            ),
            _ if host.text.contains(['/', ':']) => format!(
                "a server of others has an address with its protocol, as in `to \"http://{}\"`",
                host.text
            ),
            (None, Some(near)) => format!("did you mean `{near}`? Otherwise {declare}"),
            (None, None) => declare,
        };
        let message = format!("unknown host `{}`", host.text);
        self.report
            .push(Diagnostic::error(host.span, message, "expected a declared host").hint(hint));
    }
}

#[cfg(test)]
mod tests {
    use super::PROFILES;

    #[test]
    fn the_profiles_are_those_of_the_examples() {
        let text = include_str!("../../../../../examples/profiles.stackline");
        let declared = text
            .lines()
            .filter_map(|line| line.strip_prefix("network ")?.split(' ').next());
        assert!(declared.eq(PROFILES.iter().copied()));
    }
}
