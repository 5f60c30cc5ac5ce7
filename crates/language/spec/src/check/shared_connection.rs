//! Checks parts that share connections by name (`connection = NAME`): they ask one server in one way, from one host.

use super::checker::Checker;
use crate::diagnostic::Diagnostic;
use crate::tree::Specification;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use stackline_core::catalogue::{OptionKind, OptionTable};
use stackline_core::far_end::FarEndAddress;
use stackline_core::plan::{MeasurementPart, Stack};

impl Checker<'_> {
    /// Checks all parts of a measurement.
    pub(crate) fn shared_connections(
        &mut self,
        specification: &Specification,
        parts: &[Option<MeasurementPart>],
    ) {
        let mut first: BTreeMap<&str, &MeasurementPart> = BTreeMap::new();
        let mut pairs: BTreeMap<&str, u64> = BTreeMap::new();
        for (item, part) in specification.parts.iter().zip(parts) {
            let Some(part) = part else { continue };
            let Some(name) = part.stack.word(OptionTable::CONNECTION.name) else {
                continue;
            };
            let here = pairs.entry(name).or_default();
            *here = here.saturating_add(pairs_a_connection(&part.stack));
            let one = first.entry(name).or_insert(part);
            let Some(differs) = difference(one, part).or_else(|| too_many(*here)) else {
                continue;
            };
            let message = format!("parts cannot share the connection `{name}`: {differs}");
            let span = item.to.as_ref().map_or(item.application.span, |to| to.span);
            let mistake = Diagnostic::error(span, message, "this part shares it");
            self.report
                .push(mistake.hint("give the part another name for its connection, or none"));
        }
    }
}

/// How many pairs of a part are on one connection.
fn pairs_a_connection(stack: &Stack) -> u64 {
    stack.number(OptionTable::STREAMS.name).unwrap_or(1)
}

/// Why more pairs than that are too many.
fn too_many(pairs: u64) -> Option<String> {
    let OptionKind::Number(_, most) = OptionTable::STREAMS.kind else {
        return None;
    };
    (pairs > most).then(|| format!("{pairs} pairs would be on it, and {most} can be"))
}

/// What is different in two parts that has to be the same on one connection.
fn difference(one: &MeasurementPart, other: &MeasurementPart) -> Option<String> {
    let server = |part: &MeasurementPart| {
        let address = FarEndAddress::parse(part.to.as_deref()?).ok()?;
        Some((address.scheme, address.host, address.port))
    };
    if server(one) != server(other) {
        return Some("their addresses name different servers".into());
    }
    if one.from != other.from {
        return Some("their initiators are on different hosts".into());
    }
    let options = |part: &MeasurementPart| {
        let mut options = part.stack.options.clone();
        options.remove(OptionTable::STREAMS.name);
        options
    };
    let (ours, theirs) = (options(one), options(other));
    let mut names = ours.keys().chain(theirs.keys());
    let name = names.find(|name| ours.get(*name) != theirs.get(*name))?;
    Some(format!("the option `{name}` differs"))
}
