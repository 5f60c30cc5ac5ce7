//! Whether a program listens: which listening sockets of its network namespace are among its descriptors (proc(5)). A UDP socket listens
//! once it is bound to a server's port and to no peer.

use crate::proc_descendants::with_descendants;
use stackline_monitor::observe::existing_connections::FIRST_EPHEMERAL;
use stackline_monitor::socket_descriptors::sockets_of;
use std::collections::BTreeSet;
use std::fs;

/// The state of a listening TCP socket, as `/proc/net/tcp` has it.
const TCP_LISTEN: &str = "0A";
/// The flag of a Unix socket that listens (`__SO_ACCEPTCON`), as `/proc/net/unix` has it.
const UNIX_LISTENS: &str = "00010000";

/// Whether a process or one of its descendants listens at a port or a Unix socket. The descriptors of another user's process cannot
/// be read: it counts as not listening.
pub(crate) fn listens(pid: u32) -> bool {
    let listening = listening_sockets(pid);
    let owns_one = |pid: u32| {
        let sockets = sockets_of(&pid.to_string());
        !sockets.is_disjoint(&listening)
    };
    !listening.is_empty() && with_descendants(&[pid]).into_iter().any(owns_one)
}

/// How many sockets listen in the network namespace of a process.
pub(crate) fn count_listeners(pid: u32) -> usize {
    listening_sockets(pid).len()
}

/// The inode numbers of the sockets that listen in the network namespace of a process.
fn listening_sockets(pid: u32) -> BTreeSet<u64> {
    let mut all = BTreeSet::new();
    let mut add = |file: &str, inode: usize, listens: fn(&[&str]) -> bool| {
        let text = fs::read_to_string(format!("/proc/{pid}/net/{file}")).unwrap_or_default();
        let sockets = text
            .lines()
            .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>())
            .filter(|fields| listens(fields))
            .filter_map(|fields| fields.get(inode)?.parse::<u64>().ok());
        all.extend(sockets);
    };
    for family in ["", "6"] {
        add(&format!("tcp{family}"), 9, |fields| {
            fields.get(3) == Some(&TCP_LISTEN)
        });
        add(&format!("udp{family}"), 9, is_datagram_server);
    }
    add("unix", 6, |fields| fields.get(3) == Some(&UNIX_LISTENS));
    all
}

/// Whether a line of `/proc/net/udp`, split into fields, is of a socket that is bound to a server's port and to no peer.
fn is_datagram_server(fields: &[&str]) -> bool {
    let port = |field: usize| {
        let (_, port) = fields.get(field)?.rsplit_once(':')?;
        u16::from_str_radix(port, 16).ok()
    };
    port(2) == Some(0) && port(1).is_some_and(|port| (1..FIRST_EPHEMERAL).contains(&port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::process::{Child, Command};

    /// A process that sleeps, and is killed when the test is over.
    struct Sleeper(Child);

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn sockets_of_others_are_not_a_programs_own() {
        let sleeper = Sleeper(Command::new("sleep").arg("60").spawn().unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(listens(std::process::id()));
        assert!(count_listeners(sleeper.0.id()) > 0);
        assert!(!listens(sleeper.0.id()));
        drop(listener);
    }

    #[test]
    fn a_datagram_socket_listens_at_a_server_s_port_without_a_peer() {
        let line = |local: &str, peer: &str| {
            let line = format!("7: {local} {peer} 07 00000000:00000000 00:00000000 0 0 0 4711 2");
            is_datagram_server(&line.split_ascii_whitespace().collect::<Vec<_>>())
        };
        assert!(line("0100007F:1151", "00000000:0000"));
        assert!(!line("0100007F:1151", "0100007F:0035"), "it has a peer");
        assert!(!line("00000000:9C40", "00000000:0000"), "port 40000");
        assert!(!line("local_address", "rem_address"), "the head line");
    }
}
