//! Describes the static environment: machine, kernel, settings and limits. It has one function for each section, and changes
//! nothing.

use super::facts::{EnvironmentFacts, number, number_or_text};
use crate::parse::{bracketed_word, cpuinfo, limits, list_length, name_values};
use serde_json::{Value, json};
use stackline_os::mounts;
use stackline_os::own_control_groups::Groups;
use stackline_os::root_directory::Root;

/// All sections as a JSON object.
pub(crate) fn describe(root: &Root) -> Value {
    let mut facts = EnvironmentFacts::default();
    processor(root, &mut facts);
    caches(root, &mut facts);
    memory(root, &mut facts);
    system(root, &mut facts);
    vulnerabilities(root, &mut facts);
    parameters(root, &mut facts);
    interfaces(root, &mut facts);
    file_system(root, &mut facts);
    resource_limits(root, &mut facts);
    control_group(root, &mut facts);
    facts.into_json()
}

/// Bytes of `cpuinfo` that hold its first stanza; the whole file takes long on a machine with many processors.
const CPUINFO_HEAD: u64 = 8192;

/// The directory of processors.
const CPU: &str = "sys/devices/system/cpu";

fn processor(root: &Root, facts: &mut EnvironmentFacts) {
    match root.head("proc/cpuinfo", CPUINFO_HEAD) {
        Ok(text) => model(&cpuinfo::parse(&text), facts),
        Err(reason) => facts.absent("processor/model", reason),
    }
    let threads = root.line(&format!("{CPU}/cpu0/topology/thread_siblings_list"));
    facts.add(
        "processor/threads_per_core",
        threads.and_then(|list| count(&list)),
    );
    let online = root.line(&format!("{CPU}/online"));
    facts.add("processor/online", online.and_then(|list| count(&list)));
    add_lines(root, facts, &PROCESSOR);
}

/// Paths of facts, and the files of one line that hold them.
const PROCESSOR: [(&str, &str); 13] = [
    ("processor/online_list", "sys/devices/system/cpu/online"),
    ("processor/isolated_list", "sys/devices/system/cpu/isolated"),
    ("processor/smt_active", "sys/devices/system/cpu/smt/active"),
    ("processor/numa_nodes", "sys/devices/system/node/online"),
    (
        "processor/frequency/governor",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    ),
    (
        "processor/frequency/driver",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver",
    ),
    (
        "processor/frequency/min_khz",
        "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_min_freq",
    ),
    (
        "processor/frequency/max_khz",
        "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq",
    ),
    (
        "processor/frequency/boost",
        "sys/devices/system/cpu/cpufreq/boost",
    ),
    (
        "processor/frequency/no_turbo",
        "sys/devices/system/cpu/intel_pstate/no_turbo",
    ),
    (
        "processor/idle/driver",
        "sys/devices/system/cpu/cpuidle/current_driver",
    ),
    (
        "processor/idle/governor",
        "sys/devices/system/cpu/cpuidle/current_governor",
    ),
    (
        "processor/idle/poll_ns",
        "sys/module/haltpoll/parameters/guest_halt_poll_ns",
    ),
];

fn model(cpu: &cpuinfo::Cpu, facts: &mut EnvironmentFacts) {
    let missing = |what: &str| format!("/proc/cpuinfo omits the {what}");
    facts.add(
        "processor/model",
        cpu.model.clone().ok_or_else(|| missing("model")),
    );
    facts.add(
        "processor/microcode",
        cpu.microcode.clone().ok_or_else(|| missing("microcode")),
    );
    facts.add(
        "processor/frequency/now_mhz",
        cpu.mhz.map(number).ok_or_else(|| missing("clock")),
    );
    facts.add(
        "processor/cores_per_package",
        cpu.cores.ok_or_else(|| missing("number of cores")),
    );
    facts.add(
        "processor/threads_per_package",
        cpu.siblings.ok_or_else(|| missing("number of threads")),
    );
    facts.add(
        "system/hypervisor",
        cpu.hypervisor.ok_or_else(|| missing("hypervisor flag")),
    );
    facts.add(
        "system/processor_bugs",
        cpu.bugs.clone().ok_or_else(|| missing("bugs")),
    );
}

fn count(list: &str) -> Result<u64, String> {
    list_length(list).ok_or_else(|| format!("`{list}` is not a list of processors"))
}

