//! What is said where nobody is at an address, with the command that serves what was wanted there. It looks for nobody.

use super::DisplayAddress;
use stackline_core::error::Error;
use std::io::{self, ErrorKind};

/// What is wanted at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplayServiceKind {
    /// A display.
    Display,
    /// A display's page.
    Page,
    /// Programs on terminals.
    Terminal,
    /// Whatever streams come to, for an internet server.
    Stream,
}

impl DisplayServiceKind {
    /// Nobody serves it there.
    pub(crate) fn absent(self, address: &DisplayAddress, why: &io::Error) -> Error {
        let listen = listens(address);
        if why.kind() == ErrorKind::Unsupported
            && let DisplayAddress::Ngp(below, ..) = address
        {
            return Error::environment(format!("no display answers at {address}: {why}")).hint(
                format!(
                    "leave `ngp:` out, or let the display listen at ngp:{} as well",
                    elsewhere(below)
                ),
            );
        }
        if !address.has_host() {
            return Error::environment(format!("cannot resolve the host of {address}: {why}")).hint(
                "an address is HOST:PORT or unix:PATH, with ikp:, pup:, blast:, ngp: or vio:HOST:PORT/ before it where that is meant",
            );
        }
        match self {
            Self::Display => Error::environment(format!("no display answers at {address}: {why}"))
                .hint(format!("`stackline display serve --listen {listen}` serves one; `--to` says where it is")),
            Self::Page => Error::environment(format!("no display answers at {address}: {why}"))
                .hint(format!("`stackline display serve --view {listen}` shows one there")),
            Self::Terminal => Error::environment(format!("no terminal is served at {address}: {why}"))
                .hint(format!("`stackline display terminal --listen {listen} -- PROGRAM` serves one")),
            Self::Stream => Error::environment(format!("the internet server finds nobody at {address}: {why}")),
        }
    }
}

/// A place beside that one.
fn elsewhere(address: &DisplayAddress) -> String {
    match (address, address.host_port()) {
        (DisplayAddress::Unix(_), _) => "unix:ANOTHER_PATH".into(),
        (_, Some((scheme, _))) => format!("{}HOST:ANOTHER_PORT", scheme.prefix),
        _ => "HOST:ANOTHER_PORT".into(),
    }
}

/// Where one listens who is found at that address.
fn listens(address: &DisplayAddress) -> String {
    match address {
        DisplayAddress::Vio(_, _, to) => to.to_string(),
        DisplayAddress::Ngp(below, ..) => format!("ngp:{}", listens(below)),
        other => other.to_string(),
    }
}

/// No internet server is there, or it refuses.
pub(super) fn internet(server: &str, why: &io::Error) -> Error {
    if why.kind() == ErrorKind::PermissionDenied {
        let refused = Error::environment(format!(
            "the internet server at ikp:{server} refuses it: {why}"
        ));
        if !why.to_string().contains("secret") {
            return refused
                .hint("end one of its clients, or start another: `stackline display internet --listen ikp:HOST:PORT`");
        }
        return refused.hint(
            "its secret is in ~/.config/stackline/internet.secret of the user who serves it: copy it there, or set STACKLINE_INTERNET_SECRET",
        );
    }
    Error::environment(format!("no internet server answers at ikp:{server}: {why}")).hint(format!(
        "`stackline display internet --listen ikp:{server}` serves one"
    ))
}
