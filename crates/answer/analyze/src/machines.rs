//! Which machine a host of the plan runs on, to tell whether two hosts share one.

use stackline_core::plan::{MeasurementPart, Plan, Via};

/// A machine: the destination of ssh, TCP or a command; `None` is the coordinator's own machine.
pub(crate) type MachineDestination<'p> = Option<&'p str>;

/// The machine of a host. A part without a host, or with one unknown to the plan, runs as a child process on the coordinator's
/// machine.
pub(crate) fn machine<'p>(plan: &'p Plan, host: Option<&str>) -> MachineDestination<'p> {
    match &plan.hosts.get(host?)?.via {
        Via::Local => None,
        Via::Ssh(there) | Via::Tcp(there) | Via::Exec(there) | Via::FarEnd(there) => Some(there),
    }
}

/// Whether both sides of a part run on one machine.
pub(crate) fn on_one(plan: &Plan, part: &MeasurementPart) -> bool {
    machine(plan, part.from.as_deref()) == machine(plan, part.to.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_core::plan::HostPlan;

    #[test]
    fn hosts_are_machines() {
        let ssh = |to: &str| HostPlan {
            via: Via::Ssh(to.into()),
            ..HostPlan::default()
        };
        let hosts = [
            ("a", ssh("u@x")),
            ("b", ssh("u@x")),
            ("c", ssh("u@y")),
            ("d", HostPlan::default()),
        ];
        let hosts = hosts.map(|(name, host)| (name.to_owned(), host)).into();
        let plan = Plan {
            seed: 1,
            hosts,
            networks: vec![],
            measurements: vec![],
        };
        let of = |name| machine(&plan, name);
        assert_eq!((of(Some("a")), of(Some("a"))), (of(Some("b")), Some("u@x")));
        assert_ne!(of(Some("a")), of(Some("c")));
        assert_eq!((of(Some("d")), of(Some("nobody"))), (of(None), None));
    }
}
