//! Memory of a command and all its processes at once, sampled while they run.

use std::collections::BTreeSet;
use std::fs;

/// Peaks over the samples, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Peak {
    /// Sum of what is resident, shared pages counted once a process.
    pub(crate) resident: u64,
    /// Sum of the anonymous part, which belongs to one process alone.
    pub(crate) anonymous: u64,
    /// Most processes at a time.
    pub(crate) processes: usize,
}

impl Peak {
    /// Takes one more sample of a group.
    pub(crate) fn sample(&mut self, group: i32) {
        let members = members(group);
        let sum = |name| members.iter().filter_map(|pid| field(pid, name)).sum();
        self.resident = self.resident.max(sum("VmRSS:"));
        self.anonymous = self.anonymous.max(sum("RssAnon:"));
        self.processes = self.processes.max(members.len());
    }
}

/// The processes of the group, and all their descendants, which may have made groups of their own.
fn members(group: i32) -> Vec<String> {
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all: Vec<Process> = numbers
        .filter_map(|entry| Process::read(entry.file_name().to_str()?))
        .collect();
    let mut members: BTreeSet<i32> = all
        .iter()
        .filter(|process| process.group == group)
        .map(|p| p.pid)
        .collect();
    loop {
        let children = all
            .iter()
            .filter(|process| members.contains(&process.parent))
            .map(|process| process.pid);
        let more: Vec<i32> = children.filter(|pid| !members.contains(pid)).collect();
        if more.is_empty() {
            return members.iter().map(i32::to_string).collect();
        }
        members.extend(more);
    }
}

/// Who belongs to whom.
struct Process {
    pid: i32,
    parent: i32,
    group: i32,
}

impl Process {
    /// Parent and group are the second and third word after the name in brackets.
    fn read(pid: &str) -> Option<Self> {
        let number = pid.parse().ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut words = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(1);
        let (parent, group) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Self {
            pid: number,
            parent,
            group,
        })
    }
}

fn field(pid: &str, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace()
        .next()?
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}
