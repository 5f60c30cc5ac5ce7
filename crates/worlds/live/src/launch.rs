//! Starts agents: as a child process on this machine, by `ssh DESTINATION stackline agent`, or by a command of the user; or connects to an
//! agent that listens, by a child process that relays bytes.
//!
//! Encryption and login are those of ssh, of the command, or of [`crate::remote`]. Each child has a process group of its own, so that
//! Ctrl-C reaches the coordinator alone, which then ends its agents by message.

use crate::agent::COORDINATOR;
use crate::child_end::{ended_within, kill_group};
use crate::control::{self, AgentHello, FromAgent, LONGEST_LINE, PROTOCOL, ToAgent};
use crate::error::{Error, Result};
use crate::remote;
use crate::ssh_destination::{for_ssh, quoted, resolved_host};
use nix::sys::signal::Signal;
use stackline_core::plan::{HostPlan, Via};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::net::Ipv6Addr;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// How agents are started.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// Path of this program, which local agents run.
    pub program: PathBuf,
    /// The directory that local agents may access files under, if any.
    pub files: Option<PathBuf>,
    /// The ssh program: `$STACKLINE_SSH`, else `ssh`.
    pub ssh: String,
    /// The stackline command on remote hosts: `$STACKLINE_REMOTE`, else `stackline`.
    pub remote: String,
    /// The namespaces that local agents enter first, by host: the user namespace, if there is one, and the network namespace.
    pub within: BTreeMap<String, (Option<PathBuf>, PathBuf)>,
    /// Addresses of IPv6 that hosts have beside those of the plan, by host.
    pub addresses_v6: BTreeMap<String, Ipv6Addr>,
    /// Shows the user a line of text about a wait.
    pub say: fn(&str),
}

impl Launcher {
    /// A launcher with ssh and the remote command taken from environment variables.
    #[must_use]
    pub fn new(program: PathBuf, files: Option<PathBuf>) -> Self {
        let or =
            |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_string());
        let (ssh, remote) = (
            or("STACKLINE_SSH", "ssh"),
            or("STACKLINE_REMOTE", "stackline"),
        );
        Self {
            program,
            files,
            ssh,
            remote,
            within: BTreeMap::new(),
            addresses_v6: BTreeMap::new(),
            say: |_| {},
        }
    }

    /// The command that starts, or connects to, a host's agent.
    fn command(&self, name: &str, host: &HostPlan) -> Command {
        match &host.via {
            // A far end has no agent; `start` has refused it.
            Via::Local | Via::FarEnd(_) => {
                let mut command = Command::new(&self.program);
                command.arg("agent");
                if let Some(directory) = host
                    .files
                    .as_ref()
                    .map(PathBuf::from)
                    .or_else(|| self.files.clone())
                {
                    command.arg("--files").arg(directory);
                }
                host.share.iter().for_each(|share| {
                    command.arg("--share").arg(share.to_string());
                });
                if let Some((user, net)) = self.within.get(name) {
                    command.arg("--net-namespace").arg(net);
                    user.iter().for_each(|user| {
                        command.arg("--user-namespace").arg(user);
                    });
                }
                command
            }
            Via::Ssh(destination) => {
                let mut command = Command::new(&self.ssh);
                // Without BatchMode, ssh could wait without end for a password that nobody can type.
                command.args([
                    "-o",
                    "BatchMode=yes",
                    "-o",
                    "ConnectTimeout=10",
                    "-o",
                    "ServerAliveInterval=15",
                    "--",
                ]);
                command
                    .arg(for_ssh(destination).as_ref())
                    .arg(&self.remote)
                    .arg("agent");
                if let Some(directory) = &host.files {
                    command.arg("--files").arg(quoted(directory));
                }
                host.share.iter().for_each(|share| {
                    command.arg("--share").arg(share.to_string());
                });
                command
            }
            Via::Tcp(address) => {
                let mut command = Command::new(&self.program);
                command.args(["agent", "--connect", address]);
                command
            }
            Via::Exec(shell_command) => {
                let mut command = Command::new("/bin/sh");
                command.args(["-c", shell_command]);
                command
            }
        }
    }

    /// Starts the agent of a host; its output begins with its greeting.
    ///
    /// # Errors
    /// An [`Error`] when the program cannot be started, or the plan sets a directory or share that has to be set where the agent is
    /// started.
    pub fn start(&self, name: &str, host: &HostPlan) -> Result<AgentProcess> {
        if let Via::FarEnd(address) = &host.via {
            return Err(Error::input(format!(
                "{address} is a server without an agent"
            )));
        }
        let is_started_elsewhere = matches!(host.via, Via::Tcp(_) | Via::Exec(_));
        if is_started_elsewhere && (host.files.is_some() || host.share.is_some()) {
            return Err(Error::input(format!(
                "the directory and share of host {name} are set where its agent is started"
            ))
            .hint("omit `files` and `share` in the specification, and start `stackline agent` with --files or --share"));
        }
        let mut command = self.command(name, host);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        if !matches!(host.via, Via::Tcp(_)) {
            command.env_remove(remote::SECRET);
        }
        if matches!(host.via, Via::Exec(_)) {
            // These name the client of this process's own login, which the agent would mistake for its coordinator's address.
            command.env_remove("SSH_CONNECTION").env_remove(COORDINATOR);
        }
        let mut child = command.spawn().map_err(|e| {
            let program = command.get_program().to_string_lossy().into_owned();
            Error::environment(format!(
                "cannot start the agent on host {name}: {program}: {e}"
            ))
        })?;
        let (input, output, errors) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = (input, output, errors) else {
            return Err(Error::environment(format!(
                "the agent on host {name} was started without pipes"
            )));
        };
        Ok(AgentProcess {
            name: name.to_string(),
            via: host.via.clone(),
            ssh: self.ssh.clone(),
            ssh_host: OnceLock::new(),
            child,
            input: Some(input),
            output: Some(BufReader::new(output)),
            said: listen(errors),
            signal: None,
            patience: ENDS_UNGREETED,
        })
    }
}

