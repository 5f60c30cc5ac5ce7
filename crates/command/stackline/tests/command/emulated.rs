//! Programs on the hosts of emulated networks, and what is left of them: nothing.
//!
//! Where namespaces are forbidden each test says so and ends. Every network here has a name of its own, so that no two
//! tests share one.

use crate::support::{Place, Process, has_program, program, said, skip};
use nix::sys::signal::Signal;
use stackline_core::network::{LinkRate, Network, NetworkHost, NetworkLink};
use stackline_core::random::Seed;
use stackline_core::time::Duration;
use stackline_emu::client::Emulation;
use stackline_emu::error::Blame;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// A network declared for one test, and the programs on it.
struct Net {
    place: Place,
    name: String,
    text: String,
}

impl Net {
    /// Two hosts, `khons` and `udjat`; `None`, with the reason printed, where it cannot be made.
    fn pair(test: &str) -> Option<Self> {
        Self::with(
            test,
            "host khons, udjat; link khons - udjat 100 Mbit/s 5 ms;",
        )
    }

    fn with(test: &str, inside: &str) -> Option<Self> {
        let name = format!("{test}_{}", std::process::id());
        let net = Self {
            place: Place::new(),
            text: format!("network {name} {{ {inside} }}"),
            name,
        };
        net.place.write("net.stackline", &net.text);
        let host = inside
            .trim_start_matches("host ")
            .split([',', ';'])
            .next()
            .unwrap()
            .to_string();
        let tried = net.run(&host, &["true"]);
        if tried.status.code() == Some(3) {
            skip(said(&tried));
            return None;
        }
        assert_eq!(tried.status.code(), Some(0), "{}", said(&tried));
        Some(net)
    }

    fn command(&self, host: &str, words: &[&str]) -> Command {
        let mut command = self
            .place
            .command(&["net", "exec", "net.stackline", host, "--"]);
        command
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, host: &str, words: &[&str]) -> Output {
        self.command(host, words).output().unwrap()
    }

    /// Runs a program in the background; returns when it has printed a line.
    fn start(&self, host: &str, words: &[&str]) -> Started {
        let mut child = self.command(host, words).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        Started {
            child,
            out,
            line: line.trim().to_string(),
        }
    }
}

struct Started {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    line: String,
}

impl Started {
    fn process(&self) -> Process {
        Process(i32::try_from(self.child.id()).unwrap())
    }

    /// Its exit code, what it printed further, what it said on stderr.
    fn finish(mut self) -> (Option<i32>, String, String) {
        let (mut out, mut err) = (String::new(), String::new());
        self.out.read_to_string(&mut out).unwrap();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut err)
            .unwrap();
        (self.child.wait().unwrap().code(), out, err)
    }
}

impl Drop for Started {
    /// A test that fails leaves nothing either.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the program printed: a machine with much else to do has a note about that on stderr.
fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().into()
}

#[test]
fn exit_codes_are_the_programs() {
    let Some(net) = Net::pair("codes") else {
        return;
    };
    for (words, code) in [
        (&["true"][..], 0),
        (&["sh", "-c", "exit 7"], 7),
        (&["sh", "-c", "kill -9 $$"], 128 + 9),
        (&["sh", "-c", "kill -TERM $$"], 128 + 15),
        (&["/nowhere/nothing"], 127),
        (&["/"], 126),
    ] {
        let ended = net.run("khons", words);
        assert_eq!(
            ended.status.code(),
            Some(code),
            "{words:?}: {}",
            said(&ended)
        );
    }
    net.place.empties();
}

#[test]
fn a_host_that_is_not_there() {
    let Some(net) = Net::pair("unknown") else {
        return;
    };
    let message = format!(
        "error: the network {} has no host kohns\nhint: did you mean `khons`?",
        net.name
    );
    let ended = net.run("kohns", &["true"]);
    assert_eq!((ended.status.code(), said(&ended)), (Some(2), message));
    let ended = net.run("zzz", &["true"]);
    assert_eq!(ended.status.code(), Some(2));
    assert!(
        said(&ended).ends_with("hint: the hosts are khons, udjat"),
        "{}",
        said(&ended)
    );
}

