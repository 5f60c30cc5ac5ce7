//! The errors for an address where nobody answers, with the command that starts the wanted service there.

use super::DisplayAddress;
use stackline_core::error::Error;
use std::io::{self, ErrorKind};

/// The kind of service that is wanted at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplayServiceKind {
    /// A display.
    Display,
    /// The page that shows a display to browsers.
    Page,
    /// A terminal service.
    Terminal,
    /// Any stream, for an internet server.
    Stream,
}

impl DisplayServiceKind {
    /// The error if no such service answers there.
    pub(crate) fn absent(self, address: &DisplayAddress, why: &io::Error) -> Error {
        let listen = listens(address);
        if why.kind() == ErrorKind::Unsupported
            && let DisplayAddress::Ngp(below, ..) = address
        {
            return Error::environment(format!("no display answers at {address}: {why}")).hint(
                format!(
                    "omit `ngp:`, or make the display listen on ngp:{} as well",
                    elsewhere(below)
                ),
            );
        }
        if !address.has_host() {
            return Error::environment(format!("cannot resolve the host of {address}: {why}")).hint(
                "an address is HOST:PORT or unix:PATH, optionally preceded by ikp:, pup:, blast:, ngp: or vio:HOST:PORT/",
            );
        }
        match self {
            Self::Display => Error::environment(format!("no display answers at {address}: {why}"))
                .hint(format!("start one with `stackline display serve --listen {listen}`, or name a running one with `--to`")),
            Self::Page => Error::environment(format!("no display answers at {address}: {why}"))
                .hint(format!("start one there with `stackline display serve --view {listen}`")),
            Self::Terminal => Error::environment(format!("no terminal is served at {address}: {why}"))
                .hint(format!("serve one with `stackline display terminal --listen {listen} -- PROGRAM`")),
            Self::Stream => Error::environment(format!("the internet server cannot connect to {address}: {why}")),
        }
    }
}

/// Another address of the same kind, as an example.
fn elsewhere(address: &DisplayAddress) -> String {
    match (address, address.host_port()) {
        (DisplayAddress::Unix(_), _) => "unix:ANOTHER_PATH".into(),
        (_, Some((scheme, _))) => format!("{}HOST:ANOTHER_PORT", scheme.prefix),
        _ => "HOST:ANOTHER_PORT".into(),
    }
}

/// The address on which a service has to listen to be found at this one.
fn listens(address: &DisplayAddress) -> String {
    match address {
        DisplayAddress::Vio(_, _, to) => to.to_string(),
        DisplayAddress::Ngp(below, ..) => format!("ngp:{}", listens(below)),
        other => other.to_string(),
    }
}

/// The error if no internet server answers there, or it refuses.
pub(super) fn internet(server: &str, why: &io::Error) -> Error {
    if why.kind() == ErrorKind::PermissionDenied {
        let refused = Error::environment(format!(
            "the internet server at ikp:{server} refused the request: {why}"
        ));
        if !why.to_string().contains("secret") {
            return refused
                .hint("stop one of its clients, or start another server: `stackline display internet --listen \
                       ikp:HOST:PORT`");
        }
        return refused.hint(
            "the secret is in ~/.config/stackline/internet.secret, in the home directory of the user who runs the \
             server: copy that file, or set STACKLINE_INTERNET_SECRET",
        );
    }
    Error::environment(format!("no internet server answers at ikp:{server}: {why}")).hint(format!(
        "start one with `stackline display internet --listen ikp:{server}`"
    ))
}
