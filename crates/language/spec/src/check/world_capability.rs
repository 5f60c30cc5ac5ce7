//! Checks that the world of a measurement can do what the measurement needs.
//!
//! It compares the finished plan with the world's capabilities, the stacks' tables and the cores of this machine as
//! far as they are given. Facts that only the machine knows (rights, addresses, files) are not checked here.

use super::checker::Checker;
use super::clauses::{clause_network, find_effective_clause};
use super::measurement_origin::MeasurementOrigin;
use crate::diagnostic::{Diagnostic, TextSpan};
use crate::tree::{AccessItem, ClauseKind, PartItem, SpecItem, Specification, Tree};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use stackline_core::catalogue::{Capabilities, LEAST_IPV6_MTU, StackTable, is_over_ipv6};
use stackline_core::network::{DEFAULT_MTU, MOST_HOPS, MOST_IMP_HOPS, Network, NetworkLink};
use stackline_core::plan::{
    Composer, DataAccess, HostPlan, Measurement, MeasurementPart, Stack, Via, describe_swept_values,
};
use stackline_core::procedure::{OperationCall, PairSide};
use stackline_core::routes;

impl Checker<'_> {
    /// Reports what the worlds cannot do. If they can carry out other rows of the same sweep over the same stacks, the plan loses the row
    /// with a warning; otherwise only the first such measurement of a specification is reported.
    pub(crate) fn judge(&mut self, tree: &Tree) {
        let found: Vec<Vec<Diagnostic>> = (self.plan.measurements.iter())
            .zip(&self.origins)
            .map(|(measurement, origin)| self.beyond_its_world(tree, measurement, origin))
            .collect();
        let rows = || self.plan.measurements.iter().zip(&self.origins).zip(&found);
        let possible: BTreeSet<SweptStacks> = rows()
            .filter(|(_, found)| found.is_empty())
            .map(|((measurement, origin), _)| SweptStacks::new(measurement, origin))
            .collect();
        let is_left_out: Vec<bool> = rows()
            .map(|((measurement, origin), found)| {
                !found.is_empty() && possible.contains(&SweptStacks::new(measurement, origin))
            })
            .collect();
        let mut refused = None;
        for (index, found) in found.into_iter().enumerate() {
            let item = self.origins[index].item;
            let row = is_left_out[index].then(|| {
                let measurement = &self.plan.measurements[index];
                describe_swept_values(&measurement.variables, &measurement.variable_units)
            });
            if found.is_empty() || (row.is_none() && refused == Some(item)) {
                continue;
            }
            if row.is_none() {
                refused = Some(item);
            }
            for diagnostic in found {
                self.report.push(match &row {
                    Some(row) => diagnostic.leaves_out(row),
                    None => diagnostic,
                });
            }
        }
        let mut kept = is_left_out.iter().map(|is_left_out| !is_left_out);
        self.plan
            .measurements
            .retain(|_| kept.next().unwrap_or(true));
        let mut kept = is_left_out.iter().map(|is_left_out| !is_left_out);
        self.origins.retain(|_| kept.next().unwrap_or(true));
    }

    /// What the world of a measurement cannot do.
    fn beyond_its_world(
        &self,
        tree: &Tree,
        measurement: &Measurement,
        origin: &MeasurementOrigin,
    ) -> Vec<Diagnostic> {
        let Some(SpecItem::Specification(specification)) = tree.items.get(origin.item) else {
            return Vec::new();
        };
        let mut worlds = self.context.worlds.iter();
        let Some(available) = worlds.find(|world| world.can.world == measurement.world) else {
            return Vec::new();
        };
        let network = measurement.across.as_ref();
        let network = network.and_then(|name| {
            self.plan
                .networks
                .iter()
                .find(|network| network.name == *name)
        });
        let (hosts, cores) = (&self.plan.hosts, self.context.cores);
        let case = WorldCase {
            can: available.can,
            specification,
            measurement,
            network,
            hosts,
            cores,
        };
        let mut found = case.of_the_whole();
        for (part, (index, stack)) in measurement.parts.iter().zip(&origin.parts) {
            let table = available
                .stacks
                .iter()
                .find(|table| table.name == part.stack.name);
            if let (Some(item), Some(table)) = (specification.parts.get(*index), table) {
                found.extend(case.of_a_part(&PartCase {
                    part,
                    item,
                    table,
                    stack: *stack,
                }));
            }
        }
        found
    }
}

/// What the rows of a sweep have in common: the specification, and the stack of each part.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct SweptStacks {
    item: usize,
    stacks: Vec<String>,
}

impl SweptStacks {
    fn new(measurement: &Measurement, origin: &MeasurementOrigin) -> Self {
        let parts = measurement.parts.iter();
        Self {
            item: origin.item,
            stacks: parts.map(|part| part.stack.name.to_string()).collect(),
        }
    }
}