fn caches(root: &Root, facts: &mut EnvironmentFacts) {
    let directory = format!("{CPU}/cpu0/cache");
    match root.names(&directory) {
        Ok(names) => {
            let indices = names.iter().filter(|name| name.starts_with("index"));
            let caches = indices.filter_map(|name| cache(root, &format!("{directory}/{name}")));
            facts.put("processor/caches", caches.collect::<Vec<_>>());
        }
        Err(reason) => facts.absent("processor/caches", reason),
    }
}

fn cache(root: &Root, directory: &str) -> Option<Value> {
    let line = |name: &str| root.line(&format!("{directory}/{name}")).ok();
    Some(json!({
        "level": number_or_text(&line("level")?),
        "type": line("type")?,
        "size": line("size")?,
        "shared_by": line("shared_cpu_list"),
    }))
}

fn memory(root: &Root, facts: &mut EnvironmentFacts) {
    match root.text("proc/meminfo") {
        Ok(text) => sizes(&name_values::meminfo(&text), facts),
        Err(reason) => facts.absent("memory", reason),
    }
    for name in ["enabled", "defrag"] {
        let line = root.line(&format!("sys/kernel/mm/transparent_hugepage/{name}"));
        facts.add(
            &format!("virtual_memory/transparent_huge_pages/{name}"),
            line.map(|l| bracketed_word(&l).to_owned()),
        );
    }
    for name in [
        "overcommit_memory",
        "overcommit_ratio",
        "swappiness",
        "zone_reclaim_mode",
        "dirty_ratio",
    ] {
        let line = root.line(&format!("proc/sys/vm/{name}"));
        facts.add(
            &format!("virtual_memory/{name}"),
            line.map(|l| number_or_text(&l)),
        );
    }
}

fn sizes(meminfo: &std::collections::BTreeMap<&str, u64>, facts: &mut EnvironmentFacts) {
    let names = [
        ("memory/total_bytes", "MemTotal"),
        ("memory/huge_pages", "HugePages_Total"),
        ("memory/huge_page_bytes", "Hugepagesize"),
        ("virtual_memory/swap_bytes", "SwapTotal"),
        ("virtual_memory/commit_limit_bytes", "CommitLimit"),
    ];
    for (path, name) in names {
        facts.add(
            path,
            meminfo
                .get(name)
                .copied()
                .ok_or_else(|| format!("/proc/meminfo has no {name}")),
        );
    }
}

/// Paths of facts, and the files of one line that hold them.
const SYSTEM: [(&str, &str); 8] = [
    ("system/kernel", "proc/sys/kernel/osrelease"),
    ("system/kernel_build", "proc/sys/kernel/version"),
    ("system/architecture", "proc/sys/kernel/arch"),
    (
        "system/clock_source",
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
    ),
    (
        "system/clock_sources",
        "sys/devices/system/clocksource/clocksource0/available_clocksource",
    ),
    ("system/timer_slack_ns", "proc/self/timerslack_ns"),
    ("system/numa_balancing", "proc/sys/kernel/numa_balancing"),
    (
        "system/autogroup",
        "proc/sys/kernel/sched_autogroup_enabled",
    ),
];

fn system(root: &Root, facts: &mut EnvironmentFacts) {
    add_lines(root, facts, &SYSTEM);
    let release = root
        .text("etc/os-release")
        .or_else(|_| root.text("usr/lib/os-release"));
    let name = |text: String| name_values::assignment(&text, "PRETTY_NAME").map(str::to_owned);
    let missing = || "os-release has no PRETTY_NAME".to_owned();
    facts.add(
        "system/distribution",
        release.and_then(|text| name(text).ok_or_else(missing)),
    );
    facts.add(
        "system/boot_options",
        root.line("proc/cmdline").map(|line| boot_options(&line)),
    );
    facts.add("system/machine", root.line("sys/class/dmi/id/sys_vendor"));
    facts.add("system/hypervisor_type", root.line("sys/hypervisor/type"));
    facts.put("system/container_hints", container_hints(root));
}

/// The boot options that change timing; others may be confidential.
fn boot_options(line: &str) -> Vec<String> {
    const TIMING: [&str; 14] = [
        "mitigations",
        "isolcpus",
        "nohz",
        "nohz_full",
        "rcu_nocbs",
        "idle",
        "intel_idle.max_cstate",
        "processor.max_cstate",
        "intel_pstate",
        "tsc",
        "clocksource",
        "preempt",
        "transparent_hugepage",
        "nosmt",
    ];
    let timing = |word: &&str| TIMING.contains(&word.split('=').next().unwrap_or(word));
    line.split_ascii_whitespace()
        .take_while(|word| *word != "--")
        .filter(timing)
        .map(str::to_owned)
        .collect()
}

