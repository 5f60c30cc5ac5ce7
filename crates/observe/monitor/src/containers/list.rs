//! The list of all containers of this machine: found by a word of the user, or by a process.

use super::{Container, ContainerRuntime, containerd, docker, group_names, storage};
use crate::observe::thread_numbers::ThreadNumbers;
use stackline_core::error::{Error, Result};
use stackline_os::control_groups::{ControlGroups, paths_of, processes_below};
use stackline_os::root_directory::Root;
use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

/// The most containers that a message lists.
const LISTED: usize = 20;

/// The places where runtimes keep their containers.
#[derive(Debug)]
pub struct ContainerPlaces {
    root: Root,
    /// The stores of Podman and CRI-O, each with the directory of running containers.
    stores: Vec<(String, String)>,
    docker_sockets: Vec<PathBuf>,
    podman_sockets: Vec<PathBuf>,
    /// Whether this process sees the process IDs that runtimes know.
    has_same_numbers: bool,
}

impl ContainerPlaces {
    /// The places of this machine and of this user.
    #[must_use]
    pub fn of_this_machine() -> Self {
        let mut places = Self::at(Path::new("/"));
        places.has_same_numbers = !ThreadNumbers::of_this_process().differ();
        let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let named = variable("DOCKER_HOST");
        let named = named
            .as_deref()
            .and_then(|place| place.strip_prefix("unix://"));
        if let Some(running) = variable("XDG_RUNTIME_DIR") {
            let running = running.trim_end_matches('/');
            let below = |name: &str| PathBuf::from(format!("{running}/{name}"));
            places.docker_sockets.push(below("docker.sock"));
            places.podman_sockets.push(below("podman/podman.sock"));
            let data = variable("XDG_DATA_HOME");
            let data = data.or_else(|| Some(format!("{}/.local/share", variable("HOME")?)));
            let relative = |path: &str| path.trim_start_matches('/').to_owned();
            places.stores.extend(data.map(|data| {
                (
                    relative(&format!("{data}/containers/storage")),
                    relative(&format!("{running}/containers")),
                )
            }));
        }
        // The socket that the user named is tried before the usual ones.
        places.docker_sockets.splice(0..0, named.map(PathBuf::from));
        places
    }

    /// The places below another root directory, without those of a user.
    #[must_use]
    pub fn at(prefix: &Path) -> Self {
        let root = Root::at(prefix);
        Self {
            stores: vec![(
                "var/lib/containers/storage".to_owned(),
                "run/containers/storage".to_owned(),
            )],
            docker_sockets: vec![root.path("run/docker.sock")],
            podman_sockets: vec![root.path("run/podman/podman.sock")],
            root,
            has_same_numbers: true,
        }
    }
}

/// All containers of this machine.
#[derive(Debug)]
pub struct ContainerList {
    /// The directory below which files are read.
    root: Root,
    groups: ControlGroups,
    containers: Vec<Container>,
    /// Why the containers of a runtime could not be read.
    unread: BTreeMap<ContainerRuntime, String>,
}

impl ContainerList {
    /// Reads the files and sockets of all runtimes, and the control groups.
    #[must_use]
    pub fn read(places: ContainerPlaces) -> Self {
        let mut list = Self {
            groups: ControlGroups::mounted(&places.root).unwrap_or_default(),
            root: Root::at(&places.root.path("")),
            containers: Vec::new(),
            unread: BTreeMap::new(),
        };
        let root = &places.root;
        let docker = docker::of_directory(root);
        let docker = or_sockets(docker, &places.docker_sockets, ContainerRuntime::Docker);
        list.add(ContainerRuntime::Docker, docker);
        let mut stored = Err(String::new());
        for (store, running) in &places.stores {
            match storage::containers(root, store, running) {
                Ok(found) => list.add(ContainerRuntime::Podman, Ok(found)),
                Err(why) => stored = Err(why),
            }
        }
        if !list.has(ContainerRuntime::Podman) {
            let podman = or_sockets(stored, &places.podman_sockets, ContainerRuntime::Podman);
            list.add(ContainerRuntime::Podman, podman);
        }
        list.add(ContainerRuntime::Containerd, containerd::containers(root));
        list.keep_true_processes(places.has_same_numbers);
        list.add_groups();
        list
    }