#[test]
fn one_of_several_networks() {
    let Some(net) = Net::pair("several") else {
        return;
    };
    let more = format!(
        "{} network second {{ host khons, amun; link khons - amun 1 Gbit/s 1 ms; }}",
        net.text
    );
    net.place.write("net.stackline", more);
    assert_eq!(
        net.run("amun", &["true"]).status.code(),
        Some(0),
        "one network has that host"
    );
    let passed = net.run("amun", &["echo", "khons", "--"]);
    assert_eq!(passed.stdout, b"khons --\n");
    assert!(
        said(&passed).contains("`khons --` is passed to the program"),
        "{}",
        said(&passed)
    );
    let both = net.run("khons", &["true"]);
    assert_eq!(both.status.code(), Some(2));
    let hint = format!("choose one with --network {} or --network second", net.name);
    assert!(said(&both).contains(&hint), "{}", said(&both));
    let arguments = [
        "net",
        "exec",
        "net.stackline",
        "khons",
        "--network",
        "second",
        "--",
        "true",
    ];
    assert_eq!(
        net.place.command(&arguments).status().unwrap().code(),
        Some(0)
    );
    net.place.empties();
}

#[test]
fn another_seed_is_refused_as_long_as_the_network_is_there() {
    let Some(net) = Net::pair("seed") else { return };
    let seeded = |seed: &str| {
        let arguments = [
            "net",
            "exec",
            "--seed",
            seed,
            "net.stackline",
            "udjat",
            "--",
            "true",
        ];
        net.place.command(&arguments).output().unwrap()
    };
    let first = net.start("khons", &["sh", "-c", "echo ready; exec sleep 60"]);
    assert_eq!(first.line, "ready");
    let refused = seeded("9");
    let message = format!(
        "error: the network {} already exists with a different seed\nhint: use the seed of",
        net.name
    );
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).starts_with(&message), "{}", said(&refused));
    assert_eq!(
        seeded("1").status.code(),
        Some(0),
        "the seed of a specification that says none"
    );
    drop(first);
    net.place.empties();
    assert_eq!(
        seeded("9").status.code(),
        Some(0),
        "nothing answers any more"
    );
    net.place.empties();
}

#[test]
fn a_program_sees_its_host() {
    let Some(net) = Net::pair("sees") else { return };
    let script = "hostname; getent hosts udjat; getent ahostsv4 khons | head -n 1; ls /proc | grep -c '^[0-9]'; echo $$; id -u";
    let seen = printed(&net.run("khons", &["sh", "-c", script]));
    let lines: Vec<Vec<&str>> = seen
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines[0], ["khons"]);
    assert_eq!(lines[1], ["10.71.0.2", "udjat"]);
    assert_eq!(lines[2], ["10.71.0.1", "STREAM", "khons"]);
    assert!(
        lines[3][0].parse::<u32>().unwrap() < 8,
        "only its own processes: {seen}"
    );
    assert_eq!(lines[4], ["2"], "the second process there");
    assert_eq!(
        lines[5],
        [nix::unistd::getuid().to_string()],
        "it runs as who started it"
    );
    let before = fs::read_to_string("/etc/hosts").unwrap_or_default();
    assert!(
        !before.contains("udjat"),
        "the machine's own file is as it was"
    );
    net.place.empties();
}

#[test]
fn programs_meet_on_one_network() {
    if !has_program("python3", "python3") {
        return;
    }
    let Some(net) = Net::pair("meet") else { return };
    let server = "import socket\ns = socket.create_server(('', 80))\nprint('ready', flush=True)\nc, _ = s.accept()\n\
                  print(c.recv(9).decode(), flush=True)\nc.sendall(b'welcome')";
    let client = "import socket, time\nc = socket.create_connection(('udjat', 80), 20)\nbegun = time.monotonic()\n\
                  c.sendall(b'greetings')\nprint(c.recv(9).decode(), time.monotonic() - begun)";
    let server = net.start("udjat", &["python3", "-c", server]);
    assert_eq!(server.line, "ready");
    let answer = printed(&net.run("khons", &["python3", "-c", client]));
    let (word, time) = answer.split_once(' ').unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(word, "welcome");
    assert!(
        time.parse::<f64>().unwrap() >= 0.010,
        "5 ms there and 5 ms back, never less: {time}"
    );
    let (code, out, _) = server.finish();
    assert_eq!((code, out.as_str()), (Some(0), "greetings\n"));
    net.place.empties();
}

