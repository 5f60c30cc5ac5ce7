//! The agent's side: takes connections at a TCP port and starts an agent process for each coordinator that knows the secret. Only the
//! process measures; what is here passes bytes on.

use super::PATIENCE;
use super::byte_relay::relay;
use super::secure_channel::{self, SecureChannel};
use super::socket_keeping::keep_alive;
use crate::error::{Error, Result};
use rustls::ServerConfig;
use stackline_core::plan::ProcessorShare;
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
use std::process::{Child, Command, Stdio};
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
        let hint =
            "another agent may be listening there; choose another port: `--listen HOST:PORT`";
        let listener = serve::listen_at(address, hint)?;
        let keys = secure_channel::server_keys()
            .map_err(|error| Error::environment(format!("cannot make a key: {error}")))?;
        let service = AgentService {
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
        let Ok(Some(channel)) = self.authenticate(connection, peer) else {
            return;
        };
        drop(place);
        // Kept until the coordinator has left.
        let (mut channel, _session) = channel;
        (self.options.say)(&format!("{peer}: a coordinator has connected"));
        let ended = match self.run_agent(&mut channel, peer) {
            Ok(()) => "has left".to_owned(),
            Err(error) => format!("was disconnected: {error}"),
        };
        (self.options.say)(&format!("{peer}: the coordinator {ended}"));
    }
}

impl AgentService {
    /// The channel of a coordinator that knows the secret, and its place.
    fn authenticate(
        &self,
        connection: TcpStream,
        peer: SocketAddr,
    ) -> io::Result<Option<(SecureChannel, ConnectionSlot)>> {
        let deadline = Deadline::within(PATIENCE);
        connection.set_nonblocking(false)?;
        keep_alive(&connection)?;
        let secret = &self.options.secret;
        match secure_channel::accept(connection, &self.keys, secret, deadline)? {
            Ok(coordinator) => match self.sessions.enter() {
                Some(session) => Ok(Some((coordinator.welcome(secret, deadline)?, session))),
                None => {
                    (self.options.say)(&format!(
                        "{peer}: refused, {SESSIONS} hosts are served already"
                    ));
                    coordinator.turn_away(deadline).map(|()| None)
                }
            },
            Err(stranger) => {
                std::thread::sleep(self.attempts.failed(Instant::now()));
                self.report_refusal(peer);
                secure_channel::refuse(stranger, deadline).map(|()| None)
            }
        }
    }

    fn report_refusal(&self, peer: SocketAddr) {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.since += 1;
        let is_due = refusals
            .reported
            .is_none_or(|last| last.elapsed() > REPORTED);
        if is_due {
            let others = match refusals.since - 1 {
                0 => String::new(),
                others => format!(" ({others} more since the last report)"),
            };
            (self.options.say)(&format!("{peer}: refused, its secret is wrong{others}"));
            *refusals = Refusals {
                reported: Some(Instant::now()),
                since: 0,
            };
        }
    }

    /// Starts an agent process and passes bytes on until it or its coordinator ends.
    fn run_agent(&self, channel: &mut SecureChannel, peer: SocketAddr) -> io::Result<()> {
        let mut process = AgentChild(self.agent_command(peer).spawn()?);
        let (input, output) = (process.0.stdin.take(), process.0.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err(io::Error::other("its agent was started without pipes"));
        };
        // The agent's pipe closes here, which ends it.
        relay(channel, output, input).map(drop)
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
        let until = Instant::now() + ENDS;
        while Instant::now() < until {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let group = nix::unistd::Pid::from_raw(self.0.id().cast_signed());
        let _ = nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL);
        let _ = self.0.wait();
    }
}
