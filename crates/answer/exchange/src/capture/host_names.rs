//! Names the host of a capture after its address, if the user did not name it and the interface name is a generic one. Other hosts are
//! also named after their addresses.

use std::collections::BTreeSet;
use std::net::IpAddr;

/// Prefixes of interface names that many machines share; a number follows.
const OF_INTERFACES: [&str; 12] = [
    "br-", "docker", "en", "eth", "ppp", "tap", "tun", "veth", "wg", "wl", "wlan", "wwan",
];

/// The name of a host after its address; `None` to keep its name, because the name is not a generic interface name or the host has
/// several addresses.
pub(super) fn name_by_address(name: &str, addresses: &BTreeSet<IpAddr>) -> Option<String> {
    let mut own = addresses.iter().filter(|address| !address.is_loopback());
    let one = own.next().filter(|_| own.next().is_none())?;
    is_interface(name).then(|| one.to_string())
}

/// Whether a name is a generic one of an interface.
fn is_interface(name: &str) -> bool {
    let has_number = name.bytes().any(|byte| byte.is_ascii_digit());
    let is_known = OF_INTERFACES.iter().any(|known| name.starts_with(known));
    matches!(name, "capture" | "any") || (has_number && is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_called_by_its_one_address() {
        let addresses = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let one: BTreeSet<IpAddr> = addresses(&["10.9.0.1", "127.0.0.1"]);
        for name in ["capture", "any", "eth0", "enp3s0", "wlan0", "veth12ab"] {
            assert_eq!(
                name_by_address(name, &one).as_deref(),
                Some("10.9.0.1"),
                "{name}"
            );
        }
        for name in ["web", "lo", "engine", "tapestry", "eth"] {
            assert_eq!(name_by_address(name, &one), None, "{name}");
        }
        for several in [
            &[][..],
            &["127.0.0.1"],
            &["10.9.0.1", "10.9.0.2"],
            &["10.9.0.1", "fe80::1"],
        ] {
            assert_eq!(
                name_by_address("any", &addresses(several)),
                None,
                "{several:?}"
            );
        }
    }
}
