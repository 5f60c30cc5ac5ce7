//! Entry points for the fuzz target: they run the parsers of kernel files and trace records. The interface may change.

use crate::kernel_trace::format::TraceEventFormat;
use crate::kernel_trace::pages::{Layout, TracePageRecords};
use crate::parse::{
    block, cpuinfo, interfaces, limits, list_length, loadavg, name_values, pressure, softnet, stat,
};
use stackline_os::tcp_info::TcpInfo;
use stackline_os::{cgroup_formats, mounts};

/// Parses a text as each of the files of `/proc`, `/sys` and tracefs.
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

/// Parses a page of the kernel's trace ring, with the texts that describe its layout and its records' format; and the page as a
/// `struct tcp_info`.
pub fn bytes(layout: &str, format: &str, page: &[u8]) {
    let _ = TcpInfo::parse(page);
    let Some(layout) = Layout::parse(layout) else {
        return;
    };
    let format = TraceEventFormat::parse(format).unwrap_or_default();
    for (_, record) in TracePageRecords::from_page(page, &layout) {
        let _ = (
            format.number(record, "common_pid"),
            format.bytes(record, "comm"),
        );
    }
}
