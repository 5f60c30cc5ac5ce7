//! Decides which connections are watched: those of this process, those with given ports, or all of this network namespace.

use crate::address_pair::AddressPair;
use crate::sock_diag::{DiagSocket, LISTEN};
use crate::socket_descriptors::sockets_of;
use crate::watch_config::{WatchedConnections, WatchedPorts};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// The most sockets whose owner is kept; when there are more, closed ones are forgotten.
const MOST_SOCKETS: usize = 1 << 16;

/// The filter, and what it knows of the sockets.
#[derive(Debug)]
pub(super) struct ConnectionFilter {
    /// Whether the connections of this process are watched; their ports are learned from its sockets.
    process: bool,
    /// Whether all connections of this network namespace are watched.
    all: bool,
    /// The ports whose connections are watched.
    ports: WatchedPorts,
    /// The addresses of this network namespace.
    addresses: BTreeSet<IpAddr>,
    /// Whether each socket belongs to this process, by its cookie.
    owned: BTreeMap<u64, bool>,
    /// Whether events without a connection are recorded too.
    whole_machine: bool,
}

impl ConnectionFilter {
    pub(super) fn new(connections: &WatchedConnections) -> Self {
        let ports = if let WatchedConnections::Ports(ports) = connections {
            ports.clone()
        } else {
            WatchedPorts::default()
        };
        let (process, all) = (
            *connections == WatchedConnections::Process,
            *connections == WatchedConnections::All,
        );
        let whole_machine = all && in_first_namespace();
        Self {
            process,
            all,
            ports,
            addresses: addresses(),
            owned: BTreeMap::new(),
            whole_machine,
        }
    }

    /// Watches further ports from now on.
    pub(super) fn add(&mut self, ports: WatchedPorts) {
        self.ports.local.extend(ports.local);
        self.ports.remote.extend(ports.remote);
    }

    /// The ports to which the kernel's own filter can be restricted; empty if they are not known beforehand.
    pub(super) fn fixed_ports(&self) -> Vec<u16> {
        if self.process || self.all {
            return Vec::new();
        }
        self.ports
            .local
            .union(&self.ports.remote)
            .copied()
            .collect()
    }

    /// Whether a connection is watched.
    pub(super) fn accepts(&self, pair: &AddressPair) -> bool {
        let here = pair.local.ip().is_loopback() || self.addresses.contains(&pair.local.ip());
        let port = self.ports.local.contains(&pair.local.port())
            || self.ports.remote.contains(&pair.remote.port());
        here && (self.all || port)
    }

    /// Whether events that name no connection are recorded: only when the whole machine is watched, since they may come from
    /// any network namespace.
    pub(super) fn accepts_unattributed(&self) -> bool {
        self.whole_machine
    }

    /// Learns from the sockets that exist, and keeps the watched connections among them.
    pub(super) fn retain(&mut self, sockets: &mut Vec<DiagSocket>) {
        if sockets
            .iter()
            .any(|socket| !self.owned.contains_key(&socket.cookie))
        {
            self.addresses = addresses();
            let own = if self.process {
                sockets_of("self")
            } else {
                BTreeSet::new()
            };
            // Listening sockets first: they show which port of a connection is the fixed one.
            for socket in sockets.iter().filter(|socket| socket.state == LISTEN) {
                self.learn(socket, own.contains(&u64::from(socket.inode)));
            }
            for socket in sockets.iter().filter(|socket| socket.state != LISTEN) {
                self.learn(socket, own.contains(&u64::from(socket.inode)));
            }
        }
        if self.owned.len() > MOST_SOCKETS {
            let open: BTreeSet<u64> = sockets.iter().map(|socket| socket.cookie).collect();
            self.owned.retain(|cookie, _| open.contains(cookie));
        }
        let owned =
            |socket: &DiagSocket| self.process && self.owned.get(&socket.cookie) == Some(&true);
        sockets.retain(|socket| {
            socket.state != LISTEN && (owned(socket) || self.accepts(&socket.pair))
        });
    }

    /// Notes whether a new socket belongs to this process, and the port it is recognised by.
    fn learn(&mut self, socket: &DiagSocket, own: bool) {
        if self.owned.contains_key(&socket.cookie) {
            return;
        }
        self.owned.insert(socket.cookie, own);
        let local = socket.pair.local.port();
        if own && socket.state == LISTEN {
            self.ports.local.insert(local);
        } else if own && !self.ports.local.contains(&local) {
            self.ports.remote.insert(socket.pair.remote.port());
        }
    }
}

/// Whether this thread is in the machine's first network namespace: that of process 1, where it may be read, or the one with
/// the number that is fixed since Linux 6.18 (`NET_NS_INIT_INO`).
fn in_first_namespace() -> bool {
    let namespace = |link: &str| std::fs::read_link(link).ok();
    let Some(own) = namespace("/proc/thread-self/ns/net") else {
        return false;
    };
    own.as_os_str() == "net:[4026531833]" || namespace("/proc/1/ns/net") == Some(own)
}

fn addresses() -> BTreeSet<IpAddr> {
    let address = |interface: nix::ifaddrs::InterfaceAddress| {
        let address = interface.address?;
        let four = address.as_sockaddr_in().map(|four| IpAddr::from(four.ip()));
        four.or_else(|| address.as_sockaddr_in6().map(|six| six.ip().to_canonical()))
    };
    nix::ifaddrs::getifaddrs()
        .map(|all| all.filter_map(address).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sock_diag::SockDiag;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_port_belongs_to_its_end() {
        let pair = AddressPair::parse;
        let ports = WatchedPorts {
            local: [5_001].into(),
            remote: [7].into(),
        };
        let mut filter = ConnectionFilter::new(&WatchedConnections::Ports(ports));
        assert!(filter.accepts(&pair("127.0.0.1:5001", "127.0.0.1:40000")));
        assert!(
            !filter.accepts(&pair("127.0.0.1:40000", "127.0.0.1:5001")),
            "the other end of it"
        );
        assert!(filter.accepts(&pair("127.0.0.1:40000", "192.0.2.1:7")));
        assert!(
            !filter.accepts(&pair("192.0.2.1:5001", "127.0.0.1:40000")),
            "no address of this namespace"
        );
        assert_eq!(filter.fixed_ports(), [7, 5_001]);
        filter.add(WatchedPorts {
            remote: [5_001].into(),
            ..WatchedPorts::default()
        });
        assert!(filter.accepts(&pair("127.0.0.1:40000", "127.0.0.1:5001")));
    }

    #[test]
    fn ports_are_learned_from_the_sockets_of_this_process() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stream = TcpStream::connect(address).unwrap();
        let mut sockets = SockDiag::open().unwrap().sockets().unwrap();
        let mut filter = ConnectionFilter::new(&WatchedConnections::Process);
        filter.retain(&mut sockets);
        let own = AddressPair {
            local: stream.local_addr().unwrap(),
            remote: address,
        };
        assert!(sockets.iter().any(|socket| socket.pair == own));
        assert!(
            filter.accepts(&own)
                && filter.accepts(&AddressPair {
                    local: own.remote,
                    remote: own.local
                })
        );
        assert!(!filter.accepts(&AddressPair::parse("127.0.0.1:1", "127.0.0.1:2")));
    }
}
