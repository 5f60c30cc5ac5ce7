//! Observed full link: one-way transfers of any program, or requests without a known answer, during which the slowest link of their path
//! was full.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::Finding;
use crate::findings::kind::{Find, FindingKind};
use crate::findings::observed::connections::is_observed;
use crate::findings::requests::costs::LARGE;
use crate::findings::requests::network::{RequestMessages, Slowest};
use crate::findings::requests::request::TracedRequest;
use crate::findings::requests::worst::format_client_server;
use stackline_core::units;
use std::collections::BTreeSet;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "observed_full_link",
    meaning: "in traced transfers: the slowest link of their path was full while they crossed it",
    find: &[Find::Run(find)],
};

fn find(log: &FindingEventLog<'_>) -> Option<Finding> {
    if !is_observed(log) {
        return None;
    }
    let is_transfer = |request: &&TracedRequest| {
        let has_answer = request.is_call && request.unknown.is_none();
        !has_answer && request.bytes.0 >= LARGE
    };
    let transfers: Vec<&TracedRequest> = log.costs()?.requests.iter().filter(is_transfer).collect();
    let largest = transfers.iter().max_by_key(|request| request.bytes.0)?;
    let all: BTreeSet<i64> = transfers.iter().map(|request| request.unit).collect();
    let slowest = Slowest::from_log(log, &RequestMessages::from_log(log, &all).of_length(LARGE))
        .filter(Slowest::is_full)?;
    let bytes: u64 = transfers
        .iter()
        .map(|request| request.bytes.0.unsigned_abs())
        .sum();
    let sentence = format!(
        "transfers of {} in total, such as {}, are limited by the rate of a link: {}",
        units::format_size(bytes),
        format_client_server(largest),
        slowest.words()
    );
    let found = KIND.of_run(slowest.share(), 0.9, sentence);
    Some(
        found
            .because(slowest.evidence(log))
            .attempt("send less (compress, or request only parts), or use a faster path"),
    )
}
