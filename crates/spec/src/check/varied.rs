//! Networks whose figures vary: for each combination of swept values that a specification gives one, a network of its own.
//!
//! Only the values are put in here; what they may be is judged like those of any other network.

use super::evaluate::Bindings;
use super::names::{across, effective, mentioned};
use super::{Checker, network};
use crate::diagnostic::{Diagnostic, Report, Span};
use crate::tree::{Base, Figure, NetworkItem, Specification, Sweep, Unit, Value, Word};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use stackline_core::network::Network;

/// What a measurement copies for each node and link of such a network.
const WEIGHT: usize = 16;

/// A network with variables, as written.
pub(crate) struct Varied {
    item: NetworkItem,
    variables: Vec<(String, Span)>,
    /// Names of the networks made of it.
    made: BTreeSet<String>,
    /// Whether a specification has its values.
    crossed: bool,
}

impl Varied {
    /// What a measurement across it copies.
    pub(crate) fn weight(&self) -> usize {
        (self.item.node_names().count() + self.item.links.len()) * WEIGHT
    }

    /// Values that its variable may have.
    pub(crate) fn example(&self, variable: &str) -> &'static str {
        let mut example = "1, 2";
        self.item.clone().figures(&mut |value, figure| {
            if matches!(&value.base, Base::Variable(name) if name == variable) {
                example = wanted(value, figure).1;
            }
        });
        example
    }

    /// Its variables, each once.
    fn names(&self) -> impl Iterator<Item = &str> {
        let first = |(at, (name, _)): &(usize, &(String, Span))| {
            !self.variables.iter().take(*at).any(|(other, _)| other == name)
        };
        self.variables.iter().enumerate().filter(first).map(|(_, (name, _))| name.as_str())
    }
}

impl Checker<'_> {
    /// Keeps a network that has variables, until it is known what they stand for.
    pub(crate) fn vary(&mut self, item: &NetworkItem) -> bool {
        let variables = mentioned(self.marked, item.at.clone());
        let varies = !variables.is_empty();
        if varies {
            let varied = Varied { item: item.clone(), variables, made: BTreeSet::new(), crossed: false };
            self.varied.insert(item.name.text.clone(), varied);
        }
        varies
    }

    /// The network that a specification names, or where it names none and needs one, the only one that there is.
    pub(crate) fn crossed<'s>(&'s self, specification: &'s Specification) -> Option<&'s str> {
        let first = specification.parts.first()?;
        if let Some((name, _)) = effective(specification, first, across) {
            return Some(&name.text);
        }
        let modelled = self.context.worlds.iter().find(|available| available.can.world == self.world(specification));
        let only = self.networks.values().next().filter(|only| self.networks.len() == 1 && only.hosts.len() > 1)?;
        let mut ends = specification.parts.iter().flat_map(|part| part.from.iter().chain(&part.to));
        let fits = modelled.is_some_and(|available| available.can.networks)
            && self.varied.contains_key(&only.name)
            && ends.all(|word| only.host(&word.text).is_some());
        fits.then_some(only.name.as_str())
    }

    /// What a specification has to give values for because of the network that it crosses.
    pub(crate) fn crossed_variables(&mut self, specification: &Specification) -> Vec<String> {
        let Some(name) = self.crossed(specification).map(ToString::to_string) else { return Vec::new() };
        let Some(varied) = self.varied.get_mut(&name) else { return Vec::new() };
        varied.crossed = true;
        varied.names().map(ToString::to_string).collect()
    }

    /// Where a specification says which network it crosses.
    pub(crate) fn crossing_span(&self, specification: &Specification) -> Span {
        let clause = specification.parts.first().and_then(|part| effective(specification, part, across));
        clause.map_or(specification.span, |(word, _)| word.span)
    }

    /// The name of the network that a measurement crosses; makes the network where its figures vary.
    pub(crate) fn network_with(&mut self, specification: &Specification, bindings: Bindings<'_>) -> Option<String> {
        let declared = self.crossed(specification)?.to_string();
        let written = specification.parts.first().and_then(|part| effective(specification, part, across)).is_some();
        let Some(varied) = self.varied.get_mut(&declared) else { return written.then_some(declared) };
        let values: Vec<String> = varied.names().map(|name| assignment(name, specification, bindings)).collect();
        let name = format!("{declared}({})", values.join(", "));
        if varied.made.insert(name.clone()) {
            let item = filled(&varied.item, specification, bindings, self.report)?;
            let network = network::resolve(&item, self.report, &mut self.files);
            self.plan.networks.push(Network { name: name.clone(), ..network });
        }
        Some(name)
    }

    /// The values that the network of a measurement takes, as sweeps of one value behind its text.
    pub(crate) fn network_values(&self, specification: &Specification, bindings: Bindings<'_>) -> String {
        let varied = self.crossed(specification).and_then(|name| self.varied.get(name));
        let names = varied.into_iter().flat_map(Varied::names);
        names.map(|name| format!("; {}", assignment(name, specification, bindings))).collect()
    }

    /// Reports variables of networks that no specification crosses.
    pub(crate) fn without_values(&mut self) {
        for varied in self.varied.values().filter(|varied| !varied.crossed) {
            for (name, span) in &varied.variables {
                let network = &varied.item.name.text;
                let message = format!("the variable `{name}` has no values");
                let label = format!("expected a number, or a variable of a specification across `{network}`");
                let hint = format!(
                    "write a number, or a specification with its values, as in `1 {}across {network}; {name} = {}`",
                    ends(&varied.item),
                    varied.example(name)
                );
                self.report.push(Diagnostic::error(*span, message, label).hint(hint));
            }
        }
    }
}

