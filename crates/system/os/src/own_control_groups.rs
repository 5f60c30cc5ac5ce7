//! The control groups that limit the CPU time of this process: its own and those above it. They are only read, never changed.

use crate::cgroup_formats::{self, Throttling};
use crate::mounts::{self, Mount};
use crate::root_directory::Root;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The version (1 or 2) and the directories of the control groups that limit this process's CPU time, from its own to the topmost visible
/// one.
///
/// # Errors
/// Why no group is found.
pub fn processor_groups() -> Result<(u8, Vec<PathBuf>), String> {
    let groups = Groups::find(&Root::system())?;
    Ok((
        groups.version,
        groups
            .directories
            .iter()
            .map(|directory| Path::new("/").join(directory))
            .collect(),
    ))
}

/// The reason given if there are groups but none has throttling counters.
const UNCOUNTED: &str = "no control group containing this process reports throttling";

/// The directories, relative to the root, from this process's own group to the topmost visible one.
#[derive(Debug)]
pub struct Groups {
    version: u8,
    directories: Vec<String>,
}

impl Groups {
    /// Finds the groups with the `cpu` controller, in version 1 first: if it is mounted there, version 2 does not have it.
    pub fn find(root: &Root) -> Result<Self, String> {
        let paths = cgroup_formats::parse_paths(&root.text("proc/self/cgroup")?);
        let mounts = mounts::parse(&root.text("proc/self/mountinfo")?);
        let first = |mount: &&Mount| {
            mount.kind == "cgroup" && mount.super_options.split(',').any(|o| o == "cpu")
        };
        let one = paths
            .cpu
            .zip(mounts.iter().find(first))
            .map(|found| (1, found));
        let two = || {
            paths
                .unified
                .zip(mounts.iter().find(|mount| mount.kind == "cgroup2"))
                .map(|found| (2, found))
        };
        let (version, (path, mount)) = one
            .or_else(two)
            .ok_or("no control group hierarchy with CPU accounting is mounted")?;
        Ok(Self {
            version,
            directories: chain(root, mount, &path),
        })
    }

    /// Version 1 or 2.
    pub fn version(&self) -> u8 {
        self.version
    }

    /// The lowest quota of all groups, in processors; `None` if there is no limit.
    pub fn quota(&self, root: &Root) -> Option<f64> {
        self.directories
            .iter()
            .filter_map(|directory| self.quota_of(root, directory))
            .reduce(f64::min)
    }

    fn quota_of(&self, root: &Root, directory: &str) -> Option<f64> {
        if self.version == 2 {
            return cgroup_formats::parse_quota(&root.line(&format!("{directory}/cpu.max")).ok()?);
        }
        let quota = root.line(&format!("{directory}/cpu.cfs_quota_us")).ok()?;
        cgroup_formats::share(
            &quota,
            &root.line(&format!("{directory}/cpu.cfs_period_us")).ok()?,
        )
    }

    /// The throttling of the group that was throttled longest.
    pub fn throttling(&self, root: &Root) -> Result<Throttling, String> {
        let each = self
            .directories
            .iter()
            .filter_map(|directory| throttling_of(root, directory));
        each.max_by_key(|throttling| throttling.throttled_ns)
            .ok_or_else(|| UNCOUNTED.to_owned())
    }

    /// How long each group was throttled since it was created, ns.
    fn throttled_ns(&self, root: &Root) -> Vec<Option<u64>> {
        let ns = |directory: &String| {
            throttling_of(root, directory).map(|throttling| throttling.throttled_ns)
        };
        self.directories.iter().map(ns).collect()
    }
}

fn throttling_of(root: &Root, directory: &str) -> Option<Throttling> {
    cgroup_formats::throttling(&root.text(&format!("{directory}/cpu.stat")).ok()?)
}

/// How long each control group above this process had been throttled at a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThrottledTime {
    /// Time in ns since each group was created, from this process's own group up; `None` for a group without the counter.
    each: Vec<Option<u64>>,
    /// Why no group was found, if none was.
    unknown: Option<String>,
}

impl ThrottledTime {
    /// Reads the counters of this host. The groups are searched for only once per process, so each call reads a few short files.
    pub fn now() -> Self {
        static GROUPS: OnceLock<Result<Groups, String>> = OnceLock::new();
        let root = Root::system();
        Self::read(GROUPS.get_or_init(|| Groups::find(&root)).as_ref(), &root)
    }

    /// Reads the counters of these groups, or takes the reason why there are none.
    #[must_use]
    pub fn read(groups: Result<&Groups, &String>, root: &Root) -> Self {
        match groups {
            Ok(groups) => Self {
                each: groups.throttled_ns(root),
                unknown: None,
            },
            Err(reason) => Self {
                each: Vec::new(),
                unknown: Some(reason.clone()),
            },
        }
    }

    /// The throttled time between this moment and `later`, in seconds, of the group that was throttled longest.
    pub fn seconds_until(&self, later: &Self) -> Result<f64, String> {
        let both = self
            .each
            .iter()
            .zip(&later.each)
            .filter_map(|(before, after)| before.zip(*after));
        let longest = both
            .map(|(before, after)| after.saturating_sub(before))
            .max();
        let reason = || {
            self.unknown
                .as_ref()
                .or(later.unknown.as_ref())
                .map_or(UNCOUNTED, String::as_str)
                .to_owned()
        };
        longest.map(|ns| ns as f64 / 1e9).ok_or_else(reason)
    }
}

/// The directories of a group and its parents up to the mount point, as far as they exist; `path` is from `/proc/self/cgroup`.
fn chain(root: &Root, mount: &Mount, path: &str) -> Vec<String> {
    let point = mount.point.trim_start_matches('/').to_owned();
    let inside = path
        .strip_prefix(mount.root.trim_end_matches('/'))
        .unwrap_or(path);
    let mut inside = inside.trim_matches('/');
    let mut directories = Vec::new();
    while !inside.is_empty() {
        directories.push(format!("{point}/{inside}"));
        inside = inside.rsplit_once('/').map_or("", |(parent, _)| parent);
    }
    directories.push(point);
    directories.retain(|directory| root.exists(directory));
    directories
}
