//! Computes, from the network's paths, the MTU of each host's interface and of its routes: the largest packet that it may send to each
//! other host.
//!
//! A host whose paths have different MTUs has an interface with the largest and routes with the others, as if the MTU of every path had
//! been discovered already, up to the first router: switches send no ICMP messages by which it could be, routers do.

use stackline_core::network as plan;
use stackline_core::random::Seed;
use stackline_net::{NodeIndex, PacketNetwork, PacketPayload};

/// Largest packet of IPv4, in bytes.
const MOST: u64 = 65535;

/// The MTUs of one host, in bytes of the network layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathMtus {
    /// MTU of its interface: the largest packet from or to any host.
    pub(crate) interface: u32,
    /// MTU of its route to hosts that are not in `larger`: the smallest of its paths' MTUs.
    pub(crate) route: u32,
    /// Hosts that larger packets may go to, by index in the network, with their MTU.
    pub(crate) larger: Vec<(u32, u32)>,
}

/// In a network with more hosts than this, the paths of all pairs would take too long: all hosts get the network's smallest MTU.
const MOST_HOSTS_IN_PAIRS: usize = 1000;

/// The MTUs of each host, in the order of the network.
pub(crate) fn path_mtus(network: &plan::Network) -> Vec<PathMtus> {
    let hosts = network.hosts.len() as u32;
    let first = network
        .links
        .first()
        .map_or(plan::DEFAULT_MTU, plan::NetworkLink::mtu);
    if network.links.iter().all(|link| link.mtu() == first) {
        let mtu = first.min(MOST) as u32;
        return vec![
            PathMtus {
                interface: mtu,
                route: mtu,
                larger: Vec::new()
            };
            hosts as usize
        ];
    }
    if network.hosts.len() > MOST_HOSTS_IN_PAIRS {
        let least = network
            .links
            .iter()
            .map(plan::NetworkLink::mtu)
            .min()
            .unwrap_or(first)
            .min(MOST) as u32;
        return vec![
            PathMtus {
                interface: least,
                route: least,
                larger: Vec::new()
            };
            hosts as usize
        ];
    }
    let machine = PacketNetwork::<EmptyProbePayload>::new(network, Seed::root(0), ());
    let path = |from, to| machine.path(NodeIndex(from), NodeIndex(to), 0);
    let first = |from, to| path(from, to).map(|path| path.first_mtu.min(MOST) as u32);
    let whole = |from, to| path(from, to).map(|path| path.mtu.min(path.first_mtu).min(MOST) as u32);
    (0..hosts)
        .map(|host| mtus(host, hosts, &first, &whole))
        .collect()
}

/// The MTUs of one host. `first` is the MTU of the path from one host to another up to its first router, `whole` that of
/// the whole path, `None` without a path.
fn mtus(
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
    let larger = there.into_iter().filter(|(_, mtu)| *mtu > route).collect();
    PathMtus {
        interface,
        route,
        larger,
    }
}

/// A payload without content: paths are computed with the network's model, but no packet is sent.
struct EmptyProbePayload;

impl PacketPayload for EmptyProbePayload {
    fn split(&mut self, _at: u32) -> Self {
        Self
    }

    fn mark(&mut self) {}

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

    #[test]
    fn one_mtu_needs_no_routes() {
        let all = path_mtus(&network(&[9000, 9000, 9000]));
        assert_eq!(
            all,
            vec![
                PathMtus {
                    interface: 9000,
                    route: 9000,
                    larger: Vec::new()
                };
                3
            ]
        );
    }

    #[test]
    fn very_many_hosts_share_the_smallest() {
        let mut mtus = vec![9000; MOST_HOSTS_IN_PAIRS + 1];
        mtus[7] = 1400;
        let all = path_mtus(&network(&mtus));
        assert_eq!(
            all,
            vec![
                PathMtus {
                    interface: 1400,
                    route: 1400,
                    larger: Vec::new()
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
            larger: Vec::new(),
        };
        assert_eq!(path_mtus(&routed), [own(9000), own(1400)]);
    }

    #[test]
    fn each_pair_has_its_own_mtu() {
        let mtu = |from: u32, to: u32| [9000, 9000, 1500].get(from.max(to) as usize).copied();
        assert_eq!(
            mtus(0, 3, &mtu, &mtu),
            PathMtus {
                interface: 9000,
                route: 1500,
                larger: vec![(1, 9000)]
            }
        );
        assert_eq!(
            mtus(2, 3, &mtu, &mtu),
            PathMtus {
                interface: 1500,
                route: 1500,
                larger: Vec::new()
            }
        );
    }
}
