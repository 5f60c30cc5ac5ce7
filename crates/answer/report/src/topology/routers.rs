//! Routers in words: what they translate and refuse, and the routes that are written at nodes.

use crate::phrases::Phrases;
use stackline_core::network::{RouterSettings, StaticRoute};

/// The address of a router, by its index among switches and routers; `None` if 10.70.0.0/16 has no more.
pub(super) fn router_address(switch: usize) -> Option<String> {
    let third = u8::try_from(switch / 250).ok()?;
    Some(format!("10.70.{third}.{}", switch % 250 + 1))
}

/// The properties of a router that are not the defaults.
pub(super) fn describe_router(router: &RouterSettings) -> Vec<String> {
    let mut said = Vec::new();
    said.when(router.silent, "no ICMP");
    said.with(router.nat.as_ref(), |nat| {
        format!(
            "translates addresses to {} ({} entries, idle for {})",
            nat.outside, nat.entries, nat.timeout
        )
    });
    said.with(router.firewall.as_ref(), |firewall| {
        let answer = if firewall.rejects { "rejects" } else { "drops" };
        format!(
            "{answer} what comes unasked from {} ({} entries, idle for {})",
            firewall.outside, firewall.entries, firewall.idle
        )
    });
    said
}

/// The routes of a node, in one phrase each.
pub(super) fn describe_routes(routes: &[StaticRoute]) -> impl Iterator<Item = String> {
    routes.iter().map(|route| {
        let to = route.to.as_deref().unwrap_or("all others");
        format!("to {to} via {}", route.via.join(" or "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_core::network::{FirewallSettings, NatSettings};

    #[test]
    fn what_is_not_the_default_is_described() {
        assert!(describe_router(&RouterSettings::default()).is_empty());
        let router = RouterSettings {
            silent: true,
            nat: Some(NatSettings {
                outside: "isp".into(),
                timeout: NatSettings::TIMEOUT,
                entries: 10,
            }),
            firewall: Some(FirewallSettings {
                outside: "isp".into(),
                idle: FirewallSettings::IDLE,
                entries: 20,
                rejects: true,
            }),
        };
        let said = describe_router(&router);
        assert_eq!(said[0], "no ICMP");
        assert!(said[1].starts_with("translates addresses to isp (10 entries, idle for "));
        assert!(said[2].starts_with("rejects what comes unasked from isp (20 entries, "));
        assert_eq!(router_address(250).as_deref(), Some("10.70.1.1"));
    }
}