fn container_hints(root: &Root) -> Vec<String> {
    let files = [".dockerenv", "run/.containerenv", "run/systemd/container"];
    files
        .iter()
        .filter(|file| root.exists(file))
        .map(|file| format!("/{file} exists"))
        .collect()
}

fn vulnerabilities(root: &Root, facts: &mut EnvironmentFacts) {
    let directory = format!("{CPU}/vulnerabilities");
    match root.names(&directory) {
        Ok(names) => {
            for name in names {
                facts.add(
                    &format!("system/mitigations/{name}"),
                    root.line(&format!("{directory}/{name}")),
                );
            }
        }
        Err(reason) => facts.absent("system/mitigations", reason),
    }
}

/// Network parameters, as files below `/proc/sys/net`.
const PARAMETERS: [&str; 48] = [
    "core/default_qdisc",
    "core/rmem_default",
    "core/rmem_max",
    "core/wmem_default",
    "core/wmem_max",
    "core/optmem_max",
    "core/somaxconn",
    "core/netdev_max_backlog",
    "core/netdev_budget",
    "core/netdev_budget_usecs",
    "core/dev_weight",
    "core/busy_poll",
    "core/busy_read",
    "core/gro_normal_batch",
    "core/high_order_alloc_disable",
    "core/rps_sock_flow_entries",
    "ipv4/ip_local_port_range",
    "ipv4/ip_forward",
    "ipv4/tcp_congestion_control",
    "ipv4/tcp_available_congestion_control",
    "ipv4/tcp_rmem",
    "ipv4/tcp_wmem",
    "ipv4/tcp_mem",
    "ipv4/udp_mem",
    "ipv4/tcp_moderate_rcvbuf",
    "ipv4/tcp_adv_win_scale",
    "ipv4/tcp_window_scaling",
    "ipv4/tcp_timestamps",
    "ipv4/tcp_sack",
    "ipv4/tcp_dsack",
    "ipv4/tcp_ecn",
    "ipv4/tcp_fastopen",
    "ipv4/tcp_mtu_probing",
    "ipv4/tcp_base_mss",
    "ipv4/tcp_slow_start_after_idle",
    "ipv4/tcp_no_metrics_save",
    "ipv4/tcp_notsent_lowat",
    "ipv4/tcp_limit_output_bytes",
    "ipv4/tcp_autocorking",
    "ipv4/tcp_tso_win_divisor",
    "ipv4/tcp_min_tso_segs",
    "ipv4/tcp_recovery",
    "ipv4/tcp_early_retrans",
    "ipv4/tcp_tw_reuse",
    "ipv4/tcp_max_tw_buckets",
    "ipv4/tcp_max_syn_backlog",
    "ipv4/tcp_syncookies",
    "mptcp/enabled",
];

fn parameters(root: &Root, facts: &mut EnvironmentFacts) {
    for name in PARAMETERS {
        let line = root.line(&format!("proc/sys/net/{name}"));
        facts.add(
            &format!("network_parameters/{name}"),
            line.map(|text| numbers(&text)),
        );
    }
}

/// `4096 131072 6291456` as a list of numbers, one number as itself, anything else as text.
fn numbers(text: &str) -> Value {
    let words: Vec<Value> = text.split_ascii_whitespace().map(number_or_text).collect();
    match words.as_slice() {
        [one] => one.clone(),
        many if many.iter().all(Value::is_number) => Value::Array(words),
        _ => Value::from(text),
    }
}

/// Facts of an interface, as files below `/sys/class/net/NAME`.
const INTERFACE: [&str; 9] = [
    "mtu",
    "speed",
    "duplex",
    "operstate",
    "carrier",
    "tx_queue_len",
    "gro_flush_timeout",
    "napi_defer_hard_irqs",
    "threaded",
];

fn interfaces(root: &Root, facts: &mut EnvironmentFacts) {
    match root.names("sys/class/net") {
        Ok(names) => names.iter().for_each(|name| interface(root, name, facts)),
        Err(reason) => facts.absent("interfaces", reason),
    }
    facts.absent(
        "interfaces/offloads",
        "they are available only through ethtool requests, not in a file",
    );
}

