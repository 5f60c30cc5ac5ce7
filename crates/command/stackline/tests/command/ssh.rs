//! Agents on other hosts, through a program that stands in for ssh, and through a private sshd where one can be had.

use crate::support::daemons::free_port;
use crate::support::{Place, SSH, number, program, skip, until};
use nix::sys::signal::Signal;
use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const BOTH: &str = "host a via ssh \"me@127.0.0.1\"; host b via ssh \"127.0.0.1\";\n";
const ONE: &str = "host b via ssh \"me@127.0.0.1\"; 2 to b rr 32*10;";

fn with(place: &Place, ssh: &str, specification: &str) -> Command {
    let ssh = place.script("ssh", ssh);
    let mut command = place.command(&["run", "--json", "-e", specification]);
    command
        .env("STACKLINE_SSH", ssh)
        .env("STACKLINE_REMOTE", program());
    command
}

#[test]
fn both_ends_elsewhere() {
    let place = Place::new();
    place.write("data/in file", vec![7; 50_000]);
    let files = place.path("data");
    let text = format!(
        "{BOTH}host c via ssh \"127.0.0.1\" files \"{}\";\n\
         3 from a to b rr 32*100; 2 from a to b bulk_get 1000*100 over tcp, udp; 2 to b rr 32*10;\n\
         2 from b rr 32*10; 1 from c to b bulk_put 1000*50 < file \"in file\";",
        files.display()
    );
    let measured = place
        .finish(&mut with(&place, &format!("{SSH}exec sh -c \"$*\""), &text))
        .json();
    assert_eq!(number(&measured, "/measurements/0/response_s/n"), 300.0);
    assert_eq!(measured["measurements"].as_array().unwrap().len(), 6);
    assert_eq!(measured["measurements"][0]["from"], "a");
}

#[test]
fn a_banner_before_the_agent_speaks() {
    let place = Place::new();
    let banner = "echo 'Welcome to b!'; echo '{\"not\": \"for us\"}'; echo\n";
    let finished = place.finish(&mut with(
        &place,
        &format!("{SSH}{banner}exec sh -c \"$*\""),
        ONE,
    ));
    assert_eq!(number(&finished.json(), "/measurements/0/runs"), 2.0);
}

#[test]
fn a_shell_that_only_babbles() {
    let place = Place::new();
    let output = place.finish(&mut with(
        &place,
        "#!/bin/sh\nexec yes 'Welcome to b!'",
        ONE,
    ));
    output
        .fails(3, &["no agent on me@127.0.0.1 (host b)"])
        .hints("must start and wait");
}

#[test]
fn what_ssh_says_is_reported() {
    for (ssh, code, words, hint) in [
        (
            "echo 'me@127.0.0.1: Permission denied (publickey,password).' >&2; exit 255",
            255,
            "Permission denied (publickey,password).",
            "ssh-copy-id",
        ),
        (
            "echo 'sh: 1: stackline: not found' >&2; exit 127",
            127,
            "stackline: not found",
            "STACKLINE_REMOTE",
        ),
        (
            "echo 'bash: stackline: command not found' >&2; exit 127",
            127,
            "command not found",
            "STACKLINE_REMOTE",
        ),
        (
            "echo 'ssh: Could not resolve hostname b: Name or service not known' >&2; exit 255",
            255,
            "Could not resolve",
            "check the destination",
        ),
        (
            "exit 255",
            255,
            "no agent on me@127.0.0.1",
            "must start and wait",
        ),
    ] {
        let place = Place::new();
        let output = place.finish(&mut with(&place, &format!("#!/bin/sh\n{ssh}\n"), ONE));
        output
            .fails(
                3,
                &[
                    "no agent on me@127.0.0.1 (host b)",
                    &format!("(exit code {code})"),
                    words,
                ],
            )
            .hints(hint);
        assert!(place.runs().is_empty());
    }
}

#[test]
fn there_is_no_ssh() {
    let place = Place::new();
    let mut command = with(&place, "#!/bin/sh\n", ONE);
    command.env("STACKLINE_SSH", place.path("nothing"));
    place.finish(&mut command).fails(
        3,
        &[
            "cannot start the agent on host b",
            "nothing",
            "No such file",
        ],
    );
}

#[test]
fn an_ssh_that_hangs_can_be_interrupted() {
    let place = Place::new();
    let started = place.start(&mut with(&place, "#!/bin/sh\nsleep 1000\n", ONE));
    // The command, the local agent, the shell, and what the shell waits for.
    until("ssh hangs", || (place.processes().len() == 4).then_some(()));
    started.process().signal(Signal::SIGTERM);
    started.finish().fails(130, &["interrupted"]);
    place.kept().incomplete("interrupted");
}

