//! Creates namespaces: a user namespace if one is needed to create the others, and one network namespace after another. Only file
//! descriptors keep them alive.
//!
//! A user who may create network namespaces (usually root) gets no user namespace: programs on the hosts then have all the rights they
//! have outside. Other users get one in which user and group IDs are unchanged, so that files keep their owner and `whoami` is right:
//! what is needed inside are rights over the network, not another ID.

use crate::error::{self, Result};
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// The settings of IPv6 that a new interface of the thread's network namespace has.
const IPV6_DEFAULTS: &str = "/proc/sys/net/ipv6/conf/default";

/// Moves this process, which must have one thread, to a new network namespace. Returns the user namespace if one was needed.
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

/// Moves this process to a new user namespace in which user and group IDs are the same as outside.
fn new_user_namespace() -> io::Result<()> {
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER)?;
    // Without this the kernel does not let unprivileged users map groups.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Moves this thread to a new network namespace and returns it.
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
    // The setting does not apply to the loopback interface, which exists already and keeps ::1. Without IPv6 there is no such file.
    if has_ipv6() {
        fs::write(Path::new(IPV6_DEFAULTS).join("disable_ipv6"), "1")
    } else {
        Ok(())
    }
}

/// Whether this kernel has IPv6.
pub(crate) fn has_ipv6() -> bool {
    Path::new(IPV6_DEFAULTS).join("disable_ipv6").exists()
}

/// Sets IPv6 up for later interfaces of the thread's network namespace, so that an address can be used at once and no router is looked
/// for. Only on a kernel with IPv6.
pub(crate) fn prepare_ipv6() -> io::Result<()> {
    const SETTINGS: [(&str, &str); 6] = [
        ("disable_ipv6", "0"),
        ("accept_ra", "0"),
        ("autoconf", "0"),
        ("router_solicitations", "0"),
        ("accept_dad", "0"),
        ("dad_transmits", "0"),
    ];
    SETTINGS
        .into_iter()
        .try_for_each(|(name, value)| fs::write(Path::new(IPV6_DEFAULTS).join(name), value))
}

/// Makes TCP in the thread's network namespace request ECN on the connections it opens; by default it only accepts ECN.
pub(crate) fn enable_ecn() -> io::Result<()> {
    fs::write("/proc/sys/net/ipv4/tcp_ecn", "1")
}

/// Lets clients and servers in the thread's network namespace use TCP Fast Open (RFC 7413) where they ask for it; by default only clients may.
/// A kernel without it has no such file.
pub(crate) fn allow_fast_open() {
    let _ = fs::write("/proc/sys/net/ipv4/tcp_fastopen", "3");
}

/// Lets packets arrive at another interface than that by which their sender is reached, as hosts with several interfaces need it.
pub(crate) fn accept_by_any_interface() -> io::Result<()> {
    ["all", "default"]
        .into_iter()
        .try_for_each(|which| fs::write(format!("/proc/sys/net/ipv4/conf/{which}/rp_filter"), "0"))
}

/// Permits unprivileged ping in the thread's network namespace to every group, or else to this process's group. If the kernel accepts
/// neither (it refuses groups that the user namespace does not map), only privileged programs can ping.
pub(crate) fn allow_ping() {
    let group = getegid();
    let candidates = ["0 2147483647".into(), format!("{group} {group}")];
    let _ = candidates
        .into_iter()
        .find(|groups| fs::write("/proc/sys/net/ipv4/ping_group_range", groups).is_ok());
}
