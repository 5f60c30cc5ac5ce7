//! Checks the classes of a queue: their code points, weights, limits and disciplines.

use super::figures::LARGEST_BUFFER;
use super::queue::{MOST_PACKETS, class_codel};
use super::traffic_control::dscp;
use crate::check::evaluate::fixed;
use crate::diagnostic::{Diagnostic, DiagnosticReport};
use crate::tree::{ClassItem, DisciplineItem, QueueLimit};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec::Vec;
use stackline_core::network::{ClassService, QueueClass, dscp_name};

/// Largest weight of a class.
const LARGEST_WEIGHT: u64 = 10_000;

/// The classes, those of strict priority first, with every mistake in them reported.
pub(super) fn resolve(item: &DisciplineItem, report: &mut DiagnosticReport) -> Vec<QueueClass> {
    let mut known: BTreeSet<u8> = BTreeSet::new();
    let mut has_default = false;
    let mut classes = Vec::new();
    for item in &item.classes {
        if item.dscps.is_empty() && core::mem::replace(&mut has_default, true) {
            let message = "the class `default` is given twice";
            report.push(Diagnostic::error(
                item.span,
                message,
                "already given for this queue",
            ));
        }
        classes.push(class(item, &mut known, report));
    }
    if !has_default {
        let message = "the classes have no `default`, for all other code points";
        let diagnostic = Diagnostic::error(item.name.span, message, "packets would have no class");
        report.push(diagnostic.hint("add it, as in `classes(ef strict, default weight 1)`"));
    }
    classes.sort_by_key(|class| class.service != ClassService::Strict);
    classes
}

fn class(item: &ClassItem, known: &mut BTreeSet<u8>, report: &mut DiagnosticReport) -> QueueClass {
    let mut dscps = Vec::new();
    for value in &item.dscps {
        let Some(dscp) = report.keep(dscp(value)) else {
            continue;
        };
        if !known.insert(dscp) {
            let message = format!("the code point {} is in two classes", dscp_name(dscp));
            report.push(
                Diagnostic::error(value.span, message, "already given for this queue")
                    .hint("a code point belongs to one class"),
            );
        }
        dscps.push(dscp);
    }
    let service = match &item.weight {
        None => ClassService::Strict,
        Some(value) => {
            let weight = report.keep(fixed(value, "a weight", 1, LARGEST_WEIGHT));
            ClassService::Weight(weight.map_or(1, |weight| u32::try_from(weight).unwrap_or(1)))
        }
    };
    let mut class = QueueClass {
        dscps,
        service,
        codel: item
            .discipline
            .as_ref()
            .and_then(|item| class_codel(item, report)),
        ..QueueClass::default()
    };
    match &item.limit {
        Some(QueueLimit::Bytes(value)) => {
            class.limit_bytes = report.keep(fixed(value, "a class", 1, LARGEST_BUFFER));
        }
        Some(QueueLimit::Packets(value)) => {
            class.limit_packets = report.keep(fixed(value, "a class", 1, MOST_PACKETS));
        }
        None => {}
    }
    class
}