/// A measurement before its world.
struct WorldCase<'c> {
    can: Capabilities,
    specification: &'c Specification,
    measurement: &'c Measurement,
    network: Option<&'c Network>,
    hosts: &'c BTreeMap<String, HostPlan>,
    /// The cores of this machine; empty where they are not known.
    cores: &'c [usize],
}

/// A part, where it is written, its stack and where that is written.
struct PartCase<'c> {
    part: &'c MeasurementPart,
    item: &'c PartItem,
    table: &'c StackTable,
    stack: Option<TextSpan>,
}

impl WorldCase<'_> {
    fn of_the_whole(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        if let Some(network) = self.network {
            found.extend(self.of_the_network(network));
        }
        if self.measurement.composer == Composer::PriorityBackground && !self.can.processors {
            let message = "simulated programs have no priorities: background load uses a host's processor just as the measured part does";
            let diagnostic = Diagnostic::error(self.specification.span, message, self.here());
            found.push(diagnostic.hint("use `background`"));
        }
        found
    }

    /// In words: `this measurement is simulated`.
    fn here(&self) -> String {
        format!("this measurement is {}", self.can.world)
    }

    /// Where the network is named; the whole where it was made up.
    fn network_span(&self) -> TextSpan {
        let first = self.specification.parts.first();
        let clause =
            first.and_then(|part| find_effective_clause(self.specification, part, clause_network));
        clause.map_or(self.specification.span, |(_, clause)| clause.span)
    }

    fn of_the_network(&self, network: &Network) -> Option<Diagnostic> {
        let refused = self.can.accepts(network).err()?;
        let diagnostic = Diagnostic::error(self.network_span(), refused.message, self.here());
        Some(diagnostic.hint(refused.hint.unwrap_or_default()))
    }

    fn of_a_part(&self, part: &PartCase<'_>) -> Vec<Diagnostic> {
        let found = [
            self.files(part),
            self.cores(part),
            self.same_host(part),
            self.crossing(part),
        ];
        found.into_iter().flatten().collect()
    }

    fn files(&self, part: &PartCase<'_>) -> Option<Diagnostic> {
        if self.can.files || !uses_files(part.part) {
            return None;
        }
        let ends = [&part.item.source, &part.item.destination]
            .into_iter()
            .flatten();
        let named = ends
            .filter_map(AccessItem::file)
            .map(|word| word.span)
            .next();
        let span = named.unwrap_or(part.item.application.span);
        let diagnostic = Diagnostic::error(
            span,
            "files and virtual memory are not simulated",
            self.here(),
        );
        Some(diagnostic.hint("omit the source and destination, so that both are MEMORY"))
    }

    fn cores(&self, part: &PartCase<'_>) -> Option<Diagnostic> {
        let pick = |kind: &ClauseKind| matches!(kind, ClauseKind::Cpu(..)).then_some(());
        let clause = find_effective_clause(self.specification, part.item, pick)
            .map(|((), clause)| clause.span);
        let span = clause.unwrap_or(part.item.application.span);
        if self.can.processors {
            return self
                .missing_core(part.part)
                .map(|core| self.no_such_core(core, span));
        }
        if part.part.cpu == (None, None) {
            return None;
        }
        let diagnostic =
            Diagnostic::error(span, "a simulated host has no cores to run on", self.here());
        let hint =
            "omit `on cpu`; processor costs are specified by the host's `copy` in its network";
        Some(diagnostic.hint(hint))
    }

    /// A core that a side on this machine is to be pinned to and that does not exist.
    fn missing_core(&self, part: &MeasurementPart) -> Option<usize> {
        let here = |name: &Option<String>| name.as_ref().and_then(|name| self.hosts.get(name));
        let ends = [(&part.from, part.cpu.0), (&part.to, part.cpu.1)].into_iter();
        let placed = ends.filter_map(|(name, core)| {
            let host = here(name);
            let local = host.is_none_or(|host| host.via == Via::Local);
            core.or(host.and_then(|host| host.cpu)).filter(|_| local)
        });
        placed
            .filter(|core| !self.cores.is_empty() && !self.cores.contains(core))
            .min()
    }

    fn no_such_core(&self, core: usize, span: TextSpan) -> Diagnostic {
        let cores: Vec<String> = self.cores.iter().map(ToString::to_string).collect();
        let diagnostic = Diagnostic::error(
            span,
            format!("this machine has no core {core}"),
            "requested here",
        );
        diagnostic.hint(format!("available cores: {}", cores.join(", ")))
    }

    fn same_host(&self, part: &PartCase<'_>) -> Option<Diagnostic> {
        let host = part
            .part
            .from
            .as_ref()
            .filter(|from| part.part.to.as_ref() == Some(from))?;
        if self.can.same_host {
            return None;
        }
        let span = part
            .item
            .to
            .as_ref()
            .map_or(part.item.application.span, |word| word.span);
        let message =
            format!("the host {host} would send to itself, so nothing would cross the network");
        Some(
            Diagnostic::error(span, message, self.here())
                .hint("make FROM and TO two different hosts of the network"),
        )
    }

    /// Checks that the stack's packets can cross the network.
    fn crossing(&self, part: &PartCase<'_>) -> Option<Diagnostic> {
        let network = self.network.filter(|_| self.can.networks)?;
        let (table, stack) = (part.table, &part.part.stack);
        let span = part.stack.unwrap_or(part.item.application.span);
        let error = |message: String| Diagnostic::error(span, message, self.here());
        if table.one_host {
            let message = format!(
                "the stack `{}` works only within one host, so nothing would cross the network",
                table.name
            );
            return Some(error(message).hint("use tcp or udp to cross a network"));
        }
        if (table.raw_frames)(stack) && !self.can.ethernet {
            let message = format!(
                "{} networks carry only IP, so raw Ethernet frames would not cross them",
                self.can.world
            );
            return Some(error(message).hint("omit `carrier`, or run in the live world"));
        }
        if network.has_imps() && !self.can.imps {
            // Said of the network already.
            return None;
        }
        if let Err(refused) = table.goes_across(network) {
            return Some(error(refused.message).hint(refused.hint.unwrap_or_default()));
        }
        let (from, to) = (part.part.from.as_ref()?, part.part.to.as_ref()?);
        if network.has_imps() {
            return imps_too_far(network, from, to, error);
        }
        if let Some((from, to, links)) = [(from, to), (to, from)]
            .into_iter()
            .find_map(|(from, to)| too_far(network, from, to))
        {
            let message = format!(
                "the path from {from} to {to} has {links} links, but a packet can cross at most {MOST_HOPS}"
            );
            return Some(
                error(message)
                    .hint("beyond that, the TTL expires, as in Linux; use fewer switches"),
            );
        }
        let mtu = path_mtu(network, from, to)?.min(path_mtu(network, to, from)?);
        let needed = (table.least_mtu)(stack);
        if needed <= mtu {
            return None;
        }
        let path = format!("the path from {from} to {to}");
        let (message, hint) = too_narrow(table, stack, &path, needed, mtu);
        Some(error(message).hint(hint))
    }
}

