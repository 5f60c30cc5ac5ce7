//! Computes, from the network's paths, the MTU of each host's interface and of its routes: the largest packet that it may send to each
//! other host.
//!
//! A host whose paths have different MTUs has an interface with the largest and routes with the others, as if the MTU of every path had
//! been discovered already, up to the first router: switches send no ICMP messages by which it could be, routers do.

use stackline_core::network as plan;
use stackline_core::random::Seed;
use stackline_net::interfaces::InterfaceTable;
use stackline_net::{PacketNetwork, PacketPayload};

/// Largest packet of IPv4, in bytes.
const MOST: u64 = 65535;

/// The MTUs and routes of an interface of a host, in bytes of the network layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathMtus {
    /// MTU of its interface: the largest packet from or to any host.
    pub(crate) interface: u32,
    /// MTU of its default route: the smallest of its paths' MTUs.
    pub(crate) route: u32,
    /// The smallest MTU of its whole paths, behind routers too.
    pub(crate) whole: u32,
    /// Interfaces with routes of their own, by place in [`InterfaceTable::all`], with their MTU: those that larger packets may go to. Of a
    /// host with several interfaces: those that this one has the shortest path to.
    pub(crate) routes: Vec<(u32, u32)>,
}

impl PathMtus {
    /// The MTU of a route of IPv6 whose MTU is that of IPv4: routers report nothing about packets of IPv6, so that the host has to know from
    /// the start what fits behind them.
    pub(crate) const fn of_ipv6(&self, mtu: u32) -> u32 {
        if self.whole < self.route {
            self.whole
        } else {
            mtu
        }
    }

    /// Whether the host's interface carries IPv6, whose packets may always have 1280 bytes (RFC 8200, section 5).
    pub(crate) const fn carries_ipv6(&self) -> bool {
        self.interface >= LEAST_IPV6_MTU
    }
}

/// The least MTU of a link that carries IPv6, in bytes.
pub(crate) const LEAST_IPV6_MTU: u32 = 1280;

/// In a network with more hosts than this, the paths of all pairs would take too long: all hosts get the network's smallest MTU.
const MOST_HOSTS_IN_PAIRS: usize = 1000;

/// The MTUs and routes of each interface, in the order of the table.
pub(crate) fn path_mtus(network: &plan::Network, interfaces: &InterfaceTable) -> Vec<PathMtus> {
    let all = interfaces.all();
    let mtus = network.links.iter().map(plan::NetworkLink::mtu);
    let least = mtus.clone().min().unwrap_or(plan::DEFAULT_MTU);
    let is_uniform = mtus.clone().all(|mtu| mtu == least);
    let mtu = least.min(MOST) as u32;
    let same = PathMtus {
        interface: mtu,
        route: mtu,
        whole: mtu,
        routes: Vec::new(),
    };
    let has_several = all.len() > network.hosts.len();
    if network.hosts.len() > MOST_HOSTS_IN_PAIRS || (is_uniform && !has_several) {
        return vec![same; all.len()];
    }
    let machine = PacketNetwork::<EmptyProbePayload>::new(network, Seed::root(0), ());
    let path = |from: u32, to: u32| {
        let [from, to] = [from, to].map(|place| all[place as usize]);
        let path = machine.path(from.node, to.node, 0);
        path.filter(|_| from.host != to.host)
    };
    let mut found: Vec<PathMtus> = if is_uniform {
        vec![same; all.len()]
    } else {
        let first = |from, to| path(from, to).map(|path| path.first_mtu.min(MOST) as u32);
        let whole =
            |from, to| path(from, to).map(|path| path.mtu.min(path.first_mtu).min(MOST) as u32);
        let places = all.len() as u32;
        (0..places)
            .map(|place| mtus_of(place, places, &first, &whole))
            .collect()
    };
    for host in 0..network.hosts.len() as u32 {
        let own: Vec<u32> = interfaces
            .of_host(host)
            .map(|(place, _)| place as u32)
            .collect();
        if own.len() > 1 {
            own.iter()
                .for_each(|place| found[*place as usize].routes.clear());
            for to in 0..all.len() as u32 {
                let paths = own
                    .iter()
                    .filter_map(|place| Some((*place, path(*place, to)?)));
                if let Some((place, path)) = paths.min_by_key(|(_, path)| path.cost) {
                    let mtu = path.first_mtu.min(MOST) as u32;
                    found[place as usize].routes.push((to, mtu));
                }
            }
        }
    }
    found
}

