//! What the kernel writes for whoever looks, read and nothing more: for the fuzz target. Its interface may change.

use crate::kernel_trace::format::TraceEventFormat;
use crate::kernel_trace::pages::{Layout, TracePageRecords};
use crate::parse::{
    block, cpuinfo, interfaces, limits, list_length, loadavg, name_values, pressure, softnet, stat,
};
use stackline_os::tcp_info::TcpInfo;
use stackline_os::{cgroup_formats, mounts};

/// A text of `/proc`, `/sys` or tracefs.
pub fn text(text: &str) {
    let _ = (
        block::parse(text),
        cpuinfo::parse(text),
        interfaces::parse(text),
        limits::parse(text, "Max open files"),
    );
    let _ = (
        loadavg::parse(text),
        mounts::parse(text),
        name_values::meminfo(text),
        name_values::counters(text),
    );
    let _ = (
        pressure::parse(text, "some"),
        softnet::parse(text),
        softnet::parse_cores(text),
        stat::parse(text),
    );
    let _ = (
        cgroup_formats::parse_paths(text),
        cgroup_formats::parse_quota(text),
        cgroup_formats::throttling(text),
        list_length(text),
    );
    let _ = (TraceEventFormat::parse(text), Layout::parse(text));
}

/// A page of the kernel's trace whose layout and records' format texts say, and the structure of a socket.
pub fn bytes(layout: &str, format: &str, page: &[u8]) {
    let _ = TcpInfo::parse(page);
    let Some(layout) = Layout::parse(layout) else {
        return;
    };
    let format = TraceEventFormat::parse(format).unwrap_or_default();
    for (_, record) in TracePageRecords::of(page, &layout) {
        let _ = (
            format.number(record, "common_pid"),
            format.bytes(record, "comm"),
        );
    }
}
