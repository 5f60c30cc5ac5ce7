//! Agents that are reached without ssh: by a TCP port and a secret, and by a command.

use crate::kept::Kept;
use crate::support::{Place, Process, Started, number, program, until};
use nix::sys::signal::Signal;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

pub(crate) const SECRET: &str = "configuration/stackline/agent.secret";

/// `stackline agent --listen`, until it is ended or dropped.
pub(crate) struct ListeningAgent {
    child: Child,
    address: String,
    said: Option<JoinHandle<String>>,
}

impl ListeningAgent {
    fn start(place: &Place) -> Self {
        Self::with(place, &[])
    }

    pub(crate) fn with(place: &Place, flags: &[&str]) -> Self {
        let mut command = place.command(&["agent", "--listen", "127.0.0.1:0"]);
        Self::spawn(command.args(flags))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut errors = child.stderr.take().unwrap();
        let said = thread::spawn(move || {
            let mut text = String::new();
            errors.read_to_string(&mut text).unwrap();
            text
        });
        let mut address = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut address).unwrap();
        Self {
            child,
            address: address.trim().into(),
            said: Some(said),
        }
    }

    fn process(&self) -> Process {
        Process(i32::try_from(self.child.id()).unwrap())
    }

    /// A specification with its host `b`.
    pub(crate) fn host_b(&self, text: &str) -> String {
        format!("host b via tcp \"{}\"; {text}", self.address)
    }

    /// Ends it as a service is ended: what it said.
    fn end(mut self) -> String {
        self.process().signal(Signal::SIGTERM);
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        self.said.take().unwrap().join().unwrap()
    }
}

impl Drop for ListeningAgent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A run whose processes are those of another place than the agent's.
fn coordinator(there: &Place, specification: &str) -> (Place, Started) {
    let here = Place::new();
    let secret = fs::read(there.path(SECRET)).unwrap();
    here.write(SECRET, secret);
    let started = here.start(&mut here.command(&["run", "--json", "-e", specification]));
    (here, started)
}

#[test]
fn an_agent_that_listens_measures_in_both_directions() {
    let there = Place::new();
    let agent = ListeningAgent::start(&there);
    let text = agent.host_b(
        "3 to b rr 32*100 over tcp, udp; 2 from b bulk_get 64 KiB 1 MB; 1 from b to b rr 32*10;",
    );
    let (_here, run) = coordinator(&there, &text);
    let measured = run.finish().json();
    assert_eq!(number(&measured, "/measurements/0/response_s/n"), 300.0);
    assert_eq!(measured["measurements"].as_array().unwrap().len(), 4);
    let mode = fs::metadata(there.path(SECRET))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    until("its agent process has ended", || {
        (there.processes() == [agent.process()]).then_some(())
    });
    let said = agent.end();
    assert!(
        said.contains("a coordinator has connected") && said.contains("the coordinator has left"),
        "{said}"
    );
    assert!(there.processes().is_empty());
}

#[test]
fn why_there_is_no_agent_is_said() {
    let there = Place::new();
    let agent = ListeningAgent::start(&there);
    let text = agent.host_b("1 to b rr 32*10;");
    let here = Place::new();
    let run = |secret: &str, text: &str| {
        let mut command = here.command(&["run", "-e", text]);
        here.finish(command.env("STACKLINE_AGENT_SECRET", secret))
    };
    here.run(&text)
        .fails(3, &["host b", "there is no secret"])
        .hints("STACKLINE_AGENT_SECRET");
    run("not this one", &text)
        .fails(3, &["host b", "has another secret"])
        .hints("agent.secret");
    let said = agent.end();
    assert!(said.contains("refused, its secret is wrong"), "{said}");
    run("not this one", &text)
        .fails(3, &["host b", "refused"])
        .hints("stackline agent --listen");

    let web = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = web.local_addr().unwrap();
    let answering = thread::spawn(move || {
        let (mut socket, _) = web.accept().unwrap();
        socket
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .unwrap();
    });
    let text = format!("host b via tcp \"{address}\"; 1 to b rr 32*10;");
    run("not this one", &text)
        .fails(3, &["host b", "does not answer as an agent"])
        .hints("Check the port");
    answering.join().unwrap();
}

