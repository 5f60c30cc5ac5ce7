//! Where traced programs run: on hosts of an emulated network, on this machine, or in the network namespaces of joined processes.

use crate::host_program_end::HostProgramEnd;
use crate::network_events::TracedNetwork;
use crate::programs::{HERE, TracedProgram};
use crate::tls_key_log::{self, KeyLog};
use crate::trace_sources::TracedHost;
use stackline_core::error::{Error, Result};
use stackline_emu::client::Emulation;
use stackline_monitor::containers::list::{ContainerList, ContainerPlaces};
use stackline_monitor::network_addresses::addresses_of;
use stackline_requests::ObservedHost;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The most network namespaces whose packets are captured: each takes kernel memory.
const MOST_NAMESPACES: usize = 32;

/// The hosts on which programs run and are observed.
pub struct TraceSetting {
    /// The hosts whose packets are captured.
    pub(crate) hosts: Vec<TracedHost>,
    /// The same hosts with their addresses.
    pub(crate) addresses: Vec<ObservedHost>,
    /// The emulated network, if programs run on one.
    pub(crate) network: Option<TracedNetwork>,
    /// Where programs write the secrets of their TLS sessions, if they are asked to.
    pub(crate) keys: Option<KeyLog>,
    /// Notes about the setting.
    pub(crate) notes: Vec<String>,
}

impl TraceSetting {
    /// The hosts of an emulated network that is up; `word` names it on the command line. `decipher`: programs write their TLS
    /// secrets for the trace.
    ///
    /// # Errors
    /// When the network has gone, or secrets of TLS have no place.
    pub fn on_network(word: String, emulation: Emulation, decipher: bool) -> Result<Self> {
        let keys = KeyLog::start(decipher, true)?;
        let network = TracedNetwork::uses(word, emulation)?;
        let handles = network.emulation.hosts().to_vec();
        let hosts = handles.iter().map(|host| TracedHost {
            name: host.name.clone(),
            net: Some((host.net.clone(), host.user.clone())),
        });
        let addresses = handles.iter().map(|host| ObservedHost {
            name: host.name.clone(),
            addresses: vec![host.address.into()],
        });
        Ok(Self {
            hosts: hosts.collect(),
            addresses: addresses.collect(),
            network: Some(network),
            keys,
            notes: Vec::new(),
        })
    }

    /// The setting of programs on this machine.
    ///
    /// # Errors
    /// When a program is of another host, or the machine's addresses cannot be read.
    pub fn here(programs: &[TracedProgram], decipher: bool) -> Result<Self> {
        let keys = KeyLog::start(decipher, false)?;
        if let Some(other) = programs.iter().find(|program| program.host != HERE) {
            return Err(Error::input(format!(
                "unknown host {}: no network was specified",
                other.host
            ))
            .hint("specify the network with --on NETWORK; `here` is this machine"));
        }
        Ok(Self {
            hosts: vec![TracedHost {
                name: HERE.into(),
                net: None,
            }],
            addresses: vec![ObservedHost {
                name: HERE.into(),
                addresses: own_addresses()?,
            }],
            network: None,
            keys,
            notes: Vec::new(),
        })
    }

    /// The network namespaces of joined processes: this machine's own, and others by the names of their containers.
    ///
    /// # Errors
    /// When the addresses of one cannot be read, or secrets of TLS have no place.
    pub fn joined(pids: &[u32], decipher: bool) -> Result<Self> {
        let own = namespace_of("self", "net");
        let mut seen: Vec<(Option<PathBuf>, u32)> = Vec::new();
        let mut hidden = Vec::new();
        for pid in pids {
            let namespace = namespace_of(&pid.to_string(), "net");
            hidden.extend(namespace.is_none().then(|| pid.to_string()));
            if !seen.iter().any(|(known, _)| *known == namespace) {
                seen.push((namespace, *pid));
            }
        }
        let left_out = seen.len().saturating_sub(MOST_NAMESPACES);
        seen.truncate(MOST_NAMESPACES);
        let mut setting = Self {
            hosts: Vec::new(),
            addresses: Vec::new(),
            network: None,
            keys: KeyLog::start(decipher, false)?,
            notes: Vec::new(),
        };
        let mut containers = None;
        for (namespace, pid) in seen {
            let is_own = namespace.is_none() || namespace == own;
            let (name, net, addresses) = match is_own {
                true => (HERE.to_owned(), None, own_addresses()?),
                false => (
                    setting.name_of(pid, namespace.as_deref(), &mut containers),
                    Some(doors_of(pid)),
                    addresses_of(pid).map_err(|error| {
                        Error::environment(format!(
                            "cannot read the addresses of process {pid}: {error}"
                        ))
                    })?,
                ),
            };
            setting.hosts.push(TracedHost {
                name: name.clone(),
                net,
            });
            setting.addresses.push(ObservedHost { name, addresses });
        }
        setting.notes.extend((!hidden.is_empty() && own.is_some()).then(|| {
            let processes = match hidden.as_slice() {
                [one] => format!("process {one}"),
                several => format!("processes {}", several.join(", ")),
            };
            format!("the network namespace of {processes} cannot be read without CAP_SYS_PTRACE; this machine's own packets were captured instead, so requests in a container are missing")
        }));
        setting.notes.extend((left_out > 0).then(|| {
            format!("network namespaces whose packets were not captured: {left_out} (the limit is {MOST_NAMESPACES})")
        }));
        Ok(setting)
    }

