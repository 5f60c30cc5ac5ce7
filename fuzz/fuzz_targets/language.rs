//! Any text: checking never panics or hangs, a plan is there exactly when there is no error, what would be right is right,
//! formatting twice is formatting once, and formatting keeps the plan.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stackline_core::catalogue::{Capabilities, OptionKind, OptionTable, StackTable};
use stackline_core::plan::{Plan, World};
use stackline_spec::{
    Available, CheckContext, Checked, Overrides, Severity, check, format, format_markdown,
    markdown_blocks, repair,
};

const fn option(name: &'static str, kind: OptionKind) -> OptionTable {
    OptionTable {
        name,
        kind,
        default: "",
        help: "",
    }
}

const fn stack(name: &'static str, one_host: bool, options: &'static [OptionTable]) -> StackTable {
    StackTable {
        name,
        one_host,
        least_bulk_unit: 8,
        options,
        ..StackTable::RELIABLE
    }
}

const STACKS: &[StackTable] = &[
    stack(
        "tcp",
        false,
        &[
            option("nodelay", OptionKind::Flag),
            option("window", OptionKind::BUFFER),
        ],
    ),
    stack(
        "unix",
        true,
        &[
            option("streams", OptionKind::Number(1, 64)),
            option("linger", OptionKind::Time),
        ],
    ),
    stack(
        "blast",
        false,
        &[
            option("selective", OptionKind::Word(&["on", "off"])),
            option("name", OptionKind::Name),
        ],
    ),
    StackTable {
        required: &["library"],
        ..stack(
            "plugin",
            false,
            &[
                option("library", OptionKind::PATH),
                option("options", OptionKind::Text(8)),
            ],
        )
    },
];

fn checked(text: &str) -> Checked {
    let read_file = |path: &str| {
        if path.len() < 8 {
            Ok("1\n2 # two\n".into())
        } else {
            Err("no such file".into())
        }
    };
    let simulated = Capabilities {
        world: World::Simulated,
        ..stackline_emu::CAPABILITIES
    };
    let worlds = [
        stackline_live::CAPABILITIES,
        stackline_emu::CAPABILITIES,
        simulated,
    ];
    let worlds = worlds.map(|can| Available {
        can,
        stacks: STACKS,
    });
    let (context, overrides) = (
        CheckContext {
            worlds: &worlds,
            read_file: &read_file,
            cores: &[],
        },
        Overrides::default(),
    );
    let mut checked = check(text, &context, &overrides);
    if checked.plan.is_none() {
        repair(text, &context, &overrides, &mut checked, &|| {
            text.len() > 200
        });
        let right = checked.right.as_deref();
        assert!(right.is_none_or(|right| check(right, &context, &overrides).plan.is_some()));
    }
    checked
}

/// The plan but for the lines that things stand on.
fn without_lines(plan: Option<Plan>) -> Option<Plan> {
    let mut plan = plan?;
    for measurement in &mut plan.measurements {
        measurement.line = 0;
    }
    Some(plan)
}

/// The blocks of a Markdown text stand in it, and formatting them twice is formatting them once.
fn markdown(text: &str) {
    for block in markdown_blocks(text) {
        assert_eq!(text.get(block.span.clone()), Some(block.text(text)));
        assert_eq!(block.in_place(text).len(), block.span.end);
    }
    match format_markdown(text) {
        Ok(once) => assert_eq!(format_markdown(&once).as_deref(), Ok(once.as_str())),
        Err(mistakes) => {
            for mistake in mistakes {
                assert!(text.get(mistake.span).is_some());
            }
        }
    }
}

fuzz_target!(|text: &str| {
    markdown(text);
    let before = checked(text);
    let errors = before
        .diagnostics
        .iter()
        .any(|d| d.severity == Severity::Error);
    assert_eq!(before.plan.is_none(), errors);
    for diagnostic in &before.diagnostics {
        assert!(text.get(diagnostic.span.clone()).is_some());
    }
    let Ok(once) = format(text) else { return };
    assert_eq!(format(&once).as_deref(), Ok(once.as_str()));
    assert_eq!(
        without_lines(before.plan),
        without_lines(checked(&once).plan)
    );
});
