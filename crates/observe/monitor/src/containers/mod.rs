//! Containers of this machine: which there are, what they are called, and whose a process is. Runtimes are not asked to do anything; their
//! files, their sockets and the names of control groups are read.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`list`] | start here: all containers, one found by a word, the one of a process |
//! | `docker` | what Docker keeps, and what its socket and Podman's answer |
//! | `storage` | what Podman and CRI-O keep |
//! | `containerd` | what containerd keeps, for Kubernetes, nerdctl and Docker |
//! | `group_names` | containers by the names of their control groups |
//!
//! Ids of containers have 64 hexadecimal digits, of which the first 12 are shown.

mod containerd;
mod docker;
mod group_names;
pub mod list;
mod storage;
#[cfg(test)]
mod tests;

use std::fmt;

/// How many digits of an id are shown.
const SHOWN: usize = 12;
/// Longest file of a runtime that is read.
const LONGEST: u64 = 16 << 20;

/// What runs containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContainerRuntime {
    /// Docker.
    Docker,
    /// Podman.
    Podman,
    /// CRI-O, of Kubernetes.
    CriO,
    /// containerd by itself or of Kubernetes.
    Containerd,
}

impl fmt::Display for ContainerRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
            Self::CriO => "cri-o",
            Self::Containerd => "containerd",
        })
    }
}

/// A container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// Its id.
    pub id: String,
    /// What it is called, the shortest name first: `web`, `shop/web`, `default/shop/web` of a pod; none where only its id is known.
    pub names: Vec<String>,
    /// What runs it.
    pub runtime: ContainerRuntime,
    /// Its first process, where it runs and this is known.
    pub pid: Option<u32>,
    /// Whether it runs.
    pub is_running: bool,
    /// It holds a pod's network and does nothing else.
    pub is_sandbox: bool,
}

impl Container {
    /// What it is called in short: a name, or the first digits of its id.
    #[must_use]
    pub fn short_name(&self) -> &str {
        let id = self.id.get(..SHOWN).unwrap_or(&self.id);
        self.names.first().map_or(id, String::as_str)
    }

    /// The first digits of its id.
    #[must_use]
    pub fn short_id(&self) -> &str {
        self.id.get(..SHOWN).unwrap_or(&self.id)
    }

    /// A container of that id, which runs if it has a process.
    fn new(id: &str, runtime: ContainerRuntime, pid: Option<u32>) -> Self {
        Self {
            id: id.to_owned(),
            names: Vec::new(),
            runtime,
            pid,
            is_running: pid.is_some(),
            is_sandbox: false,
        }
    }

    fn named(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.names
            .extend(names.into_iter().filter(|name| !name.is_empty()));
        self
    }
}

/// The names of a container of a pod: its own, with its pod's, and with its namespace's before.
fn names_in_pod(namespace: &str, pod: &str, container: &str) -> Vec<String> {
    match (pod.is_empty(), container.is_empty()) {
        (true, _) => vec![container.to_owned()],
        (false, true) => vec![pod.to_owned(), format!("{namespace}/{pod}")],
        (false, false) => vec![
            container.to_owned(),
            format!("{pod}/{container}"),
            format!("{namespace}/{pod}/{container}"),
        ],
    }
}
