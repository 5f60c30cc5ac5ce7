//! The network that a specification crosses. A network whose figures have variables becomes a separate network for
//! each combination of values that a specification gives them.

use super::checker::Checker;
use super::clauses::{clause_network, find_effective_clause, find_variables};
use super::evaluate::Bindings;
use super::network;
use super::varied_network::{VariedNetwork, assignment, ends, fill_in_values};
use crate::diagnostic::{Diagnostic, TextSpan};
use crate::tree::{Base, NetworkItem, Specification};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use stackline_core::network::Network;

impl Checker<'_> {
    /// Stores a network that has variables until their values are known. Returns whether it has any.
    pub(crate) fn vary(&mut self, item: &NetworkItem) -> bool {
        let mut variables = find_variables(self.marked, item.at.clone());
        // A template's text stands elsewhere.
        item.clone().figures(&mut |value, _| match &value.base {
            Base::Variable(name) if variables.iter().all(|known| known.0 != *name) => {
                variables.push((name.clone(), value.span));
            }
            _ => {}
        });
        let varies = !variables.is_empty();
        if varies {
            let varied = VariedNetwork {
                item: item.clone(),
                variables,
                made: BTreeSet::new(),
                crossed: false,
            };
            self.varied.insert(item.name.text.clone(), varied);
        }
        varies
    }

    /// The network that a specification names; if it names none and needs one, the only one declared.
    pub(crate) fn crossed<'s>(&'s self, specification: &'s Specification) -> Option<&'s str> {
        let first = specification.parts.first()?;
        if let Some((name, _)) = find_effective_clause(specification, first, clause_network) {
            return Some(&name.text);
        }
        let modelled = self
            .context
            .worlds
            .iter()
            .find(|available| available.can.world == self.world(specification));
        let only = self
            .networks
            .values()
            .next()
            .filter(|only| self.networks.len() == 1 && only.hosts.len() > 1)?;
        let mut ends = specification
            .parts
            .iter()
            .flat_map(|part| part.from.iter().chain(&part.to));
        let fits = modelled.is_some_and(|available| available.can.networks)
            && self.varied.contains_key(&only.name)
            && ends.all(|word| only.host(&word.text).is_some());
        fits.then_some(only.name.as_str())
    }

    /// The variables of the crossed network, for which the specification has to give values.
    pub(crate) fn crossed_variables(&mut self, specification: &Specification) -> Vec<String> {
        let Some(name) = self.crossed(specification).map(ToString::to_string) else {
            return Vec::new();
        };
        let Some(varied) = self.varied.get_mut(&name) else {
            return Vec::new();
        };
        varied.crossed = true;
        varied.names().map(ToString::to_string).collect()
    }

    /// The place where a specification names its network.
    pub(crate) fn crossing_span(&self, specification: &Specification) -> TextSpan {
        let clause = specification
            .parts
            .first()
            .and_then(|part| find_effective_clause(specification, part, clause_network));
        clause.map_or(specification.span, |(word, _)| word.span)
    }

    /// The name of the network that a measurement crosses; a network with variables is made first.
    pub(crate) fn network_with(
        &mut self,
        specification: &Specification,
        bindings: Bindings<'_>,
    ) -> Option<String> {
        let declared = self.crossed(specification)?.to_string();
        let written = specification
            .parts
            .first()
            .and_then(|part| find_effective_clause(specification, part, clause_network))
            .is_some();
        let Some(varied) = self.varied.get_mut(&declared) else {
            return written.then_some(declared);
        };
        let values: Vec<String> = varied
            .names()
            .map(|name| assignment(name, specification, bindings))
            .collect();
        let name = format!("{declared}({})", values.join(", "));
        if varied.made.insert(name.clone()) {
            let item = fill_in_values(&varied.item, specification, bindings, self.report)?;
            let network = network::resolve(&item, self.report, &mut self.files);
            self.plan.networks.push(Network {
                name: name.clone(),
                ..network
            });
        }
        Some(name)
    }

    /// The values that the network of a measurement takes, as sweeps of one value behind its text.
    pub(crate) fn network_values(
        &self,
        specification: &Specification,
        bindings: Bindings<'_>,
    ) -> String {
        let varied = self
            .crossed(specification)
            .and_then(|name| self.varied.get(name));
        let names = varied.into_iter().flat_map(VariedNetwork::names);
        names
            .map(|name| format!("; {}", assignment(name, specification, bindings)))
            .collect()
    }

    /// Reports variables of networks that no specification crosses.
    pub(crate) fn without_values(&mut self) {
        for varied in self.varied.values().filter(|varied| !varied.crossed) {
            for (name, span) in &varied.variables {
                let network = &varied.item.name.text;
                let message = format!("the variable `{name}` has no values");
                let label = format!(
                    "expected a number, or a variable defined in a specification that crosses `{network}`"
                );
                let hint = format!(
                    "write a number, or a specification that gives its values, as in `1 {}across {network}; {name} = {}`",
                    ends(&varied.item),
                    varied.example(name)
                );
                self.report
                    .push(Diagnostic::error(*span, message, label).hint(hint));
            }
        }
    }
}
