//! The agent's side of a remote agent: accepts connections at a TCP port and starts an agent process for each coordinator that knows the
//! secret. That process carries out the runs; this file only relays bytes to and from it.

use super::PATIENCE;
use super::byte_relay::{Ended, relay};
use super::secure_channel::{self, ChannelKey, SecureChannel};
use super::socket_keeping::keep_alive;
use crate::child_end::{ended_within, kill_group};
use crate::error::{Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::ServerConfig;
use stackline_core::plan::ProcessorShare;
use stackline_core::units::counted;
use stackline_guard::attempts::Attempts;
use stackline_guard::connection_slots::{ConnectionSlot, ConnectionSlotPool};
use stackline_guard::deadline::Deadline;
use stackline_guard::secret::Secret;
use stackline_guard::serve::{self, ConnectionService};
use stackline_guard::stop::StopSwitch;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most connections at once that have not proved yet that they know the secret.
const STRANGERS: usize = 64;
/// Most agent processes at once, one for each connected coordinator.
const SESSIONS: usize = 64;
/// How long an agent process may take to end after its coordinator has left.
const ENDS: Duration = Duration::from_secs(2);
/// Least time between two reports of refused connections.
const REPORTED: Duration = Duration::from_secs(10);

/// How agent processes are started.
#[derive(Clone, Debug)]
pub struct ListeningAgentOptions {
    /// Path of this program, which agent processes run.
    pub program: PathBuf,
    /// The only directory in which agents may access files.
    pub files: Option<PathBuf>,
    /// The share of a processor that agents are limited to, if any.
    pub share: Option<ProcessorShare>,
    /// Whether agents load plug-ins and start programs that coordinators name.
    pub own_stacks: bool,
    /// The secret that coordinators have to know.
    pub secret: Secret,
    /// Shows the user a line of text about connections.
    pub say: fn(&str),
}

/// An agent that listens.
pub struct AgentListener {
    listener: TcpListener,
    service: Arc<AgentService>,
}

struct AgentService {
    options: ListeningAgentOptions,
    /// The key of the proofs, derived from the secret.
    key: ChannelKey,
    /// The TLS configuration.
    keys: Arc<ServerConfig>,
    /// Delays answers to wrong secrets.
    attempts: Attempts,
    /// Places of connections that have not proved the secret.
    strangers: Arc<ConnectionSlotPool>,
    /// Places of connected coordinators.
    sessions: Arc<ConnectionSlotPool>,
    refusals: Mutex<Refusals>,
}

/// Connections that were refused for a wrong secret.
#[derive(Default)]
struct Refusals {
    /// When refusals were reported last.
    reported: Option<Instant>,
    /// How many there were since then.
    since: u64,
}

impl AgentListener {
    /// Listens at this address.
    ///
    /// # Errors
    /// An [`Error`] of the environment.
    pub fn bind(address: SocketAddr, options: ListeningAgentOptions) -> Result<Self> {
        let listener = serve::listen_at(address)?;
        let keys = secure_channel::server_keys()
            .map_err(|error| Error::environment(format!("cannot make a key: {error}")))?;
        let service = AgentService {
            key: ChannelKey::derive(&options.secret),
            options,
            keys,
            attempts: Attempts::default(),
            strangers: ConnectionSlotPool::new(STRANGERS),
            sessions: ConnectionSlotPool::new(SESSIONS),
            refusals: Mutex::default(),
        };
        Ok(Self {
            listener,
            service: Arc::new(service),
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves coordinators until the switch is thrown. Agent processes end with this process, because their pipes close.
    pub fn serve(&self, stop: &StopSwitch) {
        serve::serve_connections(&self.service, stop, || {
            serve::accept_tcp(&self.listener, stop)
        });
        self.service.report_refusals(None);
    }
}

impl ConnectionService for AgentService {
    type Connection = TcpStream;

    fn strangers(&self) -> &Arc<ConnectionSlotPool> {
        &self.strangers
    }

    fn end_of(&self, connection: &TcpStream) -> io::Result<impl FnOnce() + Send + 'static> {
        let connection = connection.try_clone()?;
        Ok(move || drop(connection.shutdown(Shutdown::Both)))
    }

    fn serve(self: Arc<Self>, connection: TcpStream, place: ConnectionSlot) {
        let Ok(peer) = connection.peer_addr() else {
            return;
        };
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        let Ok(Some(channel)) = self.authenticate(connection, peer, &place) else {
            return;
        };
        drop(place);
        // The session's place is held until the coordinator has left.
        let (mut channel, _session) = channel;
        self.report_refusals(None);
        (self.options.say)(&format!("{peer}: a coordinator has connected"));
        let ended = match self.run_agent(&mut channel, peer) {
            Ok(None) => "the coordinator has left".to_owned(),
            Ok(Some(status)) => format!("its agent process has ended: {status}"),
            Err(error) => format!("the coordinator was disconnected: {error}"),
        };
        (self.options.say)(&format!("{peer}: {ended}"));
    }
}

impl AgentService {
    /// Makes the secure channel of a coordinator and takes a session's place for it. `None` if the secret is wrong or all places are taken;
    /// the other side has been answered then. A wrong secret is answered after a delay, to slow down guessing.
    fn authenticate(
        &self,
        connection: TcpStream,
        peer: SocketAddr,
        place: &ConnectionSlot,
    ) -> io::Result<Option<(SecureChannel, ConnectionSlot)>> {
        let deadline = Deadline::within(PATIENCE);
        connection.set_nonblocking(false)?;
        keep_alive(&connection)?;
        match secure_channel::accept(connection, &self.keys, &self.key, deadline)? {
            Ok(coordinator) => match self.sessions.enter() {
                Some(session) => Ok(Some((coordinator.welcome(&self.key, deadline)?, session))),
                None => {
                    (self.options.say)(&format!(
                        "{peer}: refused, {SESSIONS} hosts are served already"
                    ));
                    coordinator.turn_away(deadline).map(|()| None)
                }
            },
            Err(stranger) => {
                self.report_refusals(Some(peer));
                let is_gone = ends_within(&stranger, self.attempts.failed(Instant::now()))?;
                if is_gone || place.is_lost() {
                    return Ok(None);
                }
                secure_channel::refuse(stranger, deadline).map(|()| None)
            }
        }
    }

    /// With a peer: counts its refusal, and reports all refusals since the last report if that was more than [`REPORTED`] ago. Without a
    /// peer: reports those that were not reported yet.
    fn report_refusals(&self, peer: Option<SocketAddr>) {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.since += u64::from(peer.is_some());
        let is_due = refusals
            .reported
            .is_none_or(|last| last.elapsed() > REPORTED);
        if refusals.since == 0 || peer.is_some() && !is_due {
            return;
        }
        let what = match (peer, refusals.since) {
            (Some(peer), 1) => format!("{peer}: refused, its secret is wrong"),
            (_, since) => format!(
                "{} refused since the last report: their secrets are wrong",
                counted(since, "connection")
            ),
        };
        (self.options.say)(&what);
        *refusals = Refusals {
            reported: Some(Instant::now()),
            since: 0,
        };
    }

    /// Starts an agent process and relays bytes until it or its coordinator ends. Returns the exit status of the process if it ended first.
    fn run_agent(
        &self,
        channel: &mut SecureChannel,
        peer: SocketAddr,
    ) -> io::Result<Option<ExitStatus>> {
        let mut process = AgentChild(self.agent_command(peer).spawn()?);
        let (input, output) = (process.0.stdin.take(), process.0.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err(io::Error::other("its agent was started without pipes"));
        };
        // When `relay` returns, the agent's pipes are closed, which ends the agent.
        match relay(channel, output, input)? {
            Ended::Here => Ok(ended_within(&mut process.0, ENDS)),
            Ended::There => Ok(None),
        }
    }

    fn agent_command(&self, peer: SocketAddr) -> Command {
        let options = &self.options;
        let mut command = Command::new(&options.program);
        command.arg("agent");
        if let Some(directory) = &options.files {
            command.arg("--files").arg(directory);
        }
        if let Some(share) = options.share {
            command.arg("--share").arg(share.to_string());
        }
        if !options.own_stacks {
            command.arg("--refuse-own-stacks");
        }
        command
            .env(crate::agent::COORDINATOR, peer.ip().to_string())
            .env_remove(super::SECRET)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0);
        command
    }
}

/// An agent process. Dropping this waits for its end, and kills it if it takes longer than [`ENDS`].
struct AgentChild(Child);

impl Drop for AgentChild {
    fn drop(&mut self) {
        if ended_within(&mut self.0, ENDS).is_none() {
            kill_group(&mut self.0);
        }
    }
}

/// Waits for `time`. Returns true earlier if the connection is closed, by the other side or here to make room for others.
fn ends_within(channel: &SecureChannel, time: Duration) -> io::Result<bool> {
    let most = Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    };
    let mut waiting = [PollFd::new(&channel.socket, PollFlags::RDHUP)];
    Ok(poll(&mut waiting, Some(&most))? > 0)
}
