//! A catalogue to check against, and short ways to check.
#![allow(dead_code, reason = "each test binary uses some of it")]

use stackline_core::catalogue::{Capabilities, OptionKind, OptionTable, StackTable};
use stackline_core::plan::{Plan, World};
use stackline_spec::{Available, CheckContext, Checked, Diagnostic, Overrides, Severity, check};

const fn option(name: &'static str, kind: OptionKind) -> OptionTable {
    OptionTable::new(name, kind, "", "")
}

const fn stack(name: &'static str, options: &'static [OptionTable]) -> StackTable {
    StackTable {
        name,
        largest_unit: 1 << 40,
        options,
        ..StackTable::RELIABLE
    }
}

pub(crate) const STACKS: &[StackTable] = &[
    stack(
        "tcp",
        &[
            option("nodelay", OptionKind::Flag),
            option("window", OptionKind::Bytes(0, 1 << 40)),
            option("streams", OptionKind::Number(1, 64)),
            option("linger", OptionKind::Time),
            option("congestion", OptionKind::Name),
            option("send_buffer", OptionKind::BUFFER),
            option("receive_buffer", OptionKind::BUFFER),
            option("receive", OptionKind::Word(&["block", "truncate"])),
        ],
    ),
    StackTable {
        largest_unit: 65_507,
        least_bulk_unit: 16,
        files: false,
        ..stack("udp", &[])
    },
    StackTable {
        one_way: true,
        reliable: false,
        ..stack("discard", &[])
    },
    StackTable {
        one_host: true,
        ..stack("unix", &[])
    },
    stack(
        "quic",
        &[option("zero_rtt", OptionKind::Word(&["on", "off"]))],
    ),
    stack("blast", &[option("selective", OptionKind::Flag)]),
    StackTable {
        required: &["library"],
        ..stack("plugin", &OWN)
    },
    StackTable {
        required: &["server", "client"],
        own_data: true,
        files: false,
        ..stack("program", &PROGRAMS)
    },
];

const OWN: [OptionTable; 2] = [
    option("library", OptionKind::PATH),
    option("options", OptionKind::Text(8)),
];

const PROGRAMS: [OptionTable; 2] = [
    option("server", OptionKind::PATH),
    option("client", OptionKind::PATH),
];

/// A world that can do everything that any world can.
const fn world(world: World, networks: bool) -> Available<'static> {
    let imps = matches!(world, World::Simulated);
    let can = Capabilities {
        world,
        networks,
        imps,
        work: imps,
        ..Capabilities::EVERYTHING
    };
    Available {
        can,
        stacks: STACKS,
    }
}

const WORLDS: &[Available<'_>] = &[
    world(World::Live, false),
    world(World::Emulated, true),
    world(World::Simulated, true),
];

/// Stacks of the examples that the other tests leave out.
const TRANSFERS: [StackTable; 4] = [
    StackTable {
        imps: true,
        ..stack("ncp", &[option("links", OptionKind::Number(1, 64))])
    },
    stack("saw", &[option("packet", OptionKind::BUFFER)]),
    stack("window", &[option("packet", OptionKind::BUFFER)]),
    stack(
        "blast",
        &[
            option("packet", OptionKind::BUFFER),
            option("full", OptionKind::Flag),
            option("full_nak", OptionKind::Flag),
            option("partial", OptionKind::Flag),
            option("selective", OptionKind::Flag),
        ],
    ),
];

/// What the examples need.
pub(crate) fn stacks_of_examples() -> Vec<StackTable> {
    STACKS
        .iter()
        .filter(|stack| stack.name != "blast" && stack.name != "quic")
        .chain(&TRANSFERS)
        .chain(&WEB)
        .copied()
        .collect()
}

/// Stacks of the web, with the options that the examples write.
const WEB: [StackTable; 3] = {
    const OPTIONS: &[OptionTable] = &[
        OptionTable::flag("tls", ""),
        OptionTable::new("congestion", OptionKind::Name, "", ""),
        OptionTable::STREAMS,
    ];
    const fn web(name: &'static str) -> StackTable {
        StackTable {
            name,
            options: OPTIONS,
            ..StackTable::RELIABLE
        }
    }
    [web("http1"), web("http2"), web("quic")]
};

