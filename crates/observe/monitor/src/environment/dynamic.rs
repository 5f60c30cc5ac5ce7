//! The dynamic environment: counters and states of the host at a moment. A sample only reads files and never waits.

use super::facts::{EnvironmentFacts, number};
use crate::parse::{block, interfaces, loadavg, name_values, pressure, softnet, stat};
use serde_json::Value;
use stackline_os::own_control_groups::Groups;
use stackline_os::root_directory::Root;
use std::collections::BTreeMap;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The kind of a value: a counter only grows, and its growth is recorded; a state is recorded as it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum DynamicValueKind {
    Counter,
    State,
}

/// The host's counters and states at a moment.
#[derive(Clone, Debug)]
pub struct DynamicSample {
    /// When it was taken.
    pub(crate) taken: Instant,
    /// When it was taken, by the wall clock.
    pub(crate) wall: SystemTime,
    /// Values by path, such as `memory/free_bytes`.
    pub(crate) values: BTreeMap<String, (DynamicValueKind, f64)>,
    /// By path, why a value is absent.
    pub(crate) absent: BTreeMap<String, String>,
}

impl DynamicSample {
    /// The sample as it is stored in the run directory.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut facts = EnvironmentFacts::default();
        if let Ok(since) = self.wall.duration_since(UNIX_EPOCH) {
            facts.put("at_unix_s", since.as_secs_f64());
        }
        for (path, (_, value)) in &self.values {
            facts.put(path, number(*value));
        }
        for (path, reason) in &self.absent {
            facts.absent(path, reason);
        }
        facts.into_json()
    }

    fn new() -> Self {
        Self {
            taken: Instant::now(),
            wall: SystemTime::now(),
            values: BTreeMap::new(),
            absent: BTreeMap::new(),
        }
    }

    fn counter(&mut self, path: impl Into<String>, value: f64) {
        self.values
            .insert(path.into(), (DynamicValueKind::Counter, value));
    }

    fn state(&mut self, path: impl Into<String>, value: f64) {
        self.values
            .insert(path.into(), (DynamicValueKind::State, value));
    }

    fn mark_absent(&mut self, path: &str, reason: impl Into<String>) {
        self.absent.insert(path.to_owned(), reason.into());
    }

    /// Adds a value that a file contains, or notes that this kernel's file lacks it.
    fn add(&mut self, kind: DynamicValueKind, path: &str, value: Option<f64>, file: &str) {
        match value {
            Some(value) => _ = self.values.insert(path.to_owned(), (kind, value)),
            None => self.mark_absent(path, format!("{file} does not contain it")),
        }
    }
}

/// Takes samples; control groups and thermal zones are searched for once.
pub struct EnvironmentSampler {
    root: Root,
    groups: Result<Groups, String>,
    zones: Result<Vec<String>, String>,
}

impl Default for EnvironmentSampler {
    fn default() -> Self {
        Self::new()
    }
}

impl EnvironmentSampler {
    /// A sampler of this host.
    #[must_use]
    pub fn new() -> Self {
        Self::under_root(Root::system())
    }

    pub(crate) fn under_root(root: Root) -> Self {
        let groups = Groups::find(&root);
        let zones = root.names("sys/class/thermal").and_then(|names| {
            let zones: Vec<String> = names
                .into_iter()
                .filter(|name| name.starts_with("thermal_zone"))
                .collect();
            if zones.is_empty() {
                Err("the host has no thermal zones".to_owned())
            } else {
                Ok(zones)
            }
        });
        Self {
            root,
            groups,
            zones,
        }
    }

    /// Takes a sample.
    #[must_use]
    pub fn sample(&self) -> DynamicSample {
        let mut sample = DynamicSample::new();
        self.load(&mut sample);
        self.processor(&mut sample);
        self.frequency(&mut sample);
        self.memory(&mut sample);
        self.paging(&mut sample);
        self.pressure(&mut sample);
        self.throttling(&mut sample);
        self.thermal(&mut sample);
        self.traffic(&mut sample);
        self.softnet(&mut sample);
        self.protocols(&mut sample);
        self.clock(&mut sample);
        sample
    }

