//! Checks destination FILEs: data must be sent to them, and each must have a single writer.

use super::checker::Checker;
use crate::diagnostic::Diagnostic;
use crate::tree::{AccessItem, PartItem, Specification, Word};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use stackline_core::plan::{MeasurementPart, Stack};
use stackline_core::procedure::{OperationCall, PairSide, Procedure};

const HINT: &str = "give each writer its own FILE, or write `> memory`";

impl Checker<'_> {
    /// Checks one part by itself.
    pub(crate) fn destination(&mut self, item: &PartItem, stack: &Stack, replicas: u64) {
        let Some(file) = destination(item) else {
            return;
        };
        if stack.word("receive") == Some("truncate") {
            let message = format!(
                "`{}(receive = truncate)` discards the data meant for the FILE",
                stack.name
            );
            let diagnostic =
                Diagnostic::error(file.span, message, "nothing would be written to it");
            self.report
                .push(diagnostic.hint("omit `receive = truncate`, or write `> memory`"));
        }
        if replicas > 1 {
            let message = format!("{replicas} pairs would overwrite the same FILE");
            let diagnostic = Diagnostic::error(file.span, message, "expected one pair, or no FILE");
            self.report
                .push(diagnostic.hint("omit the number of pairs, or write `> memory`"));
        }
    }

    /// Checks all parts of a measurement, which write at the same time.
    pub(crate) fn destinations(
        &mut self,
        specification: &Specification,
        parts: &[Option<MeasurementPart>],
    ) {
        let mut writers: BTreeMap<(&Option<String>, &str), usize> = BTreeMap::new();
        for (index, (item, part)) in specification.parts.iter().zip(parts).enumerate() {
            let (Some(file), Some(part)) = (destination(item), part) else {
                continue;
            };
            for (side, host) in [
                (PairSide::Initiator, &part.from),
                (PairSide::Responder, &part.to),
            ] {
                if !takes(&part.procedure, side) {
                    continue;
                }
                let message = match writers.insert((host, &file.text), index) {
                    None => continue,
                    Some(other) if other == index => {
                        format!(
                            "both sides of `{}` would overwrite the same FILE",
                            part.procedure.name
                        )
                    }
                    Some(_) => "two parts of a measurement would overwrite the same FILE".into(),
                };
                let diagnostic =
                    Diagnostic::error(file.span, message, "another writer on this host uses it");
                self.report.push(diagnostic.hint(HINT));
            }
        }
    }
}

fn destination(item: &PartItem) -> Option<&Word> {
    item.destination.as_ref().and_then(AccessItem::file)
}

/// Whether that side writes data that arrives.
fn takes(procedure: &Procedure, side: PairSide) -> bool {
    let calls = procedure.calls(side);
    calls.iter().any(|call| {
        matches!(
            call,
            OperationCall::AwaitDataIndication(_) | OperationCall::WriteFile(_)
        )
    })
}
