//! Explains errors of the raw Ethernet carrier: why raw frames cannot be used here, and what the user can do.

use socket2::Socket;
use stackline_os::packet_socket::InterfaceProperties;
use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};

/// Why raw frames cannot be used here; inside an [`io::Error`], see [`io::Error::get_ref`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// One sentence.
    pub message: String,
    /// What the user can do.
    pub hint: &'static str,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\nhint: {}", self.message, self.hint)
    }
}

impl Error for Unusable {}

fn unusable(kind: ErrorKind, message: String, hint: &'static str) -> io::Error {
    io::Error::new(kind, Unusable { message, hint })
}

/// Passes a packet socket on, or explains why it could not be opened.
pub(super) fn explain_denied_socket(socket: io::Result<Socket>) -> io::Result<Socket> {
    socket.map_err(|error| match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => unusable(
            ErrorKind::PermissionDenied,
            "raw Ethernet frames need permission to open packet sockets (CAP_NET_RAW)".into(),
            "run the program as root, give it the capability (`setcap cap_net_raw+ep PROGRAM`), or run it in its own network namespace (`unshare --map-root-user --net`)",
        ),
        Some(libc::EAFNOSUPPORT) => unusable(
            ErrorKind::Unsupported,
            "this kernel has no packet sockets".into(),
            "load the module af_packet (CONFIG_PACKET), or use UDP",
        ),
        _ => error,
    })
}

/// Passes on the properties of an interface that is up and carries Ethernet frames, or explains why it cannot be used.
pub(super) fn require_usable(
    name: &str,
    interface: io::Result<InterfaceProperties>,
) -> io::Result<InterfaceProperties> {
    let interface = interface.map_err(|error| match (error.kind(), error.raw_os_error()) {
        (ErrorKind::NotFound, _) | (_, Some(libc::ENODEV)) => unusable(
            ErrorKind::NotFound,
            format!("unknown network interface `{name}`"),
            "`ip link` lists the interfaces of this network namespace",
        ),
        _ => error,
    })?;
    if !matches!(interface.kind, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK) {
        let message = format!("the network interface `{name}` is not Ethernet");
        return Err(unusable(ErrorKind::Unsupported, message, "use UDP there"));
    }
    if !interface.up {
        let message = format!("the network interface `{name}` is down");
        return Err(unusable(
            ErrorKind::NetworkDown,
            message,
            "`ip link set NAME up`",
        ));
    }
    Ok(interface)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_rights_are_reported_with_a_hint() {
        let refused =
            |code| explain_denied_socket(Err(io::Error::from_raw_os_error(code))).unwrap_err();
        let error = refused(libc::EPERM);
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert!(
            error.to_string().contains("CAP_NET_RAW")
                && error
                    .to_string()
                    .contains("\nhint: run the program as root")
        );
        assert_eq!(refused(libc::EAFNOSUPPORT).kind(), ErrorKind::Unsupported);
        assert_eq!(refused(libc::EMFILE).raw_os_error(), Some(libc::EMFILE));
    }

    #[test]
    fn tunnels_carry_no_ethernet_frames() {
        let tunnel = InterfaceProperties {
            index: 1,
            kind: libc::ARPHRD_NONE,
            up: true,
            mtu: 1500,
            address: [0; 6],
        };
        assert_eq!(
            require_usable("tun0", Ok(tunnel)).unwrap_err().kind(),
            ErrorKind::Unsupported
        );
        assert!(
            require_usable(
                "eth0",
                Ok(InterfaceProperties {
                    kind: libc::ARPHRD_ETHER,
                    ..tunnel
                })
            )
            .is_ok()
        );
    }
}
