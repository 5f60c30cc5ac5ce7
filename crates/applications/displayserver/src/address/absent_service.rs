//! The errors for an address where nobody answers, with the command that starts the wanted service there.

use super::variants::DisplayAddress;
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
        let listen = address.scheme().listens();
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

/// The error that a V-server's program cannot be reached.
#[must_use]
pub fn program_not_served(at: &DisplayAddress, error: &io::Error) -> Error {
    match error.kind() {
        ErrorKind::PermissionDenied => Error::environment(format!("the V-server at {at} refused the request: {error}"))
            .hint("the secret is in ~/.config/stackline/vserver.secret, in the home directory of the user who runs the V-server: copy that file, or specify another with --secret-file"),
        _ => Error::environment(format!("no program is served at {at}: {error}"))
            .hint(format!("`stackline display vserver --listen {at} -- PROGRAM` serves one")),
    }
}

/// The error if no internet server answers there, or it refuses.
pub(crate) fn internet(server: &str, why: &io::Error) -> Error {
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
