//! Memory of all processes of a process group at once, sampled while they run.

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

fn members(group: i32) -> Vec<String> {
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().into_string().ok());
    numbers.filter(|name| name.starts_with(|c: char| c.is_ascii_digit()) && belongs(name, group)).collect()
}

/// The group is the third word after the name in brackets.
fn belongs(pid: &str, group: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    after.split_ascii_whitespace().nth(2).and_then(|word| word.parse::<i32>().ok()) == Some(group)
}

fn field(pid: &str, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}
