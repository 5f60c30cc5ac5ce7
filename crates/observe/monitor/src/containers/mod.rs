//! Containers of this machine: which exist, their names, and which one a process is in. It only reads: the files of the runtimes,
//! their sockets, and the names of control groups.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`list`] | start here: all containers, one found by a word, or by a process |
//! | `docker` | Docker's containers, and the sockets of Docker and Podman |
//! | `storage` | the containers of Podman and CRI-O |
//! | `containerd` | the containers of containerd: Kubernetes, nerdctl and Docker |
//! | `group_names` | recognises containers by the names of their control groups |
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

/// How many digits of an ID are shown.
const SHOWN: usize = 12;
/// The most bytes of a runtime's file, or of its answer, that are read.
const LONGEST: u64 = 16 << 20;

/// A container runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContainerRuntime {
    /// Docker.
    Docker,
    /// Podman.
    Podman,
    /// CRI-O, used by Kubernetes.
    CriO,
    /// containerd, used directly or by Kubernetes.
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
    /// Its ID.
    pub id: String,
    /// Its names, shortest first: `web`, and in a pod also `shop/web` and `default/shop/web`; empty if only its ID is known.
    pub names: Vec<String>,
    /// The runtime that runs it.
    pub runtime: ContainerRuntime,
    /// The process ID of its first process, if it runs and this is known.
    pub pid: Option<u32>,
    /// Whether it runs.
    pub is_running: bool,
    /// Whether it only holds the network of a pod.
    pub is_sandbox: bool,
}

impl Container {
    /// Its shortest name, or else the first digits of its ID.
    #[must_use]
    pub fn short_name(&self) -> &str {
        let id = self.id.get(..SHOWN).unwrap_or(&self.id);
        self.names.first().map_or(id, String::as_str)
    }

    /// The first digits of its ID.
    #[must_use]
    pub fn short_id(&self) -> &str {
        self.id.get(..SHOWN).unwrap_or(&self.id)
    }

    /// A container without names; it counts as running if it has a process.
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

/// The names of a container in a pod: its own, with the pod's before it, and with the Kubernetes namespace before that.
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