fn interface(root: &Root, name: &str, facts: &mut EnvironmentFacts) {
    let directory = format!("sys/class/net/{name}");
    if !root.exists(&format!("{directory}/mtu")) {
        return; // a file such as bonding_masters, not an interface
    }
    for fact in INTERFACE {
        let line = root.line(&format!("{directory}/{fact}"));
        facts.add(
            &format!("interfaces/{name}/{}", unit(fact)),
            line.and_then(|l| sensible(fact, &l)),
        );
    }
    facts.add(
        &format!("interfaces/{name}/driver"),
        root.link_name(&format!("{directory}/device/driver")),
    );
    let queues = root.names(&format!("{directory}/queues"));
    for (fact, start) in [("receive_queues", "rx-"), ("send_queues", "tx-")] {
        let number = queues
            .as_ref()
            .map(|all| all.iter().filter(|queue| queue.starts_with(start)).count());
        facts.add(
            &format!("interfaces/{name}/{fact}"),
            number.map_err(Clone::clone),
        );
    }
}

/// The name of a fact, with its unit where the kernel's name has none.
fn unit(fact: &str) -> &str {
    match fact {
        "mtu" => "mtu_bytes",
        "speed" => "speed_mbit_s",
        other => other,
    }
}

/// The value of a fact. A speed of -1 means that the driver does not know it.
fn sensible(fact: &str, line: &str) -> Result<Value, String> {
    match (fact, line) {
        ("speed", "-1") => Err("the driver does not report it".to_owned()),
        _ => Ok(number_or_text(line)),
    }
}

fn file_system(root: &Root, facts: &mut EnvironmentFacts) {
    let directory = match std::env::current_dir() {
        Ok(directory) => directory.to_string_lossy().into_owned(),
        Err(error) => return facts.absent("file_system", format!("no working directory: {error}")),
    };
    match root
        .text("proc/self/mountinfo")
        .map(|text| mounts::parse(&text))
    {
        Ok(mounts) => match mounts::find_mount(&mounts, &directory) {
            Some(mount) => mounted(root, mount, facts),
            None => facts.absent("file_system", "no mount contains the working directory"),
        },
        Err(reason) => facts.absent("file_system", reason),
    }
}

fn mounted(root: &Root, mount: &mounts::Mount, facts: &mut EnvironmentFacts) {
    facts.put("file_system/type", mount.kind.clone());
    facts.put("file_system/options", mount.options.clone());
    let device = format!("sys/dev/block/{}", mount.device);
    let line = |name: &str| {
        let own = root.line(&format!("{device}/queue/{name}"));
        own.or_else(|_| root.line(&format!("{device}/../queue/{name}"))) // a partition has its disk's queue
    };
    facts.add(
        "file_system/scheduler",
        line("scheduler").map(|l| bracketed_word(&l).to_owned()),
    );
    facts.add(
        "file_system/rotational",
        line("rotational").map(|l| l == "1"),
    );
}

/// Names of facts, and of their lines in `/proc/self/limits`.
const LIMITS: [(&str, &str); 7] = [
    ("open_files", "Max open files"),
    ("locked_memory_bytes", "Max locked memory"),
    ("processes", "Max processes"),
    ("stack_bytes", "Max stack size"),
    ("address_space_bytes", "Max address space"),
    ("nice_priority", "Max nice priority"),
    ("realtime_priority", "Max realtime priority"),
];

fn resource_limits(root: &Root, facts: &mut EnvironmentFacts) {
    let text = match root.text("proc/self/limits") {
        Ok(text) => text,
        Err(reason) => return facts.absent("limits", reason),
    };
    for (name, line) in LIMITS {
        let limit =
            limits::parse(&text, line).ok_or_else(|| format!("/proc/self/limits has no `{line}`"));
        let path = format!("limits/{name}");
        facts.add(
            &path,
            limit.map(|(soft, hard)| json!({"soft": bound(soft), "hard": bound(hard)})),
        );
    }
    if let Ok(status) = root.text("proc/self/status") {
        let list = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        facts.add(
            "limits/processors_allowed",
            list.map(str::trim)
                .ok_or_else(|| "/proc/self/status does not contain it".to_owned()),
        );
    }
}

fn bound(limit: Option<u64>) -> Value {
    limit.map_or_else(|| Value::from("unlimited"), Value::from)
}

fn control_group(root: &Root, facts: &mut EnvironmentFacts) {
    match Groups::find(root) {
        Ok(groups) => {
            facts.put("control_group/version", groups.version());
            let quota = groups
                .quota(root)
                .map_or_else(|| Value::from("unlimited"), number);
            facts.put("control_group/cpu_quota_processors", quota);
        }
        Err(reason) => facts.absent("control_group", reason),
    }
}

/// Adds facts that are files of one line each; `table`: their paths and files.
fn add_lines(root: &Root, facts: &mut EnvironmentFacts, table: &[(&str, &str)]) {
    for (path, file) in table {
        facts.add(path, root.line(file).map(|line| number_or_text(&line)));
    }
}
