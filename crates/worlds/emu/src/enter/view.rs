//! The file system that a program on a host sees: the machine's, except for a few private files such as `/etc/hosts`, which contains the
//! names of the network's hosts.
//!
//! Everything happens in a mount namespace of the process; no file of the machine is written.

use crate::protocol::HostHandle;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use std::fmt::Write;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::Path;

/// Where the private files are made: an existing directory that nothing needs before it is mounted anew.
const STAGING: &str = "/proc";
/// A parameter of `mount` that is not used.
const NOTHING: Option<&str> = None;
/// The file that lists the name servers.
const RESOLVERS: &str = "/etc/resolv.conf";
/// The line of `/etc/nsswitch.conf` by which names come from `/etc/hosts` alone.
const FILES: &str = "hosts: files";
/// The line by which names come from name servers too.
const FILES_AND_SERVERS: &str = "hosts: files dns";

/// The file by which the C library orders the addresses of a name.
const ADDRESS_ORDER: &str = "/etc/gai.conf";
/// The table of RFC 6724, section 2.1, without its deprecated rows, the last of which would put a server's `0.0.0.0` before `::`. IPv4 goes
/// before the unique local addresses that the hosts have; the C library's own table is older.
const ORDER_OF_RFC_6724: &str = "precedence ::1/128 50
precedence ::/0 40
precedence ::ffff:0:0/96 35
precedence 2002::/16 30
precedence 2001::/32 5
precedence fc00::/7 3
";

/// Replaces files of the machine by private ones, in this process's mount namespace. Returns a description of each failure that the
/// program can live with.
pub(super) fn private_files(hosts: &[HostHandle]) -> io::Result<Vec<String>> {
    // Later mounts of the machine appear here; mounts made here stay here.
    mount(
        NOTHING,
        "/",
        NOTHING,
        MsFlags::MS_REC | MsFlags::MS_SLAVE,
        NOTHING,
    )?;
    tmpfs(STAGING)?;
    let mut notes = Vec::new();
    if let Err(error) = replace("/etc/hosts", &names(hosts)) {
        notes.push(format!(
            "programs can reach hosts only by address: /etc/hosts cannot be replaced ({error})"
        ));
    }
    // The machine's name servers cannot be reached from the network: queries for a name that is not in the file (or for an IPv6
    // address) would take many seconds. If no server is listed, this host itself is asked, and refuses at once unless it serves names.
    // A program may write the address of a name server of the network into its own file. Daemons (resolved, nscd) would return the
    // machine's names, so they are not asked.
    let asks = match replace(
        RESOLVERS,
        "# no name server other than this host; `nameserver ADDRESS` adds one\n",
    ) {
        Ok(()) => FILES_AND_SERVERS,
        Err(_) => FILES,
    };
    if let Some(switch) = fs::read_to_string("/etc/nsswitch.conf")
        .ok()
        .and_then(|text| with_hosts(&text, asks))
    {
        replace("/etc/nsswitch.conf", &switch)?;
    }
    if Path::new(ADDRESS_ORDER).exists() {
        replace(ADDRESS_ORDER, ORDER_OF_RFC_6724)?;
    }
    if Path::new("/run/nscd/socket").exists() {
        tmpfs("/run/nscd")?;
    }
    umount2(STAGING, MntFlags::MNT_DETACH)?;
    Ok(notes)
}

/// Mounts a `/proc` that shows the processes of this PID namespace.
pub(super) fn mount_proc() -> nix::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, NOTHING)
}

/// Mounts an empty file system over a directory.
fn tmpfs(place: &str) -> nix::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("tmpfs"), place, Some("tmpfs"), flags, Some("mode=755"))
}

/// Mounts a private file with this text over a file of the machine.
fn replace(file: &str, text: &str) -> io::Result<()> {
    let name = Path::new(file).file_name().unwrap_or_default();
    let private = Path::new(STAGING).join(name);
    fs::write(&private, text)?;
    Ok(mount(
        Some(&private),
        file,
        NOTHING,
        MsFlags::MS_BIND,
        NOTHING,
    )?)
}

/// The text of `/etc/hosts`.
fn names(hosts: &[HostHandle]) -> String {
    let mut text = String::from("127.0.0.1 localhost\n::1 localhost\n");
    for host in hosts {
        let plain = plain_name(&host.name);
        let is_own = hosts.iter().all(|other| other.name != plain);
        let alias = if plain != host.name && is_own {
            format!(" {plain}")
        } else {
            String::new()
        };
        let _ = writeln!(text, "{} {}{alias}", host.address, host.name);
        let six = host.address_v6.map(IpAddr::V6);
        for address in six.iter().chain(&host.further) {
            let _ = writeln!(text, "{address} {}{alias}", host.name);
        }
    }
    text
}

/// A host's name for programs that take no brackets in names, such as those with URLs: `w-3` for `w[3]`.
fn plain_name(name: &str) -> String {
    name.replace('[', "-").replace(']', "")
}

/// The text of `/etc/nsswitch.conf` with its line for host names replaced by `asks`; `None` when nothing has to change.
fn with_hosts(text: &str, asks: &str) -> Option<String> {
    let is_hosts = |line: &str| line.trim_start().starts_with("hosts:");
    let old = text.lines().find(|line| is_hosts(line))?;
    if old.split_whitespace().eq(asks.split_whitespace()) {
        return None;
    }
    let line = |line| if is_hosts(line) { asks } else { line };
    Some(text.lines().map(line).collect::<Vec<_>>().join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_files_first() {
        assert_eq!(with_hosts("passwd: files\nhosts: files\n", FILES), None);
        assert_eq!(with_hosts("passwd: files\n", FILES), None);
        let text = with_hosts(
            "hosts: resolve [!UNAVAIL=return] files\npasswd: x\n",
            FILES_AND_SERVERS,
        );
        assert_eq!(text.as_deref(), Some("hosts: files dns\npasswd: x\n"));
    }
}