#[test]
fn each_path_has_its_own_mtu() {
    if !has_program("python3", "python3") {
        return;
    }
    let links = "link a - s 1 Gbit/s 1 ms mtu 9000; link b - s 1 Gbit/s 1 ms mtu 9000; link c - s 1 Gbit/s 1 ms";
    let Some(net) = Net::with("mtu", &format!("host a, b, c; switch s; {links};")) else {
        return;
    };
    let server = "import socket\ns = socket.create_server(('', 80))\nprint('ready', flush=True)\n\
                  while True: s.accept()[0].recv(9)";
    let client = "import socket, sys\nc = socket.create_connection((sys.argv[1], 80), 20)\n\
                  print(c.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG))";
    for (host, segment) in [("b", "8948"), ("c", "1448")] {
        let server = net.start(host, &["python3", "-c", server]);
        assert_eq!(
            printed(&net.run("a", &["python3", "-c", client, host])),
            segment
        );
        server.process().signal(Signal::SIGKILL);
        server.finish();
    }
    net.place.empties();
}

#[test]
fn everybody_may_ping() {
    if !has_program("python3", "python3") {
        return;
    }
    let Some(net) = Net::pair("ping") else { return };
    let ping = "import socket, time\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)\ns.settimeout(20)\n\
                begun = time.monotonic()\ns.sendto(bytes([8, 0, 0, 0, 0, 0, 0, 1]) + b'x' * 56, ('udjat', 0))\n\
                print(len(s.recv(100)), time.monotonic() - begun)";
    let answer = printed(&net.run("khons", &["python3", "-c", ping]));
    let (length, time) = answer.split_once(' ').unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(length, "64");
    assert!(time.parse::<f64>().unwrap() >= 0.010, "{time}");
}

#[test]
fn the_same_text_is_the_same_network_and_another_text_another() {
    let Some(net) = Net::pair("texts") else {
        return;
    };
    let where_it_is = ["sh", "-c", "readlink /proc/self/ns/net; sleep 1000"];
    let first = net.start("khons", &where_it_is);
    let same = net.start("khons", &where_it_is);
    let beside = net.start("udjat", &where_it_is);
    net.place
        .write("net.stackline", net.text.replace("5 ms", "6 ms"));
    let other = net.start("khons", &where_it_is);
    assert_eq!(first.line, same.line);
    assert_ne!(first.line, beside.line);
    assert_ne!(first.line, other.line);
    for started in [first, same, beside, other] {
        started.process().signal(Signal::SIGTERM);
        assert_eq!(started.finish().0, Some(128 + 15), "signals are passed on");
    }
    net.place.empties();
}

#[test]
fn a_program_may_catch_signals() {
    let Some(net) = Net::pair("signals") else {
        return;
    };
    for (signal, name) in [
        (Signal::SIGINT, "INT"),
        (Signal::SIGTERM, "TERM"),
        (Signal::SIGUSR1, "USR1"),
    ] {
        let script =
            format!("trap 'echo caught; exit 9' {name}; echo ready; while :; do sleep 0.05; done");
        let started = net.start("khons", &["sh", "-c", &script]);
        started.process().signal(signal);
        assert_eq!(
            started.finish(),
            (Some(9), "caught\n".into(), String::new())
        );
    }
    net.place.empties();
}

#[test]
fn an_interruption_reaches_what_a_shell_waits_for() {
    let Some(net) = Net::pair("waits") else {
        return;
    };
    let started = net.start(
        "khons",
        &["sh", "-c", "sleep 1000 & echo ready; sleep 1000; wait"],
    );
    started.process().signal(Signal::SIGINT);
    assert_eq!(started.finish().0, Some(128 + 2));
    net.place.empties();
}

#[test]
fn daemons_end_with_the_program_that_left_them() {
    let Some(net) = Net::pair("daemons") else {
        return;
    };
    let ended = net.run(
        "khons",
        &["sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & exit 3"],
    );
    assert_eq!(ended.status.code(), Some(3));
    net.place.empties();
}

#[test]
fn kill_9_leaves_nothing() {
    let Some(net) = Net::pair("killed") else {
        return;
    };
    let started = net.start(
        "khons",
        &[
            "sh",
            "-c",
            "setsid sleep 1000 & sleep 1000 & echo ready; sleep 1000",
        ],
    );
    started.process().signal(Signal::SIGKILL);
    net.place.empties();
    let started = net.start("khons", &["sh", "-c", "echo ready; sleep 1000"]);
    net.place.emulator().signal(Signal::SIGKILL);
    let (code, _, err) = started.finish();
    assert_eq!(code, Some(1));
    assert!(
        err.starts_with("error: the network emulator exited"),
        "{err}"
    );
    net.place.empties();
}

