//! Checks parts whose responder is a far end: a server outside the run, `to "http://b.example/"`. Its address says
//! which protocol is spoken, and so which stack.

use super::checker::Checker;
use super::clauses::{clause_network, clause_stacks, find_effective_clause};
use super::evaluate::Bindings;
use super::stack;
use super::timing::timing_slots;
use crate::diagnostic::Diagnostic;
use crate::tree::{PartItem, SizeItem, Specification, StackItem, Word};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use stackline_core::catalogue::StackTable;
use stackline_core::far_end::{FarEndAddress, is_address};
use stackline_core::plan::{HostPlan, Stack, Via, World};
use stackline_core::procedure::{DelayArgument, OperationCall, PairSide, Procedure};

/// The far end of a part, if it has one.
pub(crate) fn written(part: &PartItem) -> Option<&Word> {
    part.to.as_ref().filter(|to| is_address(&to.text))
}

impl Checker<'_> {
    /// Checks the address and what a far end cannot have, reports it, and declares the far end. True for a part with one.
    pub(crate) fn far_end(&mut self, specification: &Specification, part: &PartItem) -> bool {
        let Some(to) = written(part) else {
            return false;
        };
        if let Some(mistake) = self.far_end_mistake(specification, part, to) {
            self.report.push(mistake);
            return true;
        }
        if let Some(from) = &part.from {
            self.declared_host(from);
        }
        let host = HostPlan {
            via: Via::FarEnd(to.text.clone()),
            ..HostPlan::default()
        };
        self.hosts.insert(to.text.clone(), host);
        true
    }

    fn far_end_mistake(
        &self,
        specification: &Specification,
        part: &PartItem,
        to: &Word,
    ) -> Option<Diagnostic> {
        let address = match FarEndAddress::parse(&to.text) {
            Ok(address) => address,
            Err(error) => {
                let diagnostic = Diagnostic::error(to.span, error.message, "this address");
                return Some(diagnostic.hint(error.hint.unwrap_or_default()));
            }
        };
        if let Some((_, clause)) = find_effective_clause(specification, part, clause_network) {
            let message = "a server outside the run is not on a modelled network";
            let diagnostic = Diagnostic::error(clause.span, message, "a modelled network");
            return Some(
                diagnostic.hint("omit it; `stackline trace --on` runs your own programs on one"),
            );
        }
        let world = self.world(specification);
        if world != World::Live {
            let message = format!("a server outside the run cannot be {world}");
            let diagnostic = Diagnostic::error(to.span, message, "this server");
            return Some(
                diagnostic.hint("omit `in` (or `--in`): such measurements run in the live world"),
            );
        }
        let tables = self.tables(specification);
        let Some(table) = table(&address, tables) else {
            let known: Vec<&str> = far_end_tables(tables).map(StackTable::scheme).collect();
            let message = format!("no client for `{}://` is known", address.scheme);
            let hint = format!("the protocols of servers are {}", known.join(", "));
            let diagnostic = Diagnostic::error(to.span, message, "this protocol");
            return Some(diagnostic.did_you_mean(&address.scheme, known.iter().copied(), hint));
        };
        if let Some(instead) = &self.instead {
            let others = specification
                .parts
                .iter()
                .any(|part| written(part).is_none());
            let named = instead
                .stacks
                .iter()
                .any(|item| item.name.text == table.name);
            return (!named && !others).then(|| {
                let message = format!("the address says the protocol: {}", table.name);
                Diagnostic::error(to.span, message, "`--over` names another stack").hint(format!(
                    "omit `--over`, or give options: `--over '{}(...)'`",
                    table.name
                ))
            });
        }
        let (items, clause) = find_effective_clause(specification, part, clause_stacks)?;
        let same = items.iter().all(|item| item.name.text == table.name);
        (!same).then(|| {
            let message = format!("the address says the protocol: {}", table.name);
            let hint = format!(
                "omit `over`, or write options of the protocol: `over {}(...)`",
                table.name
            );
            Diagnostic::error(clause.span, message, "another stack").hint(hint)
        })
    }

    /// What is written of the options of a part with a far end: an entry for each version of them that is measured.
    fn far_end_items<'s>(
        &'s self,
        specification: &'s Specification,
        part: &'s PartItem,
    ) -> Option<Vec<&'s StackItem>> {
        let address = FarEndAddress::parse(&written(part)?.text).ok()?;
        let name = table(&address, self.tables(specification))?.name;
        let clause = find_effective_clause(specification, part, clause_stacks);
        let items = match &self.instead {
            Some(instead) => Some(instead.stacks.as_slice()),
            None => clause.map(|(items, _)| items),
        };
        let own = |item: &&StackItem| item.name.text == name;
        Some(items.unwrap_or_default().iter().filter(own).collect())
    }

    /// How many versions of the options of a part with a far end are measured; 1 unless several are written.
    pub(crate) fn far_end_versions(&self, specification: &Specification, part: &PartItem) -> usize {
        let whole = self.instead.as_ref().map(|instead| instead.stacks.len());
        let own = self.far_end_items(specification, part);
        let own = own.map_or(1, |items| items.len());
        // On the command line the stacks of other parts may stand beside it.
        if whole.is_some_and(|whole| whole != own) {
            1
        } else {
            own
        }
    }

    /// The stack of a part with a far end, with the options that are written, of which `index` is the version; mistakes are reported.
    pub(crate) fn far_end_stack(
        &mut self,
        specification: &Specification,
        part: &PartItem,
        bindings: Bindings<'_>,
        index: usize,
    ) -> Option<Stack> {
        let address = FarEndAddress::parse(&written(part)?.text).ok()?;
        let tables = self.tables(specification);
        let items = self.far_end_items(specification, part)?;
        let item: Option<StackItem> = items.get(index).or(items.first()).copied().cloned();
        let Some(item) = item else {
            return Some(table(&address, tables)?.stack(BTreeMap::new()));
        };
        let resolved = stack::resolve(&item, tables, bindings, self.report);
        self.report.keep(resolved)
    }

    /// Checks that the protocol has what the part asks of it, that its far end can do it, and that a stack for far ends has one.
    pub(crate) fn protocol_serves(
        &mut self,
        part: &PartItem,
        procedure: &Procedure,
        table: &StackTable,
    ) {
        let mistake = match (written(part), table.far_end) {
            (Some(_), _) => unmapped_operation(part, procedure, table)
                .or_else(|| served_otherwise(part, procedure)),
            (None, true) => {
                let message = format!("`{}` needs the address of a server", table.name);
                let hint = format!(
                    "write `to \"{}://127.0.0.1/\"` before the application type",
                    table.scheme()
                );
                let span = part.application.span;
                Some(Diagnostic::error(span, message, "no address before this").hint(hint))
            }
            // What waits for a responder that never sends has an error of its own.
            (None, false) if table.one_way || table.mapping.0.is_empty() => None,
            (None, false) => unmapped_operation(part, procedure, table),
        };
        if let Some(mistake) = mistake {
            self.report.push(mistake);
        }
    }
}

