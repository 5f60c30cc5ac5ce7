//! The hosts that a plan or a run needs, by name: those that the specification names, and two built-in names for agents on this machine
//! where it names none.

use stackline_core::far_end::is_address;
use stackline_core::plan::{HostPlan, Measurement, Plan};
use stackline_core::run_schedule::ScheduledRun;
use std::collections::{BTreeMap, BTreeSet};

/// Name of the agent that initiates when a specification says no FROM.
pub const LOCAL_INITIATOR: &str = "(local initiator)";
/// Name of the agent that responds when a specification says no TO.
pub const LOCAL_RESPONDER: &str = "(local responder)";

/// Every host that the chosen measurements of a plan use, without far ends, which have no agent.
pub fn hosts_of_plan(
    plan: &Plan,
    chosen: impl Fn(&Measurement) -> bool,
) -> BTreeMap<String, HostPlan> {
    let mut hosts = BTreeMap::new();
    let parts = plan
        .measurements
        .iter()
        .filter(|measurement| chosen(measurement))
        .flat_map(|m| &m.parts);
    for part in parts {
        let responder = part.to.as_deref().unwrap_or(LOCAL_RESPONDER);
        for name in [
            Some(part.from.as_deref().unwrap_or(LOCAL_INITIATOR)),
            (!is_address(responder)).then_some(responder),
        ]
        .into_iter()
        .flatten()
        {
            let host = plan.hosts.get(name).cloned().unwrap_or_default();
            hosts.insert(name.to_string(), host);
        }
    }
    hosts
}

/// The names of the hosts whose agents a run needs.
pub(super) fn hosts_of_run(scheduled: &ScheduledRun<'_>) -> BTreeSet<String> {
    let ends = scheduled.measurement.parts.iter().flat_map(|part| {
        [
            part.from.as_deref().unwrap_or(LOCAL_INITIATOR),
            part.to.as_deref().unwrap_or(LOCAL_RESPONDER),
        ]
    });
    ends.filter(|name| !is_address(name))
        .map(str::to_owned)
        .collect()
}