    /// Gives a file's text to `read`, or marks the section absent.
    fn with(
        &self,
        sample: &mut DynamicSample,
        section: &str,
        file: &str,
        read: impl FnOnce(&mut DynamicSample, &str),
    ) {
        match self.root.text(file) {
            Ok(text) => read(sample, &text),
            Err(reason) => sample.mark_absent(section, reason),
        }
    }

    fn load(&self, sample: &mut DynamicSample) {
        self.with(
            sample,
            "load",
            "proc/loadavg",
            |sample, text| match loadavg::parse(text) {
                Some(load) => {
                    for (mean, name) in
                        load.means
                            .into_iter()
                            .zip(["1_minute", "5_minutes", "15_minutes"])
                    {
                        sample.state(format!("load/{name}"), mean);
                    }
                    sample.state("processes/existing", load.tasks as f64);
                }
                None => sample.mark_absent("load", "/proc/loadavg has an unexpected format"),
            },
        );
    }

    fn processor(&self, sample: &mut DynamicSample) {
        self.with(sample, "processor", "proc/stat", |sample, text| {
            processor(sample, &stat::parse(text))
        });
    }

    /// Reads a file that holds one number.
    fn number(&self, file: &str) -> Result<f64, String> {
        self.root
            .line(file)?
            .parse::<i64>()
            .map(|number| number as f64)
            .map_err(|_| format!("/{file} contains no number"))
    }

    fn frequency(&self, sample: &mut DynamicSample) {
        match self.number("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq") {
            Ok(khz) => sample.state("processor/frequency_khz", khz),
            Err(reason) => sample.mark_absent("processor/frequency_khz", reason),
        }
    }

    fn memory(&self, sample: &mut DynamicSample) {
        self.with(sample, "memory", "proc/meminfo", |sample, text| {
            let meminfo = name_values::meminfo(text);
            for (path, name) in MEMORY {
                sample.add(
                    DynamicValueKind::State,
                    path,
                    meminfo.get(name).map(|bytes| *bytes as f64),
                    "/proc/meminfo",
                );
            }
        });
    }

    fn paging(&self, sample: &mut DynamicSample) {
        self.with(sample, "paging", "proc/vmstat", |sample, text| {
            let counters = name_values::counters(text);
            for (path, name) in PAGING {
                sample.add(
                    DynamicValueKind::Counter,
                    path,
                    counters.get(name).map(|n| *n as f64),
                    "/proc/vmstat",
                );
            }
        });
    }

    fn pressure(&self, sample: &mut DynamicSample) {
        for resource in ["cpu", "memory", "io"] {
            let section = format!("pressure/{resource}");
            self.with(
                sample,
                &section,
                &format!("proc/pressure/{resource}"),
                |sample, text| {
                    for kind in ["some", "full"] {
                        if let Some(stall) = pressure::parse(text, kind) {
                            sample
                                .state(format!("{section}/{kind}_percent_10s"), stall.percent_10s);
                            sample.counter(
                                format!("{section}/{kind}_s"),
                                stall.total_us as f64 / 1e6,
                            );
                        }
                    }
                },
            );
        }
    }

