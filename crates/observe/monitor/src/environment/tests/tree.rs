//! A host made of files: what is read from it, what is absent, and what two samples differ by.

use super::super::difference;
use super::super::dynamic::EnvironmentSampler;
use super::super::fixed;
use stackline_os::own_control_groups::{Groups, ThrottledTime};
use stackline_os::root_directory::Root;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that is removed when it is dropped.
pub(crate) struct Tree {
    path: PathBuf,
}

impl Tree {
    fn new(files: &[(&str, &str)]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "stackline-environment-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let tree = Self {
            path: std::env::temp_dir().join(name),
        };
        tree.write(files);
        tree
    }

    fn write(&self, files: &[(&str, &str)]) {
        for (name, text) in files {
            let file = self.path.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
    }

    /// Every file that is read, with the same text.
    pub(crate) fn of_one_text(text: &str) -> Self {
        let names = [
            "proc/stat",
            "proc/loadavg",
            "proc/meminfo",
            "proc/vmstat",
            "proc/cpuinfo",
            "proc/pressure/cpu",
            "proc/thread-self/net/dev",
            "proc/thread-self/net/snmp",
            "proc/thread-self/net/netstat",
            "proc/thread-self/net/softnet_stat",
            "proc/self/cgroup",
            "proc/self/mountinfo",
            "proc/self/limits",
            "proc/self/status",
            "proc/cmdline",
            "etc/os-release",
            "sys/class/thermal/thermal_zone0/temp",
            "sys/class/net/lo/mtu",
            "sys/class/net/lo/speed",
            "sys/devices/system/cpu/online",
            "sys/devices/system/cpu/cpu0/cache/index0/level",
            "proc/sys/net/ipv4/tcp_rmem",
        ];
        Self::new(&names.map(|name| (name, text)))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.path);
    }
}

#[test]
fn an_empty_host_has_reasons_for_everything() {
    let tree = Tree::new(&[("etc/hostname", "x")]);
    let value = fixed::describe(&Root::at(tree.path()));
    assert_eq!(value["processor"], serde_json::Value::Null);
    assert_eq!(
        value["absent"]["processor/model"],
        "/proc/cpuinfo does not exist"
    );
    let sample = EnvironmentSampler::under_root(Root::at(tree.path()))
        .sample()
        .to_json();
    assert_eq!(
        sample["absent"]["tcp"],
        "/proc/thread-self/net/snmp does not exist"
    );
    assert_eq!(sample["tcp"], serde_json::Value::Null);
}

#[test]
fn fixed_facts_have_types_and_units() {
    let tree = Tree::new(&[
        ("proc/cpuinfo", "model name : A\nflags : hypervisor\n"),
        (
            "proc/cmdline",
            "root=UUID=1 mitigations=off isolcpus=1 -- secret=2 idle=poll",
        ),
        ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
        ("proc/sys/net/core/default_qdisc", "fq_codel\n"),
        ("sys/class/net/eth0/mtu", "1500\n"),
        ("sys/class/net/eth0/speed", "-1\n"),
        ("sys/class/net/eth0/address", "02:00:00:00:00:01\n"),
        ("sys/class/net/bonding_masters", "\n"),
    ]);
    let value = fixed::describe(&Root::at(tree.path()));
    assert_eq!(
        value["network_parameters"]["ipv4"]["tcp_rmem"],
        serde_json::json!([4096, 131_072, 6_291_456])
    );
    assert_eq!(
        value["network_parameters"]["core"]["default_qdisc"],
        "fq_codel"
    );
    assert_eq!(value["interfaces"]["eth0"]["mtu_bytes"], 1500);
    assert_eq!(
        value["absent"]["interfaces/eth0/speed_mbit_s"],
        "the driver does not report it"
    );
    assert_eq!(
        value["system"]["boot_options"],
        serde_json::json!(["mitigations=off", "isolcpus=1"])
    );
    let text = value.to_string();
    assert!(!text.contains("02:00") && !text.contains("UUID") && !text.contains("bonding"));
}

