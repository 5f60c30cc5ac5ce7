//! Plans of a line of text, for tests.

use stackline_core::catalogue::{
    Capabilities, FlowControl, OptionKind, OptionTable, OptionValue, PacketsInFlight, StackFacts,
    StackTable,
};
use stackline_core::plan::{MeasurementPart, Plan, Stack, World};
use stackline_spec::{Available, CheckContext, Overrides, check};

const OPTIONS: &[OptionTable] = &[
    OptionTable::new("congestion", OptionKind::Name, "", ""),
    OptionTable::new("packet", OptionKind::Bytes(1, 65_535), "", ""),
    OptionTable::new("buffer", OptionKind::BUFFER, "", ""),
    OptionTable::new("rate", OptionKind::Number(1, 1 << 40), "", ""),
    OptionTable::new("n", OptionKind::Number(1, 1 << 15), "", ""),
];

const fn stack(
    name: &'static str,
    flow_control: FlowControl,
    in_flight: Option<PacketsInFlight>,
) -> StackTable {
    StackTable {
        name,
        largest_unit: 1 << 40,
        options: OPTIONS,
        facts: StackFacts {
            flow_control,
            in_flight,
            ..StackTable::RELIABLE.facts
        },
        ..StackTable::RELIABLE
    }
}

const GRANT: FlowControl = FlowControl::Grant(4 << 20);

const STACKS: [StackTable; 6] = [
    stack("tcp", FlowControl::KernelBuffers, None),
    stack("http2", FlowControl::KernelBuffers, None),
    stack("quic", FlowControl::Buffers, None),
    stack("saw", GRANT, Some(PacketsInFlight::Fixed(1))),
    stack("window", GRANT, Some(PacketsInFlight::OptionN)),
    stack("blast", GRANT, None),
];

/// The plan of a specification.
pub(crate) fn plan(text: &str) -> Plan {
    let read_file = |path: &str| Err(path.to_owned());
    let worlds = [World::Live, World::Emulated, World::Simulated].map(|world| Available {
        can: Capabilities {
            world,
            ..Capabilities::EVERYTHING
        },
        stacks: &STACKS,
    });
    // What a text leaves open stays open: tests are about answers.
    let overrides = Overrides {
        declarations_only: true,
        ..Overrides::default()
    };
    let checked = check(
        text,
        &CheckContext {
            worlds: &worlds,
            read_file: &read_file,
            cores: &[],
        },
        &overrides,
    );
    checked
        .plan
        .unwrap_or_else(|| panic!("{text}: {:?}", checked.diagnostics))
}

/// The first part of a specification.
pub(crate) fn part(text: &str) -> MeasurementPart {
    plan(text).measurements.remove(0).parts.remove(0)
}

/// A stack with options that are numbers.
pub(crate) fn over(name: &str, options: impl IntoIterator<Item = (String, u64)>) -> Stack {
    let options = options
        .into_iter()
        .map(|(name, value)| (name, OptionValue::Number(value)))
        .collect();
    STACKS
        .iter()
        .find(|table| table.name == name)
        .expect("a stack of these tests")
        .stack(options)
}
