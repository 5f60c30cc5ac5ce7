//! Whether a program listens: which listening sockets of its network namespace are among its descriptors (proc(5)).

use crate::process_tree::with_descendants;
use stackline_monitor::socket_descriptors::sockets_of;
use std::collections::BTreeSet;
use std::fs;

/// The state of a listening TCP socket, as `/proc/net/tcp` has it.
const TCP_LISTEN: &str = "0A";
/// The flag of a Unix socket that listens (`__SO_ACCEPTCON`), as `/proc/net/unix` has it.
const UNIX_LISTENS: &str = "00010000";

/// Whether a process, or one that it started, listens at a TCP port or a Unix socket. A process of another user, whose descriptors may
/// not be read, does not listen by this.
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

/// Their numbers (inodes).
fn listening_sockets(pid: u32) -> BTreeSet<u64> {
    let sockets = |file: &str, state: usize, value: &str, inode: usize| -> Vec<u64> {
        let text = fs::read_to_string(format!("/proc/{pid}/net/{file}")).unwrap_or_default();
        text.lines()
            .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>())
            .filter(|fields| fields.get(state) == Some(&value))
            .filter_map(|fields| fields.get(inode)?.parse().ok())
            .collect()
    };
    let mut all = sockets("tcp", 3, TCP_LISTEN, 9);
    all.extend(sockets("tcp6", 3, TCP_LISTEN, 9));
    all.extend(sockets("unix", 3, UNIX_LISTENS, 6));
    all.into_iter().collect()
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
}
