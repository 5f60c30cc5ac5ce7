//! A lease of an emulated network: starts the emulator's process, or joins a running one, and exchanges requests with
//! it.
//!
//! The lease ends when it is dropped or its process ends; the network ends with its last lease.

use crate::engine::{EmulatorOptions, EmulatorReport};
use crate::error::{self, Error, Result};
use crate::protocol::HostHandle;
use crate::protocol::{Description, EmulationOpening, EmulatorReply, EmulatorRequest};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{Shutdown, getsockopt, setsockopt, shutdown, sockopt};
use nix::sys::time::TimeVal;
use nix::unistd::geteuid;
use stackline_core::network::{Network, NetworkLink};
use stackline_core::random::Seed;
use std::collections::BTreeSet;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// How often a client tries to reach the emulator of a shared network while it is starting or ending.
const ATTEMPTS: u32 = 200;
/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(10);
/// How long the last client to leave a shared network waits for its end at most, in seconds.
const LEAVING: i64 = 5;
/// Most characters of a network's name that its socket's name contains.
const LONGEST_NAME: usize = 48;

/// An emulated network; it exists at least as long as this value.
#[derive(Debug)]
pub struct Emulation {
    connection: EmulatorConnection,
    hosts: Vec<HostHandle>,
}

impl Emulation {
    /// A private network: `program emulate` as a child. It ends when this is dropped or this process ends.
    pub fn private(
        program: &Path,
        network: &Network,
        seed: Seed,
        options: &EmulatorOptions,
    ) -> Result<Self> {
        let mut command = emulator(program);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| cannot_start(program, &e))?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::measurement("the emulator was started without pipes"));
        };
        let (to, from) = (
            File::from(OwnedFd::from(to)),
            File::from(OwnedFd::from(from)),
        );
        let connection = EmulatorConnection {
            to: Some(to),
            from: BufReader::new(from),
            child: Some(child),
        };
        let opening = EmulationOpening {
            network: network.clone(),
            seed,
            options: *options,
        };
        Self::open(connection, &opening).map_err(RequestError::refusal)
    }

    /// A network shared by all clients with the same key, network and options, until the last of them ends. The first
    /// one starts it; a client with another seed is refused meanwhile.
    pub fn shared(
        program: &Path,
        key: &str,
        network: &Network,
        seed: Seed,
        options: &EmulatorOptions,
    ) -> Result<Self> {
        let opening = EmulationOpening {
            network: network.clone(),
            seed,
            options: *options,
        };
        let name = name(key, network, options)?;
        let mut lost = RequestError::Lost;
        for _ in 0..ATTEMPTS {
            let opened = match connect_or_start(program, &name)? {
                Some(stream) => Self::open(EmulatorConnection::over(stream)?, &opening),
                None => Err(RequestError::Lost),
            };
            match opened {
                Err(error @ RequestError::Lost) => lost = error,
                other => return other.map_err(RequestError::refusal),
            }
            thread::sleep(PAUSE);
        }
        Err(lost.refusal())
    }

    /// Asks the emulator at the other end to make the network, or to accept another client of it.
    fn open(
        mut connection: EmulatorConnection,
        opening: &EmulationOpening,
    ) -> std::result::Result<Self, RequestError> {
        match connection.ask(&EmulatorRequest::Open(Box::new(opening.clone())))? {
            EmulatorReply::Open(hosts) => Ok(Self { connection, hosts }),
            other => Err(unexpected(other)),
        }
    }

    /// Connects to a network that is up, to look at it: the client does not count as one that uses it until [`Emulation::uses`]. `None`
    /// when the network has just ended or is being made.
    pub fn join(network: &UpNetwork) -> Result<Option<Self>> {
        let Ok(stream) = UnixStream::connect_addr(&network.address) else {
            return Ok(None);
        };
        let owner = getsockopt(&stream, sockopt::PeerCredentials)
            .map_err(|e| error::call_failed("reading credentials", e))?;
        check_owner(owner.uid())?;
        let mut connection = EmulatorConnection::over(stream)?;
        match connection.ask(&EmulatorRequest::Join) {
            Ok(EmulatorReply::Open(hosts)) => Ok(Some(Self { connection, hosts })),
            // A network that is just being made has not been opened by its first client.
            Ok(_) | Err(RequestError::Lost) => Ok(None),
            Err(refused) => Err(refused.refusal()),
        }
    }

    /// From now on this client counts as one that uses the network it joined.
    pub fn uses(&mut self) -> Result<()> {
        self.done(&EmulatorRequest::Use)
    }

    /// The network as it is now.
    pub fn describe(&mut self) -> Result<Description> {
        match self
            .connection
            .ask(&EmulatorRequest::Describe)
            .map_err(RequestError::refusal)?
        {
            EmulatorReply::Description(description) => Ok(*description),
            other => Err(unexpected(other).refusal()),
        }
    }

    /// Says whether the network stays up when its last lease has ended.
    pub fn keep(&mut self, kept: bool) -> Result<()> {
        self.done(&EmulatorRequest::Keep(kept))
    }

    /// Changes the rate, delay, loss or queue limits of a link from now on.
    pub fn change(&mut self, link: usize, new: NetworkLink) -> Result<()> {
        self.done(&EmulatorRequest::Change(link, Box::new(new)))
    }

    /// Makes a request that has no other answer than that it is done.
    fn done(&mut self, request: &EmulatorRequest) -> Result<()> {
        match self
            .connection
            .ask(request)
            .map_err(RequestError::refusal)?
        {
            EmulatorReply::Done => Ok(()),
            other => Err(unexpected(other).refusal()),
        }
    }

    /// The hosts, in the order of the network.
    #[must_use]
    pub fn hosts(&self) -> &[HostHandle] {
        &self.hosts
    }

    /// The host of that name.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<&HostHandle> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// Restarts the network: nothing in transit, counters at zero, all randomness from that seed. It is done on return.
    /// `record` goes to the program's recorders and says what to record from now on; the previous recording is
    /// finished.
    pub fn restart(&mut self, seed: Seed, record: Option<serde_json::Value>) -> Result<()> {
        match self
            .connection
            .ask(&EmulatorRequest::Restart(seed, record))
            .map_err(RequestError::refusal)?
        {
            EmulatorReply::Restarted => Ok(()),
            other => Err(unexpected(other).refusal()),
        }
    }

    /// Ends the recording; the network goes on. It is done on return.
    pub fn end_recording(&mut self) -> Result<()> {
        self.done(&EmulatorRequest::EndRecording)
    }

    /// The emulator's report on everything since the last restart of the network.
    pub fn report(&mut self) -> Result<EmulatorReport> {
        match self
            .connection
            .ask(&EmulatorRequest::Report)
            .map_err(RequestError::refusal)?
        {
            EmulatorReply::Report(report) => Ok(*report),
            other => Err(unexpected(other).refusal()),
        }
    }

    /// The descriptor of the connection, which reports a hang-up when the emulator ends: see [`wait_until_gone`].
    #[must_use]
    pub fn lease(&self) -> BorrowedFd<'_> {
        self.connection.from.get_ref().as_fd()
    }
}

