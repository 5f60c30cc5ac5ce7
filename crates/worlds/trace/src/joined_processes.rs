//! Processes that run already and are joined to a trace: by process ID with their descendants, by container, by systemd unit, or by
//! control group. Processes that enter the container or group later are joined too.

use crate::proc_descendants::{processes, with_descendants};
use stackline_core::error::{Error, Result};
use stackline_monitor::containers::list::{ContainerList, ContainerPlaces};
use stackline_os::control_groups::{ControlGroups, processes_below};
use stackline_os::root_directory::Root;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A group without processes counts as gone only after this: a unit may be restarted meanwhile.
const EMPTY: Duration = Duration::from_secs(10);
/// How many units a message lists.
const LISTED: usize = 20;
/// The kinds of systemd units that have processes, by the suffixes of their names.
const KINDS: [&str; 2] = [".service", ".scope"];

/// What is to be joined, as named on the command line.
#[derive(Clone, Debug, Default)]
pub struct JoinedNames {
    /// Process IDs.
    pub pids: Vec<u32>,
    /// Containers by name, ID, or the beginning of an ID.
    pub containers: Vec<String>,
    /// Units of systemd.
    pub units: Vec<String>,
    /// Control groups, as directories or as in `/proc/PID/cgroup`.
    pub groups: Vec<PathBuf>,
}

impl JoinedNames {
    /// Whether nothing is named.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.pids.is_empty()
            && self.containers.is_empty()
            && self.units.is_empty()
            && self.groups.is_empty()
    }
}

/// The joined processes.
#[derive(Clone, Debug, Default)]
pub struct JoinedProcesses {
    /// The processes that were named, and their descendants.
    named: Vec<u32>,
    /// Control groups, by their directories below the root.
    groups: Vec<String>,
    /// PID namespaces of containers that have no control group of their own.
    namespaces: Vec<PathBuf>,
    /// Whether a unit or group is joined, which may be started again.
    is_restarted: bool,
    /// The process IDs at the last look.
    known: BTreeSet<u32>,
    /// Since when no process has been there.
    empty_since: Option<Instant>,
}

impl JoinedProcesses {
    /// Finds the named processes, containers, units and groups on this machine.
    ///
    /// # Errors
    /// When something is not there, or its name means several.
    pub fn find(names: &JoinedNames) -> Result<Self> {
        let mut joined = Self::default();
        if let Some(gone) = names.pids.iter().find(|pid| !is_running(**pid)) {
            return Err(Error::input(format!("no process {gone} is running here"))
                .hint("`pgrep -n NAME` prints a program's process ID"));
        }
        joined.named.extend(&names.pids);
        if !names.containers.is_empty() {
            let list = ContainerList::read(ContainerPlaces::of_this_machine());
            for word in &names.containers {
                joined.add_container(&list, word)?;
            }
        }
        let root = Root::system();
        let mounted = |what: &str| {
            ControlGroups::mounted(&root)
                .ok()
                .filter(|groups| !groups.is_empty())
                .ok_or_else(|| {
                    Error::environment(format!(
                        "no control groups are mounted here, so {what} cannot be found"
                    ))
                    .hint("use `--pid PID` for a process and its children")
                })
        };
        for unit in &names.units {
            joined.groups.push(find_unit(&root, &mounted(unit)?, unit)?);
            joined.is_restarted = true;
        }
        for path in &names.groups {
            let group = find_group(&root, &mounted(&path.to_string_lossy())?, path)?;
            joined.groups.push(group);
            joined.is_restarted = true;
        }
        joined.named = with_descendants(&joined.named);
        joined.refresh();
        Ok(joined)
    }

    /// Joins a container by its control groups, or else by its PID namespace.
    fn add_container(&mut self, list: &ContainerList, word: &str) -> Result<()> {
        let container = list.find(word)?;
        let directories = list.group_directories(container);
        let has_group = !directories.is_empty();
        self.groups.extend(directories);
        let Some(pid) = container.pid else {
            return match has_group {
                true => Ok(()),
                false => Err(Error::environment(format!(
                    "cannot find the processes of container {word}"
                ))
                .hint("use `--pid PID` for one of them")),
            };
        };
        self.named.push(pid);
        if !has_group {
            let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
            let own = namespace("self");
            let of_it = namespace(&pid.to_string()).filter(|of_it| Some(of_it) != own.as_ref());
            self.namespaces.extend(of_it);
        }
        Ok(())
    }

    /// The process IDs at the last look.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        self.known.iter().copied().collect()
    }

    /// How often new processes are looked for: reading a control group is cheap, reading all processes of the machine is not.
    pub(crate) const fn interval(&self) -> Duration {
        match self.namespaces.is_empty() {
            true => Duration::from_millis(20),
            false => Duration::from_millis(100),
        }
    }

    /// Looks for processes again; returns the new ones.
    pub(crate) fn refresh(&mut self) -> Vec<u32> {
        let root = Root::system();
        let mut now: BTreeSet<u32> = self
            .named
            .iter()
            .copied()
            .filter(|pid| is_running(*pid))
            .collect();
        for group in &self.groups {
            now.extend(processes_below(&root, group));
        }
        if !self.namespaces.is_empty() {
            now.extend(processes().filter(|pid| {
                fs::read_link(format!("/proc/{pid}/ns/pid"))
                    .is_ok_and(|namespace| self.namespaces.contains(&namespace))
            }));
        }
        // The observer itself is not traced.
        now.remove(&std::process::id());
        self.empty_since = match now.is_empty() {
            true => self.empty_since.or_else(|| Some(Instant::now())),
            false => None,
        };
        let new: Vec<u32> = now.difference(&self.known).copied().collect();
        self.known = now;
        new
    }

    /// Whether no process is left and none is likely to come.
    pub(crate) fn are_gone(&self) -> bool {
        let patience = if self.is_restarted {
            EMPTY
        } else {
            Duration::ZERO
        };
        self.empty_since
            .is_some_and(|since| since.elapsed() >= patience)
    }
}

