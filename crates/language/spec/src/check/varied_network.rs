//! Networks with variables in their figures: the variables, and the network with values in their place.
//!
//! Only the values are filled in here; the result is checked like any other network.

use super::evaluate::Bindings;
use crate::diagnostic::{Diagnostic, DiagnosticReport, TextSpan};
use crate::tree::{Base, FigureKind, NetworkItem, SpecUnit, SpecValue, Specification, Sweep, Word};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// What a measurement copies for each node and link of such a network, in units of the work budget.
const WEIGHT: usize = 16;

/// A network with variables, as written.
pub(crate) struct VariedNetwork {
    pub(super) item: NetworkItem,
    pub(super) variables: Vec<(String, TextSpan)>,
    /// The names of the networks made from it.
    pub(super) made: BTreeSet<String>,
    /// Whether a specification gives it values.
    pub(super) crossed: bool,
}

impl VariedNetwork {
    /// What a measurement across it copies.
    pub(crate) fn weight(&self) -> usize {
        (self.item.node_names().count() + self.item.links.len()) * WEIGHT
    }

    /// Example values for a variable, for hints.
    pub(crate) fn example(&self, variable: &str) -> &'static str {
        let mut example = "1, 2";
        self.item.clone().figures(&mut |value, figure| {
            if matches!(&value.base, Base::Variable(name) if name == variable) {
                example = wanted(value, figure).1;
            }
        });
        example
    }

    /// The names of its variables, each once.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let first = |(at, (name, _)): &(usize, &(String, TextSpan))| {
            !self
                .variables
                .iter()
                .take(*at)
                .any(|(other, _)| other == name)
        };
        self.variables
            .iter()
            .enumerate()
            .filter(first)
            .map(|(_, (name, _))| name.as_str())
    }
}

/// `from a to b rr 32*10 ` of the first two hosts.
pub(super) fn ends(item: &NetworkItem) -> String {
    let names: Vec<&Word> = item.host_names().take(2).collect();
    match names.as_slice() {
        [from, to] => format!("from {} to {} rr 32*10 ", from.text, to.text),
        _ => String::new(),
    }
}

fn sweep<'s>(name: &str, specification: &'s Specification) -> Option<&'s Sweep> {
    specification
        .sweeps
        .iter()
        .find(|sweep| sweep.name.text == name)
}

/// `Q = 4 KiB`
pub(super) fn assignment(
    name: &str,
    specification: &Specification,
    bindings: Bindings<'_>,
) -> String {
    let value = bindings.get(name).unwrap_or_default();
    let unit = sweep(name, specification).map_or(SpecUnit::None, |sweep| sweep.unit);
    format!("{name} = {}", unit.written(value))
}

/// The network with the values in the place of its variables; `None` where they are of another kind, which is reported.
pub(super) fn fill_in_values(
    item: &NetworkItem,
    specification: &Specification,
    bindings: Bindings<'_>,
    report: &mut DiagnosticReport,
) -> Option<NetworkItem> {
    let before = report.errors();
    let mut item = item.clone();
    item.figures(&mut |value, figure| {
        let Base::Variable(name) = &value.base else {
            return;
        };
        let Some((sweep, number)) = sweep(name, specification).zip(bindings.get(name)) else {
            return;
        };
        if let Some(mistake) = another_kind(value, figure, sweep) {
            return report.push(mistake);
        }
        value.base = Base::Number(number);
        if value.unit == SpecUnit::None {
            value.unit = sweep.unit;
        }
    });
    (report.errors() == before).then_some(item)
}

/// What has to stand at a place, and values that may.
fn wanted(value: &SpecValue, figure: FigureKind) -> (&'static str, &'static str) {
    match figure {
        _ if value.unit != SpecUnit::None => {
            ("a plain number, since a unit follows the variable", "1, 2")
        }
        FigureKind::Any | FigureKind::Plain => ("a plain number", "1, 2"),
        FigureKind::Size => ("a size", "16 KiB, 64 KiB"),
        FigureKind::Time => ("a time", "1 ms, 10 ms"),
        FigureKind::Rate => ("a rate", "1 Mbit/s, 10 Mbit/s"),
        FigureKind::Percent => ("a percentage", "0.1%, 1%"),
    }
}

/// What is wrong with the values of a variable at a place.
fn another_kind(value: &SpecValue, figure: FigureKind, sweep: &Sweep) -> Option<Diagnostic> {
    let name = &sweep.name.text;
    let (wanted, such_as) = wanted(value, figure);
    let right = match (figure, sweep.unit) {
        _ if value.unit != SpecUnit::None => sweep.unit == SpecUnit::None,
        (FigureKind::Any, _)
        | (FigureKind::Plain | FigureKind::Size | FigureKind::Time, SpecUnit::None)
        | (FigureKind::Size, SpecUnit::Size(_))
        | (FigureKind::Time, SpecUnit::Time(_))
        | (FigureKind::Rate, SpecUnit::Rate(_))
        | (FigureKind::Percent, SpecUnit::Percent) => true,
        _ => false,
    };
    (!right).then(|| {
        let found = match sweep.unit {
            SpecUnit::None => "plain numbers",
            SpecUnit::Size(_) => "sizes",
            SpecUnit::Time(_) => "times",
            SpecUnit::Rate(_) => "rates",
            SpecUnit::Percent => "percentages",
            SpecUnit::PerSecond(_) => "rates per second",
        };
        let message = format!("the values of `{name}` are {found}; each must be {wanted}");
        let diagnostic = Diagnostic::error(sweep.span, message, "these values");
        diagnostic.hint(format!("write values, as in `{name} = {such_as}`"))
    })
}