#[test]
fn strangers_do_not_keep_a_coordinator_out() {
    let there = Place::new();
    let agent = ListeningAgent::start(&there);
    let mut strangers: Vec<TcpStream> = (0..100)
        .map(|_| TcpStream::connect(&agent.address).unwrap())
        .collect();
    for stranger in &mut strangers[..50] {
        // Some are gone already.
        let _ = stranger.write_all(b"GET / HTTP/1.1\r\n\r\n");
    }
    let (_here, run) = coordinator(&there, &agent.host_b("2 to b rr 32*10;"));
    assert_eq!(number(&run.finish().json(), "/measurements/0/runs"), 2.0);
    let said = agent.end();
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn either_end_may_die() {
    let there = Place::new();
    let agent = ListeningAgent::start(&there);
    let long = agent.host_b("1 timelimit 60 to b rr 32;");
    let (here, run) = coordinator(&there, &long);
    let working = || {
        until("an agent works", || {
            there
                .processes()
                .into_iter()
                .find(|process| *process != agent.process())
        })
    };
    working();
    run.process().signal(Signal::SIGKILL);
    run.finish();
    until("its agent has ended", || {
        (there.processes() == [agent.process()]).then_some(())
    });
    here.empties();

    let (_here, run) = coordinator(&there, &long);
    until("its clock runs", || (working().threads() > 2).then_some(()));
    working().signal(Signal::SIGKILL);
    run.finish().fails(1, &["host b", "in the middle of a run"]);
    until("only the listener is there", || {
        (there.processes() == [agent.process()]).then_some(())
    });
}

/// As a container is: hosts whose agents a command starts in network namespaces of their own, where they have addresses of their own.
#[test]
fn a_command_reaches_agents_in_other_networks() {
    let Some(net) = Kept::up("agents", "50 Mbit/s") else {
        return;
    };
    let host = |host: &str| {
        let (program, network) = (program(), &net.name);
        format!("host {host} via exec \"{program} net exec {network} {host} -- {program} agent\"; ")
    };
    let hosts = host("khons") + &host("udjat");
    let text = format!("{hosts} 2 from khons to udjat rr 32*10;");
    let measured = net.stackline(&["run", "--json", "-e", &text]).json();
    // There and back over 2 ms each.
    let median = number(&measured, "/measurements/0/response_s/median");
    assert!((0.004..0.1).contains(&median), "{median}");
}

/// Who logged in by ssh measures between this machine and a command's agent, not to the machine that the login came from.
#[test]
fn an_agent_by_a_command_does_not_take_the_login_of_its_user_for_its_coordinator() {
    let place = Place::new();
    let text = format!(
        "host b via exec \"{} agent\"; 2 from b rr 32*10;",
        program()
    );
    let mut command = place.command(&["run", "--json", "-e", &text]);
    command.env("SSH_CONNECTION", "192.0.2.77 50000 192.0.2.1 22");
    let measured = place.finish(&mut command).json();
    assert_eq!(number(&measured, "/measurements/0/runs"), 2.0);
}

#[test]
fn what_a_command_says_is_reported() {
    let place = Place::new();
    let run =
        |command: &str| place.run(&format!("host b via exec \"{command}\"; 1 to b rr 32*10;"));
    run("echo 'no such container: web' >&2; exit 1")
        .fails(
            3,
            &["started no agent", "(host b)", "no such container: web"],
        )
        .hints("exec -i");
    run("echo the input device is not a TTY >&2; exit 1")
        .fails(3, &["not a TTY"])
        .hints("not `-it`");
    run("stackline-that-is-not-there agent")
        .fails(3, &["not found"])
        .hints("install stackline");
}

#[test]
fn the_unit_of_the_package_serves() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let unit = fs::read_to_string(root.join("packaging/stackline-agent.service")).unwrap();
    let start = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart=/usr/bin/stackline "))
        .unwrap();
    let there = Place::new();
    there.write(SECRET, "a secret of this test\n");
    let credentials = there.path(SECRET).parent().unwrap().to_owned();
    let start = start
        .replace(
            "${CREDENTIALS_DIRECTORY}/secret",
            &format!("{}/agent.secret", credentials.display()),
        )
        .replace("[::]:7777", "127.0.0.1:0");
    let arguments: Vec<&str> = start.split(' ').collect();
    let agent = ListeningAgent::spawn(&mut there.command(&arguments));
    let (_here, run) = coordinator(&there, &agent.host_b("2 to b rr 32*10;"));
    assert_eq!(number(&run.finish().json(), "/measurements/0/runs"), 2.0);
    assert!(unit.contains("LoadCredential=secret:/etc/stackline/agent.secret"));
    agent.end();
}