    fn has(&self, runtime: ContainerRuntime) -> bool {
        self.containers.iter().any(|one| one.runtime == runtime)
    }

    /// Adds the containers of a runtime, or why there are none. A container that is known already is completed: Docker's are
    /// containerd's too.
    fn add(&mut self, runtime: ContainerRuntime, found: Result<Vec<Container>, String>) {
        let found = found.unwrap_or_else(|why| {
            self.unread.insert(runtime, why);
            Vec::new()
        });
        for one in found {
            match self.containers.iter_mut().find(|other| other.id == one.id) {
                None => self.containers.push(one),
                Some(known) => {
                    known.pid = known.pid.or(one.pid);
                    known.is_running |= one.is_running;
                    if known.names.is_empty() {
                        known.names = one.names;
                    }
                }
            }
        }
    }

    /// Marks containers as not running whose recorded process is not theirs: a killed runtime leaves old records, and within a
    /// container process IDs differ.
    fn keep_true_processes(&mut self, has_same_numbers: bool) {
        for one in &mut self.containers {
            let Some(pid) = one.pid else { continue };
            let paths = paths_of(&self.root, pid);
            let groups = paths
                .iter()
                .filter_map(|path| group_names::container_of(path));
            let is_of_it = groups.map(|(_, id, _)| id == one.id).max();
            let is_there = self.root.exists(&format!("proc/{pid}"));
            if !is_there || !is_of_it.unwrap_or(has_same_numbers) {
                (one.pid, one.is_running) = (None, false);
            }
        }
    }

    /// Adds containers that are known only by their control group.
    fn add_groups(&mut self) {
        let directories = self.groups.find(&self.root, &mut |name| {
            group_names::container_of(name).is_some()
        });
        for directory in directories {
            let Some((runtime, id, top)) = group_names::container_of(&directory) else {
                continue;
            };
            let first = processes_below(&self.root, top).into_iter().next();
            self.add(runtime, Ok(vec![Container::new(id, runtime, first)]));
        }
    }

    /// All containers.
    #[must_use]
    pub fn containers(&self) -> &[Container] {
        &self.containers
    }

    /// The container that a word names: by its name, its ID, or the beginning of its ID. If several match, a running one is
    /// preferred, then one that is no sandbox.
    ///
    /// # Errors
    /// When there is none, there are several, or it does not run.
    pub fn find(&self, word: &str) -> Result<&Container> {
        let word = word.trim_start_matches('/');
        let exact = |one: &&Container| one.id == word || one.names.iter().any(|name| name == word);
        let begins = |one: &&Container| !word.is_empty() && one.id.starts_with(word);
        let mut found: Vec<&Container> = self.containers.iter().filter(exact).collect();
        if found.is_empty() {
            found = self.containers.iter().filter(begins).collect();
        }
        let narrower: [fn(&Container) -> bool; 2] = [|one| one.is_running, |one| !one.is_sandbox];
        for is_meant in narrower {
            if found.len() > 1 && found.iter().any(|one| is_meant(one)) {
                found.retain(|one| is_meant(one));
            }
        }
        match found[..] {
            [] => Err(self.not_found(word)),
            [one] if !one.is_running => Err(Error::input(format!(
                "container {} is not running",
                described(one)
            ))
            .hint("start it, then trace it")),
            [one] => Ok(one),
            _ => Err(
                Error::input(format!("several containers match `{word}`")).hint(format!(
                    "{}; specify more of the ID",
                    described_all(found.into_iter())
                )),
            ),
        }
    }

    fn not_found(&self, word: &str) -> Error {
        if !self.containers.is_empty() {
            let mut there: Vec<&Container> = self.containers.iter().collect();
            there.sort_by_key(|one| !one.is_running);
            let hint = format!("known containers: {}", described_all(there.into_iter()));
            return Error::input(format!("unknown container {word}")).hint(hint);
        }
        let whys: Vec<String> = self
            .unread
            .iter()
            .map(|(runtime, why)| format!("{runtime}: {why}"))
            .collect();
        Error::input(format!(
            "unknown container {word}: no container runtime on this machine lists any containers"
        ))
        .hint(format!(
            "{}; use `--pid PID` for a process of the container, or `--cgroup PATH` for its control group",
            whys.join("; ")
        ))
    }