/// Whether the emulator at the other end of a lease is gone.
#[must_use]
pub fn is_gone(lease: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(lease, PollFlags::empty())];
    poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

/// Waits until the emulator at the other end of a lease is gone.
pub fn wait_until_gone(lease: &OwnedFd) {
    // Without a requested event only the end is reported.
    let mut fds = [PollFd::new(lease.as_fd(), PollFlags::empty())];
    while poll(&mut fds, PollTimeout::NONE) == Err(Errno::EINTR) {}
}

/// A connection to the emulator: JSON requests and replies, a line each.
#[derive(Debug)]
struct EmulatorConnection {
    /// Where requests are written; `None` only while the connection is dropped.
    to: Option<File>,
    from: BufReader<File>,
    /// The emulator's process, if it is private to this client.
    child: Option<Child>,
}

impl EmulatorConnection {
    /// A connection to the emulator of a shared network.
    fn over(stream: UnixStream) -> Result<Self> {
        let twice = stream
            .try_clone()
            .map_err(|e| error::call_failed("duplicating a socket", e))?;
        let (to, from) = (
            File::from(OwnedFd::from(twice)),
            File::from(OwnedFd::from(stream)),
        );
        Ok(Self {
            to: Some(to),
            from: BufReader::new(from),
            child: None,
        })
    }

