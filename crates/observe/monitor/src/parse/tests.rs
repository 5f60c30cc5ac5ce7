//! Each parser against a text that a kernel wrote.

use super::{
    block, bracketed_word, cpuinfo, interfaces, limits, list_length, loadavg, name_values,
};
use super::{pressure, softnet, stat};

const STAT: &str = "cpu  10 1 20 300 4 0 5 6 0 0\ncpu0 5 1 10 150 2 0 3 3 0 0\ncpu1 5 0 10 150 2 0 2\n\
    intr 234637 0 1\nctxt 343735\nbtime 1795217985\nprocesses 5987\nprocs_running 1\nprocs_blocked 2\n\
    softirq 164309 0 17217 4 5067 64564 0 56 45678 0 31723\n";

#[test]
fn stat_gives_times_and_counts() {
    let stat = stat::parse(STAT);
    let all = stat.all.unwrap();
    assert_eq!((all.busy(), all.total()), (42, 346));
    assert_eq!(
        (stat.interrupts, stat.context_switches, stat.forks),
        (Some(234_637), Some(343_735), Some(5987))
    );
    assert_eq!((stat.running, stat.blocked), (Some(1), Some(2)));
    assert_eq!(stat.softirqs.len(), stat::SOFTIRQS.len());
}

#[test]
fn stat_leaves_out_a_processor_whose_line_is_cut() {
    assert_eq!(
        stat::parse(STAT)
            .each
            .iter()
            .map(|(n, _)| *n)
            .collect::<Vec<_>>(),
        [0]
    );
}

#[test]
fn cpuinfo_reads_the_first_stanza_only() {
    let text = "processor\t: 0\nmodel name\t: Intel(R) Xeon(R)\nmicrocode\t: 0x1\ncpu MHz\t\t: 2000.000\nsiblings\t: 2\n\
        cpu cores\t: 1\nflags\t\t: fpu hypervisor\nbugs\t\t: mds\n\nprocessor\t: 1\nmodel name\t: Other\n";
    let cpu = cpuinfo::parse(text);
    assert_eq!(cpu.model.as_deref(), Some("Intel(R) Xeon(R)"));
    assert_eq!(
        (cpu.mhz, cpu.siblings, cpu.cores, cpu.hypervisor),
        (Some(2000.0), Some(2), Some(1), Some(true))
    );
}

#[test]
fn cpuinfo_of_another_architecture_has_fewer_fields() {
    let cpu = cpuinfo::parse("processor\t: 0\nBogoMIPS\t: 243.75\nCPU part\t: 0xd40\n");
    assert_eq!(cpu, cpuinfo::Cpu::default());
}

#[test]
fn meminfo_is_in_bytes() {
    let meminfo = name_values::meminfo(
        "MemTotal:       24682416 kB\nHugePages_Total:       3\nMemFree: x kB\n",
    );
    assert_eq!(meminfo.get("MemTotal"), Some(&(24_682_416 * 1024)));
    assert_eq!(meminfo.get("HugePages_Total"), Some(&3));
    assert_eq!(meminfo.get("MemFree"), None);
}

#[test]
fn snmp_and_netstat_pair_names_with_numbers() {
    let text = "Tcp: RtoMin MaxConn RetransSegs\nTcp: 200 -1 7\nUdp: InDatagrams RcvbufErrors\nUdp: 97 5\nTcpExt: A B\n";
    let counters = block::parse(text);
    assert_eq!(counters.get(&("Tcp", "RetransSegs")), Some(&7));
    assert_eq!(counters.get(&("Tcp", "MaxConn")), Some(&-1));
    assert_eq!(counters.get(&("Udp", "RcvbufErrors")), Some(&5));
    assert_eq!(counters.get(&("TcpExt", "A")), None);
}

#[test]
fn interfaces_keep_traffic_errors_and_drops() {
    let text = "Inter-|   Receive   |  Transmit\n face |bytes packets\n    lo:    3193      29    1    2    0     0  0  0  3194  30  3  4 0 0 0 0\n eth0: 1 2\n";
    let all = interfaces::parse(text);
    assert_eq!(all.len(), 1);
    assert_eq!(
        (all[0].name.as_str(), all[0].counters),
        ("lo", [3193, 29, 1, 2, 3194, 30, 3, 4])
    );
}

#[test]
fn softnet_counters_are_hexadecimal() {
    let sums =
        softnet::parse("0000000d 00000001 00000000 0\n00000f14 00000000 00000002 0\n").unwrap();
    assert_eq!(
        (sums.processed, sums.dropped, sums.squeezed),
        (0xd + 0xf14, 1, 2)
    );
}

#[test]
fn pressure_has_two_kinds() {
    let text = "some avg10=0.40 avg60=0.36 avg300=0.48 total=7155877\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
    assert_eq!(
        pressure::parse(text, "some").unwrap(),
        pressure::PressureStall {
            percent_10s: 0.4,
            total_us: 7_155_877
        }
    );
    assert_eq!(pressure::parse(text, "full").unwrap().total_us, 0);
    assert_eq!(pressure::parse("some avg10=0.40", "some"), None);
}

#[test]
fn loadavg_counts_tasks() {
    let load = loadavg::parse("0.03 0.14 0.08 1/82 5967\n").unwrap();
    assert_eq!(
        (load.means, load.running, load.tasks),
        ([0.03, 0.14, 0.08], 1, 82)
    );
    assert_eq!(loadavg::parse("nan 0.14 0.08 1/82 5967\n"), None);
}

#[test]
fn a_limit_is_a_number_or_unlimited() {
    let text = "Limit                     Soft Limit           Hard Limit           Units\n\
        Max stack size            8388608              unlimited            bytes\n";
    assert_eq!(
        limits::parse(text, "Max stack size"),
        Some((Some(8_388_608), None))
    );
    assert_eq!(limits::parse(text, "Max stack"), None);
}

#[test]
fn lists_have_a_length_and_choices_a_value() {
    assert_eq!(list_length("0-3,8"), Some(5));
    assert_eq!(list_length("3-0"), None);
    assert_eq!(list_length(""), None);
    assert_eq!(bracketed_word("always [madvise] never"), "madvise");
    assert_eq!(bracketed_word("none"), "none");
    assert_eq!(
        name_values::assignment("ID=debian\nPRETTY_NAME=\"Debian 12\"\n", "PRETTY_NAME"),
        Some("Debian 12")
    );
}
