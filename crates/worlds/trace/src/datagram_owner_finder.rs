//! Whose sockets datagrams of DNS and QUIC pass: asked of the system when the first of them is read, since trace events do not say where a
//! socket of UDP is bound.

use crate::trace_sources::TracedHost;
use stackline_monitor::capture::Packet;
use stackline_monitor::observe::datagram_sockets::{DatagramEnds, datagram_owners};
use stackline_requests::exchange_builder::DNS_PORTS;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

/// Ends that are not asked for again; when there are more, all are.
const REMEMBERED: usize = 1 << 14;
/// The sockets of all processes are listed no more often than this.
const INTERVAL: Duration = Duration::from_millis(20);
/// The form of the packets that begin a connection of QUIC (RFC 9000, 17.2).
const LONG_HEADER: u8 = 0xc0;
/// The protocol's number in headers of IP.
const UDP: u8 = 17;
/// Bytes of a header of UDP.
const UDP_HEADER: usize = 8;

/// Finds owners of sockets of UDP.
#[derive(Debug, Default)]
pub(crate) struct DatagramOwnerFinder {
    /// A process in the network namespace of each host.
    namespaces: Vec<String>,
    known: HashSet<(usize, DatagramEnds)>,
    wanted: BTreeMap<usize, BTreeSet<DatagramEnds>>,
    asked: Option<Instant>,
}

impl DatagramOwnerFinder {
    /// Of sockets on those hosts.
    pub(crate) fn new(hosts: &[TracedHost]) -> Self {
        let namespace = |host: &TracedHost| match &host.net {
            None => "self".to_owned(),
            Some((path, _)) => {
                let process = path.iter().nth(2).unwrap_or_default();
                process.to_string_lossy().into_owned()
            }
        };
        Self {
            namespaces: hosts.iter().map(namespace).collect(),
            ..Self::default()
        }
    }

    /// A packet of that host was read.
    pub(crate) fn see(&mut self, host: usize, packet: &Packet<'_>) {
        let Some((from, to)) = read_ends(packet.bytes) else {
            return;
        };
        for ends in [(from, to), (to, from)] {
            if self.known.contains(&(host, ends)) {
                continue;
            }
            if self.known.len() >= REMEMBERED {
                self.known.clear();
            }
            self.known.insert((host, ends));
            self.wanted.entry(host).or_default().insert(ends);
        }
    }

    /// The processes that have sockets of what was read since they were asked for last.
    pub(crate) fn find(&mut self) -> Vec<(DatagramEnds, u32)> {
        if self.wanted.is_empty() || self.asked.is_some_and(|asked| asked.elapsed() < INTERVAL) {
            return Vec::new();
        }
        self.asked = Some(Instant::now());
        let wanted = std::mem::take(&mut self.wanted);
        let owners = wanted.iter().filter_map(|(host, ends)| {
            let namespace = self.namespaces.get(*host)?;
            Some(datagram_owners(ends, namespace))
        });
        owners.flatten().collect()
    }
}

/// The ends of a datagram of DNS, or of one that may begin a connection of QUIC: the sender's, and the receiver's.
fn read_ends(bytes: &[u8]) -> Option<DatagramEnds> {
    let (from, to, behind): (IpAddr, IpAddr, usize) = match bytes.first()? >> 4 {
        4 if *bytes.get(9)? == UDP => {
            let address = |at: usize| {
                let octets = bytes.get(at..at + 4)?.try_into().ok()?;
                Some(Ipv4Addr::from_octets(octets).into())
            };
            (address(12)?, address(16)?, 4 * usize::from(bytes[0] & 15))
        }
        6 if *bytes.get(6)? == UDP => {
            let address = |at: usize| {
                let octets = bytes.get(at..at + 16)?.try_into().ok()?;
                Some(Ipv6Addr::from_octets(octets).into())
            };
            (address(8)?, address(24)?, 40)
        }
        _ => return None,
    };
    let header = bytes.get(behind..behind + UDP_HEADER)?;
    let port = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let ports = [port(0), port(2)];
    let begins_quic = bytes
        .get(behind + UDP_HEADER)
        .is_some_and(|first| first & LONG_HEADER == LONG_HEADER);
    let is_dns = ports.iter().any(|port| DNS_PORTS.contains(port));
    (is_dns || begins_quic).then(|| {
        (
            SocketAddr::new(from, ports[0]),
            SocketAddr::new(to, ports[1]),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    /// A datagram over IPv4 loopback with one byte.
    fn datagram(from: u16, to: u16, first: u8) -> Vec<u8> {
        let mut bytes = vec![0x45, 0, 0, 29, 0, 0, 0, 0, 64, 17, 0, 0];
        bytes.extend([127, 0, 0, 1, 127, 0, 0, 1]);
        bytes.extend([from.to_be_bytes(), to.to_be_bytes()].concat());
        bytes.extend([0, 9, 0, 0, first]);
        bytes
    }

    #[test]
    fn both_ends_of_a_datagram_are_found_once() {
        let (server, client) = (
            UdpSocket::bind("127.0.0.1:0").unwrap(),
            UdpSocket::bind("127.0.0.1:0").unwrap(),
        );
        let [at_server, at_client] = [&server, &client].map(|socket| socket.local_addr().unwrap());
        let hosts = [TracedHost {
            name: "here".into(),
            net: None,
        }];
        let mut finder = DatagramOwnerFinder::new(&hosts);
        let bytes = datagram(at_client.port(), at_server.port(), LONG_HEADER);
        let packet = Packet {
            at_ns: 1,
            interface: 1,
            outgoing: false,
            length: 29,
            bytes: &bytes,
        };
        finder.see(0, &packet);
        let own = std::process::id();
        let expected = [((at_client, at_server), own), ((at_server, at_client), own)];
        let mut found = finder.find();
        found.sort_by_key(|(ends, _)| *ends != expected[0].0);
        assert_eq!(found, expected);
        finder.see(0, &packet);
        assert!(finder.wanted.is_empty(), "they are known");
    }

    #[test]
    fn other_datagrams_are_not_asked_for() {
        assert!(read_ends(&datagram(40_000, 53, 0)).is_some());
        assert!(read_ends(&datagram(40_000, 443, 0xc3)).is_some());
        assert_eq!(read_ends(&datagram(40_000, 443, 0x41)), None);
        let mut tcp = datagram(40_000, 53, 0);
        tcp[9] = 6;
        assert_eq!(read_ends(&tcp), None);
        for length in 0..28 {
            assert_eq!(read_ends(&datagram(40_000, 443, 0xc3)[..length]), None);
        }
    }
}