/// The MTUs of one interface. `first` is the MTU of the path from one to another up to its first router, `whole` that of the whole path,
/// `None` without a path.
fn mtus_of(
    host: u32,
    hosts: u32,
    first: &impl Fn(u32, u32) -> Option<u32>,
    whole: &impl Fn(u32, u32) -> Option<u32>,
) -> PathMtus {
    let others = || (0..hosts).filter(|other| *other != host);
    let there: Vec<(u32, u32)> = others()
        .filter_map(|other| Some((other, first(host, other)?)))
        .collect();
    let back = others().filter_map(|other| whole(other, host));
    let narrowest = others().filter_map(|other| whole(host, other)).min();
    let route = there
        .iter()
        .map(|(_, mtu)| *mtu)
        .min()
        .unwrap_or(plan::DEFAULT_MTU as u32);
    let interface = there
        .iter()
        .map(|(_, mtu)| *mtu)
        .chain(back)
        .max()
        .unwrap_or(route);
    let routes = there.into_iter().filter(|(_, mtu)| *mtu > route).collect();
    PathMtus {
        interface,
        route,
        whole: narrowest.unwrap_or(route).min(route),
        routes,
    }
}

/// A payload without content: paths are computed with the network's model, but no packet is sent.
struct EmptyProbePayload;

impl PacketPayload for EmptyProbePayload {
    fn split(&mut self, _at: u32) -> Self {
        Self
    }

    fn mark(&mut self) {}

    fn set_dscp(&mut self, _: u8) {}

    fn again(&self) -> Self {
        Self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{NetworkHost, NetworkLink};

    fn network(mtus: &[u64]) -> plan::Network {
        let hosts = (0..mtus.len())
            .map(|i| NetworkHost {
                name: format!("h{i}"),
                ..NetworkHost::default()
            })
            .collect();
        let link = |(i, mtu): (usize, &u64)| NetworkLink {
            ends: (format!("h{i}"), "s".into()),
            mtu_bytes: Some(*mtu),
            ..NetworkLink::default()
        };
        let switches = vec![plan::NetworkSwitch {
            name: "s".into(),
            ..plan::NetworkSwitch::default()
        }];
        let links = mtus.iter().enumerate().map(link).collect();
        plan::Network {
            name: "n".into(),
            hosts,
            switches,
            links,
        }
    }

    fn of_network(network: &plan::Network) -> Vec<PathMtus> {
        path_mtus(network, &InterfaceTable::new(network))
    }

    #[test]
    fn a_host_between_two_reaches_each_by_its_own_interface() {
        let mut network = network(&[1500, 1500, 1500]);
        network.switches.push(plan::NetworkSwitch {
            name: "t".into(),
            ..plan::NetworkSwitch::default()
        });
        network.links[2].ends = ("h2".into(), "t".into());
        for other in ["h0", "s"] {
            network.links.push(NetworkLink {
                ends: (other.into(), "t".into()),
                ..network.links[0].clone()
            });
        }
        let all = of_network(&network);
        assert_eq!(all.len(), 4);
        assert_eq!(all[0].routes, [(1, 1500)], "h1 by s");
        assert_eq!(all[3].routes, [(2, 1500)], "h2 by t");
        assert!(all[1].routes.is_empty());
    }

    #[test]
    fn one_mtu_needs_no_routes() {
        let all = of_network(&network(&[9000, 9000, 9000]));
        assert_eq!(
            all,
            vec![
                PathMtus {
                    interface: 9000,
                    route: 9000,
                    whole: 9000,
                    routes: Vec::new()
                };
                3
            ]
        );
    }

    #[test]
    fn very_many_hosts_share_the_smallest() {
        let mut mtus = vec![9000; MOST_HOSTS_IN_PAIRS + 1];
        mtus[7] = 1400;
        let all = of_network(&network(&mtus));
        assert_eq!(
            all,
            vec![
                PathMtus {
                    interface: 1400,
                    route: 1400,
                    whole: 1400,
                    routes: Vec::new()
                };
                mtus.len()
            ]
        );
    }

    #[test]
    fn what_lies_behind_a_router_is_left_to_discovery() {
        let mut routed = network(&[9000, 1400]);
        routed.switches[0].router = Some(plan::RouterSettings::default());
        let own = |mtu| PathMtus {
            interface: mtu,
            route: mtu,
            whole: 1400,
            routes: Vec::new(),
        };
        let all = of_network(&routed);
        assert_eq!(all, [own(9000), own(1400)]);
        // Routers report nothing about IPv6.
        assert_eq!(all[0].of_ipv6(9000), 1400);
    }

    #[test]
    fn each_pair_has_its_own_mtu() {
        let mtu = |from: u32, to: u32| [9000, 9000, 1500].get(from.max(to) as usize).copied();
        assert_eq!(
            mtus_of(0, 3, &mtu, &mtu),
            PathMtus {
                interface: 9000,
                route: 1500,
                whole: 1500,
                routes: vec![(1, 9000)]
            }
        );
        assert_eq!(
            mtus_of(2, 3, &mtu, &mtu),
            PathMtus {
                interface: 1500,
                route: 1500,
                whole: 1500,
                routes: Vec::new()
            }
        );
    }
}
