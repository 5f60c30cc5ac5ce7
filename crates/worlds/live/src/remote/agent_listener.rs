//! The agent's side: takes connections at a TCP port and starts an agent process for each coordinator that knows the secret. Only the
//! process measures; what is here passes bytes on.

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

/// Connections that have not shown the secret yet.
const STRANGERS: usize = 64;
/// Hosts of coordinators that are served at once.
const SESSIONS: usize = 64;
/// How long an agent process may take to end after its coordinator has left.
const ENDS: Duration = Duration::from_secs(2);
/// Refusals are reported at most so often.
const REPORTED: Duration = Duration::from_secs(10);

/// How agent processes are started.
#[derive(Clone, Debug)]
pub struct ListeningAgentOptions {
    /// This program.
    pub program: PathBuf,
    /// The only directory in which agents may access files.
    pub files: Option<PathBuf>,
    /// Their share of a processor.
    pub share: Option<ProcessorShare>,
    /// What coordinators have to know.
    pub secret: Secret,
    /// Reports who comes and goes.
    pub say: fn(&str),
}

/// An agent that listens.
pub struct AgentListener {
    listener: TcpListener,
    service: Arc<AgentService>,
}

struct AgentService {
    options: ListeningAgentOptions,
    key: ChannelKey,
    keys: Arc<ServerConfig>,
    attempts: Attempts,
    strangers: Arc<ConnectionSlotPool>,
    sessions: Arc<ConnectionSlotPool>,
    refusals: Mutex<Refusals>,
}

/// Strangers who were refused since that was reported last.
#[derive(Default)]
struct Refusals {
    reported: Option<Instant>,
    since: u64,
}

impl AgentListener {
    /// Listens there.
    ///
    /// # Errors
    /// An [`Error`] of the environment.
    pub fn bind(address: SocketAddr, options: ListeningAgentOptions) -> Result<Self> {
        let listener = serve::listen_at(address)?;
        let keys = secure_channel::server_keys()
            .map_err(|error| Error::environment(format!("cannot make a key: {error}")))?;
        let service = AgentService {
            key: ChannelKey::of(&options.secret),
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
    /// The kernel's.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves coordinators until the switch is thrown. Agents end with this process, by their pipes.
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
        // Kept until the coordinator has left.
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
    /// The channel of a coordinator that knows the secret, and its place.
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

    /// Reports a stranger who was refused, unless one was just now, or those that were not reported.
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

    /// Starts an agent process and passes bytes on until it or its coordinator ends; how the process ended, where that was first.
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
        // The agent's pipe closes then, which ends it.
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
        command
            .env(crate::agent::COORDINATOR, peer.ip().to_string())
            .env_remove(super::SECRET)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0);
        command
    }
}

/// An agent process, which has ended when this is dropped.
struct AgentChild(Child);

impl Drop for AgentChild {
    fn drop(&mut self) {
        if ended_within(&mut self.0, ENDS).is_none() {
            kill_group(&mut self.0);
        }
    }
}

/// Whether the other side of a connection closes it within a time, or it is ended here to make room for others.
fn ends_within(channel: &SecureChannel, time: Duration) -> io::Result<bool> {
    let most = Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    };
    let mut waiting = [PollFd::new(&channel.socket, PollFlags::RDHUP)];
    Ok(poll(&mut waiting, Some(&most))? > 0)
}