#[test]
fn a_network_stays_while_somebody_is_there() {
    let Some(net) = Net::pair("stays") else {
        return;
    };
    let first = net.start(
        "khons",
        &["sh", "-c", "readlink /proc/self/ns/net; sleep 1000"],
    );
    let emulator = net.place.emulator();
    let second = net.start("udjat", &["sh", "-c", "echo ready; sleep 1000"]);
    first.process().signal(Signal::SIGKILL);
    first.finish();
    assert_eq!(
        net.place.emulator(),
        emulator,
        "it has outlived the one who started it"
    );
    let third = net.start("khons", &["readlink", "/proc/self/ns/net"]);
    assert_eq!(third.finish().0, Some(0));
    assert_eq!(net.place.emulator(), emulator);
    second.process().signal(Signal::SIGKILL);
    second.finish();
    net.place.empties();
}

#[test]
fn many_who_come_at_once_meet() {
    let Some(net) = Net::pair("at_once") else {
        return;
    };
    let wait = ["sh", "-c", "readlink /proc/self/ns/net; sleep 1000"];
    let children: Vec<Child> = (0..8)
        .map(|_| net.command("khons", &wait).spawn().unwrap())
        .collect();
    let lines = children.into_iter().map(|mut child| {
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        (line, child)
    });
    let (lines, children): (Vec<String>, Vec<Child>) = lines.unzip();
    assert!(
        lines[0].starts_with("net:[") && lines.iter().all(|line| *line == lines[0]),
        "{lines:?}"
    );
    for mut child in children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    net.place.empties();
}

#[test]
fn two_hundred_hosts() {
    let hosts: Vec<String> = (0..200).map(|number| format!("h{number}")).collect();
    let links: String = hosts
        .iter()
        .map(|host| format!("link {host} - hub 1 Gbit/s 1 ms; "))
        .collect();
    let inside = format!("host {}; switch hub; {links}", hosts.join(", "));
    let Some(net) = Net::with("many", &inside) else {
        return;
    };
    let seen = printed(&net.run("h199", &["sh", "-c", "hostname; getent hosts h0"]));
    assert_eq!(
        seen.split_whitespace().collect::<Vec<_>>(),
        ["h199", "10.71.0.1", "h0"]
    );
    net.place.empties();
}

#[test]
fn without_files_for_its_hosts_it_is_refused() {
    let Some(net) = Net::pair("limit") else {
        return;
    };
    let hosts: Vec<String> = (0..60).map(|number| format!("h{number}")).collect();
    let links: String = hosts
        .iter()
        .map(|host| format!("link {host} - hub 1 Gbit/s 1 ms; "))
        .collect();
    net.place.write(
        "net.stackline",
        format!(
            "network l {{ host {}; switch hub; {links} }}",
            hosts.join(", ")
        ),
    );
    let script = format!(
        "ulimit -n 100; exec {} net exec net.stackline h0 -- true",
        program()
    );
    let ended = Command::new("sh")
        .args(["-c", &script])
        .current_dir(net.place.path(""))
        .output()
        .unwrap();
    assert_eq!(ended.status.code(), Some(3), "{}", said(&ended));
    assert!(
        said(&ended).contains("60 emulated hosts need 248 file descriptors, but the limit is 100"),
        "{}",
        said(&ended)
    );
    assert!(
        said(&ended)
            .trim_end()
            .ends_with("hint: use `ulimit -Hn 248`"),
        "{}",
        said(&ended)
    );
}

#[test]
fn the_setting_that_forbids_it_is_named() {
    let Some(net) = Net::pair("forbidden") else {
        return;
    };
    if !has_program("unshare", "util-linux") {
        return;
    }
    let arguments = format!("{} net exec net.stackline khons -- true", program());
    let script = format!("echo 0 > /proc/sys/user/max_net_namespaces && exec {arguments}");
    let inside = net.place.path("");
    let ended = Command::new("unshare")
        .args(["-Ur", "sh", "-c", &script])
        .current_dir(inside)
        .output()
        .unwrap();
    if said(&ended).contains("unshare: ") {
        return skip(said(&ended));
    }
    assert_eq!(ended.status.code(), Some(3), "{}", said(&ended));
    assert!(
        said(&ended).contains("which sysctl user.max_net_namespaces=0 forbids"),
        "{}",
        said(&ended)
    );
    assert!(
        said(&ended).contains("lift the restriction: sysctl -w user.max_net_namespaces="),
        "{}",
        said(&ended)
    );
}

