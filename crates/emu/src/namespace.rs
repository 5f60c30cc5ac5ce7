//! Namespaces of this process: the user namespace when it takes one to have the others, and one network namespace after
//! another, kept alive by file descriptors alone.
//!
//! Who may make network namespaces (root, as a rule) gets no user namespace: programs on the hosts then have all the rights
//! they have outside. Everybody else gets one in which they are who they are, so that files they make are theirs and
//! `whoami` tells the truth; what they need inside are rights over the network, not another name.

use crate::refusal::{Refusal, Result};
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};
use std::fs::{self, File};
use std::io;

/// Leaves the machine's network for one of its own; the user namespace if there had to be one. The process has one thread.
pub(crate) fn unshare_network() -> Result<Option<File>> {
    match unshare(CloneFlags::CLONE_NEWNET) {
        Ok(()) => return Ok(None),
        Err(Errno::EPERM) => {}
        Err(error) => return Err(Refusal::namespaces("network namespaces", error)),
    }
    new_user_namespace().map_err(|error| Refusal::namespaces("a user namespace", error))?;
    unshare(CloneFlags::CLONE_NEWNET).map_err(|error| Refusal::namespaces("network namespaces", error))?;
    let user = File::open("/proc/self/ns/user").map_err(|error| Refusal::call("opening the user namespace", error))?;
    Ok(Some(user))
}

/// A user namespace in which the user and the group are what they are outside.
fn new_user_namespace() -> io::Result<()> {
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER)?;
    // Without this the kernel lets nobody map groups who is not privileged outside.
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

/// Interfaces that the thread's network namespace will have do not speak IPv6: nothing is sent that no program sends.
pub(crate) fn disable_ipv6() -> io::Result<()> {
    // The loopback interface is there already and keeps ::1.
    match fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1") {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// TCP in the thread's network namespace asks for ECN on connections it opens too; by default it only agrees to it.
pub(crate) fn enable_ecn() -> io::Result<()> {
    fs::write("/proc/sys/net/ipv4/tcp_ecn", "1")
}

/// Lets everybody there is in the thread's network namespace ping, else the own group, else nobody beyond those who may
/// anyway: the kernel takes no group that the user namespace does not know, and a network is of use without ping.
pub(crate) fn allow_ping() {
    let group = getegid();
    let candidates = ["0 2147483647".into(), format!("{group} {group}")];
    let _ = candidates.into_iter().find(|groups| fs::write("/proc/sys/net/ipv4/ping_group_range", groups).is_ok());
}
