//! Chooses among the networks that a specification declares, and explains when there is none of that name.

use crate::checked_plan::SpecSource;
use crate::exit::{Error, Result};
use stackline_core::network::Network;

/// The network of that name, or all of them.
pub(super) fn choose_network<'n>(
    networks: &'n [Network],
    name: Option<&str>,
    source: &SpecSource,
) -> Result<Vec<&'n Network>> {
    let wanted = |network: &&Network| name.is_none_or(|name| network.name == name);
    let found: Vec<&Network> = networks.iter().filter(wanted).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    Err(describe_missing(networks, name, source))
}

/// The error for a network name that is not declared, or for a specification without networks.
pub(super) fn describe_missing(
    networks: &[Network],
    name: Option<&str>,
    source: &SpecSource,
) -> Error {
    if networks.is_empty() {
        let hint = "declare one, such as `network wan { host a, b; link a - b 100 Mbit/s 10 ms; }`";
        return Error::input(format!("{} does not declare a network", source.name)).hint(hint);
    }
    let names: Vec<&str> = networks
        .iter()
        .map(|network| network.name.as_str())
        .collect();
    let message = format!(
        "{} does not declare a network named {}",
        source.name,
        name.unwrap_or_default()
    );
    Error::input(message).hint(format!("it declares {}", names.join(", ")))
}

/// Removes advice to use the simulated world from an error: programs cannot run there.
pub(super) fn emulated_only(mut refusal: Error) -> Error {
    refusal.hint = refusal.hint.and_then(|hint| {
        let choices = hint
            .split(" or ")
            .map(|choice| choice.trim_end_matches([' ', ',', ';']));
        let left: Vec<&str> = choices
            .filter(|choice| !choice.contains("--in simulated"))
            .collect();
        (!left.is_empty()).then(|| left.join(", or "))
    });
    refusal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_program_is_sent_to_the_simulated_world() {
        let hint = |text: &str| emulated_only(Error::input("no").hint(text)).hint;
        assert_eq!(
            hint("use `--in simulated`, which needs nothing from the machine"),
            None
        );
        assert_eq!(
            hint("use `--in simulated`, which needs nothing, or allow it: sysctl -w a=1")
                .as_deref(),
            Some("allow it: sysctl -w a=1")
        );
        assert_eq!(
            hint("use `ulimit -Hn 9` or `--in simulated`").as_deref(),
            Some("use `ulimit -Hn 9`")
        );
        assert_eq!(hint("another name").as_deref(), Some("another name"));
    }
}
