//! Finds the present TCP connections of processes in the system's lists (proc(5)). It opens nothing and keeps nothing.

use crate::socket_descriptors::sockets_of;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A connection: the address of this end, and of the other.
pub type ExistingConnection = (SocketAddr, SocketAddr);

/// Ports from here on are given to sockets that asked for none (`ip_local_port_range`'s default): those of clients.
pub const FIRST_EPHEMERAL: u16 = 32_768;

/// The state of an established connection in the list.
const ESTABLISHED: &str = "01";
/// The state of a socket that listens.
const LISTENING: &str = "0A";
/// The states of sockets without another end in the list: listening, closed, and SYN_SENT.
const UNCONNECTED: [&str; 3] = [LISTENING, "07", "02"];

/// The established connections of processes; processes that do not exist are skipped.
#[must_use]
pub fn connections_of(pids: &[u32]) -> BTreeSet<ExistingConnection> {
    let mut all = BTreeSet::new();
    for pid in pids {
        let sockets = sockets_of(&pid.to_string());
        for file in ["tcp", "tcp6"] {
            let list = fs::read_to_string(format!("/proc/{pid}/net/{file}")).unwrap_or_default();
            all.extend(
                listed(&list, |state| state == ESTABLISHED)
                    .into_iter()
                    .filter(|(socket, _)| sockets.contains(socket))
                    .map(|(_, pair)| pair),
            );
        }
    }
    all
}

/// The TCP connection of a socket in a process's network namespace, by the socket's inode number.
pub(super) fn connection_of_socket(pid: u32, socket: u64) -> Option<ExistingConnection> {
    ["tcp", "tcp6"].iter().find_map(|file| {
        let list = fs::read_to_string(format!("/proc/{pid}/net/{file}")).ok()?;
        listed(&list, |state| !UNCONNECTED.contains(&state)).remove(&socket)
    })
}

/// Whether the local end of a connection accepted it: where one port alone is ephemeral, by that; otherwise by which of its ports a socket
/// of the process's network namespace listens at. `None` if that holds for both ports or for none.
pub(super) fn has_accepted(pid: u32, local: SocketAddr, remote: SocketAddr) -> Option<bool> {
    let is_ephemeral = |end: SocketAddr| end.port() >= FIRST_EPHEMERAL;
    if is_ephemeral(local) != is_ephemeral(remote) {
        return Some(is_ephemeral(remote));
    }
    let lists = ["tcp", "tcp6"]
        .map(|file| fs::read_to_string(format!("/proc/{pid}/net/{file}")).unwrap_or_default());
    let ports: BTreeSet<u16> = lists
        .iter()
        .flat_map(|list| listed(list, |state| state == LISTENING).into_values())
        .map(|(listening, _)| listening.port())
        .collect();
    let [own, others] = [local, remote].map(|end| ports.contains(&end.port()));
    (own != others).then_some(own)
}

/// The connections of a list in the wanted states, by the inode numbers of their sockets.
fn listed(list: &str, wanted: impl Fn(&str) -> bool) -> BTreeMap<u64, ExistingConnection> {
    let line = |line: &str| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (local, remote, state) = (words.next()?, words.next()?, words.next()?);
        let number = words.nth(5)?.parse().ok()?;
        Some((number, (listed_address(local)?, listed_address(remote)?))).filter(|_| wanted(state))
    };
    list.lines().filter_map(line).collect()
}

/// Parses an address of the list: words of 32 bits in the machine's byte order, and the port, in hexadecimal.
pub(super) fn listed_address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        u32::from_str_radix(ip.get(at * 8..at * 8 + 8)?, 16)
            .ok()
            .map(u32::to_ne_bytes)
    };
    let ip = match ip.len() {
        8 => IpAddr::from(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?].concat();
            // An IPv4 connection of an IPv6 socket is listed as an IPv4-mapped address.
            IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(words).ok()?)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_end_that_accepted_a_connection_is_the_one_at_whose_port_somebody_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (near, far) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
        let pid = std::process::id();
        assert_eq!(has_accepted(pid, near, far), Some(false));
        assert_eq!(has_accepted(pid, far, near), Some(true));
        drop(listener);
        assert_eq!(has_accepted(pid, far, near), None);
        // A port as servers have them says it by itself.
        let web = SocketAddr::new(far.ip(), 80);
        assert_eq!(has_accepted(pid, web, near), Some(true));
    }

    #[test]
    fn established_connections_of_a_process_are_found() {
        let listener = TcpListener::bind("[::]:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (_server, from) = listener.accept().unwrap();
        let own = client.local_addr().unwrap();
        assert_eq!(from.ip().to_canonical(), own.ip());
        let found = connections_of(&[std::process::id()]);
        let other = SocketAddr::from(([127, 0, 0, 1], port));
        assert!(
            found.contains(&(own, other)) && found.contains(&(other, own)),
            "{found:?}"
        );
        assert!(
            found.iter().all(|(_, remote)| remote.port() != 0),
            "a listening socket is not a connection"
        );
    }

    #[test]
    fn what_is_no_list_holds_nothing() {
        for text in [
            "",
            "sl local\n",
            "0: 0100007F:1F90 x:y 01\n",
            "0: 0100007F:1F90 0100007F:1F91 01 a b c d e f g\n",
        ] {
            assert!(listed(text, |_| true).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_socket_is_found_by_its_number() {
        use std::os::fd::AsRawFd;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, from) = listener.accept().unwrap();
        let number = |descriptor: i32| -> u64 {
            let link = fs::read_link(format!("/proc/self/fd/{descriptor}")).unwrap();
            let text = link
                .to_str()
                .unwrap()
                .trim_matches(|c: char| !c.is_ascii_digit());
            text.parse().unwrap()
        };
        let found = |descriptor| connection_of_socket(std::process::id(), number(descriptor));
        let to = listener.local_addr().unwrap();
        assert_eq!(found(client.as_raw_fd()), Some((from, to)));
        assert_eq!(found(listener.as_raw_fd()), None);
        drop(client);
        // It has a last answer to read, or to send.
        assert_eq!(found(server.as_raw_fd()), Some((to, from)));
    }
}
