//! A plan as a person reads it before anything is done.

use crate::testing::{a_plan, golden};
use stackline_core::catalogue::{OptionKind, OptionTable, StackTable};

const TCP: StackTable = StackTable {
    name: "tcp",
    summary: "TCP over IPv4 or IPv6",
    least_unit: 1,
    largest_unit: u64::MAX,
    least_bulk_unit: 1,
    reliable: true,
    one_host: false,
    files: true,
    options: &[
        OptionTable { name: "nodelay", kind: OptionKind::Flag, default: "off", help: "" },
        OptionTable { name: "congestion", kind: OptionKind::Name, default: "the host's", help: "" },
        OptionTable { name: "receive_buffer", kind: OptionKind::Bytes, default: "the kernel tunes it", help: "" },
    ],
    mapping: &[],
};

#[test]
fn everything_is_written_out() {
    golden("plan.txt", &super::plan(&a_plan(), &[TCP]));
}

#[test]
fn an_unknown_stack_still_prints() {
    assert!(super::plan(&a_plan(), &[]).contains("stack      tcp\n"));
}