/// `from a to b rr 32*10 ` of the first two hosts.
fn ends(item: &NetworkItem) -> String {
    let names: Vec<&Word> = item.host_names().take(2).collect();
    match names.as_slice() {
        [from, to] => format!("from {} to {} rr 32*10 ", from.text, to.text),
        _ => String::new(),
    }
}

fn sweep<'s>(name: &str, specification: &'s Specification) -> Option<&'s Sweep> {
    specification.sweeps.iter().find(|sweep| sweep.name.text == name)
}

/// `Q = 4096 B`
fn assignment(name: &str, specification: &Specification, bindings: Bindings<'_>) -> String {
    let unit = sweep(name, specification).map_or("", |sweep| sweep.unit.text());
    format!("{name} = {}{unit}", bindings.get(name).unwrap_or_default())
}

/// The network with the values in the place of its variables; `None` where they are of another kind, which is reported.
fn filled(
    item: &NetworkItem,
    specification: &Specification,
    bindings: Bindings<'_>,
    report: &mut Report,
) -> Option<NetworkItem> {
    let before = report.errors();
    let mut item = item.clone();
    item.figures(&mut |value, figure| {
        let Base::Variable(name) = &value.base else { return };
        let Some((sweep, number)) = sweep(name, specification).zip(bindings.get(name)) else { return };
        if let Some(mistake) = another_kind(value, figure, sweep) {
            return report.push(mistake);
        }
        value.base = Base::Number(number);
        if value.unit == Unit::None {
            value.unit = sweep.unit;
        }
    });
    (report.errors() == before).then_some(item)
}

/// What has to stand at a place, and values that may.
fn wanted(value: &Value, figure: Figure) -> (&'static str, &'static str) {
    match figure {
        _ if value.unit != Unit::None => ("a plain number, since the unit stands behind it", "1, 2"),
        Figure::Any | Figure::Plain => ("a plain number", "1, 2"),
        Figure::Size => ("a size", "16 KiB, 64 KiB"),
        Figure::Time => ("a time", "1 ms, 10 ms"),
        Figure::Rate => ("a rate", "1 Mbit/s, 10 Mbit/s"),
        Figure::Percent => ("a percentage", "0.1%, 1%"),
    }
}

/// What is wrong with the values of a variable at a place.
fn another_kind(value: &Value, figure: Figure, sweep: &Sweep) -> Option<Diagnostic> {
    let name = &sweep.name.text;
    let (wanted, such_as) = wanted(value, figure);
    let right = match (figure, sweep.unit) {
        _ if value.unit != Unit::None => sweep.unit == Unit::None,
        (Figure::Any, _)
        | (Figure::Plain | Figure::Size | Figure::Time, Unit::None)
        | (Figure::Size, Unit::Size(_))
        | (Figure::Time, Unit::Time(_))
        | (Figure::Rate, Unit::Rate(_))
        | (Figure::Percent, Unit::Percent) => true,
        _ => false,
    };
    (!right).then(|| {
        let found = match sweep.unit {
            Unit::None => "plain numbers",
            Unit::Size(_) => "sizes",
            Unit::Time(_) => "times",
            Unit::Rate(_) => "rates",
            Unit::Percent => "percentages",
        };
        let message = format!("the values of `{name}` are {found}, but this is {wanted}");
        let diagnostic = Diagnostic::error(sweep.span, message, "these values");
        diagnostic.hint(format!("write them as in `{name} = {such_as}`"))
    })
}
