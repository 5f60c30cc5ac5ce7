//! Processes of this machine and which of them descend from which (proc(5)).

use std::collections::BTreeSet;
use std::fs;

/// The IDs of all present processes.
pub(crate) fn processes() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// These processes and all their present descendants. Later ones are followed through the kernel's trace events.
pub(crate) fn with_descendants(pids: &[u32]) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = processes()
        .filter_map(|pid| Some((pid, parent_of(pid)?)))
        .collect();
    descend(pids, &parents)
}

/// The given processes in their order, then those below them; `parents`: each process with its parent.
fn descend(pids: &[u32], parents: &[(u32, u32)]) -> Vec<u32> {
    let (mut found, mut known) = (
        pids.to_vec(),
        pids.iter().copied().collect::<BTreeSet<u32>>(),
    );
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        let children = parents.iter().filter(|(_, of)| *of == parent);
        for (child, _) in children {
            if known.insert(*child) {
                found.push(*child);
            }
        }
        at += 1;
    }
    found
}

/// The parent of a process (proc_pid_stat(5): after the name, which may contain brackets, come the state and the parent).
fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_below_are_found_once() {
        let parents = [(2, 1), (3, 1), (4, 3), (9, 8), (1, 4)];
        assert_eq!(descend(&[1], &parents), [1, 2, 3, 4]);
        assert_eq!(descend(&[3, 2], &parents), [3, 2, 4, 1]);
        assert_eq!(descend(&[7], &parents), [7]);
    }

    #[test]
    fn a_child_of_this_process_is_below_it() {
        let mut child = std::process::Command::new("sleep")
            .arg("30")
            .spawn()
            .unwrap();
        let found = with_descendants(&[std::process::id()]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.contains(&child.id()), "{found:?}");
    }
}
