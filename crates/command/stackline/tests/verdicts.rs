//! The one verdict on what a specification may ask for: every option of every stack at its bounds and beyond, in each world,
//! judged in process by the function that all commands call; and some of them through the commands.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

use stackline_core::catalogue::{OptionKind, OptionTable, StackTable};
use stackline_core::plan::World;
use stackline_spec::{
    Available, CheckContext, Checked, Diagnostic, Overrides, Severity, TextOrigin, check,
};
use std::process::Command;

/// A path that carries every packet there is.
const WIDE: &str = "network wide { host a, b; link a - b 1 Gbit/s 1 ms mtu 65535; }\n";
/// The same of IMPs.
const IMPS: &str = "network wide { host a, b; imp x, y 516; link a - x 100 kbit/s 0 us; link b - y 100 kbit/s 0 us; link x - y 50 kbit/s 1 ms; }\n";

/// One text and whether it is allowed.
#[derive(Debug)]
struct Case {
    world: World,
    stack: String,
    /// Whether it goes across IMPs.
    imps: bool,
    allowed: bool,
}

impl Case {
    fn text(&self) -> String {
        let Self {
            world, stack, imps, ..
        } = self;
        let network = if *imps { IMPS } else { WIDE };
        match world {
            World::Live => format!("1 bulk_put 64*1 over {stack} in live;"),
            _ => {
                format!("{network}1 from a to b bulk_put 64*1 over {stack} across wide in {world};")
            }
        }
    }
}

/// The live stacks whose responder is ours; those of far ends need a server. What a stack has to have written is written before each of its
/// options.
fn own_stacks() -> Vec<StackTable> {
    let mut stacks = stackline_live::stacks::stack_tables();
    stacks.retain(|stack| !stack.far_end);
    stacks
}

