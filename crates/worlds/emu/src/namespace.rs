//! Namespaces of this process: a user namespace if one is needed to have the others, and one network namespace after
//! another, kept alive by file descriptors alone.
//!
//! A user who may make network namespaces (root, as a rule) gets no user namespace: programs on the hosts then have all
//! the rights they have outside. Other users get one in which user and group ids are unchanged, so that files keep
//! their owner and `whoami` is right: rights over the network are needed inside, not another id.

use crate::error::{self, Result};
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};
use std::fs::{self, File};
use std::io;

/// Moves to a new network namespace; returns the user namespace if one was needed. The process has one thread.
pub(crate) fn unshare_network() -> Result<Option<File>> {
    match unshare(CloneFlags::CLONE_NEWNET) {
        Ok(()) => return Ok(None),
        Err(Errno::EPERM) => {}
        Err(error) => return Err(error::namespaces_failed("network namespaces", error)),
    }
    new_user_namespace().map_err(|error| error::namespaces_failed("a user namespace", error))?;
    unshare(CloneFlags::CLONE_NEWNET)
        .map_err(|error| error::namespaces_failed("network namespaces", error))?;
    let user = File::open("/proc/self/ns/user")
        .map_err(|error| error::call_failed("opening the user namespace", error))?;
    Ok(Some(user))
}

/// A user namespace in which user and group ids are those outside.
fn new_user_namespace() -> io::Result<()> {
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER)?;
    // Without this the kernel does not let unprivileged users map groups.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Moves this thread to a new network namespace.
pub(crate) fn new_network() -> io::Result<File> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    current()
}

/// The network namespace of this thread.
pub(crate) fn current() -> io::Result<File> {
    File::open("/proc/thread-self/ns/net")
}

/// Disables IPv6 on later interfaces of the thread's network namespace, so that only programs send packets.
pub(crate) fn disable_ipv6() -> io::Result<()> {
    // The loopback interface is there already and keeps ::1.
    match fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1") {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// TCP in the thread's network namespace requests ECN on connections it opens too; by default it only accepts it.
pub(crate) fn enable_ecn() -> io::Result<()> {
    fs::write("/proc/sys/net/ipv4/tcp_ecn", "1")
}

/// Allows ping for every group in the thread's network namespace, else for the own group. If the kernel accepts neither
/// (it takes no group unknown to the user namespace), only privileged programs can ping.
pub(crate) fn allow_ping() {
    let group = getegid();
    let candidates = ["0 2147483647".into(), format!("{group} {group}")];
    let _ = candidates
        .into_iter()
        .find(|groups| fs::write("/proc/sys/net/ipv4/ping_group_range", groups).is_ok());
}
