//! Finds what an application runs across when no measurement of a specification names it: one network of a
//! specification, by its name, and the stack that a flag gives.

use crate::spec_source::SpecSource;
use stackline_core::error::{Error, Result};
use stackline_core::network::Network;
use stackline_core::plan::{Plan, Stack, World};
use stackline_spec::Overrides;

/// The network with that name, or, without a name, the only network that the specification declares.
///
/// # Errors
/// When there is none, or several match.
pub fn choose_one_network(
    networks: Vec<Network>,
    specification: &str,
    name: Option<&str>,
) -> Result<Network> {
    let named: Vec<Network> = networks
        .into_iter()
        .filter(|network| name.is_none_or(|name| *name == network.name))
        .collect();
    match <[Network; 1]>::try_from(named) {
        Ok([network]) => Ok(network),
        Err(none) if none.is_empty() => {
            let name = name.map_or_else(String::new, |name| format!(" named {name}"));
            Err(
                Error::input(format!("{specification} declares no network{name}"))
                    .hint("`network NAME { host a, b; link a - b 100 Mbit/s 5 ms; }` declares one"),
            )
        }
        Err(several) => {
            let names: Vec<&str> = several
                .iter()
                .map(|network| network.name.as_str())
                .collect();
            Err(
                Error::input(format!("{specification} declares {} networks", names.len())).hint(
                    format!("specify one: --network {}", names.join(" or --network ")),
                ),
            )
        }
    }
}

/// Parses a stack as `--over` gives it, and checks it against the stacks of a world. It is read inside a small
/// specification, so that the language's own rules apply.
///
/// # Errors
/// When the stack is unknown, or not possible in that world.
pub fn parse_stack(over: &str, world: World) -> Result<Stack> {
    let pair = "network pair { host a, b; link a - b 1 Gbit/s 1 ms; }\n1 from a to b rr 1*1 over ";
    let text = format!("{pair}{over} across pair in {world};");
    let source = SpecSource::made("--over", text);
    let listed = || {
        format!(
            "`stackline stacks --in {world}` lists the stacks; add a stack's name to list its \
             options"
        )
    };
    let plan: Plan = source
        .plan_in(world, Overrides::default())
        .map_err(|error| error.within(&format!("--over {over}")).hint(listed()))?;
    let stack = plan
        .measurements
        .first()
        .and_then(|measurement| measurement.parts.first());
    let none = || {
        Error::input(format!("--over {over} is not a known stack"))
            .hint("as in --over 'tcp(nodelay)'")
    };
    stack.map(|part| part.stack.clone()).ok_or_else(none)
}