    /// A name for another network namespace: of a container in it, the one that `ip netns` gave it, or of its process.
    fn name_of(
        &self,
        pid: u32,
        namespace: Option<&Path>,
        containers: &mut Option<ContainerList>,
    ) -> String {
        let list = containers
            .get_or_insert_with(|| ContainerList::read(ContainerPlaces::of_this_machine()));
        let program = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let name = list
            .name_of_process(pid)
            .or_else(|| name_of_namespace(namespace?))
            .unwrap_or_else(|| format!("{}-{pid}", program.trim()));
        let is_new = |name: &String| self.hosts.iter().all(|host| host.name != *name);
        std::iter::once(name.clone())
            .chain((2..).map(|number| format!("{name}-{number}")))
            .find(is_new)
            .unwrap_or(name)
    }

    /// The emulated network, if programs run on one.
    pub const fn emulation(&mut self) -> Option<&mut Emulation> {
        match &mut self.network {
            Some(network) => Some(&mut network.emulation),
            None => None,
        }
    }

    /// The command that starts a program, on its host if there is a network. It writes its TLS secrets to the key log, and on a host
    /// its end to `end`.
    pub(crate) fn command(
        &self,
        program: &TracedProgram,
        end: Option<&HostProgramEnd>,
    ) -> Result<Command> {
        let mut command = self.entered(program, end)?;
        if let Some(keys) = &self.keys {
            command.env(tls_key_log::VARIABLE, keys.path());
        }
        Ok(command)
    }

    /// The command that starts a program, on its host if there is a network.
    fn entered(&self, program: &TracedProgram, end: Option<&HostProgramEnd>) -> Result<Command> {
        let Some(network) = &self.network else {
            let mut command = Command::new(&program.command[0]);
            command.args(&program.command[1..]);
            return Ok(command);
        };
        let own = std::env::current_exe().map_err(|error| {
            Error::environment(format!("cannot find the path of this program: {error}"))
        })?;
        let mut command = Command::new(own);
        command.args(["net", "exec", "--of-trace"]);
        if let Some(end) = end {
            command.arg("--end-to").arg(end.path());
        }
        // A text may declare several networks with a host of that name.
        command
            .args(["--network", network.name()])
            .args([network.word.as_str(), &program.host, "--"])
            .args(&program.command);
        Ok(command)
    }
}

/// A namespace of a process as the kernel names it, such as `net:[4026531840]`.
pub(crate) fn namespace_of(pid: &str, kind: &str) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok()
}

/// The paths to the network namespace of a process, and to its user namespace if that has to be entered first to get the right.
fn doors_of(pid: u32) -> (PathBuf, Option<PathBuf>) {
    let user = namespace_of(&pid.to_string(), "user");
    let is_other = user.is_some() && user != namespace_of("self", "user");
    let path = |kind: &str| PathBuf::from(format!("/proc/{pid}/ns/{kind}"));
    let through = (is_other && !nix::unistd::geteuid().is_root()).then(|| path("user"));
    (path("net"), through)
}

/// The name that `ip netns` gave a network namespace.
fn name_of_namespace(namespace: &Path) -> Option<String> {
    let text = namespace.to_str()?;
    let number: u64 = text
        .strip_prefix("net:[")?
        .strip_suffix(']')?
        .parse()
        .ok()?;
    std::fs::read_dir("/run/netns")
        .ok()?
        .flatten()
        .find(|entry| std::fs::metadata(entry.path()).is_ok_and(|file| file.ino() == number))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
}

/// The addresses of this machine.
fn own_addresses() -> Result<Vec<IpAddr>> {
    let addresses = nix::ifaddrs::getifaddrs().map_err(|error| {
        Error::environment(format!("cannot read this machine's addresses: {error}"))
    })?;
    let ip = |address: nix::ifaddrs::InterfaceAddress| {
        let address = address.address?;
        let four = address.as_sockaddr_in().map(|four| IpAddr::V4(four.ip()));
        four.or_else(|| address.as_sockaddr_in6().map(|six| IpAddr::V6(six.ip())))
    };
    Ok(addresses.filter_map(ip).collect())
}