    /// The directories of a container's control groups, relative to the root: one of each hierarchy in which it has one.
    #[must_use]
    pub fn group_directories(&self, container: &Container) -> Vec<String> {
        let paths = container.pid.map(|pid| paths_of(&self.root, pid));
        let tops = paths.iter().flatten().filter_map(|path| {
            let (_, id, top) = group_names::container_of(path)?;
            (id == container.id).then_some(top)
        });
        let mut found: Vec<String> = tops
            .flat_map(|top| self.groups.directories(&self.root, top))
            .collect();
        if found.is_empty() {
            let is_of_it = |name: &str| {
                group_names::container_of(name).is_some_and(|(_, id, _)| id == container.id)
            };
            found = self.groups.find(&self.root, &mut { is_of_it });
        }
        found.sort();
        found.dedup();
        found
    }

    /// The name of the container of a process: by its control group, or if that does not show it, by its PID namespace, if that is
    /// not this process's.
    #[must_use]
    pub fn name_of_process(&self, pid: u32) -> Option<String> {
        for path in paths_of(&self.root, pid) {
            if let Some((runtime, id, _)) = group_names::container_of(&path) {
                let known = self.containers.iter().find(|one| one.id == id);
                let unknown = || Container::new(id, runtime, Some(pid));
                let name = known.map_or_else(unknown, Clone::clone);
                return Some(name.short_name().to_owned());
            }
        }
        let namespace = |pid: &str| self.root.link(&format!("proc/{pid}/ns/pid")).ok();
        let of_process = namespace(&pid.to_string())?;
        if Some(&of_process) == namespace("self").as_ref() {
            return None;
        }
        let is_same = |one: &&Container| {
            one.pid
                .is_some_and(|first| namespace(&first.to_string()).as_ref() == Some(&of_process))
        };
        let found = self
            .containers
            .iter()
            .filter(|one| !one.is_sandbox)
            .find(is_same)?;
        Some(found.short_name().to_owned())
    }
}

/// Whether a process of this machine may be in a container: its control group has a container's name, or its PID namespace is not
/// this process's.
#[must_use]
pub fn may_be_contained(pid: u32) -> bool {
    let root = Root::system();
    let namespace = |pid: &str| root.link(&format!("proc/{pid}/ns/pid")).ok();
    let paths = paths_of(&root, pid);
    paths
        .iter()
        .any(|path| group_names::container_of(path).is_some())
        || namespace(&pid.to_string()).is_some_and(|of_it| Some(of_it) != namespace("self"))
}

/// What was found, or else what the first socket that answers lists.
fn or_sockets(
    found: Result<Vec<Container>, String>,
    sockets: &[PathBuf],
    runtime: ContainerRuntime,
) -> Result<Vec<Container>, String> {
    let mut why = match found {
        Ok(found) => return Ok(found),
        Err(why) => why,
    };
    for socket in sockets.iter().filter(|socket| socket.exists()) {
        match docker::of_socket(socket, runtime) {
            Ok(found) => return Ok(found),
            Err(error) => why = format!("{why}; {error}"),
        }
    }
    Err(why)
}

/// A container in words, such as `web (docker 0123456789ab)`.
fn described(one: &Container) -> String {
    let (name, id) = (one.short_name(), one.short_id());
    match name == id {
        true => format!("{id} ({})", one.runtime),
        false => format!("{name} ({} {id})", one.runtime),
    }
}

fn described_all<'c>(all: impl Iterator<Item = &'c Container>) -> String {
    let mut all: Vec<String> = all.map(described).collect();
    let more = all.len().saturating_sub(LISTED);
    all.truncate(LISTED);
    if more > 0 {
        all.push(format!("{more} more"));
    }
    all.join(", ")
}