/// The tables of the protocols that far ends speak.
fn far_end_tables(tables: &[StackTable]) -> impl Iterator<Item = &StackTable> {
    tables.iter().filter(|table| table.far_end)
}

fn table<'t>(address: &FarEndAddress, tables: &'t [StackTable]) -> Option<&'t StackTable> {
    far_end_tables(tables).find(|table| table.scheme() == address.scheme)
}

/// An operation of the initiator that the protocol has no service for.
fn unmapped_operation(
    part: &PartItem,
    procedure: &Procedure,
    table: &StackTable,
) -> Option<Diagnostic> {
    let mut calls = procedure.calls(PairSide::Initiator).into_iter();
    let missing = calls.find(|call| !call.is_local() && !table.mapping.maps(call.name()))?;
    let message = format!(
        "`{}` has nothing for {}, which `{}` uses",
        table.name,
        missing.name(),
        procedure.name
    );
    let can = [
        ("RPCCall", "request_response"),
        ("StartBulkGet", "bulk_get"),
        ("StartBulkPut", "bulk_put"),
        ("ConnectRequest", "connect_disconnect"),
    ];
    let can: Vec<&str> = can
        .into_iter()
        .filter(|(operation, _)| table.mapping.maps(operation))
        .map(|(_, name)| name)
        .collect();
    let diagnostic = Diagnostic::error(part.application.span, message, "this application type");
    Some(diagnostic.hint(format!("it can do {}", can.join(", "))))
}

/// Something written that only a responder of ours would heed: the size of its answers, or the times that it takes.
fn served_otherwise(part: &PartItem, procedure: &Procedure) -> Option<Diagnostic> {
    if let Some(reply) = part.data.as_ref().and_then(|data| data.reply.as_ref()) {
        let span = match reply {
            SizeItem::Value(value) => value.span,
            SizeItem::Drawn(drawn) => drawn.span,
        };
        let message = "the server decides how long its answers are";
        return Some(
            Diagnostic::error(span, message, "a size of answers").hint("omit the second size"),
        );
    }
    let calls = procedure.calls(PairSide::Responder);
    let initiator = procedure.calls(PairSide::Initiator);
    let timed = |calls: &[&OperationCall], index: usize| {
        calls.iter().any(|call| {
            matches!(call, OperationCall::Delay(DelayArgument::Timing(at)) | OperationCall::Pace(DelayArgument::Timing(at)) if *at == index)
        })
    };
    let slots = timing_slots(part, procedure);
    let (index, timing) = slots
        .into_iter()
        .zip(&part.timings)
        .filter_map(|(slot, timing)| Some((slot.ok()?, timing)))
        .find(|(index, _)| timed(&calls, *index) && !timed(&initiator, *index))?;
    let name = procedure
        .timings
        .get(index)
        .map_or_else(|| "this".to_string(), ToString::to_string);
    let message = format!("the server takes the time that it takes; `{name}` has no effect on it");
    Some(Diagnostic::error(timing.span, message, "a time of the responder").hint("omit it"))
}