    fn throttling(&self, sample: &mut DynamicSample) {
        match self
            .groups
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|groups| groups.throttling(&self.root))
        {
            Ok(throttling) => {
                sample.counter("throttling/periods", throttling.periods as f64);
                sample.counter("throttling/throttled_periods", throttling.throttled as f64);
                sample.counter(
                    "throttling/throttled_s",
                    throttling.throttled_ns as f64 / 1e9,
                );
            }
            Err(reason) => sample.mark_absent("throttling", reason),
        }
        match self.number("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count") {
            Ok(count) => sample.counter("thermal/core_throttles", count),
            Err(reason) => sample.mark_absent("thermal/core_throttles", reason),
        }
    }

    fn thermal(&self, sample: &mut DynamicSample) {
        let zones = match &self.zones {
            Ok(zones) => zones,
            Err(reason) => return sample.mark_absent("thermal/zones", reason.clone()),
        };
        for zone in zones {
            let path = format!("thermal/zones/{zone}_celsius");
            match self.number(&format!("sys/class/thermal/{zone}/temp")) {
                Ok(milli) => sample.state(path, milli / 1000.0),
                Err(reason) => sample.mark_absent(&path, reason),
            }
        }
    }

    fn traffic(&self, sample: &mut DynamicSample) {
        self.with(
            sample,
            "interfaces",
            "proc/thread-self/net/dev",
            |sample, text| {
                for interface in interfaces::parse(text) {
                    for (column, value) in interfaces::COLUMNS.into_iter().zip(interface.counters) {
                        sample.counter(
                            format!("interfaces/{}/{column}", interface.name),
                            value as f64,
                        );
                    }
                }
            },
        );
    }

    fn softnet(&self, sample: &mut DynamicSample) {
        let file = "proc/thread-self/net/softnet_stat";
        self.with(
            sample,
            "backlog",
            file,
            |sample, text| match softnet::parse(text) {
                Some(sums) => {
                    sample.counter("backlog/packets", sums.processed as f64);
                    sample.counter("backlog/drops", sums.dropped as f64);
                    sample.counter("backlog/squeezes", sums.squeezed as f64);
                }
                None => sample.mark_absent("backlog", "softnet_stat has an unexpected format"),
            },
        );
    }

    fn protocols(&self, sample: &mut DynamicSample) {
        for (section, file, table) in [
            ("tcp", "snmp", &SNMP[..]),
            ("tcp_extended", "netstat", &NETSTAT[..]),
        ] {
            self.with(
                sample,
                section,
                &format!("proc/thread-self/net/{file}"),
                |sample, text| {
                    let counters = block::parse(text);
                    for (path, group, name) in table {
                        let value = counters.get(&(*group, *name)).map(|n| *n as f64);
                        sample.add(
                            DynamicValueKind::Counter,
                            path,
                            value,
                            &format!("/proc/net/{file}"),
                        );
                    }
                },
            );
        }
    }

    /// Whether a time daemon reports that the clock is synchronised. (The kernel reports it only by a system call, which a sample
    /// does not make.)
    fn clock(&self, sample: &mut DynamicSample) {
        if self.root.exists("run/systemd/timesync/synchronized") {
            sample.state("clock/synchronised", 1.0);
        } else {
            sample.mark_absent(
                "clock/synchronised",
                "systemd-timesyncd does not report it; other time daemons write no file",
            );
        }
    }
}

fn processor(sample: &mut DynamicSample, stat: &stat::Stat) {
    match &stat.all {
        Some(times) => {
            for (kind, seconds) in stat::KINDS.into_iter().zip(times.seconds()) {
                sample.counter(format!("processor/{kind}_s"), seconds);
            }
        }
        None => sample.mark_absent(
            "processor/user_s",
            "/proc/stat has no complete summary line for processors",
        ),
    }
    for (number, times) in &stat.each {
        sample.counter(
            format!("processor/each/{number}/busy_s"),
            stat::seconds(times.busy()),
        );
        sample.counter(
            format!("processor/each/{number}/total_s"),
            stat::seconds(times.total()),
        );
    }
    for (kind, n) in stat::SOFTIRQS.into_iter().zip(&stat.softirqs) {
        sample.counter(format!("processor/softirqs/{kind}"), *n as f64);
    }
    let counters = [
        ("interrupts", stat.interrupts),
        ("context_switches", stat.context_switches),
        ("forks", stat.forks),
    ];
    for (name, value) in counters {
        sample.add(
            DynamicValueKind::Counter,
            &format!("processor/{name}"),
            value.map(|n| n as f64),
            "/proc/stat",
        );
    }
    for (name, value) in [("running", stat.running), ("blocked", stat.blocked)] {
        sample.add(
            DynamicValueKind::State,
            &format!("processes/{name}"),
            value.map(|n| n as f64),
            "/proc/stat",
        );
    }
}

