//! Sets of hosts in a part, `from w[*] to sink`: the part becomes one for each pair of members.
//!
//! Without a composer the pairs are a `total`, which has one row; `parallel` has a row for each as well.

use crate::diagnostic::{Diagnostic, DiagnosticReport};
use crate::tree::{
    Base, Clause, ClauseKind, HostPairing, PartItem, SpecItem, Specification, Tree, Word,
};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::plan::Composer;
use stackline_core::random::Seed;

/// The most pairs of a measurement that sets of hosts make.
const MOST_PAIRS: usize = 10_000;

/// Replaces the parts that name sets of hosts. `seed` is that of the command line, if one is given there.
pub(crate) fn expand(tree: &mut Tree, seed: Option<u64>, report: &mut DiagnosticReport) {
    let has_set = |part: &PartItem| part.set_at.is_some() || part.pairing.is_some();
    let any = tree.items.iter().any(|item| match item {
        SpecItem::Specification(specification) => specification.parts.iter().any(has_set),
        _ => false,
    });
    if !any {
        return;
    }
    let written = tree.items.iter().find_map(|item| match item {
        SpecItem::Seed(value, _) => match value.base {
            Base::Number(number) => Some(number as u64),
            Base::Variable(_) => None,
        },
        _ => None,
    });
    let seed = Seed::root(seed.or(written).unwrap_or(super::SEED)).child("permutation");
    let networks: Vec<(String, Vec<String>)> = tree.items.iter().filter_map(declared).collect();
    for (index, item) in tree.items.iter_mut().enumerate() {
        if let SpecItem::Specification(specification) = item {
            let mut sets = HostSets {
                networks: &networks,
                seed: seed.index(index as u64),
                report,
            };
            sets.expand(specification);
        }
    }
}

/// The names of a network's hosts, or those of a declaration of hosts, which has no name.
fn declared(item: &SpecItem) -> Option<(String, Vec<String>)> {
    match item {
        SpecItem::Network(network) => {
            let hosts = network.host_names().map(|word| word.text.clone());
            Some((network.name.text.clone(), hosts.collect()))
        }
        SpecItem::Host(host) => {
            let hosts = host.names.iter().map(|word| word.text.clone());
            Some((String::new(), hosts.collect()))
        }
        _ => None,
    }
}

/// Which hosts the text declares, and what a permutation is drawn from.
struct HostSets<'s> {
    networks: &'s [(String, Vec<String>)],
    seed: Seed,
    report: &'s mut DiagnosticReport,
}