/// What a process wrote to stderr, and whether its stderr has ended.
#[derive(Debug, Default)]
struct AgentStderr {
    state: Mutex<(String, bool)>,
    ended: Condvar,
}

impl AgentStderr {
    /// The text, after waiting up to 1 s for stderr to end: a child that outlives the process may keep it open.
    fn words(&self) -> String {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .ended
            .wait_timeout_while(state, Duration::from_secs(1), |(_, ended)| !*ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.0.clone()
    }
}

/// Starts a thread that keeps the first 4 KiB or so of what a process writes to stderr (and reads at most 1 MiB of it).
fn listen(errors: ChildStderr) -> Arc<AgentStderr> {
    let said = Arc::new(AgentStderr::default());
    let keep = Arc::clone(&said);
    std::thread::spawn(move || {
        let lock = || keep.state.lock().unwrap_or_else(PoisonError::into_inner);
        for line in BufReader::new(errors)
            .take(1 << 20)
            .lines()
            .map_while(std::result::Result::ok)
        {
            let text = &mut lock().0;
            if text.len() + line.len() < 4096 {
                text.push_str(&line);
                text.push('\n');
            }
        }
        lock().1 = true;
        keep.ended.notify_all();
    });
    said
}

/// A started agent.
#[derive(Debug)]
pub struct AgentProcess {
    /// Name of the host that it is the agent of.
    pub name: String,
    via: Via,
    ssh: String,
    /// The host that an ssh destination stands for, once it was looked up.
    ssh_host: OnceLock<String>,
    child: Child,
    /// The pipe for messages to the agent; `None` after [`Self::quit`].
    input: Option<ChildStdin>,
    /// The pipe for messages from the agent, until it is taken.
    output: Option<BufReader<ChildStdout>>,
    said: Arc<AgentStderr>,
    /// The signal that killed the process, once it was waited for.
    signal: Option<i32>,
    /// How long the process may take to end by itself before it is killed.
    patience: Duration,
}

/// How long an agent may take to end after it was asked to.
const ENDS: Duration = Duration::from_secs(2);
/// The same for an agent that has not greeted: it has no jobs to end.
const ENDS_UNGREETED: Duration = Duration::from_millis(100);

/// Most bytes of other output (such as a login shell's greeting) before the agent's greeting.
const NOISE: u64 = 64 << 10;

/// Waits for an agent's greeting and skips other lines before it. `None` if the output ends first or has more than 64 KiB of other lines.
pub fn greeting(output: &mut impl BufRead) -> Option<AgentHello> {
    let mut noise = 0;
    while noise < NOISE {
        let mut line = Vec::new();
        match output.take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(got) if got > 0 => noise += got as u64,
            _ => return None,
        }
        if let Ok(FromAgent::Hello(hello)) = serde_json::from_slice(&line) {
            return Some(hello);
        }
    }
    None
}

