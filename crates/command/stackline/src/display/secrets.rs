//! The secrets of the services of a display: from a file, the environment, or the usual file of this user, which serving makes. None is ever an
//! argument, which every user of the machine can read.

use crate::exit::{Error, Result};
use crate::output;
use stackline_displayserver::address::DisplayAddress;
use stackline_guard::secret::{FoundSecret, Secret, SecretSource};
use std::path::Path;

/// Whose secret: the variable of the environment, and the name of the usual file.
pub(super) type Of = (&'static str, &'static str);

/// Of displays and their agents.
pub(super) const DISPLAY: Of = ("STACKLINE_DISPLAY_SECRET", "display.secret");
/// Of terminals.
pub(super) const TERMINAL: Of = ("STACKLINE_TERMINAL_SECRET", "terminal.secret");
/// Of V-servers.
pub(super) const VSERVER: Of = ("STACKLINE_VSERVER_SECRET", "vserver.secret");
/// Of internet servers.
pub(super) const INTERNET: Of = ("STACKLINE_INTERNET_SECRET", "internet.secret");

/// Bytes of a secret that the protocols have room for.
const MOST: usize = 255;

const fn source(of: Of, file: Option<&Path>) -> SecretSource<'_> {
    let (variable, usual) = of;
    SecretSource {
        file,
        variable,
        usual,
    }
}

fn check_secret(found: FoundSecret) -> Result<Secret> {
    if let Some(note) = found.note {
        output::say(&note);
    }
    if found.secret.bytes().len() > MOST {
        return Err(
            Error::input(format!("the secret must not exceed {MOST} bytes"))
                .hint("choose a shorter one"),
        );
    }
    Ok(found.secret)
}

/// The secret of a service that begins.
pub(super) fn find_or_make_secret(of: Of, file: Option<&Path>) -> Result<Secret> {
    check_secret(source(of, file).find_or_make()?)
}

/// The secret of a service that is asked, where this user has it.
pub(super) fn find_secret(of: Of, file: Option<&Path>) -> Result<Option<Secret>> {
    source(of, file).find()?.map(check_secret).transpose()
}

/// An address with the secret of the internet server in it, where there is one.
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
