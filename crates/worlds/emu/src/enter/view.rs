//! The file system of a program on a host: the machine's, with the network's names in `/etc/hosts`.
//!
//! Everything happens in a mount namespace of the process; no file of the machine is written.

use crate::protocol::HostHandle;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

/// Where the private files are made: an existing directory that nothing needs before it is mounted anew.
const STAGING: &str = "/proc";
const NOTHING: Option<&str> = None;
/// Which name servers are asked.
const RESOLVERS: &str = "/etc/resolv.conf";
/// Names come from the file alone, or from name servers too.
const FILES: &str = "hosts: files";
const FILES_AND_SERVERS: &str = "hosts: files dns";

/// Replaces the machine's files by the private ones. Returns descriptions of what failed.
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
    // Daemons would return the machine's names, and its name servers cannot be reached from the network: queries for anything else
    // (an IPv6 address, say) would take many seconds. Without any, this host itself is asked, and refuses at once unless it serves
    // names; a program may write one of the network's into its own file.
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
    if Path::new("/run/nscd/socket").exists() {
        tmpfs("/run/nscd")?;
    }
    umount2(STAGING, MntFlags::MNT_DETACH)?;
    Ok(notes)
}

/// The processes of this PID namespace in `/proc`.
pub(super) fn mount_proc() -> nix::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, NOTHING)
}

fn tmpfs(place: &str) -> nix::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("tmpfs"), place, Some("tmpfs"), flags, Some("mode=755"))
}

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

fn names(hosts: &[HostHandle]) -> String {
    let mut text = String::from("127.0.0.1 localhost\n::1 localhost\n");
    for host in hosts {
        let _ = writeln!(text, "{} {}", host.address, host.name);
    }
    text
}

/// The same text with that line for host names; `None` when nothing has to change.
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
