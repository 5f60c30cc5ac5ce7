//! Which control groups bound the CPU time of this process: its own and those above it. It changes none of them.

use super::parse::cgroup::{self, Throttling};
use super::parse::mounts::{self, Mount};
use super::root::Root;

/// The directories, relative to the root, from this process's own group to the topmost one that is visible.
pub(super) struct Groups {
    version: u8,
    directories: Vec<String>,
}

impl Groups {
    /// Looks for the `cpu` controller, version 1 first: where it is mounted, version 2 does not have it.
    pub(super) fn find(root: &Root) -> Result<Self, String> {
        let paths = cgroup::paths(&root.text("proc/self/cgroup")?);
        let mounts = mounts::parse(&root.text("proc/self/mountinfo")?);
        let first = |mount: &&Mount| mount.kind == "cgroup" && mount.super_options.split(',').any(|o| o == "cpu");
        let one = paths.cpu.zip(mounts.iter().find(first)).map(|found| (1, found));
        let two = || paths.unified.zip(mounts.iter().find(|mount| mount.kind == "cgroup2")).map(|found| (2, found));
        let (version, (path, mount)) = one.or_else(two).ok_or("no control group with CPU time is mounted")?;
        Ok(Self { version, directories: chain(root, mount, &path) })
    }

    /// Version 1 or 2.
    pub(super) fn version(&self) -> u8 {
        self.version
    }

    /// The tightest quota, in processors; `None` when there is no limit.
    pub(super) fn quota(&self, root: &Root) -> Option<f64> {
        self.directories.iter().filter_map(|directory| self.quota_of(root, directory)).reduce(f64::min)
    }

    fn quota_of(&self, root: &Root, directory: &str) -> Option<f64> {
        if self.version == 2 {
            return cgroup::quota(&root.line(&format!("{directory}/cpu.max")).ok()?);
        }
        let quota = root.line(&format!("{directory}/cpu.cfs_quota_us")).ok()?;
        cgroup::share(&quota, &root.line(&format!("{directory}/cpu.cfs_period_us")).ok()?)
    }

    /// The throttling of the group that was held back longest.
    pub(super) fn throttling(&self, root: &Root) -> Result<Throttling, String> {
        let of = |directory: &String| cgroup::throttling(&root.text(&format!("{directory}/cpu.stat")).ok()?);
        let worst = self.directories.iter().filter_map(of).max_by_key(|throttling| throttling.throttled_ns);
        worst.ok_or_else(|| "no control group above this process counts throttling".to_owned())
    }
}

/// The group's directory and its parents down to the mount point, as far as they exist.
fn chain(root: &Root, mount: &Mount, path: &str) -> Vec<String> {
    let point = mount.point.trim_start_matches('/').to_owned();
    let inside = path.strip_prefix(mount.root.trim_end_matches('/')).unwrap_or(path);
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
