//! Parses `/proc/stat`: CPU time by processor and kind, interrupts, softirqs, context switches.

/// The kernel reports CPU time in hundredths of a second, whatever its own tick is.
const TICKS_PER_S: f64 = 100.0;

/// Ticks in seconds.
pub(crate) fn seconds(ticks: u64) -> f64 {
    ticks as f64 / TICKS_PER_S
}

/// CPU time in ticks, in the kernel's order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CpuTimes {
    /// user, nice, system, idle, iowait, irq, softirq, steal; guest time is inside user.
    pub(crate) ticks: [u64; 8],
}

/// Names of [`CpuTimes::ticks`].
pub(crate) const KINDS: [&str; 8] = [
    "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal",
];

impl CpuTimes {
    /// All but idle and waiting for a disk.
    pub(crate) fn busy(&self) -> u64 {
        self.ticks
            .iter()
            .zip(KINDS)
            .filter(|(_, kind)| !matches!(*kind, "idle" | "iowait"))
            .map(|(t, _)| t)
            .sum()
    }

    /// The times in seconds.
    pub(crate) fn seconds(&self) -> [f64; KINDS.len()] {
        self.ticks.map(seconds)
    }

    /// All time that passed, busy or not.
    pub(crate) fn total(&self) -> u64 {
        self.ticks.iter().sum()
    }
}

/// Names of the softirq columns.
pub(crate) const SOFTIRQS: [&str; 10] = [
    "hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer", "rcu",
];

/// The file's content; what it lacks is `None` or missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stat {
    /// All processors together.
    pub(crate) all: Option<CpuTimes>,
    /// Each processor by number.
    pub(crate) each: Vec<(u32, CpuTimes)>,
    /// Interrupts since boot.
    pub(crate) interrupts: Option<u64>,
    /// Softirqs by [`SOFTIRQS`].
    pub(crate) softirqs: Vec<u64>,
    /// Context switches since boot.
    pub(crate) context_switches: Option<u64>,
    /// Processes and threads created since boot.
    pub(crate) forks: Option<u64>,
    /// Tasks that are runnable now.
    pub(crate) running: Option<u64>,
    /// Tasks that wait for a disk now.
    pub(crate) blocked: Option<u64>,
}

/// Reads the whole file.
pub(crate) fn parse(text: &str) -> Stat {
    let mut stat = Stat::default();
    for line in text.lines() {
        if let Some((name, rest)) = line.split_once(' ') {
            set(&mut stat, name, rest);
        }
    }
    stat
}

fn set(stat: &mut Stat, name: &str, rest: &str) {
    match name {
        "cpu" => stat.all = times(rest),
        "intr" => stat.interrupts = first(rest),
        "softirq" => {
            stat.softirqs = rest
                .split_ascii_whitespace()
                .skip(1)
                .map_while(|n| n.parse().ok())
                .collect()
        }
        "ctxt" => stat.context_switches = first(rest),
        "processes" => stat.forks = first(rest),
        "procs_running" => stat.running = first(rest),
        "procs_blocked" => stat.blocked = first(rest),
        _ => stat.each.extend(
            name.strip_prefix("cpu")
                .and_then(|n| Some((n.parse().ok()?, times(rest)?))),
        ),
    }
}

/// The CPU times of a line; `None` if it is incomplete, as some of its columns would make a wrong total.
fn times(rest: &str) -> Option<CpuTimes> {
    const MOST: u64 = 1 << 56;
    let mut words = rest.split_ascii_whitespace();
    let mut ticks = [0; 8];
    for tick in &mut ticks {
        *tick = words.next()?.parse().ok().filter(|&n| n < MOST)?;
    }
    Some(CpuTimes { ticks })
}

fn first(rest: &str) -> Option<u64> {
    rest.split_ascii_whitespace().next()?.parse().ok()
}