#[test]
fn an_agent_of_another_version() {
    let place = Place::new();
    let hello =
        r#"{"hello":{"version":"9.9.9","protocol":999,"pid":1,"machine":"m","coordinator":null}}"#;
    let output = place.finish(&mut with(
        &place,
        &format!("#!/bin/sh\necho '{hello}'\ncat > /dev/null\n"),
        ONE,
    ));
    output
        .fails(3, &["the agent on host b is stackline 9.9.9"])
        .hints("same version");
}

#[test]
fn an_agent_that_says_nonsense_later() {
    let place = Place::new();
    let hello = r#"{"hello":{"version":"0.1.0","protocol":PROTOCOL,"pid":1,"machine":"m","coordinator":null}}"#;
    let hello = hello.replace("PROTOCOL", &stackline_live::control::PROTOCOL.to_string());
    let output = place.finish(&mut with(
        &place,
        &format!("#!/bin/sh\necho '{hello}'\necho hullo\ncat > /dev/null\n"),
        ONE,
    ));
    output
        .fails(1, &["agent on host b", "not a control message: hullo"])
        .hints("same version");
}

/// An sshd of our own; killed at the end.
struct Sshd(Child);

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn key(path: &Path) -> bool {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(path)
        .status();
    made.is_ok_and(|status| status.success())
}

/// Starts it on a free port; none where this machine does not let it.
fn sshd(place: &Place) -> Option<(Sshd, u16)> {
    let program = Path::new("/usr/sbin/sshd");
    let (host, user) = (place.path("host_key"), place.path("user_key"));
    if !program.exists() || !key(&host) || !key(&user) {
        return None;
    }
    fs::copy(place.path("user_key.pub"), place.path("authorized_keys")).unwrap();
    let port = free_port();
    let configuration = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
         StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n",
        host.display(),
        place.path("authorized_keys").display()
    );
    let configuration = place.write("sshd_config", configuration);
    let mut child = Command::new(program)
        .args(["-D", "-e", "-f"])
        .arg(configuration)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(place.path("sshd.log")).unwrap())
        .spawn()
        .ok()?;
    let up = until("sshd listens or has ended", || {
        match child.try_wait().unwrap() {
            Some(_) => Some(false),
            None => TcpStream::connect(("127.0.0.1", port))
                .is_ok()
                .then_some(true),
        }
    });
    up.then_some((Sshd(child), port))
}

#[test]
fn through_a_real_sshd() {
    let place = Place::new();
    let Some((_sshd, port)) = sshd(&place) else {
        return skip("no sshd can be started here");
    };
    let ssh = format!(
        "#!/bin/sh\nexec ssh -F none -p {port} -i '{}' -o IdentitiesOnly=yes -o StrictHostKeyChecking=no \
         -o UserKnownHostsFile='{}' -o LogLevel=ERROR \"$@\"\n",
        place.path("user_key").display(),
        place.path("known_hosts").display()
    );
    let works = |what: &str| {
        Command::new(place.script("ssh", &ssh))
            .args(["--", "127.0.0.1", what])
            .status()
    };
    if !works("true").is_ok_and(|status| status.success()) {
        return skip("this sshd lets nobody in");
    }
    let text = "host a via local; host b via ssh \"127.0.0.1\";\n\
                3 from a to b rr 32*100; 2 from b to a bulk_get 1000*100; 2 from a to b bulk_put 1000*100 over udp;";
    let json = place.finish(&mut with(&place, &ssh, text)).json();
    assert_eq!(number(&json, "/measurements/0/response_s/n"), 300.0);
    assert_eq!(json["measurements"].as_array().unwrap().len(), 3);

    let mut command = with(&place, &ssh, ONE);
    command.env("STACKLINE_REMOTE", "/nowhere/stackline");
    place
        .finish(&mut command)
        .fails(3, &["no agent on me@127.0.0.1"]);
}

#[test]
fn a_wait_for_a_silent_agent_is_reported_and_can_be_interrupted() {
    let hello = "exec sh -c \"$*\" </dev/null | head -1; exec sleep 600";
    for (ssh, words) in [
        ("exec sleep 600", "waiting up to 60 s for an answer from b"),
        (hello, "waiting up to 30 s for an agent to prepare a run"),
    ] {
        let place = Place::new();
        let said = place.path("said");
        let mut command = with(&place, &format!("{SSH}{ssh}"), ONE);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&said).unwrap());
        let mut child = command.spawn().unwrap();
        until("it is said what is waited for", || {
            fs::read_to_string(&said)
                .unwrap()
                .contains(words)
                .then_some(())
        });
        crate::support::Process(i32::try_from(child.id()).unwrap()).signal(Signal::SIGINT);
        assert_eq!(child.wait().unwrap().code(), Some(130));
        place.empties();
    }
}
