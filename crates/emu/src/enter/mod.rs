//! Entering a host: a process that has one thread moves to the host's network, alone or with a program it runs there.
//!
//! It makes no hosts and keeps none; whoever enters holds a lease of the emulator meanwhile.

mod exec;
mod init;
mod signals;
mod view;

pub use exec::{Guest, exec};

use crate::refusal::{self, Result};
use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::path::Path;

/// Moves this process to a host's network, by the paths of its namespaces. At the start of the process, while it has one
/// thread; the user namespace is there only where a user who is not root made the hosts.
pub fn network(user: Option<&Path>, net: &Path) -> Result<()> {
    let open = |path: &Path| {
        let gone =
            |error| refusal::environment(format!("the host's namespace {} is not there: {error}", path.display()));
        File::open(path).map_err(gone)
    };
    let (user, net) = (user.map(open).transpose()?, open(net)?);
    if let Some(user) = user {
        setns(user, CloneFlags::CLONE_NEWUSER).map_err(|e| refusal::call("entering the user namespace", e))?;
    }
    setns(net, CloneFlags::CLONE_NEWNET).map_err(|e| refusal::call("entering the host's network", e))
}
