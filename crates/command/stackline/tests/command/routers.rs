//! Routers of emulated networks, as the tools see them that people know: `ping`, `traceroute`, `tracepath`.

use crate::support::emulated::Net;
use crate::support::{has_program, said, skip};

/// Two routers between two hosts; the link between the routers takes 1400 bytes.
const CHAIN: &str = "host khons, udjat; router r { R } router s { S }
    link khons - r 1 Gbit/s 1 ms; link r - s 1 Gbit/s 1 ms mtu 1400; link s - udjat 1 Gbit/s 1 ms;";

fn chain(test: &str, first: &str, second: &str) -> Option<Net> {
    let inside = CHAIN.replace("R }", &format!("{first} }}"));
    Net::with(test, &inside.replace("S }", &format!("{second} }}")))
}

/// What a program on `khons` prints, on both streams, whatever its exit code.
fn printed_by(net: &Net, words: &[&str]) -> String {
    said(&net.run("khons", words))
}

#[test]
fn pings_see_routers() {
    if !has_program("ping", "iputils-ping") {
        skip("no ping");
        return;
    }
    let Some(net) = chain("pinged", "", "") else {
        return;
    };
    let ping = |more: &[&str]| {
        let words = [&["ping", "-n", "-c", "1", "-W", "60"], more].concat();
        printed_by(&net, &words)
    };
    let far = ping(&["10.71.0.2"]);
    assert!(
        far.contains("64 bytes from 10.71.0.2") && far.contains("ttl=62"),
        "{far}"
    );
    let near = ping(&["10.70.0.2"]);
    assert!(near.contains("64 bytes from 10.70.0.2"), "{near}");
    let expired = ping(&["-t", "2", "10.71.0.2"]);
    assert!(
        expired.contains("From 10.70.0.2 icmp_seq=1 Time to live exceeded"),
        "{expired}"
    );
    let large = ping(&["-M", "do", "-s", "1472", "10.71.0.2"]);
    assert!(
        large.contains("From 10.70.0.1") && large.contains("mtu = 1400"),
        "{large}"
    );
    let cut = ping(&["-M", "dont", "-s", "5000", "10.71.0.2"]);
    assert!(cut.contains("5008 bytes from 10.71.0.2"), "{cut}");
}

#[test]
fn paths_are_traced() {
    if !has_program("traceroute", "traceroute") || !has_program("tracepath", "iputils-tracepath") {
        skip("no traceroute or tracepath");
        return;
    }
    let Some(net) = chain("traced", "", "") else {
        return;
    };
    let hops = ["10.70.0.1", "10.70.0.2", "10.71.0.2"];
    let words = [
        "traceroute",
        "-n",
        "-q",
        "1",
        "-N",
        "1",
        "-w",
        "60",
        "10.71.0.2",
    ];
    let traced = printed_by(&net, &words);
    for (line, hop) in traced.lines().skip(1).zip(hops) {
        assert!(line.contains(hop), "{traced}");
    }
    assert_eq!(traced.lines().count(), 4, "{traced}");
    let path = printed_by(&net, &["tracepath", "-n", "10.71.0.2"]);
    for words in hops
        .into_iter()
        .chain(["pmtu 1400", "reached", "Resume: pmtu 1400 hops 3"])
    {
        assert!(path.contains(words), "no {words} in {path}");
    }
}

/// Sends 100,000 bytes over TCP to `udjat`, which prints their number and where they came from.
const SINK: &str = "import socket
socket.setdefaulttimeout(120)
listener = socket.create_server(('', 5000))
print('listens', flush=True)
connection, peer = listener.accept()
count = 0
while data := connection.recv(65536): count += len(data)
print(peer[0], count, flush=True)";
const SOURCE: &str = "import socket
socket.setdefaulttimeout(120)
with socket.create_connection(('10.71.0.2', 5000)) as connection: connection.sendall(bytes(100000))";

/// What the sink on `udjat` prints of a connection from `khons`.
fn transferred(net: &Net) -> String {
    let sink = net.start("udjat", &["python3", "-c", SINK]);
    assert_eq!(sink.line, "listens");
    let sent = net.run("khons", &["python3", "-c", SOURCE]);
    assert_eq!(sent.status.code(), Some(0), "{}", said(&sent));
    sink.finish().1
}

#[test]
fn tcp_discovers_the_mtu_of_its_path() {
    let Some(net) = chain("discovered", "", "") else {
        return;
    };
    assert_eq!(transferred(&net).trim(), "10.71.0.1 100000");
}

#[test]
fn a_translating_router_stands_for_its_hosts() {
    let Some(net) = chain("translated", "nat on s timeout 30 s", "") else {
        return;
    };
    assert_eq!(transferred(&net).trim(), "10.70.0.1 100000");
    let ping = printed_by(&net, &["ping", "-n", "-c", "1", "-W", "60", "10.71.0.2"]);
    assert!(ping.contains("64 bytes from 10.71.0.2"), "{ping}");
    let expired = printed_by(
        &net,
        &["ping", "-n", "-c", "1", "-W", "60", "-t", "2", "10.71.0.2"],
    );
    assert!(
        expired.contains("From 10.70.0.2"),
        "an error is translated: {expired}"
    );
}

#[test]
fn a_firewall_refuses_what_comes_unasked() {
    let Some(net) = chain("guarded", "", "firewall on r reject") else {
        return;
    };
    let refused = printed_by(&net, &["ping", "-n", "-c", "1", "-W", "60", "10.71.0.2"]);
    assert!(
        refused.contains("From 10.70.0.2") && refused.contains("filtered"),
        "{refused}"
    );
    let words = ["ping", "-n", "-c", "1", "-W", "60", "10.71.0.1"];
    let asked = String::from_utf8(net.run("udjat", &words).stdout).unwrap();
    assert!(asked.contains("64 bytes from 10.71.0.1"), "{asked}");
}
