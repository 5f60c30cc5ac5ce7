//! Checks a specification that could be parsed only in part: reports mistakes in the rest that do not depend on the
//! missing part.

use super::checker::Checker;
use super::clauses::{clause_network, find_effective_clause, find_variables};
use super::evaluate::Bindings;
use super::expansion::firsts;
use super::series;
use crate::tree::{CountItem, PartItem, Specification};
use alloc::vec::Vec;

impl Checker<'_> {
    pub(crate) fn partial(&mut self, specification: &Specification) {
        self.stacks(specification);
        for part in &specification.parts {
            self.application(&part.application);
            self.written_hosts(specification, part);
        }
        let sweeps: Option<Vec<Vec<f64>>> = specification
            .sweeps
            .iter()
            .map(|sweep| series::values(sweep, self.report))
            .collect();
        // A variable without values may have them in the part that could not be parsed.
        let mut used = find_variables(self.marked, specification.at.clone()).into_iter();
        let swept = |name: &str| {
            specification
                .sweeps
                .iter()
                .any(|sweep| sweep.name.text == name)
        };
        if let Some(sweeps) = sweeps
            && used.all(|(name, _)| swept(&name))
        {
            self.written_numbers(specification, &sweeps);
        }
    }

    /// Hosts that are written. A network that is not there may be what could not be read.
    fn written_hosts(&mut self, specification: &Specification, part: &PartItem) {
        let network =
            find_effective_clause(specification, part, clause_network).map(|(name, _)| name);
        let found = network.map(|name| self.networks.get(&name.text).cloned());
        if let (Some(name), Some(None)) = (network, &found) {
            return self.unknown_network(name);
        }
        if self.far_end(specification, part) {
            return;
        }
        for host in [&part.from, &part.to].into_iter().flatten() {
            match &found {
                Some(Some(network)) => self.network_host(host, network),
                _ if self
                    .networks
                    .values()
                    .any(|network| network.host(&host.text).is_some()) => {}
                _ => self.declared_host(host),
            }
        }
    }

    /// Numbers, and sizes that have their count.
    fn written_numbers(&mut self, specification: &Specification, sweeps: &[Vec<f64>]) {
        let bound = firsts(specification, sweeps);
        let bindings = Bindings(&bound);
        self.heads(specification, bindings);
        for (index, part) in specification.parts.iter().enumerate() {
            let counted = part
                .data
                .as_ref()
                .is_some_and(|data| !matches!(data.count, CountItem::Open));
            if counted && let Some(procedure) = self.program(part) {
                self.part_data(specification, index, &procedure, bindings);
            }
        }
    }
}