    /// Sends a request and waits for the answer.
    fn ask(
        &mut self,
        request: &EmulatorRequest,
    ) -> std::result::Result<EmulatorReply, RequestError> {
        let mut line =
            serde_json::to_vec(request).map_err(|e| RequestError::from(io::Error::from(e)))?;
        line.push(b'\n');
        let to = self.to.as_mut().ok_or(RequestError::Lost)?;
        to.write_all(&line).map_err(RequestError::from)?;
        let mut answer = String::new();
        if self
            .from
            .read_line(&mut answer)
            .map_err(RequestError::from)?
            == 0
        {
            return Err(RequestError::Lost);
        }
        serde_json::from_str(&answer).map_err(|e| RequestError::from(io::Error::from(e)))
    }
}

impl Drop for EmulatorConnection {
    fn drop(&mut self) {
        // The emulator ends when it can receive no more requests.
        let to = self.to.take();
        if let Some(child) = &mut self.child {
            drop(to);
            let _ = child.wait();
        } else if let Some(to) = to {
            // The last client waits until the network is gone; others are released at once.
            let _ = shutdown(to.as_raw_fd(), Shutdown::Write);
            let _ = setsockopt(&to, sockopt::ReceiveTimeout, &TimeVal::new(LEAVING, 0));
            let _ = io::copy(&mut self.from, &mut io::sink());
        }
    }
}

/// Why a request has no answer.
#[derive(Debug)]
enum RequestError {
    /// The emulator has ended.
    Lost,
    /// The emulator refuses.
    Refused(Error),
}

impl RequestError {
    /// The error that the caller of this crate gets.
    fn refusal(self) -> Error {
        match self {
            Self::Lost => Error::measurement("the network emulator exited without answering"),
            Self::Refused(refusal) => refusal,
        }
    }
}

impl From<io::Error> for RequestError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => Self::Lost,
            _ => Self::Refused(Error::measurement(format!(
                "communication with the emulator failed: {error}"
            ))),
        }
    }
}

/// The error for a reply that is a refusal, or is of another kind than the request asks for.
fn unexpected(answer: EmulatorReply) -> RequestError {
    RequestError::Refused(match answer {
        EmulatorReply::Refused(refusal) => refusal,
        _ => Error::measurement("the emulator's answer does not match the request"),
    })
}

/// The command that starts the emulator's process, in a process group of its own, so that the terminal's signals (an interrupt by
/// Ctrl-C) do not reach it: it ends with its leases.
fn emulator(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("emulate").process_group(0);
    command
}

fn cannot_start(program: &Path, error: &io::Error) -> Error {
    error::environment(format!(
        "cannot start the emulator {}: {error}",
        program.display()
    ))
}

/// A shared network that is up: its name, and the abstract socket at which its emulator is reached.
#[derive(Clone, Debug)]
pub struct UpNetwork {
    /// The name it was declared with; a long one is cut to 48 characters.
    pub name: String,
    address: SocketAddr,
}

impl UpNetwork {
    /// Whether this is the network of that name with that specification and those options.
    #[must_use]
    pub fn is(&self, key: &str, network: &Network, options: &EmulatorOptions) -> bool {
        name(key, network, options)
            .is_ok_and(|name| name.as_abstract_name() == self.address.as_abstract_name())
    }

    /// Whether it has that name, whatever its specification.
    #[must_use]
    pub fn is_named(&self, key: &str) -> bool {
        self.name == cut(key)
    }
}

/// The shared networks of this user that are up, by name.
pub fn up_networks() -> Result<Vec<UpNetwork>> {
    let table = std::fs::read_to_string("/proc/net/unix")
        .map_err(|e| error::call_failed("reading /proc/net/unix", e))?;
    let prefix = prefix();
    let sockets: BTreeSet<(String, String)> = table
        .lines()
        .filter_map(|line| {
            let socket = line.split_once(&format!("@{prefix}"))?.1;
            let (hash, name) = socket.split_once('-')?;
            Some((name.to_string(), hash.to_string()))
        })
        .collect();
    let network = |(name, hash): (String, String)| {
        let address = SocketAddr::from_abstract_name(format!("{prefix}{hash}-{name}"));
        Ok(UpNetwork {
            name,
            address: address.map_err(|e| error::call_failed("naming a socket", e))?,
        })
    };
    sockets.into_iter().map(network).collect()
}

