//! Finds the secrets of display services: in a file, the environment, or this user's default file, which a starting
//! service creates. A secret is never passed as an argument, which every user of the machine could read.

use crate::exit::Result;
use crate::output;
use stackline_displayserver::address::DisplayAddress;
use stackline_guard::secret::{FoundSecret, Secret, SecretSource};
use std::path::Path;

/// A kind of secret: its environment variable, and the name of its default file.
pub(super) type Of = (&'static str, &'static str);

/// The secret of displays and their agents.
pub(super) const DISPLAY: Of = ("STACKLINE_DISPLAY_SECRET", "display.secret");
/// The secret of terminals.
pub(super) const TERMINAL: Of = ("STACKLINE_TERMINAL_SECRET", "terminal.secret");
/// The secret of V-servers.
pub(super) const VSERVER: Of = ("STACKLINE_VSERVER_SECRET", "vserver.secret");
/// The secret of internet servers.
pub(super) const INTERNET: Of = ("STACKLINE_INTERNET_SECRET", "internet.secret");

const fn source(of: Of, file: Option<&Path>) -> SecretSource<'_> {
    let (variable, usual) = of;
    SecretSource {
        file,
        variable,
        usual,
    }
}

fn noted(found: FoundSecret) -> Secret {
    found.note.iter().for_each(output::say);
    found.secret
}

/// The secret of a service that is starting; it is created if there is none.
pub(super) fn find_or_make_secret(of: Of, file: Option<&Path>) -> Result<Secret> {
    source(of, file).find_or_make().map(noted)
}

/// The secret of a service to connect to, if this user has it.
pub(super) fn find_secret(of: Of, file: Option<&Path>) -> Result<Option<Secret>> {
    Ok(source(of, file).find()?.map(noted))
}

/// The address with the internet server's secret, if it leads through one and this user has the secret.
pub(super) fn add_internet_secret(address: &DisplayAddress) -> Result<DisplayAddress> {
    let secret = if address.is_through_server() {
        find_secret(INTERNET, None)?
    } else {
        None
    };
    Ok(secret.map_or_else(
        || address.clone(),
        |secret| address.clone().knowing(&secret),
    ))
}