#[test]
fn quotas_and_throttling_include_the_groups_above() {
    let tree = Tree::new(&[
        ("proc/self/cgroup", "0::/a/b\n"),
        (
            "proc/self/mountinfo",
            "30 1 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        ),
        ("sys/fs/cgroup/a/cpu.max", "50000 100000\n"),
        ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
        (
            "sys/fs/cgroup/a/cpu.stat",
            "nr_periods 10\nnr_throttled 4\nthrottled_usec 2500000\n",
        ),
        (
            "sys/fs/cgroup/a/b/cpu.stat",
            "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
        ),
    ]);
    let value = fixed::describe(&Root::at(tree.path()));
    assert_eq!(
        value["control_group"],
        serde_json::json!({"version": 2, "cpu_quota_processors": 0.5})
    );
    let sample = EnvironmentSampler::under_root(Root::at(tree.path()))
        .sample()
        .to_json();
    assert_eq!(sample["throttling"]["throttled_s"], 2.5);
}

#[test]
fn the_throttled_time_is_that_of_the_group_throttled_in_the_period() {
    let stat = |ns: u64| format!("nr_periods 10\nnr_throttled 4\nthrottled_time {ns}\n");
    let (own, above) = (
        "sys/fs/cgroup/cpu/job/cpu.stat",
        "sys/fs/cgroup/cpu/cpu.stat",
    );
    let tree = Tree::new(&[
        ("proc/self/cgroup", "2:cpu,cpuacct:/job\n0::/\n"),
        (
            "proc/self/mountinfo",
            "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
        ),
        (own, &stat(1_000_000_000)),
        (above, &stat(90_000_000_000)),
    ]);
    let root = Root::at(tree.path());
    let groups = Groups::find(&root);
    let before = ThrottledTime::read(groups.as_ref(), &root);
    assert_eq!(before.seconds_until(&before), Ok(0.0));
    tree.write(&[(own, &stat(1_250_000_000))]);
    let after = ThrottledTime::read(groups.as_ref(), &root);
    assert_eq!(
        before.seconds_until(&after),
        Ok(0.25),
        "the group above was throttled before the period"
    );
}

#[test]
fn throttling_is_unknown_without_groups_or_limits() {
    let unlimited = Tree::new(&[
        ("proc/self/cgroup", "0::/a\n"),
        (
            "proc/self/mountinfo",
            "30 1 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        ),
        ("sys/fs/cgroup/a/cpu.stat", "usage_usec 10\nuser_usec 4\n"),
    ]);
    for (tree, reason) in [
        (
            unlimited,
            "no control group containing this process reports throttling",
        ),
        (
            Tree::new(&[("etc/hostname", "x")]),
            "/proc/self/cgroup does not exist",
        ),
    ] {
        let root = Root::at(tree.path());
        let sample = ThrottledTime::read(Groups::find(&root).as_ref(), &root);
        assert_eq!(sample.seconds_until(&sample), Err(reason.to_owned()));
    }
}

const BEFORE: [(&str, &str); 3] = [
    (
        "proc/stat",
        "cpu 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0\nctxt 100\n",
    ),
    ("proc/vmstat", "pswpin 1\npswpout 1\n"),
    (
        "proc/thread-self/net/snmp",
        "Tcp: OutSegs RetransSegs\nTcp: 100 5\nUdp: RcvbufErrors\nUdp: 4\n",
    ),
];

const AFTER: [(&str, &str); 3] = [
    (
        "proc/stat",
        "cpu 90 0 10 100 0 0 0 0\ncpu0 90 0 10 0 0 0 0 0\ncpu1 0 0 0 100 0 0 0 0\nctxt 50\n",
    ),
    ("proc/vmstat", "pswpin 4\npswpout 1\n"),
    (
        "proc/thread-self/net/snmp",
        "Tcp: OutSegs RetransSegs\nTcp: 300 5\nUdp: RcvbufErrors\nUdp: 6\n",
    ),
];

#[test]
fn a_difference_has_growth_shares_and_flags() {
    let tree = Tree::new(&BEFORE);
    let sampler = EnvironmentSampler::under_root(Root::at(tree.path()));
    let before = sampler.sample();
    tree.write(&AFTER);
    let value = difference(&before, &sampler.sample());
    assert_eq!(value["change"]["tcp"]["segments_sent"], 200);
    assert_eq!(value["change"]["processor"]["user_s"], 0.9);
    assert_eq!(value["share"]["cpu_busy"], 0.5);
    assert_eq!(value["share"]["busiest_core"], 1.0);
    assert_eq!(
        value["absent"]["processor/context_switches"],
        "the counter went backwards"
    );
    let flags: Vec<&str> = value["flags"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|f| f["flag"].as_str())
        .collect();
    assert_eq!(flags, ["paging", "core full", "udp receive drops"]);
}

#[test]
fn equal_samples_have_no_shares_and_no_flags() {
    let tree = Tree::new(&BEFORE);
    let sample = EnvironmentSampler::under_root(Root::at(tree.path())).sample();
    let value = difference(&sample, &sample);
    assert_eq!(value["flags"], serde_json::json!([]));
    assert_eq!(value["absent"]["share/cpu_busy"], "too little time passed");
}
