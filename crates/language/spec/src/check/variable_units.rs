//! What the values of swept variables are about: the unit that is written with them, or else that of the place where the
//! variable stands.

use super::checker::Checker;
use crate::tree::{
    Base, CountItem, FigureKind, SizeItem, SpecUnit, SpecValue, Specification, Sweep,
};
use alloc::vec::Vec;
use stackline_core::plan::VariableUnit;
use stackline_core::units::Quantity;

impl Checker<'_> {
    /// Of each sweep of a specification, in their order; empty where all values are plain numbers.
    pub(super) fn variable_units(&self, specification: &Specification) -> Vec<VariableUnit> {
        let each = specification.sweeps.iter();
        let units: Vec<VariableUnit> = each
            .map(|sweep| {
                unit_of(sweep.unit.base())
                    .or_else(|| unit_in_parts(specification, sweep))
                    .or_else(|| self.unit_in_network(specification, sweep))
                    .unwrap_or(VariableUnit::NUMBER)
            })
            .collect();
        match units.iter().all(|unit| *unit == VariableUnit::NUMBER) {
            true => Vec::new(),
            false => units,
        }
    }

    fn unit_in_network(
        &self,
        specification: &Specification,
        sweep: &Sweep,
    ) -> Option<VariableUnit> {
        let varied = self.varied.get(self.crossed(specification)?)?;
        let mut found = None;
        varied.item.clone().figures(&mut |value, figure| {
            if found.is_none() && is_variable(value, sweep) {
                found = unit_of(value.unit).or(match figure {
                    FigureKind::Size => unit_of(SpecUnit::Size(1.0)),
                    FigureKind::Time => unit_of(SpecUnit::Time(1.0)),
                    FigureKind::Any
                    | FigureKind::Plain
                    | FigureKind::Rate
                    | FigureKind::Percent => None,
                });
            }
        });
        found
    }
}

/// Of a variable that stands for a size, an amount of data or a parameter of a distribution.
fn unit_in_parts(specification: &Specification, sweep: &Sweep) -> Option<VariableUnit> {
    let of_size = |size: &SizeItem| match size {
        SizeItem::Value(value) if is_variable(value, sweep) => {
            unit_of(value.unit).or(unit_of(SpecUnit::Size(1.0)))
        }
        SizeItem::Value(_) | SizeItem::Drawn(_) => None,
    };
    let data = specification
        .parts
        .iter()
        .filter_map(|part| part.data.as_ref());
    let of_data = data.filter_map(|data| {
        let sizes = core::iter::once(&data.unit).chain(&data.reply);
        let amount = match &data.count {
            CountItem::Amount(value) if is_variable(value, sweep) => {
                unit_of(value.unit).or(unit_of(SpecUnit::Size(1.0)))
            }
            CountItem::Amount(_) | CountItem::Times(_) | CountItem::Open => None,
        };
        sizes.filter_map(of_size).next().or(amount)
    });
    let timings = specification.parts.iter().flat_map(|part| &part.timings);
    let parameters = timings.flat_map(|timing| &timing.drawn.parameters);
    let of_timings = parameters
        .filter(|value| is_variable(value, sweep))
        .filter_map(|value| unit_of(value.unit));
    of_data.chain(of_timings).next()
}

fn is_variable(value: &SpecValue, sweep: &Sweep) -> bool {
    matches!(&value.base, Base::Variable(name) if *name == sweep.name.text)
}

/// `None` without a unit.
const fn unit_of(unit: SpecUnit) -> Option<VariableUnit> {
    let quantity = match unit {
        SpecUnit::None => return None,
        // `/s`; behind a bit rate the values are numbers of its unit.
        SpecUnit::PerSecond(1.0) => Quantity::Frequency,
        SpecUnit::PerSecond(_) => return None,
        SpecUnit::Size(_) => Quantity::Size,
        SpecUnit::Time(_) => Quantity::Time,
        SpecUnit::Rate(_) => Quantity::Rate,
        SpecUnit::Percent => Quantity::Percent,
    };
    Some(VariableUnit {
        quantity,
        factor: unit.factor(),
    })
}
