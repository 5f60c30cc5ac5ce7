//! Destinations of ssh: converts one to the form that ssh accepts, and finds the host name that it stands for. The command line of ssh is in
//! `launch.rs`.

use crate::child_end::kill_group;
use std::borrow::Cow;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long ssh may take to read its configuration, which can run programs (`Match exec`).
const PATIENCE: Duration = Duration::from_secs(2);
/// Most bytes of output of `ssh -G` that are read.
const LONGEST: u64 = 256 << 10;

/// The host name or address that ssh connects to, which differs from the destination's if that is an alias in `~/.ssh/config`. If ssh does
/// not report one, it is the host in the destination.
pub(crate) fn resolved_host(ssh: &str, destination: &str) -> String {
    configured_host(ssh, destination).unwrap_or_else(|| host_of(destination).to_owned())
}

/// The host name in the configuration that `ssh -G` prints for a destination; `None` if it fails or takes too long.
fn configured_host(ssh: &str, destination: &str) -> Option<String> {
    let mut child = Command::new(ssh)
        .args(["-G", "--"])
        .arg(for_ssh(destination).as_ref())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .ok()?;
    let output = child.stdout.take()?;
    let (read, configuration) = mpsc::channel();
    thread::spawn(move || {
        let mut text = String::new();
        let _ = output.take(LONGEST).read_to_string(&mut text);
        let _ = read.send(text);
    });
    let text = configuration.recv_timeout(PATIENCE);
    kill_group(&mut child);
    hostname(&text.ok()?)
}

/// The value of the line `hostname` in the output of `ssh -G`.
fn hostname(configuration: &str) -> Option<String> {
    let mut lines = configuration.lines();
    let host = lines
        .find_map(|line| line.strip_prefix("hostname "))?
        .trim();
    (!host.is_empty()).then(|| host.trim_matches(['[', ']']).to_owned())
}

/// The host in `user@host`, `ssh://user@host:port`, with an IPv6 address bare or in brackets.
fn host_of(destination: &str) -> &str {
    let url = destination.strip_prefix("ssh://");
    let place = url
        .unwrap_or(destination)
        .rsplit('@')
        .next()
        .unwrap_or_default()
        .trim_end_matches('/');
    if let Some(inside) = place.strip_prefix('[') {
        return inside.split(']').next().unwrap_or(inside);
    }
    // With more than one colon it is a bare IPv6 address, not a host and a port.
    match place.split_once(':') {
        Some((host, port)) if !port.contains(':') => host,
        _ => place,
    }
}

/// The destination in the form that ssh accepts. Ssh accepts a port only in a URL, so `user@host:22` becomes `ssh://user@host:22`.
pub(crate) fn for_ssh(destination: &str) -> Cow<'_, str> {
    let port = destination
        .rsplit_once(':')
        .filter(|(before, _)| !before.contains(':'))
        .map(|(_, port)| port);
    if port.is_some_and(|port| port.parse::<u16>().is_ok()) {
        format!("ssh://{destination}").into()
    } else {
        destination.into()
    }
}

/// Quotes a word for the shell at the other end of ssh.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_reaches_ssh_in_a_url() {
        let given = [
            "u@a.b:2222",
            "a.b:22",
            "a.b",
            "ssh://u@a.b:22",
            "u@::1",
            "a.b:x",
        ];
        let right = [
            "ssh://u@a.b:2222",
            "ssh://a.b:22",
            "a.b",
            "ssh://u@a.b:22",
            "u@::1",
            "a.b:x",
        ];
        assert_eq!(given.map(for_ssh), right);
    }

    #[test]
    fn a_host_is_found_in_every_form_of_destination() {
        let forms = [
            "a.b",
            "u@a.b",
            "ssh://a.b",
            "ssh://u@a.b:22",
            "ssh://a.b:22/",
        ];
        for form in forms {
            assert_eq!(host_of(form), "a.b", "{form}");
        }
        for form in ["u@::1", "::1", "ssh://u@[::1]:22", "[::1]"] {
            assert_eq!(host_of(form), "::1", "{form}");
        }
    }

    #[test]
    fn an_alias_stands_for_a_host() {
        let said = "user me\nhostname 10.0.0.6\nport 2222\n";
        assert_eq!(hostname(said).as_deref(), Some("10.0.0.6"));
        assert_eq!(hostname("host lab\n"), None);
        assert_eq!(resolved_host("/there/is/none", "me@lab"), "lab");
    }
}
