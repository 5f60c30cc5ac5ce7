//! Whose a connection is: of this process, of given ports, or anybody's in this network namespace.

use super::sock_diag::{LISTEN, Socket};
use crate::kernel_trace::Ends;
use crate::watch::{Connections, Ports};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Sockets whose owner is remembered.
const MOST_SOCKETS: usize = 1 << 16;

/// Decides whose a connection is, and learns while it does.
#[derive(Debug)]
pub(crate) struct Whose {
    /// Of this process; ports are learned from its sockets.
    process: bool,
    all: bool,
    ports: Ports,
    /// Addresses of this network namespace.
    addresses: BTreeSet<IpAddr>,
    /// Whether each socket is ours, by its cookie.
    known: BTreeMap<u64, bool>,
    /// Whether what names no connection happened here: there is no other network namespace that it is likelier to be of.
    pub(crate) machine: bool,
}

impl Whose {
    pub(crate) fn new(connections: &Connections) -> Self {
        let ports = if let Connections::Ports(ports) = connections { ports.clone() } else { Ports::default() };
        let (process, all) = (*connections == Connections::Process, *connections == Connections::All);
        let machine = all && in_first_namespace();
        Self { process, all, ports, addresses: addresses(), known: BTreeMap::new(), machine }
    }

    /// More ports are ours from now on.
    pub(crate) fn follow(&mut self, ports: Ports) {
        self.ports.local.extend(ports.local);
        self.ports.remote.extend(ports.remote);
    }

    /// The ports that the kernel may leave out all others but; none where they are not known beforehand.
    pub(crate) fn fixed_ports(&self) -> Vec<u16> {
        if self.process || self.all {
            return Vec::new();
        }
        self.ports.local.union(&self.ports.remote).copied().collect()
    }

    /// Whether a connection is to be told of.
    pub(crate) fn is_ours(&self, ends: &Ends) -> bool {
        let here = ends.local.ip().is_loopback() || self.addresses.contains(&ends.local.ip());
        let ours = self.ports.local.contains(&ends.local.port()) || self.ports.remote.contains(&ends.remote.port());
        here && (self.all || ours)
    }

    /// Looks at the sockets there are, and keeps those that are to be told of.
    pub(crate) fn learn(&mut self, sockets: &mut Vec<Socket>) {
        if sockets.iter().any(|socket| !self.known.contains_key(&socket.cookie)) {
            self.addresses = addresses();
            let own = if self.process { own_inodes() } else { BTreeSet::new() };
            // Those that listen first: they tell which end of a connection of ours is the known one.
            for socket in sockets.iter().filter(|socket| socket.state == LISTEN) {
                self.know(socket, own.contains(&socket.inode));
            }
            for socket in sockets.iter().filter(|socket| socket.state != LISTEN) {
                self.know(socket, own.contains(&socket.inode));
            }
        }
        if self.known.len() > MOST_SOCKETS {
            let there: BTreeSet<u64> = sockets.iter().map(|socket| socket.cookie).collect();
            self.known.retain(|cookie, _| there.contains(cookie));
        }
        let ours = |socket: &Socket| match self.process {
            true => self.known.get(&socket.cookie) == Some(&true) || self.is_ours(&socket.ends),
            false => self.is_ours(&socket.ends),
        };
        sockets.retain(|socket| socket.state != LISTEN && ours(socket));
    }

    fn know(&mut self, socket: &Socket, own: bool) {
        if self.known.contains_key(&socket.cookie) {
            return;
        }
        self.known.insert(socket.cookie, own);
        let local = socket.ends.local.port();
        if own && socket.state == LISTEN {
            self.ports.local.insert(local);
        } else if own && !self.ports.local.contains(&local) {
            self.ports.remote.insert(socket.ends.remote.port());
        }
    }
}

/// Whether this thread is in the network namespace that the machine began with: that of the first process, where it may be
/// seen, or the one whose number is fixed since Linux 6.18 (`NET_NS_INIT_INO`).
fn in_first_namespace() -> bool {
    let of = |link: &str| std::fs::read_link(link).ok();
    let Some(own) = of("/proc/thread-self/ns/net") else { return false };
    own.as_os_str() == "net:[4026531833]" || of("/proc/1/ns/net") == Some(own)
}

fn addresses() -> BTreeSet<IpAddr> {
    let of = |interface: nix::ifaddrs::InterfaceAddress| {
        let address = interface.address?;
        let four = address.as_sockaddr_in().map(|four| IpAddr::from(four.ip()));
        four.or_else(|| address.as_sockaddr_in6().map(|six| six.ip().to_canonical()))
    };
    nix::ifaddrs::getifaddrs().map(|all| all.filter_map(of).collect()).unwrap_or_default()
}

/// The sockets among this process's descriptors.
fn own_inodes() -> BTreeSet<u32> {
    let Ok(descriptors) = std::fs::read_dir("/proc/self/fd") else { return BTreeSet::new() };
    let inode = |entry: std::fs::DirEntry| {
        let name = std::fs::read_link(entry.path()).ok()?;
        name.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    descriptors.flatten().filter_map(inode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    fn ends(local: &str, remote: &str) -> Ends {
        Ends { local: local.parse().unwrap(), remote: remote.parse().unwrap() }
    }

    #[test]
    fn ports_are_of_their_own_end() {
        let ports = Ports { local: [5_001].into(), remote: [7].into() };
        let mut whose = Whose::new(&Connections::Ports(ports));
        assert!(whose.is_ours(&ends("127.0.0.1:5001", "127.0.0.1:40000")));
        assert!(!whose.is_ours(&ends("127.0.0.1:40000", "127.0.0.1:5001")), "the other end of it");
        assert!(whose.is_ours(&ends("127.0.0.1:40000", "192.0.2.1:7")));
        assert!(!whose.is_ours(&ends("192.0.2.1:5001", "127.0.0.1:40000")), "no address of this namespace");
        assert_eq!(whose.fixed_ports(), [7, 5_001]);
        whose.follow(Ports { remote: [5_001].into(), ..Ports::default() });
        assert!(whose.is_ours(&ends("127.0.0.1:40000", "127.0.0.1:5001")));
    }

    #[test]
    fn a_process_learns_its_ports_from_its_sockets() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stream = TcpStream::connect(address).unwrap();
        let mut sockets = super::super::sock_diag::Diag::open().unwrap().sockets().unwrap();
        let mut whose = Whose::new(&Connections::Process);
        whose.learn(&mut sockets);
        let own = Ends { local: stream.local_addr().unwrap(), remote: address };
        assert!(sockets.iter().any(|socket| socket.ends == own));
        assert!(whose.is_ours(&own) && whose.is_ours(&Ends { local: own.remote, remote: own.local }));
        assert!(!whose.is_ours(&ends("127.0.0.1:1", "127.0.0.1:2")));
    }
}
