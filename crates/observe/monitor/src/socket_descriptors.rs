//! Lists the sockets among a process's descriptors (proc(5)). It opens none of them.

use std::collections::BTreeSet;
use std::fs::{DirEntry, read_dir, read_link};

/// The inode numbers of a process's sockets; empty if the process does not exist or belongs to another user. `process` is a process
/// ID, or `self`.
#[must_use]
pub fn sockets_of(process: &str) -> BTreeSet<u64> {
    let number = |entry: DirEntry| {
        let target = read_link(entry.path()).ok()?;
        target
            .to_str()?
            .strip_prefix("socket:[")?
            .strip_suffix(']')?
            .parse()
            .ok()
    };
    read_dir(format!("/proc/{process}/fd"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(number)
        .collect()
}