impl AgentProcess {
    /// Takes the agent's output, to be read by the caller: first its [`greeting`], then its messages. `None` if it was taken before.
    pub const fn take_output(&mut self) -> Option<BufReader<ChildStdout>> {
        self.output.take()
    }

    /// Checks the greeting; `None` means that the output ended without one.
    ///
    /// # Errors
    /// An [`Error`] that says why there is no agent (with what ssh wrote to stderr, for example), or that its version differs.
    pub fn greeted(&mut self, hello: Option<&AgentHello>) -> Result<()> {
        match hello {
            None => Err(self.not_started()),
            Some(hello) if hello.protocol != PROTOCOL => Err(self.other_version(hello)),
            Some(_) => {
                self.patience = ENDS;
                Ok(())
            }
        }
    }

    fn other_version(&self, hello: &AgentHello) -> Error {
        Error::environment(format!(
            "the agent on host {} is stackline {}, but the version here is {}",
            self.name,
            hello.version,
            env!("CARGO_PKG_VERSION")
        ))
        .hint("install the same version on both hosts")
    }

    /// The error for an agent that has not greeted; its hint depends on how the agent was started and on what was written to stderr.
    fn not_started(&mut self) -> Error {
        let status = self.wait(Duration::from_secs(2));
        let said = self.last_words();
        match &self.via {
            Via::Local | Via::FarEnd(_) => Error::environment(format!(
                "the agent on host {} exited immediately{status}{said}",
                self.name
            )),
            Via::Ssh(destination) => {
                let failure = Error::environment(format!(
                    "no agent on {destination} (host {}){status}{said}",
                    self.name
                ));
                match said {
                    s if s.contains("Permission denied") || s.contains("password") => {
                        failure.hint("ssh must log in without a prompt: install this user's key there (ssh-copy-id), or use an ssh agent that holds it")
                    }
                    s if s.contains("not found") || s.contains("No such file") => {
                        failure.hint("install stackline there, in the PATH of a non-interactive shell, or set STACKLINE_REMOTE to its path")
                    }
                    s if s.contains("resolve") || s.contains("timed out") || s.contains("refused") || s.contains("route") => {
                        failure.hint("check the destination: `ssh DESTINATION true` must work")
                    }
                    _ => failure.hint("`ssh DESTINATION stackline agent` must start and wait"),
                }
            }
            Via::Tcp(_) => {
                let (why, hint) = self.words_of_the_connection();
                Error {
                    hint,
                    ..Error::environment(format!("host {}: {why}", self.name))
                }
            }
            Via::Exec(command) => {
                let failure = Error::environment(format!(
                    "the command `{command}` started no agent (host {}){status}{said}",
                    self.name
                ));
                match said {
                    s if s.contains("TTY") => failure.hint("do not allocate a terminal: `docker exec -i`, not `-it`"),
                    s if s.contains("stackline") && s.contains("not found") => {
                        failure.hint("install stackline where the command runs it, or use its full path")
                    }
                    _ => failure.hint("the command must start `stackline agent` with its own standard input and output (docker and kubectl: `exec -i`)"),
                }
            }
        }
    }

    /// The error and hint that the connecting process (`stackline agent --connect`) wrote to stderr.
    fn words_of_the_connection(&self) -> (String, Option<String>) {
        let said = self.said.words();
        let line = |kind: &str| said.lines().find_map(|line| line.strip_prefix(kind));
        let why = line("error: ").unwrap_or("the connection to it ended");
        (why.to_owned(), line("hint: ").map(str::to_owned))
    }

    /// The error for an agent whose pipe closed during a run: its exit status and last words.
    pub fn died(&mut self) -> Error {
        let status = self.wait(Duration::from_secs(2));
        if matches!(self.via, Via::Tcp(_)) {
            let (why, hint) = self.words_of_the_connection();
            let what = format!(
                "the agent on host {} disappeared in the middle of a run",
                self.name
            );
            return Error {
                hint,
                ..Error::measurement(format!("{what}: {why}"))
            };
        }
        Error::measurement(format!(
            "the agent on host {} exited in the middle of a run{status}{}",
            self.name,
            self.last_words()
        ))
    }

