//! Programs on the hosts of emulated networks: what they see, how they meet, which network they are on.

use crate::support::emulated::{Net, printed};
use crate::support::{has_program, program, said, skip};
use nix::sys::signal::Signal;
use stackline_core::network::{LinkRate, Network, NetworkHost, NetworkLink};
use stackline_core::random::Seed;
use stackline_core::time::Duration;
use stackline_emu::client::Emulation;
use stackline_emu::error::Blame;
use std::fs;
use std::path::Path;

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
    // It looks for addresses of IPv6 first.
    assert_eq!(lines[1], ["fd71::2", "udjat"]);
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
fn both_versions_of_ip_are_carried() {
    if !has_program("python3", "python3") {
        return;
    }
    let Some(net) = Net::pair("six") else { return };
    let serve = "import socket\ns = socket.create_server(('::', 7000), family=socket.AF_INET6)\nprint('ready', flush=True)\n\
                 c, peer = s.accept()\nn = 0\nwhile True:\n  b = c.recv(65536)\n  if not b: break\n  n += len(b)\nprint(peer[0], n)";
    let server = net.start("udjat", &["python3", "-c", serve]);
    let send = "import socket\nfound = [f[4][0] for f in socket.getaddrinfo('udjat', 7000, type=socket.SOCK_STREAM)]\n\
                s = socket.create_connection((found[1], 7000), timeout=20)\ns.sendall(b'x' * 300000)\nprint(*found)";
    let client = net.run("khons", &["python3", "-c", send]);
    assert_eq!(printed(&client), "10.71.0.2 fd71::2", "{}", said(&client));
    assert!(
        !said(&client).contains("addressed to no"),
        "neighbour discovery is the kernels': {}",
        said(&client)
    );
    let (code, out, err) = server.finish();
    assert_eq!((code, out.trim()), (Some(0), "fd71::1 300000"), "{err}");
    net.place.empties();
}

#[test]
fn a_narrow_link_carries_no_ipv6() {
    let inside = "host khons, udjat; link khons - udjat 100 Mbit/s 5 ms mtu 600;";
    let Some(net) = Net::with("narrow", inside) else {
        return;
    };
    let names = printed(&net.run("khons", &["cat", "/etc/hosts"]));
    assert!(
        names.contains("10.71.0.2 udjat") && !names.contains("fd71"),
        "{names}"
    );
    net.place.empties();
}

/// A host with two ways to another one.
const TWO_WAYS: &str = "host khons, udjat; switch wan, lte, edge;
    link khons - wan 10 Mbit/s 5 ms; link wan - edge 1 Gbit/s 0 ms;
    link khons - lte 10 Mbit/s 20 ms; link lte - edge 1 Gbit/s 0 ms; link edge - udjat 1 Gbit/s 0 ms;";

#[test]
fn a_host_has_an_interface_for_each_neighbour() {
    if !has_program("python3", "python3") {
        return;
    }
    let Some(net) = Net::with("ways", TWO_WAYS) else {
        return;
    };
    let names = printed(&net.run("khons", &["cat", "/etc/hosts"]));
    for name in [
        "10.71.0.1 khons",
        "10.72.0.1 khons",
        "fd71:0:0:1::1 khons",
        "fd71::2 udjat",
    ] {
        assert!(names.contains(name), "{names}");
    }
    let serve = "import socket\ns = socket.create_server(('::', 7000), family=socket.AF_INET6, dualstack_ipv6=True)\nprint('ready', flush=True)\n\
                 for i in range(4):\n  c, peer = s.accept()\n  print(peer[0].replace('::ffff:', ''))\n  c.close()";
    let server = net.start("udjat", &["python3", "-c", serve]);
    let dial = "import socket, time\nfor to, own in (('10.71.0.2', ''), ('10.71.0.2', '10.72.0.1'), ('fd71::2', ''), ('fd71::2', 'fd71:0:0:1::1')):\n\
                \tbegun = time.monotonic()\n\tsocket.create_connection((to, 7000), timeout=20, source_address=own and (own, 0) or None)\n\
                \tprint(time.monotonic() - begun)";
    let dialled = printed(&net.run("khons", &["python3", "-c", dial]));
    let times: Vec<f64> = dialled.lines().map(|time| time.parse().unwrap()).collect();
    for (time, least) in times.iter().zip([0.010, 0.040, 0.010, 0.040]) {
        assert!(*time >= least, "{dialled}");
    }
    let (code, out, err) = server.finish();
    // Over the longer way a connection is accepted later than its successor over the other one.
    let mut seen: Vec<&str> = out.lines().collect();
    seen.sort_unstable();
    let peers = ["10.71.0.1", "10.72.0.1", "fd71:0:0:1::1", "fd71::1"];
    assert_eq!((code, &seen[..]), (Some(0), &peers[..]), "{err}");
    net.place.empties();
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
        ["h199", "fd71::1", "h0"]
    );
    net.place.empties();
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
