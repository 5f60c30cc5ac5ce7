//! Which service each flow asks, where a host both answers some and asks others.
//!
//! A proxy receives and sends on the way to it and on the way behind it. Its points of both would be one in an order that no
//! unit meets; the service that a flow asks keeps them apart. Where no host has both roles, nothing is.

use super::unit_id_index::ByNumber;
use stackline_core::trace_index::{Index, RunFlow};
use std::collections::{BTreeMap, BTreeSet};

/// A service by its number, from 1; [`NO_SERVICE`] where they are not kept apart.
pub(crate) type ServiceNumber = u32;
pub(crate) const NO_SERVICE: ServiceNumber = 0;
/// Services that are kept apart at most, those with the most flows; the others are one.
const MOST: usize = 64;

/// The service of each flow.
#[derive(Debug, Default)]
pub(crate) struct FlowServices {
    of: ByNumber<u32, ServiceNumber>,
    names: Vec<String>,
}

impl FlowServices {
    /// The services of a run's flows, where a host answers one and asks another.
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

    /// The service that a flow asks.
    #[inline]
    pub(crate) fn number(&self, flow: u32) -> ServiceNumber {
        if self.names.is_empty() {
            return NO_SERVICE;
        }
        self.of.get(&flow).copied().unwrap_or(NO_SERVICE)
    }

    /// What a service is called; nothing where they are not kept apart.
    pub(crate) fn name(&self, number: ServiceNumber) -> &str {
        let at = number.checked_sub(1).map(|at| at as usize);
        at.and_then(|at| self.names.get(at))
            .map_or("", String::as_str)
    }
}

fn service(flow: &RunFlow) -> String {
    if flow.service.is_empty() {
        flow.hosts.1.clone()
    } else {
        flow.service.clone()
    }
}

/// Whether a host asks one service and answers for another.
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