    /// The name of the signal by which the process ended itself, as by a wrong address or `abort`; `None` if it did not, or still runs.
    #[must_use]
    pub fn crash(&self) -> Option<&'static str> {
        let signal = Signal::try_from(self.signal?).ok()?;
        let is_crash = matches!(
            signal,
            Signal::SIGSEGV
                | Signal::SIGBUS
                | Signal::SIGABRT
                | Signal::SIGILL
                | Signal::SIGFPE
                | Signal::SIGTRAP
                | Signal::SIGSYS
        );
        is_crash.then(|| signal.as_str())
    }

    /// The last two lines written to stderr, with a colon before them; empty if there are none.
    pub(crate) fn last_words(&self) -> String {
        let said = self.said.words();
        let words: Vec<&str> = said
            .lines()
            .map(str::trim)
            .filter(|l| !l.is_empty())
            .collect();
        let last = words[words.len().saturating_sub(2)..].join("; ");
        if last.is_empty() {
            String::new()
        } else {
            format!(": {last}")
        }
    }

    /// Waits for the process to end. Returns its exit status in words; empty if it still runs after `patience`.
    fn wait(&mut self, patience: Duration) -> String {
        let Some(status) = ended_within(&mut self.child, patience) else {
            return String::new();
        };
        self.signal = status.signal();
        match (status.code(), status.signal()) {
            (Some(code), _) => format!(" (exit code {code})"),
            (_, Some(signal)) => format!(" (killed by signal {signal})"),
            _ => String::new(),
        }
    }

    /// Sends one message.
    ///
    /// # Errors
    /// The error of [`Self::died`] when the message cannot be written.
    pub fn send(&mut self, message: &ToAgent) -> Result<()> {
        let written = self
            .input
            .as_mut()
            .map(|input| control::write(input, message));
        if matches!(written, Some(Ok(()))) {
            Ok(())
        } else {
            Err(self.died())
        }
    }

    /// The hint for an agent that does not answer.
    #[must_use]
    pub const fn how_to_start(&self) -> &'static str {
        match self.via {
            Via::Local | Via::FarEnd(_) => {
                "this machine is overloaded; try again when it has less to do"
            }
            Via::Ssh(_) => {
                "`ssh DESTINATION stackline agent` must start at once and without a prompt"
            }
            Via::Tcp(_) => "the host of `stackline agent --listen` is overloaded or suspended",
            Via::Exec(_) => {
                "the command of `via exec` must start `stackline agent` at once, with its own standard input and output"
            }
        }
    }

    /// Whether the agent runs on this machine as a child of this process.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        matches!(self.via, Via::Local)
    }

    /// The address by which other hosts reach the agent's host, if it follows from the way the agent is reached (ssh or TCP).
    #[must_use]
    pub fn destination(&self) -> Option<String> {
        match &self.via {
            Via::Local | Via::Exec(_) | Via::FarEnd(_) => None,
            Via::Ssh(destination) => {
                let host = || resolved_host(&self.ssh, destination);
                Some(self.ssh_host.get_or_init(host).clone())
            }
            Via::Tcp(address) => {
                let host = address
                    .rsplit_once(':')
                    .map_or(&**address, |(host, _)| host);
                Some(host.trim_matches(['[', ']']).to_string())
            }
        }
    }

    /// Whether the agent was started by a command: then only its greeting shows on which machine and in which network it runs.
    #[must_use]
    pub const fn is_by_command(&self) -> bool {
        matches!(self.via, Via::Exec(_))
    }
}

impl AgentProcess {
    /// Asks the agent to end, without waiting until it has.
    pub fn quit(&mut self) {
        // An agent also ends when its pipe closes, as it does here; an agent of another version may not understand the message.
        if let Some(mut input) = self.input.take() {
            let _ = control::write(&mut input, &ToAgent::Quit);
        }
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        self.quit();
        if self.wait(self.patience).is_empty() {
            kill_group(&mut self.child);
        }
    }
}
