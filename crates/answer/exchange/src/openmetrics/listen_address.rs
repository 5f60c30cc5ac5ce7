//! The address of a command's `--listen` for metrics: this machine only, unless an address is written.

use std::net::{Ipv4Addr, SocketAddr};

/// Where `--listen` without a value listens.
pub const DEFAULT_METRICS_ADDRESS: &str = ":9464";

/// Parses `:PORT`, `localhost:PORT` (both on this machine only) or `ADDRESS:PORT`, such as `192.0.2.7:9464` or `[::]:9464`. Names of hosts
/// are not looked up, as an address that changes could open more than was meant.
///
/// # Errors
/// A sentence that says what to write.
pub fn parse_listen_address(text: &str) -> Result<SocketAddr, String> {
    let here = text
        .strip_prefix("localhost:")
        .or_else(|| text.strip_prefix(':'));
    let parsed = match here {
        Some(port) => port
            .parse()
            .ok()
            .map(|port| (Ipv4Addr::LOCALHOST, port).into()),
        None => text.parse().ok(),
    };
    parsed.ok_or_else(|| {
        "expected :PORT (this machine only) or ADDRESS:PORT, such as :9464, 192.0.2.7:9464 or [::]:9464"
            .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_means_this_machine_only() {
        for (written, meant) in [
            (DEFAULT_METRICS_ADDRESS, "127.0.0.1:9464"),
            ("localhost:0", "127.0.0.1:0"),
            ("0.0.0.0:9464", "0.0.0.0:9464"),
            ("[::1]:9464", "[::1]:9464"),
        ] {
            assert_eq!(parse_listen_address(written), Ok(meant.parse().unwrap()));
        }
        for wrong in ["", "9464", ":", ":70000", "khons:9464", "::1:", "192.0.2.7"] {
            assert!(
                parse_listen_address(wrong).unwrap_err().contains(":9464"),
                "{wrong}"
            );
        }
    }
}
