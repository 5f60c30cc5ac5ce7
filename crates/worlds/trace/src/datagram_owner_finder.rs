//! Finds the processes whose UDP sockets datagrams of DNS and QUIC belong to. The system is asked when the first datagram of a pair
//! of ends is read, since trace events do not say where a UDP socket is bound.

use crate::trace_sources::TracedHost;
use stackline_monitor::capture::Packet;
use stackline_monitor::observe::datagram_sockets::{DatagramEnds, datagram_owners};
use stackline_requests::exchange_builder::DNS_PORTS;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

/// The most pairs of ends that are remembered as asked; beyond that, all are forgotten and asked for again.
const REMEMBERED: usize = 1 << 14;
/// The sockets of all processes are listed no more often than this.
const INTERVAL: Duration = Duration::from_millis(20);
/// The two highest bits of the first byte of a QUIC packet with a long header, which begins a connection (RFC 9000, 17.2).
const LONG_HEADER: u8 = 0xc0;
/// The protocol number of UDP in IP headers.
const UDP: u8 = 17;
/// The length of a UDP header, bytes.
const UDP_HEADER: usize = 8;

/// Finds the owners of UDP sockets.
#[derive(Debug, Default)]
pub(crate) struct DatagramOwnerFinder {
    /// For each host, a process in its network namespace, as named in `/proc`.
    namespaces: Vec<String>,
    /// Hosts and ends that were asked for already.
    known: HashSet<(usize, DatagramEnds)>,
    /// Ends to ask for, by host.
    wanted: BTreeMap<usize, BTreeSet<DatagramEnds>>,
    /// When the sockets were listed last.
    asked: Option<Instant>,
}

impl DatagramOwnerFinder {
    /// Creates a finder for sockets on these hosts.
    pub(crate) fn new(hosts: &[TracedHost]) -> Self {
        let namespace = |host: &TracedHost| match &host.net {
            None => "self".to_owned(),
            Some((path, _)) => {
                // `/proc/PID/ns/net`.
                let process = path.iter().nth(2).unwrap_or_default();
                process.to_string_lossy().into_owned()
            }
        };
        Self {
            namespaces: hosts.iter().map(namespace).collect(),
            ..Self::default()
        }
    }

    /// Takes a packet that was read at a host; its ends are asked for if they are new.
    pub(crate) fn see(&mut self, host: usize, packet: &Packet<'_>) {
        let Some((from, to)) = read_ends(packet.bytes) else {
            return;
        };
        // Either end may be of this host.
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

    /// The ends seen since the last call, each with the process that owns its socket.
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

/// The sender's and the receiver's address of a DNS datagram, or of a datagram that may begin a QUIC connection; `None` for other
/// packets.
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