pub(crate) fn read_file(path: &str) -> Result<String, String> {
    match path {
        "sizes.txt" => Ok("# bytes\n64\n1500 # an Ethernet frame\n\n".into()),
        "bad.txt" => Ok("64\nlarge\n".into()),
        "up.trace" => Ok("0\n1\n1\n20\n".into()),
        "words.trace" => Ok("1\n2\nthree\n".into()),
        "gap.trace" => Ok("1\n\n2\n".into()),
        "back.trace" => Ok("5\n7\n6\n".into()),
        "zero.trace" => Ok("0\n0\n".into()),
        "none.trace" => Ok(String::new()),
        "long.trace" => Ok("7\n".repeat(1_000_001)),
        "large.trace" => Ok("7\n".repeat(1_000_000)),
        "empty.txt" => Ok("# nothing\n".into()),
        _ => Err("no such file".into()),
    }
}

pub(crate) fn context() -> CheckContext<'static> {
    CheckContext {
        worlds: WORLDS,
        read_file: &read_file,
        cores: &[],
    }
}

pub(crate) fn checked(text: &str) -> Checked {
    check(text, &context(), &Overrides::default())
}

/// One line for each diagnostic, with what is underlined.
pub(crate) fn shown(text: &str, diagnostics: &[Diagnostic]) -> String {
    let mut lines = Vec::new();
    for d in diagnostics {
        let severity = if d.severity == Severity::Error {
            "error"
        } else {
            "warning"
        };
        let under = text.get(d.span.clone()).unwrap_or("?");
        let hint = d.hint.as_deref().unwrap_or("-");
        lines.push(format!(
            "{severity}: {} [{under}] {} / {hint}",
            d.message, d.label
        ));
    }
    lines.join("\n")
}

/// The plan of a text without any error.
pub(crate) fn plan(text: &str) -> Plan {
    let checked = checked(text);
    checked
        .plan
        .unwrap_or_else(|| panic!("{text}\n{}", shown(text, &checked.diagnostics)))
}

/// The plan of a text without any diagnostic.
pub(crate) fn clean(text: &str) -> Plan {
    let checked = checked(text);
    assert!(
        checked.diagnostics.is_empty(),
        "{text}\n{}",
        shown(text, &checked.diagnostics)
    );
    checked.plan.expect("no diagnostic, so a plan")
}

/// Texts of the measurements.
pub(crate) fn texts(text: &str) -> Vec<String> {
    plan(text)
        .measurements
        .into_iter()
        .map(|m| m.text)
        .collect()
}

/// The only diagnostic of a text.
pub(crate) fn mistake(text: &str) -> String {
    let checked = checked(text);
    let shown = shown(text, &checked.diagnostics);
    assert_eq!(checked.diagnostics.len(), 1, "{text}\n{shown}");
    shown
}

/// Without what a change of layout may change.
pub(crate) fn without_lines(mut plan: Plan) -> Plan {
    for measurement in &mut plan.measurements {
        measurement.line = 0;
        for expectation in &mut measurement.expectations {
            expectation.line = 0;
        }
    }
    plan
}

/// Names and texts of all examples.
pub(crate) fn examples() -> Vec<(String, String)> {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples");
    let entries = std::fs::read_dir(directory)
        .expect("the examples")
        .map(|entry| entry.expect("an example"));
    let named = entries.map(|entry| {
        (
            entry.file_name().to_string_lossy().into_owned(),
            entry.path(),
        )
    });
    let mut texts: Vec<(String, String)> = named
        .filter(|(name, _)| name.ends_with(".stackline"))
        .map(|(name, path)| (name, std::fs::read_to_string(path).expect("a text")))
        .collect();
    texts.sort();
    assert!(!texts.is_empty());
    texts
}