/// Paths of states, and their names in `/proc/meminfo`.
const MEMORY: [(&str, &str); 5] = [
    ("memory/free_bytes", "MemFree"),
    ("memory/available_bytes", "MemAvailable"),
    ("memory/cached_bytes", "Cached"),
    ("memory/dirty_bytes", "Dirty"),
    ("memory/swap_free_bytes", "SwapFree"),
];

/// Paths of counters, and their names in `/proc/vmstat`.
const PAGING: [(&str, &str); 7] = [
    ("paging/swapped_in_pages", "pswpin"),
    ("paging/swapped_out_pages", "pswpout"),
    ("paging/read_kib", "pgpgin"),
    ("paging/written_kib", "pgpgout"),
    ("paging/faults", "pgfault"),
    ("paging/major_faults", "pgmajfault"),
    ("paging/out_of_memory_kills", "oom_kill"),
];

/// Paths of counters, and their groups and names in `/proc/net/snmp`.
const SNMP: [(&str, &str, &str); 13] = [
    ("tcp/connects", "Tcp", "ActiveOpens"),
    ("tcp/accepts", "Tcp", "PassiveOpens"),
    ("tcp/failed_connects", "Tcp", "AttemptFails"),
    ("tcp/resets_received", "Tcp", "EstabResets"),
    ("tcp/segments_received", "Tcp", "InSegs"),
    ("tcp/segments_sent", "Tcp", "OutSegs"),
    ("tcp/segments_retransmitted", "Tcp", "RetransSegs"),
    ("tcp/bad_segments", "Tcp", "InErrs"),
    ("udp/datagrams_received", "Udp", "InDatagrams"),
    ("udp/datagrams_sent", "Udp", "OutDatagrams"),
    ("udp/no_port", "Udp", "NoPorts"),
    ("udp/receive_buffer_drops", "Udp", "RcvbufErrors"),
    ("udp/send_buffer_drops", "Udp", "SndbufErrors"),
];

/// Paths of counters, and their groups and names in `/proc/net/netstat`.
const NETSTAT: [(&str, &str, &str); 16] = [
    ("tcp/listen_overflows", "TcpExt", "ListenOverflows"),
    ("tcp/listen_drops", "TcpExt", "ListenDrops"),
    ("tcp/prunes", "TcpExt", "PruneCalled"),
    ("tcp/receive_prunes", "TcpExt", "RcvPruned"),
    ("tcp/collapses", "TcpExt", "TCPRcvCollapsed"),
    ("tcp/backlog_drops", "TcpExt", "TCPBacklogDrop"),
    ("tcp/receive_queue_drops", "TcpExt", "TCPRcvQDrop"),
    ("tcp/timeouts", "TcpExt", "TCPTimeouts"),
    ("tcp/fast_retransmits", "TcpExt", "TCPFastRetrans"),
    ("tcp/loss_probes", "TcpExt", "TCPLossProbes"),
    ("tcp/spurious_timeouts", "TcpExt", "TCPSpuriousRTOs"),
    ("tcp/memory_pressures", "TcpExt", "TCPMemoryPressures"),
    ("tcp/time_wait_overflows", "TcpExt", "TCPTimeWaitOverflow"),
    (
        "tcp/zero_windows_advertised",
        "TcpExt",
        "TCPToZeroWindowAdv",
    ),
    ("tcp/syncookies_sent", "TcpExt", "SyncookiesSent"),
    ("tcp/delayed_acks", "TcpExt", "DelayedACKs"),
];
