//! Finds the processes that own the UDP sockets of datagrams, from the system's lists of sockets and of open files (proc(5)). It
//! opens no socket and keeps nothing: a socket that was closed meanwhile is not found.

use super::existing_connections::listed_address;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;

/// The two ends of a datagram: this end, and the other.
pub type DatagramEnds = (SocketAddr, SocketAddr);

/// A UDP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DatagramSocket {
    own: SocketAddr,
    /// The peer; `None` if it is not connected.
    other: Option<SocketAddr>,
    number: u64,
}

impl DatagramSocket {
    /// Parses a line of `/proc/net/udp`.
    fn of_line(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (own, other) = (
            listed_address(words.next()?)?,
            listed_address(words.next()?)?,
        );
        let number = words.nth(6)?.parse().ok()?;
        Some(Self {
            own,
            other: Some(other).filter(|other| other.port() != 0),
            number,
        })
    }

    /// How closely the socket matches datagrams between two ends: higher if it is connected, or bound to the address; `None` if it
    /// does not match.
    fn closeness(&self, ends: &DatagramEnds) -> Option<u8> {
        let is_any = self.own.ip().is_unspecified();
        let is_own = self.own.port() == ends.0.port() && (is_any || self.own.ip() == ends.0.ip());
        let is_connected = self.other == Some(ends.1);
        (is_own && (is_connected || self.other.is_none()))
            .then_some(2 * u8::from(is_connected) + u8::from(!is_any))
    }
}

/// The process that owns the socket of datagrams between each of the pairs of ends, in the network namespace of a process (`self`,
/// or its ID). If several processes share a socket, the one with the highest ID is taken, which was usually started by the others.
#[must_use]
pub fn datagram_owners(
    ends: &BTreeSet<DatagramEnds>,
    namespace_of: &str,
) -> BTreeMap<DatagramEnds, u32> {
    let list = |file: &str| {
        fs::read_to_string(format!("/proc/{namespace_of}/net/{file}")).unwrap_or_default()
    };
    let sockets: Vec<DatagramSocket> = [list("udp"), list("udp6")]
        .iter()
        .flat_map(|list| list.lines().filter_map(DatagramSocket::of_line))
        .collect();
    let numbers: BTreeMap<DatagramEnds, u64> = ends
        .iter()
        .filter_map(|ends| Some((*ends, number_of(&sockets, ends)?)))
        .collect();
    if numbers.is_empty() {
        return BTreeMap::new();
    }
    let wanted: BTreeSet<u64> = numbers.values().copied().collect();
    let mut owners: BTreeMap<u64, u32> = BTreeMap::new();
    for pid in processes() {
        for number in crate::socket_descriptors::sockets_of(&pid.to_string()) {
            if wanted.contains(&number) {
                let owner = owners.entry(number).or_default();
                *owner = pid.max(*owner);
            }
        }
    }
    numbers
        .into_iter()
        .filter_map(|(ends, number)| Some((ends, *owners.get(&number)?)))
        .collect()
}

/// The inode number of the socket that matches the ends most closely.
fn number_of(sockets: &[DatagramSocket], ends: &DatagramEnds) -> Option<u64> {
    let fits = sockets
        .iter()
        .filter_map(|socket| Some((socket.closeness(ends)?, socket.number)));
    fits.max().map(|(_, number)| number)
}

fn processes() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn sockets_of_udp_have_their_process_whether_connected_or_not() {
        let server = UdpSocket::bind("[::]:0").unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let at_server = SocketAddr::from(([127, 0, 0, 1], port));
        client.connect(at_server).unwrap();
        let at_client = client.local_addr().unwrap();
        let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
        let ends = BTreeSet::from([
            (at_client, at_server),
            (at_server, at_client),
            (at_client, nobody),
        ]);
        let own = std::process::id();
        let found = datagram_owners(&ends, "self");
        let expected = [((at_client, at_server), own), ((at_server, at_client), own)];
        assert_eq!(found, BTreeMap::from(expected));
        drop(server);
        let found = datagram_owners(&ends, "self");
        assert!(!found.contains_key(&(at_server, at_client)), "{found:?}");
    }

    #[test]
    fn the_closest_socket_counts() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let socket = |own: &str, other: Option<&str>, number| DatagramSocket {
            own: address(own),
            other: other.map(address),
            number,
        };
        let sockets = [
            socket("0.0.0.0:53", None, 1),
            socket("127.0.0.1:53", None, 2),
            socket("127.0.0.1:53", Some("127.0.0.1:9"), 3),
        ];
        let of = |own: &str, other: &str| number_of(&sockets, &(address(own), address(other)));
        assert_eq!(of("10.0.0.1:53", "10.0.0.2:9"), Some(1));
        assert_eq!(of("127.0.0.1:53", "127.0.0.1:8"), Some(2));
        assert_eq!(of("127.0.0.1:53", "127.0.0.1:9"), Some(3));
        assert_eq!(of("127.0.0.1:54", "127.0.0.1:9"), None);
        assert_eq!(
            DatagramSocket::of_line("  sl  local_address rem_address   st"),
            None
        );
    }
}