/// What to say of a path with this MTU, in bytes, for a stack that needs more.
fn too_narrow(
    table: &StackTable,
    stack: &Stack,
    path: &str,
    needed: u64,
    mtu: u64,
) -> (String, String) {
    if is_over_ipv6(stack) && needed == LEAST_IPV6_MTU {
        let message = format!("IPv6 needs an MTU of {needed} bytes, but {path} has {mtu}");
        let hint = "give the links a larger `mtu`, or omit `family`";
        return (message, hint.to_string());
    }
    let message = format!(
        "`{}` sends packets of {needed} bytes, too large for {path} (MTU {mtu})",
        table.name
    );
    let option = ["packet", "mtu"]
        .into_iter()
        .find(|name| stack.number(name).is_some());
    let hint = match option {
        Some(option) => {
            format!("give the links a larger `mtu`, or ask for smaller packets with `{option}`")
        }
        None => "give the links a larger `mtu`".to_string(),
    };
    (message, hint)
}

/// Checks the distance between IMPs, which cannot reach others that are too many lines away.
fn imps_too_far(
    network: &Network,
    from: &str,
    to: &str,
    error: impl Fn(String) -> Diagnostic,
) -> Option<Diagnostic> {
    // The interfaces at both ends are no lines.
    let lines = routes::find_shortest_route(network, from, to)?
        .len()
        .saturating_sub(2);
    let message = format!(
        "{to} is {lines} hops from {from}, but IMPs {MOST_IMP_HOPS} or more hops away are unreachable"
    );
    (lines >= MOST_IMP_HOPS).then(|| {
        error(message).hint("ARPANET routing treated longer paths as loops; use fewer IMPs")
    })
}

fn uses_files(part: &MeasurementPart) -> bool {
    let touches = |side| {
        part.procedure.calls(side).iter().any(|call| {
            matches!(
                call,
                OperationCall::ReadFile(_) | OperationCall::WriteFile(_)
            )
        })
    };
    [&part.source, &part.destination]
        .into_iter()
        .any(|access| *access != DataAccess::Memory)
        || touches(PairSide::Initiator)
        || touches(PairSide::Responder)
}

/// How many links lie between two hosts where a packet cannot cross them all.
fn too_far<'n>(network: &Network, from: &'n str, to: &'n str) -> Option<(&'n str, &'n str, usize)> {
    let most = usize::from(MOST_HOPS);
    if network.links.len() <= most {
        return None;
    }
    let links = routes::find_shortest_route(network, from, to)?.len();
    (links > most).then_some((from, to, links))
}

/// Bytes of the network layer that the largest packet from one host to another has; `None` where no path leads.
fn path_mtu(network: &Network, from: &str, to: &str) -> Option<u64> {
    let first = network.links.first().map_or(DEFAULT_MTU, NetworkLink::mtu);
    if network.links.iter().all(|link| link.mtu() == first) {
        return Some(first);
    }
    routes::find_shortest_route(network, from, to)?
        .into_iter()
        .map(|(link, _)| link.mtu())
        .min()
}
