//! Parses `/proc/self/mountinfo` (proc_pid_mountinfo(5)).

/// One mount.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mount {
    /// `major:minor` of the device.
    pub device: String,
    /// The directory of the file system that is mounted there.
    pub root: String,
    /// The mount point.
    pub point: String,
    /// Options of the mount.
    pub options: String,
    /// Type of the file system: `ext4`, `cgroup2` and so on.
    pub kind: String,
    /// Options of the file system; for cgroup 1 the controllers.
    pub super_options: String,
}

/// The mounts in the text; incomplete lines are skipped.
#[must_use]
pub fn parse(text: &str) -> Vec<Mount> {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<Mount> {
    let (first, second) = line.split_once(" - ")?;
    let first: Vec<&str> = first.split(' ').collect();
    let mut second = second.split(' ');
    Some(Mount {
        device: (*first.get(2)?).to_owned(),
        root: unescape(first.get(3)?),
        point: unescape(first.get(4)?),
        options: (*first.get(5)?).to_owned(),
        kind: second.next()?.to_owned(),
        super_options: second.nth(1)?.to_owned(),
    })
}

/// Decodes the escapes of blanks (`\040`), tabs and backslashes in names.
fn unescape(name: &str) -> String {
    name.replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\134", "\\")
}

/// The mount that a directory is on: the one with the longest mount point that contains it, and the later of two at the same point.
#[must_use]
pub fn find_mount<'a>(mounts: &'a [Mount], directory: &str) -> Option<&'a Mount> {
    mounts
        .iter()
        .filter(|mount| below(directory, &mount.point))
        .max_by_key(|mount| mount.point.len())
}

/// Whether a directory is the mount point or inside it.
fn below(directory: &str, point: &str) -> bool {
    point == "/"
        || directory
            .strip_prefix(point)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_mount_point_holds_a_directory() {
        let text = "21 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n\
            22 21 0:25 / /home/a\\040b rw shared:1 - tmpfs tmpfs rw,size=1k\n23 21 0:26 / /home/a\n";
        let all = parse(text);
        assert_eq!(find_mount(&all, "/home/a b/c").unwrap().kind, "tmpfs");
        assert_eq!(find_mount(&all, "/home/a bc").unwrap().kind, "ext4");
    }
}