#[test]
fn root_of_a_user_namespace_with_one_group_may_emulate() {
    let Some(net) = Net::pair("restricted") else {
        return;
    };
    if !has_program("unshare", "util-linux") {
        return;
    }
    let script = format!("exec {} net exec net.stackline khons -- true", program());
    let inside = net.place.path("");
    let ended = Command::new("unshare")
        .args(["-Ur", "sh", "-c", &script])
        .current_dir(inside)
        .output()
        .unwrap();
    if said(&ended).contains("unshare: ") {
        return skip(said(&ended));
    }
    assert_eq!(ended.status.code(), Some(0), "{}", said(&ended));
    net.place.empties();
}

#[test]
fn anybody_may_emulate() {
    // Where this user is not root, all the other tests show it.
    if !nix::unistd::getuid().is_root() {
        return;
    }
    let Some(net) = Net::pair("anybody") else {
        return;
    };
    let text = format!("{} # as nobody", net.text);
    // Others may not be allowed to enter the directory in which it was built.
    fs::set_permissions(net.place.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let public = net.place.path("stackline");
    fs::hard_link(program(), &public)
        .or_else(|_| fs::copy(program(), &public).map(drop))
        .unwrap();
    let mut command = Command::new(public);
    command.args([
        "net",
        "exec",
        "-e",
        &text,
        "khons",
        "--",
        "sh",
        "-c",
        "id -u; grep CapAmb /proc/self/status",
    ]);
    let ended = command
        .uid(65534)
        .gid(65534)
        .current_dir("/")
        .output()
        .unwrap();
    if ended.status.code() == Some(3) {
        return skip(said(&ended));
    }
    let seen = said(&ended);
    assert_eq!(
        seen.split_whitespace().collect::<Vec<_>>(),
        ["65534", "CapAmb:", "0000000000003400"],
        "{seen}"
    );
}

/// A network as plain data.
fn two_hosts(mtu: u64) -> Network {
    let host = |name: &str| NetworkHost {
        name: name.into(),
        ..NetworkHost::default()
    };
    let link = NetworkLink {
        ends: ("a".into(), "b".into()),
        rate: LinkRate::Constant(1e8),
        delay: Duration(5_000_000),
        mtu_bytes: Some(mtu),
        ..NetworkLink::default()
    };
    Network {
        name: "n".into(),
        hosts: vec![host("a"), host("b")],
        links: vec![link],
        ..Network::default()
    }
}

#[test]
fn a_network_of_ones_own() {
    let open = |mtu| {
        Emulation::private(
            Path::new(program()),
            &two_hosts(mtu),
            Seed::root(1),
            &Default::default(),
        )
    };
    let mut emulation = match open(1500) {
        Err(refusal) if refusal.blame == Blame::Environment => return skip(refusal),
        other => other.unwrap(),
    };
    assert_eq!(
        emulation
            .hosts()
            .iter()
            .map(|host| host.name.as_str())
            .collect::<Vec<_>>(),
        ["a", "b"]
    );
    let net = emulation.host("b").unwrap().net.clone();
    let process = net
        .components()
        .nth(2)
        .unwrap()
        .as_os_str()
        .to_str()
        .unwrap()
        .to_string();
    assert!(net.exists());
    assert_eq!(emulation.report().unwrap().ports.len(), 2);
    emulation.restart(Seed::root(2), None).unwrap();
    drop(emulation);
    assert!(
        !Path::new("/proc").join(process).exists(),
        "it ends before its lease is dropped"
    );
    let refusal = open(53).unwrap_err();
    assert_eq!(refusal.blame, Blame::Input);
    assert!(
        refusal.message.contains("has an MTU of 53 bytes"),
        "{refusal}"
    );
}

#[test]
fn packets_for_no_host_are_counted() {
    if !has_program("python3", "python3") {
        return;
    }
    let Some(net) = Net::pair("nowhere") else {
        return;
    };
    let send = "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)\n\
                for to in ('239.1.1.1', '255.255.255.255'): s.sendto(b'x', (to, 9))";
    let sent = net.run("khons", &["python3", "-c", send]);
    assert!(
        said(&sent).contains("2 packets were addressed to none of its hosts"),
        "{}",
        said(&sent)
    );
    let quiet = net.run("khons", &["true"]);
    assert!(
        !said(&quiet).contains("addressed to no"),
        "{}",
        said(&quiet)
    );
    net.place.empties();
}
