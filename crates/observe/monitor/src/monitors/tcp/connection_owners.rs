//! Finds the process of each watched connection, by the sockets among the descriptors of all processes that this user may see. Each
//! connection is recorded once.

use crate::sock_diag::DiagSocket;
use crate::socket_descriptors::sockets_of;
use stackline_events::catalogue::rows::ConnectionOwner;
use stackline_events::{EventLog, EventValue, clock};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;

/// The shortest time between two searches, ns.
const REST_NS: u64 = 1_000_000_000;
/// A search is followed by a rest of so many times its length, so that searching takes at most 2 % of a core.
const REST_TIMES: u64 = 50;
/// After so many searches a connection's process counts as unknown: that of another user, or of the kernel.
const SEARCHES: u8 = 2;

/// A process that has a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SocketOwner {
    pid: u32,
    /// Its name, of at most 15 bytes (proc(5), `comm`).
    program: String,
}

/// What is known of the connections' processes.
#[derive(Debug)]
pub(super) struct ConnectionOwners {
    /// What is kept of a program's name.
    kept: fn(&str) -> String,
    /// How often each open connection was searched for, by the cookie of its socket; [`SEARCHES`] once it is recorded.
    searched: HashMap<u64, u8>,
    /// The earliest time of the next search, ns.
    next_ns: u64,
}

impl ConnectionOwners {
    pub(super) fn new(kept: fn(&str) -> String) -> Self {
        Self {
            kept,
            searched: HashMap::new(),
            next_ns: 0,
        }
    }

    /// Records the processes of the connections among these that have none yet, if it is time for a search.
    pub(super) fn record(&mut self, sockets: &[DiagSocket], at_ns: u64, log: &mut EventLog) {
        if at_ns < self.next_ns || !self.record_found(sockets, at_ns, log, owners_of) {
            return;
        }
        let now_ns = clock::now_ns();
        let took_ns = now_ns.saturating_sub(at_ns);
        self.next_ns = now_ns + REST_NS.max(took_ns.saturating_mul(REST_TIMES));
    }

    /// The same, by a search of which the test knows the result. Returns whether there was something to search for.
    fn record_found(
        &mut self,
        sockets: &[DiagSocket],
        at_ns: u64,
        log: &mut EventLog,
        search: impl FnOnce(BTreeSet<u64>) -> BTreeMap<u64, SocketOwner>,
    ) -> bool {
        let open: BTreeSet<u64> = sockets.iter().map(|socket| socket.cookie).collect();
        self.searched.retain(|cookie, _| open.contains(cookie));
        // A connection that nobody has accepted yet, or that is closed already, has no inode.
        let is_wanted = |socket: &&DiagSocket| {
            socket.inode != 0
                && self
                    .searched
                    .get(&socket.cookie)
                    .is_none_or(|times| *times < SEARCHES)
        };
        let wanted: Vec<&DiagSocket> = sockets.iter().filter(is_wanted).collect();
        if wanted.is_empty() {
            return false;
        }
        let owners = search(
            wanted
                .iter()
                .map(|socket| u64::from(socket.inode))
                .collect(),
        );
        for socket in wanted {
            let owner = owners.get(&u64::from(socket.inode));
            let times = self.searched.entry(socket.cookie).or_default();
            *times += 1;
            if owner.is_none() && *times < SEARCHES {
                continue;
            }
            *times = SEARCHES;
            let (local, remote) = (
                socket.pair.local.to_string(),
                socket.pair.remote.to_string(),
            );
            let program = owner.map(|owner| (self.kept)(&owner.program));
            ConnectionOwner {
                local: EventValue::Text(&local),
                remote: EventValue::Text(&remote),
                pid: owner.map(|owner| u64::from(owner.pid)).into(),
                program: program.as_deref().into(),
            }
            .write(log, at_ns);
        }
        true
    }
}

/// The processes that have these sockets, by inode. Of several that share one, the first by number has it.
fn owners_of(mut wanted: BTreeSet<u64>) -> BTreeMap<u64, SocketOwner> {
    let mut owners = BTreeMap::new();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes {
        let name = process.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let held: Vec<u64> = sockets_of(&pid.to_string())
            .intersection(&wanted)
            .copied()
            .collect();
        if held.is_empty() {
            continue;
        }
        let program = fs::read(process.path().join("comm")).unwrap_or_default();
        let program = String::from_utf8_lossy(&program).trim().to_owned();
        for inode in held {
            wanted.remove(&inode);
            let program = program.clone();
            owners.insert(inode, SocketOwner { pid, program });
        }
        if wanted.is_empty() {
            break;
        }
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address_pair::AddressPair;
    use crate::sock_diag::SockDiag;
    use stackline_events::catalogue;
    use std::net::{TcpListener, TcpStream};

    fn socket(cookie: u64, inode: u32) -> DiagSocket {
        DiagSocket {
            pair: AddressPair::parse("127.0.0.1:5001", "127.0.0.1:40000"),
            state: 1,
            inode,
            cookie,
            receive_queue_bytes: 0,
            received_bytes: None,
            counters: None,
        }
    }

    /// What is recorded of these sockets in each of the searches.
    fn recorded(owners: &mut ConnectionOwners, sockets: &[DiagSocket], found: bool) -> Vec<String> {
        let mut log = EventLog::default();
        owners.record_found(sockets, 7, &mut log, |wanted| {
            let owner = SocketOwner {
                pid: 12,
                program: "curl".into(),
            };
            wanted
                .into_iter()
                .filter(|_| found)
                .map(|inode| (inode, owner.clone()))
                .collect()
        });
        let program = |record: stackline_events::EventRecord<'_>| {
            format!(
                "{} {}",
                catalogue::find_value(&record, "pid"),
                catalogue::find_value(&record, "program")
            )
        };
        log.records().map(program).collect()
    }

    #[test]
    fn a_connection_is_recorded_once_and_as_unknown_after_some_searches() {
        let mut owners = ConnectionOwners::new(str::to_uppercase);
        assert!(recorded(&mut owners, &[socket(1, 0)], true).is_empty());
        assert_eq!(recorded(&mut owners, &[socket(1, 9)], true), ["12 CURL"]);
        assert!(recorded(&mut owners, &[socket(1, 9)], true).is_empty());
        assert!(recorded(&mut owners, &[socket(2, 8)], false).is_empty());
        assert_eq!(recorded(&mut owners, &[socket(2, 8)], false), [" "]);
        // It was closed, and a new socket has its inode.
        assert_eq!(recorded(&mut owners, &[socket(3, 9)], true), ["12 CURL"]);
        assert_eq!(owners.searched.len(), 1);
    }

    #[test]
    fn our_own_connections_are_ours() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let pair = AddressPair {
            local: near.local_addr().unwrap(),
            remote: near.peer_addr().unwrap(),
        };
        let sockets = SockDiag::open().unwrap().sockets().unwrap();
        let ours = sockets.iter().find(|socket| socket.pair == pair).unwrap();
        let inode = u64::from(ours.inode);
        let owner = &owners_of([inode].into())[&inode];
        let name = fs::read_to_string("/proc/self/comm").unwrap();
        assert_eq!(
            (owner.pid, owner.program.as_str()),
            (std::process::id(), name.trim())
        );
    }
}