/// Whether a process with that ID exists.
#[must_use]
pub fn is_running(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// The control group of a systemd unit.
fn find_unit(root: &Root, groups: &ControlGroups, unit: &str) -> Result<String> {
    let is_whole = unit.contains('.');
    let name = match is_whole {
        true => unit.to_owned(),
        false => format!("{unit}.service"),
    };
    let mut all = BTreeSet::new();
    let found = groups.find(root, &mut |group| {
        if KINDS.iter().any(|kind| group.ends_with(kind)) {
            all.insert(group.to_owned());
        }
        group == name
    });
    match &found[..] {
        [] => Err(unit_not_found(&name, all)),
        [one] if processes_below(root, one).is_empty() => {
            Err(Error::input(format!("the unit {name} has no processes"))
                .hint(format!("start it with `systemctl start {name}`")))
        }
        [one] => Ok(one.clone()),
        _ => Err(Error::input(format!("several units are named {name}"))
            .hint(format!("select one with --cgroup: /{}", found.join(", /")))),
    }
}

fn unit_not_found(name: &str, there: BTreeSet<String>) -> Error {
    let error = Error::input(format!("no unit {name} is running"));
    if there.is_empty() {
        return error.hint("no systemd unit has a control group here; specify the process with `--pid PID` or `--cgroup PATH`");
    }
    let stem = name.split(['.', '@']).next().unwrap_or(name);
    let (mut near, far): (Vec<String>, Vec<String>) =
        there.into_iter().partition(|unit| unit.contains(stem));
    near.extend(far);
    let more = near.len().saturating_sub(LISTED);
    near.truncate(LISTED);
    let more = match more {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    error.hint(format!("running units: {}{more}", near.join(", ")))
}

/// The control group of a path.
fn find_group(root: &Root, groups: &ControlGroups, path: &Path) -> Result<String> {
    let text = path.to_string_lossy();
    let direct = text.trim_matches('/').to_owned();
    let found = match root.exists(&format!("{direct}/cgroup.procs")) {
        true => Some(direct),
        false => groups.directories(root, &text).into_iter().next(),
    };
    let group = found.ok_or_else(|| {
        Error::input(format!("unknown control group {text}")).hint(
            "give a directory under /sys/fs/cgroup, or a path from /proc/PID/cgroup; `systemd-cgls` lists them",
        )
    })?;
    if processes_below(root, &group).is_empty() {
        return Err(
            Error::input(format!("the control group {text} has no processes"))
                .hint("start its programs first"),
        );
    }
    Ok(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_found_by_its_name_and_others_are_named() {
        let at = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = at.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put(
            "proc/self/mountinfo",
            "30 21 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        );
        for (group, processes) in [
            ("system.slice/nginx.service", "11\n"),
            ("system.slice/idle.service", ""),
            ("system.slice/twice.service", "12\n"),
            (
                "user.slice/user-1000.slice/user@1000.service/twice.service",
                "13\n",
            ),
        ] {
            let file = format!("sys/fs/cgroup/{group}/cgroup.procs");
            put(&file, processes);
        }
        let root = Root::at(at.path());
        let groups = ControlGroups::mounted(&root).unwrap();
        let unit = |name: &str| find_unit(&root, &groups, name);
        let nginx = "sys/fs/cgroup/system.slice/nginx.service";
        assert_eq!(unit("nginx.service").unwrap(), nginx);
        assert_eq!(unit("nginx").unwrap(), nginx);
        for (name, says, advises) in [
            ("idle", "has no process", "systemctl start"),
            ("twice", "several units", "/user.slice/"),
            ("ngin.service", "no unit ngin.service", "nginx.service"),
        ] {
            let error = unit(name).unwrap_err();
            let hint = error.hint.clone().unwrap();
            assert!(error.message.contains(says), "{error:?}");
            assert!(hint.contains(advises), "{error:?}");
        }
        let group = |path: &str| find_group(&root, &groups, Path::new(path));
        for path in [
            "/system.slice/nginx.service",
            "/sys/fs/cgroup/system.slice/nginx.service/",
        ] {
            assert_eq!(group(path).unwrap(), nginx);
        }
        assert!(
            group("/nothing")
                .unwrap_err()
                .message
                .contains("unknown control group")
        );
        assert!(
            group("/system.slice/idle.service")
                .unwrap_err()
                .message
                .contains("no process")
        );
    }

    #[test]
    fn what_runs_is_joined_until_it_ends() {
        let mut child = std::process::Command::new("sleep")
            .arg("30")
            .spawn()
            .unwrap();
        let names = JoinedNames {
            pids: vec![child.id()],
            ..JoinedNames::default()
        };
        let mut joined = JoinedProcesses::find(&names).unwrap();
        assert_eq!(joined.pids(), [child.id()]);
        assert!(joined.refresh().is_empty() && !joined.are_gone());
        child.kill().unwrap();
        child.wait().unwrap();
        joined.refresh();
        assert!(joined.are_gone());
        assert!(
            JoinedProcesses::find(&names)
                .unwrap_err()
                .message
                .contains("no process")
        );
    }
}
