//! Chooses among the networks that a specification declares, for programs that are carried out on one; explains when there is none of that
//! name, or none with that host.

use stackline_core::error::{Error, Result};
use stackline_core::network::Network;

/// The name as it has to be written in a shell.
#[must_use]
pub fn quoted(name: &str) -> String {
    if name.contains('(') {
        format!("'{name}'")
    } else {
        name.to_string()
    }
}

/// The network of that name, or all of them. `specification` is the name of the text that declares them.
///
/// # Errors
/// If there is none.
pub fn choose_networks<'n>(
    networks: &'n [Network],
    name: Option<&str>,
    specification: &str,
) -> Result<Vec<&'n Network>> {
    let wanted = |network: &&Network| name.is_none_or(|name| network.name == name);
    let found: Vec<&Network> = networks.iter().filter(wanted).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    Err(describe_missing(networks, name, specification))
}

/// The error for a network name that is not declared, or for a specification without networks.
#[must_use]
pub fn describe_missing(networks: &[Network], name: Option<&str>, specification: &str) -> Error {
    if networks.is_empty() {
        let hint = "declare one, such as `network wan { host a, b; link a - b 100 Mbit/s 10 ms; }`";
        return Error::input(format!("{} does not declare a network", specification)).hint(hint);
    }
    let names: Vec<&str> = networks
        .iter()
        .map(|network| network.name.as_str())
        .collect();
    let message = format!(
        "{} does not declare a network named {}",
        specification,
        name.unwrap_or_default()
    );
    Error::input(message).hint(format!("it declares {}", names.join(", ")))
}

/// Removes advice to use the simulated world from an error: programs cannot run there.
#[must_use]
pub fn emulated_only(mut refusal: Error) -> Error {
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

/// The network of that name that has that host, or the only one that has it.
///
/// # Errors
/// If there is none, or several.
pub fn choose_host_network<'n>(
    networks: &'n [Network],
    host: &str,
    name: Option<&str>,
    specification: &str,
) -> Result<&'n Network> {
    let named: Vec<&Network> = networks
        .iter()
        .filter(|network| name.is_none_or(|name| network.name == name))
        .collect();
    if named.is_empty() {
        return Err(describe_missing(networks, name, specification));
    }
    let holding: Vec<&Network> = named
        .iter()
        .copied()
        .filter(|network| network.host(host).is_some())
        .collect();
    match holding[..] {
        [] => Err(unknown_host(host, &named)),
        [network] => Ok(network),
        _ => {
            let names: Vec<String> = holding
                .iter()
                .map(|network| format!("--network {}", quoted(&network.name)))
                .collect();
            let message = format!("{} networks have a host named {host}", holding.len());
            Err(Error::input(message).hint(format!("choose one with {}", names.join(" or "))))
        }
    }
}

/// The error for a host that none of these networks has.
#[must_use]
pub fn unknown_host(host: &str, networks: &[&Network]) -> Error {
    let names: Vec<&str> = networks
        .iter()
        .flat_map(|network| &network.hosts)
        .map(|host| host.name.as_str())
        .collect();
    let whose = match networks {
        [network] => format!("the network {} has no host", network.name),
        _ => "none of the networks has a host".to_string(),
    };
    let near = stackline_spec::nearest(host, names.iter().copied());
    let hint = near.map_or_else(
        || format!("the hosts are {}", names.join(", ")),
        |near| format!("did you mean `{near}`?"),
    );
    Error::input(format!("{whose} {host}")).hint(hint)
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