/// The beginning of the names of this user's sockets.
fn prefix() -> String {
    format!("stackline-emulator-{}-", geteuid())
}

/// The part of a network's name that its socket's name contains: printable ASCII characters, at most [`LONGEST_NAME`].
fn cut(key: &str) -> String {
    key.chars()
        .filter(|c| c.is_ascii_graphic() || *c == ' ')
        .take(LONGEST_NAME)
        .collect()
}

/// The name of a shared network's socket: equal for the same user, version of the program, network and options, whatever the seed.
fn name(key: &str, network: &Network, options: &EmulatorOptions) -> Result<SocketAddr> {
    let text = serde_json::to_string(&(network, options))
        .map_err(|e| Error::measurement(format!("cannot serialise the network: {e}")))?;
    let mut hasher = DefaultHasher::new();
    (env!("CARGO_PKG_VERSION"), key, text).hash(&mut hasher);
    let name = format!("{}{:016x}-{}", prefix(), hasher.finish(), cut(key));
    SocketAddr::from_abstract_name(name).map_err(|e| error::call_failed("naming a socket", e))
}

/// Connects to the emulator with this socket, or starts it. `None` when another client is just starting it.
fn connect_or_start(program: &Path, name: &SocketAddr) -> Result<Option<UnixStream>> {
    let Ok(stream) = UnixStream::connect_addr(name) else {
        return start_shared(program, name);
    };
    let owner = getsockopt(&stream, sockopt::PeerCredentials)
        .map_err(|e| error::call_failed("reading the peer's credentials", e))?
        .uid();
    check_owner(owner)?;
    Ok(Some(stream))
}

/// Refuses a socket that a process of another user has bound: it must not pose as the emulator.
fn check_owner(owner: u32) -> Result<()> {
    if owner == geteuid().as_raw() {
        return Ok(());
    }
    let message = format!("another user (uid {owner}) owns this network's socket");
    Err(error::environment(message)
        .hint("give the network another name: each name has its own socket"))
}

/// Starts the emulator, unless another client is starting it: only one can bind the name. The connection is made first,
/// so that the emulator has a client from its beginning and ends if this process ends.
fn start_shared(program: &Path, name: &SocketAddr) -> Result<Option<UnixStream>> {
    let listener = match UnixListener::bind_addr(name) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => return Ok(None),
        other => other.map_err(|error| error::call_failed("binding a socket", error))?,
    };
    let stream = UnixStream::connect_addr(name)
        .map_err(|error| error::call_failed("connecting a socket", error))?;
    let mut command = emulator(program);
    command
        .arg("--shared")
        .stdin(OwnedFd::from(listener))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // The emulator outlives this process when other clients join, so this process does not wait for it.
    command
        .spawn()
        .map(drop)
        .map_err(|error| cannot_start(program, &error))?;
    Ok(Some(stream))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_of_another_user_is_refused_with_a_hint() {
        assert_eq!(check_owner(geteuid().as_raw()), Ok(()));
        let refusal = check_owner(geteuid().as_raw() + 1).unwrap_err();
        assert!(
            refusal.message.contains("owns this network's socket"),
            "{refusal}"
        );
        assert_eq!(
            refusal.hint.as_deref(),
            Some("give the network another name: each name has its own socket")
        );
    }

    #[test]
    fn the_same_network_has_the_same_socket() {
        let text = |key: &str, hosts: usize| {
            let network = Network {
                hosts: vec![Default::default(); hosts],
                ..Network::default()
            };
            name(key, &network, &EmulatorOptions::default())
                .unwrap()
                .as_abstract_name()
                .unwrap()
                .to_vec()
        };
        assert_eq!(text("wan", 2), text("wan", 2));
        assert_ne!(text("wan", 2), text("lan", 2));
        assert_ne!(text("wan", 2), text("wan", 3));
    }
}
