//! Plans of a line of text, for tests.

use stackline_core::catalogue::{OptionKind, OptionTable, StackTable};
use stackline_core::plan::{Part, Plan};
use stackline_spec::{Context, Overrides, check};

const CONGESTION: OptionTable = OptionTable { name: "congestion", kind: OptionKind::Name, default: "", help: "" };

const STACKS: [StackTable; 1] = [StackTable {
    name: "tcp",
    summary: "",
    least_unit: 1,
    largest_unit: 1 << 40,
    least_bulk_unit: 1,
    reliable: true,
    one_host: false,
    files: true,
    options: &[CONGESTION],
    mapping: &[],
}];

/// The plan of a specification.
pub(crate) fn plan(text: &str) -> Plan {
    let read_file = |path: &str| Err(path.to_owned());
    let context = Context { stacks: &STACKS, simulated: &STACKS, read_file: &read_file };
    let checked = check(text, &context, &Overrides::default());
    checked.plan.unwrap_or_else(|| panic!("{text}: {:?}", checked.diagnostics))
}

/// The first part of a specification.
pub(crate) fn part(text: &str) -> Part {
    plan(text).measurements.remove(0).parts.remove(0)
}
