//! What the kernel writes for whoever looks, read and nothing more: for the fuzz target. Its interface may change.

use crate::kernel_trace::format::Format;
use crate::kernel_trace::pages::{Layout, Records};
use crate::parse::{
    block, cgroup, cpuinfo, interfaces, limits, list_length, loadavg, mounts, pairs, pressure,
    softnet, stat,
};
use crate::tcp_info::TcpInfo;

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
        pairs::meminfo(text),
        pairs::counters(text),
    );
    let _ = (
        pressure::parse(text, "some"),
        softnet::parse(text),
        softnet::each(text),
        stat::parse(text),
    );
    let _ = (
        cgroup::paths(text),
        cgroup::quota(text),
        cgroup::throttling(text),
        list_length(text),
    );
    let _ = (Format::parse(text), Layout::parse(text));
}

/// A page of the kernel's trace whose layout and records' format texts say, and the structure of a socket.
pub fn bytes(layout: &str, format: &str, page: &[u8]) {
    let _ = TcpInfo::parse(page);
    let Some(layout) = Layout::parse(layout) else {
        return;
    };
    let format = Format::parse(format).unwrap_or_default();
    for (_, record) in Records::of(page, &layout) {
        let _ = (
            format.number(record, "common_pid"),
            format.bytes(record, "comm"),
        );
    }
}