impl HostSets<'_> {
    fn expand(&mut self, specification: &mut Specification) {
        let alone = specification.parts.len() == 1;
        let mut parts = Vec::new();
        for (index, mut part) in core::mem::take(&mut specification.parts)
            .into_iter()
            .enumerate()
        {
            if part.set_at.is_none() && part.pairing.is_none() {
                parts.push(part);
                continue;
            }
            self.is_load(specification, &part, index);
            let pairs = self.pairs(specification, &part);
            if alone && pairs.len() > 1 {
                specification.clauses.append(&mut part.clauses);
                if specification.composer == Composer::Basic {
                    specification.composer = Composer::Total;
                }
            }
            self.one_stack(&part);
            for pair in pairs {
                let mut one = part.clone();
                (one.from, one.to) = pair;
                parts.push(one);
            }
        }
        if parts.len() > MOST_PAIRS {
            let message = format!("the sets of hosts make {} pairs", parts.len());
            let label = format!("at most {MOST_PAIRS} in a measurement");
            let diagnostic = Diagnostic::error(specification.span, message, label);
            self.report
                .push(diagnostic.hint("name smaller sets, or write `pairwise` or `permutation`"));
            parts.truncate(1);
        }
        specification.parts = parts;
    }

    /// Refuses a set whose first member alone would be measured.
    fn is_load(&mut self, specification: &Specification, part: &PartItem, index: usize) {
        use Composer::{Background, PriorityBackground};
        if index == 0 && matches!(specification.composer, Background | PriorityBackground) {
            let message = "the measured part of a background is one pair, not a set";
            let diagnostic = Diagnostic::error(part.span, message, "expected one host at each end");
            self.report
                .push(diagnostic.hint("write the set behind the `|`, as the load"));
        }
    }

    /// Refuses a list of stacks at a part that became several: each combination would be a measurement.
    fn one_stack(&mut self, part: &PartItem) {
        let lists =
            |clause: &&Clause| matches!(&clause.kind, ClauseKind::Over(stacks) if stacks.len() > 1);
        if let Some(clause) = part.clauses.iter().find(lists) {
            let message = "several stacks stand behind one of several parts with sets of hosts";
            let diagnostic = Diagnostic::error(clause.span, message, "expected one stack");
            self.report.push(
                diagnostic
                    .hint("write the stacks behind the composer, as in `parallel over tcp, udp:`"),
            );
        }
    }

    /// The pairs of hosts of a part.
    fn pairs(
        &mut self,
        specification: &Specification,
        part: &PartItem,
    ) -> Vec<(Option<Word>, Option<Word>)> {
        let across = |clause: &Clause| match &clause.kind {
            ClauseKind::Across(network) => Some(network.text.clone()),
            _ => None,
        };
        let network = part
            .clauses
            .iter()
            .chain(&specification.clauses)
            .find_map(across);
        let (Some(from), Some(to)) = (&part.from, &part.to) else {
            let message = "a set of hosts needs a host or a set at the other end";
            let diagnostic = Diagnostic::error(part.span, message, "expected `from` and `to`");
            self.report
                .push(diagnostic.hint("for example `from w[*] to sink`"));
            return Vec::new();
        };
        let (Some(first), Some(second)) = (
            self.members(from, network.as_deref()),
            self.members(to, network.as_deref()),
        ) else {
            return Vec::new();
        };
        let chosen: Vec<(&Word, &Word)> = match &part.pairing {
            None => {
                let with_all = |one| second.iter().map(move |other| (one, other));
                // As many as are refused, and no more.
                first
                    .iter()
                    .flat_map(with_all)
                    .take(MOST_PAIRS * 2)
                    .collect()
            }
            Some((pairing, span)) => {
                if first.len() != second.len() {
                    let message = format!(
                        "{} hosts cannot be paired with {}",
                        first.len(),
                        second.len()
                    );
                    let diagnostic =
                        Diagnostic::error(*span, message, "expected sets of the same size");
                    self.report.push(diagnostic.hint(
                        "omit it: each host of the one set then goes with each of the other",
                    ));
                    return Vec::new();
                }
                let order = match pairing {
                    HostPairing::Pairwise => (0..second.len()).collect(),
                    HostPairing::Permutation => self.permutation(second.len()),
                };
                let others = order.into_iter().filter_map(|at| second.get(at));
                first.iter().zip(others).collect()
            }
        };
        let different = chosen.into_iter().filter(|pair| pair.0.text != pair.1.text);
        let pairs: Vec<_> = different
            .map(|pair| (Some(pair.0.clone()), Some(pair.1.clone())))
            .collect();
        if pairs.is_empty() {
            let message = "the sets have no two different hosts";
            self.report
                .push(Diagnostic::error(part.span, message, "expected other sets"));
        }
        pairs
    }

    /// A cyclic order of that many: no place keeps its own number (Sattolo 1986).
    fn permutation(&self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            let drawn = self.seed.index(last as u64).0 % last as u64;
            order.swap(last, usize::try_from(drawn).unwrap_or_default());
        }
        order
    }

    /// The hosts that a name stands for; none is reported.
    fn members(&mut self, word: &Word, network: Option<&str>) -> Option<Vec<Word>> {
        if !is_set(&word.text) {
            return Some(alloc::vec![word.clone()]);
        }
        let mut seen = BTreeSet::new();
        let mut members = Vec::new();
        let of_network =
            |known: &&(String, Vec<String>)| network.is_none_or(|name| known.0 == name);
        for (_, hosts) in self.networks.iter().filter(of_network) {
            let fitting = hosts.iter().filter(|host| fits(&word.text, host));
            let new = fitting.filter(|host| seen.insert(host.as_str()));
            members.extend(new.map(|host| Word {
                text: host.clone(),
                span: word.span,
            }));
        }
        if members.is_empty() {
            let message = format!("no host belongs to the set `{}`", word.text);
            let diagnostic = Diagnostic::error(word.span, message, "no such hosts");
            let hint = "declare them in a network, as in `for i in 1..8 { host w[i]; }`";
            self.report.push(diagnostic.hint(hint));
            return None;
        }
        Some(members)
    }
}

/// Whether a name stands for several hosts.
pub(crate) fn is_set(name: &str) -> bool {
    name.contains("[*]") || name.contains("..")
}

/// Whether a host belongs to a set: each `[*]` stands for any index, `[1..8]` for those between.
fn fits(set: &str, host: &str) -> bool {
    let Some((plain, rest)) = set.split_once('[') else {
        return set == host;
    };
    let Some((index, others)) = rest.split_once(']') else {
        return false;
    };
    let inner = host
        .strip_prefix(plain)
        .and_then(|host| host.strip_prefix('['));
    let Some((number, further)) = inner.and_then(|inner| inner.split_once(']')) else {
        return false;
    };
    let right = match index.split_once("..") {
        _ if index == "*" => true,
        Some((from, to)) => {
            let number = number.parse::<u64>().ok();
            let bounds = from.parse().ok().zip(to.parse().ok());
            number
                .zip(bounds)
                .is_some_and(|(number, (from, to))| (from..=to).contains(&number))
        }
        None => *index == *number,
    };
    right && fits(others, further)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_by_index() {
        assert!(fits("w[*]", "w[3]") && !fits("w[*]", "w") && !fits("w[*]", "ww[3]"));
        assert!(fits("w[2..4]", "w[4]") && !fits("w[2..4]", "w[5]"));
        assert!(fits("p.h[*][1..2]", "p.h[7][2]") && !fits("p.h[*][1..2]", "p.h[7][3]"));
        assert!(
            !fits("h[*]", "h[1][2]") && fits("s[*].gw", "s[3].gw") && !fits("s[*].gw", "s[3].h")
        );
    }

    #[test]
    fn a_permutation_is_one_cycle() {
        for seed in 1..20 {
            let mut report = DiagnosticReport::default();
            let sets = HostSets {
                networks: &[],
                seed: Seed::root(seed),
                report: &mut report,
            };
            let order = sets.permutation(9);
            let (mut at, mut length) = (order[0], 1);
            while at != 0 {
                at = order[at];
                length += 1;
            }
            assert_eq!(length, 9, "{order:?}");
        }
    }
}
