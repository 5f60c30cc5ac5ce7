//! Texts of the language that belong to papers: networks of their machines, stacks of the simulated world, and
//! specifications that are run there.

use stackline_core::error::{Error, Result};
use stackline_core::network::Network;
use stackline_core::plan::{Plan, Stack, World};
use stackline_core::random::Seed;
use stackline_runner::network_stack::parse_stack;
use stackline_sim::{CAPABILITIES, SimRunLimits, SimRunOutcome, SimRunScene};
use stackline_spec::{Available, CheckContext, Overrides, check};

fn plan(text: &str, declarations_only: bool) -> Option<Plan> {
    let none = |_: &str| Err("a profile cannot name files".to_owned());
    let stacks = stackline_sim::stack_tables();
    let worlds = [Available {
        can: CAPABILITIES,
        stacks: &stacks,
    }];
    let context = CheckContext {
        worlds: &worlds,
        read_file: &none,
        cores: &[],
    };
    check(
        text,
        &context,
        &Overrides {
            declarations_only,
            ..Overrides::default()
        },
    )
    .plan
}

/// All networks that a text declares.
///
/// # Errors
/// None occur for the texts of the papers.
pub(crate) fn networks(text: &str) -> Result<Vec<Network>> {
    let none = || Error::measurement("cannot read the paper's machines");
    Ok(plan(text, true).ok_or_else(none)?.networks)
}

/// The network of that name in a text.
///
/// # Errors
/// None occur for names that the text declares.
pub(crate) fn network(text: &str, name: &str) -> Result<Network> {
    let found = networks(text)?
        .into_iter()
        .find(|network| network.name == name);
    found.ok_or_else(|| Error::measurement(format!("the profile has no network {name}")))
}

/// A stack with its options, in the simulated world.
///
/// # Errors
/// None occur for options that exist.
pub(crate) fn stack(over: &str) -> Result<Stack> {
    parse_stack(over, World::Simulated)
}

/// Simulates the first run of the first specification of a text across its network, after `change` has changed the
/// network.
///
/// # Errors
/// When the run cannot be carried out.
pub(crate) fn carry_out(text: &str, change: impl Fn(&mut Network)) -> Result<SimRunOutcome> {
    let wrong = || {
        Error::measurement(format!(
            "invalid specification: {}",
            text.lines().last().unwrap_or_default()
        ))
    };
    let plan = plan(text, false).ok_or_else(wrong)?;
    let measurement = plan.measurements.first().ok_or_else(wrong)?;
    let across = |network: &&Network| Some(&network.name) == measurement.across.as_ref();
    let mut network = plan.networks.iter().find(across).ok_or_else(wrong)?.clone();
    change(&mut network);
    let seed = Seed::root(plan.seed)
        .child("measurement")
        .index(0)
        .child("run")
        .index(0);
    let limits = SimRunLimits::default();
    let scene = SimRunScene {
        network: &network,
        measurement,
        index: 0,
        run: 0,
        warmup: false,
        seed,
        limits,
        interrupted: None,
    };
    stackline_sim::carry_out(&scene, ()).map(|(outcome, ())| outcome)
}
