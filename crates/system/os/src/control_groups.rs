//! Control groups of this machine, of both versions: where they are mounted, which groups a process is in, and which processes a group
//! has. They are only read, never changed.

use crate::mounts::{self, Mount};
use crate::root_directory::Root;
use std::collections::BTreeSet;

/// Most groups that one walk visits.
const MOST_GROUPS: usize = 1 << 16;
/// Most levels that a walk descends below its start.
const DEEPEST: usize = 32;
/// Most processes that are listed for a group.
const MOST_PROCESSES: usize = 1 << 16;

/// The mounted hierarchies. First come those that contain every process: version 2, then systemd's own hierarchy of version 1.
#[derive(Clone, Debug, Default)]
pub struct ControlGroups {
    mounts: Vec<Mount>,
}

impl ControlGroups {
    /// Finds the hierarchies that are mounted in the tree below `root`.
    ///
    /// # Errors
    /// Why the list of mounts cannot be read.
    pub fn mounted(root: &Root) -> Result<Self, String> {
        let mut mounts = mounts::parse(&root.text("proc/self/mountinfo")?);
        mounts.retain(|mount| mount.kind == "cgroup2" || mount.kind == "cgroup");
        let has = |mount: &Mount, name: &str| mount.super_options.split(',').any(|o| o == name);
        mounts.sort_by_key(|mount| {
            (
                mount.kind != "cgroup2",
                !has(mount, "name=systemd"),
                !has(mount, "pids"),
            )
        });
        Ok(Self { mounts })
    }

    /// Whether no hierarchy is mounted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mounts.is_empty()
    }

    /// The directories, relative to the root, of a group's path in `/proc/PID/cgroup`, in each hierarchy where it exists.
    #[must_use]
    pub fn directories(&self, root: &Root, path: &str) -> Vec<String> {
        let of_mount = |mount: &Mount| {
            let inside = path
                .strip_prefix(mount.root.trim_end_matches('/'))
                .unwrap_or(path);
            let point = mount.point.trim_matches('/');
            format!("{point}/{}", inside.trim_matches('/'))
        };
        let is_group = |directory: &String| root.exists(&format!("{directory}/cgroup.procs"));
        self.mounts.iter().map(of_mount).filter(is_group).collect()
    }

    /// The directories, relative to the root, of the groups for whose name `wanted` returns true, in the first hierarchy that has any.
    pub fn find(&self, root: &Root, wanted: &mut dyn FnMut(&str) -> bool) -> Vec<String> {
        for mount in &self.mounts {
            let mut found = Vec::new();
            walk(root, mount.point.trim_matches('/'), &mut |directory| {
                let name = directory.rsplit('/').next().unwrap_or(directory);
                if wanted(name) {
                    found.push(directory.to_owned());
                }
            });
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }
}

/// The paths of the groups that a process is in, one for each hierarchy; empty if the process does not exist.
#[must_use]
pub fn paths_of(root: &Root, pid: u32) -> Vec<String> {
    let text = root.text(&format!("proc/{pid}/cgroup")).unwrap_or_default();
    let path = |line: &str| Some(line.splitn(3, ':').nth(2)?.to_owned());
    text.lines().filter_map(path).collect()
}

/// The IDs of the processes in a group and in all groups below it, at most 65536.
#[must_use]
pub fn processes_below(root: &Root, directory: &str) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    walk(root, directory, &mut |directory| {
        let list = root
            .text(&format!("{directory}/cgroup.procs"))
            .unwrap_or_default();
        // 0 stands for a process in a PID namespace that is not visible from here.
        let numbers = list
            .lines()
            .filter_map(|line| line.trim().parse::<u32>().ok());
        let room = MOST_PROCESSES.saturating_sub(found.len());
        found.extend(numbers.filter(|number| *number != 0).take(room));
    });
    found
}

/// Calls `give` with the directory `top` and those of all groups below it, within the limits.
fn walk(root: &Root, top: &str, give: &mut dyn FnMut(&str)) {
    let mut left = vec![(top.to_owned(), 0)];
    let mut seen = 0;
    while let Some((directory, depth)) = left.pop() {
        seen += 1;
        if seen > MOST_GROUPS {
            return;
        }
        give(&directory);
        if depth == DEEPEST {
            continue;
        }
        let below = root.directories(&directory).unwrap_or_default();
        let below = below.into_iter().rev();
        left.extend(below.map(|name| (format!("{directory}/{name}"), depth + 1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn group(at: &Path, path: &str, processes: &str) {
        let directory = at.join(path);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("cgroup.procs"), processes).unwrap();
    }

    fn tree(mounts: &str) -> tempfile::TempDir {
        let at = tempfile::tempdir().unwrap();
        fs::create_dir_all(at.path().join("proc/self")).unwrap();
        fs::write(at.path().join("proc/self/mountinfo"), mounts).unwrap();
        at
    }

    #[test]
    fn groups_of_version_2_are_found_with_all_below() {
        let at = tree("30 21 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        let nginx = "sys/fs/cgroup/system.slice/nginx.service";
        group(at.path(), "sys/fs/cgroup/system.slice", "");
        group(at.path(), nginx, "12\n11\n0\n");
        group(at.path(), &format!("{nginx}/workers"), "13\n");
        let root = Root::at(at.path());
        let groups = ControlGroups::mounted(&root).unwrap();
        let found = groups.find(&root, &mut |name| name == "nginx.service");
        assert_eq!(found, [nginx]);
        assert_eq!(Vec::from_iter(processes_below(&root, nginx)), [11, 12, 13]);
        assert_eq!(
            groups.directories(&root, "/system.slice/nginx.service"),
            [nginx]
        );
        assert!(groups.directories(&root, "/nothing").is_empty());
    }

    #[test]
    fn groups_of_version_1_are_found_in_the_hierarchy_of_systemd_first() {
        let at = tree(
            "31 21 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
             32 21 0:28 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n",
        );
        for hierarchy in ["memory", "systemd"] {
            let path = format!("sys/fs/cgroup/{hierarchy}/user.slice/a.service");
            group(at.path(), &path, "5\n");
        }
        let root = Root::at(at.path());
        let groups = ControlGroups::mounted(&root).unwrap();
        let found = groups.find(&root, &mut |name| name == "a.service");
        assert_eq!(found, ["sys/fs/cgroup/systemd/user.slice/a.service"]);
    }

    #[test]
    fn a_process_is_in_one_group_of_each_hierarchy() {
        let at = tree("");
        fs::create_dir_all(at.path().join("proc/7")).unwrap();
        let text = "4:memory:/docker/x\n0::/user.slice/a:b\n";
        fs::write(at.path().join("proc/7/cgroup"), text).unwrap();
        let root = Root::at(at.path());
        assert_eq!(paths_of(&root, 7), ["/docker/x", "/user.slice/a:b"]);
        assert!(paths_of(&root, 8).is_empty());
        assert!(ControlGroups::mounted(&root).unwrap().is_empty());
    }
}
