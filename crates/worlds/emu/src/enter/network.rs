//! Entering the network of a host: a process that has one thread moves to the host's namespaces. It starts no program.

use crate::error::{self, Result};
use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::path::Path;

/// Moves this process to a host's network, by the paths of its namespaces. Called at the start of the process, while it
/// has one thread. There is a user namespace only if the hosts were made by a user other than root.
pub fn enter_network(user: Option<&Path>, net: &Path) -> Result<()> {
    let open = |path: &Path| {
        let gone = |error| {
            error::environment(format!(
                "cannot open the host's namespace {}: {error}",
                path.display()
            ))
        };
        File::open(path).map_err(gone)
    };
    let (user, net) = (user.map(open).transpose()?, open(net)?);
    if let Some(user) = user {
        setns(user, CloneFlags::CLONE_NEWUSER)
            .map_err(|e| error::call_failed("entering the user namespace", e))?;
    }
    setns(net, CloneFlags::CLONE_NEWNET)
        .map_err(|e| error::call_failed("entering the network namespace", e))
}