fn worlds<R>(judge: impl FnOnce(&[Available<'_>]) -> R) -> R {
    let (real, simulated) = (own_stacks(), stackline_sim::stack_tables());
    judge(&[
        Available {
            can: stackline_live::CAPABILITIES,
            stacks: &real,
        },
        Available {
            can: stackline_emu::CAPABILITIES,
            stacks: &real,
        },
        Available {
            can: stackline_sim::CAPABILITIES,
            stacks: &simulated,
        },
    ])
}

fn verdict(text: &str) -> Checked {
    let no_file = |_: &str| Err("no file".to_string());
    worlds(|worlds| {
        check(
            text,
            &CheckContext {
                worlds,
                read_file: &no_file,
                cores: &[],
            },
            &Overrides::default(),
        )
    })
}

/// What may be written of an option, and what may not.
fn values(option: &OptionTable) -> (Vec<String>, Vec<String>) {
    let name = option.name;
    let with = |value: &dyn std::fmt::Display| format!("{name} = {value}");
    let (right, wrong): (Vec<String>, Vec<String>) = match option.kind {
        OptionKind::Flag => (vec![name.to_string()], vec![with(&1)]),
        OptionKind::Bytes(least, most) | OptionKind::Number(least, most) => {
            let below = least.checked_sub(1).map(|below| with(&below));
            (
                vec![with(&least), with(&most)],
                below
                    .into_iter()
                    .chain([with(&(most + 1)), name.to_string()])
                    .collect(),
            )
        }
        OptionKind::Time => (vec![with(&"1 s")], vec![with(&"1 B"), name.to_string()]),
        OptionKind::Word(words) => (
            words.iter().map(|word| with(word)).collect(),
            vec![with(&"nothing_of_the_kind")],
        ),
        OptionKind::Name => (vec![with(&"lo")], vec![with(&3), name.to_string()]),
        OptionKind::Text(most) => {
            let text = |bytes: u64| format!("{name} = \"{}\"", "x".repeat(bytes as usize));
            let wrong = vec![
                text(0),
                text(most + 1),
                with(&"x"),
                with(&3),
                name.to_string(),
            ];
            (vec![text(1), text(most)], wrong)
        }
    };
    let twice = right
        .iter()
        .take(1)
        .map(|written| format!("{written}, {written}"))
        .collect::<Vec<_>>();
    (right, wrong.into_iter().chain(twice).collect())
}

fn cases() -> Vec<Case> {
    let of_stack = |world: World, networks: bool, table: &StackTable| {
        let name = table.name;
        let imps = table.imps;
        let case = |written: String, allowed| Case {
            world,
            stack: format!("{name}({written})"),
            imps,
            allowed,
        };
        // What stays within one host crosses no network, raw frames cross no network of IP.
        let crosses =
            |written: &str| !networks || (!table.one_host && !written.contains("ethernet"));
        let required = table.required;
        let mut cases = vec![Case {
            world,
            stack: name.to_string(),
            imps,
            allowed: required.is_empty() && crosses(""),
        }];
        for option in table.options {
            let (right, wrong) = values(option);
            // What means nothing by itself is allowed with what it needs alone, and with what that needs.
            let need = |name: &str| {
                let mut needs = table.needs.iter();
                needs.find(|(one, _)| *one == name).map(|(_, other)| *other)
            };
            let name = |entry: &'static str| entry.split(" = ").next().unwrap_or(entry);
            let needed = std::iter::successors(need(option.name), |entry| need(name(entry)));
            let company = needed.filter_map(|entry| match table.option(entry) {
                Some(needed) => values(needed).0.pop(),
                None => entry.split('|').next().map(str::to_string),
            });
            let company: Vec<String> = company.collect();
            cases.extend(
                company
                    .iter()
                    .take(1)
                    .flat_map(|_| &right)
                    .map(|written| case(written.clone(), false)),
            );
            let others = required.iter().filter(|other| **other != option.name);
            let others: Vec<String> = others.map(|name| format!("{name} = \"x\"")).collect();
            let whole = |written: String| {
                company
                    .iter()
                    .chain(&others)
                    .fold(written, |written, other| format!("{written}, {other}"))
            };
            cases.extend(
                right
                    .into_iter()
                    .map(|written| case(whole(written.clone()), crosses(&written))),
            );
            cases.extend(wrong.into_iter().map(|written| case(whole(written), false)));
        }
        for set in table.exclusive {
            let pairs = set
                .iter()
                .enumerate()
                .flat_map(|(at, one)| set[at + 1..].iter().map(move |other| (one, other)));
            cases.extend(pairs.map(|(one, other)| case(format!("{one}, {other}"), false)));
        }
        cases
    };
    worlds(|worlds| {
        let of_world = |world: &Available<'_>| {
            world
                .stacks
                .iter()
                .flat_map(|table| of_stack(world.can.world, world.can.networks, table))
                .collect::<Vec<_>>()
        };
        worlds.iter().flat_map(of_world).collect()
    })
}

fn shown(diagnostics: &[Diagnostic]) -> String {
    diagnostics
        .iter()
        .map(|d| format!("{}\n", d.message))
        .collect()
}

#[test]
fn every_option_is_allowed_within_its_bounds_and_nowhere_else() {
    let cases = cases();
    assert!(cases.len() > 300, "{} cases", cases.len());
    for case in &cases {
        let text = case.text();
        let checked = verdict(&text);
        assert_eq!(
            checked.plan.is_some(),
            case.allowed,
            "{case:?}\n{text}\n{}",
            shown(&checked.diagnostics)
        );
        for error in checked
            .diagnostics
            .iter()
            .filter(|d| d.severity == Severity::Error)
        {
            let place = &text[error.span.clone()];
            assert!(
                error.origin == TextOrigin::File && !place.is_empty(),
                "{case:?}: {error:?} points nowhere"
            );
            assert!(
                error.hint.is_some(),
                "{case:?}: no hint beside `{}`",
                error.message
            );
        }
    }
}

#[test]
fn agents_and_the_simulator_accept_what_check_accepts() {
    worlds(|worlds| {
        for case in cases().iter().filter(|case| case.allowed) {
            let plan = verdict(&case.text()).plan.unwrap();
            let stack = &plan.measurements[0].parts[0].stack;
            let stacks = worlds
                .iter()
                .find(|world| world.can.world == case.world)
                .unwrap()
                .stacks;
            let table = stacks
                .iter()
                .find(|table| table.name == stack.name)
                .unwrap();
            assert_eq!(table.accepts(stack), Ok(()), "{case:?}");
        }
    });
}

/// Exit codes of `check`, `plan`, `predict` and `run`.
fn exit_codes(text: &str) -> Vec<Option<i32>> {
    let runs = tempfile::tempdir().unwrap();
    let code = |command: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_stackline"));
        child
            .args([command, "-e", text])
            .env("STACKLINE_RUNS", runs.path())
            .current_dir(runs.path());
        child.output().unwrap().status.code()
    };
    ["check", "plan", "predict", "run"].map(code).to_vec()
}

#[test]
fn all_commands_give_the_same_verdict() {
    let cases = cases();
    let refused = cases
        .iter()
        .filter(|case| !case.allowed)
        .step_by(cases.len() / 18)
        .take(14);
    for case in refused {
        assert_eq!(exit_codes(&case.text()), [Some(2); 4], "{case:?}");
    }
    let allowed = cases
        .iter()
        .filter(|case| case.allowed && case.world == World::Simulated);
    for case in allowed.step_by(9).take(6) {
        assert_eq!(exit_codes(&case.text()), [Some(0); 4], "{case:?}");
    }
}

