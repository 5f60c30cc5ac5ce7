//! Which service each flow calls, in runs where a host answers one service and calls another, as a proxy does.
//!
//! A proxy receives and sends both towards its clients and towards the servers behind it. If these were the same points, no unit
//! would pass them in one order; so each service has points of its own. If no host has both roles, services are not distinguished.

use super::unit_id_index::ByNumber;
use stackline_core::trace_index::{Index, RunFlow};
use std::collections::{BTreeMap, BTreeSet};

/// The number of a service, from 1; [`NO_SERVICE`] where services are not distinguished.
pub(crate) type ServiceNumber = u32;
/// The number of flows whose service is not distinguished.
pub(crate) const NO_SERVICE: ServiceNumber = 0;
/// Most services that are distinguished, those with the most flows; all others have [`NO_SERVICE`].
const MOST: usize = 64;

/// The service of each flow.
#[derive(Debug, Default)]
pub(crate) struct FlowServices {
    /// By flow: the number of its service.
    of: ByNumber<u32, ServiceNumber>,
    /// Names of the services 1, 2, ...; empty if they are not distinguished.
    names: Vec<String>,
}

impl FlowServices {
    /// The services of a run's flows; none if no host both answers a service and calls another.
    pub(crate) fn of_run(index: Option<&Index>) -> Self {
        let flows = index.map_or(&[][..], |index| &index.flows);
        if !has_both_roles(flows) {
            return Self::default();
        }
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for flow in flows {
            *counts.entry(service(flow)).or_default() += 1;
        }
        let mut names: Vec<String> = counts.keys().cloned().collect();
        names.sort_by_key(|name| std::cmp::Reverse(counts[name]));
        names.truncate(MOST);
        let number = |flow: &RunFlow| {
            let at = names.iter().position(|name| *name == service(flow));
            at.map_or(NO_SERVICE, |at| at as ServiceNumber + 1)
        };
        let of = flows.iter().map(|flow| (flow.id, number(flow))).collect();
        Self { of, names }
    }

    /// The number of the service that a flow calls.
    #[inline]
    pub(crate) fn number(&self, flow: u32) -> ServiceNumber {
        if self.names.is_empty() {
            return NO_SERVICE;
        }
        self.of.get(&flow).copied().unwrap_or(NO_SERVICE)
    }

    /// The name of a service; empty for [`NO_SERVICE`].
    pub(crate) fn name(&self, number: ServiceNumber) -> &str {
        let at = number.checked_sub(1).map(|at| at as usize);
        at.and_then(|at| self.names.get(at))
            .map_or("", String::as_str)
    }
}

/// The name of a flow's service; of flows without one, the responder.
fn service(flow: &RunFlow) -> String {
    if flow.service.is_empty() {
        flow.hosts.1.clone()
    } else {
        flow.service.clone()
    }
}

/// Whether a host calls one service and answers for another.
fn has_both_roles(flows: &[RunFlow]) -> bool {
    let answering = |flow: &RunFlow| flow.service_host().to_owned();
    let asking = |flow: &RunFlow| {
        let (first, second) = (&flow.hosts.0, &flow.hosts.1);
        if flow.service_host() == second {
            first
        } else {
            second
        }
        .clone()
    };
    let mut answered: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for flow in flows {
        answered
            .entry(answering(flow))
            .or_default()
            .insert(service(flow));
    }
    flows.iter().any(|flow| {
        let others = answered.get(&asking(flow));
        others.is_some_and(|others| others.iter().any(|other| *other != service(flow)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(id: u32, from: &str, to: &str, service: &str) -> RunFlow {
        RunFlow {
            id,
            hosts: (from.into(), to.into()),
            service: service.into(),
            ..RunFlow::default()
        }
    }

    fn services(flows: &[RunFlow]) -> Vec<String> {
        let index = Index {
            flows: flows.to_vec(),
            ..Index::default()
        };
        let services = FlowServices::of_run(Some(&index));
        let name = |flow: &RunFlow| services.name(services.number(flow.id)).to_owned();
        flows.iter().map(name).collect()
    }

    #[test]
    fn a_proxy_has_two_roles() {
        let chain = [
            flow(0, "client", "web", "web:80"),
            flow(1, "web", "app", "app:8000"),
        ];
        assert_eq!(services(&chain), ["web:80", "app:8000"]);
        let here = [
            flow(0, "here", "here", "here:80"),
            flow(1, "here", "here", "here:5432"),
        ];
        assert_eq!(services(&here), ["here:80", "here:5432"]);
    }

    #[test]
    fn hosts_with_one_role_are_not_kept_apart() {
        let star = [flow(0, "a", "c", ""), flow(1, "b", "c", "")];
        assert_eq!(services(&star), ["", ""]);
        assert_eq!(services(&[flow(0, "here", "here", "here:80")]), [""]);
    }

    #[test]
    fn a_connection_that_the_server_began_asks_the_same_service() {
        let reversed = [
            flow(0, "client", "web", "web:80"),
            flow(1, "app", "web", "app:21"),
        ];
        assert_eq!(services(&reversed), ["web:80", "app:21"]);
    }
}