/// Bounds of the live tables are those of the kernel: what `check` accepts there is not refused by a socket. Ports are left
/// out, since low ones need rights.
#[test]
fn the_kernel_accepts_the_bounds_of_live_options() {
    let mptcp =
        std::fs::read_to_string("/proc/sys/net/mptcp/enabled").is_ok_and(|text| text.trim() == "1");
    let bounded = |option: &&OptionTable| {
        matches!(option.kind, OptionKind::Bytes(..) | OptionKind::Number(..))
            && option.kind != OptionKind::PORT
    };
    let at_bounds = |table: &StackTable| -> Vec<String> {
        let options = table.options.iter().filter(bounded);
        options
            .flat_map(|option| values(option).0)
            .map(|written| format!("{}({written})", table.name))
            .collect()
    };
    let mut tables = own_stacks();
    tables.retain(|table| mptcp || table.name != "mptcp");
    let (calling, moving): (Vec<_>, Vec<_>) = tables
        .iter()
        .partition(|table| table.mapping.maps("RPCCall"));
    let calling: Vec<String> = calling.into_iter().flat_map(at_bounds).collect();
    let moving: Vec<String> = moving.into_iter().flat_map(at_bounds).collect();
    assert!(
        calling.len() > 20 && moving.len() > 5,
        "{calling:?}, {moving:?}"
    );
    let runs = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_stackline"));
    child.args([
        "run",
        "-e",
        &format!(
            "1 rr 64*1 over {} in live; 1 bulk_put 64*1 over {} in live;",
            calling.join(", "),
            moving.join(", ")
        ),
    ]);
    let output = child
        .env("STACKLINE_RUNS", runs.path())
        .current_dir(runs.path())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A specification, and who must refuse it with which words; nobody where there are none.
#[test]
fn what_a_world_cannot_do_is_refused_by_every_command() {
    const NARROW: &str = "network n { host a, b; link a - b 10 Mbit/s 1 ms mtu 600; }\n";
    const PLAIN: &str = "network n { host a, b; link a - b 10 Mbit/s 1 ms; }\n";
    const CLOCK: &str =
        "network n { host a { clock ahead 5 ms; } host b; link a - b 10 Mbit/s 1 ms; }\n";
    for (network, part, world, words) in [
        (
            PLAIN,
            "1 from a to b rr 32*1 across n",
            "live",
            "the live world cannot model the network `n`",
        ),
        (
            NARROW,
            "1 from a to b bulk_put 1024*2 over quic across n",
            "simulated",
            "too large for the path",
        ),
        (
            NARROW,
            "1 from a to b bulk_put 1024*2 over ikp across n",
            "simulated",
            "too large for the path",
        ),
        (
            PLAIN,
            "1 from a to b bulk_put 1024*2 over blast(packet = 9000) across n",
            "emulated",
            "too large for the path",
        ),
        (
            PLAIN,
            "1 from a to b bulk_put 1024*2 over blast(full, partial) across n",
            "simulated",
            "not both",
        ),
        (
            PLAIN,
            "1 from a to a rr 32*1 across n",
            "simulated",
            "would send to itself",
        ),
        (
            PLAIN,
            "1 from a to b rr 32*1 over unix across n",
            "emulated",
            "within one host",
        ),
        (
            PLAIN,
            "1 from a to b rr 32*1 over tcp on cpu 0 across n",
            "simulated",
            "no cores",
        ),
        (
            PLAIN,
            "1 from a to b bulk_put 10*10 < virtual memory across n",
            "simulated",
            "not simulated",
        ),
        (
            CLOCK,
            "1 from a to b rr 32*1 across n",
            "emulated",
            "has a clock of its own",
        ),
        (
            "",
            "1 rr 32*1 over tcp(receive_buffer = 3 GiB)",
            "live",
            "receive_buffer",
        ),
        (
            "",
            "1 rr 32*1 over tcp(receive_buffer = 0)",
            "live",
            "receive_buffer",
        ),
    ] {
        let text = format!("{network}{part} in {world};");
        let checked = verdict(&text);
        assert!(checked.plan.is_none(), "{text}");
        assert!(
            shown(&checked.diagnostics).contains(words),
            "{text}\n{}",
            shown(&checked.diagnostics)
        );
        assert_eq!(exit_codes(&text), [Some(2); 4], "{text}");
    }
}
